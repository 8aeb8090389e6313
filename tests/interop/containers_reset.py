"""tf.container and Session.reset: state by container; a reset clears it and ends the sessions of the server."""
from common import *

GONE = (errors.FailedPreconditionError, "uninitialized")


class State(object):
    def __init__(self, resource):
        self.graph = tf.Graph()
        with self.graph.as_default():
            variable = lambda value, name: v1.Variable(value, name=name, use_resource=resource)
            with self.graph.container("exp0"):
                self.v0 = variable(1.0, "v0")
            with self.graph.container("exp1"):
                self.v1 = variable(2.0, "v1")
                self.queue = v1.FIFOQueue(4, tf.float32, shapes=[[]], shared_name="q1")
            self.plain = variable(3.0, "plain")
            self.all = [self.v0, self.v1, self.plain]
            self.init = v1.global_variables_initializer()
            self.put, self.size = self.queue.enqueue(1.0), self.queue.size()

    def session(self, target):
        return v1.Session(target, graph=self.graph)


def floats(values):
    return [float(v) for v in values]


@part
def containers(a):
    state = State(a.resource)
    with state.session(a.target) as s:
        s.run(state.init)
        s.run(state.put)
    with state.session(a.target) as s:
        check_eq(floats(s.run(state.all)), [1.0, 2.0, 3.0], "state outlives the session")
        check_eq(int(s.run(state.size)), 1, "shared queue")
    # The same name in another container is another variable.
    graph = tf.Graph()
    with graph.as_default(), graph.container("exp9"):
        other = v1.Variable(9.0, name="v0", use_resource=a.resource)
    with v1.Session(a.target, graph=graph) as s:
        with raises(*GONE):
            s.run(other.value() + 0.0)
        s.run(other.initializer)
        check_eq(float(s.run(other)), 9.0)
    with state.session(a.target) as s:
        check_eq(float(s.run(state.v0)), 1.0, "exp0 untouched")


@part
def reset_of_one_container(a):
    state = State(a.resource)
    old = state.session(a.target)
    old.run(state.init)
    old.run(state.put)
    v1.Session.reset(a.target, ["exp1"])
    with raises(errors.AbortedError, "Session ", " is not found."):
        old.run(state.v0)
    with state.session(a.target) as s:
        check_eq(floats(s.run([state.v0, state.plain])), [1.0, 3.0], "the others are kept")
        with raises(*GONE):
            s.run(state.v1.value() + 0.0)
        check_eq(int(s.run(state.size)), 0, "the queue is new")


@part
def reset_without_names(a):
    """It clears the default container, which is the job's, and no other."""
    state = State(a.resource)
    with state.session(a.target) as s:
        s.run(state.init)
    v1.Session.reset(a.target, ["nosuch"])
    with state.session(a.target) as s:
        check_eq(floats(s.run(state.all)), [1.0, 2.0, 3.0], "an unknown container")
    v1.Session.reset(a.target)
    with state.session(a.target) as s:
        with raises(*GONE):
            s.run(state.plain.value() + 0.0)
        check_eq(floats(s.run([state.v0, state.v1])), [1.0, 2.0], "named containers are kept")
        s.run(state.init)
        check_eq(floats(s.run(state.all)), [1.0, 2.0, 3.0], "initialised anew")


@part_beyond
def reset_ends_running_steps(a):
    """TensorFlow's server hangs here, and crashes when the client goes."""
    graph = tf.Graph()
    with graph.as_default():
        get = v1.FIFOQueue(1, tf.float32, shapes=[[]], shared_name="stuck").dequeue()
    session = v1.Session(a.target, graph=graph)
    waiting = Thread(lambda: session.run(get))
    time.sleep(0.3)
    v1.Session.reset(a.target)
    error = waiting.end()
    check(isinstance(error, (errors.CancelledError, errors.AbortedError)), repr(error)[:500])


@part
def old_handles_after_a_reset(a):
    x = v1.placeholder(tf.float32, [], name="x")
    y = x + 1.0
    session = v1.Session(a.target)
    session.run(y, {x: 1.0})
    v1.Session.reset(a.target)
    gone = (errors.AbortedError, "Session ", " is not found.")
    with raises(*gone):
        session.run(y, {x: 1.0})
    with raises(*gone):
        session.partial_run_setup([y], [x])
    with raises(errors.InvalidArgumentError, " is not found. Possibly, this master has restarted."):
        session.list_devices()
    tf.constant(1)
    with raises(*gone):
        session.run(y, {x: 1.0})
    with raises(errors.AbortedError, " is not found. Possibly, this master has restarted."):
        session.close()


main(__doc__)
