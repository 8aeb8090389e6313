"""A worker (server and its client) is killed and restarted in mid-training; the other worker goes on all the
while, the new one joins at the current step."""

from trainers import *

a = parse(__doc__)
LAST = 800

if a.job_name == "worker":
    train_slowly(a, LAST, save_steps=50, pause=0.02, config=filters(a))
    sys.exit(0)
logs = logs_of(a)
processes = spawn_workers(logs)
wait_for_step(60, processes)
processes[1].kill()
control(a, "kill worker 1")
killed, at = time.time(), step_of(0)
until(lambda: step_of(0) >= at + 10, "worker 0 goes on though worker 1 is dead", 20)
print("worker 0 went on: step %d -> %d in %.2fs while worker 1 was dead" % (at, step_of(0), time.time() - killed))
control(a, "start worker 1")
wait_all([processes[0], spawn_self(1, logs[1])], 200, logs)
(sessions, steps, loss), (_, joined, joined_loss) = result_of(0), result_of(1)
print("killed at", at, "; worker 1 joined at step", joined[0], "; losses", loss, joined_loss)
check(joined[0] > at, "worker 1 did not join the running training", joined[0], at)
check(steps[-1] >= LAST - 2 and loss < 0.5, "end of training", steps[-1], loss)
check_eq(sessions, 1, "sessions of worker 0: it must keep its own through the other's death")
# a step may read global_step before or after its own increment: equal reads are right, a fall is not
check(all(x <= y for x, y in zip(steps, steps[1:])), "worker 0's steps went back: it lost its session")
ok()
