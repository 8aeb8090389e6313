"""Records what TensorFlow's processes send each other, through a proxy that forwards raw bytes."""

import socket
import subprocess
import sys
from concurrent import futures

import grpc
import tensorflow as tf

v1 = tf.compat.v1

# The message types of the methods that we record.
METHODS = [
    "CreateSession",
    "ExtendSession",
    "RunStep",
    "PartialRunSetup",
    "CloseSession",
    "ListDevices",
    "GetStatus",
    "CreateWorkerSession",
    "DeleteWorkerSession",
    "RegisterGraph",
    "RunGraph",
    "CleanupGraph",
    "RecvTensor",
    "Logging",
]


class Proxy(grpc.GenericRpcHandler):
    """Forwards every unary call to `target` and keeps the largest request and reply of each."""

    def __init__(self, target, port, kept):
        self.kept = kept
        self.channel = grpc.insecure_channel(target)
        self.server = grpc.server(futures.ThreadPoolExecutor(16), handlers=[self])
        self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]

        def forward(request, context):
            self.keep(f"{method}Request", request)
            try:
                reply = self.channel.unary_unary(details.method)(request, timeout=60)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            self.keep(f"{method}Response", reply)
            return reply

        return grpc.unary_unary_rpc_method_handler(forward)

    def keep(self, name, data):
        if len(data) > len(self.kept.get(name, b"")):
            self.kept[name] = data


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def capture():
    """Runs a small session on two tasks and returns the recorded messages by type name."""
    ps, worker, ps_proxy, worker_proxy, master_proxy = free_ports(5)
    kept = {}
    proxies = [
        Proxy(f"127.0.0.1:{ps}", ps_proxy, kept),
        Proxy(f"127.0.0.1:{worker}", worker_proxy, kept),
        Proxy(f"127.0.0.1:{worker}", master_proxy, kept),
    ]

    def cluster(own_job, own_port):
        jobs = {"ps": [f"127.0.0.1:{ps_proxy}"], "worker": [f"127.0.0.1:{worker_proxy}"]}
        jobs[own_job] = [f"127.0.0.1:{own_port}"]
        return jobs

    servers = [
        tf.distribute.Server(cluster("ps", ps), job_name="ps", task_index=0),
        tf.distribute.Server(cluster("worker", worker), job_name="worker", task_index=0),
    ]
    # The client is a process of its own: some of its calls hold Python's lock while they wait.
    subprocess.run([sys.executable, __file__, str(master_proxy)], check=True, timeout=120)
    for proxy in proxies:
        proxy.server.stop(None)
    assert servers
    wanted = [method + end for method in METHODS for end in ("Request", "Response")]
    return {name: data for name, data in kept.items() if name in wanted}


def client(master_port):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            x = v1.placeholder(tf.float32, [2], name="x")
            words = tf.constant(["q", ""], name="words")
        with tf.device("/job:worker/task:0"):
            y = tf.add(x, [1.0, 2.0], name="y")
        config = v1.ConfigProto(allow_soft_placement=True, operation_timeout_in_ms=60000)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with v1.Session(f"grpc://127.0.0.1:{master_port}", config=config) as session:
            session.list_devices()
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            session.run([y, words], {x: [3, 4]}, options=options, run_metadata=metadata)
            z = tf.identity(y, name="z")
            session.run(z, {x: [5, 6]})
            handle = session.partial_run_setup([z], [x])
            session.partial_run(handle, z, {x: [7, 8]})


if __name__ == "__main__":
    client(sys.argv[1])
