"""All v1 optimizers, dense and sparse gradients, compared with TensorFlow's local
session in this process (same graph, same steps)."""

from common import *

a = parse(__doc__)
T = v1.train
OPT = {
    "sgd": lambda: T.GradientDescentOptimizer(0.1),
    "momentum": lambda: T.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: T.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: T.AdagradOptimizer(0.1),
    "adadelta": lambda: T.AdadeltaOptimizer(1.0),
    "adam": lambda: T.AdamOptimizer(0.1),
    "rmsprop": lambda: T.RMSPropOptimizer(0.1),
    "rmsprop_c": lambda: T.RMSPropOptimizer(0.1, centered=True, momentum=0.5),
    "ftrl": lambda: T.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ftrl_sh": lambda: T.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_sgd": lambda: T.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_adagrad": lambda: T.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "adagrad_da": None,
}


def build(name, res, dev):
    g = tf.Graph()
    with g.as_default(), v1.device(dev):
        r = np.random.RandomState(0)
        w = v1.get_variable("w_%s%d" % (name, res), initializer=r.randn(6, 3).astype(np.float32), use_resource=res)
        e = v1.get_variable("e_%s%d" % (name, res), initializer=r.randn(9, 6).astype(np.float32), use_resource=res)
        gs = v1.get_variable("gs_%s%d" % (name, res), initializer=np.int64(0), trainable=False, use_resource=res)
        h = tf.matmul(tf.nn.embedding_lookup(e, [1, 4, 4, 8]), w)
        loss = tf.reduce_mean(tf.square(h - tf.ones_like(h)))
        opt = OPT[name]() if OPT[name] else T.AdagradDAOptimizer(0.1, gs, l1_regularization_strength=0.001)
        train = opt.minimize(loss, global_step=gs)
        return g, v1.global_variables_initializer(), train, [w, e, loss]


bad = []
for name in OPT:
    for res in (False, True):
        out = []
        for target, dev in ((a.target, "/job:ps/task:0"), ("", "")):
            g, init, train, f = build(name, res, dev)
            with v1.Session(target, graph=g) as s:
                s.run(init)
                for _ in range(5):
                    s.run(train)
                out.append(s.run(f))
        for x, y, n in zip(out[0], out[1], ("w", "e", "loss")):
            if not np.allclose(x, y, rtol=1e-4, atol=1e-5):
                bad.append((name, res, n, float(np.abs(x - y).max())))
check(not bad, bad)
ok()
