"""session.list_devices() shows the devices of all tasks, from every master."""

from common import *

a = parse(__doc__)
want = {"/job:ps/replica:0/task:%d/device:CPU:0" % i for i in range(len(a.ps))} | {
    "/job:worker/replica:0/task:%d/device:CPU:0" % i for i in range(len(a.workers))
}
seen = {}
for addr in a.ps + a.workers:
    with v1.Session(grpc(addr), graph=tf.Graph()) as s:
        d = s.list_devices()
        cpus = {x.name for x in d if x.device_type == "CPU"}
        check_eq(cpus, want, "devices seen from " + addr)
        for x in d:
            if x.device_type == "CPU":
                check(x.memory_limit_bytes > 0, "memory limit", x)
                check(seen.setdefault(x.name, x.incarnation) == x.incarnation, "incarnation differs between masters", x)
check(len(set(seen.values())) == len(seen), "incarnations are not unique", seen)
check(all(seen.values()), "zero incarnation")
ok()
