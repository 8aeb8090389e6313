"""Embedding partitioned over ps tasks: fixed_size_partitioner, variable_axis_size,
div and mod strategies, sparse gradients (Adagrad, SGD, Adam), embedding_lookup_sparse."""

from common import *

a = parse(__doc__)
V, D = 50, 4
for strategy in ("div", "mod"):
    for opt_name in ("sgd", "adagrad", "adam"):
        with tf.Graph().as_default():
            cluster = tf.train.ClusterSpec({"ps": a.ps, "worker": a.workers})
            ids = v1.placeholder(tf.int64, [None])
            with v1.device(v1.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)):
                with v1.variable_scope("emb_%s_%s" % (strategy, opt_name), partitioner=v1.fixed_size_partitioner(3)):
                    emb = v1.get_variable("table", [V, D], initializer=v1.zeros_initializer())
                parts = list(emb)
                check_eq(len(parts), 3, "parts")
                check_eq(
                    [p.device for p in parts],
                    ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"],
                    "round robin of parts",
                )
                look = v1.nn.embedding_lookup(emb, ids, partition_strategy=strategy)
                loss = 0.5 * tf.reduce_sum(tf.square(look - 1.0))
                gs = v1.train.get_or_create_global_step()
                lr = 0.1
                opt = {
                    "sgd": lambda: v1.train.GradientDescentOptimizer(lr),
                    "adagrad": lambda: v1.train.AdagradOptimizer(lr, initial_accumulator_value=0.1),
                    "adam": lambda: v1.train.AdamOptimizer(lr),
                }[opt_name]()
                train = opt.minimize(loss, global_step=gs)
            with v1.Session(a.target) as s:
                s.run(v1.global_variables_initializer())
                feed = {ids: [3, 49, 17, 3]}
                check_eq(s.run(look, feed).shape, (4, D), "lookup shape")
                l0 = s.run(loss, feed)
                s.run(train, feed)
                r = s.run(look, feed)
                # one step from zero: gradient is -1 per lookup, row 3 is looked up twice
                wants = {"sgd": (0.2, 0.1), "adagrad": (lr * 2 / np.sqrt(4.1), lr / np.sqrt(1.1)), "adam": (lr, lr)}
                want = wants[opt_name]
                check_close(r[0], np.full(D, want[0]), "%s %s row 3" % (strategy, opt_name), rtol=1e-4)
                check_close(r[1], np.full(D, want[1]), "row 49", rtol=1e-4)
                full = s.run(list(emb))
                check_eq([len(x) for x in full], [17, 17, 16], "part sizes")
                check_eq(int((np.concatenate(full) != 0).any(1).sum()), 3, "only looked up rows changed")
                # rows are where the strategy says
                nz = [np.nonzero((x != 0).any(1))[0].tolist() for x in full]
                wantnz = {"div": [[3], [0], [15]], "mod": [[1], [16], [5]]}[strategy]
                # div: 50/3 -> parts of 17,17,16: 3->p0[3], 17->p1[0], 49->p2[15]; mod: 3->p0[1], 49->p1[16], 17->p2[5]
                check_eq(nz, wantnz, "rows by " + strategy)
                for _ in range(200):
                    s.run(train, feed)
                check(s.run(loss, feed) < 0.05 * l0, "training", opt_name, s.run(loss, feed), l0)
                check_eq(int(s.run(gs)), 201, "global step")
# lookups equal numpy's, for a random table, also in a partitioned save/restore
with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:1")):
        emb = v1.get_variable(
            "rand_table",
            [V, D],
            partitioner=v1.variable_axis_size_partitioner(max_shard_bytes=V * D * 4 // 2),
            initializer=v1.random_normal_initializer(seed=3),
        )
        ids = v1.placeholder(tf.int64, [None, None])
        look = v1.nn.embedding_lookup(emb, ids, partition_strategy="div")
        sp = v1.sparse_placeholder(tf.int64)
        spw = v1.nn.embedding_lookup_sparse(emb, sp, None, combiner="mean", partition_strategy="div")
    saver = v1.train.Saver()
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        tab = np.concatenate(s.run(list(emb)))
        k = np.random.RandomState(1).randint(0, V, (6, 5))
        check_eq(s.run(look, {ids: k}), tab[k], "lookup equals numpy")
        r = s.run(spw, {sp: v1.SparseTensorValue([[0, 0], [0, 1], [2, 0]], [4, 9, 30], [3, 2])})
        check_close(r[0], (tab[4] + tab[9]) / 2, "sparse mean")
        check_close(r[2], tab[30], "sparse single")
        check_close(r[1], np.zeros(D), "empty row")
        path = saver.save(s, os.path.join(a.workdir, "emb"))
        rd = tf.train.load_checkpoint(path)
        check_eq(rd.get_tensor("rand_table"), tab, "partitioned variable is one tensor in the checkpoint")
        s.run(v1.global_variables_initializer())
        saver.restore(s, path)
        check_eq(np.concatenate(s.run(list(emb))), tab, "restore of slices")
ok()
