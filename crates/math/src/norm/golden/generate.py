"""Writes norm.txt: what FusedBatchNormV3, LRN and their gradients make of small inputs, to stdout.

A line is `op = output | …`; element k of the tensor that begins at n is ((37 (k + n) + 11) mod 101 - 50) / 50.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ops = tf.raw_ops


def x(first, shape):
    count = int(np.prod(shape))
    values = [((k * 37 + 11) % 101 - 50) / 50 for k in range(first, first + count)]
    return tf.constant(np.array(values).reshape(shape), tf.float32)


def emit(name, tensors):
    print(name, "=", " | ".join(" ".join(f"{v:.8g}" for v in np.asarray(t, np.float64).ravel()) for t in tensors))


X, DY = x(0, [2, 2, 3, 2]), x(50, [2, 2, 3, 2])
SCALE, OFFSET = tf.constant([1.5, -0.5]), tf.constant([0.25, 1.0])
MEAN, VARIANCE = tf.constant([0.1, -0.2]), tf.constant([0.5, 2.0])
NONE = tf.zeros([0])

for name, training, factor in [("train", True, 1.0), ("average", True, 0.25), ("infer", False, 1.0)]:
    given = (NONE, NONE) if name == "train" else (MEAN, VARIANCE)
    out = ops.FusedBatchNormV3(
        x=X, scale=SCALE, offset=OFFSET, mean=given[0], variance=given[1],
        epsilon=0.01, exponential_avg_factor=factor, is_training=training,
    )
    emit(name, out[:5] if training else out[:3])
    saved = (out[3], out[4]) if training else (MEAN, VARIANCE)
    grads = ops.FusedBatchNormGradV3(
        y_backprop=DY, x=X, scale=SCALE, reserve_space_1=saved[0], reserve_space_2=saved[1],
        reserve_space_3=NONE, epsilon=0.01, is_training=training,
    )
    emit(name + "_grad", grads[:3])

X, DY = x(0, [1, 1, 2, 7]), x(50, [1, 1, 2, 7])
for beta in [0.75, 0.5, 1.0]:
    attrs = dict(depth_radius=2, bias=1.5, alpha=0.5, beta=beta)
    y = ops.LRN(input=X, **attrs)
    emit(f"lrn_{beta}", [y, ops.LRNGrad(input_grads=DY, input_image=X, output_image=y, **attrs)])
