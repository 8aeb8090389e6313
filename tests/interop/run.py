"""Runs the interop programs, each against a fresh one-task server: one line a case, then the sum.

run.py                                      TensorFlow's own server: the reference
run.py errors queues                        only these
run.py --server-cmd "tensorfleet serve --cluster {cluster_json} --job_name {job} --task_index {task} --config={config}"

Words of the template, each already quoted for the shell:
  {cluster_json} {job} {task} {address} {port} {workdir}
  {config}   text-format ConfigProto of the server, or nothing; cases that need one are skipped without it
A server is up when its port accepts.
"""
import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCE = "%s %s/tf_server.py --cluster {cluster_json} --job {job} --task {task} --config={config}" % (
    shlex.quote(sys.executable),
    shlex.quote(HERE),
)
JOB, TASK = "local", 0


class Case(object):
    def __init__(self, script, arguments=(), limit=100, config=""):
        self.script, self.arguments, self.limit, self.config = script, list(arguments), limit, config


# Cases of both variable kinds, then those where the kind does not matter.
BOTH = (
    "errors control_flow optimizers embedding mlp cnn rnn_while checkpoints callables containers_reset threads lifecycle"
).split()
ONE = "hello_string string_sparse queues summaries partial_run wire config tracing disconnect hostile".split()
CASES = {}
for name in BOTH:
    CASES[name] = Case(name)
    CASES[name + "_resource"] = Case(name, ["--resource"])
for name in ONE:
    CASES[name] = Case(name)
CASES["server_config"] = Case(
    "server_config", config='device_count { key: "CPU" value: 2 } allow_soft_placement: true operation_timeout_in_ms: 500'
)


class Forked(object):
    """A process forked by preload.py, with the part of Popen's interface that is used here."""

    def __init__(self, preload, pid):
        self.preload, self.pid = preload, pid

    def poll(self):
        return self.preload.codes.get(self.pid)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout=None):
        with self.preload.changed:
            if not self.preload.changed.wait_for(lambda: self.poll() is not None, timeout):
                raise subprocess.TimeoutExpired("forked", timeout)
        return self.poll()


