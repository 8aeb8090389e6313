"""Lets the Rust code read TFRecord, Example and CSV files that real TensorFlow reads and wrote, and TensorFlow the
Examples that the Rust code made of them.

    python crates/input/tests/check_with_tf.py

Needs tensorflow and cargo; writes to a temporary directory; exits with 1 at the first difference.
"""
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

BUILT = os.environ.get("TENSORFLEET_EXAMPLES")  # where `cargo xtask test` has built them
CARGO = ["cargo", "run", "--quiet", "--package", "tensorfleet-input", "--example", "tf_records", "--"]
EXAMPLE = [os.path.join(BUILT, "tf_records")] if BUILT else CARGO
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
COUNT = 30

SINGLES = {
    "x": tf.io.FixedLenFeature([2, 2], tf.float32),
    "weight": tf.io.FixedLenFeature([], tf.float32, default_value=0.5),
    "ids": tf.io.RaggedFeature(tf.int64),
    "words": tf.io.RaggedFeature(tf.string),
}
LAYOUTS = {**SINGLES, "tags": tf.io.VarLenFeature(tf.string), "scores": tf.io.VarLenFeature(tf.float32)}


def rust(*args):
    subprocess.run([*EXAMPLE, *args], cwd=ROOT, check=True)


def same(name, got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, f"{name}: dtype {got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"{name}: shape {got.shape}, not {expected.shape}"
    assert (got == expected).all(), f"{name}: {got} is not {expected}"


def example(i):
    def floats(values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    def integers(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def strings(values):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))

    feature = {
        "x": floats([i, i / 3, -i, 1e30]),
        "ids": integers([(i - j) * 2**40 for j in range(i % 4)]),
        "words": strings([b"\xff\x00 word"[j:] * i for j in range(i % 3)]),
        "tags": strings([f"tag {j}".encode() for j in range(i % 5)]),
        "unasked": integers([1, 2, 3]),
        "empty": tf.train.Feature(),
    }
    if i % 2:
        feature["weight"] = floats([i / 7])
    if i % 3:
        feature["scores"] = floats([0.1 * j for j in range(i % 7)])
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def flat_features(path):
    """The features of our Examples by name, flat."""
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        values = {}
        for name, feature in features.items():
            kind = feature.WhichOneof("kind")
            dtype = {"bytes_list": object, "float_list": np.float32, "int64_list": np.int64}[kind]
            values[name] = np.array(list(getattr(feature, kind).value), dtype)
        yield values


def flat(tensor):
    return np.asarray(tensor).reshape(-1)


def check_examples(directory):
    for compression, ending in (("", ""), ("GZIP", ".gz"), ("ZLIB", ".zz")):
        source, target = f"{directory}/in.tfrecord{ending}", f"{directory}/out.tfrecord"
        with tf.io.TFRecordWriter(source, tf.io.TFRecordOptions(compression)) as writer:
            for i in range(COUNT):
                writer.write(example(i))
        rust("examples", source, target)
        ours = list(flat_features(target))
        assert len(ours) == COUNT, f"{len(ours)} Examples, not {COUNT}"
        for i, got in enumerate(ours):
            expected = tf.io.parse_single_example(example(i), SINGLES)
            assert sorted(got) == sorted(SINGLES), got
            for name, value in expected.items():
                same(f"{name} of {i}", got[name], flat(value))


def check_batches(directory):
    source, target = f"{directory}/in.tfrecord", f"{directory}/out.tfrecord"
    rust("batches", source, target)
    rows = [example(i) for i in range(COUNT)]
    batches = [rows[start : start + 4] for start in range(0, COUNT, 4)]
    ours = list(flat_features(target))
    assert len(ours) == len(batches)
    for got, batch in zip(ours, batches):
        for name, value in tf.io.parse_example(batch, LAYOUTS).items():
            if isinstance(value, tf.SparseTensor):
                same(f"{name}/indices", got[f"{name}/indices"], flat(value.indices))
                same(f"{name}/values", got[f"{name}/values"], value.values)
                same(f"{name}/shape", got[f"{name}/shape"], value.dense_shape)
            elif isinstance(value, tf.RaggedTensor):
                same(name, got[name], flat(value.to_tensor()))
            else:
                same(name, got[name], flat(value))


def check_csv(directory):
    source, target = f"{directory}/in.csv", f"{directory}/out.tfrecord"
    lines = [
        "count,name,share,note",
        '7,plain,1.5,"a, b"',
        '-3,"line\nbreak",-2e-3,"say ""hi"""',
        ",defaults,,",
        "9223372036854775807,\u00e4\u00f6,inf,x\r",
        ' 12 ,"last, without end",.5,""',
    ]
    with open(source, "w", newline="") as file:
        file.write("\n".join(lines))
    rust("csv", source, target)
    defaults = [tf.constant([-1], tf.int64), tf.string, tf.constant([0.25]), tf.constant(["none"])]
    expected = list(tf.data.experimental.CsvDataset(source, defaults, header=True).as_numpy_iterator())
    ours = list(flat_features(target))
    assert len(ours) == len(expected) == 5, (len(ours), len(expected))
    for got, values in zip(ours, expected):
        for name, value in zip(["count", "name", "share", "note"], values):
            value = np.array([value], object) if isinstance(value, bytes) else flat(value)
            same(name, got[name], value)


with tempfile.TemporaryDirectory() as directory:
    for check in (check_examples, check_batches, check_csv):
        check(directory)
        print(f"ok {check.__name__}", flush=True)
