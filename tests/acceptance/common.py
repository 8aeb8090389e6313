"""What all acceptance programs share: flags, the end, and power over the servers. The checks are in tests/harness.

A program is told the addresses of servers that run; it starts none itself.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from checks import *

ARGS = None


def parse(doc, extra=None):
    """Parses the common flags, and those that `extra` adds, and switches to TensorFlow 1's behaviour."""
    global ARGS
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--ps_hosts", default="", help="comma separated host:port")
    parser.add_argument("--worker_hosts", default="", help="comma separated host:port")
    parser.add_argument("--job_name", default="", help="role of this process, in programs of several processes")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--target", default="", help="grpc://host:port of the master; the first worker's if left out")
    parser.add_argument("--cluster", default="", help="JSON, {job: [address] or {index: address}}")
    parser.add_argument("--workdir", default="", help="directory shared with the servers")
    parser.add_argument("--control", default="", help="host:port where run.py kills and starts servers")
    parser.add_argument("--resource", action="store_true", help="resource variables and control flow v2")
    parser.add_argument("--reference", action="store_true", help="the servers are TensorFlow's: allow what it does")
    if extra:
        extra(parser)
    a = ARGS = parser.parse_args()
    a.ps = [h for h in a.ps_hosts.split(",") if h]
    a.workers = [h for h in a.worker_hosts.split(",") if h]
    a.cluster_dict = {"ps": a.ps, "worker": a.workers}
    if a.cluster:
        indexed = lambda tasks: {int(k): x for k, x in tasks.items()} if isinstance(tasks, dict) else tasks
        a.cluster_dict = {job: indexed(tasks) for job, tasks in json.loads(a.cluster).items()}
    if not a.target:
        first = a.workers or a.ps or next(iter(a.cluster_dict.values()))
        a.target = grpc(first[0])
    a.workdir = a.workdir or tempfile.mkdtemp(prefix="acceptance_")
    v1.disable_v2_behavior()
    if a.resource:
        v1.enable_resource_variables()
        v1.enable_control_flow_v2()
    return a


def grpc(address):
    return "grpc://" + address


def ok():
    print("PASS", flush=True)
    sys.exit(0)


def control(args, command):
    """`kill ps 0`, `start ps 0`, `restart ps 0`; more in tests/harness/servers.py."""
    check(args.control, "this program kills servers or starts processes: let run.py run it")
    host, port = args.control.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=120) as s:
        s.sendall((command + "\n").encode())
        answer = s.makefile().readline().strip()
    check(answer.startswith("ok "), "control:", command, "->", answer)
    return answer[3:]
