"""The master and the worker service by raw messages: what no TensorFlow client shows, as other tasks and masters see it."""
import struct

import raw
from common import *

CALLABLE_FEED, CALLABLE_FETCH = 1, 2
FOREIGN = "/job:foreign/replica:0/task:0/device:CPU:0"


def const(name="c", value=2.0, on=""):
    return raw.node(name, "Const", on=on, dtype=raw.attr_type(raw.FLOAT), value=raw.attr_float_tensor(value))


def float_of(tensor):
    found = raw.fields(tensor)
    return struct.unpack("<f", (found.get(4) or found.get(5))[0][:4])[0]


class Master(object):
    def __init__(self, a, *nodes):
        self.channel = raw.Channel(a.target)
        self.call = self.channel.call
        status, message, body = self.call("CreateSession", raw.create_session(raw.graph(*nodes)))
        check_eq(status, 0, message)
        self.handle = raw.fields(body)[1][0]

    def close(self):
        check_eq(self.call("CloseSession", raw.text(1, self.handle))[0], 0, "close")
        self.channel.close()


@part
def answers_of_the_master(a):
    m = Master(a, const())
    check(len(m.handle) == 16 and int(m.handle, 16) > 0, "handle", m.handle)
    # Versions count up by one from zero, in field 4.
    for version in range(3):
        extension = raw.graph() if version == 1 else raw.graph(const("n%d" % version))
        status, message, body = m.call("ExtendSession", raw.extend_session(m.handle, extension, version))
        check_eq((status, raw.fields(body).get(4)), (0, [version + 1]), message)
    status, message, body = m.call("RunStep", raw.run_step(m.handle, fetch=["n2:0", "c:0"]))
    got = {raw.fields(t)[1][0]: float_of(raw.fields(t)[2][0]) for t in raw.fields(body)[1]}
    check_eq(got, {b"n2:0": 2.0, b"c:0": 2.0}, "fetches by name")
    # Without a session the devices of the whole cluster.
    body = m.call("ListDevices", b"")[2]
    names = [raw.fields(d)[1][0] for d in raw.fields(body)[1]]
    check(names[0].endswith(b"/replica:0/task:0/device:CPU:0"), names)
    m.close()


@part
def errors_as_status(a):
    """Without store_errors_in_response_body an error is the call's status."""
    m = Master(a, const(), raw.node("p", "Placeholder", dtype=raw.attr_type(raw.FLOAT)))
    status, message, _ = m.call("RunStep", raw.run_step(m.handle, fetch=["p:0"], in_body=False))
    check_eq(status, 3, message)
    check("You must feed a value for placeholder tensor 'p' with dtype float" in message, message)
    check("[[{{node p}}]]" in message, message)
    status, message, _ = m.call("RunStep", raw.run_step(m.handle, fetch=["ghost:0"], in_body=False))
    check_eq((status, message), (5, "FetchOutputs node ghost:0: not found"))
    m.close()


@part
def calls_that_do_not_parse(a):
    channel = raw.Channel(a.target)
    for service in ("tensorflow.MasterService", "tensorflow.WorkerService"):
        check_eq(channel.call("Nope", b"", service)[0], 12, "unknown method")
    check_eq(channel.call("Tracing", b"", "tensorflow.WorkerService")[:2], (12, "Tracing"))
    for method, service in (("RunStep", "Master"), ("CreateSession", "Master"), ("RecvTensor", "Worker"), ("RunGraph", "Worker")):
        for body in (b"\xff" * 12, b"\x0a\x05ab"):
            got = channel.call(method, body, "tensorflow.%sService" % service)[:2]
            check_eq(got, (13, "Unable to parse request"), method)
    # Empty messages parse: they name the session "".
    for method in ("RunStep", "ExtendSession", "PartialRunSetup", "MakeCallable", "RunCallable", "ReleaseCallable"):
        check_eq(channel.call(method, b"")[:2], (10, "Session  is not found."), method)
    channel.close()


