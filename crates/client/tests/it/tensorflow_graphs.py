"""TensorFlow's half of `tensorflow_graphs.rs`: runs graphs that the Rust client wrote, and writes one for it.

    python tensorflow_graphs.py run DIR     imports and runs each NAME.meta of DIR as NAME.json tells, compares the results
    python tensorflow_graphs.py write DIR   writes DIR/written.meta and what it must give
"""
import glob
import json
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def run(directory):
    for path in sorted(glob.glob(f"{directory}/*.meta")):
        with open(path.replace(".meta", ".json")) as f:
            told = json.load(f)
        with open(path, "rb") as f:
            meta = tf1.MetaGraphDef.FromString(f.read())
        for load in (lambda: tf1.train.import_meta_graph(meta), lambda: tf1.import_graph_def(meta.graph_def, name="")):
            with tf1.Graph().as_default() as graph:
                load()
                check(path, graph, told)
        check_variables(path, meta)


def check(path, graph, told):
    with tf1.Session(graph=graph) as session:
        for op in told["before"]:
            session.run(op)
        feeds = {feed["name"]: np.reshape(np.float32(feed["values"]), feed["dims"]) for feed in told["feeds"]}
        got = session.run([fetch["name"] for fetch in told["fetches"]], feeds)
        for fetch, value in zip(told["fetches"], got):
            np.testing.assert_allclose(
                np.ravel(value), fetch["values"], rtol=1e-4, atol=1e-5, err_msg=f"{path}: {fetch['name']}"
            )


def check_variables(path, meta):
    """The collections hold variables that TensorFlow goes on with: it takes gradients and trains."""
    with tf1.Graph().as_default() as graph:
        tf1.train.import_meta_graph(meta)
        wanted = len(meta.collection_def["variables"].bytes_list.value)
        variables = tf1.global_variables()
        assert len(variables) == wanted, f"{path}: {variables}"
        for variable in variables:
            assert variable.op.type == "VarHandleOp" and variable.trainable, variable
        with tf1.Session(graph=graph) as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(tf1.report_uninitialized_variables()).size == 0


def write(directory):
    with tf1.Graph().as_default() as graph:
        tf1.enable_control_flow_v2()
        w = tf1.get_variable("w", [2, 2], initializer=tf1.constant_initializer([0.5, -0.2, 0.1, 0.3]), use_resource=True)
        count = tf1.get_variable("count", [], trainable=False, initializer=tf1.zeros_initializer(), use_resource=False)

        def body(i, x):
            x = tf.tanh(tf.matmul(x, w) + count)
            return i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: x * w[0, 0], lambda: tf.square(x))

        i, x = tf1.while_loop(lambda i, x: i < 3, body, (tf.constant(0), tf.constant([[1.0, 2.0]])))
        y = tf.reduce_sum(x)
        meta = tf1.train.export_meta_graph(f"{directory}/written.meta")
        (gradient,) = tf1.gradients(y, [w])
        with tf1.Session(graph=graph) as session:
            session.run(tf1.global_variables_initializer())
            value, gradient = session.run([y, gradient])
    told = {"y": y.name, "value": [float(value)], "gradient": np.ravel(gradient).astype(float).tolist()}
    with open(f"{directory}/written.json", "w") as f:
        json.dump(told, f)


if __name__ == "__main__":
    {"run": run, "write": write}[sys.argv[1]](sys.argv[2])
