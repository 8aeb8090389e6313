"""Prints which attr values each op's CPU kernel takes in the installed TensorFlow, sorted by op.

    python tests/reference/kernels.py > tests/reference/tensorflow_kernels.txt

One line per set of kernels, `#` starts a comment line:

    Name T={float, double} Tindices={int32, int64}

A node runs if at least one line of its op admits all its attrs; an attr that a line
does not name is free. A name alone means: any attrs. An op without a line has no CPU
kernel. Kernels registered for every device count; kernels that are only
found under a label (which a plain graph never gives) do not.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import collections

import tensorflow as tf
from tensorflow.python.framework import kernels

import attr_text


def constraints(kernel):
    """{attr: frozenset of allowed values} of one kernel."""
    result = {}
    for constraint in kernel.constraint:
        values = frozenset(attr_text.allowed(constraint.allowed_values)[1:-1].split(", "))
        result[constraint.name] = result.get(constraint.name, values) & values
    return result


def covers(wide, narrow):
    return all(name in narrow and narrow[name] <= values for name, values in wide.items())


def join(a, b):
    """One kernel equal to `a` or `b`, if they differ in the values of at most one attr."""
    if covers(a, b):
        return a
    if covers(b, a):
        return b
    if a.keys() != b.keys():
        return None
    different = [name for name in a if a[name] != b[name]]
    if len(different) != 1:
        return None
    return {**a, different[0]: a[different[0]] | b[different[0]]}


def merged(kernel_sets):
    """Joins as long as any two can be joined.."""
    done = []
    for kernel in kernel_sets:
        while True:
            for other in done:
                whole = join(kernel, other)
                if whole is not None:
                    done.remove(other)
                    kernel = whole
                    break
            else:
                done.append(kernel)
                break
    return done


def line(name, kernel):
    parts = [name]
    for attr in sorted(kernel):
        parts.append("%s={%s}" % (attr, ", ".join(sorted(kernel[attr]))))
    return " ".join(parts)


def main():
    by_op = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            by_op[kernel.op].append(constraints(kernel))
    print("# Attr values that the CPU kernels of TensorFlow %s take. Made by kernels.py, which says how to read it." % tf.__version__)
    for name in sorted(by_op):
        ordered = sorted(by_op[name], key=lambda kernel: line(name, kernel))
        for text in sorted(line(name, kernel) for kernel in merged(ordered)):
            print(text)


if __name__ == "__main__":
    main()
