"""Queues by shared_name between sessions, masters and threads."""

from common import *

a = parse(__doc__)


def build(shared="jobs", cap=5):
    g = tf.Graph()
    with g.as_default():
        with v1.device("/job:ps/task:0"):
            q = v1.FIFOQueue(cap, [tf.int32, tf.string], shapes=[[], []], shared_name=shared)
        x, t = v1.placeholder(tf.int32, []), v1.placeholder(tf.string, [])
        return g, q, x, t, q.enqueue([x, t]), q.dequeue(), q.size(), q.close(), q.dequeue_many(3)


g1, q1, x1, t1, enq, _, size1, close1, _ = build()
g2, q2, _, _, _, deq, size2, _, many = build()
sa, sb = v1.Session(grpc(a.workers[0]), graph=g1), v1.Session(grpc(a.workers[1]), graph=g2)


def produce():
    for i in range(20):
        sa.run(enq, {x1: i, t1: "item%d" % i})  # blocks at capacity 5


producer = Thread(produce)
until(lambda: sb.run(size2) == 5, "the queue is full")
time.sleep(0.3)
check_eq(int(sb.run(size2)), 5, "producer is blocked at capacity")
got = [sb.run(deq) for _ in range(17)]
check_eq([int(i) for i, _ in got], list(range(17)), "FIFO order")
check_eq(got[3][1], b"item3", "strings")
n, s = sb.run(many)
check_eq(list(n), [17, 18, 19], "dequeue_many")
producer.value()
# a blocked dequeue wakes when another session closes the queue
consumer = Thread(sb.run, deq)
time.sleep(0.3)
sa.run(close1)
consumer.error(errors.OutOfRangeError)
with raises((tf.errors.CancelledError, tf.errors.AbortedError)):
    sa.run(enq, {x1: 1, t1: "late"})
# closing a session with a blocked run cancels it
g3, q3, _, _, _, deq3, _, _, _ = build("never")
sc = v1.Session(grpc(a.workers[0]), graph=g3)
blocked = Thread(sc.run, deq3)
time.sleep(0.5)
sc.close()
blocked.error((errors.CancelledError, errors.AbortedError, RuntimeError))
# other queue kinds
g = tf.Graph()
with g.as_default():
    with v1.device("/job:ps/task:1"):
        rq = v1.RandomShuffleQueue(100, 0, tf.int32, shapes=[[]], seed=1)
        pq = v1.PriorityQueue(10, tf.string, [[]])
        pad = v1.PaddingFIFOQueue(10, tf.int32, [[None]])
        e = [
            rq.enqueue_many([list(range(50))]),
            pq.enqueue_many([np.array([3, 1, 2], np.int64), ["c", "a", "b"]]),
            pad.enqueue([[1]]),
        ]
        e2 = pad.enqueue([[1, 2, 3]])
        dr, dp, dd = rq.dequeue_many(50), pq.dequeue_many(3), pad.dequeue_many(2)
    with v1.Session(a.target) as s:
        s.run(e)
        s.run(e2)
        r = s.run(dr)
        check_eq(sorted(r), list(range(50)), "shuffle is a permutation")
        check(list(r) != list(range(50)), "not shuffled")
        check_eq(list(s.run(dp)[1]), [b"a", b"b", b"c"], "priority")
        check_eq(s.run(dd), np.array([[1, 0, 0], [1, 2, 3]], np.int32), "padding")
# QueueRunner + Coordinator, string_input_producer style pipeline on the server
with tf.Graph().as_default():
    q = v1.FIFOQueue(10, tf.int32, shapes=[[]])
    src = v1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    v1.train.add_queue_runner(v1.train.QueueRunner(q, [q.enqueue(src * 2)]))
    d = q.dequeue()
    with v1.Session(a.target) as s:
        s.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        co = v1.train.Coordinator()
        ths = v1.train.start_queue_runners(s, co)
        out = []
        try:
            while True:
                out.append(int(s.run(d)))
        except tf.errors.OutOfRangeError:
            pass
        co.request_stop()
        co.join(ths, stop_grace_period_secs=10)
        check_eq(out, [0, 2, 4, 6, 8, 10], "queue runner")
# accumulators and barriers of sync training
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        acc = v1.ConditionalAccumulator(tf.float32, shape=[2], shared_name="acc")
        ap, tk, st = acc.apply_grad([1.0, 3.0], 0), acc.take_grad(2), acc.num_accumulated()
    with v1.Session(a.target) as s:
        s.run(ap)
        s.run(ap)
        check_eq(int(s.run(st)), 2, "accumulated")
        check_eq(s.run(tk), np.array([1.0, 3.0], np.float32), "mean")
sa.close()
sb.close()
ok()
