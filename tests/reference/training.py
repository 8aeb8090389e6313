"""Answers what TensorFlow's training library does: JSON lines in, one JSON line out for each.

A request has a `kind`; the functions below are the kinds. `crates/train/tests/it/tensorflow` asks.
"""

import json
import sys

import tensorflow as tf

tf1 = tf.compat.v1
train = tf1.train
tf1.disable_eager_execution()


def optimizer(request):
    """Variables after some steps of an optimizer on a tiny model."""
    tf1.enable_resource_variables() if request["resource"] else tf1.disable_resource_variables()
    with tf.Graph().as_default():
        step = train.get_or_create_global_step()
        w = tf1.get_variable("w", initializer=[[0.1 * (3 * row + i) - 0.5 for i in range(3)] for row in range(4)])
        b = tf1.get_variable("b", initializer=[0.5, -0.3, 0.2])
        rows = tf.gather(w, [1, 3, 1]) if request["sparse"] else w
        loss = tf.reduce_sum(tf.square(rows + b - 0.33))
        args = {name: step if value == "global_step" else value for name, value in request["args"].items()}
        update = getattr(train, request["optimizer"])(**args).minimize(loss, global_step=step)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(request["steps"]):
                session.run(update)
            variables = tf1.global_variables()
            values = session.run(variables)
        return {v.op.name: value.flatten().tolist() for v, value in zip(variables, values)}


def schedule(request):
    """A learning-rate schedule at some steps."""
    with tf.Graph().as_default():
        step = tf1.placeholder(tf.int64, [])
        first = [request["learning_rate"]] if "learning_rate" in request else []
        rate = getattr(train, request["schedule"])(*first, step, *request["args"])
        with tf1.Session() as session:
            return [float(session.run(rate, {step: at})) for at in request["steps"]]


def clip(request):
    """Clipped values; rows with indices are sparse."""
    with tf.Graph().as_default():
        values = [tf.constant(one) for one in request["values"]]
        norm = request["norm"]
        sparse = tf.IndexedSlices(values[1], tf.constant([2, 0]), tf.constant([4, 2]))
        dense = [values[0], sparse]
        by_global_norm, length = tf.clip_by_global_norm(dense, norm)
        fetches = [
            by_global_norm[0], by_global_norm[1].values, length,
            tf.clip_by_norm(values[0], norm), tf.clip_by_norm(sparse, norm).values,
            tf.clip_by_norm(tf.zeros([2]), norm), tf.clip_by_value(values[0], -0.5, 0.25),
        ]
        with tf1.Session() as session:
            return [value.flatten().tolist() for value in session.run(fetches)]


def moving_average(request):
    """Averages of a variable and a tensor that both grow by one per step."""
    tf1.enable_resource_variables()
    with tf.Graph().as_default():
        w = tf1.get_variable("w", initializer=[1.0, 2.0])
        count = tf1.get_variable("count", initializer=0, trainable=False)
        grow = tf.group(w.assign_add([1.0, 1.0]), count.assign_add(1))
        tensor = tf.identity(w.read_value() * 3.0, name="tripled")
        args = {"num_updates": count} if request["num_updates"] else {}
        averages = train.ExponentialMovingAverage(0.9, zero_debias=request["zero_debias"], **args)
        update = averages.apply([w, tensor])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(4):
                session.run(grow)
                session.run(update)
            variables = tf1.global_variables()
            values = session.run(variables)
        answer = {v.op.name: value.flatten().tolist() for v, value in zip(variables, values)}
        answer["to_restore"] = {name: v.op.name for name, v in averages.variables_to_restore().items()}
        return answer


def devices(request):
    """The devices of a graph's nodes under a replica_device_setter."""
    tf1.enable_resource_variables() if request["resource"] else tf1.disable_resource_variables()
    with tf.Graph().as_default() as graph:
        with tf1.device(train.replica_device_setter(**request["args"])):
            step = train.get_or_create_global_step()
            a = tf1.get_variable("a", initializer=[1.0, 2.0])
            with tf1.device("/device:CPU:0"):
                b = tf1.get_variable("b", initializer=[1.0, 2.0])
            with tf1.device("/job:ps/task:1"):
                c = tf1.get_variable("c", initializer=[1.0, 2.0])
            with tf1.device("/job:other/task:7"):
                d = tf1.get_variable("d", initializer=[1.0, 2.0])
            with tf1.device("/device:GPU:1"):
                x = tf.identity(tf.constant(1.0, name="x"), name="y")
            e = tf1.get_variable("e", initializer=[1.0, 2.0])
            with tf1.device(None):
                tf.constant(1.0, name="free")
            loss = tf.reduce_sum(a * b * c * d * e * x, name="loss")
            train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        return {op.name: op.device for op in graph.get_operations()}


KINDS = {kind.__name__: kind for kind in [optimizer, schedule, clip, moving_average, devices]}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(KINDS[request["kind"]](request)), flush=True)
