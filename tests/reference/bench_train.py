"""Training by TensorFlow's client on TensorFlow's servers beside the Rust client on ours, in turns.

    python tests/reference/bench_train.py --server target/release/tensorfleet --client target/release/bench-train \
        [--ps 1] [--workers 1] [--models logreg,mlp,cnn,wide] [--seconds 3] [--turns 3] [--resource]

Both clusters are up all the time; while one trains, the other is idle. Prints steps per second of both, and the
median over the turns of their ratio. The models are those of crates/testkit/src/bin/bench-train.rs.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))

BATCH = {"logreg": 100, "mlp": 128, "cnn": 64, "wide": 1024}


def build(tf, v1, name, ps, task, resource):
    """The training step and the initialisers of one replica."""
    device = "/job:worker/task:%d" % task
    seed = task + 1
    with v1.device(device):
        if name == "wide":
            x = tf.random.uniform([1024, 26], 0, 1_000_000, tf.int64, seed=seed)
            y = tf.cast(tf.random.uniform([1024], 0, 2, tf.int32, seed=seed), tf.float32)
        else:
            rows = BATCH[name]
            shape = [rows, 28, 28, 1] if name == "cnn" else [rows, 784]
            local = dict(trainable=False, use_resource=True, collections=[v1.GraphKeys.LOCAL_VARIABLES])
            x = v1.Variable(tf.random.uniform(shape, seed=seed), name="in_x%d" % task, **local).read_value()
            labels = tf.random.uniform([rows], 0, 10, tf.int64, seed=seed)
            y = v1.Variable(labels, name="in_y%d" % task, **local).read_value()

    def weights(name, shape):
        inputs = 1
        for size in shape[:-1]:
            inputs *= size
        start = v1.random_normal_initializer(stddev=(2.0 / max(1, inputs)) ** 0.5, seed=1)
        return v1.get_variable(name, shape, initializer=start, use_resource=resource)

    def logreg(x):
        return tf.matmul(x, weights("w", [784, 10])) + weights("b", [10])

    def mlp(x):
        for layer, (rows, columns) in enumerate(((784, 500), (500, 300), (300, 10))):
            x = tf.nn.bias_add(tf.matmul(x, weights("w%d" % layer, [rows, columns])), weights("b%d" % layer, [columns]))
            if layer < 2:
                x = tf.nn.relu(x)
        return x

    def cnn(x):
        for layer, (a, b) in enumerate(((1, 32), (32, 64))):
            x = tf.nn.conv2d(x, weights("c%d" % layer, [5, 5, a, b]), [1, 1, 1, 1], "SAME")
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(x, weights("cb%d" % layer, [b]))), 2, 2, "SAME")
        x = tf.reshape(x, [-1, 7 * 7 * 64])
        x = tf.nn.relu(tf.matmul(x, weights("d1", [3136, 512])) + weights("db1", [512]))
        return tf.matmul(x, weights("d2", [512, 10])) + weights("db2", [10])

    def wide(x):
        start = v1.random_uniform_initializer(-0.01, 0.01, seed=1)
        table = v1.get_variable("emb", [1_000_000, 64], initializer=start, use_resource=resource)
        summed = tf.reduce_sum(tf.nn.embedding_lookup(table, x), 1)
        return tf.reshape(tf.matmul(summed, weights("o", [64, 1])), [-1])

    with v1.device(v1.train.replica_device_setter(ps_tasks=ps, worker_device=device)):
        logits = {"logreg": logreg, "mlp": mlp, "cnn": cnn, "wide": wide}[name](x)
        if name == "wide":
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        else:
            losses = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses)
        step = v1.train.get_or_create_global_step()
        return v1.train.AdagradOptimizer(0.01).minimize(loss, global_step=step), loss


def client(args):
    """TensorFlow's client: one line of JSON."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    ps, workers = args.ps_hosts.split(","), args.worker_hosts.split(",")
    replicas = []
    for task, worker in enumerate(workers):
        graph = tf.Graph()
        with graph.as_default():
            train, loss = build(tf, v1, args.models, len(ps), task, args.resource)
            inits = v1.global_variables_initializer(), v1.local_variables_initializer()
        session = v1.Session("grpc://" + worker, graph=graph)
        if task == 0:
            session.run(inits[0])
        session.run(inits[1])
        replicas.append((session, train, loss))
    for session, train, _ in replicas:
        for _ in range(3):
            session.run(train)
    counts = [0] * len(replicas)
    began = time.perf_counter()

    def work(index):
        session, train, _ = replicas[index]
        while time.perf_counter() < began + args.seconds:
            session.run(train)
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = sum(counts) / (time.perf_counter() - began)
    loss = float(replicas[0][0].run(replicas[0][2]))
    print(json.dumps({"model": args.models, "steps_per_s": [rate], "loss": loss}), flush=True)
    os._exit(0)


def last_json(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit("%s failed:\n%s" % (shlex.join(command), done.stderr[-2000:]))
    return json.loads(lines[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="our server program")
    parser.add_argument("--client", help="our client program, bench-train")
    parser.add_argument("--ps", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--models", default="logreg,mlp,cnn,wide")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--resource", action="store_true", help="resource variables in TensorFlow's program, too")
    parser.add_argument("--ps_hosts", help=argparse.SUPPRESS)
    parser.add_argument("--worker_hosts", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ps_hosts:
        client(args)
    if not args.server or not args.client:
        parser.error("--server and --client are needed")
    import servers

    ours = shlex.quote(args.server) + " serve --cluster {cluster_json} --job_name {job} --task_index {task}"
    clusters = []
    for template in (ours, servers.REFERENCE + " "):
        cluster = servers.Cluster({"ps": args.ps, "worker": args.workers}, template, False, tempfile.mkdtemp())
        cluster.start_all()
        clusters.append(cluster)
    try:
        print("| model | TensorFleet steps/s | TensorFlow steps/s | ratio | lowest to highest |\n|---|---|---|---|---|")
        for model in args.models.split(","):
            rates = {"ours": [], "theirs": []}
            for _ in range(args.turns):
                for side, cluster in zip(("ours", "theirs"), clusters):
                    hosts = [",".join(cluster.addresses[job].values()) for job in ("ps", "worker")]
                    common = ["--models", model, "--seconds", str(args.seconds)]
                    if side == "ours":
                        command = [args.client, "--ps", hosts[0], "--workers", hosts[1], "--rounds", "1", *common]
                    else:
                        command = [sys.executable, __file__, "--ps_hosts", hosts[0], "--worker_hosts", hosts[1], *common]
                        command += ["--resource"] if args.resource else []
                    rates[side].append(statistics.median(last_json(command)["steps_per_s"]))
            ratios = [a / b for a, b in zip(rates["ours"], rates["theirs"])]
            row = [statistics.median(rates["ours"]), statistics.median(rates["theirs"]), statistics.median(ratios)]
            spread = "%.2f to %.2f" % (min(ratios), max(ratios))
            print("| %s | %.1f | %.1f | **%.2f** | %s |" % (model, *row, spread), flush=True)
    finally:
        for cluster in clusters:
            cluster.stop()


if __name__ == "__main__":
    main()
