"""RunMetadata: step stats that make a timeline, partition graphs; nothing of it when nobody asks."""
import json

from tensorflow.python.client import timeline

from common import *

FULL = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)


def work():
    x = v1.placeholder(tf.float32, [64, 64], name="x")
    v = v1.Variable(np.ones([64, 64], np.float32), name="v")
    return x, v, tf.reduce_sum(tf.matmul(x, v, name="product"), name="total")


def traced(session, *run):
    metadata = v1.RunMetadata()
    session.run(*run, options=FULL, run_metadata=metadata)
    return metadata


@part
def step_stats(a):
    x, v, total = work()
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        device = task_name(s) + "/device:CPU:0"
        before = time.time() * 1e6
        stats = traced(s, total, {x: np.ones([64, 64])}).step_stats
        after = time.time() * 1e6
        here = [d for d in stats.dev_stats if d.device == device]
        check_eq(len(here), 1, [d.device for d in stats.dev_stats])
        nodes = {n.node_name: n for n in here[0].node_stats}
        check("_SOURCE" in nodes, "no _SOURCE in", sorted(nodes))
        product = nodes["product"]
        check("= MatMul(" in product.timeline_label, product.timeline_label)
        check(before - 2e6 < product.all_start_micros < after + 2e6, "start", product.all_start_micros, before)
        check(0 <= product.op_start_rel_micros <= product.op_end_rel_micros <= product.all_end_rel_micros, product)
        check_eq([d.size for d in product.output[0].tensor_description.shape.dim], [64, 64], "output shape")
        check_eq(product.output[0].tensor_description.dtype, tf.float32.as_datatype_enum, "output dtype")


@part
def chrome_trace(a):
    x, v, total = work()
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        stats = traced(s, total, {x: np.ones([64, 64])}).step_stats
        trace = json.loads(timeline.Timeline(stats).generate_chrome_trace_format(show_memory=True, show_dataflow=True))
        ops = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
        check("MatMul" in {e["name"] for e in ops}, sorted({e["name"] for e in ops}))
        check(all(e["dur"] >= 0 for e in ops), "durations")


@part
def partition_graphs(a):
    x, v, total = work()
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        graphs = traced(s, total, {x: np.ones([64, 64])}).partition_graphs
        check_eq(len(graphs), 1, "graphs")
        nodes = {n.name: n for n in graphs[0].node}
        check_eq(nodes["product"].op, "MatMul")
        check_eq(nodes["product"].device, task_name(s) + "/device:CPU:0", "device")
        check_eq(nodes["_send_total_0"].op, "_Send", "end of the fetch")
        check_eq(nodes["_recv_x_0"].op, "_Recv", "end of the feed")


@part
def loops(a):
    n = v1.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.multiply(y, 2.0, name="twice")), [0, 1.0])
    with v1.Session(a.target) as s:
        stats = traced(s, y, {n: 5}).step_stats
        runs = [m for d in stats.dev_stats for m in d.node_stats if m.node_name == "while/twice"]
        check(len(runs) >= 5, "a loop's node is recorded at each iteration", len(runs))


@part
def only_on_demand(a):
    x, v, total = work()
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        feed = {x: np.ones([64, 64])}
        metadata = v1.RunMetadata()
        s.run(total, feed, run_metadata=metadata)
        check_eq([f.name for f, _ in metadata.ListFields()], [], "without options")
        s.run(total, feed, options=v1.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        check(metadata.partition_graphs and not metadata.step_stats.dev_stats, "only graphs")
        check_eq(float(s.run(total, feed)), 64.0**3, "a plain run")


main(__doc__)
