"""Errors as a client sees them: class, text, the op they name; and a session that is fit afterwards."""
import raw
from common import *

ONES = np.ones([2, 3], np.float32)
INVALID = errors.InvalidArgumentError


def default(value):
    """A constant that no optimizer folds away."""
    value = np.asarray(value)
    return v1.placeholder_with_default(value, value.shape)


@part
def kernels(a):
    p, q = v1.placeholder(tf.float32, [None, None]), v1.placeholder(tf.float32)
    feed = {p: ONES, q: ONES}
    wide = {p: ONES, q: np.ones([2, 4], np.float32)}
    cases = [
        (tf.matmul(p, q, name="mm"), feed, "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]"),
        (tf.add(p, q, name="ad"), wide, "Incompatible shapes: [2,3] vs. [2,4]"),
        (tf.concat([p, q], 0, name="cc"), wide, "Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. shape[1] = [2,4]"),
        (tf.reshape(p, [5, 5], name="rs"), feed, "Input to reshape is a tensor with 6 values, but the requested shape has 25"),
        (tf.slice(p, [0, 0], [3, 3], name="sl"), feed, "Expected size[0] in [0, 2], but got 3"),
        (tf.strided_slice(p, [5], [6], shrink_axis_mask=1, name="ss"), feed, "slice index 5 of dimension 0 out of bounds."),
        (tf.gather(default([1, 2, 3]), default([0, 7]), name="ga"), {}, "indices[1] = 7 is not in [0, 3)"),
        (tf.gather(default([[1, 2]]), default([0, -1]), axis=1, name="gx"), {}, "indices[1] = -1 is not in [0, 2)"),
        (tf.gather_nd(default([1, 2, 3]), default([[7]]), name="gn"), {}, "indices[0] = [7] does not index into param shape [3]"),
        (tf.math.floordiv(default(1), default(0), name="dv"), {}, "Integer division by zero"),
        (tf.math.floormod(default([1, 2]), default([0, 1]), name="md"), {}, "Integer division by zero"),
        (v1.check_numerics(p, "bad value", name="cn"), {p: [[np.nan]]}, "bad value : Tensor had NaN values"),
        (v1.check_numerics(p, "bad value", name="ci"), {p: [[np.inf]]}, "bad value : Tensor had Inf values"),
        (tf.strings.to_number(default([b"zz"]), name="tn"), {}, "StringToNumberOp could not correctly convert string: zz"),
    ]
    with v1.Session(a.target) as s:
        task = task_name(s)
        wrong = []
        for fetch, values, text in cases:
            name = fetch.op.name
            try:
                with raises(INVALID, text) as r:
                    s.run(fetch, values)
                check_op(r.e, name)
                # The master says which task failed, the executor which node.
                check("From %s:\n" % task in r.e.message, "no `From %s:` in" % task, r.e.message[:500])
            except AssertionError as e:
                wrong.append("%s: %s" % (name, str(e)[:700]))
        check(not wrong, "\n".join(wrong))
        check_eq(s.run(cases[0][0], {p: ONES, q: ONES.T}), np.full([2, 2], 3, np.float32), "the session is fit after errors")
        check_eq(float(s.run(default(np.float32(1)) / default(np.float32(0)))), np.inf, "1.0/0.0 is no error")


@part
def assertion(a):
    p = v1.placeholder(tf.float32, [None])
    failing = v1.Assert(tf.reduce_all(p > 0), ["neg:", p])
    with v1.Session(a.target) as s:
        s.run(failing, {p: [1.0]})
        with raises(INVALID, "assertion failed: [neg:] [-1 2]"):
            s.run(failing, {p: [-1.0, 2.0]})


@part
def placeholder_not_fed(a):
    free, fixed = v1.placeholder(tf.float32, name="free"), v1.placeholder(tf.int32, [2], name="fixed")
    partly = v1.placeholder(tf.float32, [None, 3], name="partly")
    with v1.Session(a.target) as s:
        for p, text in (
            (free, "You must feed a value for placeholder tensor 'free' with dtype float"),
            (fixed, "You must feed a value for placeholder tensor 'fixed' with dtype int32 and shape [2]"),
            (partly, "You must feed a value for placeholder tensor 'partly' with dtype float and shape [?,3]"),
        ):
            with raises(INVALID, text) as r:
                s.run(p + 1)
            check_op(r.e, p.op.name)


@part
def uninitialized_ref(a):
    v = v1.Variable([1.0], name="ref", use_resource=False)
    with v1.Session(a.target) as s:
        with raises(errors.FailedPreconditionError, "Attempting to use uninitialized value ref") as r:
            s.run(v + 1.0)
        check_op(r.e, "ref/read")
        with raises(errors.FailedPreconditionError, "Attempting to use uninitialized value ref") as r:
            s.run(v1.assign_add(v, [1.0], name="more"))
        check_op(r.e, "more")
        with raises(errors.FailedPreconditionError, "Attempting to use uninitialized value ref"):
            s.run(v)
        check_eq(bool(s.run(v1.is_variable_initialized(v))), False)
        s.run(v.initializer)
        check_eq(s.run(v1.assign_add(v, [1.0])).tolist(), [2.0])


