"""Sparse ClusterSpec: {job: {index: address}}; task indices 1 and 3 only."""

from common import *

a = parse(__doc__)
cs = tf.train.ClusterSpec(a.cluster_dict)
check_eq(cs.task_indices("worker"), [1, 3], "indices")
check_eq(cs.num_tasks("worker"), 2, "num_tasks")
check_eq(cs.job_tasks("worker")[0], None, "hole")
check_eq(cs.as_dict()["worker"], a.cluster_dict["worker"], "as_dict")
for idx, addr in a.cluster_dict["worker"].items():
    with tf.Graph().as_default():
        with v1.device("/job:worker/task:3"):
            x = tf.constant(2.0) * 3.0
        with v1.device("/job:worker/task:1"):
            y = x + 1.0
        with v1.device("/job:ps"):
            z = y * 2.0
        w = z + 0.0
        with v1.Session(grpc(addr)) as s:
            md = v1.RunMetadata()
            check_eq(
                float(s.run(w, options=v1.RunOptions(output_partition_graphs=True), run_metadata=md)), 14.0, "value"
            )
            check_eq(
                sorted(d.name for d in s.list_devices() if d.device_type == "CPU"),
                ["/job:ps/replica:0/task:0/device:CPU:0"]
                + ["/job:worker/replica:0/task:%d/device:CPU:0" % i for i in (1, 3)],
                "devices",
            )
        with v1.device("/job:worker/task:0"):
            bad = tf.constant(1.0) + 1.0
        with v1.Session(grpc(addr)) as s:
            with raises(tf.errors.InvalidArgumentError):
                s.run(bad)
ok()
