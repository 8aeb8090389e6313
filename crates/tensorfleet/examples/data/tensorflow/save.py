"""The twin of restore_tensorflow.rs in TensorFlow: goes on from the newest checkpoint of a directory, and saves there.

    python save.py DIR [STEPS]
"""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

WEIGHTS = np.float32([[1.0], [-2.0], [3.0], [0.5]])


def noise(indices):
    """Numbers in [-1, 1) that look random, the same as in Rust."""
    with np.errstate(over="ignore"):
        bits = (np.uint64(1) + indices.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return (bits >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)


def line(batch, size):
    x = noise((np.uint64(batch) << np.uint64(20)) + np.arange(size * 4, dtype=np.uint64)).reshape(size, 4)
    return x, x @ WEIGHTS + np.float32(0.25)


def train(directory, steps):
    """Makes so many steps; the losses."""
    losses = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        y = tf.placeholder(tf.float32, [None, 1], name="y")
        w = tf.Variable(tf.zeros([4, 1]), name="w", use_resource=True)
        b = tf.Variable(tf.zeros([1]), name="b", use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
        update = optimizer.minimize(loss, global_step=step)
        hooks = [tf.train.StopAtStepHook(num_steps=steps)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=directory, hooks=hooks) as session:
            while not session.should_stop():
                batch = session.run_step_fn(lambda step_context: step_context.session.run(step))
                xs, ys = line(batch, 32)
                losses.append(session.run([loss, update], {x: xs, y: ys})[0])
    return losses


if __name__ == "__main__":
    for loss in train(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        print("loss", loss)
