#!/usr/bin/env python3
"""Compares our .proto files with the descriptors inside the installed TensorFlow.

Run with a Python that has TensorFlow:  python crates/proto/tests/check_fields.py
Exit status 0: every message, field number, type and enum value agrees. 1: the differences are
printed. TensorFlow is not imported: its libraries carry the descriptors of all their messages,
also of those (master, worker, eager service) that have no Python module.
"""

import ast
import importlib.util
import mmap
import pathlib
import re
import sys

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

PROTOS = pathlib.Path(__file__).resolve().parent.parent / "protos"
LIBRARIES = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]
# Messages that only TensorFlow's Python side has.
PYTHON_MODULES = ["python/training/checkpoint_state_pb2.py"]

# Message fields that we carry as bytes, unopened.
OPAQUE = {
    "tensorflow.MetaGraphDef.object_graph_def",
    "tensorflow.TensorInfo.CompositeTensor.type_spec",
}

FIELD = descriptor_pb2.FieldDescriptorProto
SCALARS = {name[5:].lower() for name in FIELD.Type.keys()} - {"group", "message", "enum"}


# ---- our side: a reader for the part of the .proto language that our files use ----


class Reader:
    """Reads one .proto file into `messages` and `enums`, keyed by full name."""

    def __init__(self, text, messages, enums):
        text = re.sub(r"//[^\n]*", "", text)
        self.tokens = re.findall(r'"[^"]*"|-?\w+(?:\.\w+)*|[{}=;<>,]', text)
        self.messages, self.enums = messages, enums
        self.package = ""

    def take(self, wanted=None):
        token = self.tokens.pop(0)
        if wanted is not None and token != wanted:
            raise SyntaxError(f"expected {wanted!r}, found {token!r}")
        return token

    def until(self, end):
        taken = []
        while (token := self.take()) != end:
            taken.append(token)
        return taken

    def file(self):
        while self.tokens:
            keyword = self.take()
            if keyword == "package":
                (self.package,) = self.until(";")
            elif keyword in ("message", "enum"):
                getattr(self, keyword)(self.package)
            else:
                assert keyword in ("syntax", "import"), keyword
                self.until(";")

    def message(self, scope):
        name = f"{scope}.{self.take()}"
        fields = self.messages[name] = {}
        self.take("{")
        self.fields(name, fields, "")

    def fields(self, name, fields, oneof):
        while (token := self.take()) != "}":
            if token in ("message", "enum"):
                getattr(self, token)(name)
            elif token == "oneof":
                inner = self.take()
                self.take("{")
                self.fields(name, fields, inner)
            elif token == "reserved":
                self.until(";")
            else:
                label = "repeated" if token == "repeated" else ""
                kind = self.take() if label else token
                if kind == "map":
                    self.take("<")
                    key, _, value = self.take(), self.take(","), self.take()
                    self.take(">")
                    label, kind = "map", f"{key},{value}"
                field, _, number = self.take(), self.take("="), int(self.take())
                self.take(";")
                fields[field] = (number, label, kind, oneof)

    def enum(self, scope):
        values = self.enums[f"{scope}.{self.take()}"] = {}
        self.take("{")
        while (token := self.take()) != "}":
            if token in ("reserved", "option"):
                self.until(";")
                continue
            self.take("=")
            values[token] = int(self.take())
            self.take(";")


def read_ours():
    messages, enums = {}, {}
    for path in sorted(PROTOS.rglob("*.proto")):
        Reader(path.read_text(), messages, enums).file()

    def resolve(kind, scope):
        """The full name of `kind` as written inside message `scope`."""
        if kind in SCALARS or kind.startswith("google."):
            return kind
        while scope:
            if f"{scope}.{kind}" in messages or f"{scope}.{kind}" in enums:
                return f"{scope}.{kind}"
            scope = scope.rpartition(".")[0]
        raise NameError(kind)

    for name, fields in messages.items():
        for field, (number, label, kind, oneof) in fields.items():
            kind = ",".join(resolve(part, name) for part in kind.split(","))
            fields[field] = (number, label, kind, oneof)
    return messages, enums


