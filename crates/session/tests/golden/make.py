"""Makes the golden programs: graphs as TensorFlow's client builds them, and what TensorFlow computes.

    python crates/session/tests/golden/make.py

One JSON file per program beside this script: {"graph": base64 GraphDef, "steps": [{"feeds": {name: base64
TensorProto}, "fetches": [name], "targets": [name], "values": [base64 TensorProto]}]}. All steps run in one session.
"""

import base64
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

HERE = os.path.dirname(os.path.abspath(__file__))


def b64(message):
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode()


def record(name, build, v2):
    (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
    (v1.enable_resource_variables if v2 else v1.disable_resource_variables)()
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(7)
        steps = build()
        with v1.Session() as session:
            out = []
            for step in steps:
                feeds = step.get("feeds", {})
                fetches = step.get("fetches", [])
                targets = step.get("targets", [])
                values, _ = session.run([fetches, targets], feeds)
                out.append({
                    "feeds": {t.name: b64(tf.make_tensor_proto(v, dtype=t.dtype)) for t, v in feeds.items()},
                    "fetches": [t.name for t in fetches],
                    "targets": [op.name for op in targets],
                    "values": [b64(tf.make_tensor_proto(v)) for v in values],
                })
        definition = graph.as_graph_def()
    with open(os.path.join(HERE, name + ("_v2" if v2 else "_v1") + ".json"), "w") as file:
        json.dump({"graph": b64(definition), "steps": out}, file, indent=1)
        file.write("\n")


def while_loop():
    n = v1.placeholder(tf.int32, [], "n")
    i, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + tf.cast(i, tf.float32) * 0.5), [0, 1.0])
    return [{"feeds": {n: value}, "fetches": [i, total]} for value in (0, 1, 7, 100)]


def nested_loops():
    def outer(i, acc):
        _, inner = tf.while_loop(lambda j, a: j < i, lambda j, a: (j + 1, a + j), [0, acc])
        return i + 1, inner
    i, acc = tf.while_loop(lambda i, a: i < 6, outer, [0, 0], parallel_iterations=3)
    return [{"fetches": [i, acc]}]


def conditionals():
    x = v1.placeholder(tf.float32, [None], "x")
    p = v1.placeholder(tf.bool, [], "p")
    y = tf.cond(p, lambda: x * 2.0, lambda: tf.reduce_sum(x) + tf.zeros_like(x))
    k = tf.switch_case(tf.cast(tf.size(x), tf.int32), [lambda: tf.constant(10), lambda: tf.constant(11), lambda: tf.constant(12)])
    loop = tf.cond(p, lambda: tf.while_loop(lambda i, j: i < 5, lambda i, j: (i + 1, j + i), [0, 0])[1], lambda: tf.constant(-1))
    return [{"feeds": {x: [1.0, 2.0], p: value}, "fetches": [y, k, loop]} for value in (True, False)]


def loop_gradient():
    x = v1.placeholder(tf.float32, [3], "x")
    w = tf.constant([0.5, 1.5, -0.25])
    _, y = tf.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.tanh(v * w + x)), [0, x])
    grads = v1.gradients(tf.reduce_sum(y), [x, w])
    return [{"feeds": {x: [0.1, -0.2, 0.3]}, "fetches": [y] + grads}]


def tensor_arrays():
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    source = tf.TensorArray(tf.float32, 4).unstack(x)
    def body(i, state, out):
        state = tf.sigmoid(state + source.read(i))
        return i + 1, state, out.write(i, state * 2.0)
    _, state, out = tf.while_loop(lambda i, *_: i < 4, body, [0, tf.zeros([3]), tf.TensorArray(tf.float32, 4)])
    stacked = out.stack()
    return [{"fetches": [state, stacked, v1.gradients(tf.reduce_sum(stacked), [x])[0]]}]


def functions():
    @tf.function
    def inner(a, b):
        return a * b + 1.0

    @tf.function
    def outer(a, n):
        total = a
        for _ in tf.range(n):
            total = inner(total, a)
        return total, tf.reduce_max(total)

    a = v1.placeholder(tf.float32, [2], "a")
    first, second = outer(a, tf.constant(3))
    return [{"feeds": {a: [1.0, 0.5]}, "fetches": [first, second]}]


def training(optimizer):
    def build():
        rng = np.random.RandomState(3)
        data = rng.randn(16, 4).astype(np.float32)
        labels = rng.randint(0, 3, 16)
        x = v1.placeholder(tf.float32, [None, 4], "x")
        y = v1.placeholder(tf.int64, [None], "y")
        w1 = v1.get_variable("w1", initializer=rng.randn(4, 8).astype(np.float32) * 0.5)
        b1 = v1.get_variable("b1", shape=[8], initializer=v1.zeros_initializer())
        w2 = v1.get_variable("w2", initializer=rng.randn(8, 3).astype(np.float32) * 0.5)
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = v1.train.get_or_create_global_step()
        train = optimizer().minimize(loss, global_step=step)
        state = [tf.identity(step), tf.identity(w2)]
        init = v1.global_variables_initializer()
        feeds = {x: data, y: labels}
        run = {"feeds": feeds, "fetches": [loss], "targets": [train]}
        return [{"targets": [init]}, run, run, run, {"feeds": feeds, "fetches": [loss] + state}]
    return build


def embedding():
    table = v1.get_variable("table", initializer=np.arange(20, dtype=np.float32).reshape(10, 2) * 0.1)
    ids = v1.placeholder(tf.int32, [None], "ids")
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
    train = v1.train.AdagradOptimizer(0.1).minimize(loss)
    init = v1.global_variables_initializer()
    feeds = {ids: [1, 3, 1, 7]}
    return [{"targets": [init]}, {"feeds": feeds, "fetches": [loss], "targets": [train]}, {"feeds": feeds, "fetches": [loss]}]


PROGRAMS = {
    "while_loop": while_loop,
    "nested_loops": nested_loops,
    "conditionals": conditionals,
    "loop_gradient": loop_gradient,
    "tensor_arrays": tensor_arrays,
    "functions": functions,
    "train_sgd": training(lambda: v1.train.GradientDescentOptimizer(0.5)),
    "train_adam": training(lambda: v1.train.AdamOptimizer(0.05)),
    "train_momentum": training(lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)),
    "embedding": embedding,
}

for name, build in PROGRAMS.items():
    for v2 in (False, True):
        record(name, build, v2)
