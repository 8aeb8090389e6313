"""Queues of all kinds: order, blocking, sharing between sessions, closing, cancelling, time limits; accumulators; queue runners."""
from common import *

OUT_OF_RANGE, CANCELLED, INVALID = errors.OutOfRangeError, errors.CancelledError, errors.InvalidArgumentError


class Jobs(object):
    """The same shared queue in a graph of its own."""

    def __init__(self, target, shared_name, capacity=5, **config):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.queue = v1.FIFOQueue(capacity, [tf.int32, tf.string], shapes=[[], []], shared_name=shared_name)
            self.x, self.text = v1.placeholder(tf.int32, []), v1.placeholder(tf.string, [])
            self.put_op = self.queue.enqueue([self.x, self.text])
            self.get, self.get3 = self.queue.dequeue(), self.queue.dequeue_many(3)
            self.size, self.close = self.queue.size(), self.queue.close()
            self.cancel = self.queue.close(cancel_pending_enqueues=True)
        self.session = v1.Session(target, graph=self.graph)
        self.run = self.session.run

    def put(self, i):
        self.run(self.put_op, {self.x: i, self.text: "item%d" % i})


@part
def shared_by_sessions(a):
    one, two = Jobs(a.target, "jobs"), Jobs(a.target, "jobs")
    producer = Thread(lambda: [one.put(i) for i in range(20)])
    until(lambda: two.run(two.size) == 5, "the producer is at the capacity")
    time.sleep(0.1)
    check_eq(int(two.run(two.size)), 5, "the producer is blocked")
    got = [two.run(two.get) for _ in range(17)]
    check_eq([int(i) for i, _ in got], list(range(17)), "order")
    check_eq(got[3][1], b"item3", "strings")
    check_eq(two.run(two.get3)[0].tolist(), [17, 18, 19], "dequeue_many")
    producer.value()
    # A waiting dequeue ends when another session closes the queue.
    waiting = Thread(lambda: two.run(two.get))
    time.sleep(0.2)
    one.run(one.close)
    waiting.error(OUT_OF_RANGE, "FIFOQueue 'jobs' is closed and has insufficient elements (requested 1, current size 0)")
    with raises(CANCELLED, "FIFOQueue 'jobs' is closed."):
        one.put(1)
    with raises(CANCELLED, "Queue 'jobs' is already closed."):
        one.run(one.close)
    one.session.close()
    # The queue outlives the session that closed it.
    with raises(OUT_OF_RANGE, "is closed and has insufficient elements"):
        two.run(two.get)
    two.session.close()


@part
def sharing_must_agree(a):
    first = v1.FIFOQueue(2, tf.float64, shapes=[[]], shared_name="agree").size()
    session = v1.Session(a.target)
    session.run(first)
    for make, text in (
        (lambda: v1.FIFOQueue(2, tf.float32, [[]], shared_name="agree", name="other"),
         "Shared queue 'agree' has component types double but requested component types were float"),
        (lambda: v1.FIFOQueue(3, tf.float64, [[]], shared_name="agree", name="other"),
         "Shared queue 'agree' has capacity 2 but requested capacity was 3"),
        (lambda: v1.FIFOQueue(2, tf.float64, [[2]], shared_name="agree", name="other"),
         "Shared queue 'agree' has component shapes [[]] but requested component shapes were [[2]]"),
    ):  # fmt: skip
        with tf.Graph().as_default():
            size = make().size()
            with v1.Session(a.target) as s, raises(INVALID, text, "[[{{node other}}]]"):
                s.run(size)
    session.close()


@part
def private_queues(a):
    """Without shared_name a queue belongs to its session and goes with it."""
    q = v1.FIFOQueue(9, tf.int32, name="private")
    put, size = q.enqueue(1), q.size()
    with v1.Session(a.target) as one, v1.Session(a.target) as two:
        one.run(put)
        one.run(put)
        check_eq([int(one.run(size)), int(two.run(size))], [2, 0], "two sessions at once")
    with v1.Session(a.target) as s:
        check_eq(int(s.run(size)), 0, "a session after them")


