"""ServerDef / ClusterDef / ClusterSpec forms, and ClusterDef in the
session's ConfigProto (cluster spec propagation) against the running servers."""

from common import *
from tensorflow.core.protobuf import cluster_pb2, tensorflow_server_pb2

a = parse(__doc__)
spec = {"ps": ["ps0:2222", "ps1:2222"], "worker": ["worker0:2222", "worker1:2222", "worker2:2222"]}
cs = tf.train.ClusterSpec(spec)
cd = cs.as_cluster_def()
check(isinstance(cd, cluster_pb2.ClusterDef))
check_eq([j.name for j in cd.job], ["ps", "worker"], "jobs sorted")
check_eq(dict(cd.job[1].tasks), {0: "worker0:2222", 1: "worker1:2222", 2: "worker2:2222"}, "tasks")
check_eq(tf.train.ClusterSpec(cd).as_dict(), spec, "round trip")
check(tf.train.ClusterSpec(cs) == cs)
check_eq(sorted(cs.jobs), ["ps", "worker"], "jobs")
check_eq(cs.task_address("ps", 1), "ps1:2222", "task_address")
check_eq(cs.job_tasks("ps"), spec["ps"], "job_tasks")
with raises(ValueError):
    cs.task_address("ps", 9)
with raises(ValueError):
    cs.num_tasks("nosuch")
sd = tensorflow_server_pb2.ServerDef(cluster=cd, job_name="worker", task_index=2, protocol="grpc")
check_eq(tensorflow_server_pb2.ServerDef.FromString(sd.SerializeToString()), sd, "ServerDef bytes")
# In-process server from a ServerDef, start=False, then start(): Python API of TF itself
local = tensorflow_server_pb2.ServerDef(
    cluster=tf.train.ClusterSpec({"local": ["localhost:0"]}).as_cluster_def(),
    job_name="local",
    task_index=0,
    protocol="grpc",
)
srv = tf.distribute.Server(local, start=False)
check_eq(srv.server_def.job_name, "local", "server_def")
srv.start()
check(srv.target.startswith("grpc://localhost:"), srv.target)
# Cluster spec propagation: the session brings a ClusterDef with other job names for the same servers
cfg = v1.ConfigProto()
cfg.cluster_def.CopyFrom(tf.train.ClusterSpec({"boss": [a.workers[0]], "store": [a.ps[0]]}).as_cluster_def())
with tf.Graph().as_default():
    with v1.device("/job:store/task:0"):
        x = tf.constant(20.0) + 1.0
    with v1.device("/job:boss/task:0"):
        y = x * 2.0
    with v1.Session(grpc(a.workers[0]), config=cfg) as s:
        check_eq(float(s.run(y)), 42.0, "propagated cluster")
        names = sorted(d.name for d in s.list_devices() if d.device_type == "CPU")
        check_eq(
            names,
            ["/job:boss/replica:0/task:0/device:CPU:0", "/job:store/replica:0/task:0/device:CPU:0"],
            "devices of the propagated cluster",
        )
# and the server's own cluster is as before
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        x = tf.constant(1.0) + 1.0
    with v1.Session(grpc(a.workers[0])) as s:
        check_eq(float(s.run(x)), 2.0, "own cluster after propagation")
ok()
