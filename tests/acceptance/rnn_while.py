"""RNN (GRU cell) by tf.while_loop with TensorArrays; training by BPTT over ps."""

from common import *

a = parse(__doc__)
T, B, H = 12, 32, 24


def batch(i):
    r = np.random.RandomState(i)
    x = r.randint(0, 2, (B, T)).astype(np.float32)
    # remember 3 steps back: 0, 1 or 2
    label = 2 * x[:, -3] + x[:, -1] - x[:, -3] * x[:, -1]
    return x[..., None], label.astype(np.int64)


with tf.Graph().as_default():
    with v1.device(v1.train.replica_device_setter(ps_tasks=len(a.ps), worker_device="/job:worker/task:0")):
        x = v1.placeholder(tf.float32, [B, None, 1])
        y = v1.placeholder(tf.int64, [B])
        ini = v1.random_normal_initializer(stddev=0.3, seed=1)
        wz = v1.get_variable("wz", [1 + H, 2 * H], initializer=ini)
        wc = v1.get_variable("wc", [1 + H, H], initializer=ini)
        bz = v1.get_variable("bz", [2 * H], initializer=v1.ones_initializer())
        bc = v1.get_variable("bc", [H], initializer=v1.zeros_initializer())
        wo = v1.get_variable("wo", [H, 3], initializer=ini)
        n = tf.shape(x)[1]
        xs = tf.TensorArray(tf.float32, size=n).unstack(tf.transpose(x, [1, 0, 2]))
        outs = tf.TensorArray(tf.float32, size=n)

        def step(t, h, o):
            xt = xs.read(t)
            zr = tf.sigmoid(tf.matmul(tf.concat([xt, h], 1), wz) + bz)
            z, r = tf.split(zr, 2, 1)
            c = tf.tanh(tf.matmul(tf.concat([xt, r * h], 1), wc) + bc)
            h = z * h + (1 - z) * c
            h.set_shape([B, H])
            return t + 1, h, o.write(t, h)

        _, h, outs = tf.while_loop(lambda t, h, o: t < n, step, [0, tf.zeros([B, H]), outs], parallel_iterations=4)
        seq = outs.stack()
        logits = tf.matmul(h, wo)
        loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        opt = v1.train.AdamOptimizer(0.01)
        gv = opt.compute_gradients(loss)
        gr, norm = tf.clip_by_global_norm([g for g, _ in gv], 5.0)
        gs = v1.train.get_or_create_global_step()
        train = opt.apply_gradients(zip(gr, [v for _, v in gv]), global_step=gs)
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        bx, by = batch(0)
        f = {x: bx, y: by}
        WZ, WC, BZ, BC = s.run([wz, wc, bz, bc])
        hh = np.zeros((B, H))
        sg = lambda v: 1 / (1 + np.exp(-v))
        for t in range(T):
            zr = sg(np.concatenate([bx[:, t], hh], 1) @ WZ + BZ)
            z, r = zr[:, :H], zr[:, H:]
            hh = z * hh + (1 - z) * np.tanh(np.concatenate([bx[:, t], r * hh], 1) @ WC + BC)
        hv, sv = s.run([h, seq], f)
        check_close(hv, hh, "forward equals numpy", rtol=1e-4, atol=1e-5)
        check_eq(sv.shape, (T, B, H), "stacked")
        check_eq(sv[-1], hv, "last of the stack")
        check_eq(s.run(h, {x: bx[:, :3], y: by}).shape, (B, H), "dynamic length")
        ls = [float(s.run([train, loss], dict(zip([x, y], batch(i))))[1]) for i in range(250)]
        print("loss", ls[0], "->", np.mean(ls[-20:]))
        check(np.mean(ls[-20:]) < 0.25 * np.mean(ls[:5]), "loss", ls[0], ls[-1])
ok()
