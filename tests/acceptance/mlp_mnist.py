"""MNIST-like MLP 784-128-64-10 over 2 ps; the first steps match numpy's."""

from common import *

a = parse(__doc__)
X, Y = synthetic_mnist(2000, seed=1)
TX, TY = synthetic_mnist(500, seed=2)
r = np.random.RandomState(0)
sizes = [784, 128, 64, 10]
Ws = [(r.randn(m, n) * np.sqrt(2.0 / m)).astype(np.float32) for m, n in zip(sizes, sizes[1:])]
Bs = [np.zeros(n, np.float32) for n in sizes[1:]]
with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        x = v1.placeholder(tf.float32, [None, 784])
        y = v1.placeholder(tf.int64, [None])
        h = x
        vs = []
        for i, (w, b) in enumerate(zip(Ws, Bs)):
            W = v1.get_variable("w%d" % i, initializer=w)
            B = v1.get_variable("b%d" % i, initializer=b)
            vs += [W, B]
            h = tf.nn.bias_add(tf.matmul(h, W), B)
            if i < 2:
                h = tf.nn.relu(h)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 10), logits=h))
        acc = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(h, 1), y), tf.float32))
        gs = v1.train.get_or_create_global_step()
        sgd = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=gs)
        adam = v1.train.AdamOptimizer(1e-3).minimize(loss, global_step=gs)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        for step in range(5):
            bx, by = X[step * 50 : step * 50 + 50], Y[step * 50 : step * 50 + 50]
            l, _ = s.run([loss, sgd], {x: bx, y: by})
            hs = [bx]
            for i in range(3):
                z = hs[-1] @ Ws[i] + Bs[i]
                hs.append(np.maximum(z, 0) if i < 2 else z)
            z = hs[-1] - hs[-1].max(1, keepdims=True)
            p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
            check_close(l, -np.log(p[np.arange(50), by]).mean(), "loss at step %d" % step, rtol=2e-4)
            d = p.copy()
            d[np.arange(50), by] -= 1
            d /= 50
            for i in (2, 1, 0):
                gw, gb = hs[i].T @ d, d.sum(0)
                d = (d @ Ws[i].T) * (hs[i] > 0)
                Ws[i] = Ws[i] - 0.1 * gw
                Bs[i] = Bs[i] - 0.1 * gb
        for i in range(3):
            check_close(s.run(vs[2 * i]), Ws[i], "w%d after 5 steps" % i, rtol=1e-3, atol=1e-4)
        for e in range(5):
            for k in range(0, 2000, 100):
                s.run(adam, {x: X[k : k + 100], y: Y[k : k + 100]})
        t = float(s.run(acc, {x: TX, y: TY}))
        print("test accuracy", t, "steps", s.run(gs))
        check(t > 0.97, "accuracy", t)
ok()
