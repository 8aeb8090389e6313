"""while_loop and cond with bodies across tasks. --resource: control flow v2."""

from common import *

a = parse(__doc__)


def sess():
    return v1.Session(a.target)


# loop wholly on another task
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        i, s = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, 0.0])
    with sess() as ss:
        check_eq([float(x) for x in ss.run([i, s])], [10.0, 45.0], "loop on ps")
# loop whose body spans tasks: distributed while loop (control loop on each device)
with tf.Graph().as_default():
    n = v1.placeholder(tf.int32, [])

    def body(i, x, y):
        with v1.device("/job:ps/task:0"):
            x = x + 1.0
        with v1.device("/job:ps/task:1"):
            y = y + x
        with v1.device("/job:worker/task:1"):
            y = y * 1.0
        return i + 1, x, y

    with v1.device("/job:worker/task:0"):
        i, x, y = tf.while_loop(lambda i, x, y: i < n, body, [0, tf.constant(0.0), tf.constant(0.0)])
    with sess() as ss:
        for k in (0, 1, 7, 50):
            check_eq(
                [float(z) for z in ss.run([i, x, y], {n: k})],
                [float(k), float(k), k * (k + 1) / 2.0],
                "loop across tasks, n=%d" % k,
            )
# nested loops, TensorArray, parallel iterations
with tf.Graph().as_default():

    def outer(i, acc):
        _, r = tf.while_loop(lambda j, r: j < 4, lambda j, r: (j + 1, r + i * j), [0, 0])
        return i + 1, acc.write(i, r)

    ta = tf.TensorArray(tf.int32, size=5)
    with v1.device("/job:ps/task:1"):
        _, ta = tf.while_loop(lambda i, t: i < 5, outer, [0, ta])
    with sess() as ss:
        check_eq(ss.run(ta.stack()), np.array([0, 6, 12, 18, 24], np.int32), "nested + TensorArray")
# gradient through a while loop (stacks / accumulators)
with tf.Graph().as_default():
    w = v1.placeholder(tf.float32, [])
    with v1.device("/job:ps/task:0"):
        _, z = tf.while_loop(lambda i, z: i < 5, lambda i, z: (i + 1, z * w), [0, tf.constant(1.0)])
    (g,) = tf.gradients(z, w)
    with sess() as ss:
        check_close(ss.run([z, g], {w: 2.0}), [32.0, 80.0], "d(w^5)")
# cond: only one branch runs; branches on different tasks
with tf.Graph().as_default():
    p = v1.placeholder(tf.bool, [])
    with v1.device("/job:ps/task:0"):
        va = v1.Variable(0.0, name="va", use_resource=True)
    with v1.device("/job:ps/task:1"):
        vb = v1.Variable(0.0, name="vb", use_resource=True)

    def t():
        with v1.device("/job:ps/task:0"):
            return tf.identity(va.assign_add(1.0))

    def f():
        with v1.device("/job:ps/task:1"):
            return tf.identity(vb.assign_add(10.0))

    with v1.device("/job:worker/task:1"):
        r = v1.cond(p, t, f)
    with sess() as ss:
        ss.run(v1.global_variables_initializer())
        out = [float(ss.run(r, {p: b})) for b in (True, True, False, True)]
        check_eq(out, [1.0, 2.0, 10.0, 3.0], "cond values")
        check_eq(
            [float(x) for x in ss.run([va.read_value(), vb.read_value()])], [3.0, 10.0], "only the taken branch ran"
        )
# cond inside while, switch_case, gradient of cond
with tf.Graph().as_default():
    _, z = tf.while_loop(
        lambda i, z: i < 6,
        lambda i, z: (i + 1, v1.cond(tf.equal(i % 2, 0), lambda: z + 1.0, lambda: z * 2.0)),
        [0, tf.constant(0.0)],
    )
    x = v1.placeholder(tf.float32, [])
    y = v1.cond(x > 0.0, lambda: x * x, lambda: -x)
    (g,) = tf.gradients(y, x)
    b = v1.placeholder(tf.int32, [])
    sw = tf.switch_case(b, [lambda: tf.constant(5), lambda: tf.constant(6), lambda: tf.constant(7)])
    cs = v1.case(
        [(x > 5.0, lambda: tf.constant("big")), (x > 0.0, lambda: tf.constant("small"))],
        default=lambda: tf.constant("neg"),
    )
    with sess() as ss:
        check_eq(float(ss.run(z)), 14.0, "cond in while")
        check_close(ss.run([y, g], {x: 3.0}), [9.0, 6.0])
        check_close(ss.run([y, g], {x: -3.0}), [3.0, -1.0])
        check_eq([int(ss.run(sw, {b: k})) for k in (0, 1, 2)], [5, 6, 7], "switch_case")
        check_eq([ss.run(cs, {x: k}) for k in (9.0, 1.0, -1.0)], [b"big", b"small", b"neg"], "case")
# control dependencies across tasks keep order
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        v = v1.Variable(1.0, name="cd", use_resource=True)
    with v1.device("/job:ps/task:0"):
        up = v.assign(5.0)
    with tf.control_dependencies([up]):
        with v1.device("/job:worker/task:1"):
            mark = tf.no_op()
    with tf.control_dependencies([mark]):
        out = v.read_value() + 1.0
    with sess() as ss:
        ss.run(v.initializer)
        check_eq(float(ss.run(out)), 6.0, "control edge across tasks")
# tf.function / Defun in a graph: PartitionedCall
with tf.Graph().as_default():

    @tf.function
    def fn(x, y):
        return tf.matmul(x, y) + 1.0

    with v1.device("/job:ps/task:1"):
        r = fn(tf.ones([2, 3]), tf.ones([3, 2]))
    with sess() as ss:
        check_eq(ss.run(r), np.full([2, 2], 4.0, np.float32), "function call")
ok()
