"""tf.container and Session.reset: state by container; reset clears it on all tasks
and closes the sessions of that master."""

from common import *

a = parse(__doc__)
g = tf.Graph()
with g.as_default():
    with v1.device("/job:ps/task:0"):
        with g.container("exp0"):
            v0 = v1.Variable(1.0, name="v0", use_resource=a.resource)
        with g.container("exp1"):
            v1_ = v1.Variable(2.0, name="v1", use_resource=a.resource)
            q = v1.FIFOQueue(4, tf.float32, shapes=[[]], shared_name="q1")
        vd = v1.Variable(3.0, name="vd", use_resource=a.resource)
    init = v1.global_variables_initializer()
    enq, size = q.enqueue(1.0), q.size()
s = v1.Session(a.target, graph=g)
s.run(init)
s.run(enq)
check_eq(int(s.run(size)), 1, "size")
with v1.Session(a.target, graph=g) as s2:
    check_eq([float(x) for x in s2.run([v0, v1_, vd])], [1.0, 2.0, 3.0], "shared")
# same name in another container is another variable
g2 = tf.Graph()
with g2.as_default():
    with v1.device("/job:ps/task:0"), g2.container("exp9"):
        w = v1.Variable(9.0, name="v0", use_resource=a.resource)
    with v1.Session(a.target) as s2:
        with raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
            s2.run(w)
v1.Session.reset(a.target, ["exp1"])
with raises(
    (tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.FailedPreconditionError, tf.errors.NotFoundError)
) as r:
    s.run(v0)
print("old session after reset:", type(r.e).__name__)
with v1.Session(a.target, graph=g) as s3:
    check_eq(float(s3.run(v0)), 1.0, "exp0 kept")
    check_eq(float(s3.run(vd)), 3.0, "default kept")
    with raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
        s3.run(v1_)
    check_eq(int(s3.run(size)), 0, "queue of exp1 is new")
v1.Session.reset(a.target)  # no names: the default container of every task
with v1.Session(a.target, graph=g) as s4:
    with raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
        s4.run(vd)
    check_eq(float(s4.run(v0)), 1.0, "a named container outlives a nameless reset")
    s4.run(init)
    check_eq([float(x) for x in s4.run([v0, v1_, vd])], [1.0, 2.0, 3.0], "initialised anew")
ok()
