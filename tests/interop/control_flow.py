"""while_loop, cond, case, switch_case, functions. Plain: Switch and Merge in the graph; --resource: functional While and If."""
from common import *


def count_to(n, **options):
    """Loops with two variables, for one alone comes back as a list in one mode and bare in the other."""
    return tf.while_loop(lambda i, x: i < n, lambda i, x: [i + 1, x], [0, 0], **options)[0]


@part
def while_loop(a):
    n = v1.placeholder(tf.int32, [])
    i, x, y = tf.while_loop(
        lambda i, x, y: i < n,
        lambda i, x, y: (i + 1, x + 1.0, y + x + 1.0),
        [0, tf.constant(0.0), tf.constant(0.0)],
    )
    with v1.Session(a.target) as s:
        for k in (0, 1, 7, 50, 1000):
            check_eq([float(z) for z in s.run([i, x, y], {n: k})], [k, k, k * (k + 1) / 2], "n=%d" % k)


@part
def loop_options(a):
    """parallel_iterations, maximum_iterations, back_prop, and loop variables whose shape changes."""
    outs = [count_to(25, parallel_iterations=k) for k in (1, 2, 32)]
    capped = count_to(100, maximum_iterations=9)
    _, grown = tf.while_loop(
        lambda i, x: i < 4,
        lambda i, x: (i + 1, tf.concat([x, x], 0)),
        [0, tf.constant([1, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    with v1.Session(a.target) as s:
        check_eq([int(x) for x in s.run(outs)], [25, 25, 25])
        check_eq(int(s.run(capped)), 9, "maximum_iterations")
        check_eq(s.run(grown).tolist(), [1, 2] * 16, "growing shape")


@part
def nested_loops(a):
    def outer(i, array):
        _, r = tf.while_loop(lambda j, r: j < 4, lambda j, r: (j + 1, r + i * j), [0, 0])
        return i + 1, array.write(i, r)

    _, array = tf.while_loop(lambda i, t: i < 5, outer, [0, tf.TensorArray(tf.int32, size=5)])
    with v1.Session(a.target) as s:
        check_eq(s.run(array.stack()).tolist(), [0, 6, 12, 18, 24])


@part
def loop_gradients(a):
    w = v1.placeholder(tf.float32, [])
    _, z = tf.while_loop(lambda i, z: i < 5, lambda i, z: (i + 1, z * w), [0, tf.constant(1.0)])
    (g,) = tf.gradients(z, w)
    (gg,) = tf.gradients(g, w) if a.resource else (None,)

    # A loop in a loop: ((w^2) * 2)^3 by steps; d/dw of 8 w^6 is 48 w^5.
    def outer(i, z):
        _, inner = tf.while_loop(lambda j, y: j < 2, lambda j, y: (j + 1, y * w), [0, z])
        return i + 1, inner * 2.0

    _, deep = tf.while_loop(lambda i, z: i < 3, outer, [0, tf.constant(1.0)])
    (deep_g,) = tf.gradients(deep, w)
    with v1.Session(a.target) as s:
        check_close(s.run([z, g], {w: 2.0}), [32.0, 80.0], "w^5")
        check_close(s.run([deep, deep_g], {w: 1.5}), [8 * 1.5**6, 48 * 1.5**5], "8 w^6")
        if gg is not None:
            check_close(s.run(gg, {w: 2.0}), 160.0, "second derivative")


@part
def cond_runs_one_branch(a):
    p = v1.placeholder(tf.bool, [])
    x, y = (v1.Variable(0.0, name=n, use_resource=True) for n in ("branch_x", "branch_y"))
    r = v1.cond(p, lambda: tf.identity(x.assign_add(1.0)), lambda: tf.identity(y.assign_add(10.0)))
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        check_eq([float(s.run(r, {p: b})) for b in (True, True, False, True)], [1.0, 2.0, 10.0, 3.0], "values")
        check_eq([float(z) for z in s.run([x.read_value(), y.read_value()])], [3.0, 10.0], "only the taken branch ran")


@part
def cond_in_while_and_while_in_cond(a):
    p = v1.placeholder(tf.bool, [])
    even = lambda i: tf.equal(i % 2, 0)
    _, z = tf.while_loop(
        lambda i, z: i < 6,
        lambda i, z: (i + 1, v1.cond(even(i), lambda: z + 1.0, lambda: z * 2.0)),
        [0, tf.constant(0.0)],
    )
    w = v1.cond(p, lambda: count_to(7), lambda: v1.cond(tf.logical_not(p), lambda: tf.constant(-1), lambda: tf.constant(-2)))
    with v1.Session(a.target) as s:
        check_eq(float(s.run(z)), 14.0, "cond in while")
        check_eq([int(s.run(w, {p: b})) for b in (True, False)], [7, -1], "while in cond, cond in cond")


@part
def cond_gradients(a):
    x = v1.placeholder(tf.float32, [])
    y = v1.cond(x > 0.0, lambda: x * x, lambda: -x)
    (g,) = tf.gradients(y, x)
    # A cond in a loop whose branches depend on the loop's value: doubles below 4, else adds 1.
    step = lambda i, z: (i + 1, v1.cond(z < 4.0, lambda: z * 2.0, lambda: z + 1.0))
    _, z = tf.while_loop(lambda i, z: i < 5, step, [0, x])
    (gz,) = tf.gradients(z, x)
    with v1.Session(a.target) as s:
        check_close(s.run([y, g], {x: 3.0}), [9.0, 6.0], "taken")
        check_close(s.run([y, g], {x: -3.0}), [3.0, -1.0], "not taken")
        check_close(s.run([z, gz], {x: 1.5}), [6.0 + 3.0, 4.0], "cond in loop")


@part
def case_and_switch_case(a):
    x, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.int32, [])
    branches = [lambda: tf.constant(5), lambda: tf.constant(6), lambda: tf.constant(7)]
    switch = tf.switch_case(b, branches)
    text = v1.case(
        [(x > 5.0, lambda: tf.constant("big")), (x > 0.0, lambda: tf.constant("small"))],
        default=lambda: tf.constant("neg"),
    )
    with v1.Session(a.target) as s:
        check_eq([int(s.run(switch, {b: k})) for k in (0, 1, 2, 9, -1)], [5, 6, 7, 7, 7], "out of range takes the last")
        check_eq([s.run(text, {x: k}) for k in (9.0, 1.0, -1.0)], [b"big", b"small", b"neg"])


@part
def map_scan_fold(a):
    x = v1.placeholder(tf.float32, [None])
    square = tf.map_fn(lambda v: v * v, x)
    sums = tf.scan(lambda acc, v: acc + v, x)
    product = tf.foldl(lambda acc, v: acc * v, x)
    right = tf.foldr(lambda acc, v: acc * 0.5 + v, x)
    (g,) = tf.gradients(tf.reduce_sum(sums), x)
    with v1.Session(a.target) as s:
        got = s.run([square, sums, product, right, g], {x: [1.0, 2.0, 3.0]})
        check_eq([r.tolist() for r in got], [[1, 4, 9], [1, 3, 6], 6, 1 + 0.5 * 2 + 0.25 * 3, [3, 2, 1]])


@part
def control_dependencies(a):
    v = v1.Variable(1.0, name="ordered", use_resource=True)
    with tf.control_dependencies([v.assign(5.0)]):
        mark = tf.no_op()
    with tf.control_dependencies([mark]):
        out = v.read_value() + 1.0
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        check_eq(float(s.run(out)), 6.0)


@part
def functions(a):
    @tf.function
    def product(x, y):
        return tf.matmul(x, y) + 1.0

    @tf.function
    def recursive_sum(n):
        total = tf.constant(0)
        while total < n:
            total += 3
        return total

    x = v1.placeholder(tf.float32, [2, 3])
    y = product(x, tf.ones([3, 2]))
    (g,) = tf.gradients(y, x)
    n = v1.placeholder(tf.int32, [])
    total = recursive_sum(n)
    with v1.Session(a.target) as s:
        got, slope = s.run([y, g], {x: np.ones([2, 3])})
        check_eq(got.tolist(), [[4, 4], [4, 4]], "call")
        check_eq(slope.tolist(), [[2, 2, 2], [2, 2, 2]], "gradient of a call")
        check_eq(int(s.run(total, {n: 10})), 12, "loop in a function")


@part
def functional_ops(a):
    """While and If as nodes with functions, whatever the mode of the program."""
    from tensorflow.python.framework import function
    from tensorflow.python.ops import functional_ops as f

    @function.Defun(tf.int32, tf.float32)
    def below(i, x):
        return i < 10

    @function.Defun(tf.int32, tf.float32)
    def body(i, x):
        return i + 1, x * 2.0

    @function.Defun(tf.float32)
    def negate(x):
        return -x

    @function.Defun(tf.float32)
    def half(x):
        return x / 2.0

    p, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [])
    loop = f.While([tf.constant(0), x], below, body)
    branch = f.If(p, [x], negate, half)[0]
    with v1.Session(a.target) as s:
        i, y = s.run(loop, {x: 1.0})
        check_eq((int(i), float(y)), (10, 1024.0), "While")
        check_eq([float(s.run(branch, {p: b, x: 3.0})) for b in (True, False)], [-3.0, 1.5], "If")


@part
def dead_tensors(a):
    """A fetch on the branch not taken is dead, which the client is told."""
    if a.resource:
        return
    p = v1.placeholder(tf.bool, [])
    from tensorflow.python.ops import control_flow_ops

    off, on = control_flow_ops.switch(tf.constant(1.0), p)
    merged, index = control_flow_ops.merge([tf.identity(off), on * 2.0])
    dead = tf.identity(off, name="dead")
    with v1.Session(a.target) as s:
        check_eq([float(z) for z in s.run([merged, index], {p: True})], [2.0, 1.0], "taken")
        check_eq([float(z) for z in s.run([merged, index], {p: False})], [1.0, 0.0], "not taken")
        with raises(errors.InternalError, "Failed to fetch outputs for step ", ";dead:0;0:0 was not valid.)"):
            s.run(dead, {p: True})


main(__doc__)
