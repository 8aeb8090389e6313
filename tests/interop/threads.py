"""Many threads and sessions at once; steps while the graph grows; private and shared state."""
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops

from common import *

THREADS, RUNS = 16, 25


def all_values(threads):
    return [t.value(60) for t in threads]


@part
def a_session_each(a):
    def work(i):
        with tf.Graph().as_default():
            v = v1.Variable(np.full([64], i, np.float32), name="private%d" % i, use_resource=a.resource)
            p = v1.placeholder(tf.float32, [])
            add = v1.assign_add(v, tf.fill([64], p))
            with v1.Session(a.target) as s:
                s.run(v.initializer)
                for k in range(RUNS):
                    check_eq(float(s.run(add, {p: 1.0})[0]), float(i + k + 1), "thread %d step %d" % (i, k))

    all_values([Thread(work, i) for i in range(THREADS)])


@part
def one_session_for_all(a):
    count = v1.Variable(0, dtype=tf.int32, name="count", use_resource=True)
    more = count.assign_add(1, read_value=False)
    value = count.read_value()
    with v1.Session(a.target) as s:
        s.run(count.initializer)
        all_values([Thread(lambda: [s.run(more) for _ in range(RUNS)]) for _ in range(THREADS)])
        check_eq(int(s.run(value)), THREADS * RUNS, "assign_add is atomic")
    with v1.Session(a.target) as s:
        check_eq(int(s.run(value)), THREADS * RUNS, "the variable outlives its session")
    with v1.Session(a.target, config=v1.ConfigProto(isolate_session_state=True)) as s:
        with raises(errors.FailedPreconditionError, "uninitialized"):
            s.run(value)
        s.run(count.initializer)
        check_eq(int(s.run(value)), 0, "isolated state")
    with v1.Session(a.target) as s:
        check_eq(int(s.run(value)), THREADS * RUNS, "isolation did not leak")


@part
def locked_ref_variable(a):
    count = v1.Variable(0, dtype=tf.int32, name="locked", use_resource=False)
    more = v1.assign_add(count, 1, use_locking=True).op
    with v1.Session(a.target) as s:
        s.run(count.initializer)
        all_values([Thread(lambda: [s.run(more) for _ in range(RUNS)]) for _ in range(THREADS)])
        check_eq(int(s.run(count)), THREADS * RUNS)


@part
def signatures_at_once(a):
    """Each thread runs fetches of its own, so that graphs are built while others run."""
    x = v1.placeholder(tf.float32, [])
    ys = [x * float(k) + 1.0 for k in range(THREADS)]
    with v1.Session(a.target) as s:
        work = lambda k: [float(s.run(ys[k], {x: i})) for i in range(RUNS)]
        got = all_values([Thread(work, k) for k in range(THREADS)])
        check_eq(got, [[i * float(k) + 1.0 for i in range(RUNS)] for k in range(THREADS)])


@part
def a_loop_that_turns_out_long(a):
    """Others are answered meanwhile, however short the step used to be."""
    limit = v1.placeholder(tf.int32, [])

    @function.Defun(tf.int32, tf.int32)
    def below(i, n):
        return i < n

    @function.Defun(tf.int32, tf.int32)
    def next_one(i, n):
        return i + 1, n

    called = functional_ops.While([tf.constant(0), limit], below, next_one)
    inline = v1.while_loop(lambda i: i < limit, lambda i: i + 1, [tf.constant(0)])
    one = tf.constant(1)
    for count in inline, called[0]:
        loop_that_turns_out_long(a, limit, count, one)


def loop_that_turns_out_long(a, limit, count, one):
    with v1.Session(a.target) as s, v1.Session(a.target) as other:
        for _ in range(30):
            check_eq(int(s.run(count, {limit: 5})), 5)

        def endless():
            with raises(errors.DeadlineExceededError):
                s.run(count, {limit: 2**31 - 1}, options=v1.RunOptions(timeout_in_ms=5000))

        loop = Thread(endless)
        time.sleep(0.5)
        check_eq(int(other.run(one)), 1)
        check(loop.is_alive(), "the answer came after the loop")
        loop.value(60)


@part
def run_while_another_extends(a):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [])
        y = x + 1.0
    stop = threading.Event()

    def run():
        n = 0
        while not stop.is_set():
            check_eq(float(s.run(y, {x: n})), n + 1.0)
            n += 1
        return n

    with v1.Session(a.target, graph=graph) as s:
        s.run(y, {x: 0.0})
        runners = [Thread(run) for _ in range(4)]
        for k in range(40):
            with graph.as_default():
                z = y * float(k)
            check_eq(float(s.run(z, {x: 1.0})), 2.0 * k, "new node %d" % k)
        stop.set()
        check(all(n > 0 for n in all_values(runners)), "runners did nothing")


@part
def blocked_steps_do_not_starve_others(a):
    """More steps wait in queues than the server has threads, and others still run."""
    q = v1.FIFOQueue(100, tf.int32, shapes=[[]])
    get, put, one = q.dequeue(), q.enqueue_many([list(range(40))]), v1.placeholder_with_default(1, []) + 1
    with v1.Session(a.target) as s:
        s.run(one)
        waiting = [Thread(lambda: int(s.run(get))) for _ in range(40)]
        time.sleep(0.3)
        for _ in range(10):
            check_eq(int(s.run(one)), 2)
        s.run(put)
        check_eq(sorted(all_values(waiting)), list(range(40)), "all are served")


@part
def many_sessions_open(a):
    x = v1.placeholder(tf.float32, [])
    y = x * 2.0
    sessions = [v1.Session(a.target) for _ in range(50)]
    for round in range(2):
        for k, s in enumerate(sessions):
            check_eq(float(s.run(y, {x: k})), 2.0 * k)
    for s in sessions:
        s.close()


main(__doc__)
