"""partial_run_setup and partial_run: values, several at once, and every way to use them wrongly."""
from common import *

INVALID = errors.InvalidArgumentError


class Graph(object):
    def __init__(self):
        self.x, self.y, self.z = (v1.placeholder(tf.float32, [], name=n) for n in "xyz")
        self.r1 = tf.add(self.x, self.y, name="r1")
        self.r2 = tf.multiply(self.r1, self.z, name="r2")
        self.r3 = tf.add(self.r2, self.r1, name="r3")
        self.feeds, self.fetches = [self.x, self.y, self.z], [self.r1, self.r2, self.r3]


@part
def in_steps(a):
    g = Graph()
    with v1.Session(a.target) as s:
        h = s.partial_run_setup(g.fetches, g.feeds)
        check_eq(float(s.partial_run(h, g.r1, {g.x: 1.0, g.y: 2.0})), 3.0, "first")
        check_eq(float(s.partial_run(h, g.r2, {g.z: 12.0})), 36.0, "second")
        check_eq(float(s.partial_run(h, g.r3)), 39.0, "third, no feed")
        with raises(INVALID, "Must run PartialRunSetup before performing partial runs"):
            s.partial_run(h, g.r3)
        check_eq(float(s.run(g.r3, {g.x: 1.0, g.y: 2.0, g.z: 3.0})), 12.0, "an ordinary run after it")


@part
def several_at_once(a):
    g = Graph()
    with v1.Session(a.target) as s:
        h = [s.partial_run_setup([g.r1, g.r2], g.feeds) for _ in range(2)]
        check_eq(float(s.partial_run(h[0], g.r1, {g.x: 1.0, g.y: 1.0})), 2.0)
        check_eq(float(s.partial_run(h[1], g.r1, {g.x: 5.0, g.y: 5.0})), 10.0)
        check_eq(float(s.run(g.r1, {g.x: 7.0, g.y: 1.0})), 8.0, "an ordinary run in between")
        check_eq(float(s.partial_run(h[1], g.r2, {g.z: 2.0})), 20.0)
        check_eq(float(s.partial_run(h[0], g.r2, {g.z: 3.0})), 6.0)


@part
def feeds_alone(a):
    g = Graph()
    with v1.Session(a.target) as s:
        h = s.partial_run_setup([g.r1, g.r2], g.feeds)
        s.partial_run(h, [], {g.x: 1.0})
        s.partial_run(h, [], {g.y: 2.0})
        check_eq([float(v) for v in s.partial_run(h, [g.r2, g.r1], {g.z: 4.0})], [12.0, 3.0])


@part
def variables(a):
    v = v1.get_variable("v", initializer=1.0, use_resource=True)
    x = v1.placeholder(tf.float32, [])
    update = tf.identity(v.assign_add(x))
    y = x * 2.0
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        h = s.partial_run_setup([y, update], [x])
        check_eq(float(s.partial_run(h, y, {x: 3.0})), 6.0)
        check_eq(float(s.partial_run(h, update)), 4.0)
        check_eq(float(s.run(v)), 4.0)


@part
def misuse(a):
    g = Graph()
    with v1.Session(a.target) as s:
        setup = lambda fetches=(g.r1, g.r2): s.partial_run_setup(list(fetches), g.feeds)
        h = setup()
        with raises(INVALID, "can't be computed from the feeds that have been fed so far."):
            s.partial_run(h, g.r2, {g.x: 1.0})
        h = setup()
        s.partial_run(h, g.r1, {g.x: 1.0, g.y: 2.0})
        for text, fetch, feed in (
            ("The fetch r1:0 has already been fetched.", g.r1, {}),
            ("The feed x:0 has already been fed.", g.r2, {g.x: 1.0, g.z: 1.0}),
            ("The fetch r3:0 was not specified in partial_run_setup.", g.r3, {}),
        ):
            with raises(INVALID, text):
                s.partial_run(h, fetch, feed)
        check_eq(float(s.partial_run(h, g.r2, {g.z: 2.0})), 6.0, "fit after misuse")
        h = s.partial_run_setup([g.r1], [g.x, g.y])
        with raises(INVALID, "The feed z:0 was not specified in partial_run_setup."):
            s.partial_run(h, g.r1, {g.x: 1.0, g.y: 1.0, g.z: 1.0})
        with raises(INVALID, "Must run PartialRunSetup before performing partial runs"):
            s.partial_run("nope", g.r1, {g.x: 1.0})
        with raises(INVALID, "Must specify at least one target to fetch or execute."):
            s.partial_run_setup([], [g.x])
        # Partial runs that were never finished must not keep the session from closing.
        setup()


main(__doc__)
