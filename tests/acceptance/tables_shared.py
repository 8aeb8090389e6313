"""Lookup tables on parameter servers: vocabularies from files, tables that workers share and change, checkpoints of them."""

from common import *

a = parse(__doc__)
vocabulary = os.path.join(a.workdir, "vocabulary.txt")
with open(vocabulary, "w") as file:
    file.write("emerson\nlake\npalmer\n")


def shared(keys_dtype=tf.string, values_dtype=tf.int64):
    """A graph whose table is on a ps, with all that one does with it."""
    g = tf.Graph()
    with g.as_default():
        with v1.device("/job:ps/task:0"):
            t = tf.lookup.experimental.MutableHashTable(keys_dtype, values_dtype, -1, name="counts")
        k, x = v1.placeholder(keys_dtype, [None]), v1.placeholder(values_dtype, [None])
        with v1.device("/job:worker/task:1"):
            found = t.lookup(k) * 2
        return g, t, k, x, found, t.insert(k, x), t.remove(k), t.size(), t.export()


# a vocabulary on a ps, an embedding on another, the lookup for a worker
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        init = tf.lookup.TextFileInitializer(
            vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        words = tf.lookup.StaticVocabularyTable(init, 2)
        lines = (tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE)
        back = v1.lookup.StaticHashTable(tf.lookup.TextFileInitializer(vocabulary, *lines), "?")
    with v1.device("/job:ps/task:1"):
        e = v1.get_variable("e", initializer=np.arange(10, dtype=np.float32).reshape(5, 2))
    p = v1.placeholder(tf.string, [None])
    with v1.device("/job:worker/task:0"):
        ids = words.lookup(p)
        rows = tf.nn.embedding_lookup(e, ids)
        text = back.lookup(tf.constant([2, 9], tf.int64))
    with v1.Session(a.target) as s:
        with raises(errors.FailedPreconditionError):
            s.run(ids, {p: ["lake"]})
        s.run([v1.global_variables_initializer(), v1.tables_initializer()])
        check_eq(s.run(ids, {p: ["lake", "palmer", "emerson"]}), np.array([1, 2, 0]), "ids")
        check(s.run(ids, {p: ["tarkus"]})[0] in (3, 4), "a bucket for what is in no vocabulary")
        check_eq(s.run(rows, {p: ["palmer"]}), np.array([[4, 5]], np.float32), "rows")
        check_eq(list(s.run(text)), [b"palmer", b"?"], "words")
    # the file is read once: another session has the table that is there
    os.remove(vocabulary)
    with v1.Session(grpc(a.workers[1])) as s:
        check_eq(s.run(ids, {p: ["lake"]}), np.array([1]), "from another master")

# one table, two masters
g1, t1, k1, x1, found1, insert1, remove1, size1, out1 = shared()
g2, t2, k2, x2, found2, insert2, remove2, size2, out2 = shared()
sa, sb = v1.Session(grpc(a.workers[0]), graph=g1), v1.Session(grpc(a.workers[1]), graph=g2)
sa.run(insert1, {k1: ["a", "b"], x1: [1, 2]})
check_eq(sb.run(found2, {k2: ["b", "c", "a"]}), np.array([4, -2, 2]), "found by the other")
sb.run(remove2, {k2: ["a", "never"]})
check_eq(int(sa.run(size1)), 1, "removed by the other")
keys, values = sa.run(out1)
check_eq([keys.tolist(), values.tolist()], [[b"b"], [2]], "exported")


def put(session, insert, k, x, start):
    for i in range(start, start + 50):
        session.run(insert, {k: ["key%d" % i], x: [i]})


threads = [Thread(put, sa, insert1, k1, x1, 0), Thread(put, sb, insert2, k2, x2, 50)]
for t in threads:
    t.value()
check_eq(int(sa.run(size1)), 101, "both put in theirs")
check_eq(int(sb.run(found2, {k2: ["key99"]})[0]), 198, "what the other put in")
sa.close()
sb.close()

# checkpoints, of dense tables too
prefix = os.path.join(a.workdir, "tables")

with tf.Graph().as_default():
    with v1.device("/job:ps/task:1"):
        m = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0, name="m", checkpoint=True)
        d = tf.lookup.experimental.DenseHashTable(
            tf.string, tf.int64, -1, "", "#", initial_num_buckets=4, name="d", checkpoint=True
        )
    v1.train.get_or_create_global_step()
    saver = v1.train.Saver()
    put_all = [
        m.insert(tf.constant([1, 2, 3], tf.int64), [0.5, 1.5, 2.5]),
        d.insert(["x", "y", "z"], tf.constant([7, 8, 9], tf.int64)),
    ]
    other = m.insert(tf.constant([1, 9], tf.int64), [5.0, 5.0])
    gone = d.remove(tf.constant(["x"]))
    look = [m.lookup(tf.constant([1, 9], tf.int64)), d.lookup(["x", "y", "w"]), m.size(), d.size()]
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        s.run(put_all)
        path = saver.save(s, prefix)
        s.run([other, gone])
        r = s.run(look)
        check_eq([x.tolist() for x in r], [[5.0, 5.0], [-1, 8, -1], 4, 2], "changed")
        saver.restore(s, path)
        r = s.run(look)
        check_eq([x.tolist() for x in r], [[0.5, 0.0], [7, 8, -1], 3, 3], "restored")
ok()
