"""What all interop programs share: flags, checks, and running a program part by part.

A program is a list of functions marked `@part`. Each runs in a fresh default graph; a part that fails
is reported and the next one runs, so one run tells everything that differs.
"""
import argparse
import faulthandler
import os
import re
import sys
import tempfile
import threading
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
errors = tf.errors

PARTS = []
# A part that takes longer hangs: the stacks of all threads are printed and the program ends.
PART_LIMIT = 40


def part(function):
    PARTS.append(function)
    return function


def part_beyond(function):
    """A part that TensorFlow's own server does not pass."""
    function.beyond = True
    return part(function)


def main(doc):
    """Runs the parts of the calling program and exits: 0 and `PASS`, or 1 and what differs."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--target", required=True, help="grpc://host:port of the server")
    parser.add_argument("--resource", action="store_true", help="resource variables and control flow v2")
    parser.add_argument("--workdir", default="", help="directory the server can write to as well")
    parser.add_argument("--pid", type=int, default=0, help="process of the server, if it runs on this machine")
    parser.add_argument("--part", default="", help="only the parts whose name contains this")
    parser.add_argument("--reference", action="store_true", help="the server is TensorFlow's: leave out what it cannot do")
    args = parser.parse_args()
    args.workdir = args.workdir or tempfile.mkdtemp(prefix="interop_")
    v1.disable_v2_behavior()
    if args.resource:
        v1.enable_resource_variables()
        v1.enable_control_flow_v2()
    parts = [f for f in PARTS if args.part in f.__name__ and not (args.reference and hasattr(f, "beyond"))]
    failed = [f.__name__ for f in parts if not passes(f, args)]
    if failed:
        print("FAIL: %s" % ", ".join(failed), flush=True)
        sys.exit(1)
    print("PASS", flush=True)
    sys.exit(0)


def passes(function, args):
    faulthandler.dump_traceback_later(PART_LIMIT, exit=True)
    start = time.time()
    try:
        with tf.Graph().as_default():
            function(args)
        print("  ok %s %.2fs" % (function.__name__, time.time() - start), flush=True)
        return True
    except Exception:
        print("  differs: %s\n%s" % (function.__name__, traceback.format_exc()[-4000:]), flush=True)
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def check_eq(got, want, what=""):
    same = np.array_equal(got, want) if isinstance(got, np.ndarray) or isinstance(want, np.ndarray) else got == want
    if not same:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def check_close(got, want, what="", rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)


class raises(object):
    """`with raises(kind, "text", "more text") as r`: the body must raise `kind` with all texts in its message; `r.e` is the error."""

    def __init__(self, kind, *texts):
        self.kind, self.texts, self.e = kind, texts, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        name = self.kind.__name__
        if kind is None:
            raise AssertionError("no error, wanted %s %s" % (name, list(self.texts)))
        if not issubclass(kind, self.kind):
            raise AssertionError("got %s (%s), wanted %s" % (kind.__name__, str(error)[:1500], name))
        missing = [t for t in self.texts if t not in str(error)]
        if missing:
            raise AssertionError("%s lacks %s: %s" % (name, missing, str(error)[:1500]))
        self.e = error
        return True


def check_op(error, name):
    """The client finds the failing op by `[[{{node NAME}}]]` in the text."""
    check(error.op is not None, "no op in the error:", str(error)[:500])
    check_eq(error.op.name, name, "the op the error names")
    check("[[{{node %s}}]]" % name in error.message, "no [[{{node %s}}]] in" % name, error.message[:800])


class Thread(threading.Thread):
    """Runs `function` at once; `result` holds its value or the error it raised."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.call, self.result = (function, arguments), None
        self.start()

    def run(self):
        function, arguments = self.call
        try:
            self.result = function(*arguments)
        except Exception as e:
            self.result = e

    def end(self, limit=30):
        self.join(limit)
        check(not self.is_alive(), "a thread did not end within", limit, "s")
        return self.result

    def value(self, limit=30):
        result = self.end(limit)
        if isinstance(result, Exception):
            raise result
        return result

    def error(self, kind, *texts):
        result = self.end()
        with raises(kind, *texts):
            if isinstance(result, Exception):
                raise result
        return result


def until(condition, what, limit=10.0):
    """Waits for something that happens asynchronously on the server."""
    end = time.time() + limit
    while not condition():
        check(time.time() < end, "not within %ss:" % limit, what)
        time.sleep(0.02)


def task_name(session):
    """`/job:J/replica:0/task:T` of the server, from its first CPU."""
    names = sorted(d.name for d in session.list_devices() if d.device_type == "CPU")
    return re.sub("/device:.*", "", names[0])


def synthetic_mnist(n, seed=0, classes=10, side=28):
    """Deterministic and learnable: prototypes of the classes plus noise."""
    random = np.random.RandomState(seed)
    prototypes = np.random.RandomState(1234).uniform(0, 1, (classes, side * side))
    labels = random.randint(0, classes, n)
    images = 0.6 * prototypes[labels] + 0.4 * random.uniform(0, 1, (n, side * side))
    return images.astype(np.float32), labels.astype(np.int64)
