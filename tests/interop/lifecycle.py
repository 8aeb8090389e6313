"""The life of a session: many extensions, the device list first, use after close, many in a row, variables from one to the next."""
from common import *


@part
def many_extensions(a):
    with v1.Session(a.target) as s:
        v = v1.get_variable("v", initializer=0.0)
        s.run(v.initializer)
        total = v.value() if hasattr(v, "value") else v
        for k in range(60):
            total = total + float(k)
            check_eq(float(s.run(total)), k * (k + 1) / 2.0, "extension %d" % k)
        # An extension without a step that needs it, and steps of the old graph afterwards.
        w = v1.get_variable("w", initializer=5.0)
        check_eq(float(s.run(total)), 59 * 60 / 2.0)
        s.run(w.initializer)
        check_eq(float(s.run(w * 2.0)), 10.0)


@part
def extension_with_functions(a):
    with v1.Session(a.target) as s:
        x = v1.placeholder(tf.float32, [])
        s.run(x + 1.0, {x: 1.0})

        @tf.function
        def f(v):
            return v * 3.0

        check_eq(float(s.run(f(x), {x: 2.0})), 6.0, "a function that came later")


@part
def devices_first(a):
    """list_devices() makes the session, with an empty graph; the nodes follow as an extension."""
    with v1.Session(a.target) as s:
        before = [d.name for d in s.list_devices()]
        check_eq(int(s.run(tf.constant(2) + 1)), 3)
        check_eq([d.name for d in s.list_devices()], before)
        incarnation = [d.incarnation for d in s.list_devices()]
    with v1.Session(a.target) as s:
        check_eq([d.incarnation for d in s.list_devices()], incarnation, "the same process")


@part
def closed(a):
    c = tf.constant(1)
    session = v1.Session(a.target)
    session.close()
    with raises(RuntimeError, "Attempted to use a closed Session."):
        session.run(c)
    session = v1.Session(a.target)
    session.run(c)
    session.close()
    session.close()
    with raises(RuntimeError, "Attempted to use a closed Session."):
        session.run(c)


@part
def one_after_the_other(a):
    """Variables stay on the server; the next session need not initialise them."""
    v = v1.get_variable("kept", initializer=1.0, use_resource=a.resource)
    add = v1.assign_add(v, 1.0)
    with v1.Session(a.target) as s:
        s.run(v.initializer)
    for k in range(20):
        with v1.Session(a.target) as s:
            check_eq(float(s.run(add)), k + 2.0)


@part
def two_graphs_one_variable(a):
    make = lambda: v1.get_variable("common", initializer=1.0, use_resource=a.resource)
    v = make()
    with v1.Session(a.target) as one:
        one.run(v.initializer)
        with tf.Graph().as_default():
            w = make()
            with v1.Session(a.target) as two:
                two.run(v1.assign(w, 42.0))
        check_eq(float(one.run(v)), 42.0)


@part
def a_session_without_a_context(a):
    """Sessions that are dropped without close()."""
    c = tf.constant(3) + 1
    for _ in range(5):
        check_eq(int(v1.Session(a.target).run(c)), 4)


@part
def interactive_and_monitored(a):
    session = v1.InteractiveSession(a.target)
    check_eq(int((tf.constant(2) * 4).eval()), 8)
    session.close()
    step = v1.train.get_or_create_global_step()
    more = v1.assign_add(step, 1)
    with v1.train.MonitoredTrainingSession(master=a.target, hooks=[v1.train.StopAtStepHook(num_steps=5)]) as s:
        while not s.should_stop():
            last = s.run(more)
    check_eq(int(last), 5)


@part
def session_manager(a):
    """SessionManager: a second session waits until the first one has initialised the variables."""
    v = v1.get_variable("ready", initializer=7.0, use_resource=a.resource)
    graph, ready = v1.get_default_graph(), v1.report_uninitialized_variables()
    manager = lambda: v1.train.SessionManager(graph=graph, ready_op=ready, recovery_wait_secs=0.05)
    waiting = Thread(lambda: manager().wait_for_session(a.target, max_wait_secs=30))
    time.sleep(0.3)
    check(waiting.is_alive(), "it waits")
    with manager().prepare_session(a.target, init_op=v.initializer) as s:
        check_eq(float(s.run(v)), 7.0)
        other = waiting.value()
        check_eq(float(other.run(v)), 7.0)
        other.close()


main(__doc__)
