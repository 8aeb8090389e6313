"""String, sparse, ragged, bool, complex, int8..int64, half and bfloat16 tensors in
and out, across tasks; string ops; empty and large shapes."""

from common import *

a = parse(__doc__)
with tf.Graph().as_default():
    p = v1.placeholder(tf.string, [None])
    with v1.device("/job:ps/task:0"):
        j = tf.strings.join([p, "!"])
        up = tf.strings.upper(p)
        ln = tf.strings.length(p)
        h = tf.strings.to_hash_bucket_fast(p, 1000)
        num = tf.strings.to_number(["1.5", "-2"])
        sub = tf.strings.substr(p, 0, 2)
        rj = v1.reduce_join(p, 0, separator=",")
        st = tf.strings.as_string([1, 2])
        sp = v1.string_split(["a b", "c d e"], " ")
    with v1.device("/job:worker/task:0"):
        eq = tf.equal(j, tf.constant(["ab!", "cde!"]))
        again = tf.identity(j)
    with v1.Session(a.target) as s:
        f = {p: ["ab", b"cde"]}
        check_eq(list(s.run(j, f)), [b"ab!", b"cde!"], "join")
        check_eq(list(s.run(up, f)), [b"AB", b"CDE"], "upper")
        check_eq(list(s.run(ln, f)), [2, 3], "length")
        check_eq(list(s.run(eq, f)), [True, True], "equal")
        check_eq(list(s.run(sub, f)), [b"ab", b"cd"], "substr")
        check_eq(list(s.run(h, f)), [int(x) for x in s.run(h, f)], "hash")
        print("fast hash of ab, cde mod 1000:", s.run(h, f))
        check_eq(list(s.run(num)), [1.5, -2.0], "to_number")
        check_eq(s.run(rj, f), b"ab,cde", "reduce_join")
        check_eq(list(s.run(st)), [b"1", b"2"], "as_string")
        check_eq(
            list(s.run(again, {p: [b"\x00" * 70000, b""]})), [b"\x00" * 70000 + b"!", b"!"], "long string over the wire"
        )
        v = s.run(sp)
        check_eq(v.values.tolist(), [b"a", b"b", b"c", b"d", b"e"], "split")
        check_eq(v.dense_shape.tolist(), [2, 3], "split shape")
# sparse
with tf.Graph().as_default():
    sp = v1.sparse_placeholder(tf.float32, [3, 4])
    with v1.device("/job:ps/task:0"):
        dense = tf.sparse.to_dense(sp)
        prod = tf.sparse.sparse_dense_matmul(sp, tf.ones([4, 2]))
        tot = v1.sparse_reduce_sum(sp, 1)
        add = tf.sparse.add(sp, sp)
        tr = tf.sparse.transpose(sp)
        seg = tf.math.segment_sum(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [0, 0, 1])
        uq = tf.unique([3, 1, 3, 2, 1])
        sl = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    with v1.Session(a.target) as s:
        val = v1.SparseTensorValue([[0, 1], [2, 3]], [5.0, 7.0], [3, 4])
        want = np.zeros([3, 4], np.float32)
        want[0, 1], want[2, 3] = 5, 7
        check_eq(s.run(dense, {sp: val}), want, "to_dense")
        check_eq(s.run(prod, {sp: val}), want @ np.ones([4, 2], np.float32), "spmm")
        check_eq(s.run(tot, {sp: val}), want.sum(1), "reduce")
        r = s.run(add, {sp: val})
        check_eq(r.values.tolist(), [10.0, 14.0], "add")
        r = s.run(tr, {sp: val})
        check_eq(r.indices.tolist(), [[1, 0], [3, 2]], "transpose")
        check_eq(s.run(seg).tolist(), [[4, 6], [5, 6]], "segment_sum")
        y, i = s.run(uq)
        check_eq([y.tolist(), i.tolist()], [[3, 1, 2], [0, 1, 0, 2, 1]], "unique")
        r = s.run(sl)
        check_eq([r.values.tolist(), r.indices.tolist()], [[[1.0]], [2]], "IndexedSlices fetch")
# every dtype goes out and back, through another task
D = [
    tf.bool,
    tf.int8,
    tf.uint8,
    tf.int16,
    tf.uint16,
    tf.int32,
    tf.uint32,
    tf.int64,
    tf.uint64,
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
]
with tf.Graph().as_default():
    ph, out = [], []
    for d in D:
        x = v1.placeholder(d, [None, 3])
        ph.append(x)
        with v1.device("/job:ps/task:0"):
            y = tf.identity(x)
        with v1.device("/job:worker/task:0"):
            out.append(tf.reshape(y, [3, -1]))
    with v1.Session(a.target) as s:
        feed = {x: np.array([[0, 1, 1], [1, 0, 1]]).astype(d.as_numpy_dtype) for x, d in zip(ph, D)}
        for d, x, r in zip(D, ph, s.run(out, feed)):
            check_eq(r.dtype, np.dtype(d.as_numpy_dtype), d.name)
            check_eq(r, feed[x].reshape(3, -1), d.name)
        for d, r in zip(D, s.run(out, {x: np.zeros([0, 3], d.as_numpy_dtype) for x, d in zip(ph, D)})):
            check_eq(r.shape, (3, 0), "empty " + d.name)
    nan = v1.placeholder(tf.float32, [None])
    with v1.device("/job:ps/task:0"):
        z = tf.identity(nan)
    with v1.Session(a.target) as s:
        v = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
        check_eq(s.run(z, {nan: v}).tobytes(), v.tobytes(), "nan, inf, -0, denormal")
        big = np.arange(3_000_000, dtype=np.float32)
        check_eq(s.run(z, {nan: big}), big, "12 MB tensor")
ok()