@part
def closing(a):
    q = v1.FIFOQueue(4, tf.float32, shapes=[[]], name="closing")
    put, three, upto, close = q.enqueue(1.0), q.dequeue_many(3), q.dequeue_up_to(3), q.close()
    closed = q.is_closed()
    with v1.Session(a.target) as s:
        s.run(put)
        check_eq(bool(s.run(closed)), False)
        waiting = Thread(lambda: s.run(three))
        time.sleep(0.2)
        s.run(close)
        # It had taken one element, lacks two, and gives the one back.
        waiting.error(OUT_OF_RANGE, "is closed and has insufficient elements (requested 2, current size 0)")
        check_eq(bool(s.run(closed)), True)
        check_eq(s.run(upto).tolist(), [1.0], "dequeue_up_to takes what is left")
        with raises(OUT_OF_RANGE, "(requested 3, current size 0)"):
            s.run(upto)


@part
def cancelled_enqueue(a):
    q = v1.FIFOQueue(1, tf.float32, shapes=[[]], name="full")
    put, cancel = q.enqueue(1.0, name="put"), q.close(cancel_pending_enqueues=True)
    with v1.Session(a.target) as s:
        s.run(put)
        waiting = Thread(lambda: s.run(put))
        time.sleep(0.2)
        s.run(cancel)
        waiting.error(CANCELLED, "Enqueue operation was cancelled", "[[{{node put}}]]")


@part
def time_limit_leaves_no_waiter(a):
    q = v1.FIFOQueue(5, tf.float32, shapes=[[]], name="slow")
    put, get, many, size = q.enqueue(1.0), q.dequeue(), q.dequeue_many(2), q.size()
    with v1.Session(a.target) as s:
        s.run(size)
        for fetch in (get, many):
            start = time.time()
            with raises(errors.DeadlineExceededError, "Deadline Exceeded"):
                s.run(fetch, options=v1.RunOptions(timeout_in_ms=300))
            check(0.2 < time.time() - start < 10, "it took", time.time() - start)
        s.run(put)
        check_eq(int(s.run(size)), 1, "nobody took the element")
        check_eq(float(s.run(get)), 1.0, "the session still works")


@part
def close_of_a_session_cancels_its_steps(a):
    jobs = Jobs(a.target, "never")
    waiting = Thread(lambda: jobs.run(jobs.get))
    time.sleep(0.4)
    jobs.session.close()
    waiting.error(CANCELLED, "Step was cancelled by an explicit call to `Session::Close()`.")
    other = Jobs(a.target, "never")
    other.put(1)
    check_eq(int(other.run(other.size)), 1, "the cancelled dequeue takes nothing")
    other.session.close()


@part
def waiters_in_order(a):
    q = v1.FIFOQueue(50, tf.int32, shapes=[[]], name="line")
    x = v1.placeholder(tf.int32, [])
    put, get = q.enqueue(x), q.dequeue_many(5)
    with v1.Session(a.target) as s:
        s.run(q.size())
        first = Thread(lambda: s.run(get))
        time.sleep(0.15)
        second = Thread(lambda: s.run(get))
        time.sleep(0.15)
        for i in range(10):
            s.run(put, {x: i})
        check_eq([first.value().tolist(), second.value().tolist()], [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])


@part
def shuffle_queue(a):
    q = v1.RandomShuffleQueue(100, 10, tf.int32, shapes=[[]], seed=1)
    fill, get, many, close = q.enqueue_many([list(range(50))]), q.dequeue(), q.dequeue_many(40), q.close()
    with v1.Session(a.target) as s:
        s.run(fill)
        some = s.run(many).tolist()
        check(some != sorted(some), "not shuffled")
        # min_after_dequeue keeps ten back until the queue is closed.
        with raises(errors.DeadlineExceededError):
            s.run(get, options=v1.RunOptions(timeout_in_ms=200))
        s.run(close)
        rest = [int(s.run(get)) for _ in range(10)]
        check_eq(sorted(some + rest), list(range(50)), "a permutation")
        with raises(OUT_OF_RANGE, "RandomShuffleQueue '", "is closed and has insufficient elements (requested 1, current size 0)"):
            s.run(get)


