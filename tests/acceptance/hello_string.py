"""A string constant through a one-task 'local' server."""

from common import *

a = parse(__doc__)
text = "Hello, distributed TensorFlow!"
with tf.Graph().as_default():
    c = tf.constant(text)
    sess = v1.Session(a.target)
    r = sess.run(c)
    print(r)
    check_eq(r, text.encode(), "string constant")
    check_eq(sess.run(c), text.encode(), "second run")
    # non-UTF-8 bytes, empty and long strings survive
    raw = [b"", b"\x00\xff\xfe", "你好".encode(), b"x" * 100000]
    check_eq(list(sess.run(tf.constant(raw))), raw, "byte strings")
    d = sess.list_devices()
    check(any("/job:local/replica:0/task:0/device:CPU:0" in x.name for x in d), d)
    sess.close()
    with raises(RuntimeError, "closed"):
        sess.run(c)
ok()
