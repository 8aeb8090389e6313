"""Checkpoints on the server's disk: written there and read by TensorFlow, written by TensorFlow and restored there."""
import glob

from common import *

random = np.random.RandomState(0)
VALUES = {
    "f32": random.randn(300, 7).astype(np.float32),
    "f64": random.randn(5),
    "f16": random.randn(3).astype(np.float16),
    "bf16": np.array([1, 2, 3]).astype(tf.bfloat16.as_numpy_dtype),
    "c64": (random.randn(2) + 1j).astype(np.complex64),
    "i32": random.randint(0, 9, (4, 4)).astype(np.int32),
    "i64": np.array(7, np.int64),
    "u8": np.arange(5, dtype=np.uint8),
    "b": np.array([True, False]),
    "s": np.array([b"x", b"", b"long" * 100], object),
    "empty": np.zeros([0, 3], np.float32),
}


def blank(value):
    return np.array([b""] * len(value), object) if value.dtype == object else np.zeros_like(value)


def variables(change=lambda value: value):
    return {k: v1.get_variable("scope/" + k, initializer=change(v)) for k, v in VALUES.items()}


def same(got, want, what):
    check_eq(np.asarray(got).tolist(), want.tolist(), what)


def save_and_restore(a, sharded):
    base = os.path.join(a.workdir, "saved%d" % sharded, "model")
    os.makedirs(os.path.dirname(base))
    variables()
    saver = v1.train.Saver(sharded=sharded, max_to_keep=2)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        for step in (1, 2, 3):
            path = saver.save(s, base, global_step=step)
    check_eq(path, base + "-3", "the path")
    check_eq(v1.train.latest_checkpoint(os.path.dirname(base)), path, "latest")
    check_eq(len(glob.glob(base + "*.index")), 2, "max_to_keep")
    check_eq([os.path.basename(p) for p in glob.glob(path + ".data*")], ["model-3.data-00000-of-00001"], "shards")
    reader = tf.train.load_checkpoint(path)
    check_eq(sorted(reader.get_variable_to_shape_map()), sorted("scope/" + k for k in VALUES), "keys")
    for k, value in VALUES.items():
        same(reader.get_tensor("scope/" + k), value, "read " + k)
        check_eq(reader.get_variable_to_shape_map()["scope/" + k], list(value.shape), "shape of " + k)
    with tf.Graph().as_default():
        vs, restorer = variables(blank), v1.train.Saver(sharded=sharded)
        with v1.Session(a.target) as s:
            s.run(v1.global_variables_initializer())
            restorer.restore(s, path)
            for k, value in VALUES.items():
                same(s.run(vs[k]), value, "restored " + k)


@part
def whole(a):
    save_and_restore(a, False)


@part
def sharded(a):
    save_and_restore(a, True)


@part
def written_by_tensorflow(a):
    path = os.path.join(a.workdir, "local")
    with tf.Graph().as_default():
        variables()
        with v1.Session() as s:
            s.run(v1.global_variables_initializer())
            v1.train.Saver().save(s, path, write_meta_graph=False)
    vs = variables(blank)
    missing = os.path.join(a.workdir, "missing")
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        v1.train.Saver({"scope/f32": vs["f32"], "scope/s": vs["s"]}).restore(s, path)
        same(s.run(vs["f32"]), VALUES["f32"], "float")
        same(s.run(vs["s"]), VALUES["s"], "strings")
        same(s.run(vs["f64"]), np.zeros(5), "not restored")
        with raises(errors.NotFoundError, "Key nosuch not found in checkpoint"):
            v1.train.Saver({"nosuch": vs["f32"]}).restore(s, path)
        with raises(errors.InvalidArgumentError, "tensor_name = scope/f32; expected dtype double does not equal original dtype float"):
            v1.train.Saver({"scope/f32": vs["f64"]}).restore(s, path)
        # The client looks for the file itself; the op on the server is asked directly.
        read = tf.raw_ops.RestoreV2(prefix=missing, tensor_names=["x"], shape_and_slices=[""], dtypes=[tf.float32])
        with raises(errors.NotFoundError, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + missing):
            s.run(read)


@part
def partitioned(a):
    """A partitioned variable is one tensor in the checkpoint, and may be cut otherwise when it is restored."""
    table = np.arange(50 * 4, dtype=np.float32).reshape(50, 4)
    path = os.path.join(a.workdir, "parts")

    def parts(n, name="table"):
        with v1.variable_scope("emb", partitioner=v1.fixed_size_partitioner(n)):
            return v1.get_variable(name, [50, 4], initializer=v1.zeros_initializer())

    with tf.Graph().as_default():
        emb = parts(3)
        check_eq([p.shape.as_list() for p in emb], [[17, 4], [17, 4], [16, 4]], "parts")
        ids = v1.placeholder(tf.int64, [None])
        found = v1.nn.embedding_lookup(emb, ids, partition_strategy="div")
        fill = [v1.assign(p, v) for p, v in zip(emb, np.split(table, [17, 34]))]
        saver = v1.train.Saver()
        with v1.Session(a.target) as s:
            s.run(v1.global_variables_initializer())
            s.run(fill)
            check_eq(s.run(found, {ids: [0, 17, 49, 0]}), table[[0, 17, 49, 0]], "lookup")
            saver.save(s, path)
    check_eq(tf.train.load_checkpoint(path).get_tensor("emb/table"), table, "read as one")
    # Parts of another size under the same names: the old ones must go first.
    v1.Session.reset(a.target)
    emb = parts(2)
    with v1.Session(a.target) as s:
        v1.train.Saver().restore(s, path)
        check_eq(np.concatenate(s.run(list(emb))), table, "restored in two parts")


@part
def meta_graph(a):
    path = os.path.join(a.workdir, "meta")
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=3.0)
        v1.add_to_collection("out", v * 2.0)
        with v1.Session(a.target) as s:
            s.run(v.initializer)
            v1.train.Saver().save(s, path)
    saver = v1.train.import_meta_graph(path + ".meta")
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        saver.restore(s, path)
        check_eq(float(s.run(v1.get_collection("out")[0])), 6.0)


main(__doc__)
