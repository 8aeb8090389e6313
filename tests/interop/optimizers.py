"""All optimizers of tf.compat.v1.train, dense and sparse gradients, against a local TensorFlow session."""
from common import *

T = v1.train
OPTIMIZERS = {
    "sgd": lambda step: T.GradientDescentOptimizer(0.1),
    "momentum": lambda step: T.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda step: T.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda step: T.AdagradOptimizer(0.1),
    "adadelta": lambda step: T.AdadeltaOptimizer(1.0),
    "adam": lambda step: T.AdamOptimizer(0.1),
    "rmsprop": lambda step: T.RMSPropOptimizer(0.1),
    "rmsprop_centered": lambda step: T.RMSPropOptimizer(0.1, centered=True, momentum=0.5),
    "ftrl": lambda step: T.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ftrl_shrinkage": lambda step: T.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_sgd": lambda step: T.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_adagrad": lambda step: T.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "adagrad_da": lambda step: T.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.001),
}


def build(name, resource):
    random = np.random.RandomState(0)
    variable = lambda n, value, **k: v1.get_variable(n + "_" + name, initializer=value, use_resource=resource, **k)
    w = variable("w", random.randn(6, 3).astype(np.float32))
    e = variable("e", random.randn(9, 6).astype(np.float32))
    step = variable("step", np.int64(0), trainable=False)
    h = tf.matmul(tf.nn.embedding_lookup(e, [1, 4, 4, 8]), w)
    loss = tf.reduce_mean(tf.square(h - tf.ones_like(h)))
    train = OPTIMIZERS[name](step).minimize(loss, global_step=step)
    return v1.global_variables_initializer(), train, {"w": w, "e": e, "step": step, "loss": loss}


def trained(target, name, resource):
    with tf.Graph().as_default():
        init, train, values = build(name, resource)
        with v1.Session(target) as s:
            s.run(init)
            for _ in range(5):
                s.run(train)
            return s.run(values)


def compare(name):
    def run(a):
        got, want = trained(a.target, name, a.resource), trained("", name, a.resource)
        for key in want:
            check_close(got[key], want[key], "%s of %s" % (key, name), rtol=1e-4, atol=1e-5)

    run.__name__ = name
    return run


for name in OPTIMIZERS:
    part(compare(name))


@part
def moving_average(a):
    v = v1.get_variable("averaged", initializer=1.0)
    ema = T.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([v1.assign(v, 11.0)]):
        update = ema.apply([v])
    with v1.Session(a.target) as s:
        s.run(v1.global_variables_initializer())
        s.run(update)
        check_close(s.run(ema.average(v)), 1.0 * 0.9 + 11.0 * 0.1)


@part
def learning_rates_and_clipping(a):
    step = v1.placeholder(tf.int64, [])
    fetches = [
        T.exponential_decay(0.1, step, 10, 0.5),
        T.exponential_decay(0.1, step, 10, 0.5, staircase=True),
        T.piecewise_constant(step, [np.int64(5), np.int64(20)], [1.0, 0.5, 0.1]),
        T.polynomial_decay(0.1, step, 100, 0.01),
        T.cosine_decay(0.1, step, 100),
        tf.linalg.global_norm([tf.constant([3.0]), tf.constant([4.0])]),
        tf.clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 1.0)[0],
    ]
    with v1.Session() as local, v1.Session(a.target) as s:
        for k in (0, 7, 25, 99):
            for got, want in zip(s.run(fetches, {step: k}), local.run(fetches, {step: k})):
                check_close(got, want, "step %d" % k)


main(__doc__)
