"""String, sparse and indexed tensors, every dtype, empty and large tensors, in and out."""
from common import *

DTYPES = [
    tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64,
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128,
]  # fmt: skip


@part
def strings(a):
    p = v1.placeholder(tf.string, [None])
    joined = tf.strings.join([p, "!"])
    split = v1.string_split(["a b", "c d e"], " ")
    cases = [
        (joined, [b"ab!", b"cde!"]),
        (tf.strings.upper(p), [b"AB", b"CDE"]),
        (tf.strings.length(p), [2, 3]),
        (tf.strings.substr(p, 0, 2), [b"ab", b"cd"]),
        (tf.equal(joined, tf.constant(["ab!", "cde?"])), [True, False]),
        (v1.reduce_join(p, 0, separator=","), b"ab,cde"),
        (tf.strings.as_string([1, 2]), [b"1", b"2"]),
        (tf.strings.to_number(["1.5", "-2"]), [1.5, -2.0]),
    ]
    bucket = tf.strings.to_hash_bucket_fast(p, 1000)
    feed = {p: ["ab", b"cde"]}
    with v1.Session() as local:
        want_bucket = local.run(bucket, feed)
    with v1.Session(a.target) as s:
        for fetch, want in cases:
            got = s.run(fetch, feed)
            check_eq(got.tolist() if isinstance(got, np.ndarray) else got, want, fetch.op.type)
        check_eq(s.run(bucket, feed), want_bucket, "hash")
        long = [b"\x00" * 70000, b""]
        check_eq(list(s.run(joined, {p: long})), [x + b"!" for x in long], "long strings")
        v = s.run(split)
        check_eq(v.values.tolist(), [b"a", b"b", b"c", b"d", b"e"], "split")
        check_eq(v.dense_shape.tolist(), [2, 3], "split shape")


@part
def sparse(a):
    sp = v1.sparse_placeholder(tf.float32, [3, 4])
    value = v1.SparseTensorValue([[0, 1], [2, 3]], [5.0, 7.0], [3, 4])
    dense = np.zeros([3, 4], np.float32)
    dense[0, 1], dense[2, 3] = 5, 7
    add, transpose = tf.sparse.add(sp, sp), tf.sparse.transpose(sp)
    with v1.Session(a.target) as s:
        run = lambda fetch: s.run(fetch, {sp: value})
        check_eq(run(tf.sparse.to_dense(sp)), dense, "to_dense")
        check_eq(run(tf.sparse.sparse_dense_matmul(sp, tf.ones([4, 2]))), dense @ np.ones([4, 2], np.float32), "matmul")
        check_eq(run(v1.sparse_reduce_sum(sp, 1)), dense.sum(1), "reduce")
        check_eq(run(add).values.tolist(), [10.0, 14.0], "add")
        check_eq(run(transpose).indices.tolist(), [[1, 0], [3, 2]], "transpose")
        same = run(sp)
        check_eq([same.indices.tolist(), same.values.tolist(), same.dense_shape.tolist()], [[[0, 1], [2, 3]], [5, 7], [3, 4]])


@part
def segments_and_slices(a):
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    with v1.Session(a.target) as s:
        check_eq(s.run(tf.math.segment_sum(rows, [0, 0, 1])).tolist(), [[4, 6], [5, 6]], "segment_sum")
        check_eq(s.run(tf.math.unsorted_segment_sum(rows, [1, 0, 1], 3)).tolist(), [[3, 4], [6, 8], [0, 0]], "unsorted")
        y, index = s.run(tf.unique([3, 1, 3, 2, 1]))
        check_eq([y.tolist(), index.tolist()], [[3, 1, 2], [0, 1, 0, 2, 1]], "unique")
        got = s.run(slices)
        check_eq([got.values.tolist(), got.indices.tolist()], [[[1.0]], [2]], "IndexedSlices")


@part
def dtypes(a):
    ps = [v1.placeholder(d, [None, 3]) for d in DTYPES]
    outs = [tf.reshape(tf.identity(p), [3, -1]) for p in ps]
    with v1.Session(a.target) as s:
        feed = {p: np.array([[0, 1, 1], [1, 0, 1]]).astype(d.as_numpy_dtype) for p, d in zip(ps, DTYPES)}
        for d, p, got in zip(DTYPES, ps, s.run(outs, feed)):
            check_eq(got.dtype, np.dtype(d.as_numpy_dtype), d.name)
            check_eq(got, feed[p].reshape(3, -1), d.name)
        empty = {p: np.zeros([0, 3], d.as_numpy_dtype) for p, d in zip(ps, DTYPES)}
        for d, got in zip(DTYPES, s.run(outs, empty)):
            check_eq(got.shape, (3, 0), "empty " + d.name)
        consts = [tf.constant(feed[p]) for p in ps]
        for d, p, got in zip(DTYPES, ps, s.run(consts)):
            check_eq(got, feed[p], "constant " + d.name)


@part
def bits_and_sizes(a):
    p = v1.placeholder(tf.float32, [None])
    z = tf.identity(p)
    with v1.Session(a.target) as s:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
        check_eq(s.run(z, {p: odd}).tobytes(), odd.tobytes(), "nan, inf, -0, denormal")
        big = np.arange(3_000_000, dtype=np.float32)
        check_eq(s.run(z, {p: big}), big, "12 MB in and out")
        check_eq(int(s.run(tf.size(tf.zeros([0, 7])))), 0, "empty")


@part
def fetch_shapes(a):
    """Nested fetches, operations, duplicates, a feed of an inner tensor."""
    x = v1.placeholder_with_default(2.0, [])
    y = x * 3.0
    z = y + 1.0
    with v1.Session(a.target) as s:
        got = s.run({"a": [y, (z, z)], "b": tf.no_op(), "c": "%s" % y.name})
        check_eq(got["a"][1], (7.0, 7.0))
        check_eq((got["b"], float(got["c"])), (None, 6.0))
        check_eq(float(s.run(z, {y: 10.0})), 11.0, "feed of an inner tensor")
        check_eq([float(v) for v in s.run([y, z], {y: 10.0})], [10.0, 11.0], "fetch of what is fed")
        check_eq(s.run([]), [], "nothing")


main(__doc__)
