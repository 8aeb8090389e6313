"""Runs the acceptance programs, each against a fresh cluster: one line a case, then the sum.

run.py                                      TensorFlow's own servers: the reference
run.py pin_devices errors                   only these
run.py --server-cmd "tensorfleet serve --cluster {cluster_json} --job_name {job} --task_index {task} --config={config}"

tests/harness/servers.py explains the words of the template.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../harness"))
from runner import Case, Suite, main
from servers import REFERENCE

SMALL, LARGE = {"ps": 1, "worker": 1}, {"ps": 2, "worker": 2}
RESOURCE = ["--resource"]

CASES = {
    # the longest first: what is left over at the end is short
    "rnn_while_resource": Case("rnn_while", RESOURCE, SMALL, limit=300),
    "trainer_async": Case("trainer_async", cluster=LARGE, limit=240),
    "trainer_async_resource": Case("trainer_async", RESOURCE, LARGE, limit=240),
    # the workers are TensorFlow's own servers, inside the trainers
    "trainer_mixed": Case("trainer_async", ["--start_server"], LARGE, limit=240, only=["ps"]),
    # the other way round
    "trainer_mixed_ps": Case("trainer_async", cluster=LARGE, limit=240, reference=["ps"]),
    "trainer_sync_mixed_ps": Case("trainer_sync", RESOURCE, LARGE, limit=240, reference=["ps"]),
    "trainer_sync": Case("trainer_sync", cluster=LARGE, limit=240),
    "trainer_sync_resource": Case("trainer_sync", RESOURCE, LARGE, limit=240),
    "restart_ps": Case("restart_ps", cluster=LARGE, limit=300),
    "restart_worker": Case("restart_worker", cluster=LARGE, limit=300),
    "embedding_partitioned": Case("embedding_partitioned", cluster=LARGE),
    "embedding_partitioned_resource": Case("embedding_partitioned", RESOURCE, LARGE),
    "mlp_mnist": Case("mlp_mnist", cluster=LARGE, limit=180),
    "mlp_mnist_resource": Case("mlp_mnist", RESOURCE, LARGE, limit=180),
    "cnn": Case("cnn", cluster=SMALL, limit=180),
    "cnn_resource": Case("cnn", RESOURCE, SMALL, limit=180),
    "rnn_while": Case("rnn_while", cluster=SMALL, limit=180),
    "ftrl_wide": Case("ftrl_wide", cluster=LARGE),
    "ftrl_wide_resource": Case("ftrl_wide", RESOURCE, LARGE),
    "optimizers": Case("optimizers", cluster=SMALL),
    "control_flow": Case("control_flow", cluster=LARGE),
    "control_flow_resource": Case("control_flow", RESOURCE, LARGE),
    "checkpoint_read": Case("checkpoint_read", cluster=LARGE),
    "checkpoint_read_resource": Case("checkpoint_read", RESOURCE, LARGE),
    "in_graph_towers": Case("in_graph_towers", cluster=LARGE),
    "in_graph_towers_resource": Case("in_graph_towers", RESOURCE, LARGE),
    "containers_reset": Case("containers_reset", cluster=SMALL),
    "containers_reset_resource": Case("containers_reset", RESOURCE, SMALL),
    "errors": Case("errors", cluster=LARGE),
    "errors_resource": Case("errors", RESOURCE, LARGE),
    "summaries": Case("summaries", cluster=SMALL),
    "queues_shared": Case("queues_shared", cluster=LARGE),
    "config_proto": Case("config_proto", cluster=LARGE, limit=200),
    "server_config": Case(
        "server_config", cluster=SMALL, config='device_count { key: "CPU" value: 2 } allow_soft_placement: true'
    ),
    "sessions_threads": Case("sessions_threads", cluster=SMALL),
    "one_client_many_servers": Case("one_client_many_servers", cluster=LARGE),
    "pin_devices": Case("pin_devices", cluster=LARGE),
    "list_devices": Case("list_devices", cluster=LARGE),
    "open_session": Case("open_session", cluster=LARGE),
    "sparse_clusterspec": Case("sparse_clusterspec", cluster={"ps": [0], "worker": [1, 3]}),
    "serverdef_clusterdef": Case("serverdef_clusterdef", cluster=SMALL),
    # the master is TensorFlow's own server, inside the program
    "fused_mixed": Case("fused_mixed", cluster=SMALL, only=["ps"]),
    "partial_run": Case("partial_run", cluster=SMALL),
    "string_sparse": Case("string_sparse", cluster=SMALL),
    "tables_shared": Case("tables_shared", cluster=LARGE),
    "pipelines": Case("pipelines", cluster=LARGE),
    "pipelines_resource": Case("pipelines", RESOURCE, LARGE),
    "hello_string": Case("hello_string", cluster={"local": 1}),
}


def arguments(cluster, options):
    out = ["--control", cluster.control(), "--cluster", json.dumps(cluster.json())]
    for job in ("ps", "worker"):
        if job in cluster.addresses:
            out += ["--%s_hosts" % job, ",".join(cluster.addresses[job].values())]
    return out + (["--reference"] if options.server_cmd == REFERENCE else [])


if __name__ == "__main__":
    sys.exit(main(__doc__, Suite(HERE, CASES, arguments)))
