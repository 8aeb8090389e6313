"""A GRU by while_loop with TensorArrays, trained through the loop: forward equals numpy's, gradients a local session's, and it learns."""
from common import *

T, B, H = 12, 32, 24


def batch(i):
    """To say what came one and three steps before the end: class 0, 1 or 2."""
    x = np.random.RandomState(i).randint(0, 2, (B, T)).astype(np.float32)
    return x[..., None], (2 * x[:, -3] + x[:, -1] - x[:, -3] * x[:, -1]).astype(np.int64)


class Model(object):
    def __init__(self):
        self.x, self.y = v1.placeholder(tf.float32, [B, None, 1]), v1.placeholder(tf.int64, [B])
        random = np.random.RandomState(1)
        weight = lambda name, *shape: v1.get_variable(name, initializer=(random.randn(*shape) * 0.3).astype(np.float32))
        self.weights = [weight("wz", 1 + H, 2 * H), weight("wc", 1 + H, H), weight("wo", H, 3)]
        wz, wc, wo = self.weights
        n = tf.shape(self.x)[1]
        inputs = tf.TensorArray(tf.float32, size=n).unstack(tf.transpose(self.x, [1, 0, 2]))

        def step(t, h, out):
            xt = inputs.read(t)
            z, r = tf.split(tf.sigmoid(tf.matmul(tf.concat([xt, h], 1), wz) + 1.0), 2, 1)
            c = tf.tanh(tf.matmul(tf.concat([xt, r * h], 1), wc))
            h = z * h + (1 - z) * c
            h.set_shape([B, H])
            return t + 1, h, out.write(t, h)

        start = [0, tf.zeros([B, H]), tf.TensorArray(tf.float32, size=n)]
        _, self.h, out = tf.while_loop(lambda t, h, o: t < n, step, start, parallel_iterations=4)
        self.sequence = out.stack()
        logits = tf.matmul(self.h, wo)
        losses = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=logits)
        self.loss = tf.reduce_mean(losses)
        self.gradients = tf.gradients(self.loss, self.weights)
        self.train = v1.train.AdamOptimizer(0.02).minimize(self.loss)
        self.init = v1.global_variables_initializer()

    def feed(self, i):
        return dict(zip([self.x, self.y], batch(i)))


def numpy_forward(weights, x):
    wz, wc, _ = weights
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h, out = np.zeros([B, H]), []
    for t in range(x.shape[1]):
        z, r = np.split(sigmoid(np.concatenate([x[:, t], h], 1) @ wz + 1.0), 2, 1)
        c = np.tanh(np.concatenate([x[:, t], r * h], 1) @ wc)
        h = z * h + (1 - z) * c
        out.append(h)
    return np.stack(out)


@part
def gru(a):
    m = Model()
    with v1.Session() as local:
        local.run(m.init)
        want = local.run(m.gradients, m.feed(0))
    with v1.Session(a.target) as s:
        s.run(m.init)
        x, y = batch(0)
        check_close(s.run(m.sequence, {m.x: x}), numpy_forward(s.run(m.weights), x), "forward", rtol=1e-4, atol=1e-5)
        check_eq(s.run(m.sequence, {m.x: x[:, :3]}).shape, (3, B, H), "another length")
        for got, wanted in zip(s.run(m.gradients, m.feed(0)), want):
            check_close(got, wanted, "gradient", rtol=1e-3, atol=1e-5)
        losses = [float(s.run([m.train, m.loss], m.feed(i))[1]) for i in range(150)]
        check(np.mean(losses[-20:]) < 0.4 * np.mean(losses[:5]), "loss", losses[0], losses[-1])


main(__doc__)
