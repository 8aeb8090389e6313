"""TensorFlow's C library through ctypes: sessions on GraphDefs, tensors as TensorProtos.

Nothing of TensorFlow's Python is imported: the library loads in a fraction of the time,
graphs reach the session untouched by Python's importer (which infers shapes, rewrites
nodes and replaces status codes by ValueError), and a run costs what TensorFlow's own
C++ costs. Protocol buffers go through as bytes.
"""

import ctypes
import importlib.util
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DT_STRING = 7
# Types whose tensors are not plain memory. A resource arrives as a string of its handle.
OPAQUE = {20: "DT_RESOURCE", 21: "DT_VARIANT"}


class StatusError(Exception):
    """What TensorFlow said, with its canonical code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("free", ctypes.c_void_p),
    ]


def _load():
    spec = importlib.util.find_spec("tensorflow")
    if spec is None:
        raise ImportError("this Python has no tensorflow")
    path = os.path.join(spec.submodule_search_locations[0], "libtensorflow_cc.so.2")
    lib = ctypes.CDLL(path)
    handle, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    number, buffer = ctypes.c_int, ctypes.POINTER(_Buffer)
    for name, result, args in (
        ("TF_Version", text, []),
        ("TF_GetAllOpList", buffer, []),
        ("TF_NewStatus", handle, []),
        ("TF_DeleteStatus", None, [handle]),
        ("TF_GetCode", number, [handle]),
        ("TF_Message", text, [handle]),
        ("TF_NewSessionOptions", handle, []),
        ("TF_SetConfig", None, [handle, text, size, handle]),
        ("TF_DeleteSessionOptions", None, [handle]),
        ("TF_NewDeprecatedSession", handle, [handle, handle]),
        ("TF_ExtendGraph", None, [handle, text, size, handle]),
        ("TF_CloseDeprecatedSession", None, [handle, handle]),
        ("TF_DeleteDeprecatedSession", None, [handle, handle]),
        ("TF_Run", None, [handle, buffer, handle, handle, number, handle, handle, number, handle, number, buffer, handle]),
        ("TF_AllocateTensor", handle, [number, handle, number, size]),
        ("TF_TensorFromProto", None, [buffer, handle, handle]),
        ("TF_DeleteTensor", None, [handle]),
        ("TF_TensorType", number, [handle]),
        ("TF_NumDims", number, [handle]),
        ("TF_Dim", ctypes.c_int64, [handle, number]),
        ("TF_TensorByteSize", size, [handle]),
        ("TF_TensorData", handle, [handle]),
        ("TF_StringGetSize", size, [handle]),
        ("TF_StringGetDataPointer", handle, [handle]),
    ):
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = args
    return lib


_lib = _load()
_TSTRING_SIZE = 24


class _Status:
    """A TF_Status that raises on leaving if TensorFlow reported an error."""

    def __enter__(self):
        self.raw = _lib.TF_NewStatus()
        return self.raw

    def __exit__(self, kind, value, trace):
        code, message = _lib.TF_GetCode(self.raw), _lib.TF_Message(self.raw)
        _lib.TF_DeleteStatus(self.raw)
        if code and kind is None:
            raise StatusError(code, message.decode("utf-8", "replace"))


def _varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields):
    """A protocol buffer of (field number, int | bytes) pairs."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return bytes(out)


def session_config(optimize=False, intra_op=0, inter_op=0):
    """A ConfigProto. Without `optimize` no pass changes what is computed."""
    # GraphOptions: optimizer_options {opt_level: L0}, rewrite_options {disable_meta_optimizer: true}
    off = message((3, message((3, -1))), (10, message((19, 1))))
    fields = [(2, intra_op), (5, inter_op)]
    if not optimize:
        fields.append((10, off))
    return message(*fields)


class Tensor:
    """A TF_Tensor, freed with its last reference."""

    def __init__(self, raw):
        self.raw = raw

    def __del__(self):
        _lib.TF_DeleteTensor(self.raw)

    @classmethod
    def from_proto(cls, data):
        tensor = cls(_lib.TF_AllocateTensor(1, None, 0, 4))
        with _Status() as status:
            _lib.TF_TensorFromProto(_buffer(data), tensor.raw, status)
        return tensor

    def to_proto(self):
        """Type, shape and content; strings one by one, everything else as memory."""
        dtype = _lib.TF_TensorType(self.raw)
        if dtype in OPAQUE:
            raise StatusError(12, "a fetched %s has no form outside the session" % OPAQUE[dtype])
        dims = [_lib.TF_Dim(self.raw, i) for i in range(_lib.TF_NumDims(self.raw))]
        shape = message(*((2, message((1, dim))) for dim in dims))
        head = message((1, dtype), (2, shape))
        data, length = _lib.TF_TensorData(self.raw), _lib.TF_TensorByteSize(self.raw)
        if dtype != DT_STRING:
            return head + message((4, ctypes.string_at(data, length))) if length else head
        count = 1
        for dim in dims:
            count *= dim
        strings = (data + _TSTRING_SIZE * i for i in range(count))
        return head + message(*((8, _string(at)) for at in strings))


def _string(at):
    return ctypes.string_at(_lib.TF_StringGetDataPointer(at), _lib.TF_StringGetSize(at))


def _buffer(data):
    raw = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
    buffer = _Buffer(raw, len(data), None)
    buffer.keep = data
    return buffer


def _names(names):
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


class Step:
    """A signature ready to be run: feeds {name: Tensor}, fetch names, target names."""

    def __init__(self, session, feeds, fetches, targets, timeout_ms=0):
        self.session = session
        self.feeds = list(feeds.values())
        self.feed_names = _names(list(feeds))
        self.feed_raw = (ctypes.c_void_p * len(self.feeds))(*(feed.raw for feed in self.feeds))
        self.fetch_names = _names(fetches)
        self.fetch_raw = (ctypes.c_void_p * len(fetches))()
        self.target_names = _names(targets)
        self.options = _buffer(message((2, timeout_ms))) if timeout_ms else None

    def run(self):
        """Runs once; returns the fetched tensors."""
        with _Status() as status:
            _lib.TF_Run(
                self.session.raw, self.options,
                self.feed_names, self.feed_raw, len(self.feed_names),
                self.fetch_names, self.fetch_raw, len(self.fetch_names),
                self.target_names, len(self.target_names),
                None, status,
            )
        return [Tensor(raw) for raw in self.fetch_raw]


class Session:
    """A session in this process on one GraphDef."""

    def __init__(self, graph, config=b""):
        options = _lib.TF_NewSessionOptions()
        try:
            with _Status() as status:
                _lib.TF_SetConfig(options, config, len(config), status)
            with _Status() as status:
                self.raw = _lib.TF_NewDeprecatedSession(options, status)
        finally:
            _lib.TF_DeleteSessionOptions(options)
        try:
            with _Status() as status:
                _lib.TF_ExtendGraph(self.raw, graph, len(graph), status)
        except StatusError:
            self.close()
            raise

    def step(self, feeds=(), fetches=(), targets=(), timeout_ms=0):
        return Step(self, dict(feeds), fetches, targets, timeout_ms)

    def close(self):
        with _Status() as status:
            _lib.TF_CloseDeprecatedSession(self.raw, status)
        with _Status() as status:
            _lib.TF_DeleteDeprecatedSession(self.raw, status)


def version():
    return _lib.TF_Version().decode()
