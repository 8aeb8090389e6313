"""Partitioned embeddings and a wide linear model by FTRL, with sparse gradients; the steps equal numpy's."""
from common import *

V, D = 50, 4
RATE = 0.1
OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(RATE),
    "adagrad": lambda: v1.train.AdagradOptimizer(RATE, initial_accumulator_value=0.1),
    "adam": lambda: v1.train.AdamOptimizer(RATE),
}
# The step from zero of a row that was looked up twice, and of one looked up once: the gradient is -1 a lookup.
FIRST_STEP = {
    "sgd": (2 * RATE, RATE),
    "adagrad": (RATE * 2 / np.sqrt(4.1), RATE / np.sqrt(1.1)),
    "adam": (RATE, RATE),
}
# Rows of [3, 49, 17] in the parts of 17, 17 and 16 rows.
ROWS = {"div": [[3], [0], [15]], "mod": [[1], [16], [5]]}


def train_lookups(a, strategy, name):
    ids = v1.placeholder(tf.int64, [None])
    with v1.variable_scope("%s_%s" % (strategy, name), partitioner=v1.fixed_size_partitioner(3)):
        table = v1.get_variable("table", [V, D], initializer=v1.zeros_initializer())
    found = v1.nn.embedding_lookup(table, ids, partition_strategy=strategy)
    loss = 0.5 * tf.reduce_sum(tf.square(found - 1.0))
    train = OPTIMIZERS[name]().minimize(loss)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        feed = {ids: [3, 49, 17, 3]}
        first = s.run(loss, feed)
        s.run(train, feed)
        got = s.run(found, feed)
        twice, once = FIRST_STEP[name]
        check_close(got[0], np.full(D, twice), "row looked up twice", rtol=1e-4)
        check_close(got[1], np.full(D, once), "row looked up once", rtol=1e-4)
        touched = [np.nonzero((part != 0).any(1))[0].tolist() for part in s.run(list(table))]
        check_eq(touched, ROWS[strategy], "rows of the parts")
        for _ in range(60):
            s.run(train, feed)
        check(s.run(loss, feed) < 0.2 * first, "training", s.run(loss, feed), first)


@part
def lookups(a):
    for strategy in ROWS:
        for name in OPTIMIZERS:
            with tf.Graph().as_default():
                train_lookups(a, strategy, name)


@part
def lookups_of_sparse_ids(a):
    table = v1.get_variable("table", [V, D], initializer=v1.random_normal_initializer(seed=3))
    sp = v1.sparse_placeholder(tf.int64)
    outs = {c: v1.nn.embedding_lookup_sparse(table, sp, None, combiner=c) for c in ("sum", "mean", "sqrtn")}
    feed = {sp: v1.SparseTensorValue([[0, 0], [0, 1], [2, 0]], [4, 9, 30], [3, 2])}
    with v1.Session(a.target) as s:
        s.run(table.initializer)
        rows, got = s.run(table), s.run(outs, feed)
        for name, divisor in (("sum", 1), ("mean", 2), ("sqrtn", np.sqrt(2))):
            check_close(got[name][0], (rows[4] + rows[9]) / divisor, name)
            check_close(got[name][1], np.zeros(D), "empty row")
            check_close(got[name][2], rows[30], "single")


def ftrl(w, n, z, g, mask, l1=0.05, l2=0.001, rate=0.5):
    n2 = n + g * g
    z2 = z + g - (np.sqrt(n2) - np.sqrt(n)) / rate * w
    w2 = np.where(np.abs(z2) > l1, (np.sign(z2) * l1 - z2) / (np.sqrt(n2) / rate + 2 * l2), 0.0)
    return np.where(mask, w2, w), np.where(mask, n2, n), np.where(mask, z2, z)


@part
def wide_model_by_ftrl(a):
    batch, ids, width = 64, 400, 8
    random = np.random.RandomState(5)
    truth = np.where(random.rand(ids) < 0.5, random.randn(ids) * 3, 0)

    def data(i):
        r = np.random.RandomState(1000 + i)
        chosen = r.randint(0, ids, (batch, width))
        return chosen, (truth[chosen].sum(1) > 0).astype(np.float32)

    sp, y = v1.sparse_placeholder(tf.int64, [None, width]), v1.placeholder(tf.float32, [None])
    w = v1.get_variable("w", [ids, 1], partitioner=v1.fixed_size_partitioner(2), initializer=v1.zeros_initializer())
    logit = tf.reshape(v1.nn.embedding_lookup_sparse(w, sp, None, combiner="sum", partition_strategy="div"), [-1])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logit))
    train = v1.train.FtrlOptimizer(0.5, l1_regularization_strength=0.05, l2_regularization_strength=0.001).minimize(loss)
    places = [[p, q] for p in range(batch) for q in range(width)]
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        weights, n, z = np.zeros(ids), np.full(ids, 0.1), np.zeros(ids)
        for i in range(30):
            chosen, labels = data(i)
            s.run(train, {sp: v1.SparseTensorValue(places, chosen.reshape(-1), [batch, width]), y: labels})
            d = (1 / (1 + np.exp(-weights[chosen].sum(1))) - labels) / batch
            g = np.zeros(ids)
            np.add.at(g, chosen.reshape(-1), np.repeat(d, width))
            weights, n, z = ftrl(weights, n, z, g, np.bincount(chosen.reshape(-1), minlength=ids) > 0)
        got = np.concatenate(s.run(list(w))).reshape(-1)
        check_close(got, weights, "weights after 30 steps", rtol=2e-3, atol=2e-4)
        check(0.05 < np.mean(got == 0) < 0.99, "L1 makes zeros", np.mean(got == 0))


main(__doc__)
