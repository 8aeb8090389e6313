"""A server started with a ConfigProto: two CPUs, soft placement and a time limit."""
from common import *


@part
def two_cpus(a):
    with v1.device("/device:CPU:0"):
        x = v1.placeholder_with_default([1.0, 2.0], [2]) * 2.0
    with v1.device("/device:CPU:1"):
        y = x + 1.0
        v = v1.Variable([0.0, 0.0], name="on_cpu1", use_resource=True)
        add = v.assign_add(y, read_value=False)
    with v1.Session(a.target) as s:
        task = task_name(s)
        cpus = sorted(d.name for d in s.list_devices() if d.device_type == "CPU")
        check_eq(cpus, [task + "/device:CPU:0", task + "/device:CPU:1"], "devices")
        s.run(v.initializer)
        s.run(add)
        check_eq(s.run(v).tolist(), [3.0, 5.0], "an edge from one to the other")
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        s.run(y, options=options, run_metadata=metadata)
        used = {n.device for g in metadata.partition_graphs for n in g.node}
        check_eq(used, set(cpus), "devices of the partition graphs")
        check_eq({d.device for d in metadata.step_stats.dev_stats} & set(cpus), set(cpus), "devices of the step stats")


@part
def loop_over_two_cpus(a):
    def body(i, x):
        with v1.device("/device:CPU:1"):
            x = x + 1.0
        with v1.device("/device:CPU:0"):
            return i + 1, x * 2.0

    n = v1.placeholder(tf.int32, [])
    with v1.device("/device:CPU:0"):
        _, x = tf.while_loop(lambda i, x: i < n, body, [0, tf.constant(0.0)])
    with v1.Session(a.target) as s:
        for k in (0, 1, 9):
            check_eq(float(s.run(x, {n: k})), 2.0 * (2.0**k - 1), "n=%d" % k)


@part
def soft_placement_is_inherited(a):
    with v1.device("/device:GPU:0"):
        x = v1.placeholder_with_default(1.0, []) + 1.0
    with v1.Session(a.target) as s:
        check_eq(float(s.run(x)), 2.0, "no config of its own")
    with v1.Session(a.target, config=v1.ConfigProto(log_device_placement=True)) as s:
        check_eq(float(s.run(x)), 2.0, "a config that says nothing about it")


@part
def time_limit_binds_no_client(a):
    """The limit on operations is the client's business: a step may take longer than the server's own."""
    q = v1.FIFOQueue(1, tf.float32, shapes=[[]], name="empty")
    get, put = q.dequeue(), q.enqueue(1.0)
    with v1.Session(a.target) as s:
        waiting = Thread(lambda: float(s.run(get)))
        time.sleep(1.2)
        check(waiting.is_alive(), "the step ended:", waiting.result)
        s.run(put)
        check_eq(waiting.value(), 1.0)


main(__doc__)
