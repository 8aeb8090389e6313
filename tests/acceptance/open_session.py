"""Open a session on any server of the cluster and use it as a local one."""

from common import *

a = parse(__doc__)
for addr in a.ps + a.workers:
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        b = x + 2
        c = x * 3
        with v1.Session(grpc(addr)) as sess:
            check_eq(c.eval(), 3.0, "c on " + addr)
            check_eq(sess.run([b, c]), [3.0, 3.0], "b, c")
            check_eq(sess.run({"b": b, "n": (c, [b])}), {"b": 3.0, "n": (3.0, [3.0])}, "nested")
            # feed a non-placeholder; extend the graph after the first run
            check_eq(sess.run(b, {x: 5.0}), 7.0, "feed intermediate")
            e = b * c + 1
            check_eq(sess.run(e), 10.0, "extended graph")
            p = v1.placeholder(tf.int32, [None, 2])
            s = tf.reduce_sum(p, axis=0)
            check_eq(sess.run(s, {p: [[1, 2], [3, 4], [5, 6]]}), np.array([9, 12], np.int32), "feed")
            with raises(tf.errors.InvalidArgumentError, "must feed a value"):
                sess.run(s)
            f = sess.make_callable(s, feed_list=[p])
            check_eq(f(np.array([[1, 1]], np.int32)), np.array([1, 1], np.int32), "make_callable")
            # run options and metadata
            md = v1.RunMetadata()
            sess.run(e, options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), run_metadata=md)
            check(len(md.step_stats.dev_stats) >= 1, "no step_stats")
ok()