class Preload(object):
    def __init__(self, python):
        command = [python, os.path.join(HERE, "preload.py")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if self.process.stdout.readline().strip() != "ready":
            sys.exit("%s cannot import tensorflow" % python)
        self.codes, self.pids = {}, []
        self.changed, self.one = threading.Condition(), threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            with self.changed:
                if words[0] == "pid":
                    self.codes.pop(int(words[1]), None)
                    self.pids.append(int(words[1]))
                else:
                    self.codes[int(words[1])] = int(words[2])
                self.changed.notify_all()

    def spawn(self, argv, log):
        with self.one:
            self.process.stdin.write(json.dumps({"argv": argv, "log": log}) + "\n")
            self.process.stdin.flush()
            with self.changed:
                self.changed.wait_for(lambda: self.pids)
                return Forked(self, self.pids.pop(0))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server(object):
    def __init__(self, options, preload, workdir, config):
        self.port = free_port()
        address = "localhost:%d" % self.port
        path = ""
        if config:
            path = os.path.join(workdir, "config.pbtxt")
            with open(path, "w") as f:
                f.write(config)
        words = {
            "cluster_json": shlex.quote(json.dumps({JOB: [address]})),
            "job": JOB,
            "task": str(TASK),
            "address": address,
            "port": str(self.port),
            "workdir": shlex.quote(workdir),
            "config": shlex.quote(path) if path else "",
        }
        command = options.server_cmd
        for word, value in words.items():
            command = command.replace("{%s}" % word, value)
        log = os.path.join(workdir, "server.log")
        if options.server_cmd == REFERENCE:
            self.process = preload.spawn(shlex.split(command)[1:], log)
        else:
            with open(log, "w") as f:
                self.process = subprocess.Popen("exec " + command, shell=True, stdout=f, stderr=subprocess.STDOUT)
        self.wait_until_up()

    def wait_until_up(self, limit=60):
        end = time.time() + limit
        while True:
            if self.process.poll() is not None:
                raise RuntimeError("the server ended with %s at its start" % self.process.poll())
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if time.time() > end:
                    self.stop()
                    raise RuntimeError("the server is not up after %ds" % limit)
                time.sleep(0.02)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def run_case(name, options, preload):
    """-> (result, seconds, why, work directory)"""
    case = CASES[name]
    if case.config and "{config}" not in options.server_cmd:
        return "skip", 0.0, "the template has no {config}", None
    workdir = tempfile.mkdtemp(prefix="interop_%s_" % name, dir=options.tmp)
    start = time.time()
    try:
        server = Server(options, preload, workdir, case.config)
    except RuntimeError as e:
        return "FAIL", time.time() - start, str(e), workdir
    argv = [os.path.join(HERE, case.script + ".py"), "--target", "grpc://localhost:%d" % server.port] + case.arguments
    argv += ["--reference"] if options.server_cmd == REFERENCE else []
    argv += ["--pid", str(server.process.pid), "--workdir", workdir]
    why = ""
    try:
        client = preload.spawn(argv, os.path.join(workdir, "client.log"))
        try:
            code = client.wait(case.limit)
            if code:
                why = failed_parts(workdir) or "exit %d" % code
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            why = "no end after %ds" % case.limit
        if server.process.poll() is not None:
            why = (why + ", the server died: %s" % server.process.poll()).lstrip(", ")
    finally:
        server.stop()
    return "FAIL" if why else "pass", time.time() - start, why, workdir


def failed_parts(workdir):
    """What the program said in the end, if it came so far."""
    with open(os.path.join(workdir, "client.log"), errors="replace") as f:
        said = [line[6:].strip() for line in f if line.startswith("FAIL: ")]
    return said[-1] if said else ""


def report(name, outcome, options):
    result, seconds, why, workdir = outcome
    kept = workdir and (result == "FAIL" or options.keep)
    print("%-4s %-26s %5.1fs  %s%s" % (result, name, seconds, why, "  logs: " + workdir if kept else ""), flush=True)
    if result == "FAIL" and options.verbose:
        for log in ("client.log", "server.log"):
            path = os.path.join(workdir, log)
            if os.path.exists(path):
                with open(path, errors="replace") as f:
                    print("    %s:\n    | %s" % (log, f.read()[-4000:].replace("\n", "\n    | ")), flush=True)
    if workdir and not kept:
        shutil.rmtree(workdir, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--server-cmd", default=REFERENCE, help="template of the server's command")
    parser.add_argument("--tensorflow", action="store_true", help="TensorFlow's own server (the default)")
    parser.add_argument("--python", default=sys.executable, help="python of the clients")
    parser.add_argument("--tmp", default=tempfile.gettempdir())
    parser.add_argument("--jobs", "-j", type=int, default=2, help="cases at once")
    parser.add_argument("--json", default="", help="write the results here")
    parser.add_argument("--keep", action="store_true", help="keep the work directories of passed cases")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", "-v", action="store_true", help="print the logs of failed cases")
    options = parser.parse_args()
    if options.tensorflow:
        options.server_cmd = REFERENCE
    if options.list:
        print("\n".join(CASES))
        return 0
    unknown = [n for n in options.cases if n not in CASES]
    if unknown:
        sys.exit("unknown case: %s" % " ".join(unknown))
    start = time.time()
    preload = Preload(options.python)
    results = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        names = options.cases or list(CASES)
        outcomes = {n: pool.submit(run_case, n, options, preload) for n in names}
        for name in names:
            outcome = outcomes[name].result()
            report(name, outcome, options)
            results[name] = {"result": outcome[0], "seconds": round(outcome[1], 2), "why": outcome[2]}
    preload.close()
    count = {r: sum(x["result"] == r for x in results.values()) for r in ("pass", "FAIL", "skip")}
    print("%d passed, %d failed, %d skipped, %.0fs" % (count["pass"], count["FAIL"], count["skip"], time.time() - start))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f, indent=1)
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
