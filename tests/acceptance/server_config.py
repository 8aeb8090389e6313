"""ConfigProto given to the server: device_count {CPU: 2}, soft placement."""

from common import *

a = parse(__doc__)
with tf.Graph().as_default():
    with v1.device("/job:worker/task:0/cpu:1"):
        x = v1.placeholder_with_default(np.array([1.0, 2.0], np.float32), [2]) * 1.0  # a constant would be folded away
    with v1.device("/job:ps/task:0/cpu:1"):
        y = tf.reduce_sum(x) + 1.0
    with v1.device("/job:worker/task:0/cpu:0"):
        z = y * 2.0
    with v1.Session(a.target) as s:
        names = sorted(d.name for d in s.list_devices() if d.device_type == "CPU")
        check_eq(
            names,
            ["/job:%s/replica:0/task:0/device:CPU:%d" % (j, i) for j in ("ps", "worker") for i in (0, 1)],
            "two CPUs a task",
        )
        md = v1.RunMetadata()
        r = s.run(z, options=v1.RunOptions(output_partition_graphs=True), run_metadata=md)
        check_eq(float(r), 8.0, "value")
        check(
            any(n.device.endswith("ps/replica:0/task:0/device:CPU:1") for g in md.partition_graphs for n in g.node),
            "CPU:1 unused",
        )
ok()