FLOAT_T = dict(T=raw.attr_type(raw.FLOAT))
NOT_REGISTERED = (
    "Op type not registered 'NoSuchOp' in binary running on ",
    "Make sure the Op and Kernel are registered in the binary running in this process.",
)
# Nodes of a graph, the status of CreateSession, and what its text must contain.
BAD_GRAPHS = [
    ([raw.node("n", "NoSuchOp")], 5, NOT_REGISTERED),
    ([raw.node("?x", "NoOp")], 3, ["Illegal op name '?x'\n\t [[{{node ?x}}]]"]),
    ([raw.node("", "NoOp")], 3, ["Illegal op name ''"]),
    ([raw.node("n", "Identity", ["a:b:c"], **FLOAT_T)], 3, ["Illegal op input name 'a:b:c'\n\t [[{{node n}}]]"]),
    ([raw.node("n", "Placeholder")], 5, ["No attr named 'dtype' in NodeDef:"]),
    ([raw.node("n", "Identity", ["g"], **FLOAT_T)], 3, ["Node 'n': Unknown input node 'g'"]),
    ([raw.node("n", "Identity", ["n"], **FLOAT_T)], 3, ["1 nodes in a cycle"]),
    ([raw.node("n", "NoOp"), raw.node("n", "NoOp")], 3, ["Node 'n' is not unique"]),
    ([raw.node("n", "NoOp", on="/what:0")], 3, ["Malformed device specification '/what:0' in node: "]),
    (
        [raw.node("p", "Placeholder", dtype=raw.attr_type(3)), raw.node("n", "Identity", ["p"], **FLOAT_T)],
        3,
        ["Input 0 of node n was passed int32 from p:0 incompatible with expected float."],
    ),
]


def create(channel, graph):
    status, message, body = channel.call("CreateSession", raw.create_session(graph))
    if status == 0:
        channel.call("CloseSession", raw.text(1, raw.fields(body)[1][0]))
    return status, message


@part
def graphs_that_are_wrong(a):
    channel, wrong = raw.Channel(a.target), []
    for nodes, want, texts in BAD_GRAPHS:
        status, message = create(channel, raw.graph(*nodes))
        if status != want or any(t not in message for t in texts):
            wrong.append("got %d %r, want %d %r" % (status, message, want, list(texts)))
    check(not wrong, "\n".join(wrong))
    version = lambda *fields: raw.text(1, raw.node("n", "NoOp")) + raw.text(4, b"".join(fields))
    status, message = create(channel, version(raw.number(1, 2474), raw.number(2, 999999)))
    check_eq(status, 3, message)
    check("GraphDef min consumer version 999999 above current version " in message, message)
    # Old graphs, and attributes nobody knows, are taken.
    for graph in (version(), version(raw.number(1, 5)), raw.graph(raw.node("n", "NoOp", unknown=raw.attr_int(1)))):
        status, message = create(channel, graph)
        check_eq(status, 0, message)
    channel.close()


@part_beyond
def node_without_its_inputs(a):
    """TensorFlow's server aborts."""
    channel = raw.Channel(a.target)
    for node in (raw.node("n", "Identity", [], **FLOAT_T), raw.node("n", "NoOp", ["c"])):
        status, message = create(channel, raw.graph(const(), node))
        check_eq(status, 3, message)
    channel.close()


