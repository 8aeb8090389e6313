"""A ps is killed and restarted in mid-training: the workers' sessions see AbortedError or UnavailableError,
_RecoverableSession makes new ones, the chief restores from the checkpoint and training goes on."""

from trainers import *

a = parse(__doc__)
LAST = 400

if a.job_name == "worker":
    train_slowly(a, LAST, save_steps=20, pause=0.01)
    sys.exit(0)
logs = logs_of(a)
processes = spawn_workers(logs)
wait_for_step(100, processes)
at = step_of(0)
print("killing ps 0 at step", at)
control(a, "kill ps 0")
time.sleep(1.0)
control(a, "start ps 0")
wait_all(processes, 220, logs)
results = [result_of(i) for i in range(len(a.workers))]
for i, (sessions, steps, loss) in enumerate(results):
    print("worker", i, "sessions", sessions, "runs", len(steps), "last step", steps[-1], "loss", loss)
check(all(sessions >= 2 for sessions, _, _ in results), "a worker made no new session", [r[0] for r in results])
# a step may read global_step before the increments under way; the checkpoint below is exact
check(max(steps[-1] for _, steps, _ in results) >= LAST - len(a.workers), "did not finish")
reader = tf.train.load_checkpoint(shared("checkpoints"))
check(int(reader.get_tensor("global_step")) >= LAST, "checkpoint step")
check(all(loss < 0.5 for _, _, loss in results), "loss")
fell_to = [[y for x, y in zip(steps, steps[1:]) if y < x] for _, steps, _ in results]
print("step went back to", fell_to, "after", at)
check(
    all(step >= 80 for falls in fell_to for step in falls), "restarted from scratch, not from the checkpoint", fell_to
)
ok()
