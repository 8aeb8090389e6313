"""Clients that are killed in the middle of a step: the step ends, its waiter in the queue is gone, the server serves on."""
import signal

from common import *

NAMES = ["killed_in_get", "killed_in_put", "killed_in_many", "killed_in_loop"]


def operations(name):
    q = v1.FIFOQueue(2, tf.float32, shapes=[[]], shared_name=name)
    return q, q.enqueue(1.0), q.dequeue(), q.dequeue_many(2), q.size()


def forked_client(a, name, step):
    """A process that runs `step` and tells when it begins. It is forked before this one has a session."""
    began, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tell)
        return pid, began
    try:
        with tf.Graph().as_default():
            q, put, get, many, size = operations(name)
            loop = tf.while_loop(lambda i: i >= 0, lambda i: i * 1, [v1.placeholder_with_default(0, [])], back_prop=False)
            with v1.Session(a.target) as s:
                s.run(size)
                if step == "put":
                    s.run([put])
                    s.run([put])
                os.write(tell, b"x")
                s.run({"put": put, "get": get, "many": many, "loop": loop}[step])
    finally:
        os._exit(1)


def kill(client):
    pid, began = client
    check_eq(os.read(began, 1), b"x", "the client's step begins")
    time.sleep(0.4)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def busy(pid, seconds):
    """How much of a core a process uses."""

    def used():
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


CLIENTS = {}


@part
def start(a):
    """Must be the first part: forking is safe only while TensorFlow has no threads here."""
    for name in NAMES:
        CLIENTS[name] = forked_client(a, name, name.rsplit("_", 1)[1])


@part
def killed_in_a_dequeue(a):
    """An element put afterwards must stay: a waiter that is still there would take it."""
    kill(CLIENTS["killed_in_get"])
    time.sleep(1.0)
    q, put, get, many, size = operations("killed_in_get")
    with v1.Session(a.target) as s:
        s.run(put)
        time.sleep(0.2)
        check_eq(int(s.run(size)), 1, "elements")
        check_eq(float(s.run(get)), 1.0)


@part
def killed_in_dequeue_many(a):
    """The same with one of two elements taken. TensorFlow loses that one; to give it back is right as well."""
    q, put, get, many, size = operations("killed_in_many")
    with v1.Session(a.target) as s:
        s.run(put)
        kill(CLIENTS["killed_in_many"])
        time.sleep(1.0)
        s.run(put)
        time.sleep(0.2)
        check(s.run(size) in (1, 2), "elements", s.run(size))


@part
def killed_in_an_enqueue(a):
    kill(CLIENTS["killed_in_put"])
    q, put, get, many, size = operations("killed_in_put")
    with v1.Session(a.target) as s:
        time.sleep(0.5)
        check_eq(int(s.run(size)), 2, "full")
        s.run(many)
        time.sleep(0.2)
        check_eq(int(s.run(size)), 0, "the third element never came")


@part
def killed_in_a_loop(a):
    """An endless loop must end with its client; else it keeps a core busy for ever."""
    kill(CLIENTS["killed_in_loop"])
    if a.pid:
        until(lambda: busy(a.pid, 0.5) < 0.2, "the server is idle")
    x = v1.placeholder_with_default(1.0, [])
    with v1.Session(a.target) as s:
        for _ in range(20):
            check_eq(float(s.run(x + 1.0)), 2.0)


main(__doc__)