@part
def callables(a):
    nodes = [
        raw.node("x", "Placeholder", dtype=raw.attr_type(raw.FLOAT)),
        raw.node("y", "Add", ["x", "x"], T=raw.attr_type(raw.FLOAT)),
    ]
    m = Master(a, *nodes)
    options = raw.text(CALLABLE_FEED, "x:0") + raw.text(CALLABLE_FETCH, "y:0")
    handles = []
    for _ in range(2):
        status, message, body = m.call("MakeCallable", raw.text(1, m.handle) + raw.text(2, options))
        check_eq(status, 0, message)
        handles.append(raw.fields(body).get(1, [0])[0])
    check_eq(handles, [0, 1], "handles count up")
    run = lambda handle, *feeds: m.call("RunCallable", raw.text(1, m.handle) + raw.number(2, handle) + b"".join(raw.text(3, f) for f in feeds))
    status, message, body = run(1, raw.float_tensor(4.0))
    check_eq((status, float_of(raw.fields(body)[1][0])), (0, 8.0), message)
    release = lambda handle: m.call("ReleaseCallable", raw.text(1, m.handle) + raw.number(2, handle))[0]
    check_eq(release(0), 0)
    check_eq(run(0, raw.float_tensor(4.0))[:2], (3, "Attempted to run callable after handle was released: 0"))
    check_eq((release(0), release(99)), (0, 0), "releasing what is not there is no error")
    check_eq(run(1, raw.float_tensor(1.0))[0], 0, "the other one")
    m.close()


@part_beyond
def callable_with_too_few_feeds(a):
    """TensorFlow's server crashes."""
    m = Master(a, raw.node("x", "Placeholder", dtype=raw.attr_type(raw.FLOAT)), raw.node("y", "Neg", ["x"], T=raw.attr_type(raw.FLOAT)))
    options = raw.text(CALLABLE_FEED, "x:0") + raw.text(CALLABLE_FETCH, "y:0")
    check_eq(m.call("MakeCallable", raw.text(1, m.handle) + raw.text(2, options))[0], 0)
    check_eq(m.call("RunCallable", raw.text(1, m.handle) + raw.number(2, 0))[0], 3)
    m.close()


@part
def partial_run_handles(a):
    m = Master(a, raw.node("x", "Placeholder", dtype=raw.attr_type(raw.FLOAT)), raw.node("y", "Neg", ["x"], T=raw.attr_type(raw.FLOAT)))
    setup = raw.text(1, m.handle) + raw.text(2, "x:0") + raw.text(3, "y:0")
    handles = [raw.fields(m.call("PartialRunSetup", setup)[2])[1][0] for _ in range(2)]
    check(handles[0] != handles[1], handles)
    for handle in handles:
        step = raw.run_step(m.handle, {"x:0": 3.0}, ["y:0"]) + raw.text(6, handle)
        body = raw.fields(m.call("RunStep", step)[2])
        check_eq(float_of(raw.fields(body[1][0])[2][0]), -3.0)
    m.close()


