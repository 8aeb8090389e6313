"""MLP 784-128-64-10: the first steps equal numpy's, then it learns."""
from common import *

SIZES = [784, 128, 64, 10]


def numpy_step(weights, biases, x, y, rate):
    """One step of gradient descent in place; returns the loss before it."""
    hidden = [x]
    for i, (w, b) in enumerate(zip(weights, biases)):
        z = hidden[-1] @ w + b
        hidden.append(np.maximum(z, 0) if i < 2 else z)
    z = hidden[-1] - hidden[-1].max(1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(p[rows, y]).mean()
    d = p.copy()
    d[rows, y] -= 1
    d /= len(y)
    for i in (2, 1, 0):
        gw, gb = hidden[i].T @ d, d.sum(0)
        d = (d @ weights[i].T) * (hidden[i] > 0)
        weights[i] = weights[i] - rate * gw
        biases[i] = biases[i] - rate * gb
    return loss


@part
def mlp(a):
    images, labels = synthetic_mnist(2000, seed=1)
    test_images, test_labels = synthetic_mnist(500, seed=2)
    random = np.random.RandomState(0)
    weights = [(random.randn(m, n) * np.sqrt(2.0 / m)).astype(np.float32) for m, n in zip(SIZES, SIZES[1:])]
    biases = [np.zeros(n, np.float32) for n in SIZES[1:]]
    x, y = v1.placeholder(tf.float32, [None, 784]), v1.placeholder(tf.int64, [None])
    h, variables = x, []
    for i in range(3):
        w = v1.get_variable("w%d" % i, initializer=weights[i])
        b = v1.get_variable("b%d" % i, initializer=biases[i])
        variables.append(w)
        h = tf.nn.bias_add(tf.matmul(h, w), b)
        h = tf.nn.relu(h) if i < 2 else h
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 10), logits=h))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(h, 1), y), tf.float32))
    step = v1.train.get_or_create_global_step()
    sgd = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    adam = v1.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        for k in range(5):
            bx, by = images[k * 50 : k * 50 + 50], labels[k * 50 : k * 50 + 50]
            # The loss may be read before or after the update of the same step.
            got = s.run(loss, {x: bx, y: by})
            s.run(sgd, {x: bx, y: by})
            check_close(got, numpy_step(weights, biases, bx, by, 0.1), "loss at step %d" % k, rtol=2e-4)
        for v, w in zip(variables, weights):
            check_close(s.run(v), w, v.name, rtol=1e-3, atol=1e-4)
        for _ in range(3):
            for k in range(0, 2000, 100):
                s.run(adam, {x: images[k : k + 100], y: labels[k : k + 100]})
        reached = float(s.run(accuracy, {x: test_images, y: test_labels}))
        check(reached > 0.97, "accuracy", reached)
        check_eq(int(s.run(step)), 65, "global step")


main(__doc__)
