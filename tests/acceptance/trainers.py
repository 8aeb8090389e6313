"""Training by several processes: the model, one process per worker, how they tell their progress."""

import common
from common import *


def softmax_regression():
    """-> images, labels, weights, biases, loss, global step"""
    x = v1.placeholder(tf.float32, [None, 784])
    y = v1.placeholder(tf.int64, [None])
    w = v1.get_variable("w", [784, 10], initializer=v1.zeros_initializer())
    b = v1.get_variable("b", [10], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b))
    return x, y, w, b, loss, v1.train.get_or_create_global_step()


def devices(a):
    """Variables on the ps tasks in turn, everything else on this worker."""
    cluster = tf.train.ClusterSpec({"ps": a.ps, "worker": a.workers})
    worker = "/job:worker/task:%d" % a.task_index
    return v1.device(v1.train.replica_device_setter(worker_device=worker, cluster=cluster))


def session(a, last_step, save_steps, hooks=(), target=None, **options):
    """A worker's monitored session; the chief saves a checkpoint every `save_steps` steps."""
    return v1.train.MonitoredTrainingSession(
        master=target or grpc(a.workers[a.task_index]),
        is_chief=(a.task_index == 0),
        checkpoint_dir=shared("checkpoints"),
        hooks=list(hooks) + [v1.train.StopAtStepHook(last_step=last_step), ChiefUp()],
        save_checkpoint_secs=None,
        save_checkpoint_steps=save_steps,
        save_summaries_steps=None,
        log_step_count_steps=None,
        **options
    )


def train_slowly(a, last_step, save_steps, pause, **options):
    """Trains as a worker, slowly enough to be disturbed; its result is [sessions, steps, last loss]."""
    with devices(a):
        x, y, _, _, loss, gs = softmax_regression()
        train = v1.train.AdagradOptimizer(0.05).minimize(loss, global_step=gs)
    images, labels = synthetic_mnist(500, seed=3)
    random, steps, sessions = np.random.RandomState(a.task_index), [], CountSessions()
    with session(a, last_step, save_steps, hooks=[sessions], **options) as ms:
        while not ms.should_stop():
            i = random.randint(0, 500, 50)
            _, step, last_loss = ms.run([train, gs, loss], {x: images[i], y: labels[i]})
            steps.append(int(step))
            put_step(step)
            time.sleep(pause)
    put_result([sessions.count, steps, float(last_loss)])


def filters(a):
    """This worker talks with the ps tasks and itself alone, so it neither waits for other workers nor breaks with them."""
    return v1.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % a.task_index])


class Process(object):
    """A process that run.py forks from one that has TensorFlow imported."""

    def __init__(self, argv, log):
        self.pid = control(common.ARGS, "spawn " + json.dumps({"argv": argv, "log": log}))

    def poll(self):
        code = control(common.ARGS, "poll " + self.pid)
        return None if code == "None" else int(code)

    def kill(self):
        control(common.ARGS, "end " + self.pid)
        until(lambda: self.poll() is not None, "the end of a process")


def spawn_self(task, log, extra=()):
    """Runs this very program again as worker `task`."""
    a = common.ARGS
    argv = [os.path.abspath(sys.argv[0]), "--job_name", "worker", "--task_index", str(task)]
    argv += ["--ps_hosts", a.ps_hosts, "--worker_hosts", a.worker_hosts]
    argv += ["--workdir", a.workdir, "--control", a.control] + (["--resource"] if a.resource else [])
    return Process(argv + list(extra), log)


def logs_of(a):
    return [shared("worker%d.log" % i) for i in range(len(a.workers))]


def spawn_workers(logs, extra=()):
    """One process a log. The others are started when the chief has initialised the variables: they poll only every 30 s."""
    workers = [spawn_self(0, logs[0], extra)]
    end = time.time() + 120
    while not os.path.exists(shared("chief_up")) and workers[0].poll() is None and time.time() < end:
        time.sleep(0.05)
    return workers + [spawn_self(i, logs[i], extra) for i in range(1, len(logs))]


def wait_all(processes, timeout, logs):
    """Waits until all have ended well; what is left of them after a failure, run.py ends."""
    end = time.time() + timeout
    for process, log in zip(processes, logs):
        while process.poll() is None:
            check(time.time() < end, "a process did not end within %ds:\n%s" % (timeout, tail(log)))
            time.sleep(0.1)
        check(process.poll() == 0, "a process ended with %d:\n%s" % (process.poll(), tail(log)))


def tail(log):
    with open(log, errors="replace") as f:
        return f.read()[-2500:]


class ChiefUp(v1.train.SessionRunHook):
    """Tells `spawn_workers` that the variables are initialised."""

    def after_create_session(self, session, coord):
        open(shared("chief_up"), "w").close()


class CountSessions(v1.train.SessionRunHook):
    """How many sessions a training went through."""

    def __init__(self):
        self.count = 0

    def after_create_session(self, session, coord):
        self.count += 1


def shared(name):
    return os.path.join(common.ARGS.workdir, name)


def put_step(step):
    """The progress of this worker; replaced as a whole, so that a reader never sees half of it."""
    path = shared("step%d" % common.ARGS.task_index)
    with open(path + ".tmp", "w") as f:
        f.write(str(int(step)))
    os.replace(path + ".tmp", path)


def step_of(task):
    """The progress of a worker; 0 before its first step."""
    try:
        with open(shared("step%d" % task)) as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


def wait_for_step(step, processes):
    """Waits until all workers are there."""
    end = time.time() + 120
    while min(step_of(i) for i in range(len(processes))) < step:
        alive = all(p.poll() is None for p in processes)
        check(time.time() < end and alive, "training did not get to step", step)
        time.sleep(0.05)


def put_result(value):
    """What this worker found, for the process that started it."""
    with open(shared("w%d.json" % common.ARGS.task_index), "w") as f:
        json.dump(value, f)


def result_of(task):
    with open(shared("w%d.json" % task)) as f:
        return json.load(f)
