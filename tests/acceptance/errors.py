"""Error classes and texts a client relies on; a failed step leaves the session fit."""

from common import *

a = parse(__doc__)
with tf.Graph().as_default():
    p = v1.placeholder(tf.float32, [None, None])
    q = v1.placeholder(tf.float32, [None, None])
    with v1.device("/job:ps/task:0"):
        m = tf.matmul(p, q, name="mm")
        v = v1.Variable([1.0], name="uninit")
    with v1.device("/job:worker/task:1"):
        n = m + 1.0
    with v1.device("/job:ps/task:1"):
        g = tf.gather([1, 2, 3], v1.placeholder_with_default([7], [1]))
        ck = v1.check_numerics(p, "bad value here")
        asr = v1.Assert(tf.reduce_all(p > 0), ["neg:", p])
        div = tf.math.floordiv(v1.placeholder_with_default(1, []), v1.placeholder_with_default(0, []))
        rs = tf.reshape(p, [5, 5])
    with v1.Session(a.target) as s:
        one = np.ones([2, 3], np.float32)
        with raises(errors.InvalidArgumentError) as r:
            s.run(n, {p: one, q: one})
        check(r.e.op is not None and r.e.op.name == "mm", "the failing op is named:", r.e.op, str(r.e)[:200])
        with raises(errors.FailedPreconditionError, "uninit"):
            s.run(v + 1.0)
        with raises(errors.InvalidArgumentError):
            s.run(g)
        with raises(errors.InvalidArgumentError, "bad value here"):
            s.run(ck, {p: [[np.nan]]})
        with raises(errors.InvalidArgumentError, "neg:"):
            s.run(asr, {p: [[-1.0]]})
        with raises(errors.InvalidArgumentError):
            s.run(div)
        with raises(errors.InvalidArgumentError):
            s.run(rs, {p: one})
        with raises(errors.InvalidArgumentError, "must feed"):
            s.run(m)
        check_eq(s.run(n, {p: one, q: one.T}), np.full([2, 2], 4.0, np.float32), "session is fit after errors")
        # an error on one task ends a step blocked on another
        with v1.device("/job:ps/task:0"):
            blk = v1.FIFOQueue(1, tf.float32).dequeue()
        t0 = time.time()
        with raises(errors.InvalidArgumentError):
            s.run([blk, ck], {p: [[np.inf]]})
        check(time.time() - t0 < 10, "abort took long")
    s.close()
# report_uninitialized, is_variable_initialized
with tf.Graph().as_default():
    with v1.device("/job:ps/task:1"):
        u = [v1.Variable(0.0, name="rep_%d" % i, use_resource=a.resource) for i in range(3)]
    rep = v1.report_uninitialized_variables()
    with v1.Session(a.target) as s:
        check_eq(sorted(s.run(rep)), [b"rep_0", b"rep_1", b"rep_2"], "report")
        s.run(u[1].initializer)
        check_eq(sorted(s.run(rep)), [b"rep_0", b"rep_2"], "report after one")
# no server there
with tf.Graph().as_default():
    t0 = time.time()
    with raises((errors.UnavailableError, errors.DeadlineExceededError)):
        with v1.Session("grpc://localhost:1", config=v1.ConfigProto(operation_timeout_in_ms=2000)) as s:
            s.run(tf.constant(1))
    check(time.time() - t0 < 60, "no answer for long")
# a server dies in a step: Unavailable/Aborted, within a bounded time
if a.control:
    with tf.Graph().as_default():
        with v1.device("/job:ps/task:1"):
            d = v1.FIFOQueue(1, tf.float32).dequeue()
        s = v1.Session(a.target)
        step = Thread(s.run, d)
        time.sleep(0.7)
        t0 = time.time()
        control(a, "kill ps 1")
        result = step.end(60)
        print("step on a killed server ended after %.2fs:" % (time.time() - t0), repr(result)[:200])
        lost = (errors.UnavailableError, errors.AbortedError, errors.CancelledError, errors.InternalError)
        check(isinstance(result, lost), repr(result))
        # TensorFlow's own master blocks in close() until the dead task is back: not asserted
        close = Thread(s.close)
        t0 = time.time()
        close.join(3)
        print("close() with a dead task blocks until it is back:", close.is_alive())
        control(a, "start ps 1")
        close.value(60)
        print("close() done %.2fs after it began" % (time.time() - t0))
        with v1.Session(a.target) as s:
            check_eq(int(s.run(tf.constant(1) + 1)), 2, "new session after the restart")
        # a session made before a restart is stale: its next step on that task fails, so that
        # _RecoverableSession makes a new one
        with v1.device("/job:ps/task:1"):
            w = v1.placeholder_with_default(1.0, []) * 2.0
        old = v1.Session(a.target)
        check_eq(float(old.run(w)), 2.0, "before")
        control(a, "restart ps 1")
        # TensorFlow's own master may show the cancelled part beside the aborted one, with the code of either
        grouped = (errors.CancelledError,) if a.reference else ()
        with raises((errors.AbortedError, errors.UnavailableError) + grouped) as r:
            [old.run(w) for _ in range(3)]
        print("stale session:", type(r.e).__name__, str(r.e)[:150].replace("\n", " "))
        with v1.Session(a.target) as s:
            check_eq(float(s.run(w)), 2.0, "after")
ok()
