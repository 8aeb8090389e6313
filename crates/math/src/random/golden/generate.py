"""Writes random.txt: digests of what TensorFlow's CPU kernels draw. Run with a Python that has tensorflow; output goes to stdout.

A line is `op dtype count arguments = digest`, the digest being 64-bit FNV-1a over the little-endian bytes of the output.
Stateful ops run twice in one session; the second digest follows the first.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
ops = tf.raw_ops


def fnv(array):
    h = 0xCBF29CE484222325
    for byte in np.ascontiguousarray(array).tobytes():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return f"{h:016x}"


def emit(op, dtype, count, arguments, digests):
    print(op, dtype, count, *arguments, "=", *digests)


FLOATS = ["half", "bfloat16", "float32", "float64"]
SEEDS = [(1, 2), (-5, 7), (87654321, 42)]
COUNTS = [1, 7, 1001]


def twice(session, tensor):
    return [fnv(session.run(tensor)) for _ in range(2)]


def stateful(session):
    for dtype in FLOATS:
        for seed, seed2 in SEEDS:
            for count in COUNTS:
                arguments = dict(shape=[count], dtype=dtype, seed=seed, seed2=seed2)
                for name, op in [
                    ("uniform", ops.RandomUniform),
                    ("normal", ops.RandomStandardNormal),
                    ("truncated", ops.TruncatedNormal),
                ]:
                    emit(name, dtype, count, (seed, seed2), twice(session, op(**arguments)))
    for dtype in ["int32", "int64"]:
        top = 2**31 - 1 if dtype == "int32" else 2**63 - 1
        for low, high in [(0, 10), (-3, 1000), (-top - 1, top)]:
            for count in COUNTS:
                draw = ops.RandomUniformInt(
                    shape=[count],
                    minval=tf.constant(low, dtype),
                    maxval=tf.constant(high, dtype),
                    seed=3,
                    seed2=4,
                )
                emit("uniform_int", dtype, count, (3, 4, low, high), twice(session, draw))


def stateless(session):
    for seed in [(1, 2), (-5, 7), (2**40 + 1, -(2**50))]:
        seed_t = tf.constant(seed, tf.int64)
        key, counter = session.run(ops.StatelessRandomGetKeyCounter(seed=seed_t))
        emit("key_counter", "uint64", 3, seed, [fnv(np.concatenate([key, counter]))])
        for dtype in FLOATS:
            for count in COUNTS:
                for name, op, op_v2 in [
                    ("stateless_uniform", ops.StatelessRandomUniform, ops.StatelessRandomUniformV2),
                    ("stateless_normal", ops.StatelessRandomNormal, ops.StatelessRandomNormalV2),
                    ("stateless_truncated", ops.StatelessTruncatedNormal, ops.StatelessTruncatedNormalV2),
                ]:
                    v1 = fnv(session.run(op(shape=[count], seed=seed_t, dtype=dtype)))
                    v2 = op_v2(shape=[count], key=key, counter=counter, alg=1, dtype=dtype)
                    assert v1 == fnv(session.run(v2))
                    emit(name, dtype, count, seed, [v1])
        for dtype in ["int32", "uint32", "int64", "uint64"]:
            draw = ops.StatelessRandomUniformFullInt(shape=[11], seed=seed_t, dtype=dtype)
            emit("stateless_full_int", dtype, 11, seed, [fnv(session.run(draw))])


def derived(session):
    for count in [1, 2, 5, 1000]:
        draw = ops.RandomShuffle(value=tf.range(count, dtype=tf.int64), seed=5, seed2=6)
        emit("shuffle", "int64", count, (5, 6), twice(session, draw))
    logits = np.array([[0.1, -1.0, 2.5, -np.inf], [1.0, 1.0, 1.0, 1.0], [-3.0, 0.0, np.inf, 0.5]])
    for dtype in FLOATS:
        for count in [1, 4, 33]:
            draw = ops.Multinomial(
                logits=tf.constant(logits, dtype), num_samples=count, seed=7, seed2=8, output_dtype=tf.int64
            )
            emit("multinomial", dtype, count, (7, 8), twice(session, draw))
    for dtype in ["half", "float32", "float64"]:
        for count in [1, 50]:
            alpha = tf.constant([0.3, 1.0, 2.5, 40.0], dtype)
            draw = ops.RandomGamma(shape=[count], alpha=alpha, seed=9, seed2=10)
            emit("gamma", dtype, count, (9, 10), twice(session, draw))
            rate = tf.constant([0.5, 4.0, 12.0, 300.0], dtype)
            draw = ops.RandomPoissonV2(shape=[count], rate=rate, seed=11, seed2=12, dtype=dtype)
            emit("poisson", dtype, count, (11, 12), twice(session, draw))


with tf1.Session() as session:
    stateful(session)
    stateless(session)
    derived(session)
