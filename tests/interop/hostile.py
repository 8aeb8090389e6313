"""Bad input on a server's port, with nothing but sockets. After each attack an ordinary session must still work.

python hostile.py --target grpc://localhost:2222 [--pid PID]

With --pid it prints memory and open files of the server before and after, and fails if files leak.
"""
import argparse
import os
import random
import socket
import struct
import sys
import time
import traceback

import raw

MASTER = "/tensorflow.MasterService/"
METHODS = "CreateSession ExtendSession PartialRunSetup RunStep CloseSession ListDevices Reset MakeCallable RunCallable ReleaseCallable".split()
HELLO = raw.PREFACE + raw.frame(raw.SETTINGS, 0, 0)
ATTACKS = []


def attack(function):
    ATTACKS.append(function)
    return function


def const(name="c"):
    return raw.node(name, "Const", dtype=raw.attr_type(raw.FLOAT), value=raw.attr_float_tensor(2.0))


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def session(target, timeout=20.0):
    """An ordinary session: create, run, close."""
    channel = raw.Channel(target, timeout)
    status, text, body = channel.call("CreateSession", raw.create_session(raw.graph(const())))
    check(status == 0, "CreateSession", status, text)
    handle = raw.fields(body)[1][0]
    status, text, body = channel.call("RunStep", raw.run_step(handle, fetch=["c:0"]))
    tensor = raw.fields(raw.fields(body)[1][0])[2][0]
    check(status == 0 and struct.pack("<f", 2.0) in tensor, "RunStep", status, text, body)
    check(channel.call("CloseSession", raw.text(1, handle))[0] == 0, "CloseSession")
    channel.close()


def throw(target, *pieces, wait=0.2):
    """Sends the pieces, whatever happens; returns what came back within `wait`."""
    got = b""
    with raw.connect(target, wait) as s:
        try:
            for piece in pieces:
                s.sendall(piece)
            s.shutdown(socket.SHUT_WR)
            while True:
                more = s.recv(65536)
                if not more:
                    break
                got += more
        except OSError:
            pass
    return got


def codes(results):
    return " ".join("%s:%d" % (c, results.count(c)) for c in sorted(set(results)))


def status_of(target, path, data, timeout=20.0):
    """The gRPC status, or what became of the connection."""
    try:
        channel = raw.Channel(target, timeout)
        try:
            return channel.send(path, data)[0]
        finally:
            channel.close()
    except socket.timeout:
        return "timeout"
    except (OSError, IndexError) as e:
        return type(e).__name__


# Bytes that are no HTTP/2.


@attack
def garbage(target):
    rng = random.Random(1)
    for size in (1, 9, 24, 100, 5000, 300000):
        for _ in range(3):
            throw(target, rng.randbytes(size))
    throw(target, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500))  # as of TLS
    throw(target)


@attack
def http1(target):
    for request in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST " + MASTER.encode() + b"RunStep HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345",
        b"GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100000,
        b"\r\n" * 10000,
    ):
        throw(target, request)


# HTTP/2 that is wrong.


@attack
def preface_and_garbage(target):
    rng = random.Random(2)
    throw(target, raw.PREFACE[:10])
    for size in (1, 8, 9, 40, 5000, 100000):
        throw(target, HELLO, rng.randbytes(size))


