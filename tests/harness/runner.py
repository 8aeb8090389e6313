"""Runs programs, each against a fresh cluster: one line a case, then the sum."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from forks import Preload
from servers import REFERENCE, Cluster


class Case(object):
    """A program with its arguments, the cluster it needs, and how long it may take.

    `config` is the servers' ConfigProto, `only` the jobs that get servers, `reference` those whose servers are always
    TensorFlow's, `alone` says that nothing else may run.
    """

    def __init__(self, script, arguments=(), cluster=None, limit=100, config="", only=(), reference=(), alone=False):
        self.script, self.arguments, self.cluster, self.limit = script, list(arguments), cluster, limit
        self.config, self.only, self.reference, self.alone = config, only, reference, alone


class Suite(object):
    """The cases of a folder. `arguments(cluster, options)` are what its programs are told of their cluster."""

    def __init__(self, folder, cases, arguments):
        self.folder, self.cases, self.arguments = folder, cases, arguments
        self.name = os.path.basename(folder)

    def run(self, name, options, preload):
        """-> (result, seconds, why, work directory)"""
        case = self.cases[name]
        if case.config and "{config}" not in options.server_cmd:
            return "skip", 0.0, "the template has no {config}", None
        workdir = tempfile.mkdtemp(prefix="%s_%s_" % (self.name, name), dir=options.tmp)
        cluster = Cluster(case.cluster, options.server_cmd, preload, workdir, case.config, case.only, case.reference)
        start, why = time.time(), ""
        try:
            cluster.start_all()
            program = os.path.join(self.folder, case.script + ".py")
            argv = [program] + self.arguments(cluster, options) + ["--workdir", workdir] + case.arguments
            client = preload.spawn(argv, os.path.join(workdir, "client.log"))
            try:
                code = client.wait(case.limit)
                if code:
                    why = failed_parts(workdir) or "exit %d" % code
            except subprocess.TimeoutExpired:
                why = "no end after %ds" % case.limit
            if why:
                end_group(client.pid)
            if cluster.dead():
                why = (why + ", servers died: " + " ".join(cluster.dead())).lstrip(", ")
        except RuntimeError as e:
            why = str(e)
        finally:
            cluster.stop()
        return "FAIL" if why else "pass", time.time() - start, why, workdir


def end_group(leader):
    """Ends a program that hangs, and what a failed one has left behind: they share a process group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def failed_parts(workdir):
    """What the program said in the end, if it came so far."""
    with open(os.path.join(workdir, "client.log"), errors="replace") as f:
        said = [line[6:].strip() for line in f if line.startswith("FAIL: ")]
    return said[-1] if said else ""


def report(name, outcome, options):
    result, seconds, why, workdir = outcome
    kept = workdir and (result == "FAIL" or options.keep)
    print("%-4s %-30s %5.1fs  %s%s" % (result, name, seconds, why, "  logs: " + workdir if kept else ""), flush=True)
    if result == "FAIL" and options.verbose:
        for log in sorted(n for n in os.listdir(workdir) if n.endswith(".log")):
            with open(os.path.join(workdir, log), errors="replace") as f:
                print("    %s:\n    | %s" % (log, f.read()[-4000:].replace("\n", "\n    | ")), flush=True)
    if workdir and not kept:
        shutil.rmtree(workdir, ignore_errors=True)


def parse(doc, cases):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--server-cmd", default=REFERENCE, help="template of a server's command")
    parser.add_argument("--tensorflow", action="store_true", help="TensorFlow's own servers (the default)")
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
    unknown = [n for n in options.cases if n not in cases]
    if unknown:
        sys.exit("unknown case: %s" % " ".join(unknown))
    return options


def main(doc, suite):
    options = parse(doc, suite.cases)
    if options.list:
        print("\n".join(suite.cases))
        return 0
    start = time.time()
    preload = Preload(options.python)
    results = {}
    names = options.cases or list(suite.cases)
    together = [n for n in names if not suite.cases[n].alone]
    alone = [n for n in names if suite.cases[n].alone]
    for some, jobs in ((together, options.jobs), (alone, 1)):
        with ThreadPoolExecutor(jobs) as pool:
            outcomes = {n: pool.submit(suite.run, n, options, preload) for n in some}
            for name in some:
                outcome = outcomes[name].result()
                report(name, outcome, options)
                results[name] = {"result": outcome[0], "seconds": round(outcome[1], 2), "why": outcome[2]}
    preload.close()
    count = {r: sum(x["result"] == r for x in results.values()) for r in ("pass", "FAIL", "skip")}
    counts = (len(results), count["pass"], count["FAIL"], count["skip"], time.time() - start)
    print("%d tests run: %d passed, %d failed, %d skipped, %.0fs" % counts)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f, indent=1)
    return 1 if count["FAIL"] else 0
