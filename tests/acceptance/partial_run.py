"""partial_run_setup / partial_run, across tasks."""

from common import *

a = parse(__doc__)
with tf.Graph().as_default():
    x, y, z = (v1.placeholder(tf.float32, []) for _ in range(3))
    with v1.device("/job:ps/task:0"):
        r1 = x + y
    with v1.device("/job:worker/task:0"):
        r2 = r1 * z
    r3 = r2 + r1
    with v1.Session(a.target) as s:
        h = s.partial_run_setup([r1, r2, r3], [x, y, z])
        check_eq(float(s.partial_run(h, r1, {x: 1.0, y: 2.0})), 3.0, "first part")
        t = float(s.partial_run(h, r2, {z: 3.0 * 4}))
        check_eq(t, 36.0, "second part")
        check_eq(float(s.partial_run(h, r3)), 39.0, "third part, no feed")
        with raises(tf.errors.InvalidArgumentError):
            s.partial_run(h, r3)  # done: all fetched
        h1, h2 = s.partial_run_setup([r1, r2], [x, y, z]), s.partial_run_setup([r1, r2], [x, y, z])
        check_eq(float(s.partial_run(h1, r1, {x: 1.0, y: 1.0})), 2.0, "a")
        check_eq(float(s.partial_run(h2, r1, {x: 5.0, y: 5.0})), 10.0, "b")
        check_eq(float(s.partial_run(h2, r2, {z: 2.0})), 20.0, "b2")
        check_eq(float(s.partial_run(h1, r2, {z: 3.0})), 6.0, "a2")
        h = s.partial_run_setup([r1], [x, y])
        with raises(tf.errors.InvalidArgumentError):
            s.partial_run(h, r1, {x: 1.0, y: 1.0, z: 3.0})  # z was not set up
        check_eq(float(s.run(r3, {x: 1.0, y: 2.0, z: 3.0})), 12.0, "ordinary run after it")
ok()