# ---- TensorFlow's side ----


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError


def file_descriptor(data, start):
    """Parses the FileDescriptorProto at `start`, whose length is stored nowhere."""
    at, previous = start, 1
    while True:
        try:
            key, after = varint(data, at)
            number, wire_type = key >> 3, key & 7
            if number < previous or number > 14 or wire_type not in (0, 2):
                break
            value, after = varint(data, after)
            if wire_type == 2:
                after += value
            if after > len(data):
                break
            at, previous = after, number
        except (ValueError, IndexError):
            break
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(data[start:at])
    except DecodeError:
        return None


def read_theirs():
    messages, enums = {}, {}
    for found in their_files():
        for message in found.message_type:
            describe(message, found.package, messages, enums)
        for enum in found.enum_type:
            enums[f"{found.package}.{enum.name}"] = values(enum)
    return messages, enums


def their_files():
    """The FileDescriptorProtos of TensorFlow's packages."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None:
        sys.exit("check_fields: this Python has no TensorFlow")
    folder = pathlib.Path(spec.origin).parent
    return [*from_libraries(folder), *from_modules(folder)]


def from_libraries(folder):
    for library in LIBRARIES:
        with open(folder / library, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for match in re.finditer(rb"\x0a[\x08-\x7f][\w/]{4,120}\.proto\x12", data):
            start = match.start()
            if data[start + 1] != match.end() - start - 3:
                continue
            found = file_descriptor(data, start)
            if found is not None and found.package.startswith("tensorflow"):
                yield found


def from_modules(folder):
    for module in PYTHON_MODULES:
        for node in ast.walk(ast.parse((folder / module).read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
                data = ast.literal_eval(node.args[0])
                yield descriptor_pb2.FileDescriptorProto.FromString(data)


def values(enum):
    return {value.name: value.number for value in enum.value}


def describe(message, scope, messages, enums):
    name = f"{scope}.{message.name}"
    entries = {}
    for nested in message.nested_type:
        if nested.options.map_entry:
            entries[f".{name}.{nested.name}"] = ",".join(kind_of(f) for f in nested.field)
        else:
            describe(nested, name, messages, enums)
    for enum in message.enum_type:
        enums[f"{name}.{enum.name}"] = values(enum)
    messages[name] = fields = {}
    for field in message.field:
        if field.type_name in entries:
            label, kind = "map", entries[field.type_name]
        else:
            label = "repeated" if field.label == FIELD.LABEL_REPEATED else ""
            kind = kind_of(field)
        oneof = ""
        if field.HasField("oneof_index"):
            oneof = message.oneof_decl[field.oneof_index].name
        fields[field.name] = (field.number, label, kind, oneof)


def kind_of(field):
    return field.type_name[1:] or FIELD.Type.Name(field.type)[5:].lower()


# ---- the comparison ----


def main():
    our_messages, our_enums = read_ours()
    their_messages, their_enums = read_theirs()
    problems = []
    count = 0
    for name, ours in sorted(our_messages.items()):
        theirs = their_messages.get(name)
        if theirs is None:
            problems.append(f"{name}: TensorFlow has no such message")
            continue
        for field in sorted(ours.keys() | theirs.keys()):
            full = f"{name}.{field}"
            our, their = ours.get(field), theirs.get(field)
            count += 1
            if full in OPAQUE and our and their:
                our, their = our[:2] + our[3:], their[:2] + their[3:]
            if our != their:
                problems.append(f"{full}: ours {our}, TensorFlow's {their}")
    for name, ours in sorted(our_enums.items()):
        theirs = their_enums.get(name)
        count += len(ours)
        if ours != theirs:
            ours, theirs = set(ours.items()), set((theirs or {}).items())
            problems.append(f"{name}: only ours {ours - theirs}, only TensorFlow's {theirs - ours}")
    for problem in problems:
        print(problem)
    print(
        f"check_fields: {len(our_messages)} messages, {len(our_enums)} enums, "
        f"{count} fields and values compared, {len(problems)} differ"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
