"""Writes OpDef parts in TensorFlow's attr language, the text that REGISTER_OP takes.

Deviations, all towards one spelling per meaning: type sets are written out (no
`numbertype`), strings stand in single quotes, floats are the shortest decimal that
reads back as the same 32-bit float.
"""

from tensorflow.core.framework import types_pb2
from google.protobuf import text_format
import numpy as np


def type_name(dtype):
    """DT_FLOAT -> `float`, DT_FLOAT_REF -> `Ref(float)`."""
    name = types_pb2.DataType.Name(dtype)[len("DT_"):].lower()
    if name.endswith("_ref"):
        return "Ref(%s)" % name[: -len("_ref")]
    return name


def string(raw):
    text = raw.decode("utf-8", "backslashreplace")
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")


def number(value):
    return repr(float(str(np.float32(value))))


def message(value):
    return "{%s}" % text_format.MessageToString(value, as_one_line=True).strip()


# The field of an AttrValue (or of its ListValue) that holds one element, and how it is written.
ELEMENTS = {
    "type": ("type", types_pb2.DataType.Name),
    "int": ("i", str),
    "float": ("f", number),
    "bool": ("b", lambda b: "true" if b else "false"),
    "string": ("s", string),
    "shape": ("shape", message),
    "tensor": ("tensor", message),
    "func": ("func", message),
}


def default(attr_type, value):
    """A default value as it stands behind `=`."""
    if attr_type.startswith("list("):
        field, write = ELEMENTS[attr_type[len("list("):-1]]
        return "[%s]" % ", ".join(write(item) for item in getattr(value.list, field))
    field, write = ELEMENTS[attr_type]
    return write(getattr(value, field))


def allowed(value):
    """A set of allowed values, `{float, double}` or `{'SAME', 'VALID'}`; order is TensorFlow's."""
    values = value.list
    items = [type_name(t) for t in values.type] + [string(s) for s in values.s]
    items += [str(i) for i in values.i] + [ELEMENTS["bool"][1](b) for b in values.b]
    return "{%s}" % ", ".join(items)


def attr(definition):
    """`T: {float, double} = DT_FLOAT`, `N: int >= 1`, `Tin: list(type) >= 0`."""
    kind = definition.type
    if definition.HasField("allowed_values"):
        kind = allowed(definition.allowed_values)
        if definition.type.startswith("list("):
            kind = "list(%s)" % kind
    text = "%s: %s" % (definition.name, kind)
    if definition.has_minimum:
        text += " >= %d" % definition.minimum
    if definition.HasField("default_value"):
        text += " = " + default(definition.type, definition.default_value)
    return text


def arg(definition):
    """`x: T`, `values: N * T`, `components: Tin`, `ref: Ref(T)`."""
    if definition.type_list_attr:
        kind = definition.type_list_attr
    else:
        kind = definition.type_attr or type_name(definition.type)
        if definition.number_attr:
            kind = "%s * %s" % (definition.number_attr, kind)
    if definition.is_ref:
        kind = "Ref(%s)" % kind
    return "%s: %s" % (definition.name, kind)
