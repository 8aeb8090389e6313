"""A string constant through a one-task server; byte strings of all kinds; the device list; a closed session."""
from common import *

TEXT = "Hello, distributed TensorFlow!"


@part
def constant(a):
    c = tf.constant(TEXT)
    session = v1.Session(a.target)
    check_eq(session.run(c), TEXT.encode(), "first run")
    check_eq(session.run(c), TEXT.encode(), "second run")
    session.close()
    with raises(RuntimeError, "Attempted to use a closed Session."):
        session.run(c)


@part
def byte_strings(a):
    raw = [b"", b"\x00\xff\xfe", "你好".encode(), b"x" * 100000]
    with v1.Session(a.target) as s:
        check_eq(list(s.run(tf.constant(raw))), raw, "constants")
        p = v1.placeholder(tf.string, [None])
        check_eq(list(s.run(tf.identity(p), {p: raw})), raw, "feeds")
        check_eq(list(s.run(p, {p: raw})), raw, "a fetch that is fed")


@part
def devices(a):
    with v1.Session(a.target) as s:
        found = s.list_devices()
        cpu = [d for d in found if d.name.endswith("/replica:0/task:0/device:CPU:0")]
        check_eq(len(cpu), 1, found)
        check_eq(cpu[0].device_type, "CPU")
        check(cpu[0].memory_limit_bytes > 0, "memory limit")
        check(cpu[0].incarnation != 0, "incarnation")


main(__doc__)
