"""make_callable, and the callables the C API makes on the server (MakeCallable, RunCallable, ReleaseCallable)."""
from tensorflow.core.protobuf import config_pb2

from common import *

F = np.float32


def options(feed=(), fetch=(), target=()):
    o = config_pb2.CallableOptions()
    o.feed.extend(feed)
    o.fetch.extend(fetch)
    o.target.extend(target)
    return o


def sum_graph():
    x, y, z = (v1.placeholder(tf.float32, [], name=n) for n in "xyz")
    total = tf.add(x, y, name="total")
    return x, y, z, total, tf.multiply(total, z, name="product")


@part
def public(a):
    x, y, z, total, product = sum_graph()
    with v1.Session(a.target) as s:
        f = s.make_callable([total, product], [x, y, z])
        check_eq([float(v) for v in f(1.0, 2.0, 4.0)], [3.0, 12.0])
        check_eq(float(s.make_callable(total, [x, y], accept_options=True)(F(1), F(5))), 6.0)


@part
def on_the_server(a):
    x, y, z, total, product = sum_graph()
    v = v1.get_variable("v", initializer=1.0)
    add = v1.assign_add(v, total, name="add")
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        make = lambda *o: s._make_callable_from_options(options(*o))
        both = make(["x:0", "y:0", "z:0"], ["product:0", "total:0"])
        check_eq([float(r) for r in both(F(1), F(2), F(4))], [12.0, 3.0], "fetches in the order asked for")
        swapped = make(["y:0", "x:0", "z:0"], ["total:0", "product:0"])
        check_eq([float(r) for r in swapped(F(1), F(5), F(4))], [6.0, 24.0], "feeds in the order given")
        update = make(["x:0", "y:0"], [], [add.op.name])
        for _ in range(3):
            check_eq(update(F(1), F(1)), [])
        check_eq(float(s.run(v)), 7.0, "target alone")
        # The graph grows, the callables stay.
        tf.constant(1.0)
        s.run(total, {x: 1, y: 1})
        check_eq([float(r) for r in both(F(2), F(2), F(2))], [8.0, 4.0], "after an extension")
        del swapped, update
        check_eq([float(r) for r in both(F(1), F(1), F(1))], [2.0, 2.0], "others released")
        del both


@part
def many_threads(a):
    x, y, z, total, product = sum_graph()
    with v1.Session(a.target) as s:
        f = s._make_callable_from_options(options(["x:0", "y:0"], ["total:0"]))
        work = lambda k: [float(f(F(k), F(i))[0]) for i in range(40)]
        threads = [Thread(work, k) for k in range(8)]
        for k, t in enumerate(threads):
            check_eq(t.value(), [float(k + i) for i in range(40)])
        del f


@part
def misuse(a):
    x, y, z, total, product = sum_graph()
    with v1.Session(a.target) as s:
        make = lambda *o: s._make_callable_from_options(options(*o))
        for o, kind, text in (
            ((["x:0"], ["nosuch:0"]), errors.NotFoundError, "FetchOutputs node nosuch:0: not found"),
            ((["nosuch:0"], ["total:0"]), errors.NotFoundError, "FeedInputs: unable to find feed output nosuch:0"),
            ((["x:0"], [], ["nosuch"]), errors.NotFoundError, "PruneForTargets: Some target nodes not found: nosuch "),
            ((), errors.InvalidArgumentError, "Must specify at least one target to fetch or execute."),
        ):
            with raises(kind, text):
                make(*o)
        device = options(["x:0", "y:0"], ["total:0"])
        device.feed_devices["x:0"] = "/job:local/task:0/device:CPU:0"
        with raises(errors.UnimplementedError, "feed_devices and CallableOptions::fetch_devices"):
            s._make_callable_from_options(device)
        f = make(["x:0", "y:0"], ["total:0"])
        with raises(errors.InternalError, "Output 0 of type int32 does not match declared output type float for node {{node _recv_x_0}}"):
            f(np.int32(1), F(2))
        unfed = make(["x:0"], ["total:0"])
        with raises(errors.InvalidArgumentError, "You must feed a value for placeholder tensor 'y' with dtype float"):
            unfed(F(1))
        check_eq([float(r) for r in f(F(1), F(2))], [3.0], "fit")
        del f, unfed


@part
def traced(a):
    x, y, z, total, product = sum_graph()
    with v1.Session(a.target) as s:
        o = options(["x:0", "y:0"], ["total:0"])
        o.run_options.trace_level = v1.RunOptions.FULL_TRACE
        f = s._make_callable_from_options(o)
        check_eq(float(f(F(1), F(2), run_metadata=v1.RunMetadata())[0]), 3.0)
        del f


main(__doc__)
