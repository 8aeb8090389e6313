"""FTRL on a wide sparse linear model over ps tasks: hashed ids -> weights, L1."""

from common import *

a = parse(__doc__)
B, V, N = 64, 400, 8
r = np.random.RandomState(5)
true_w = np.where(r.rand(V) < 0.5, r.randn(V) * 3, 0)  # dense enough that a row of 8 nearly always has a signal


def batch(i):
    rr = np.random.RandomState(1000 + i)
    ids = rr.randint(0, V, (B, N))
    return ids, (true_w[ids].sum(1) + 0.01 * rr.randn(B) > 0).astype(np.float32)


with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        sp = v1.sparse_placeholder(tf.int64, [None, N])
        y = v1.placeholder(tf.float32, [None])
        w = v1.get_variable(
            "w", [V, 1], partitioner=v1.fixed_size_partitioner(len(a.ps)), initializer=v1.zeros_initializer()
        )
        b = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
        logit = (
            tf.reshape(v1.nn.embedding_lookup_sparse(w, sp, None, combiner="sum", partition_strategy="div"), [-1]) + b
        )
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logit))
        gs = v1.train.get_or_create_global_step()
        train = v1.train.FtrlOptimizer(0.5, l1_regularization_strength=0.05, l2_regularization_strength=0.001).minimize(
            loss, global_step=gs
        )
        acc = tf.reduce_mean(tf.cast(tf.equal(logit > 0.0, y > 0.5), tf.float32))

    def feed(i):
        ids, yy = batch(i)
        return {sp: v1.SparseTensorValue([[p, q] for p in range(B) for q in range(N)], ids.reshape(-1), [B, N]), y: yy}

    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        l0 = float(s.run(loss, feed(0)))
        check_close(l0, np.log(2), "first loss")
        # 30 steps replayed in numpy (the sparse apply touches only the rows of the batch)
        lr, l1, l2 = 0.5, 0.05, 0.001
        W, B0 = np.zeros(V), np.zeros(1)
        n, z = np.full(V, 0.1), np.zeros(V)
        nb, zb = np.full(1, 0.1), np.zeros(1)

        def ftrl(w, n, z, g, m):
            n2 = n + g * g
            z2 = z + g - (np.sqrt(n2) - np.sqrt(n)) / lr * w
            w2 = np.where(np.abs(z2) > l1, (np.sign(z2) * l1 - z2) / (np.sqrt(n2) / lr + 2 * l2), 0.0)
            return np.where(m, w2, w), np.where(m, n2, n), np.where(m, z2, z)

        for i in range(30):
            s.run(train, feed(i))
            ids, yy = batch(i)
            d = (1 / (1 + np.exp(-(W[ids].sum(1) + B0))) - yy) / B
            g = np.zeros(V)
            np.add.at(g, ids.reshape(-1), np.repeat(d, N))
            m = np.bincount(ids.reshape(-1), minlength=V) > 0
            W, n, z = ftrl(W, n, z, g, m)
            B0, nb, zb = ftrl(B0, nb, zb, np.array([d.sum()]), np.array([True]))
            if i in (0, 9, 29):
                check_close(
                    np.concatenate(s.run(list(w))).reshape(-1),
                    W,
                    "weights after %d FTRL steps" % (i + 1),
                    rtol=2e-3,
                    atol=2e-4,
                )
                check_close(s.run(b), B0, "bias", rtol=2e-3, atol=2e-4)
        check(0.05 < np.mean(W == 0) < 0.99, "L1 zeros in the replay", np.mean(W == 0))
        for i in range(30, 400):
            s.run(train, feed(i))
        accs = np.mean([s.run(acc, feed(5000 + i)) for i in range(10)])
        W = np.concatenate(s.run(list(w))).reshape(-1)
        print("accuracy", accs, "zero weights", np.mean(W == 0))
        check(accs > 0.85, "accuracy", accs)
        check(np.mean(W == 0) > 0.1, "L1 made no zeros")
ok()
