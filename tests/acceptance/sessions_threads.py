"""Several sessions on one server at once, from threads."""

from common import *

a = parse(__doc__)
N, RUNS = 8, 30


def work(i):
    g = tf.Graph()
    with g.as_default():
        v = v1.Variable(np.full([64], i, np.float32), name="private%d" % i)
        p = v1.placeholder(tf.float32, [])
        up = v1.assign_add(v, tf.fill([64], p))
        init = v1.global_variables_initializer()
    with v1.Session(a.target, graph=g) as s:
        s.run(init)
        for k in range(RUNS):
            r = s.run(up, {p: 1.0})
            check_eq(float(r[0]), float(i + k + 1), "thread %d step %d" % (i, k))


for thread in [Thread(work, i) for i in range(N)]:
    thread.value(60)

# one Session object from many threads; the steps are concurrent
g = tf.Graph()
with g.as_default():
    c = v1.Variable(0, dtype=tf.int32, name="shared_count", use_resource=True)
    inc = c.assign_add(1, read_value=False)
    init, val = v1.global_variables_initializer(), c.read_value()
s = v1.Session(a.target, graph=g)
s.run(init)


def bump():
    for _ in range(RUNS):
        s.run(inc)


for thread in [Thread(bump) for _ in range(N)]:
    thread.value(60)
check_eq(int(s.run(val)), N * RUNS, "resource assign_add is atomic")
# another session on the same server sees the same variable (same name, default container)
with v1.Session(a.target, graph=g) as s2:
    check_eq(int(s2.run(val)), N * RUNS, "variable is shared by sessions")
s.close()
with v1.Session(a.target, graph=g) as s3:
    check_eq(int(s3.run(val)), N * RUNS, "variable outlives its session")
# unless the session is isolated
with v1.Session(a.target, graph=g, config=v1.ConfigProto(isolate_session_state=True)) as s4:
    with raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
        s4.run(val)
    s4.run(init)
    check_eq(int(s4.run(val)), 0, "isolated state")
with v1.Session(a.target, graph=g) as s5:
    check_eq(int(s5.run(val)), N * RUNS, "isolation did not leak")
ok()
