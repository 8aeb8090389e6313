#!/usr/bin/env python3
"""Makes the golden files in this folder with the installed TensorFlow, or checks our output.

    python make.py              writes CASE.pb (deterministic serialisation) and CASE.pbtxt
    python make.py --check DIR  reads CASE.pb and CASE.pbtxt in DIR, as re-encoded and printed by
                                our code, and compares them with the golden messages

A case is named after its message: MESSAGE-WHAT. The cases of `filled` have every field set; the
others are what TensorFlow itself builds, writes to disk or sends.
"""

import os
import pathlib
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import check_fields
import tensorflow as tf
import wire
from google.protobuf import descriptor_pool, message_factory, text_format
from tensorflow.core.util import event_pb2  # noqa: F401 (registers its messages)

v1 = tf.compat.v1
POOL = descriptor_pool.Default()

# Carried as bytes by us, so that their text differs.
OPAQUE = {"object_graph_def", "type_spec"}

FILLED = """
    BundleEntryProto BundleHeaderProto CallableOptions CheckpointState ClusterDef
    CollectionDef ConfigProto ControlFlowContextDef CreateSessionRequest
    CreateWorkerSessionRequest DeviceAttributes Event Example ExtendSessionResponse GraphDef
    ListDevicesResponse LoggingResponse MakeCallableRequest MetaGraphDef OpList QueueRunnerDef
    RecvBufRequest RecvBufResponse RecvTensorRequest RecvTensorResponse RegisterGraphRequest
    RunGraphRequest RunGraphResponse RunMetadata RunOptions RunStepRequest RunStepResponse
    SaverDef SequenceExample ServerDef StatusProto Summary TensorProto TrackableObjectGraph
    VariableDef distributed_runtime.GrpcPayloadContainer eager.CreateContextRequest
    eager.EnqueueRequest eager.EnqueueResponse
""".split()


def message_class(name):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"tensorflow.{name}"))


def add_service_messages():
    """Registers the messages that have no Python module, from TensorFlow's libraries."""
    waiting = [f for f in check_fields.their_files() if f.package.startswith("tensorflow")]
    while True:
        later = []
        for file in waiting:
            try:
                POOL.FindFileByName(file.name)
                continue
            except KeyError:
                pass
            try:
                POOL.Add(file)
                POOL.FindFileByName(file.name)
            except (KeyError, TypeError):
                later.append(file)
        if len(later) == len(waiting):
            return
        waiting = later


# ---- messages with every field set ----

INTEGERS = [1, 127, 128, 300, 65535, 2**31 - 1]
FLOATS = [0.5, 1e-05, 1e16, 3.4028234663852886e38, 1 / 3, 16777216.0, 123456.789, 1.5e-45]
STRINGS = ["a", "two words", "it's \"quoted\"", "back\\slash", "tab\tline\nend", "é→😀", "\x01"]


class Filler:
    """Sets all fields; a oneof in a list or map is set once per member.

    A nested message whose type has a case of its own gets no messages in turn.
    """

    def __init__(self):
        self.count = 0

    def pick(self, values):
        self.count += 1
        return values[self.count % len(values)]

    def scalar(self, field):
        kind = field.cpp_type
        if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return self.pick(FLOATS) * self.pick([1, -1])
        if kind == field.CPPTYPE_BOOL:
            return True
        if kind == field.CPPTYPE_ENUM:
            numbers = [v.number for v in field.enum_type.values if v.number != 0]
            return self.pick(numbers)
        if kind == field.CPPTYPE_STRING:
            text = f"{field.name} {self.pick(STRINGS)}"
            return text.encode() + b"\0\xff" if field.type == field.TYPE_BYTES else text
        value = self.pick(INTEGERS)
        if kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64):
            return value * self.pick([1, -1, 1])
        return value

    def fill(self, message, path=(), member=0):
        """Fills `message`, choosing oneof members by `member`; `path` are the types around it."""
        path = (*path, message.DESCRIPTOR.full_name)
        for field in message.DESCRIPTOR.fields:
            oneof = field.containing_oneof
            if field.name in OPAQUE:
                continue
            if oneof and oneof.fields[member % len(oneof.fields)] != field:
                continue
            self.field(message, field, path)

    def field(self, message, field, path):
        inner = field.message_type
        if inner is not None and inner.full_name in path:
            return
        if inner is not None and inner.full_name == "google.protobuf.Any":
            return
        if inner is not None and path[1:] and own_case(path[-1]):
            return
        target = getattr(message, field.name)
        if inner is not None and inner.GetOptions().map_entry:
            self.map(target, inner, path)
        elif inner is not None and field.is_repeated:
            for member in range(members(inner)):
                self.fill(target.add(), path, member)
        elif inner is not None:
            target.SetInParent()
            self.fill(target, path, self.pick(range(members(inner))))
        elif field.is_repeated:
            target.extend(self.scalar(field) for _ in range(3))
        else:
            setattr(message, field.name, self.scalar(field))

    def map(self, target, entry, path):
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        if value.message_type is None:
            target[self.scalar(key)] = self.scalar(value)
        elif value.message_type.full_name not in path:
            for member in range(members(value.message_type)):
                name = f"key{member}" if key.type == key.TYPE_STRING else member + 1
                self.fill(target[name], path, member)


