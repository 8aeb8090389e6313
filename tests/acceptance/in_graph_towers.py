"""Towers: one client, in-graph replication: a clone of the model on each
worker, variables on ps, gradients averaged; equals the single tower on the whole batch."""

from common import *

a = parse(__doc__)
NW = len(a.workers)
X, Y = synthetic_mnist(400, seed=4)


def build(towers):
    g = tf.Graph()
    with g.as_default():
        x = v1.placeholder(tf.float32, [None, 784])
        y = v1.placeholder(tf.int64, [None])
        grads = []
        losses = []
        for k in range(towers):
            setter = v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:%d" % k)
            scope = v1.variable_scope("m%d" % towers, reuse=(k > 0))
            with v1.device(setter), scope, tf.name_scope("tower%d" % k):
                w = v1.get_variable("w", [784, 10], initializer=v1.zeros_initializer())
                b = v1.get_variable("b", [10], initializer=v1.zeros_initializer())
                xs, ys = tf.split(x, towers)[k], tf.split(y, towers)[k]
                l = tf.reduce_mean(
                    v1.nn.sparse_softmax_cross_entropy_with_logits(labels=ys, logits=tf.matmul(xs, w) + b)
                )
                losses.append(l)
                grads.append(tf.gradients(l, [w, b]))
        with v1.device("/job:ps/task:0"):
            avg = [tf.add_n(gs) / towers for gs in zip(*grads)]
        train = v1.train.GradientDescentOptimizer(0.2).apply_gradients(zip(avg, [w, b]))
        return g, x, y, w, losses, train, v1.global_variables_initializer()


res = []
for towers in (1, NW):
    g, x, y, w, losses, train, init = build(towers)
    with v1.Session(a.target, graph=g) as s:
        s.run(init)
        for i in range(20):
            s.run(train, {x: X[:200], y: Y[:200]})
        res.append(s.run(w))
        md = v1.RunMetadata()
        s.run(losses, {x: X[:200], y: Y[:200]}, options=v1.RunOptions(output_partition_graphs=True), run_metadata=md)
        # it may be fused: _FusedMatMul, _MklNativeFusedMatMul
        got = sorted(n.device for pg in md.partition_graphs for n in pg.node if "MatMul" in n.op)
        want = ["/job:worker/replica:0/task:%d/device:CPU:0" % k for k in range(towers)]
        check_eq(got, want, "a matmul on each worker")
check_close(res[0], res[1], "towers equal the single model", rtol=1e-4, atol=1e-6)
ok()
