"""Checks, threads and data of all programs that drive a server with TensorFlow's client."""

import os
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
errors = tf.errors


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def check_eq(got, want, what=""):
    same = np.array_equal(got, want) if isinstance(got, np.ndarray) or isinstance(want, np.ndarray) else got == want
    if not same:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def check_close(got, want, what="", rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=what)


class raises(object):
    """`with raises(kind, "text", "more text") as r`: the body must raise `kind` with all texts in its message.

    `kind` is a class or a tuple of them; `r.e` is the error.
    """

    def __init__(self, kind, *texts):
        self.kinds = kind if isinstance(kind, tuple) else (kind,)
        self.texts, self.e = texts, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        name = " or ".join(k.__name__ for k in self.kinds)
        if kind is None:
            raise AssertionError("no error, wanted %s %s" % (name, list(self.texts)))
        if not issubclass(kind, self.kinds):
            raise AssertionError("got %s (%s), wanted %s" % (kind.__name__, str(error)[:1500], name))
        missing = [t for t in self.texts if t not in str(error)]
        if missing:
            raise AssertionError("%s lacks %s: %s" % (name, missing, str(error)[:1500]))
        self.e = error
        return True


class Thread(threading.Thread):
    """Runs `function` at once; `result` holds its value or the error it raised."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.call, self.result = (function, arguments), None
        self.start()

    def run(self):
        function, arguments = self.call
        try:
            self.result = function(*arguments)
        except Exception as e:
            self.result = e

    def end(self, limit=30):
        self.join(limit)
        check(not self.is_alive(), "a thread did not end within", limit, "s")
        return self.result

    def value(self, limit=30):
        result = self.end(limit)
        if isinstance(result, Exception):
            raise result
        return result

    def error(self, kind, *texts):
        result = self.end()
        with raises(kind, *texts):
            if isinstance(result, Exception):
                raise result
        return result


def until(condition, what, limit=10.0):
    """Waits for something that happens asynchronously on the server."""
    end = time.time() + limit
    while not condition():
        check(time.time() < end, "not within %ss:" % limit, what)
        time.sleep(0.02)


def synthetic_mnist(n, seed=0, classes=10, side=28):
    """Deterministic and learnable: prototypes of the classes plus noise."""
    random = np.random.RandomState(seed)
    prototypes = np.random.RandomState(1234).uniform(0, 1, (classes, side * side))
    labels = random.randint(0, classes, n)
    images = 0.6 * prototypes[labels] + 0.4 * random.uniform(0, 1, (n, side * side))
    return images.astype(np.float32), labels.astype(np.int64)
