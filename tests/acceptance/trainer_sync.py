"""SyncReplicasOptimizer: the gradients of two workers are averaged for each global step. Worker k always feeds
batch k, so numpy can compute the same."""

from trainers import *

a = parse(__doc__)
STEPS, RATE = 40, 0.1
COUNT = len(a.workers)


def data(task):
    return synthetic_mnist(64, seed=50 + task)


def worker():
    with devices(a):
        x, y, _, _, loss, gs = softmax_regression()
        optimizer = v1.train.SyncReplicasOptimizer(
            v1.train.GradientDescentOptimizer(RATE), replicas_to_aggregate=COUNT, total_num_replicas=COUNT
        )
        train = optimizer.minimize(loss, global_step=gs)
    hook = optimizer.make_session_run_hook(a.task_index == 0, num_tokens=0)
    images, labels = data(a.task_index)
    runs = 0
    with session(a, STEPS, save_steps=10**6, hooks=[hook], stop_grace_period_secs=5) as ms:
        while not ms.should_stop():
            _, last_loss, step = ms.run([train, loss, gs], {x: images, y: labels})
            runs += 1
    print("worker", a.task_index, "runs", runs, "loss", last_loss, "step", step)
    put_result([runs, float(last_loss)])


def synchronous_sgd(steps):
    """The weights by numpy."""
    w, b = np.zeros((784, 10)), np.zeros(10)
    batches = [data(i) for i in range(COUNT)]
    for _ in range(steps):
        w_grad, b_grad = 0, 0
        for images, labels in batches:
            logits = images @ w + b
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(len(labels)), labels] -= 1
            w_grad, b_grad = w_grad + images.T @ p / len(labels), b_grad + p.mean(0)
        w, b = w - RATE * w_grad / COUNT, b - RATE * b_grad / COUNT
    return w


if a.job_name == "worker":
    worker()
    sys.exit(0)
logs = logs_of(a)
wait_all(spawn_workers(logs), 200, logs)
results = [result_of(i) for i in range(COUNT)]
print(results)
reader = tf.train.load_checkpoint(shared("checkpoints"))
step = int(reader.get_tensor("global_step"))
check(STEPS <= step <= STEPS + 2, "global_step", step)
check(sum(runs for runs, _ in results) <= COUNT * (step + 2), "a step took more than its share of runs", results)
# TensorFlow may take both gradients of a step from one worker, so the two are close, not equal
want = synchronous_sgd(step)
distance = np.abs(reader.get_tensor("w") - want).max() / np.abs(want).max()
print("step", step, "relative distance to numpy's synchronous SGD:", distance)
check(distance < 0.05, "weights differ from synchronous SGD", distance)
check(all(loss < 1.0 for _, loss in results), "loss did not fall", results)
ok()
