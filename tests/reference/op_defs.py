"""Prints every op signature of the installed TensorFlow, sorted by name.

    python tests/reference/op_defs.py > tests/reference/tensorflow_ops.txt

One block per op, blocks parted by an empty line, `#` starts a comment line:

    op Name
    in x: T
    out y: T
    attr T: {half, float} = DT_FLOAT
    flags stateful commutative aggregate uninitialized distributed
    deprecated 27 what to use instead

`in`, `out` and `attr` lines are TensorFlow's attr language (see attr_text.py) in
TensorFlow's order. `flags` and `deprecated` (graph version, advice) appear only where set.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

import attr_text

FLAGS = (
    ("stateful", "is_stateful"),
    ("commutative", "is_commutative"),
    ("aggregate", "is_aggregate"),
    ("uninitialized", "allows_uninitialized_input"),
    ("distributed", "is_distributed_communication"),
)


def all_ops():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(ops.op, key=lambda op: op.name)


def block(op):
    lines = ["op " + op.name]
    lines += ["in " + attr_text.arg(arg) for arg in op.input_arg]
    lines += ["out " + attr_text.arg(arg) for arg in op.output_arg]
    lines += ["attr " + attr_text.attr(attr) for attr in op.attr]
    flags = [name for name, field in FLAGS if getattr(op, field)]
    if flags:
        lines.append("flags " + " ".join(flags))
    if op.HasField("deprecation"):
        advice = " ".join(op.deprecation.explanation.split())
        lines.append(("deprecated %d %s" % (op.deprecation.version, advice)).rstrip())
    return "\n".join(lines)


def main():
    print("# Every op signature of TensorFlow %s. Made by op_defs.py, which says how to read it." % tf.__version__)
    for op in all_ops():
        print()
        print(block(op))


if __name__ == "__main__":
    main()
