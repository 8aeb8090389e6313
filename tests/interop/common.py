"""What all interop programs share: flags, and running a program part by part. The checks are in tests/harness.

A program is a list of functions marked `@part`. Each runs in a fresh default graph; a part that fails
is reported and the next one runs, so one run tells everything that differs.
"""
import argparse
import faulthandler
import os
import re
import sys
import tempfile
import time
import traceback

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from checks import *

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


def check_op(error, name):
    """The client finds the failing op by `[[{{node NAME}}]]` in the text."""
    check(error.op is not None, "no op in the error:", str(error)[:500])
    check_eq(error.op.name, name, "the op the error names")
    check("[[{{node %s}}]]" % name in error.message, "no [[{{node %s}}]] in" % name, error.message[:800])


def task_name(session):
    """`/job:J/replica:0/task:T` of the server, from its first CPU."""
    names = sorted(d.name for d in session.list_devices() if d.device_type == "CPU")
    return re.sub("/device:.*", "", names[0])
