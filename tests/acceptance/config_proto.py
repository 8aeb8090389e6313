"""ConfigProto in the session: allow_soft_placement, device_filters,
operation_timeout_in_ms, per-run timeout, log_device_placement, inter_op threads."""

from common import *

a = parse(__doc__)
C = v1.ConfigProto
# allow_soft_placement: an op pinned to a GPU falls back to the CPU of the same task
with tf.Graph().as_default():
    with v1.device("/job:worker/task:1/device:GPU:1"):
        x = tf.constant([1.0]) + 1.0
    with v1.Session(a.target) as s:
        with raises(tf.errors.InvalidArgumentError, "Cannot assign a device"):
            s.run(x)
    with v1.Session(a.target, config=C(allow_soft_placement=True)) as s:
        md = v1.RunMetadata()
        r = s.run(x, options=v1.RunOptions(output_partition_graphs=True), run_metadata=md)
        check_eq(float(r[0]), 2.0, "soft placement")
        devs = {n.device for pg in md.partition_graphs for n in pg.node if n.op not in ("_Recv", "_Send")}
        check("/job:worker/replica:0/task:1/device:CPU:0" in devs, devs)
# device_count in a session config to a remote server: accepted (server's devices are fixed at its start)
with tf.Graph().as_default():
    c = C(
        device_count={"GPU": 0, "CPU": 1},
        allow_soft_placement=True,
        log_device_placement=True,
        inter_op_parallelism_threads=2,
        intra_op_parallelism_threads=1,
    )
    c.gpu_options.per_process_gpu_memory_fraction = 0.2
    with v1.Session(a.target, config=c) as s:
        check_eq(int(s.run(tf.constant(2) * 3)), 6, "device_count")
# device_filters: only the listed tasks are seen (and contacted)
with tf.Graph().as_default():
    with v1.Session(a.target, config=C(device_filters=["/job:ps", "/job:worker/task:0"])) as s:
        names = sorted(d.name for d in s.list_devices() if d.device_type == "CPU")
        check_eq(
            names,
            [
                "/job:ps/replica:0/task:0/device:CPU:0",
                "/job:ps/replica:0/task:1/device:CPU:0",
                "/job:worker/replica:0/task:0/device:CPU:0",
            ],
            "filtered devices",
        )
        with v1.device("/job:worker/task:1"):
            y = tf.constant(1) + 1
        with raises(tf.errors.InvalidArgumentError):
            s.run(y)
# a session with filters works while a task outside the filter is dead; one without waits for it
if a.control:
    control(a, "kill worker 1")
    with tf.Graph().as_default():
        with v1.Session(a.target, config=C(device_filters=["/job:ps", "/job:worker/task:0"])) as s:
            check_eq(int(s.run(tf.constant(4) + 1)), 5, "filtered session with a dead worker")
    with tf.Graph().as_default():
        t0 = time.time()
        with raises((tf.errors.DeadlineExceededError, tf.errors.UnavailableError)):
            with v1.Session(a.target, config=C(operation_timeout_in_ms=1500)) as s:
                s.run(tf.constant(1))
        print("unfiltered session with a dead worker gave up after %.2fs" % (time.time() - t0))
        check(time.time() - t0 < 30, "operation_timeout_in_ms not honoured in create session")
    control(a, "start worker 1")
# operation_timeout_in_ms: a run that blocks (dequeue of an empty queue) ends with DeadlineExceeded
with tf.Graph().as_default():
    with v1.device("/job:worker/task:0"):
        q = v1.FIFOQueue(1, tf.float32, name="empty_q")
    d, size = q.dequeue(), q.size()
    with v1.Session(a.target, config=C(operation_timeout_in_ms=800)) as s:
        t0 = time.time()
        with raises(tf.errors.DeadlineExceededError):
            s.run(d)
        check(0.5 < time.time() - t0 < 10, "took", time.time() - t0)
    with v1.Session(a.target) as s:
        t0 = time.time()
        with raises(tf.errors.DeadlineExceededError):
            s.run(d, options=v1.RunOptions(timeout_in_ms=500))
        check(0.3 < time.time() - t0 < 10, "took", time.time() - t0)
        check_eq(int(s.run(size)), 0, "session is usable after a timed out run")
ok()
