"""Input pipelines in the graph: datasets and their iterators on the task that uses them, a client elsewhere, training from them."""

from common import *

a = parse(__doc__)
data = tf.data
DEVICES = ["/job:worker/task:%d" % i for i in range(len(a.workers))]
HERE = "/job:localhost"


def drain(session, fetch, init=None):
    """All that a fetch gives until the end."""
    out = []
    if init is not None:
        session.run(init)
    while True:
        try:
            out.append(session.run(fetch))
        except errors.OutOfRangeError as e:
            check("End of sequence" in e.message, "the end says what it is:", e.message)
            return out


def listed(x):
    if isinstance(x, dict):
        return {key: listed(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [listed(y) for y in x]
    return x.tolist() if isinstance(x, np.ndarray) else x


def pulled(target, device, build):
    """The elements of a dataset on a device, by one-shot iterator."""
    with tf.Graph().as_default(), v1.device(device):
        v1.set_random_seed(7)
        fetch = v1.data.make_one_shot_iterator(build()).get_next()
        with v1.Session(target) as s:
            return [listed(x) for x in drain(s, fetch)]


# what is the same wherever it runs: every worker, asked by the first one's master, gives what this process gives
files = [os.path.join(a.workdir, "part%d" % i) for i in range(3)]
for i, path in enumerate(files):
    with tf.io.TFRecordWriter(path + ".tfrecord") as out:
        for j in range(4):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, j])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i * 4 + j])),
            }
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    with tf.io.TFRecordWriter(path + ".gz", tf.io.TFRecordOptions("GZIP")) as out:
        out.write(b"packed %d" % i)
    with open(path + ".txt", "w") as out:
        out.write("".join("line %d of %d\n" % (j, i) for j in range(3)))
    with open(path + ".bin", "wb") as out:
        out.write(b"head" + bytes(range(i, i + 6)) + b"foot")


def names(end):
    return data.Dataset.from_tensor_slices([f + end for f in files])


def parse_example(text):
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    got = tf.io.parse_single_example(text, spec)
    return got["x"], got["y"]


def ragged(n):
    return data.Dataset.range(n).map(lambda x: tf.fill([x], x))


def below(n):
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [tf.constant(0, tf.int64)] * 2)[1]


AUTO = data.AUTOTUNE
D = data.Dataset
CASES = {
    "usual": lambda: D.range(100)
    .filter(lambda x: tf.equal(x % 3, 0))
    .map(lambda x: (x * x, tf.strings.as_string(x)), num_parallel_calls=4)
    .shuffle(10, seed=3)
    .repeat(2)
    .batch(8)
    .prefetch(2),
    "shuffle_again": lambda: D.range(20).shuffle(20, seed=5).repeat(3),
    "shuffle_same": lambda: D.range(20).shuffle(7, seed=5, reshuffle_each_iteration=False).repeat(2),
    "sources": lambda: D.zip(
        (
            D.from_tensor_slices({"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]}),
            D.range(5, 0, -2),
            D.from_tensors(1.5).repeat(),
        )
    ),
    "sparse": lambda: D.from_tensor_slices(tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])).map(tf.sparse.to_dense),
    "records": lambda: data.TFRecordDataset([f + ".tfrecord" for f in files]).map(parse_example, AUTO).batch(5),
    "packed": lambda: data.TFRecordDataset([f + ".gz" for f in files], compression_type="GZIP"),
    "lines": lambda: data.TextLineDataset(names(".txt")).skip(1),
    "fixed": lambda: data.FixedLengthRecordDataset([f + ".bin" for f in files], 2, 4, 4).map(
        lambda r: tf.io.decode_raw(r, tf.uint8)
    ),
    "interleave": lambda: names(".txt").interleave(data.TextLineDataset, cycle_length=2, block_length=2),
    "interleave_ahead": lambda: names(".txt").interleave(
        data.TextLineDataset, cycle_length=2, block_length=1, num_parallel_calls=2
    ),
    "flat_map": lambda: D.range(4).flat_map(lambda n: D.range(n).concatenate(D.from_tensors(n * 10))),
    "padded": lambda: ragged(5).padded_batch(2, padded_shapes=[None], padding_values=tf.constant(-1, tf.int64)),
    "padded_dropped": lambda: ragged(5).padded_batch(2, padded_shapes=[6], drop_remainder=True),
    "unbatch": lambda: D.from_tensors(np.arange(6).reshape(3, 2)).unbatch(),
    "window": lambda: D.range(7).window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3)),
    "scan": lambda: D.range(1, 6).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * x)),
    "take_while": lambda: D.range(10).take_while(lambda x: x < 4),
    "unique": lambda: D.from_tensor_slices([3, 1, 3, 2, 1]).unique(),
    "shards": lambda: D.range(10).shard(3, 1).concatenate(D.range(10).skip(8).take(5)),
    "cache": lambda: D.range(5).shuffle(5, seed=1).cache().repeat(2),
    "cond": lambda: D.range(6).map(lambda x: tf.cond(x > 2, lambda: x, lambda: -x)),
    "loop": lambda: D.range(5).map(below),
    "nested_batches": lambda: D.range(12).batch(2).batch(3, drop_remainder=True).prefetch(AUTO),
    "rebatch": lambda: D.range(10).batch(4).rebatch(3),
    "no_elements": lambda: D.range(0).repeat(),
    "options": lambda: with_options(D.range(3)),
}


