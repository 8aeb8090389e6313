"""Answers with TensorFlow's gradients of a training graph that the Rust client wrote: JSON lines in, one out for each.

A request is {"graph": PATH, "loss": "Mean:0", "clip": null, "feeds": {"x:0": TENSOR}} where PATH is a MetaGraphDef,
`clip` the global norm that gradients are clipped to, if any, and a TENSOR is
{"dtype": "float32", "shape": [2], "values": [1, 2]}. The variables have their initial values. The answer has one
entry for each trainable variable:

    {"variable": "w", "gradient": "gradients/MatMul_1:0", "indices": null, "theirs": [...], "ours": [...]}

The gradient, and the rows it is for if it is sparse, are the tensors that the graph hands to its optimizer; `theirs` is
what tf.gradients of the same loss gives, `ours` what the tensor of the graph gives in TensorFlow, both dense and
flattened. `crates/tensorfleet/tests/it/gradients.rs` asks.
"""

import json
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

# What optimizers and accumulators call a gradient.
GRADIENTS = ("grad", "delta", "gradient")


def array(tensor):
    return np.array(tensor["values"], tensor["dtype"]).reshape(tensor["shape"])


def inputs(op):
    return {arg.name: tensor for arg, tensor in zip(op.op_def.input_arg, op.inputs)}


def variable_of(op):
    """The name of the variable that a gradient goes to: the accumulator's, or the one that is updated."""
    target = op.inputs[0].op
    if target.type == "ResourceConditionalAccumulator":
        return target.get_attr("shared_name").decode().removesuffix(":0/grad_accum")
    return target.name


def gradients_in(graph):
    """The gradient and the rows that the graph computed for each variable."""
    found = {}
    for op in graph.get_operations():
        named = inputs(op)
        gradient = next((named[name] for name in GRADIENTS if name in named), None)
        # What accumulators give is the mean over workers of what went in.
        if "Apply" not in op.type or "TakeGradient" in gradient.op.type:
            continue
        found[variable_of(op)] = gradient, named.get("indices")
    return found


def dense(gradient, indices, shape):
    if indices is None:
        return gradient
    summed = np.zeros(shape, np.float32)
    np.add.at(summed, indices, gradient)
    return summed


def answer(request):
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(request["graph"], clear_devices=True)
        variables = tf1.trainable_variables()
        ours = gradients_in(graph)
        theirs = [tf.convert_to_tensor(g) for g in tf1.gradients(graph.get_tensor_by_name(request["loss"]), variables)]
        if request["clip"]:
            theirs, _ = tf.clip_by_global_norm(theirs, request["clip"])
        feeds = {name: array(tensor) for name, tensor in request["feeds"].items()}
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            answers = []
            for variable, tensor in zip(variables, theirs):
                gradient, indices = ours[variable.op.name]
                fetches = [tensor, gradient] + ([] if indices is None else [indices])
                tensor, value, *rows = session.run(fetches, feeds)
                value = dense(value, rows[0] if rows else None, tensor.shape)
                answers.append(
                    {
                        "variable": variable.op.name,
                        "gradient": gradient.name,
                        "indices": None if indices is None else indices.name,
                        "theirs": tensor.flatten().tolist(),
                        "ours": value.flatten().tolist(),
                    }
                )
            return answers


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
