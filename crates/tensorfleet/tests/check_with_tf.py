"""Trains in turns with real TensorFlow: each goes on from the checkpoint of the other, and TensorFlow reads all files.

    python crates/tensorfleet/tests/check_with_tf.py

Needs tensorflow and cargo; writes to a temporary directory; exits with 1 at the first difference.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "examples", "data", "tensorflow"))
import save

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
BUILT = os.environ.get("TENSORFLEET_EXAMPLES")  # where `cargo xtask test` has built them
CARGO = ["cargo", "run", "--quiet", "--package", "tensorfleet", "--example", "restore_tensorflow", "--"]
EXAMPLE = [os.path.join(BUILT, "restore_tensorflow")] if BUILT else CARGO
NAMES = ["b", "b/Momentum", "global_step", "w", "w/Momentum"]


def rust(directory, steps):
    """Makes so many steps; the losses."""
    args = [*EXAMPLE, "--dir", directory, "--steps", str(steps), "--log_steps", "1"]
    said = subprocess.run(args, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(line.split()[-1]) for line in said.splitlines() if " loss " in line]


def close(what, got, expected):
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-5), f"{what}: {got} is not {expected}"


def values(prefix):
    reader = tf.train.load_checkpoint(prefix)
    assert sorted(reader.get_variable_to_shape_map()) == NAMES, reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in NAMES}


def check_training(directory):
    """From 0 to 5 by TensorFlow, to 25 by ours and by both beside, to 40 by TensorFlow, to 50 by ours."""
    save.train(directory, 5)
    beside = f"{directory}-beside"
    shutil.copytree(directory, beside)
    state = f"{beside}/checkpoint"
    with open(state) as file:
        text = file.read().replace(directory, beside)
    with open(state, "w") as file:
        file.write(text)
    ours, theirs = rust(directory, 20), save.train(beside, 20)
    close("losses from TensorFlow's checkpoint", ours, theirs)
    newest = tf.train.latest_checkpoint(directory)
    assert newest == f"{directory}/model.ckpt-25", newest
    by_ours, by_theirs = values(newest), values(f"{beside}/model.ckpt-25")
    for name in NAMES:
        close(name, by_ours[name], by_theirs[name])

    theirs = save.train(directory, 15)
    assert theirs[0] < ours[-1] * 1.5 and theirs[-1] < theirs[0], f"{ours} then {theirs}"
    ours = rust(directory, 10)
    assert ours[-1] < theirs[-1], f"{theirs} then {ours}"
    kept = tf.train.get_checkpoint_state(directory)
    assert kept.model_checkpoint_path == f"{directory}/model.ckpt-50", kept
    for path in kept.all_model_checkpoint_paths:
        values(path)
    return beside


def check_saver(directory):
    """A Saver over variables of the same names."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [4, 1], use_resource=True)
        b = tf.get_variable("b", [1], use_resource=True)
        tf.train.Saver([w, b]).restore(session, tf.train.latest_checkpoint(directory))
        expected = values(f"{directory}/model.ckpt-50")
        close("w by a saver", session.run(w), expected["w"])
        close("b by a saver", session.run(b), expected["b"])


def check_graph(directory):
    """graph.pbtxt and the meta graph are whole programs."""
    graph = tf.GraphDef()
    with open(f"{directory}/graph.pbtxt") as file:
        text_format.Parse(file.read(), graph)
    with tf.Graph().as_default():
        tf.import_graph_def(graph, name="")
    prefix = f"{directory}/model.ckpt-50"
    with tf.Graph().as_default() as imported, tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{prefix}.meta")
        saver.restore(session, prefix)
        step = imported.get_tensor_by_name("global_step/Read/ReadVariableOp:0")
        assert session.run(step) == 50, session.run(step)
        names = sorted(variable.op.name for variable in tf.global_variables())
        assert names == NAMES, names
        assert [v.op.name for v in tf.trainable_variables()] == ["w", "b"], tf.trainable_variables()
        xs, ys = save.line(50, 32)
        session.run("Momentum", {"x:0": xs, "y:0": ys})
        assert session.run(step) == 51, "the imported program does not train"


def check_events(directory):
    tags, steps, graphs, sessions = set(), [], 0, 0
    for path in sorted(glob.glob(f"{directory}/events.out.tfevents.*")):
        for event in tf.train.summary_iterator(path):
            steps.append(event.step)
            graphs += bool(event.graph_def or event.meta_graph_def)
            sessions += event.HasField("session_log")
            tags.update(value.tag for value in event.summary.value)
    assert "loss" in tags, tags
    assert "global_step/sec" in tags, tags
    assert graphs and sessions and max(steps) == 50, (graphs, sessions, max(steps))
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print("SKIPPED: tensorboard is not there")
        return
    reader = EventAccumulator(directory)
    reader.Reload()
    assert "loss" in reader.Tags()["scalars"], reader.Tags()


with tempfile.TemporaryDirectory() as base:
    directory = f"{base}/model"
    check_training(directory)
    check_saver(directory)
    check_graph(directory)
    check_events(directory)
print("TensorFlow and TensorFleet train in turns")
