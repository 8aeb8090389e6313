"""Pin ops across tasks by full, partial and no device names; check the
placement with RunMetadata partition graphs and step stats."""

from common import *

a = parse(__doc__)


def full(job, task):
    return "/job:%s/replica:0/task:%d/device:CPU:0" % (job, task)


def placement(sess, fetch):
    md = v1.RunMetadata()
    r = sess.run(
        fetch,
        options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True),
        run_metadata=md,
    )
    parts, ran = {}, {}
    for pg in md.partition_graphs:
        for n in pg.node:
            parts.setdefault(n.name, set()).add(n.device)
    for d in md.step_stats.dev_stats:
        for n in d.node_stats:
            ran.setdefault(n.node_name.split(":")[0], set()).add(d.device)
    return r, parts, ran, md


# Grappler off, constant folding would remove the small graph
off = v1.ConfigProto()
off.graph_options.rewrite_options.disable_meta_optimizer = True
off.graph_options.optimizer_options.opt_level = -1
for mjob, mtask, maddr in [("worker", i, x) for i, x in enumerate(a.workers)] + [("ps", 0, a.ps[0])]:
    with tf.Graph().as_default():
        # not a bare constant: TF 2.21 replicates small constants to each consumer device
        with v1.device("/job:ps/task:0/cpu:0"):
            x = tf.add(tf.constant(0.5), 0.5, name="x")
        with v1.device("/job:worker/task:1/device:CPU:0"):
            b = tf.add(x, 2.0, name="b")
        c = tf.add(x, b, name="c")  # nothing: the master's task
        with v1.device("/job:ps"):
            d = tf.add(c, 1.0, name="d")  # /job:ps -> task 0
        with v1.device("/job:ps/task:1"):
            e = tf.add(d, 1.0, name="e")
        with v1.device("/job:worker/task:0"):
            with v1.device("/cpu:0"):
                f = tf.add(e, 1.0, name="f")  # merged
            with v1.device(None):
                h = tf.add(e, 2.0, name="h")  # cleared
        with v1.device("/job:ps/task:1"):
            with v1.device("/job:worker/task:0"):
                k = tf.add(f, h, name="k")  # inner wins
        with v1.Session(grpc(maddr), config=off) as s:
            (cv, fv, hv, kv), parts, ran, md = placement(s, [c, f, h, k])
            check_eq([float(z) for z in (cv, fv, hv, kv)], [4.0, 7.0, 8.0, 15.0], "values")
            want = {
                "x": full("ps", 0),
                "b": full("worker", 1),
                "c": full(mjob, mtask),
                "d": full("ps", 0),
                "e": full("ps", 1),
                "f": full("worker", 0),
                "h": full(mjob, mtask),
                "k": full("worker", 0),
            }
            for n, dev in want.items():
                check_eq(parts.get(n), {dev}, "partition of " + n + " with master " + maddr)
                # step stats of remote tasks are only in the trace if the worker sends them
                if n in ran:
                    check_eq(ran[n], {dev}, "ran " + n)
            check(len(md.partition_graphs) == len(set(want.values())), "partitions:", len(md.partition_graphs))
            ops = [n.op for pg in md.partition_graphs for n in pg.node]
            check("_Send" in ops and "_Recv" in ops, "no send/recv in partition graphs")
            sends = sorted(
                n.attr["tensor_name"].s
                for pg in md.partition_graphs
                for n in pg.node
                if n.op == "_Send" and not n.attr["client_terminated"].b
            )
            recvs = sorted(n.attr["tensor_name"].s for pg in md.partition_graphs for n in pg.node if n.op == "_Recv")
            check_eq(sends, recvs, "sends and recvs pair up")  # fetches are client terminated sends
# colocation: a variable's initial value, its assign and read stay with it
with tf.Graph().as_default():
    with v1.device("/job:ps/task:1"):
        v = v1.Variable([1.0, 2.0], name="v")
    with v1.device("/job:worker/task:0"):
        up = v1.assign_add(v, [1.0, 1.0])
        with v1.colocate_with(v):
            z = tf.identity(tf.constant([5.0]), name="z")
    with v1.Session(a.target, config=off) as s:
        s.run(v.initializer)
        r, parts, _, _ = placement(s, [up, z])
        check_eq(parts["AssignAdd"], {full("ps", 1)}, "assign_add is with its variable")
        check_eq(parts["z"], {full("ps", 1)}, "colocate_with")
# the handle of a variable goes to the client, the variable stays
with tf.Graph().as_default():
    with v1.device("/job:ps/task:1"):
        v = v1.Variable(3.0, name="held", use_resource=True)
    with v1.Session(a.target) as s:
        s.run(v.initializer)
        handle, value = s.run([v.handle, v.read_value()])
        check_eq((handle.dtype.names, float(value)), (("resource",), 3.0), "a handle and its value")
# errors: a device that does not exist
for dev in ["/job:ps/task:7", "/job:nosuch", "/job:worker/task:0/device:GPU:0"]:
    with tf.Graph().as_default():
        with v1.device(dev):
            x = tf.constant(1.0) + 1.0
        with v1.Session(a.target) as s:
            with raises(tf.errors.InvalidArgumentError, "Cannot assign a device for operation"):
                s.run(x)
ok()