@part
def padding_and_priority(a):
    pad = v1.PaddingFIFOQueue(10, tf.int32, [[None]])
    puts = [pad.enqueue([[1]]), pad.enqueue([[1, 2, 3]])]
    priority = v1.PriorityQueue(10, tf.string, [[]])
    fill = priority.enqueue_many([np.array([3, 1, 2, -5], np.int64), ["c", "a", "b", "first"]])
    with v1.Session(a.target) as s:
        for put in puts:
            s.run(put)
        check_eq(s.run(pad.dequeue_many(2)).tolist(), [[1, 0, 0], [1, 2, 3]], "padding")
        s.run(fill)
        keys, values = s.run(priority.dequeue_many(3))
        check_eq([keys.tolist(), values.tolist()], [[-5, 1, 2], [b"first", b"a", b"b"]], "priority")
        check_eq([x.tolist() if isinstance(x, np.ndarray) else x for x in s.run(priority.dequeue())], [3, b"c"])


@part
def shapes_are_checked(a):
    q = v1.FIFOQueue(3, tf.float32, shapes=[[2]], name="shaped")
    x = v1.placeholder(tf.float32)
    put, put_many = q.enqueue(x), q.enqueue_many(x)
    with v1.Session(a.target) as s:
        with raises(INVALID, "Shape mismatch in tuple component 0. Expected [2], got [3]"):
            s.run(put, {x: [1, 2, 3]})
        with raises(INVALID, "Shape mismatch in tuple component 0. Expected [1,2], got [1,3]"):
            s.run(put_many, {x: [[1, 2, 3]]})
        with raises(errors.DeadlineExceededError):
            s.run(put_many, {x: np.ones([4, 2])}, options=v1.RunOptions(timeout_in_ms=200))
        check_eq(int(s.run(q.size())), 3, "an enqueue_many that was cancelled keeps what it put")


@part
def accumulators(a):
    acc = v1.ConditionalAccumulator(tf.float32, shape=[2], shared_name="acc")
    put = acc.apply_grad([1.0, 3.0], 0)
    take, count, step = acc.take_grad(2), acc.num_accumulated(), acc.set_global_step(5)
    sparse = v1.SparseConditionalAccumulator(tf.float32, shape=[4, 1])
    put_sparse = sparse.apply_indexed_slices_grad(tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1], tf.int64)))
    with v1.Session(a.target) as s:
        waiting = Thread(lambda: s.run(take))
        time.sleep(0.1)
        s.run(put)
        s.run(put)
        check_eq(waiting.value().tolist(), [1.0, 3.0], "mean")
        s.run(step)
        s.run(put)
        check_eq(int(s.run(count)), 0, "a stale gradient is dropped")
        s.run([put_sparse])
        got = s.run(sparse.take_indexed_slices_grad(1))
        check_eq([got.indices.tolist(), got.values.tolist()], [[1], [[2.0]]], "sparse")


@part
def queue_runner(a):
    q = v1.FIFOQueue(10, tf.int32, shapes=[[]])
    source = v1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    v1.train.add_queue_runner(v1.train.QueueRunner(q, [q.enqueue(source * 2)]))
    get = q.dequeue()
    with v1.Session(a.target) as s:
        s.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(s, coordinator)
        out = []
        try:
            while True:
                out.append(int(s.run(get)))
        except OUT_OF_RANGE:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=10)
        check_eq(out, [0, 2, 4, 6, 8, 10])


main(__doc__)