@attack
def frames_out_of_place(target):
    good = raw.request_headers(MASTER + "ListDevices")
    f = raw.frame
    for frames in (
        f(raw.DATA, raw.END_STREAM, 1, b"early"),
        f(raw.HEADERS, raw.END_HEADERS, 0, good),
        f(raw.HEADERS, raw.END_HEADERS, 2, good),
        f(raw.HEADERS, 0, 1, good) + f(raw.DATA, 1, 1, b"x"),
        f(raw.CONTINUATION, raw.END_HEADERS, 1, good),
        f(raw.HEADERS, raw.END_HEADERS, 5, good) + f(raw.HEADERS, raw.END_HEADERS, 3, good),
        f(raw.SETTINGS, 0, 0, b"12345"),
        f(raw.SETTINGS, 0, 3, b""),
        f(raw.PING, 0, 0, b"short"),
        f(raw.WINDOW_UPDATE, 0, 0, b"\0\0\0\0"),
        f(raw.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 3,
        f(raw.RST_STREAM, 0, 99, b"\0\0\0\0"),
        f(raw.GOAWAY, 0, 0, b"\0" * 8),
        f(5, raw.END_HEADERS, 1, b"\0\0\0\2" + good),
        f(77, 255, 1, b"of no known kind") + f(raw.HEADERS, 5, 1, good),
    ):
        throw(target, HELLO, frames)


@attack
def truncated_frames(target):
    whole = raw.frame(raw.HEADERS, raw.END_HEADERS, 1, raw.request_headers(MASTER + "RunStep"))
    whole += raw.frame(raw.DATA, raw.END_STREAM, 1, raw.prefixed(raw.run_step(b"h", fetch=["c:0"])))
    for cut in range(1, len(whole), 7):
        throw(target, HELLO, whole[:cut], wait=0.05)


@attack
def huge_frames(target):
    for length in (16385, 1 << 20, (1 << 24) - 1):
        head = struct.pack(">I", length)[1:]
        throw(target, HELLO, head + bytes([raw.DATA, 0]) + struct.pack(">I", 1), b"x" * 20000)
        throw(target, HELLO, head + bytes([raw.HEADERS, 4]) + struct.pack(">I", 1), b"\x82" * 20000)


@attack
def bad_header_blocks(target):
    good = raw.request_headers(MASTER + "ListDevices")
    big = b"".join(raw.literal("x-%d" % i, "v" * 120) for i in range(8000))
    for block in (b"\xff" * 50, b"\x80", b"\xbe", b"\x3f" + b"\xff" * 12, b"\x00\x7f\xff\xff\xff\xff\x0f", good[:-3], b"\x00\x01\x00\x01\x00"):
        throw(target, HELLO, raw.frame(raw.HEADERS, 5, 1, block))
    chunks = [big[i : i + 16000] for i in range(0, len(big), 16000)]
    flood = raw.frame(raw.HEADERS, 0, 1, good) + b"".join(raw.frame(raw.CONTINUATION, 0, 1, c) for c in chunks)
    throw(target, HELLO, flood, wait=1.0)
    throw(target, HELLO, raw.frame(raw.HEADERS, 0, 1, good) + raw.frame(raw.CONTINUATION, 0, 1) * 5000, wait=1.0)


@attack
def floods(target):
    good = raw.request_headers(MASTER + "ListDevices")
    throw(target, HELLO, raw.frame(raw.PING, 0, 0, b"12345678") * 3000, wait=1.0)
    throw(target, HELLO, raw.frame(raw.SETTINGS, 0, 0) * 3000, wait=1.0)
    streams = (raw.frame(raw.HEADERS, raw.END_HEADERS, 2 * i + 1, good) + raw.frame(raw.RST_STREAM, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(1000))
    throw(target, HELLO, b"".join(streams), wait=1.0)


# gRPC that is wrong.


@attack
def unknown_methods(target):
    paths = ["/", "//", "/nope", "/nope/nope", MASTER, MASTER + "Nope", MASTER + "createsession", "/tensorflow.grpc.MasterService/CreateSession", "x"]
    results = [status_of(target, p, raw.prefixed(b"")) for p in paths]
    check(results[3] == 12 and results[5] == 12 and results[7] == 12, "not UNIMPLEMENTED:", dict(zip(paths, results)))
    return codes([str(r) for r in results])


@attack
def wrong_message_lengths(target):
    results = []
    for body in (
        b"",
        b"\0",
        b"\0\0\0\0",
        raw.prefixed(b"abc", 4),
        raw.prefixed(b"abc", 2),
        raw.prefixed(b"abc", 0x7FFFFFFF),
        raw.prefixed(b"abc", 0xFFFFFFFF),
        b"\1" + raw.prefixed(b"abc")[1:],  # compressed, it says
        b"\7" + raw.prefixed(b"abc")[1:],
        raw.prefixed(b"") * 3,
    ):
        results.append(str(status_of(target, MASTER + "RunStep", body)))
    check("0" not in results[:7] and "timeout" not in results, results)
    return codes(results)


@attack
def truncated_messages(target):
    step = raw.run_step(b"handle", {"x:0": 1.0}, ["c:0"], ["t"], 5)
    graph = raw.graph(const(), raw.node("i", "Identity", ["c"], T=raw.attr_type(raw.FLOAT)))
    results = []
    channel = raw.Channel(target)
    for method, body in (("RunStep", step), ("CreateSession", raw.create_session(graph, raw.text(1, b"\x0a\x03CPU\x10\x01")))):
        for cut in range(1, len(body), 3):
            status, _, answer = channel.call(method, body[:cut])
            results.append(status)
            if method == "CreateSession" and status == 0:
                channel.call("CloseSession", raw.text(1, raw.fields(answer)[1][0]))
    channel.close()
    check(any(r != 0 for r in results), "every truncated message was taken")
    return codes([str(r) for r in results])


@attack
def garbage_messages(target):
    rng = random.Random(3)
    results = []
    for method in METHODS:
        for size in (1, 20, 3000):
            results.append(str(status_of(target, MASTER + method, raw.prefixed(b"\xff" * 12 + rng.randbytes(size)))))
    check("0" not in results and "timeout" not in results, results)
    return codes(results)


@attack
def nested_messages(target):
    """An attribute in an attribute in an attribute: a decoder that recurses without a limit dies."""
    results = []
    for depth in (50, 200, 3000):
        value = raw.attr_type(raw.FLOAT)
        for _ in range(depth):
            value = raw.text(10, raw.text(2, raw.text(1, "a") + raw.text(2, value)))
        graph = raw.graph(raw.node("n", "NoOp", deep=value))
        results.append(str(status_of(target, MASTER + "CreateSession", raw.prefixed(raw.create_session(graph)))))
    check(results[2] not in ("0", "timeout"), results)
    return " ".join(results)


@attack
def large_messages(target):
    """40 MB in an unknown field is no crime; 20 MB of a node's name is."""
    channel = raw.Channel(target, 60)
    status, text, body = channel.call("CreateSession", raw.create_session(raw.graph(const())) + raw.text(999, b"x" * 40_000_000))
    check(status == 0, status, text)
    handle = raw.fields(body)[1][0]
    bad = channel.call("ExtendSession", raw.extend_session(handle, raw.graph(raw.node("?" * 20_000_000, "NoOp")), 0))[0]
    check(bad == 3, bad)
    check(channel.call("CloseSession", raw.text(1, handle))[0] == 0, "close")
    channel.close()
    return "0 %d" % bad


def tensor(dims, content=b"", values=()):
    shape = b"".join(raw.text(2, raw.number(1, d)) for d in dims)
    floats = raw.text(5, b"".join(struct.pack("<f", v) for v in values)) if values else b""
    return raw.number(1, raw.FLOAT) + raw.text(2, shape) + (raw.text(4, content) if content else b"") + floats


@attack
def lying_tensors(target):
    """Feeds and constants whose shape does not fit their content, overflows, or is negative."""
    results = []
    for value in (
        tensor([3], b"1234"),
        tensor([-5], b"1234"),
        tensor([1 << 40, 1 << 40], b"1234"),
        tensor([1 << 62, 4]),
        tensor([2], values=[1.0, 2.0, 3.0]),
        raw.number(1, 99) + raw.text(2, b""),
        raw.number(1, 7) + raw.text(2, raw.text(2, raw.number(1, 3))) + raw.text(4, b"\xff\xff\xff\xff\x0fabc"),
    ):
        channel = raw.Channel(target)
        node = raw.node("c", "Const", dtype=raw.attr_type(raw.FLOAT), value=raw.text(8, value))
        status, text, body = channel.call("CreateSession", raw.create_session(raw.graph(node)))
        if status == 0:
            handle = raw.fields(body)[1][0]
            step = raw.fields(channel.call("RunStep", raw.run_step(handle, fetch=["c:0"]))[2])
            status = "step %d" % step.get(3, [0])[0]
            channel.call("CloseSession", raw.text(1, handle))
        status_feed, text, body = channel.call("CreateSession", raw.create_session(raw.graph(const())))
        handle = raw.fields(body)[1][0]
        feed = raw.text(1, handle) + raw.text(2, raw.text(1, "c:0") + raw.text(2, value)) + raw.text(3, "c:0") + raw.number(7, 1)
        answer = raw.fields(channel.call("RunStep", feed)[2])
        fed = answer.get(3, [0])[0]
        results.append("%s/%s" % (status, fed))
        channel.call("CloseSession", raw.text(1, handle))
        channel.close()
    check(not any("step 0" in r for r in results[:4]), results)
    return ", ".join(results)


# Clients that take and never give back.


@attack
def half_requests(target):
    """100 calls that never send their message, open while others work."""
    open_ones = []
    for _ in range(100):
        s = raw.connect(target)
        s.sendall(HELLO + raw.frame(raw.HEADERS, raw.END_HEADERS, 1, raw.request_headers(MASTER + "RunStep")) + raw.frame(raw.DATA, 0, 1, b"\0\0\0\1"))
        open_ones.append(s)
    session(target)
    for s in open_ones:
        s.close()


@attack
def idle_connections(target, count=1000):
    """A thousand: a third says nothing, a third the preface, a third half of it."""
    open_ones = []
    try:
        for i in range(count):
            s = raw.connect(target)
            s.sendall([b"", HELLO, raw.PREFACE[:12]][i % 3])
            open_ones.append(s)
        for _ in range(3):
            session(target)
    finally:
        for s in open_ones:
            s.close()


@attack
def abandoned_sessions(target, count=200):
    """Sessions whose client goes without a word, half of them in the middle of a step."""
    queue = raw.node("q", "FIFOQueueV2", component_types=raw.text(1, raw.number(6, raw.FLOAT)), capacity=raw.number(3, 1))
    get = raw.node("get", "QueueDequeueV2", ["q"], component_types=raw.text(1, raw.number(6, raw.FLOAT)))
    for i in range(count):
        channel = raw.Channel(target)
        status, text, body = channel.call("CreateSession", raw.create_session(raw.graph(const(), queue, get)))
        check(status == 0, status, text)
        handle = raw.fields(body)[1][0]
        channel.call("RunStep", raw.run_step(handle, fetch=["c:0"]))
        if i % 2:
            head = raw.frame(raw.HEADERS, raw.END_HEADERS, channel.stream, raw.request_headers(MASTER + "RunStep"))
            step = raw.prefixed(raw.run_step(handle, fetch=["get:0"]))
            channel.socket.sendall(head + raw.frame(raw.DATA, raw.END_STREAM, channel.stream, step))
        channel.close()


def usage(pid):
    """(memory in MB, open files, threads)"""
    with open("/proc/%d/status" % pid) as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmRSS"].split()[0]) / 1024, len(os.listdir("/proc/%d/fd" % pid)), int(fields["Threads"])


def show(what, pid):
    if pid:
        print("%-24s RSS %.1f MB, %d files, %d threads" % ((what,) + usage(pid)), flush=True)


def settle(pid, files, limit=15.0):
    """Waits until the server has closed what the clients closed."""
    end = time.time() + limit
    while usage(pid)[1] > files and time.time() < end:
        time.sleep(0.1)
    return usage(pid)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--pid", type=int, default=0, help="process of the server, to measure it")
    parser.add_argument("--part", default="", help="only the attacks whose name contains this")
    parser.add_argument("--settle", type=float, default=0.0, help="seconds to wait before the last measurement, for sessions to be collected")
    parser.add_argument("--max_growth", type=float, default=0.0, help="fail if the memory grew by more MB")
    parser.add_argument("--workdir", help="not used")
    parser.add_argument("--reference", action="store_true", help="not used")
    args = parser.parse_args()
    for _ in range(5):
        session(args.target)
    show("before", args.pid)
    memory, files, _ = usage(args.pid) if args.pid else (0, 0, 0)
    failed = []
    for function in (f for f in ATTACKS if args.part in f.__name__):
        start = time.time()
        try:
            said = function(args.target)
            session(args.target)
            print("  ok %s %.2fs %s" % (function.__name__, time.time() - start, said or ""), flush=True)
        except Exception:
            failed.append(function.__name__)
            print("  differs: %s\n%s" % (function.__name__, traceback.format_exc()), flush=True)
        show("  after " + function.__name__, args.pid)
    if args.pid:
        time.sleep(args.settle)
        left = settle(args.pid, files + 10)
        if left > files + 10:
            failed.append("%d files open, %d before" % (left, files))
        grown = usage(args.pid)[0] - memory
        if args.max_growth and grown > args.max_growth:
            failed.append("%.0f MB more memory" % grown)
    show("after", args.pid)
    print("FAIL: %s" % ", ".join(failed) if failed else "PASS", flush=True)
    sys.exit(1 if failed else 0)


main()
