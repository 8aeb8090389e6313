"""Writes the files under tests/golden with real TensorFlow (made with 2.21).

    python crates/checkpoint/tests/make_golden.py

Element i of every numeric tensor is i - 5 (signed), i (unsigned) or (i - 5) / 2 (floating), so that the
tests need no second source of truth.
"""
import os
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.python.framework import dtypes

ops = tf.raw_ops
golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
work = os.path.join(golden, "work")


def save(prefix, items):
    names, specs, tensors = zip(*items)
    ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=tensors)


def sample(dtype, count):
    index = tf.range(count, dtype=tf.int32)
    if dtype == tf.bool:
        return tf.equal(index % 2, 1)
    if dtype == tf.string:
        return tf.constant([b"s%d" % i * (i % 4) + (b"\0\xff" if i == 5 else b"") for i in range(count)])
    if dtype.is_complex:
        real = (tf.cast(index, tf.float64) - 5) / 2
        return tf.cast(tf.complex(real, tf.cast(index, tf.float64)), dtype)
    if dtype in (dtypes.float8_e5m2, dtypes.float8_e4m3fn) or dtype.is_floating:
        return tf.cast((tf.cast(index, tf.float32) - 5) / 2, dtype)
    if dtype.is_quantized:
        plain = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint16: tf.int16, tf.quint16: tf.uint16, tf.qint32: tf.int32}
        return tf.bitcast(sample(plain[dtype], count), dtype)
    if dtype in (dtypes.uint4, tf.uint8, tf.uint16, tf.uint32, tf.uint64):
        return tf.cast(index, dtype)
    return tf.cast(index - 5, dtype)


DTYPES = [
    tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string, tf.complex64, tf.int64, tf.bool,
    tf.qint8, tf.quint8, tf.qint32, tf.bfloat16, tf.qint16, tf.quint16, tf.uint16, tf.complex128, tf.half,
    tf.uint32, tf.uint64, dtypes.float8_e5m2, dtypes.float8_e4m3fn, dtypes.int4, dtypes.uint4,
]


def whole():
    items = [(f"t/{dtype.name}", "", tf.reshape(sample(dtype, 12), [3, 4])) for dtype in DTYPES]
    items += [("scalar", "", tf.constant(7, tf.int64)), ("empty", "", tf.zeros([0, 3])), ("text", "", tf.constant("hi"))]
    # Enough names with common prefixes to cross restart points.
    items += [(f"layer_{i}/kernel/Adam_{i % 3}", "", tf.constant([float(i)])) for i in range(40)]
    save(f"{golden}/whole", items)


def variant():
    lists = [
        ops.TensorListFromTensor(tensor=tf.constant([1.0, 2, 3]), element_shape=tf.constant([], tf.int32)),
        ops.TensorListFromTensor(tensor=tf.constant([7, 8]), element_shape=tf.constant([], tf.int32)),
    ]
    save(f"{golden}/variant", [("lists", "", tf.stack(lists))])


def parts():
    rows = tf.reshape(sample(tf.float32, 70), [10, 7])
    grid = tf.reshape(sample(tf.int16, 60), [5, 4, 3])
    items = [
        ("rows", "10 7 0,3:-", rows[:3]),
        ("rows", "10 7 3,6:0,7", rows[3:9]),
        ("rows", "10 7 9,1:-", rows[9:]),
        ("grid", "5 4 3 0,2:0,3:0,3", grid[:2, :3]),
        ("grid", "5 4 3 0,2:3,1:0,3", grid[:2, 3:]),
        ("grid", "5 4 3 2,3:0,4:0,2", grid[2:, :, :2]),
        ("grid", "5 4 3 2,3:0,4:2,1", grid[2:, :, 2:]),
        ("flags", "300 0,100", sample(tf.bool, 300)[:100]),
        ("flags", "300 100,200", sample(tf.bool, 300)[100:]),
        ("full", "3 2 -:-", tf.reshape(sample(tf.float32, 6), [3, 2])),
        ("cut", "8 0,4", sample(tf.int64, 4)),  # the rest was never saved
    ]
    save(f"{golden}/parts", items)


def shards():
    """Two checkpoints and what MergeV2Checkpoints makes of them."""
    table = tf.reshape(sample(tf.float32, 12), [6, 2])
    inputs = [
        [("w0", "", sample(tf.float32, 5)), ("table", "6 2 0,2:-", table[:2]), ("names", "", sample(tf.string, 6))],
        [("table", "6 2 2,4:-", table[2:]), ("b1", "", sample(tf.int32, 3)), ("a1", "", sample(tf.double, 2))],
    ]
    prefixes = []
    for number, items in enumerate(inputs):
        prefix = f"{golden}/merge_input/part-{number:05}-of-00002"
        save(prefix, items)
        prefixes.append(prefix)
    shutil.copytree(f"{golden}/merge_input", f"{work}/parts")
    copies = [prefix.replace("golden/merge_input", "golden/work/parts") for prefix in prefixes]
    ops.MergeV2Checkpoints(checkpoint_prefixes=copies, destination_prefix=f"{golden}/merged", delete_old_dirs=True)


def records():
    with tf.io.TFRecordWriter(f"{golden}/plain.tfrecord") as writer:
        for record in (b"hello", b"", bytes(range(256)) * 4):
            writer.write(record)
    with tf.Graph().as_default():
        v1 = tf.compat.v1
        writer = v1.summary.FileWriter(f"{work}/events")
        writer.add_session_log(v1.SessionLog(status=v1.SessionLog.START), 3)
        value = v1.Summary.Value(tag="loss", simple_value=0.5)
        writer.add_summary(v1.Summary(value=[value]), 4)
        writer.close()
    (name,) = os.listdir(f"{work}/events")
    shutil.copy(f"{work}/events/{name}", f"{golden}/events.out.tfevents")


def state():
    update = tf.compat.v1.train.update_checkpoint_state
    paths = [f"/models/a/model.ckpt-{step}" for step in (1, 5)]
    for name, directory, latest, others, more in [
        ("absolute", "/models/a", paths[1], paths, {}),
        ("relative", "models/a", "models/a/model.ckpt-5", ["models/a/model.ckpt-1", "models/b/model.ckpt-2"], {}),
        ("times", "/models/a", paths[1], paths, dict(all_model_checkpoint_timestamps=[1.5, 1794772682.525976], last_preserved_timestamp=7.25)),
        ("quoted", "/models/a", '/models/a/mo"d\\el\n\u00e9.ckpt-5', None, {}),
    ]:
        proto = tf.compat.v1.train.generate_checkpoint_state_proto(directory, latest, others, **more)
        with open(f"{golden}/state_{name}.txt", "w") as out:
            out.write(text_format.MessageToString(proto))


shutil.rmtree(golden, ignore_errors=True)
os.makedirs(work)
for make in (whole, variant, parts, shards, records, state):
    make()
shutil.rmtree(work)
