"""A gRPC client of the standard library alone: one HTTP/2 connection, one call at a time, messages as raw bytes.

It says what well-behaved clients would not say, so it has no checks. Messages are built with `message`,
`number`, `text` (bytes, strings and sub-messages) and taken apart with `fields`.
"""
import socket
import struct
import urllib.parse

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FLOAT = 1

# Protocol buffers.


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def message(*parts):
    return b"".join(parts)


def read_varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return n, at


def fields(data):
    """{field number: [values]}; sub-messages and strings as bytes."""
    out, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            length, at = read_varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = 8 if kind == 1 else 4
            value, at = data[at : at + length], at + length
        out.setdefault(key >> 3, []).append(value)
    return out


# The messages the tests need. Field numbers are those of TensorFlow's protos.


def attr_type(dtype):
    return number(6, dtype)


def float_tensor(value):
    return message(number(1, FLOAT), text(2, b""), text(4, struct.pack("<f", value)))


def attr_float_tensor(value):
    return text(8, float_tensor(value))


def attr_text(value):
    return text(2, value)


def attr_int(value):
    return number(3, value)


def attr_bool(value):
    return number(5, int(value))


def node(name, op, inputs=(), on="", **attrs):
    parts = [text(1, name), text(2, op)] + [text(3, i) for i in inputs] + [text(4, on)]
    return message(*parts, *(text(5, text(1, k) + text(2, v)) for k, v in sorted(attrs.items())))


def graph(*nodes):
    return message(*(text(1, n) for n in nodes), text(4, number(1, 2474)))


def create_session(graph_def, config=b""):
    return message(text(1, graph_def), text(2, config))


def extend_session(handle, graph_def, version):
    return message(text(1, handle), text(2, graph_def), number(3, version))


def run_step(handle, feed={}, fetch=(), target=(), request_id=0, in_body=True):
    parts = [text(1, handle)]
    parts += [text(2, text(1, name) + text(2, float_tensor(value))) for name, value in feed.items()]
    parts += [text(3, f) for f in fetch] + [text(4, t) for t in target]
    return message(*parts, number(7, int(in_body)), number(8, request_id))


# Header compression: requests as plain literals, answers with the whole of the format.

# Code lengths of RFC 7541's code, characters of a length in order; enough for header text.
CODE = [
    (5, 0x0, "012aceiost"),
    (6, 0x14, " %-./3456789=A_bdfghlmnpru"),
    (7, 0x5C, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, 0xF8, "&*,;XZ"),
    (10, 0x3F8, '!"()?'),
    (11, 0x7FA, "'+|"),
    (12, 0xFFA, "#>"),
    (13, 0x1FF8, "\0$@[]~"),
    (14, 0x3FFC, "^}"),
    (15, 0x7FFC, "<`{"),
]
HUFFMAN = {(bits, first + i): c for bits, first, chars in CODE for i, c in enumerate(chars)}


def huffman(data):
    out, code, length = "", 0, 0
    for byte in data:
        for bit in range(7, -1, -1):
            code, length = code << 1 | byte >> bit & 1, length + 1
            if (length, code) in HUFFMAN:
                out += HUFFMAN[length, code]
                code = length = 0
    return out


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Headers(object):
    """The decoder of one connection."""

    def __init__(self):
        self.table = []

    def entry(self, index):
        return ("static-%d" % index, "") if index < 62 else self.table[index - 62]

    def decode(self, data):
        out, at = {}, 0
        while at < len(data):
            first = data[at]
            if first & 0x80:
                index, at = self.integer(data, at, 7)
                name, value = self.entry(index)
            elif first & 0xE0 == 0x20:
                _, at = self.integer(data, at, 5)
                continue
            else:
                keep = first & 0x40
                index, at = self.integer(data, at, 6 if keep else 4)
                name = self.entry(index)[0] if index else None
                if name is None:
                    name, at = self.string(data, at)
                value, at = self.string(data, at)
                if keep:
                    self.table.insert(0, (name, value))
            out[name] = value
        return out

    @staticmethod
    def integer(data, at, bits):
        top = (1 << bits) - 1
        n, at = data[at] & top, at + 1
        if n == top:
            more, at = read_varint(data, at)
            n += more
        return n, at

    def string(self, data, at):
        coded = data[at] & 0x80
        length, at = self.integer(data, at, 7)
        value = data[at : at + length]
        return huffman(value) if coded else value.decode("latin-1"), at + length


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request_headers(path, *more):
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"), ("te", "trailers")]
    return b"".join(literal(*p) for p in pairs + [("content-type", "application/grpc")] + list(more))


def prefixed(body, length=None):
    """A gRPC message: no compression, its length (or a lie about it), its bytes."""
    return b"\0" + struct.pack(">I", len(body) if length is None else length) + body


def connect(target, timeout=20.0):
    host, port = target.split("//")[-1].rsplit(":", 1)
    s = socket.create_connection((host, int(port)), timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


class Answer(object):
    def __init__(self, stream, window):
        self.stream, self.window = stream, window
        self.headers, self.block, self.body, self.ended = {}, b"", b"", False


class Channel(object):
    def __init__(self, target, timeout=20.0):
        self.socket, self.buffer, self.stream = connect(target, timeout), b"", 1
        self.headers = Headers()
        # What the server lets us send: on a new stream, and on the connection.
        self.new_window = self.window = 65535
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def close(self):
        self.socket.close()

    def read(self, n):
        while len(self.buffer) < n:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("closed by the server")
            self.buffer += more
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def read_frame(self):
        head = self.read(9)
        length = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, self.read(length)

    def call(self, method, body, service="tensorflow.MasterService"):
        """-> (gRPC status, its text, the answer's bytes)"""
        return self.send("/%s/%s" % (service, method), prefixed(body))

    def send(self, path, data, end=True):
        """One request with `data` as its whole body, framing included; waits for the end of the answer."""
        answer, self.stream = Answer(self.stream, self.new_window), self.stream + 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, answer.stream, request_headers(path)))
        chunks = [data[i : i + 16384] for i in range(0, len(data), 16384)] or [b""]
        for i, chunk in enumerate(chunks):
            while min(self.window, answer.window) < len(chunk) and not answer.ended:
                self.take(answer)
            if answer.ended:
                break
            self.window, answer.window = self.window - len(chunk), answer.window - len(chunk)
            self.socket.sendall(frame(DATA, END_STREAM if end and i == len(chunks) - 1 else 0, answer.stream, chunk))
        while not answer.ended:
            self.take(answer)
        text = urllib.parse.unquote(answer.headers.get("grpc-message", ""))
        return int(answer.headers.get("grpc-status", -1)), text, answer.body[5:]

    def take(self, answer):
        """Reads one frame and does what it says."""
        kind, flags, stream, payload = self.read_frame()
        ours = stream == answer.stream
        if kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                setting, value = struct.unpack(">HI", payload[i : i + 6])
                if setting == 4:
                    answer.window += value - self.new_window
                    self.new_window = value
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            raise ConnectionError("the server says go away: %r" % payload)
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += more
            elif ours:
                answer.window += more
        elif kind in (HEADERS, CONTINUATION):
            answer.block += payload
            if flags & END_HEADERS:
                new, answer.block = self.headers.decode(answer.block), b""
                answer.headers.update(new if ours else {})
        elif kind == DATA and ours:
            answer.body += payload
        elif kind == RST_STREAM and ours:
            if "grpc-status" not in answer.headers:
                raise ConnectionError("stream reset with %d" % int.from_bytes(payload, "big"))
            answer.ended = True
        answer.ended |= bool(ours and kind in (HEADERS, DATA) and flags & END_STREAM)
