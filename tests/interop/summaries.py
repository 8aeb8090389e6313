"""Summary ops, event files by the client's FileWriter and by the server's own writer, read back; summary hooks."""
import glob

from common import *


def events(directory):
    """[(step, tag, value message)] of all event files."""
    out = []
    for path in sorted(glob.glob(os.path.join(directory, "events.out.tfevents.*"))):
        for event in v1.train.summary_iterator(path):
            out += [(event.step, value.tag, value) for value in event.summary.value]
    return out


def parsed(summary):
    message = v1.Summary()
    message.ParseFromString(summary)
    return {value.tag: value for value in message.value}


@part
def summary_ops(a):
    x = v1.placeholder(tf.float32, [None])
    image = tf.reshape(tf.range(2 * 8 * 8 * 3, dtype=tf.float32), [2, 8, 8, 3]) / 400.0
    v1.summary.scalar("total", tf.reduce_sum(x))
    v1.summary.histogram("values", x)
    v1.summary.text("note", tf.constant("hello"))
    v1.summary.image("img", image)
    v1.summary.tensor_summary("raw", x)
    merged = v1.summary.merge_all()
    feed = {x: [1.0, 2.0, 4.0]}
    with v1.Session() as local, v1.Session(a.target) as s:
        got, want = parsed(s.run(merged, feed)), parsed(local.run(merged, feed))
        check_eq(sorted(got), sorted(want), "tags")
        check_eq(got["total"].simple_value, 7.0, "scalar")
        check_eq(got["values"].histo, want["values"].histo, "histogram")
        check_eq(tf.make_ndarray(got["raw"].tensor).tolist(), [1.0, 2.0, 4.0], "tensor")
        check_eq(tf.make_ndarray(got["note"].tensor), np.array(b"hello", object), "text")
        picture = got["img/image/0"].image
        check_eq((picture.width, picture.height, picture.colorspace), (8, 8, 3), "image")
        check(picture.encoded_image_string.startswith(b"\x89PNG"), "png")
        with tf.Graph().as_default(), v1.Session() as decoder:
            encoded = [v["img/image/1"].image.encoded_image_string for v in (got, want)]
            pixels = decoder.run([tf.image.decode_png(e) for e in encoded])
        check_eq(pixels[0], pixels[1], "pixels")
        with raises(errors.InvalidArgumentError, "Nan in summary histogram for: values"):
            s.run(merged, {x: [np.nan]})


@part
def file_writer(a):
    directory = os.path.join(a.workdir, "client")
    x = v1.placeholder(tf.float32, [])
    scalar = v1.summary.scalar("x", x)
    with v1.Session(a.target) as s, v1.summary.FileWriter(directory, s.graph) as writer:
        for k in range(5):
            writer.add_summary(s.run(scalar, {x: k * 1.5}), k)
    got = [(step, v.simple_value) for step, tag, v in events(directory) if tag == "x"]
    check_eq(got, [(k, k * 1.5) for k in range(5)])


@part
def monitored_session(a):
    directory = os.path.join(a.workdir, "monitored")
    w = v1.get_variable("w", [3], initializer=v1.constant_initializer(1.0), use_resource=a.resource)
    loss = tf.reduce_sum(tf.square(w))
    v1.summary.scalar("loss", loss)
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    stop = v1.train.StopAtStepHook(last_step=20)
    with v1.train.MonitoredTrainingSession(
        master=a.target, checkpoint_dir=directory, save_summaries_steps=1, log_step_count_steps=5, hooks=[stop]
    ) as s:
        while not s.should_stop():
            s.run(train)
    found = events(directory)
    losses = [v.simple_value for _, tag, v in found if tag == "loss"]
    check(len(losses) >= 19, "scalars", len(losses))
    for first, second in zip(losses, losses[1:]):
        check_close(second / first, 0.64, "decay of w^2", rtol=1e-3)
    check(any(tag == "global_step/sec" for _, tag, _ in found), "step counter")
    check_eq(int(tf.train.load_checkpoint(directory).get_tensor("global_step")), 20, "checkpoint of the hook")


@part
def server_side_writer(a):
    directory = os.path.join(a.workdir, "server")
    step = v1.train.get_or_create_global_step()
    writer = tf.summary.create_file_writer(directory)
    with writer.as_default(), tf.summary.record_if(True):
        op = tf.summary.write("server_side", tf.cast(step, tf.float32) * 2.0, step=step)
    count, flush, start = v1.assign_add(step, 1), writer.flush(), writer.init()
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        s.run(start)
        for _ in range(5):
            s.run(op)
            s.run(count)
        s.run(flush)
    got = [(at, float(tf.make_ndarray(v.tensor))) for at, tag, v in events(directory) if tag == "server_side"]
    check_eq(got, [(k, 2.0 * k) for k in range(5)])


main(__doc__)
