"""Small CNN (2 conv + pool + dense, dropout off/on, batch norm) trained on the cluster."""

from common import *

a = parse(__doc__)
X, Y = synthetic_mnist(640, seed=1)
X = X.reshape(-1, 28, 28, 1)
TX, TY = synthetic_mnist(256, seed=2)
TX = TX.reshape(-1, 28, 28, 1)


def init(shape, seed):
    return (np.random.RandomState(seed).randn(*shape) * np.sqrt(2.0 / np.prod(shape[:-1]))).astype(np.float32)


with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        x = v1.placeholder(tf.float32, [None, 28, 28, 1])
        y = v1.placeholder(tf.int64, [None])
        rate = v1.placeholder_with_default(0.0, [])

        def conv(h, name, shape, seed):
            w = v1.get_variable(name + "_w", initializer=init(shape, seed))
            b = v1.get_variable(name + "_b", initializer=np.zeros(shape[-1], np.float32))
            return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, strides=[1, 1, 1, 1], padding="SAME"), b))

        h = tf.nn.max_pool2d(conv(x, "c1", (3, 3, 1, 8), 0), 2, 2, "SAME")
        c1 = h
        h = tf.nn.max_pool2d(conv(h, "c2", (3, 3, 8, 16), 1), 2, 2, "VALID")
        sc = v1.get_variable("bn_s", initializer=np.ones(16, np.float32))
        of = v1.get_variable("bn_o", initializer=np.zeros(16, np.float32))
        h, bm, bv = v1.nn.fused_batch_norm(h, sc, of, is_training=True)
        h = tf.reshape(h, [-1, 7 * 7 * 16])
        w1 = v1.get_variable("d1", initializer=init((784, 32), 2))
        h = tf.nn.dropout(tf.nn.relu(tf.matmul(h, w1)), rate=rate, seed=4)
        w2 = v1.get_variable("d2", initializer=init((32, 10), 3))
        logits = tf.matmul(h, w2)
        loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        gs = v1.train.get_or_create_global_step()
        train = v1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=gs)
        acc = tf.reduce_mean(tf.cast(tf.nn.in_top_k(targets=y, predictions=logits, k=1), tf.float32))
        grads = tf.gradients(loss, [v1.trainable_variables()[0], w2])
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        # first conv + pool against numpy
        w = init((3, 3, 1, 8), 0)
        xp = np.pad(X[:2], ((0, 0), (1, 1), (1, 1), (0, 0)))
        ref = np.zeros((2, 28, 28, 8), np.float32)
        for i in range(28):
            for j in range(28):
                ref[:, i, j] = np.tensordot(xp[:, i : i + 3, j : j + 3], w, 3)
        ref = np.maximum(ref, 0).reshape(2, 14, 2, 14, 2, 8).max((2, 4))
        check_close(s.run(c1, {x: X[:2]}), ref, "conv+pool", rtol=1e-4, atol=1e-5)
        # the gradient of a weight by finite difference
        f = {x: X[:32], y: Y[:32]}
        g = s.run(grads[1], f)
        W = s.run(w2)
        e = 1e-2
        d = np.zeros_like(W)
        d[3, 5] = e
        if not a.resource:  # a resource variable is a handle: its value cannot be fed
            lp, lm = s.run(loss, {**f, w2: W + d}), s.run(loss, {**f, w2: W - d})
            check_close((lp - lm) / (2 * e), g[3, 5], "gradient", rtol=2e-2, atol=1e-4)
        for ep in range(4):
            for k in range(0, 640, 64):
                s.run(train, {x: X[k : k + 64], y: Y[k : k + 64], rate: 0.1})
        t = float(s.run(acc, {x: TX, y: TY}))
        print("accuracy", t)
        check(t > 0.9, "accuracy", t)
ok()