def with_options(dataset):
    options = data.Options()
    options.threading.private_threadpool_size = 2
    options.deterministic = True
    return dataset.with_options(options)


for name, build in CASES.items():
    expected = pulled("", HERE, build)
    for device in DEVICES:
        check_eq(pulled(a.target, device, build), expected, "%s on %s" % (name, device))

# initializable: fed anew each time, and begun again after the end
with tf.Graph().as_default():
    with v1.device(DEVICES[-1]):
        start, stop = v1.placeholder(tf.int64, []), v1.placeholder(tf.int64, [])
        dataset = D.range(start, stop).map(lambda x: x + start).batch(2)
        it = v1.data.make_initializable_iterator(dataset)
        x = it.get_next()
        count = dataset.cardinality()
    with v1.Session(a.target) as s:
        with raises(errors.FailedPreconditionError):
            s.run(x)
        for limits in ((0, 5), (3, 6)):
            feed = {start: limits[0], stop: limits[1]}
            s.run(it.initializer, feed)
            values = [v + limits[0] for v in range(*limits)]
            check_eq(np.concatenate(drain(s, x)).tolist(), values, "fed")
        with raises(errors.OutOfRangeError):
            s.run(x)
        s.run(it.initializer, {start: 0, stop: 9})
        check_eq(s.run(x).tolist(), [0, 1], "begun again")

# shared by name: two sessions with different masters take turns
def shared():
    with tf.Graph().as_default() as g, v1.device(DEVICES[0]):
        it = v1.data.make_initializable_iterator(D.range(6), shared_name="pipelines_shared")
        return g, it.initializer, it.get_next()


(g1, init1, x1), (g2, init2, x2) = shared(), shared()
with v1.Session(grpc(a.workers[0]), graph=g1) as s1, v1.Session(grpc(a.workers[-1]), graph=g2) as s2:
    s1.run(init1)
    check_eq([int(s.run(x)) for s, x in ((s1, x1), (s2, x2), (s1, x1), (s2, x2))], [0, 1, 2, 3], "in turns")
    s2.run(init2)
    check_eq(int(s1.run(x1)), 0, "begun again by the other")

# feedable: which iterator is said by a string
with tf.Graph().as_default(), v1.device(DEVICES[-1]):
    handle = v1.placeholder(tf.string, [])
    one = D.range(3).repeat()
    two = D.range(100, 103)
    it = v1.data.Iterator.from_string_handle(handle, v1.data.get_output_types(one), v1.data.get_output_shapes(one))
    x = it.get_next()
    train, test = v1.data.make_one_shot_iterator(one), v1.data.make_initializable_iterator(two)
    with v1.Session(a.target) as s:
        h1, h2 = s.run([train.string_handle(), test.string_handle()])
        check_eq([int(s.run(x, {handle: h1})) for _ in range(4)], [0, 1, 2, 0], "one")
        for _ in range(2):
            s.run(test.initializer)
            got = []
            with raises(errors.OutOfRangeError):
                while True:
                    got.append(int(s.run(x, {handle: h2})))
            check_eq(got, [100, 101, 102], "two")
        check_eq(int(s.run(x, {handle: h1})), 1, "one goes on")
    # reinitializable: one place, two datasets
    place = v1.data.Iterator.from_structure(tf.int64, [])
    y = place.get_next()
    inits = [place.make_initializer(one.take(2)), place.make_initializer(two)]
    with v1.Session(a.target) as s:
        check_eq([[int(v) for v in drain(s, y, i)] for i in inits], [[0, 1], [100, 101, 102]], "one place")

