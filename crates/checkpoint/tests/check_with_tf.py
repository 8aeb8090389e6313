"""Lets real TensorFlow read what the Rust code wrote, and the Rust code what TensorFlow wrote.

    python crates/checkpoint/tests/check_with_tf.py

Needs tensorflow and cargo; writes to a temporary directory; exits with 1 at the first difference.
"""
import filecmp
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ops = tf.raw_ops
BUILT = os.environ.get("TENSORFLEET_EXAMPLES")  # where `cargo xtask test` has built them
CARGO = ["cargo", "run", "--quiet", "--package", "tensorfleet-checkpoint", "--example", "tf_files", "--"]
EXAMPLE = [os.path.join(BUILT, "tf_files")] if BUILT else CARGO
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def rust(*args):
    subprocess.run([*EXAMPLE, *args], cwd=ROOT, check=True)


def same(name, got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{name}: shape {got.shape}, not {expected.shape}"
    assert got.dtype == expected.dtype, f"{name}: dtype {got.dtype}, not {expected.dtype}"
    assert (got == expected).all(), f"{name}: {got} is not {expected}"


def numbers(shape, dtype):
    count = int(np.prod(shape))
    values = np.arange(count) % 100
    if dtype == np.bool_:
        values = values % 2
    values = values.astype(dtype)
    return (values - 1j if np.iscomplexobj(values) else values).astype(dtype).reshape(shape)


def check_whole(directory):
    reader = tf.train.load_checkpoint(f"{directory}/whole")
    names = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
             "uint32", "uint64", "bool", "complex64", "complex128"]
    prefix = f"{directory}/whole"
    for name in names:
        dtype = tf.as_dtype(name)
        (value,) = ops.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype])
        same(name, value, numbers([3, 4], dtype.as_numpy_dtype))
    strings = np.array([b"ab" * 30 * i for i in range(12)], dtype=object).reshape(3, 4)
    same("string", reader.get_tensor("string"), strings)
    same("scalar", reader.get_tensor("scalar"), np.int64(42))
    same("empty", reader.get_tensor("empty"), np.zeros([0, 3], np.float32))
    same("large", reader.get_tensor("large"), numbers([1500, 1001], np.float32))
    (part,) = ops.RestoreV2(prefix=prefix, tensor_names=["large"], shape_and_slices=["1500 1001 7,3:1000,1"], dtypes=[tf.float32])
    same("part of large", part, numbers([1500, 1001], np.float32)[7:10, 1000:])
    (handle,) = ops.RestoreV2(prefix=prefix, tensor_names=["list"], shape_and_slices=[""], dtypes=[tf.variant])
    stacked = ops.TensorListStack(input_handle=handle, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32)
    same("list", stacked, np.float32([1.5, 2.5]))
    assert tf.train.latest_checkpoint(directory) == prefix


def check_sharded(directory):
    table = numbers([9, 4], np.float32)
    parts = [f"{directory}/unmerged_temp/part-{i:05}-of-00003" for i in range(3)]
    ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=f"{directory}/by_tf", delete_old_dirs=True)
    for prefix in (f"{directory}/merged", f"{directory}/by_tf"):
        reader = tf.train.load_checkpoint(prefix)
        same("table", reader.get_tensor("table"), table)
        for number, name in enumerate("abc"):
            same(name, reader.get_tensor(name), np.int64(number))
        (rows,) = ops.RestoreV2(prefix=prefix, tensor_names=["table"], shape_and_slices=["9 4 1,6:1,2"], dtypes=[tf.float32])
        same("rows", rows, table[1:7, 1:3])
    assert not os.path.exists(f"{directory}/merged_temp"), "merge leaves its directory"
    for suffix in ("index", *(f"data-{i:05}-of-00003" for i in range(3))):
        assert filecmp.cmp(f"{directory}/merged.{suffix}", f"{directory}/by_tf.{suffix}", shallow=False), suffix


def check_many(directory):
    """An index of several blocks, both ways."""
    reader = tf.train.load_checkpoint(f"{directory}/many")
    assert len(reader.get_variable_to_shape_map()) == 20_000
    for i in (0, 1, 9_999, 10_000, 19_999):
        same("many", reader.get_tensor(f"model/layer_{i}/kernel"), np.int32([i, i + 1]))
    names = [f"model/layer_{i}/kernel" for i in range(20_000)]
    tensors = [tf.constant([i, i + 1]) for i in range(20_000)]
    ops.SaveV2(prefix=f"{directory}/many_tf", tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    rust("rewrite", f"{directory}/many_tf", f"{directory}/many_again")
    for suffix in ("index", "data-00000-of-00001"):
        for ours in ("many", "many_again"):
            assert filecmp.cmp(f"{directory}/{ours}.{suffix}", f"{directory}/many_tf.{suffix}", shallow=False), (ours, suffix)


def check_large(directory):
    value = np.random.default_rng(7).standard_normal([3000, 2000]).astype(np.float32)
    strings = [os.urandom(i % 700) for i in range(3000)]
    prefix = f"{directory}/large_tf"
    ops.SaveV2(prefix=prefix, tensor_names=["x", "s"], shape_and_slices=["", ""], tensors=[value, strings])
    rust("rewrite", prefix, f"{directory}/large_again")
    for suffix in ("index", "data-00000-of-00001"):
        assert filecmp.cmp(f"{directory}/large_again.{suffix}", f"{prefix}.{suffix}", shallow=False), suffix


def check_objects(directory):
    """A TensorFlow 2 object-based checkpoint: string entry, nested names."""
    model = tf.Module()
    model.v = tf.Variable(numbers([5, 3], np.float32))
    model.part = tf.Module()
    model.part.w = tf.Variable(numbers([4], np.int64))
    path = tf.train.Checkpoint(model=model).write(f"{directory}/objects_tf")
    rust("rewrite", path, f"{directory}/objects")
    model.v.assign(tf.zeros_like(model.v))
    tf.train.Checkpoint(model=model).read(f"{directory}/objects").assert_consumed()
    same("v", model.v, numbers([5, 3], np.float32))


def check_records(directory):
    records = [bytes(r) for r in tf.data.TFRecordDataset(f"{directory}/records").as_numpy_iterator()]
    assert records == [bytes([i % 256]) * (i * 7 % 1500) for i in range(1000)]
    path = f"{directory}/events/events.out.tfevents.1700000000.host"
    events = list(tf.compat.v1.train.summary_iterator(path))
    assert events[0].file_version == "brain.Event:2"
    steps = [(e.step, e.summary.value[0].tag, e.summary.value[0].simple_value) for e in events[1:]]
    assert steps == [(i, "loss", i / 2) for i in range(25)]


with tempfile.TemporaryDirectory() as directory:
    rust("write", directory)
    for check in (check_whole, check_sharded, check_many, check_large, check_objects, check_records):
        check(directory)
        print(f"ok {check.__name__}", flush=True)
