"""The classic trainer: replica_device_setter, AdagradOptimizer.minimize, global_step, StopAtStepHook and
MonitoredTrainingSession with a checkpoint directory, one process per worker.

Without --job_name it starts the workers and checks what they did. With --start_server each worker process has a
TensorFlow server of its own: a mixed cluster, in which only the ps tasks are the servers under test."""

from trainers import *


def extra(parser):
    parser.add_argument("--last_step", type=int, default=600)
    parser.add_argument("--start_server", action="store_true")


a = parse(__doc__, extra)


def worker():
    target, options = None, {}
    if a.start_server:
        cluster = tf.train.ClusterSpec({"ps": a.ps, "worker": a.workers})
        server = tf.distribute.Server(cluster, job_name="worker", task_index=a.task_index)
        # without filters a session would wait for every other trainer to be up
        target, options = server.target, {"config": filters(a)}
    with devices(a):
        x, y, _, _, loss, gs = softmax_regression()
        train = v1.train.AdagradOptimizer(0.05).minimize(loss, global_step=gs)
        placed = [v.device for v in v1.global_variables()[:3]]
        check_eq(placed, ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"], "ps tasks in turn")
    images, labels = synthetic_mnist(2000, seed=7)
    runs, random, losses = 0, np.random.RandomState(a.task_index), []
    with session(a, a.last_step, save_steps=100, target=target, **options) as ms:
        while not ms.should_stop():
            i = random.randint(0, 2000, 100)
            _, last_loss, step = ms.run([train, loss, gs], {x: images[i], y: labels[i]})
            losses.append(float(last_loss))
            runs += 1
    print("worker", a.task_index, "runs", runs, "first loss", losses[0], "last", losses[-1])
    put_result([runs, losses[0], losses[-1], int(step)])


if a.job_name == "worker":
    worker()
    sys.exit(0)
logs = logs_of(a)
start_server = ["--start_server"] if a.start_server else []
wait_all(spawn_workers(logs, ["--last_step", str(a.last_step)] + start_server), 200, logs)
results = [result_of(i) for i in range(len(a.workers))]
print(results)
total = sum(runs for runs, _, _, _ in results)
check(a.last_step <= total <= a.last_step + 2 * len(a.workers), "total steps", total)
check(all(last < 0.5 for _, _, last, _ in results), "loss did not fall", results)
reader = tf.train.load_checkpoint(shared("checkpoints"))
keys = sorted(reader.get_variable_to_shape_map())
check_eq(keys, ["b", "b/Adagrad", "global_step", "w", "w/Adagrad"], "checkpoint keys")
step = int(reader.get_tensor("global_step"))
check(a.last_step <= step <= a.last_step + 2 * len(a.workers), "global_step in checkpoint", step)
images, labels = synthetic_mnist(1000, seed=99)
accuracy = np.mean(np.argmax(images @ reader.get_tensor("w") + reader.get_tensor("b"), 1) == labels)
print("accuracy from the checkpoint", accuracy)
check(accuracy > 0.95, "accuracy", accuracy)
# a second training goes on where the checkpoint is
wait_all([spawn_self(0, logs[0], ["--last_step", str(a.last_step + 20)] + start_server)], 100, logs)
runs, first, _, step = result_of(0)
check(runs <= 21 and step >= a.last_step + 18, "resume:", runs, step)  # a step may be read before its own increment
check(first < 0.5, "resumed from trained weights", first)
ok()
