"""Runs graphs in TensorFlow: the reference that results and errors are compared with.

Reads one JSON object per line:

    {"name": "add", "graph": GRAPH_DEF, "optimize": false, "timeout_ms": 30000,
     "steps": [{"feeds": {"x:0": TENSOR_PROTO}, "fetches": ["y:0"], "targets": ["init"]}]}

and answers each, in order and at once, with one line:

    {"name": "add", "steps": [{"fetches": [TENSOR_PROTO]}, {"error": {"code": 3, "message": "…"}}]}

GRAPH_DEF and TENSOR_PROTO are serialized protocol buffers in base64. Every case has a
session of its own in which its steps run one after another; a step that fails does not
keep the next from running. `optimize` and `timeout_ms` may be left out. If the session
does not take the graph, every step carries that error and the answer has
`"rejected": true`. A case that ends TensorFlow's process, or hangs for longer than its
steps may, is answered with `"crash": "what happened"` and no steps; the cases after it run in
a new process. A line that is no case is answered with `"malformed": "why"`.
"""

import base64
import json
import os
import selectors
import signal
import subprocess
import sys

TIMEOUT_MS = 30_000
# Time above all steps' timeouts after which a process that does not answer is ended.
GRACE_S = 30


# The process that holds TensorFlow.


def run_case(capi, case):
    graph = base64.b64decode(case["graph"], validate=True)
    config = capi.session_config(optimize=bool(case.get("optimize", False)))
    timeout_ms = int(case.get("timeout_ms", TIMEOUT_MS))
    try:
        session = capi.Session(graph, config)
    except capi.StatusError as error:
        return {"rejected": True, "steps": [failure(error)] * len(case["steps"])}
    try:
        return {"steps": [run_step(capi, session, step, timeout_ms) for step in case["steps"]]}
    finally:
        session.close()


def run_step(capi, session, step, timeout_ms):
    try:
        feeds = {
            name: capi.Tensor.from_proto(base64.b64decode(proto, validate=True))
            for name, proto in step.get("feeds", {}).items()
        }
        ready = session.step(feeds, step.get("fetches", []), step.get("targets", []), timeout_ms)
        fetched = [tensor.to_proto() for tensor in ready.run()]
        return {"fetches": [base64.b64encode(proto).decode() for proto in fetched]}
    except capi.StatusError as error:
        return failure(error)


def failure(error):
    return {"error": {"code": error.code, "message": error.message}}


def worker():
    # Some ops write to standard output; the answers keep theirs.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import capi

    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = run_case(capi, case)
        except Exception as error:  # A case of a wrong form must not hide the other cases.
            answer = {"malformed": "%s: %s" % (type(error).__name__, error)}
        answers.write(json.dumps({"name": case["name"], **answer}) + "\n")
        answers.flush()


# The process that survives.


class Worker:
    """A child with TensorFlow in it, started when first needed."""

    def __init__(self):
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def ask(self, line, seconds):
        """The child's answer, or (None, what became of the child)."""
        if self.process is not None and self.process.poll() is not None:
            self.end()  # It died between two cases: this one is not to blame.
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            return None, self.end()
        # The child writes a whole line once the case is over: waiting for its first byte will do.
        if not self.selector.select(seconds):
            self.process.kill()
            self.end()
            return None, "no answer within %d s" % seconds
        answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            return None, self.end()
        return answer, None

    def end(self):
        """Reaps the child; says how it ended."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # What was on its way to a dead child is lost.
        code = self.process.wait()
        self.selector.close()
        self.process.stdout.close()
        self.process = None
        if code < 0:
            return "ended by %s" % signal.Signals(-code).name
        return "ended with exit code %d" % code


def main():
    child = Worker()
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        name = None
        try:
            case = json.loads(line)
            name = case["name"]
            allowed = case.get("timeout_ms", TIMEOUT_MS) * max(1, len(case["steps"])) / 1000
            if not line.endswith(b"\n"):
                line += b"\n"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            answer, crash = None, None
            reply = {"name": name, "malformed": "%s: %s" % (type(error).__name__, error)}
        else:
            answer, crash = child.ask(line, allowed + GRACE_S)
            reply = {"name": name, "crash": crash, "steps": []}
        sys.stdout.buffer.write(answer or (json.dumps(reply) + "\n").encode())
        sys.stdout.buffer.flush()
    if child.process is not None:
        child.end()


if __name__ == "__main__":
    try:
        worker() if "--worker" in sys.argv[1:] else main()
    except KeyboardInterrupt:
        sys.exit(130)