# functions that use what is on their task: a variable, a table
with tf.Graph().as_default(), v1.device(DEVICES[-1]):
    w = v1.get_variable("w", initializer=tf.constant(2, tf.int64), use_resource=True)
    keys = tf.lookup.KeyValueTensorInitializer([0, 1, 2], ["a", "b", "c"], tf.int64, tf.string)
    table = tf.lookup.StaticHashTable(keys, "?")
    it = v1.data.make_initializable_iterator(D.range(4).map(lambda n: (n * w, table.lookup(n))))
    x = it.get_next()
    up = w.assign_add(1)
    with v1.Session(a.target) as s:
        s.run([v1.global_variables_initializer(), v1.tables_initializer()])
        s.run(it.initializer)
        check_eq(listed(s.run(x)), [0, b"a"], "with w = 2")
        s.run(up)
        values = [listed(v) for v in drain(s, x, it.initializer)]
        check_eq(values, [[0, b"a"], [3, b"b"], [6, b"c"], [9, b"?"]], "with w = 3")

# whole datasets in a step; what a function says of its failure; the iterator goes on behind it
with tf.Graph().as_default(), v1.device(DEVICES[0]):
    total = D.range(10).reduce(tf.constant(0, tf.int64), lambda s, x: s + x)
    only = D.range(3).batch(3).get_single_element()
    many = D.range(3).get_single_element()
    picky = D.range(3).map(lambda x: tf.debugging.check_numerics(1 / (x - 1), "bad number"))
    strict = v1.data.make_one_shot_iterator(picky).get_next()
    maybe = v1.data.make_one_shot_iterator(D.range(1))
    optional = data.experimental.get_next_as_optional(maybe)
    has, value = optional.has_value(), optional.get_value()
    with v1.Session(a.target) as s:
        check_eq(int(s.run(total)), 45, "reduced")
        check_eq(s.run(only).tolist(), [0, 1, 2], "only")
        with raises(errors.InvalidArgumentError, "more than one element"):
            s.run(many)
        check_eq(float(s.run(strict)), -1.0, "before")
        with raises(errors.InvalidArgumentError, "bad number"):
            s.run(strict)
        check_eq(float(s.run(strict)), 1.0, "behind")
        check_eq([bool(v) if i == 0 else int(v) for i, v in enumerate(s.run([has, value]))], [True, 0], "a value")
        check_eq(bool(s.run(has)), False, "no value")

# a function that waits: the step ends when its time is over, and so does the session
with tf.Graph().as_default(), v1.device(DEVICES[0]):
    queue = v1.FIFOQueue(10, [tf.int64], [[]], shared_name="pipelines_queue")
    dataset = D.range(3).map(lambda x: x + queue.dequeue())
    it = v1.data.make_initializable_iterator(dataset)
    x, put = it.get_next(), queue.enqueue(tf.constant(10, tf.int64))
    with v1.Session(a.target) as s:
        s.run(it.initializer)
        s.run(put)
        check_eq(int(s.run(x)), 10, "from the queue")
        waiting = Thread(lambda: s.run(x))
        time.sleep(0.3)
        s.run(put)
        check_eq(int(waiting.value()), 11, "waited for")
        began = time.time()
        with raises(errors.DeadlineExceededError):
            s.run(x, options=v1.RunOptions(timeout_in_ms=500))
        check(time.time() - began < 20, "a step that waits ends in time")

# between-graph training: each worker has its own shard of the records and its own pipeline, the weights are on the ps
true = np.array([2.0, -3.0], np.float32)


def trainer(index):
    with tf.Graph().as_default():
        with v1.device(v1.train.replica_device_setter(worker_device=DEVICES[index], cluster=a.cluster_dict)):
            w = v1.get_variable("w", initializer=np.zeros(2, np.float32), use_resource=a.resource)
            step = v1.train.get_or_create_global_step()
            with v1.device(DEVICES[index]):
                records = names(".tfrecord").shard(len(DEVICES), index).repeat()
                examples = records.interleave(data.TFRecordDataset, cycle_length=2).map(parse_example, 2)
                batches = examples.map(lambda x, y: (x, tf.reduce_sum(x * true))).shuffle(16, seed=1).batch(8).prefetch(2)
                x, y = v1.data.make_one_shot_iterator(batches).get_next()
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, w) - y))
            train = v1.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
            init, ready = v1.global_variables_initializer(), v1.report_uninitialized_variables()
        with v1.Session(grpc(a.workers[index])) as s:
            if index == 0:
                s.run(init)
            while len(s.run(ready)):
                time.sleep(0.05)
            losses = [float(s.run([loss, train])[0]) for _ in range(150)]
            return losses[0], losses[-1], s.run(w), int(s.run(step))


threads = [Thread(trainer, i) for i in range(len(DEVICES))]
results = [t.value() for t in threads]
check(max(r[3] for r in results) == 150 * len(DEVICES), "all steps counted", results)
check(np.abs(results[-1][2] - true).max() < 0.1, "the weights are found", results)
ok()
