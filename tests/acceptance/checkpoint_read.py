"""Checkpoint written by the servers (SaveV2/MergeV2, sharded and not), read by
tf.train.load_checkpoint; one written by TensorFlow locally, restored by the servers;
many dtypes, strings, latest_checkpoint, max_to_keep, partial restore, SaveSlices."""

import glob
from common import *

a = parse(__doc__)
r = np.random.RandomState(0)
vals = {
    "f32": r.randn(300, 7).astype(np.float32),
    "f64": r.randn(5),
    "i32": r.randint(0, 9, (4, 4)).astype(np.int32),
    "i64": np.array(7, np.int64),
    "b": np.array([True, False]),
    "f16": r.randn(3).astype(np.float16),
    "c64": (r.randn(2) + 1j).astype(np.complex64),
    "s": np.array([b"x", b"", b"long" * 100], object),
    "empty": np.zeros([0, 3], np.float32),
    "u8": np.arange(5, dtype=np.uint8),
    "bf16": np.array([1, 2, 3]).astype(tf.bfloat16.as_numpy_dtype),
}


def graph(initial):
    """Variables that begin with these values."""
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        return {k: v1.get_variable("scope/" + k, initializer=v) for k, v in initial.items()}


def zero(v):
    return np.zeros_like(v) if v.dtype != object else np.array([b""] * len(v), object)


zeros = {k: zero(v) for k, v in vals.items()}


for sharded in (False, True):
    with tf.Graph().as_default():
        vs = graph(vals)
        saver = v1.train.Saver(sharded=sharded, max_to_keep=2)
        with v1.Session(a.target) as s:
            s.run(v1.global_variables_initializer())
            base = os.path.join(a.workdir, "ck%d" % sharded, "model")
            os.makedirs(os.path.dirname(base))
            for step in (1, 2, 3):
                path = saver.save(s, base, global_step=step)
        check_eq(v1.train.latest_checkpoint(os.path.dirname(base)), path, "latest")
        check_eq(len(glob.glob(base + "*.index")), 2, "max_to_keep")
        nshard = len(glob.glob(path + ".data-*"))
        check(nshard >= (len(a.ps) if sharded else 1), "shards", nshard)
        rd = tf.train.load_checkpoint(path)
        check_eq(sorted(rd.get_variable_to_shape_map()), sorted("scope/" + k for k in vals), "keys")
        for k, v in vals.items():
            got = rd.get_tensor("scope/" + k)
            check_eq(
                rd.get_variable_to_dtype_map()["scope/" + k].as_numpy_dtype,
                tf.as_dtype(v.dtype).as_numpy_dtype if v.dtype != object else object,
                k,
            )
            check_eq(np.asarray(got).tolist(), v.tolist(), "load_checkpoint " + k)
    with tf.Graph().as_default():
        vs = graph(zeros)
        saver = v1.train.Saver(sharded=sharded)
        with v1.Session(grpc(a.workers[-1])) as s:
            s.run(v1.global_variables_initializer())
            saver.restore(s, path)
            for k, v in vals.items():
                check_eq(np.asarray(s.run(vs[k])).tolist(), v.tolist(), "restore " + k)
# written by TensorFlow itself in this process, restored by the servers
with tf.Graph().as_default():
    vs = {k: v1.get_variable("scope/" + k, initializer=v) for k, v in vals.items()}
    with v1.Session() as s:
        s.run(v1.global_variables_initializer())
        lp = v1.train.Saver().save(s, os.path.join(a.workdir, "local"), write_meta_graph=False)
with tf.Graph().as_default():
    vs = graph(zeros)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        v1.train.Saver({"scope/f32": vs["f32"], "scope/s": vs["s"]}).restore(s, lp)
        check_eq(s.run(vs["f32"]), vals["f32"], "from a local checkpoint")
        check_eq(s.run(vs["s"]).tolist(), vals["s"].tolist(), "strings")
        check_eq(s.run(vs["f64"]).tolist(), [0.0] * 5, "not restored")
        with raises(tf.errors.NotFoundError):
            v1.train.Saver({"nosuch": vs["f32"]}).restore(s, lp)
        with raises((tf.errors.NotFoundError, tf.errors.DataLossError, ValueError)):
            v1.train.Saver([vs["f32"]]).restore(s, os.path.join(a.workdir, "missing"))
ok()