def own_case(full_name):
    return full_name.removeprefix("tensorflow.") in FILLED


def members(descriptor):
    return max([len(oneof.fields) for oneof in descriptor.oneofs], default=1)


def filled():
    for name in FILLED:
        cls = message_class(name)
        count = members(cls.DESCRIPTOR)
        for member in range(count):
            message = cls()
            Filler().fill(message, (), member)
            yield f"{name}-filled{member if count > 1 else ''}", message


# ---- what TensorFlow builds and writes ----


def training_graph():
    """A graph with a variable, a queue runner, a loop, a branch, a function and a saver."""
    graph = tf.Graph()
    with graph.as_default():
        weights = v1.get_variable("w", initializer=[[1.0, 2.0]], use_resource=False)
        queue = v1.FIFOQueue(2, [tf.float32], shapes=[[]])
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(1.0)]))
        with tf.device("/job:worker/task:1/device:CPU:0"):
            i = v1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        v1.cond(i > 2, lambda: tf.constant(b"yes"), lambda: tf.constant(b"n\0"))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def double(x):
            return x + x

        double(tf.constant([1.0]))
        v1.train.Saver([weights], sharded=True)
    return graph


def built():
    v1.disable_control_flow_v2()
    graph = training_graph()
    yield "GraphDef-training", graph.as_graph_def()
    with graph.as_default():
        meta_graph = v1.train.export_meta_graph(graph=graph)
    del meta_graph.graph_def.node[3:]
    del meta_graph.meta_info_def.stripped_op_list.op[3:]
    yield "MetaGraphDef-training", meta_graph
    for case, collection, name in (
        ("QueueRunnerDef-training", "queue_runners", "QueueRunnerDef"),
        ("VariableDef-training", "variables", "VariableDef"),
        ("WhileContextDef-training", "while_context", "WhileContextDef"),
        ("CondContextDef-training", "cond_context", "CondContextDef"),
    ):
        data = meta_graph.collection_def[collection].bytes_list.value[0]
        yield case, message_class(name).FromString(data)

    with tf.Graph().as_default(), v1.Session() as session:
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        fetch = v1.placeholder_with_default([1.0, 2.0], [None]) * 2.0
        session.run(fetch, options=options, run_metadata=metadata)
        yield "RunMetadata-trace", metadata


def written():
    with tempfile.TemporaryDirectory() as folder:
        module = tf.Module()
        module.v = tf.Variable([1.0, 2.0], name="v")
        tf.saved_model.save(module, folder)
        saved = tf.io.gfile.GFile(f"{folder}/saved_model.pb", "rb").read()
        meta_graph = message_class("SavedModel").FromString(saved).meta_graphs[0]
        del meta_graph.graph_def.node[2:]
        del meta_graph.graph_def.library.function[:]
        del meta_graph.meta_info_def.stripped_op_list.op[2:]
        yield "MetaGraphDef-saved_model", meta_graph

        path = tf.train.Checkpoint(m=module).save(f"{folder}/ckpt")
        graph = tf.train.load_checkpoint(path).get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
        yield "TrackableObjectGraph-checkpoint", message_class("TrackableObjectGraph").FromString(graph)
        state = tf.train.get_checkpoint_state(folder)
        state.model_checkpoint_path = "ckpt-1"
        state.all_model_checkpoint_paths[:] = ["ckpt-1"]
        yield "CheckpointState-checkpoint", state

        with tf.Graph().as_default(), v1.Session() as session:
            writer = v1.summary.FileWriter(folder, filename_suffix=".golden")
            v1.summary.scalar("loss", 0.25)
            v1.summary.histogram("w", [1.0, 2.0, 3.5])
            writer.add_summary(session.run(v1.summary.merge_all()), 7)
            writer.close()
        (events,) = pathlib.Path(folder).glob("*.golden")
        for event in v1.train.summary_iterator(str(events)):
            event.source_metadata.ClearField("writer")
            yield f"Event-{event.WhichOneof('what')}", event


def cases():
    yield from filled()
    yield from built()
    yield from written()
    for name, data in sorted(wire.capture().items()):
        message = message_class(name).FromString(data)
        yield f"{name}-wire", message


def make():
    for old in [*HERE.glob("*.pb"), *HERE.glob("*.pbtxt")]:
        old.unlink()
    for case, message in cases():
        (HERE / f"{case}.pb").write_bytes(message.SerializeToString(deterministic=True))
        if not any(field in str(message) for field in OPAQUE):
            (HERE / f"{case}.pbtxt").write_text(text_format.MessageToString(message))


def check(folder):
    problems = count = 0
    for golden in sorted(HERE.glob("*.pb")):
        cls = message_class(golden.stem.split("-")[0])
        wanted = cls.FromString(golden.read_bytes())
        found = [cls.FromString((folder / golden.name).read_bytes())]
        text = folder / f"{golden.stem}.pbtxt"
        if text.exists():
            found.append(text_format.Parse(text.read_text(), cls()))
        count += len(found)
        for message in found:
            if message != wanted:
                problems += 1
                print(f"{golden.stem}: differs from the golden message")
    print(f"golden: {count} messages compared, {problems} differ")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    add_service_messages()
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(pathlib.Path(sys.argv[2])))
    make()
