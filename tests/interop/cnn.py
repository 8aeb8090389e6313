"""A small CNN with pooling, batch norm and dropout: the first layer equals numpy's, a gradient its finite difference, and it learns."""
from common import *


def start(shape, seed):
    return (np.random.RandomState(seed).randn(*shape) * np.sqrt(2.0 / np.prod(shape[:-1]))).astype(np.float32)


def images(n, seed):
    x, y = synthetic_mnist(n, seed)
    return x.reshape(-1, 28, 28, 1), y


def numpy_conv_pool(x, w):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.zeros((len(x), 28, 28, w.shape[-1]), np.float32)
    for i in range(28):
        for j in range(28):
            out[:, i, j] = np.tensordot(padded[:, i : i + 3, j : j + 3], w, 3)
    return np.maximum(out, 0).reshape(len(x), 14, 2, 14, 2, -1).max((2, 4))


@part
def cnn(a):
    x, y = v1.placeholder(tf.float32, [None, 28, 28, 1]), v1.placeholder(tf.int64, [None])
    rate, bump = v1.placeholder_with_default(0.0, []), v1.placeholder_with_default(np.zeros([32, 10], np.float32), [32, 10])

    def conv(h, name, shape, seed):
        w = v1.get_variable(name + "_w", initializer=start(shape, seed))
        b = v1.get_variable(name + "_b", initializer=np.zeros(shape[-1], np.float32))
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, strides=[1, 1, 1, 1], padding="SAME"), b))

    first = tf.nn.max_pool2d(conv(x, "c1", (3, 3, 1, 8), 0), 2, 2, "SAME")
    h = tf.nn.max_pool2d(conv(first, "c2", (3, 3, 8, 16), 1), 2, 2, "VALID")
    scale = v1.get_variable("scale", initializer=np.ones(16, np.float32))
    offset = v1.get_variable("offset", initializer=np.zeros(16, np.float32))
    h, mean, variance = v1.nn.fused_batch_norm(h, scale, offset, is_training=True)
    h = tf.reshape(h, [-1, 7 * 7 * 16])
    h = tf.nn.relu(tf.matmul(h, v1.get_variable("d1", initializer=start((784, 32), 2))))
    h = tf.nn.dropout(h, rate=rate, seed=4)
    last = v1.get_variable("d2", initializer=start((32, 10), 3))
    logits = tf.matmul(h, last + bump)
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    (slope,) = tf.gradients(loss, bump)
    train = v1.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(targets=y, predictions=logits, k=1), tf.float32))
    data, labels = images(640, 1)
    test, test_labels = images(256, 2)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        want = numpy_conv_pool(data[:2], start((3, 3, 1, 8), 0))
        check_close(s.run(first, {x: data[:2]}), want, "first layer", rtol=1e-4, atol=1e-5)
        feed = {x: data[:32], y: labels[:32]}
        d = np.zeros([32, 10], np.float32)
        d[3, 5] = 1e-2
        up, down = s.run(loss, {**feed, bump: d}), s.run(loss, {**feed, bump: -d})
        check_close((up - down) / 2e-2, s.run(slope, feed)[3, 5], "gradient", rtol=2e-2, atol=1e-4)
        for _ in range(3):
            for k in range(0, 640, 64):
                s.run(train, {x: data[k : k + 64], y: labels[k : k + 64], rate: 0.1})
        reached = float(s.run(accuracy, {x: test, y: test_labels}))
        check(reached > 0.9, "accuracy", reached)


main(__doc__)
