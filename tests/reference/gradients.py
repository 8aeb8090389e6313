"""Answers with TensorFlow's own gradients: JSON lines in, one JSON line out for each.

A request is {"graph": GRAPH_DEF, "feeds": {"x:0": TENSOR_PROTO}, "ys": ["op"], "grad_ys": ["w"],
"xs": ["x:0"]}; GRAPH_DEF and TENSOR_PROTO are serialized protocol buffers in base64. The answer is
{"gradients": [TENSOR_PROTO or null, ...]}, one for each of xs, null where nothing flows; or {"none": "why"} where
TensorFlow has no gradient, or {"error": "what happened"}. A request {"ops": ["Sin", ...]} is answered with
{"differentiable": ["Sin", ...]}, those of the ops that TensorFlow has a gradient function for. `crates/testkit` asks.
"""

import base64
import json
import os
import sys

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, tensor_pb2
from tensorflow.python.framework import ops

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def tensor(text):
    return tf.make_ndarray(tensor_pb2.TensorProto.FromString(base64.b64decode(text)))


def named(graph, name):
    return graph.get_tensor_by_name(name if ":" in name else name + ":0")


def has_gradient(op):
    try:
        return ops.gradient_registry.lookup(op) is not None
    except LookupError:
        return False


def answer(request):
    if "ops" in request:
        return {"differentiable": [op for op in request["ops"] if has_gradient(op)]}
    graph = graph_pb2.GraphDef.FromString(base64.b64decode(request["graph"]))
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as built:
        tf1.import_graph_def(graph, name="")
        ys, grad_ys, xs = (
            [named(built, name) for name in request[key]] for key in ("ys", "grad_ys", "xs")
        )
        try:
            found = tf1.gradients(ys, xs, grad_ys)
        except LookupError as error:
            return {"none": str(error)}
        found = [None if grad is None else tf.convert_to_tensor(grad) for grad in found]
        feeds = {name: tensor(text) for name, text in request["feeds"].items()}
        with tf1.Session(config=config) as session:
            values = session.run([grad for grad in found if grad is not None], feeds)
    protos = [tf1.make_tensor_proto(value).SerializeToString() for value in values]
    texts = iter(base64.b64encode(proto).decode() for proto in protos)
    return {"gradients": [None if grad is None else next(texts) for grad in found]}


def answer_all(lines, out):
    for line in lines:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # One graph must not hide the others.
            reply = {"error": "%s: %s" % (type(error).__name__, error)}
        out.write(json.dumps(reply) + "\n")
        out.flush()


def main():
    """Answers in a child; a graph that ends it is answered for, and the ones after it have a new child."""
    lines = sys.stdin.readlines()
    while lines:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            answer_all(lines, os.fdopen(writing, "w"))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            done = 0
            for line in answers:
                print(line, end="", flush=True)
                done += 1
        os.waitpid(child, 0)
        lines = lines[done:]
        if lines:
            print(json.dumps({"error": "TensorFlow's process ended"}), flush=True)
            lines = lines[1:]


if __name__ == "__main__":
    main()
