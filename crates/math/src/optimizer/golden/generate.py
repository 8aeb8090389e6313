"""Writes optimizer.txt: what TensorFlow's ResourceApply… and ResourceSparseApply… kernels make of small inputs, to stdout.

A line is `op dtype = var | slot | …` after two updates. Weights are [3, 3]; element k of tensor number n is x(k + 20 n), slots are
made positive; sparse gradients are for rows 2, 0, 2.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ops = tf.raw_ops


def x(first, positive=False):
    values = np.array([((k * 37 + 11) % 101 - 50) / 50 for k in range(first, first + 9)])
    return (np.abs(values) + 0.1 if positive else values).reshape(3, 3)


LR, L1, L2 = dict(lr=0.25), dict(l1=0.0625), dict(l2=0.5)
NO_L1 = dict(l1=0.0)
RHO = dict(rho=0.75, epsilon=0.001)
RMS = dict(momentum=0.5, **LR, **RHO)
ADAM = dict(beta1_power=0.5, beta2_power=0.25, beta1=0.75, beta2=0.875, epsilon=0.01, **LR)
MOMENTUM = dict(momentum=0.5, **LR)
DA = dict(global_step=3, **LR, **L2)
FTRL = dict(lr_power=-0.5, **LR, **L1, **L2)
POWER = dict(FTRL, lr_power=-0.75)
SHRINK = dict(l2_shrinkage=0.125)

CASES = [
    ("gradient_descent", "GradientDescent", [], dict(alpha=0.25), {}, False),
    ("proximal_gradient_descent", "ProximalGradientDescent", [], dict(alpha=0.25, **L1, **L2), {}, True),
    ("proximal_gradient_descent_l2", "ProximalGradientDescent", [], dict(alpha=0.25, **NO_L1, **L2), {}, True),
    ("momentum", "Momentum", ["accum"], MOMENTUM, {}, True),
    ("momentum_nesterov", "Momentum", ["accum"], MOMENTUM, dict(use_nesterov=True), True),
    ("keras_momentum", "KerasMomentum", ["accum"], MOMENTUM, {}, True),
    ("keras_momentum_nesterov", "KerasMomentum", ["accum"], MOMENTUM, dict(use_nesterov=True), True),
    ("adagrad", "Adagrad", ["accum"], LR, {}, True),
    ("adagrad_still", "Adagrad", ["accum"], LR, dict(update_slots=False), True),
    ("adagrad_v2", "AdagradV2", ["accum"], dict(epsilon=0.125, **LR), {}, True),
    ("proximal_adagrad", "ProximalAdagrad", ["accum"], dict(**LR, **L1, **L2), {}, True),
    ("proximal_adagrad_l2", "ProximalAdagrad", ["accum"], dict(**LR, **NO_L1, **L2), {}, True),
    ("adagrad_da", "AdagradDA", ["gradient_accumulator", "gradient_squared_accumulator"], dict(**DA, **L1), {}, True),
    ("adagrad_da_l2", "AdagradDA", ["gradient_accumulator", "gradient_squared_accumulator"], dict(**DA, **NO_L1), {}, True),
    ("adadelta", "Adadelta", ["accum", "accum_update"], dict(**LR, **RHO), {}, True),
    ("rms_prop", "RMSProp", ["ms", "mom"], RMS, {}, True),
    ("centered_rms_prop", "CenteredRMSProp", ["mg", "ms", "mom"], dict(RMS, epsilon=4.0), {}, True),
    ("add_sign", "AddSign", ["m"], dict(alpha=1.0, sign_decay=0.5, beta=0.75, **LR), {}, False),
    ("power_sign", "PowerSign", ["m"], dict(logbase=0.5, sign_decay=0.75, beta=0.75, **LR), {}, False),
    ("adam", "Adam", ["m", "v"], ADAM, {}, False),
    ("adam_nesterov", "Adam", ["m", "v"], ADAM, dict(use_nesterov=True), False),
    ("adam_with_amsgrad", "AdamWithAmsgrad", ["m", "v", "vhat"], ADAM, {}, False),
    ("ada_max", "AdaMax", ["m", "v"], {k: v for k, v in ADAM.items() if k != "beta2_power"}, {}, False),
    ("ftrl", "Ftrl", ["accum", "linear"], FTRL, {}, True),
    ("ftrl_power", "Ftrl", ["accum", "linear"], POWER, {}, True),
    ("ftrl_by_lr", "Ftrl", ["accum", "linear"], FTRL, dict(multiply_linear_by_lr=True), True),
    ("ftrl_v2", "FtrlV2", ["accum", "linear"], dict(**FTRL, **SHRINK), {}, True),
    ("ftrl_v2_power_by_lr", "FtrlV2", ["accum", "linear"], dict(**POWER, **SHRINK), dict(multiply_linear_by_lr=True), True),
]


def run(name, op, slots, scalars, attrs, dtype, sparse):
    var = tf.Variable(x(0), dtype=dtype)
    slot_vars = [tf.Variable(x(20 * (i + 2), positive=True), dtype=dtype) for i in range(len(slots))]
    grad = tf.constant(x(20), dtype)
    inputs = {key: tf.constant(value, tf.int64 if key == "global_step" else dtype) for key, value in scalars.items()}
    inputs.update({key: slot.handle for key, slot in zip(slots, slot_vars)})
    inputs["delta" if "GradientDescent" in op and not sparse else "grad"] = grad
    if sparse:
        inputs["indices"] = tf.constant([2, 0, 2])
    kernel = getattr(ops, ("ResourceSparseApply" if sparse else "ResourceApply") + op)
    attrs = dict(attrs)
    for _ in range(2):
        kernel(var=var.handle, **inputs, **attrs)
    tensors = [" ".join(f"{v:.10g}" for v in t.numpy().astype(np.float64).ravel()) for t in [var] + slot_vars]
    print(("sparse_" if sparse else "") + name, dtype, "=", " | ".join(tensors))


for name, op, slots, scalars, attrs, has_sparse in CASES:
    for dtype in ["float32", "float64", "half", "bfloat16"]:
        for sparse in [False, True] if has_sparse else [False]:
            try:
                with tf.device("cpu"):
                    run(name, op, slots, scalars, attrs, dtype, sparse)
            except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):
                pass  # no kernel for this dtype
            except tf.errors.UnimplementedError:
                pass
