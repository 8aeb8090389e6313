"""Runs the interop programs, each against a fresh one-task server: one line a case, then the sum.

run.py                                      TensorFlow's own server: the reference
run.py errors queues                        only these
run.py --server-cmd "tensorfleet serve --cluster {cluster_json} --job_name {job} --task_index {task} --config={config}"

tests/harness/servers.py explains the words of the template.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../harness"))
from runner import Case, Suite, main
from servers import REFERENCE

JOB, TASK = "local", 0
ONE_TASK = {JOB: 1}

# Cases of both variable kinds, then those where the kind does not matter.
BOTH = (
    "errors control_flow optimizers embedding mlp cnn rnn_while checkpoints callables containers_reset threads lifecycle"
).split()
ONE = "hello_string string_sparse queues summaries partial_run wire config tracing disconnect hostile".split()
CASES = {}
for name in BOTH:
    CASES[name] = Case(name, cluster=ONE_TASK)
    CASES[name + "_resource"] = Case(name, ["--resource"], ONE_TASK)
for name in ONE:
    CASES[name] = Case(name, cluster=ONE_TASK)
CASES["server_config"] = Case(
    "server_config",
    cluster=ONE_TASK,
    config='device_count { key: "CPU" value: 2 } allow_soft_placement: true operation_timeout_in_ms: 500',
)


def arguments(cluster, options):
    out = ["--target", "grpc://" + cluster.addresses[JOB][TASK], "--pid", str(cluster.processes[JOB, TASK].pid)]
    return out + (["--reference"] if options.server_cmd == REFERENCE else [])


if __name__ == "__main__":
    sys.exit(main(__doc__, Suite(HERE, CASES, arguments)))