@part
def uninitialized_resource(a):
    v = v1.Variable([1.0], name="res", use_resource=True)
    with v1.Session(a.target) as s:
        text = (
            "Could not find variable res. This could mean that the variable has been deleted. "
            "In TF1, it can also mean the variable is uninitialized. Debug info: container="
        )
        with raises(errors.FailedPreconditionError, text) as r:
            s.run(v)
        check_op(r.e, "res/Read/ReadVariableOp")
        with raises(errors.NotFoundError, "/res/", "does not exist.") as r:
            s.run(v.assign_add([1.0], name="more"))
        check_op(r.e, "more")
        check_eq(bool(s.run(v1.is_variable_initialized(v))), False)
        s.run(v.initializer)
        check_eq(s.run(v.assign_add([1.0])).tolist(), [2.0])


@part
def report_uninitialized(a):
    vs = [v1.Variable(0.0, name="rep_%d" % i, use_resource=a.resource) for i in range(3)]
    report = v1.report_uninitialized_variables()
    with v1.Session(a.target) as s:
        check_eq(sorted(s.run(report)), [b"rep_0", b"rep_1", b"rep_2"], "none")
        s.run(vs[1].initializer)
        check_eq(sorted(s.run(report)), [b"rep_0", b"rep_2"], "one")


@part
def wrong_feeds(a):
    """The Python client checks feeds itself; below it, the server has to."""
    p, q = v1.placeholder(tf.float32, [None, None], name="p"), v1.placeholder(tf.float32, name="q")
    mm = tf.matmul(p, q, name="mm")
    with v1.Session(a.target) as s:
        s.run(mm, {p: ONES, q: ONES.T})

        def run(left, right):
            feeds = {p._as_tf_output(): left, q._as_tf_output(): right}
            return s._call_tf_sessionrun(None, feeds, [mm._as_tf_output()], [], None)

        text = "Output 0 of type int32 does not match declared output type float for node {{node _recv_p_0}}"
        with raises(errors.InternalError, text):
            run(np.ones([2, 2], np.int32), np.ones([2, 2], np.float32))
        with raises(INVALID, "In[0] ndims must be >= 2: 1", "[[{{node mm}}]]"):
            run(np.ones([2], np.float32), np.ones([2, 2], np.float32))
        check_eq(run(ONES, ONES.T)[0], np.full([2, 2], 3, np.float32), "fit")


@part
def what_no_server_runs(a):
    """Python functions are in the client's process, and servers keep no tensors between steps."""
    x = tf.constant(1.0)
    functions = [
        v1.py_func(lambda x: x, [x], tf.float32, name="py"),
        tf.numpy_function(lambda x: x, [x], tf.float32, name="np"),
        v1.py_func(lambda x: x, [x], tf.float32, stateful=False, name="free"),
        tf.py_function(lambda x: x, [x], tf.float32, name="eager"),
    ]
    with v1.Session(a.target) as s:
        handle = "h;0;%s/device:CPU:0" % task_name(s)
        fed, tensor = v1.get_session_tensor(handle, tf.float32, name="tensor")
        gone, delete = v1.delete_session_tensor(handle, name="delete")
        handles = [
            (v1.get_session_handle(x, name="handle"), {}, "GetSessionHandle"),
            (tf.raw_ops.GetSessionHandleV2(value=x, name="handle2"), {}, "GetSessionHandle"),
            (tensor, {fed: handle}, "GetSessionTensor"),
            (delete, {gone: handle}, "DeleteSessionTensor"),
        ]
        check_eq(float(s.run(x + 1)), 2.0, "what does not need them runs")
        for fetch in functions:
            with raises(INVALID, "Could not find callback with key=pyfunc_", " in the registry.") as r:
                s.run(fetch)
            check_op(r.e, fetch.op.name)
        for fetch, feed, op in handles:
            with raises(errors.FailedPreconditionError, op + " called on null session state") as r:
                s.run(fetch, feed)
            check_op(r.e, getattr(fetch, "op", fetch).name)


@part
def no_such_device(a):
    text = "Make sure the device specification refers to a valid device."
    for device in ("/job:nosuch", "/device:CPU:7", "/task:5", "/device:GPU:0"):
        with tf.Graph().as_default():
            fine = tf.constant(2.0, name="fine")
            with v1.device(device):
                x = tf.constant(1.0, name="x")
            shown = "Cannot assign a device for operation x: {{node x}} was explicitly assigned to %s but available devices are [ " % device
            with v1.Session(a.target) as s:
                with raises(INVALID, shown, "/replica:0/task:0/device:CPU:0 ]. " + text, "[[x]]"):
                    s.run(x)
                # The whole graph is placed, not only what runs.
                with raises(INVALID, shown):
                    s.run(fine)
    with tf.Graph().as_default():
        fine = tf.constant(2.0)
        with v1.Session(a.target) as s:
            s.run(fine)
            with v1.device("/device:CPU:7"):
                tf.constant(1.0, name="late")
            for _ in range(2):
                with raises(INVALID, "Cannot assign a device for operation late"):
                    s.run(fine)


