"""Answers what TensorFlow's losses, metrics, layers and lookups give: JSON lines in, one JSON line out for each.

A request is {"function": NAME, "batches": [[TENSOR, ...], ...]} where NAME is a function below and a TENSOR is
{"dtype": "float32", "shape": [2], "values": [1, 2]}. The function is built once on placeholders and run on one
batch after another. The answer lists, for each batch, the values of its results, flattened.
`crates/client/tests/it/tensorflow.rs` asks.
"""

import json
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
losses, metrics = tf1.losses, tf1.metrics


def with_gradient(loss, x):
    return [loss, tf.gradients(loss, x)[0]]


def loss(name, **options):
    def build(labels, predictions, weights=1.0):
        value = getattr(losses, name)(labels, predictions, weights, **options)
        return with_gradient(value, predictions)

    return build


def reduced(reduction):
    return loss("mean_squared_error", reduction=reduction)


def total_loss(labels, predictions):
    losses.mean_squared_error(labels, predictions)
    losses.absolute_difference(labels, predictions)
    return [losses.get_total_loss()]


def metric(name, **options):
    def build(*args, **more):
        value, update = getattr(metrics, name)(*args, **options, **more)
        return [update, value]

    return build


def weighted_accuracy(labels, predictions, weights):
    return metric("accuracy")(labels, predictions, weights=weights)


def dense(x, kernel, bias):
    y = tf.nn.relu(tf.nn.bias_add(tf.tensordot(x, kernel, 1), bias))
    return [y, *tf.gradients(y, [x])]


def conv2d(x, kernel, bias):
    y = tf.nn.conv2d(x, kernel, strides=[1, 2, 2, 1], padding="SAME")
    return [tf.tanh(tf.nn.bias_add(y, bias))]


def pooling(x):
    return [tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.nn.avg_pool2d(x, [3, 2], [1, 2], "SAME")]


def dropout(x):
    tf1.set_random_seed(7)
    return [tf1.nn.dropout(x, rate=0.3, seed=3)]


def dropout_decided(x, training):
    tf1.set_random_seed(7)
    y = tf1.cond(training, lambda: tf1.nn.dropout(x, rate=0.3, seed=3), lambda: tf.identity(x))
    return [y, *tf.gradients(y, [x])]


def moving_averages(mean, variance):
    """After one step with momentum 0.99, from 0 and 1."""
    return tf.stack([0.01 * mean, 0.99 + 0.01 * variance])


def batch_norm(x):
    channels = x.shape[-1]
    y, mean, variance = tf1.nn.fused_batch_norm(x, tf.ones(channels), tf.zeros(channels), epsilon=1e-3)
    return [y, moving_averages(mean, variance), tf.gradients(y * y * y, x)[0]]


def batch_norm_of_vectors(x):
    mean, variance = tf.nn.moments(x, [0])
    y = tf.nn.batch_normalization(x, mean, variance, tf.zeros(x.shape[-1]), tf.ones(x.shape[-1]), 1e-3)
    return [y, moving_averages(mean, variance), tf.gradients(y * y * y, x)[0]]


def batch_norm_decided(x, training):
    """What the layers of TensorFlow 1 build for a tensor `training`, images and vectors."""
    channels = x.shape[-1]
    averages = [
        tf1.get_variable(name, channels, initializer=initializer(), trainable=False)
        for name, initializer in (("mean", tf1.zeros_initializer), ("variance", tf1.ones_initializer))
    ]
    ones, zeros = tf.ones(channels), tf.zeros(channels)

    def of_batch():
        if x.shape.rank == 4:
            return list(tf1.nn.fused_batch_norm(x, ones, zeros, epsilon=1e-3))
        mean, variance = tf.nn.moments(x, [0])
        return [tf.nn.batch_normalization(x, mean, variance, zeros, ones, 1e-3), mean, variance]

    def with_averages():
        mean, variance = (average.read_value() for average in averages)
        return [tf.nn.batch_normalization(x, mean, variance, zeros, ones, 1e-3), mean, variance]

    y, *used = tf1.cond(training, of_batch, with_averages)
    rate = tf.where(training, 0.01, 0.0)
    updates = [average.assign_sub((average - value) * rate) for average, value in zip(averages, used)]
    with tf.control_dependencies(updates):
        moved = tf.stack([average.read_value() for average in averages])
    return [y, moved, tf.gradients(y * y * y, x)[0]]


def lookup(strategy):
    def build(table, ids):
        rows = table.shape[0]
        sizes = [rows // 3 + (part < rows % 3) for part in range(3)]
        parts = tf.split(table, sizes)
        found = tf1.nn.embedding_lookup(parts, ids, partition_strategy=strategy)
        grads = tf.gradients(tf.square(found), table)
        return [found, tf.convert_to_tensor(grads[0])]

    return build


def lookup_sparse(combiner, weighted):
    def build(table, indices, ids, weights):
        shape = tf.constant([3, 4], tf.int64)
        weights = tf.SparseTensor(indices, weights, shape) if weighted else None
        ids = tf.SparseTensor(indices, ids, shape)
        found = tf1.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)
        return [found, tf.convert_to_tensor(tf.gradients(tf.square(found), table)[0])]

    return build


FUNCTIONS = {
    **{
        name: loss(name)
        for name in (
            "mean_squared_error absolute_difference log_loss hinge_loss "
            "sigmoid_cross_entropy softmax_cross_entropy sparse_softmax_cross_entropy"
        ).split()
    },
    "huber_loss": loss("huber_loss", delta=0.5),
    "smooth_softmax": loss("softmax_cross_entropy", label_smoothing=0.1),
    "smooth_sigmoid": loss("sigmoid_cross_entropy", label_smoothing=0.1),
    "reduction_none": reduced("none"),
    "reduction_sum": reduced("weighted_sum"),
    "reduction_mean": reduced("weighted_mean"),
    "reduction_batch": reduced("weighted_sum_over_batch_size"),
    "total_loss": total_loss,
    "mean": metric("mean"),
    "accuracy": metric("accuracy"),
    "weighted_accuracy": weighted_accuracy,
    "precision": metric("precision"),
    "recall": metric("recall"),
    "auc_roc": metric("auc"),
    "auc_pr": metric("auc", curve="PR"),
    "dense": dense,
    "conv2d": conv2d,
    "pooling": pooling,
    "dropout": dropout,
    "dropout_decided": dropout_decided,
    "batch_norm": batch_norm,
    "batch_norm_decided": batch_norm_decided,
    "batch_norm_of_vectors": batch_norm_of_vectors,
    "lookup_mod": lookup("mod"),
    "lookup_div": lookup("div"),
    **{
        "sparse_%s%s" % (combiner, "_weighted" if weighted else ""): lookup_sparse(combiner, weighted)
        for combiner in ("sum", "mean", "sqrtn")
        for weighted in (False, True)
    },
}


def array(tensor):
    return np.array(tensor["values"], tensor["dtype"]).reshape(tensor["shape"])


def answer(request):
    batches = [[array(tensor) for tensor in batch] for batch in request["batches"]]
    with tf.Graph().as_default():
        inputs = [tf1.placeholder(value.dtype, value.shape) for value in batches[0]]
        results = FUNCTIONS[request["function"]](*inputs)
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            answers = []
            for batch in batches:
                feeds = dict(zip(inputs, batch))
                # One after another: a metric's value is read after its update.
                answers.append([session.run(result, feeds).flatten().tolist() for result in results])
            return answers


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
