"""ConfigProto of the session and RunOptions of the step."""
from common import *

C = v1.ConfigProto
INVALID = errors.InvalidArgumentError
CANNOT = "Cannot assign a device for operation"


def placed_on(session, fetch):
    """Devices of the nodes that computed `fetch`, without the ends of feeds and fetches."""
    metadata = v1.RunMetadata()
    session.run(fetch, options=v1.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    nodes = [n for g in metadata.partition_graphs for n in g.node]
    return {n.device for n in nodes if n.op not in ("_Recv", "_Send", "_HostRecv", "_HostSend")}


@part
def soft_placement(a):
    for device in ("/device:GPU:1", "/device:CPU:1"):
        with tf.Graph().as_default():
            with v1.device(device):
                x = v1.placeholder_with_default([1.0], [1]) + 1.0
            with v1.Session(a.target) as s, raises(INVALID, CANNOT, device):
                s.run(x)
            with v1.Session(a.target, config=C(allow_soft_placement=True)) as s:
                check_eq(s.run(x).tolist(), [2.0], "soft placement")
                check_eq(placed_on(s, x), {task_name(s) + "/device:CPU:0"}, "the device it fell back to")
    # Job and task are never given up.
    with v1.device("/job:elsewhere/task:1"):
        y = tf.constant(1.0)
    with v1.Session(a.target, config=C(allow_soft_placement=True)) as s, raises(INVALID, CANNOT, "/job:elsewhere/task:1"):
        s.run(y)


@part
def devices_are_the_servers(a):
    """A session's device_count does not change the devices of a server that runs."""
    c = tf.constant(2) * 3
    with v1.Session(a.target, config=C(device_count={"CPU": 3, "GPU": 0})) as s:
        check_eq(int(s.run(c)), 6)
        check_eq(len([d for d in s.list_devices() if d.device_type == "CPU"]), 1, "CPUs")
    with v1.device("/device:CPU:1"):
        x = tf.constant(1)
    with v1.Session(a.target, config=C(device_count={"CPU": 3})) as s, raises(INVALID, CANNOT):
        s.run(x)


@part
def device_filters(a):
    """A server always sees its own devices."""
    c = tf.constant(2) * 3
    for filters in (["/job:local"], ["/job:elsewhere"], ["/job:elsewhere/task:7", "/device:GPU:0"]):
        with v1.Session(a.target, config=C(device_filters=filters)) as s:
            check_eq(int(s.run(c)), 6, filters)
            check_eq(len(s.list_devices()), 1, filters)


@part
def accepted(a):
    c = v1.placeholder_with_default(2, []) * 3
    off = v1.OptimizerOptions(opt_level=v1.OptimizerOptions.L0)
    rewriter = v1.GraphOptions(optimizer_options=off)
    rewriter.rewrite_options.disable_meta_optimizer = True
    configs = [
        C(log_device_placement=True),
        C(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1),
        C(graph_options=v1.GraphOptions(optimizer_options=off)),
        C(graph_options=rewriter),
        C(graph_options=v1.GraphOptions(build_cost_model=1, infer_shapes=True)),
        C(graph_options=v1.GraphOptions(place_pruned_graph=True)),
        C(gpu_options=v1.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.2)),
        C(isolate_session_state=True),
        C(placement_period=3),
        C(operation_timeout_in_ms=20000),
    ]
    for config in configs:
        with v1.Session(a.target, config=config) as s:
            check_eq(int(s.run(c)), 6, str(config))


@part
def placement_log(a):
    """With log_device_placement the server says where each node is; run.py keeps what it says."""
    x = tf.negative(v1.placeholder_with_default(2.0, []), name="logged_node")
    with v1.Session(a.target, config=C(log_device_placement=True)) as s:
        check_eq(float(s.run(x)), -2.0)
        line = "logged_node: (Neg): %s/device:CPU:0" % task_name(s)
    log = os.path.join(a.workdir, "server.log")
    if os.path.exists(log):
        until(lambda: line in open(log, errors="replace").read(), line)


@part
def compressed_calls(a):
    """The client compresses its requests when told to; the server must take them, and may answer compressed."""
    p = v1.placeholder(tf.float32, [None])
    y = p * 2.0
    value = np.arange(100000, dtype=np.float32)
    for algorithm in ("gzip", "deflate"):
        config = C(rpc_options=dict(compression_algorithm=algorithm, compression_level=2))
        with v1.Session(a.target, config=config) as s:
            check_eq(s.run(y, {p: value}), value * 2.0, algorithm)