@part
def an_error_ends_a_blocked_step(a):
    p = v1.placeholder(tf.float32, [None])
    blocked = v1.FIFOQueue(1, tf.float32).dequeue()
    bad = v1.check_numerics(p, "bad value")
    with v1.Session(a.target) as s:
        start = time.time()
        with raises(INVALID, "bad value"):
            s.run([blocked, bad], {p: [np.inf]})
        check(time.time() - start < 10, "the step took long to end")


@part
def no_server(a):
    start = time.time()
    with raises(errors.DeadlineExceededError, "Deadline Exceeded"):
        v1.Session("grpc://localhost:1", config=v1.ConfigProto(operation_timeout_in_ms=500)).run(tf.constant(1))
    check(time.time() - start < 20, "it took", time.time() - start)


@part
def unknown_names_on_the_wire(a):
    """Requests that the Python client would not send, as raw messages."""
    channel = raw.Channel(a.target)
    node = raw.node("c", "Const", dtype=raw.attr_type(raw.FLOAT), value=raw.attr_float_tensor(2.0))
    status, message, body = channel.call("CreateSession", raw.create_session(raw.graph(node)))
    check_eq(status, 0, message)
    handle = raw.fields(body)[1][0]

    def run(**request):
        status, message, body = channel.call("RunStep", raw.run_step(handle, **request))
        check_eq(status, 0, "the error is in the body")
        found = raw.fields(body)
        return found.get(3, [0])[0], found.get(4, [b""])[0].decode()

    check_eq(run(fetch=["c:0"]), (0, ""), "a good fetch")
    check_eq(run(fetch=["nosuch:0"]), (5, "FetchOutputs node nosuch:0: not found"))
    code, text = run(fetch=["c:7"])
    check_eq(code, 3, text)
    check_eq(run(target=["nosuch"]), (5, "PruneForTargets: Some target nodes not found: nosuch "))
    check_eq(run(feed={"nosuch:0": 1.0}, fetch=["c:0"]), (5, "FeedInputs: unable to find feed output nosuch:0"))
    code, text = run()
    check_eq((code, text), (3, "Must specify at least one target to fetch or execute."))
    # The same request id twice.
    check_eq(run(fetch=["c:0"], request_id=77)[0], 0)
    code, text = run(fetch=["c:0"], request_id=77)
    check_eq(code, 10, text)
    check("The same RunStep (Master) request was received twice." in text, text)

    # Extend: unknown op, wrong version, a name that is taken, an unknown input.
    def extend(graph, version):
        return channel.call("ExtendSession", raw.extend_session(handle, graph, version))[:2]

    status, message = extend(raw.graph(raw.node("n", "NoSuchOp")), 0)
    check_eq(status, 5, message)
    check("Op type not registered 'NoSuchOp' in binary running on " in message, message)
    check_eq(extend(raw.graph(raw.node("n", "NoOp")), 5), (10, "Current version is 0 but caller expected 5."))
    status, message = extend(raw.graph(node), 0)
    check_eq(status, 3, message)
    check("includes node 'c', which was created by a previous call to Create or Extend" in message, message)
    status, message = extend(raw.graph(raw.node("i", "Identity", ["ghost"], T=raw.attr_type(raw.FLOAT))), 0)
    check_eq(status, 3, message)
    check_eq(extend(raw.graph(raw.node("n", "NoOp")), 0)[0], 0, "a good extension after all that")
    check_eq(run(target=["n"])[0], 0, "the new node")
    # Handles nobody gave out.
    status, message, _ = channel.call("RunStep", raw.run_step(b"feed", fetch=["c:0"], in_body=False))
    check_eq((status, message), (10, "Session feed is not found."))
    status, message, _ = channel.call("CloseSession", raw.message(raw.text(1, b"feed")))
    check_eq((status, message), (10, "Session feed is not found. Possibly, this master has restarted."))
    status, message, _ = channel.call("ListDevices", raw.message(raw.text(1, b"feed")))
    check_eq((status, message), (3, "Session feed is not found. Possibly, this master has restarted."))
    status, message, _ = channel.call("RunCallable", raw.message(raw.text(1, handle), raw.number(2, 9)))
    check_eq((status, message), (3, "No such callable handle: 9"))
    check_eq(channel.call("CloseSession", raw.message(raw.text(1, handle)))[0], 0, "close")
    channel.close()


main(__doc__)
