"""One client, sessions to many servers in threads; ps state is common."""

from common import *

a = parse(__doc__)
addrs = a.ps + a.workers
g = tf.Graph()
with g.as_default():
    with v1.device("/job:ps/task:1"):
        v = v1.Variable(0, dtype=tf.int64, name="tally", use_resource=True)
        init = v1.global_variables_initializer()
    inc, val = v.assign_add(1, read_value=False), v.read_value()
    where = tf.constant(0) + 1  # unpinned: on the master's own task
with v1.Session(grpc(addrs[0]), graph=g) as s:
    s.run(init)


def go(addr, job, task):
    with v1.Session(grpc(addr), graph=g) as s:
        for _ in range(20):
            s.run(inc)
        md = v1.RunMetadata()
        s.run(
            where,
            options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True),
            run_metadata=md,
        )
        devs = set(n.device for pg in md.partition_graphs for n in pg.node)
        want = "/job:%s/replica:0/task:%d/device:CPU:0" % (job, task)
        check_eq(devs, {want}, "default device of " + addr)


tasks = [(x, "ps", i) for i, x in enumerate(a.ps)] + [(x, "worker", i) for i, x in enumerate(a.workers)]
for thread in [Thread(go, *task) for task in tasks]:
    thread.value()
with v1.Session(grpc(addrs[-1]), graph=g) as s:
    check_eq(int(s.run(val)), 20 * len(addrs), "all increments seen")
ok()