class Worker(object):
    """A foreign master: one worker session with one graph."""

    def __init__(self, a, handle):
        self.a, self.channel, self.handle = a, raw.Channel(a.target), handle
        status, message, body = self.call("GetStatus", b"")
        check_eq(status, 0, message)
        device = raw.fields(raw.fields(body)[1][0])
        self.device = device[1][0].decode()
        self.incarnation = struct.unpack("<Q", device[6][0])[0]
        check_eq(device[2][0], b"CPU", "type")
        check(self.incarnation, "incarnation")

    def call(self, method, body, channel=None):
        return (channel or self.channel).call(method, body, "tensorflow.WorkerService")

    def start(self):
        status, message, _ = self.call("CreateWorkerSession", raw.text(1, self.handle) + raw.text(5, "/job:foreign/replica:0/task:0") + raw.number(6, 7))
        check_eq(status, 0, message)

    def register(self, *nodes):
        request = raw.text(1, self.handle) + raw.text(2, raw.graph(*nodes)) + raw.number(6, 1)
        status, message, body = self.call("RegisterGraph", request)
        return status, message, raw.fields(body).get(1, [b""])[0]

    def end(self, kind, name, inputs, tensor, recv_device, client):
        """A _Send or _Recv node."""
        dtype = {"_Send": "T", "_Recv": "tensor_type"}[kind]
        attrs = {dtype: raw.attr_type(raw.FLOAT)}
        return raw.node(
            name, kind, inputs, on=self.device, tensor_name=raw.attr_text(tensor), send_device=raw.attr_text(self.device),
            send_device_incarnation=raw.attr_int(self.incarnation), recv_device=raw.attr_text(recv_device),
            client_terminated=raw.attr_bool(client), **attrs,
        )  # fmt: skip

    def key(self, tensor, recv_device=None):
        return "%s;%016x;%s;%s;0:0" % (self.device, self.incarnation, recv_device or self.device, tensor)

    def run(self, graph, step, feeds={}, fetches=(), channel=None):
        request = raw.text(1, graph) + raw.number(2, step)
        request += b"".join(raw.text(3, raw.text(1, k) + raw.text(2, raw.float_tensor(v))) for k, v in feeds.items())
        request += b"".join(raw.text(4, k) for k in fetches) + raw.text(8, self.handle) + raw.number(9, 1) + raw.number(10, 1)
        status, message, body = self.call("RunGraph", request, channel)
        check_eq(status, 0, message)
        found = raw.fields(body)
        return found.get(5, [0])[0], found.get(6, [b""])[0].decode(), [raw.fields(t) for t in found.get(1, [])]

    def recv(self, step, key, request_id=0):
        channel = raw.Channel(self.a.target, 30)
        return self.call("RecvTensor", raw.number(1, step) + raw.text(2, key) + raw.number(7, request_id), channel)

    def cleanup(self, step):
        check_eq(self.call("CleanupGraph", raw.number(1, step))[0], 0, "cleanup")

    def stop(self):
        check_eq(self.call("DeleteWorkerSession", raw.text(1, self.handle))[0], 0, "delete")
        self.channel.close()


@part
def run_graph(a):
    w = Worker(a, "a1b2c3d4e5f60001")
    w.start()
    status, message, graph = w.register(
        w.end("_Recv", "_recv_x_0", [], "x:0", w.device, True),
        raw.node("y", "Mul", ["_recv_x_0", "_recv_x_0"], on=w.device, T=raw.attr_type(raw.FLOAT)),
        w.end("_Send", "_send_y_0", ["y"], "y:0", w.device, True),
    )
    check_eq(status, 0, message)
    for step in (1001, 1002):
        code, message, got = w.run(graph, step, {w.key("x:0"): 3.0}, [w.key("y:0")])
        check_eq(code, 0, message)
        check_eq((got[0][1][0].decode(), float_of(got[0][2][0])), (w.key("y:0"), 9.0))
        w.cleanup(step)
    code, message, _ = w.run(b"nosuch", 1003)
    check_eq((code, message), (10, "Graph handle is not found: nosuch"))
    w.stop()
    # A session that is not there any more.
    code, message, _ = w_run_after_stop(a, graph)
    check_eq(code, 10, message)
    check("Session handle is not found: a1b2c3d4e5f60001. Possibly this worker" in message, message)


def w_run_after_stop(a, graph):
    return Worker(a, "a1b2c3d4e5f60001").run(graph, 1004)


