"""Summaries: the ops run on the server, events read by TensorBoard's reader; step
counter and summary hooks of MonitoredTrainingSession."""

from common import *

a = parse(__doc__)
from tensorboard.backend.event_processing import event_accumulator as ea

logdir = os.path.join(a.workdir, "logs")
with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        w = v1.get_variable("w", [3], initializer=v1.constant_initializer(1.0))
        loss = tf.reduce_sum(tf.square(w))
        v1.summary.scalar("loss", loss)
        v1.summary.histogram("weights", w)
        v1.summary.text("note", tf.constant("hello"))
        v1.summary.image("img", tf.reshape(tf.range(2 * 8 * 8 * 3, dtype=tf.float32), [2, 8, 8, 3]) / 400.0)
        gs = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=gs)
        v1.add_to_collection("x", loss)
        merged = v1.summary.merge_all()
    with v1.train.MonitoredTrainingSession(
        master=a.target,
        checkpoint_dir=logdir,
        save_summaries_steps=1,
        log_step_count_steps=5,
        hooks=[v1.train.StopAtStepHook(last_step=20)],
    ) as s:
        while not s.should_stop():
            s.run(train)
acc = ea.EventAccumulator(logdir, size_guidance={ea.SCALARS: 0, ea.HISTOGRAMS: 0, ea.TENSORS: 0, ea.IMAGES: 0})
acc.Reload()
tags = acc.Tags()
print({k: v for k, v in tags.items() if v})
sc = acc.Scalars("loss")
check(len(sc) >= 19, "scalars", len(sc))
vals = [e.value for e in sc]
check_close(vals[0], 3.0, "first loss", rtol=0.5)
check(vals[-1] < 0.01, vals[-1])
for p, q in zip(vals, vals[1:]):
    check_close(q / p, 0.64, "decay of w^2", rtol=1e-3)
h = acc.Histograms("weights")
check_eq(h[0].histogram_value.num, 3.0, "histogram count")
check("global_step/sec" in tags["scalars"], "step counter")
check(any(t.startswith("img") for t in tags["images"]), tags["images"])
check(acc.Graph() is not None, "graph event")
im = acc.Images(tags["images"][0])[0]
check_eq((im.width, im.height), (8, 8), "image size")
check(im.encoded_image_string.startswith(b"\x89PNG"), "png")
# v2 summary writer resource in a graph: the file is written by the server
with tf.Graph().as_default():
    d2 = os.path.join(a.workdir, "logs2")
    step = v1.train.get_or_create_global_step()
    wr = tf.summary.create_file_writer(d2)
    with wr.as_default(), tf.summary.record_if(True):
        op = tf.summary.scalar("server_side", tf.cast(step, tf.float32) * 2.0, step=step)
    inc, flush, winit = v1.assign_add(step, 1), wr.flush(), wr.init()
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        s.run(winit)
        for _ in range(5):
            s.run(op)
            s.run(inc)
        s.run(flush)
acc = ea.EventAccumulator(d2)
acc.Reload()
t = acc.Tensors("server_side")
check_eq([float(tf.make_ndarray(e.tensor_proto)) for e in t], [0.0, 2.0, 4.0, 6.0, 8.0], "written by the server")
ok()
