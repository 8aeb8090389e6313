"""The graphs that are timed, as TensorFlow builds them.

A case is a folder that both sides run as it stands:

    graph.pb     a GraphDef
    *.pb         TensorProtos to feed
    spec.json    {"case": NAME, "kind": "run" | "import", "optimize": false,
                  "setup": [STEP…], "step": STEP, "units": 10000, "unit": "op",
                  "flops": F, "bytes": B, "want": {"ratio": R} | {"ns": N}}

where STEP is {"feeds": {"x:0": "x.pb"}, "fetches": […], "targets": […]}. `setup` runs once in
the session, `step` is timed. For `"kind": "import"` the timed thing is: new session,
whole graph in, first `step`. One step does `units` units of work of `flops` floating-point
operations and `bytes` of unavoidable memory traffic each. `"optimize": false` forbids
every pass that changes what is computed: most cases repeat one op on the same inputs, held
in order by control edges, so that a step is long beside the cost of starting it.
Results are never fetched. `want` is the aim: TensorFlow's time over ours, or nanoseconds per unit.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import json
import math

import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops

MILLION = 1_000_000


@dataclasses.dataclass
class Case:
    """One timed step, before it is written."""

    target: object
    units: int = 1
    unit: str = "op"
    flops: float = 0
    bytes: float = 0
    want: dict = dataclasses.field(default_factory=dict)
    kind: str = "run"
    optimize: bool = False
    feeds: dict = dataclasses.field(default_factory=dict)
    setup: list = dataclasses.field(default_factory=list)


# Name -> function that builds the case in the default graph. It is given the case's folder.
CASES = {}


def case(name):
    def register(build):
        assert name not in CASES, name
        CASES[name] = build
        return build

    return register


def write(name, folder):
    """Builds a case and writes its folder."""
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    with tf.Graph().as_default() as graph:
        built = CASES[name](folder)
        init = v1.global_variables_initializer()
        definition = graph.as_graph_def()
    with open(os.path.join(folder, "graph.pb"), "wb") as file:
        file.write(definition.SerializeToString())
    spec = {"case": name}
    for field in ("kind", "optimize", "units", "unit", "flops", "bytes", "want"):
        spec[field] = getattr(built, field)
    spec["setup"] = [{"targets": [op.name]} for op in [init] + built.setup]
    spec["step"] = {"feeds": {}, "targets": [built.target.name]}
    for number, (name, proto) in enumerate(built.feeds.items()):
        spec["step"]["feeds"][name] = "feed%d.pb" % number
        with open(os.path.join(folder, "feed%d.pb" % number), "wb") as file:
            file.write(proto.SerializeToString())
    with open(os.path.join(folder, "spec.json"), "w") as file:
        json.dump(spec, file, indent=1)


# Parts of graphs.


def variable(name, shape, low=0.5, high=1.0, dtype=tf.float32):
    """A resource variable of random numbers that both sides draw alike."""
    start = lambda: tf.random.uniform(shape, low, high, dtype, seed=1)
    return v1.get_variable(name, initializer=start, dtype=dtype, use_resource=True)


def tensor(name, shape, low=0.5, high=1.0, dtype=tf.float32):
    """The value of such a variable, read once in a step."""
    return variable(name, shape, low, high, dtype).read_value()


def repeat(times, make):
    """Runs `make()` that often, one after another; the last op."""
    last = []
    for _ in range(times):
        with tf.control_dependencies(last):
            made = make()
        last = [made if isinstance(made, tf.Operation) else made.op]
    return last[0]


def repeats_for(flops):
    """So many that a step takes milliseconds at 100 Gflop/s."""
    return max(1, min(200, math.ceil(3e8 / flops)))


# The executor: scalar ops, so that everything but the op's own work is seen.

EXECUTOR_OPS = 10_000


@case("executor_chain")
def _(folder):
    x, y = tensor("x", []), tensor("y", [])
    for _ in range(EXECUTOR_OPS):
        x = raw.AddV2(x=x, y=y)
    return Case(x.op, units=EXECUTOR_OPS, want={"ns": 100})


@case("executor_wide")
def _(folder):
    x, y = tensor("x", []), tensor("y", [])
    level = [raw.AddV2(x=x, y=y) for _ in range(EXECUTOR_OPS // 2)]
    ops = len(level)
    while len(level) > 1:
        pairs = [raw.AddV2(x=a, y=b) for a, b in zip(level[::2], level[1::2])]
        ops += len(pairs)
        level = pairs + level[len(pairs) * 2:]
    return Case(level[0].op, units=ops, want={"ns": 100})


def while_loop():
    count, step = tf.constant(10_000), tensor("step", [])
    body = lambda i, total: (i + 1, total + step)
    _, total = tf.while_loop(lambda i, _: i < count, body, (tf.constant(0), tf.constant(0.0)))
    return Case(
        raw.Identity(input=total).op, units=10_000, unit="iteration", optimize=True, want={"ratio": 3.0})


@case("while_loop_frames")
def _(folder):
    """Switch, Merge, Enter, Exit, NextIteration in the graph itself."""
    v1.disable_control_flow_v2()
    return while_loop()


@case("while_loop_functional")
def _(folder):
    """One While node with cond and body in the function library."""
    v1.enable_control_flow_v2()
    built = while_loop()
    v1.disable_control_flow_v2()
    return built


@case("import_10k_nodes")
def _(folder):
    """100 layers of 100 nodes, each on two neighbours of the layer below; nothing folds or repeats."""
    x = v1.placeholder(tf.float32, [100], name="x")
    level = raw.Unpack(value=x, num=100)
    kinds = (raw.AddV2, raw.Mul, raw.Maximum, raw.Sub)
    for depth in range(100):
        with tf.name_scope("layer_%d" % depth):
            op = kinds[depth % 4]
            level = [op(x=level[i], y=level[(i + 1 + depth) % 100]) for i in range(100)]
    with tf.control_dependencies(level):
        end = tf.no_op()
    feeds = {"x:0": tf.make_tensor_proto([0.5] * 100, tf.float32)}
    return Case(end, unit="import", kind="import", optimize=True, feeds=feeds, want={"ns": 50e6})


# Matrix products. Shapes are m x k x n of the product, transposes as stored (N or T per side).

SQUARES = (64, 128, 256, 512, 1024, 2048)
LAYERS = {
    "logreg": (100, 784, 10),
    "mlp1": (128, 784, 500),
    "mlp2": (128, 500, 300),
    "mlp3": (128, 300, 10),
    "cnn_dense": (64, 3136, 512),
}


def matmul_case(name, m, k, n, transposes):
    ta, tb = (side == "T" for side in transposes)

    @case(name)
    def _(folder):
        a = tensor("a", [k, m] if ta else [m, k])
        b = tensor("b", [n, k] if tb else [k, n])
        flops = 2 * m * k * n
        times = repeats_for(flops)
        last = repeat(times, lambda: raw.MatMul(a=a, b=b, transpose_a=ta, transpose_b=tb))
        return Case(last, units=times, flops=flops, want={"ratio": 0.95})


for _n in SQUARES:
    matmul_case("matmul_%d" % _n, _n, _n, _n, "NN")
for _transposes in ("NT", "TN", "TT"):
    matmul_case("matmul_512_%s" % _transposes, 512, 512, 512, _transposes)
for _name, (_m, _k, _n) in LAYERS.items():
    matmul_case("matmul_%s_forward_%dx%dx%d" % (_name, _m, _k, _n), _m, _k, _n, "NN")
    matmul_case("matmul_%s_dinput_%dx%dx%d_NT" % (_name, _m, _n, _k), _m, _n, _k, "NT")
    matmul_case("matmul_%s_dweight_%dx%dx%d_TN" % (_name, _k, _m, _n), _k, _m, _n, "TN")


# Convolutions: batch, height = width, channels in, window, channels out, stride.

CONVOLUTIONS = {
    "b32_28x28x1_5x5x32": (32, 28, 1, 5, 32, 1),
    "b32_14x14x32_5x5x64": (32, 14, 32, 5, 64, 1),
    "b8_56x56x64_3x3x64": (8, 56, 64, 3, 64, 1),
    "b1_224x224x3_7x7x64_s2": (1, 224, 3, 7, 64, 2),
    "b8_28x28x128_1x1x256": (8, 28, 128, 1, 256, 1),
}


def conv_case(name, shape, direction):
    batch, size, channels, window, filters, stride = shape
    out = -(-size // stride)
    flops = 2 * batch * out * out * filters * window * window * channels
    image, kernel = [batch, size, size, channels], [window, window, channels, filters]
    options = {"strides": [1, stride, stride, 1], "padding": "SAME"}

    @case("conv2d_%s_%s" % (direction, name))
    def _(folder):
        x, w = tensor("x", image), tensor("w", kernel)
        dy = tensor("dy", [batch, out, out, filters])
        sizes = tf.constant(kernel if direction == "dfilter" else image)
        make = {
            "forward": lambda: raw.Conv2D(input=x, filter=w, **options),
            "dinput": lambda: raw.Conv2DBackpropInput(input_sizes=sizes, filter=w, out_backprop=dy, **options),
            "dfilter": lambda: raw.Conv2DBackpropFilter(input=x, filter_sizes=sizes, out_backprop=dy, **options),
        }[direction]
        times = repeats_for(flops)
        return Case(repeat(times, make), units=times, flops=flops, want={"ratio": 0.6})


for _name, _shape in CONVOLUTIONS.items():
    for _direction in ("forward", "dinput", "dfilter"):
        conv_case(_name, _shape, _direction)


# One pass over a million floats.

FLOAT = 4


def pass_case(name, build, floats_moved, times=20):
    """`build()` returns a function that makes the op; `floats_moved` are read or written."""

    @case(name)
    def _(folder):
        return Case(repeat(times, build()), units=times, bytes=FLOAT * floats_moved, want={"ratio": 1.0})


def unary(op):
    def build():
        x = tensor("x", [MILLION], 0.1, 3.0)
        argument = {"Relu": "features", "Softplus": "features", "Elu": "features"}.get(op, "x")
        return lambda: getattr(raw, op)(**{argument: x})

    return build


def binary(op, first="x", second="y"):
    def build():
        x, y = tensor("x", [MILLION]), tensor("y", [MILLION])
        return lambda: getattr(raw, op)(**{first: x, second: y})

    return build


for _op in ("Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Atan", "Sigmoid", "Relu"):
    pass_case("unary_%s" % _op.lower(), unary(_op), 2 * MILLION)
for _op in ("AddV2", "Mul", "RealDiv", "Maximum", "SquaredDifference"):
    pass_case("binary_%s" % _op.lower(), binary(_op), 3 * MILLION)
pass_case("relugrad", binary("ReluGrad", "gradients", "features"), 3 * MILLION)


def half(op):
    def build():
        x, y = tensor("x", [MILLION], dtype=tf.half), tensor("y", [MILLION], dtype=tf.half)
        return lambda: getattr(raw, op)(x=x, y=y)

    return build


def cast(start, end):
    def build():
        x = tensor("x", [MILLION], 0.5, 100.0, start)
        return lambda: raw.Cast(x=x, DstT=end)

    return build


for _op in ("AddV2", "Mul", "RealDiv"):
    pass_case("half_%s" % _op.lower(), half(_op), 1.5 * MILLION)
for _start, _end in ((tf.float32, tf.int32), (tf.float32, tf.uint8), (tf.float32, tf.half), (tf.half, tf.float32)):
    pass_case(
        "cast_%s_%s" % (_start.name, _end.name), cast(_start, _end), (_start.size + _end.size) / FLOAT * MILLION)


def pool(make):
    """Pooling of a batch of 32 images as the first layer of a small network gives them."""

    def build():
        x, dy = tensor("x", [32, 28, 28, 32]), tensor("dy", [32, 14, 14, 32])
        options = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        y = raw.MaxPool(input=x, **options)
        return lambda: make(x, y, dy, options)

    return build


POOLED = 32 * 28 * 28 * 32
pass_case("max_pool_b32_28x28x32", pool(lambda x, y, dy, options: raw.MaxPool(input=x, **options)), 1.25 * POOLED)
pass_case("max_pool_grad_b32_28x28x32", pool(
    lambda x, y, dy, options: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, **options)), 2.5 * POOLED)
pass_case("avg_pool_b32_28x28x32", pool(lambda x, y, dy, options: raw.AvgPool(value=x, **options)), 1.25 * POOLED)


def on_matrix(rows, columns, make):
    """An op on a [rows, columns] matrix `x` and a vector `b` of the columns."""

    def build():
        x, b = tensor("x", [rows, columns]), tensor("b", [columns])
        zero, one, both = tf.constant([0]), tf.constant([1]), tf.constant([0, 1])
        return lambda: make(x, b, {"rows": zero, "columns": one, "all": both})

    return build


for _op in ("Sum", "Mean", "Max"):
    for _axis in ("all", "rows", "columns"):
        _make = lambda x, b, axes, op=_op, axis=_axis: getattr(raw, op)(input=x, axis=axes[axis])
        pass_case("reduce_%s_%s" % (_op.lower(), _axis), on_matrix(1000, 1000, _make), MILLION)

_softmax = lambda x, b, axes: raw.Softmax(logits=x)
pass_case("softmax_1024x1000", on_matrix(1024, 1000, _softmax), 2 * 1024 * 1000, 10)
pass_case("softmax_100000x10", on_matrix(100_000, 10, _softmax), 2 * MILLION, 10)
pass_case("softmax_xent_1024x1000", on_matrix(
    1024, 1000, lambda x, b, axes: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=x).loss), 3 * 1024 * 1000, 10)
pass_case("bias_add_1000x1000", on_matrix(
    1000, 1000, lambda x, b, axes: raw.BiasAdd(value=x, bias=b)), 2 * MILLION)
pass_case("bias_add_grad_1000x1000", on_matrix(
    1000, 1000, lambda x, b, axes: raw.BiasAddGrad(out_backprop=x)), MILLION)
pass_case("add_row_1000x1000", on_matrix(1000, 1000, lambda x, b, axes: raw.AddV2(x=x, y=b)), 2 * MILLION)


def transpose():
    x, order = tensor("x", [1000, 1000]), tf.constant([1, 0])
    return lambda: raw.Transpose(x=x, perm=order)


pass_case("transpose_1000x1000", transpose, 2 * MILLION)


def chain_case(name, ops):
    @case(name)
    def _(folder):
        x, z = tensor("x", [MILLION]), tensor("z", [MILLION])
        for i in range(20):
            z = ops[i % len(ops)](z, x)
        return Case(z.op, units=20, bytes=FLOAT * 3 * MILLION, want={"ratio": 1.0})


chain_case("chain20_arithmetic", (tf.multiply, tf.add, tf.maximum, tf.subtract))
chain_case("chain20_transcendental", tuple(
    lambda z, _, op=op: op(z) for op in (tf.tanh, tf.sigmoid, tf.exp, tf.sqrt)))


# Optimizer updates of a million floats. Floats moved: each slot read and written, the gradient read.


def optimizer_case(name, slots, make):
    def build():
        variables = [variable("v%d" % i, [MILLION]) for i in range(slots)]
        gradient, rate = tensor("gradient", [MILLION]), tf.constant(1e-6)
        return lambda: make(*(v.handle for v in variables), gradient, rate)

    pass_case("optimizer_" + name, build, (2 * slots + 1) * MILLION, 10)


optimizer_case("sgd", 1, lambda var, grad, lr: raw.ResourceApplyGradientDescent(var=var, alpha=lr, delta=grad))
optimizer_case("momentum", 2, lambda var, accum, grad, lr: raw.ResourceApplyMomentum(
    var=var, accum=accum, lr=lr, grad=grad, momentum=lr))
optimizer_case("adagrad", 2, lambda var, accum, grad, lr: raw.ResourceApplyAdagrad(
    var=var, accum=accum, lr=lr, grad=grad))
optimizer_case("adam", 3, lambda var, m, v, grad, lr: raw.ResourceApplyAdam(
    var=var, m=m, v=v, beta1_power=lr, beta2_power=lr, lr=lr, beta1=lr, beta2=lr, epsilon=lr, grad=grad))
optimizer_case("rmsprop", 3, lambda var, ms, mom, grad, lr: raw.ResourceApplyRMSProp(
    var=var, ms=ms, mom=mom, lr=lr, rho=lr, momentum=lr, epsilon=lr, grad=grad))


# Rows of a table that is larger than any cache.

TABLE, ROWS, WIDTH = MILLION, 26_624, 64


def rows_case(name, make, floats_moved):
    @case(name)
    def _(folder):
        table = variable("table", [TABLE, WIDTH])
        rows = tensor("rows", [ROWS], 0, TABLE, tf.int64)
        values, rate = tensor("values", [ROWS, WIDTH]), tf.constant(1e-6)
        return Case(
            repeat(4, make(table, rows, values, rate)),
            units=4, bytes=FLOAT * floats_moved, want={"ratio": 2.0})


def gather(table, rows, values, rate):
    return lambda: raw.ResourceGather(resource=table.handle, indices=rows, dtype=tf.float32)


def scatter(table, rows, values, rate):
    return lambda: raw.ResourceScatterAdd(resource=table.handle, indices=rows, updates=values)


def update(table, rows, values, rate):
    return lambda: raw.ResourceScatterUpdate(resource=table.handle, indices=rows, updates=values)


def adagrad(table, rows, values, rate):
    accumulator = variable("accumulator", [TABLE, WIDTH])
    return lambda: raw.ResourceSparseApplyAdagrad(
        var=table.handle, accum=accumulator.handle, lr=rate, grad=values, indices=rows)


rows_case("rows_gather", gather, 2 * ROWS * WIDTH)
rows_case("rows_scatter_add", scatter, 3 * ROWS * WIDTH)
rows_case("rows_scatter_update", update, 2 * ROWS * WIDTH)
rows_case("rows_sparse_adagrad", adagrad, 5 * ROWS * WIDTH)


# Checkpoints of 400 MB.

PARTS, PART = 10, 10 * MILLION


def checkpoint(folder):
    tensors = [tensor("part%d" % i, [PART]) for i in range(PARTS)]
    names, slices = ["part%d" % i for i in range(PARTS)], [""] * PARTS
    prefix = os.path.join(folder, "checkpoint")
    save = raw.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors)
    types = [tf.float32] * PARTS
    restore = raw.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, dtypes=types)
    return save, restore[0].op


@case("checkpoint_save_400mb")
def _(folder):
    save, _ = checkpoint(folder)
    return Case(save, unit="save", bytes=FLOAT * PART * PARTS, want={"ratio": 1.0})


@case("checkpoint_restore_400mb")
def _(folder):
    save, restore = checkpoint(folder)
    return Case(restore, unit="restore", bytes=FLOAT * PART * PARTS, setup=[save], want={"ratio": 1.0})