@part
def recv_tensor(a):
    """Values for another task: asked for before the step, after it, dead ones, and never twice."""
    w = Worker(a, "a1b2c3d4e5f60002")
    w.start()
    no = raw.node("no", "Const", on=w.device, dtype=raw.attr_type(10), value=raw.text(8, raw.number(1, 10) + raw.text(2, b"") + raw.text(11, b"\0")))
    status, message, graph = w.register(
        const("v", 5.0, w.device),
        w.end("_Send", "v_S1", ["v"], "edge_1_v", FOREIGN, False),
        no,
        raw.node("s", "Switch", ["v", "no"], on=w.device, T=raw.attr_type(raw.FLOAT)),
        w.end("_Send", "s_S2", ["s:1"], "edge_2_s", FOREIGN, False),
        w.end("_Send", "s_S3", ["s"], "edge_3_s", FOREIGN, False),
    )
    check_eq(status, 0, message)
    early = Thread(w.recv, 2001, w.key("edge_1_v", FOREIGN), 501)
    waiting = Thread(w.recv, 2001, w.key("edge_9_none", FOREIGN), 506)
    time.sleep(0.3)
    check(early.is_alive(), "it waits for the step", early.result)
    code, message, _ = w.run(graph, 2001)
    check_eq(code, 0, message)
    status, message, body = early.value()
    check_eq(status, 0, message)
    found = raw.fields(body)
    check_eq((float_of(found[1][0]), found.get(2, [0])[0]), (5.0, 0), "early")
    check(found[3][0] > 1e15, "send_start_micros", found)
    status, message, body = w.recv(2001, w.key("edge_2_s", FOREIGN), 502)
    check_eq((status, raw.fields(body)[2][0]), (0, 1), "dead, and late")
    status, message, body = w.recv(2001, w.key("edge_3_s", FOREIGN), 503)
    check_eq((status, float_of(raw.fields(body)[1][0])), (0, 5.0), message)
    status, message, _ = w.recv(2001, w.key("edge_3_s", FOREIGN), 503)
    check_eq(status, 10, message)
    check("The same RecvTensor (GrpcWorker) request was received twice." in message, message)
    status, message, _ = w.recv(2001, "no;key", 504)
    check_eq((status, message), (3, "Invalid  rendezvous key: no;key"))
    wrong = w.key("edge_1_v", FOREIGN).replace("%016x" % w.incarnation, "%016x" % (w.incarnation ^ 1))
    status, message, _ = w.recv(2001, wrong, 505)
    check_eq(status, 10, message)
    check("RecvTensor expects a different device incarnation: %d vs. %d." % (w.incarnation ^ 1, w.incarnation) in message, message)
    # A receiver that still waits when the step is cleaned up.
    w.cleanup(2001)
    status, message, _ = waiting.value()
    check_eq((status, message.split("\n")[0]), (10, "Cleanup 2001"))
    w.stop()


@part
def failed_step(a):
    """The error of a step goes to those who wait for its tensors."""
    w = Worker(a, "a1b2c3d4e5f60003")
    w.start()
    status, message, graph = w.register(
        raw.node("p", "Placeholder", on=w.device, dtype=raw.attr_type(raw.FLOAT)),
        w.end("_Send", "p_S1", ["p"], "edge_1_p", FOREIGN, False),
    )
    check_eq(status, 0, message)
    waiting = Thread(w.recv, 3001, w.key("edge_1_p", FOREIGN), 601)
    time.sleep(0.2)
    code, message, _ = w.run(graph, 3001)
    check_eq(code, 3, message)
    check("You must feed a value for placeholder tensor 'p'" in message and "[[{{node p}}]]" in message, message)
    status, message, _ = waiting.value()
    check_eq(status, 3, message)
    w.cleanup(3001)
    w.stop()


@part
def bad_graphs(a):
    w = Worker(a, "a1b2c3d4e5f60004")
    status, message, _ = w.register(const("c", 1.0, w.device))
    check_eq(status, 10, message)
    check("Session handle is not found: a1b2c3d4e5f60004. Possibly this worker" in message, message)
    w.start()
    status, message, _ = w.register(const("c"))
    check(status != 0 and "missing a device specification" in message, status, message)
    status, message, _ = w.register(const("c", 1.0, "/job:nosuch/replica:0/task:0/device:CPU:0"))
    check(status != 0 and "/job:nosuch/replica:0/task:0/device:CPU:0" in message, status, message)
    status, message, _ = w.call("CreateWorkerSession", b"")
    check_eq((status, message), (3, "Session must be non-empty."))
    w.stop()
    status, message, _ = Worker(a, "x").call("DeleteWorkerSession", raw.text(1, "nosuch"))
    check_eq(status, 0, "deleting what is not there is no error")
    check_eq(w_cleanup(a), 0, "cleaning up a step that never was")


def w_cleanup(a):
    return Worker(a, "x").call("CleanupGraph", raw.number(1, 987654))[0]


main(__doc__)