@part
def rpc_options(a):
    c = v1.placeholder_with_default(2, []) * 3
    for options in (
        dict(use_rpc_for_inprocess_master=True),
        dict(cache_rpc_response=True),
        dict(disable_session_connection_sharing=True),
        dict(num_channels_per_target=3),
    ):
        with v1.Session(a.target, config=C(rpc_options=options)) as s:
            check_eq(int(s.run(c)), 6, str(options))


@part
def cluster_of_the_client(a):
    """A client may bring its own names for the tasks (ClusterSpec propagation)."""
    address = a.target.split("//")[1]
    c = v1.placeholder_with_default(2, []) * 3
    cluster = tf.train.ClusterSpec({"renamed": {2: address}}).as_cluster_def()
    with v1.Session(a.target, config=C(cluster_def=cluster)) as s:
        check_eq([d.name for d in s.list_devices()], ["/job:renamed/replica:0/task:2/device:CPU:0"], "devices")
        check_eq(int(s.run(c)), 6, "value")
        with v1.device("/job:renamed/task:2"):
            d = c + 1
        check_eq(int(s.run(d)), 7, "placed by the new name")
    elsewhere = tf.train.ClusterSpec({"renamed": ["localhost:1"]}).as_cluster_def()
    with v1.Session(a.target, config=C(cluster_def=elsewhere)) as s:
        with raises(INVALID, "The master (current machine) is not included in the provided cluster_def."):
            s.run(c)


@part
def refused(a):
    c = tf.constant(2) * 3
    for config in (C(use_per_session_threads=True), C(session_inter_op_thread_pool=[dict(num_threads=1)])):
        with v1.Session(a.target, config=config) as s:
            with raises(INVALID, "Distributed session does not support session thread pool options."):
                s.run(c)


@part
def operation_timeout(a):
    q = v1.FIFOQueue(1, tf.float32, shapes=[[]], name="empty")
    get, put, size = q.dequeue(), q.enqueue(1.0), q.size()
    with v1.Session(a.target, config=C(operation_timeout_in_ms=500)) as s:
        start = time.time()
        with raises(errors.DeadlineExceededError, "Deadline Exceeded"):
            s.run(get)
        check(0.3 < time.time() - start < 10, "it took", time.time() - start)
        s.run(put)
        check_eq(int(s.run(size)), 1, "the session works on")
        check_eq(float(s.run(get, options=v1.RunOptions(timeout_in_ms=20000))), 1.0, "RunOptions win")


@part
def step_timeout(a):
    q = v1.FIFOQueue(1, tf.float32, shapes=[[]], name="empty2")
    get, size = q.dequeue(), q.size()
    forever = tf.while_loop(lambda i, x: i >= 0, lambda i, x: [i, x + 1.0], [0, 0.0], back_prop=False)[1]
    with v1.Session(a.target) as s:
        s.run(size)
        for fetch in (get, forever):
            start = time.time()
            with raises(errors.DeadlineExceededError, "Deadline Exceeded"):
                s.run(fetch, options=v1.RunOptions(timeout_in_ms=400))
            check(0.2 < time.time() - start < 10, "it took", time.time() - start)
            check_eq(int(s.run(size)), 0, "the session works on")


@part
def isolated_state(a):
    v = v1.Variable(1.0, name="iso", use_resource=True)
    q = v1.FIFOQueue(9, tf.float32, shapes=[[]], shared_name="iso_q")
    put, size = q.enqueue(1.0), q.size()
    config = C(isolate_session_state=True)
    with v1.Session(a.target) as shared, v1.Session(a.target, config=config) as one, v1.Session(a.target, config=config) as two:
        for s in (shared, one):
            s.run(v.initializer)
            s.run(put)
        one.run(v.assign(5.0))
        check_eq(float(shared.run(v)), 1.0, "shared")
        check_eq(float(one.run(v)), 5.0, "isolated")
        with raises(errors.FailedPreconditionError, "uninitialized"):
            two.run(v)
        check_eq([int(s.run(size)) for s in (shared, one, two)], [1, 1, 0], "queues")
    with v1.Session(a.target, config=config) as s:
        check_eq(int(s.run(size)), 0, "isolated state goes with its session")


@part
def run_options_without_effect(a):
    c = v1.placeholder_with_default(2, []) * 3
    with v1.Session(a.target) as s:
        for options in (
            v1.RunOptions(inter_op_thread_pool=-1),
            v1.RunOptions(inter_op_thread_pool=5),
            v1.RunOptions(timeout_in_ms=-1),
            v1.RunOptions(report_tensor_allocations_upon_oom=True),
        ):
            check_eq(int(s.run(c, options=options)), 6, str(options))


main(__doc__)
