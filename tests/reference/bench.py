"""Times graphs in TensorFlow, and writes the graphs that are timed.

    bench.py list [PART…]                               names that contain one of the parts, or all but bench_breadth.py's
    bench.py write --cases DIR NAME…                    writes DIR/NAME/{graph.pb,spec.json}
    bench.py run --cases DIR --case NAME --seconds S    times one case, at least S seconds per round

`run` sets the case up and prints {"case": NAME, "ready": true}. Then each line on standard
input asks for one round, answered by

    {"case": NAME, "ns_per_iter": median, "min_ns": shortest, "iters": count}

until the input ends: whoever compares two programs can alternate their rounds. The other
program of a comparison takes the same arguments as `run`, without the word; what stops it it
says as {"case": NAME, "error": TEXT}. To time one case
by hand: `echo | python bench.py run --cases DIR --case NAME --seconds 1`.
"""

import argparse
import json
import os
import statistics
import sys
import time

THREADS = 2


def timed_iteration(capi, folder, spec):
    """A function that does the timed work once."""
    with open(os.path.join(folder, "graph.pb"), "rb") as file:
        graph = file.read()
    config = capi.session_config(spec["optimize"], THREADS, THREADS)

    def ready(session, step):
        feeds = {}
        for name, file in step.get("feeds", {}).items():
            with open(os.path.join(folder, file), "rb") as proto:
                feeds[name] = capi.Tensor.from_proto(proto.read())
        return session.step(feeds, step.get("fetches", []), step.get("targets", []))

    def opened():
        session = capi.Session(graph, config)
        for step in spec["setup"]:
            ready(session, step).run()
        return session

    if spec["kind"] == "run":
        return ready(opened(), spec["step"]).run

    def import_once():
        session = capi.Session(graph, config)
        ready(session, spec["step"]).run()
        session.close()

    return import_once


def run(folder, seconds):
    import capi

    with open(os.path.join(folder, "spec.json")) as file:
        spec = json.load(file)
    once = timed_iteration(capi, folder, spec)
    for _ in range(2):
        once()
    say({"case": spec["case"], "ready": True})
    for _ in sys.stdin:
        times = []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter_ns()
            once()
            times.append(time.perf_counter_ns() - start)
        say({
            "case": spec["case"],
            "ns_per_iter": statistics.median(times),
            "min_ns": min(times),
            "iters": len(times),
        })


def say(line):
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(dest="task", required=True)
    listing = tasks.add_parser("list")
    listing.add_argument("parts", nargs="*")
    writing = tasks.add_parser("write")
    writing.add_argument("--cases", required=True)
    writing.add_argument("names", nargs="+")
    running = tasks.add_parser("run")
    running.add_argument("--cases", required=True)
    running.add_argument("--case", required=True)
    running.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    if args.task == "run":
        run(os.path.join(args.cases, args.case), args.seconds)
        return
    import bench_breadth
    import bench_cases

    bench_cases.v1.disable_eager_execution()
    if args.task == "list":
        for name in bench_cases.CASES:
            if any(part in name for part in args.parts) or not args.parts and not name.startswith(bench_breadth.PREFIX):
                print(name)
        return
    for name in args.names:
        bench_cases.write(name, os.path.join(args.cases, name))


if __name__ == "__main__":
    main()
