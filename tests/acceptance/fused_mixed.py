"""What TensorFlow's master fuses before it hands a graph to another task: products and convolutions with their bias,
normalisation and activation. The master is a TensorFlow server in this process, the ps runs the graph."""

from common import *

a = parse(__doc__)
server = tf.distribute.Server(tf.train.ClusterSpec({"ps": a.ps, "worker": a.workers}), job_name="worker", task_index=0)
random = np.random.RandomState(3)
rows, images = random.randn(16, 32).astype("f"), random.randn(2, 12, 12, 8).astype("f")
fused = set()


def value(array):
    # not a constant, which would be folded
    return v1.placeholder_with_default(array, array.shape)


def weights(*shape):
    return value(random.randn(*shape).astype("f"))


def product():
    return tf.nn.bias_add(tf.matmul(value(rows), weights(32, 24)), weights(24))


def convolution(padding="SAME"):
    return tf.nn.conv2d(value(images), weights(3, 3, 8, 16), 1, padding)


def biased():
    return tf.nn.bias_add(convolution(), weights(16))


def normalised():
    variance = value(random.rand(16).astype("f") + 0.5)
    moments = dict(mean=weights(16), variance=variance, is_training=False)
    return v1.nn.fused_batch_norm(convolution("VALID"), weights(16), weights(16), **moments)[0]


def padded():
    image = tf.pad(value(images), [[0, 0], [1, 1], [1, 1], [0, 0]])
    return tf.nn.bias_add(tf.nn.conv2d(image, weights(3, 3, 8, 8), 2, "VALID"), weights(8))


ENDINGS = {
    "nothing": lambda x: x,
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.3),
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "gelu": lambda x: tf.nn.gelu(x, approximate=False),
    "gelu_approximate": lambda x: tf.nn.gelu(x, approximate=True),
    "add": lambda x: x + 1.0,
}


def run(first, ending, device, target):
    random.seed(11)
    with tf.Graph().as_default():
        with v1.device(device):
            out = ENDINGS[ending](first())
        trace, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
        with v1.Session(target) as session:
            got = session.run(tf.identity(out), options=options, run_metadata=trace)
    fused.update(node.op for graph in trace.partition_graphs for node in graph.node if node.op.startswith("_Fused"))
    return got


for first in (product, biased, normalised, padded):
    for ending in ENDINGS:
        got = run(first, ending, "/job:ps/task:0", server.target)
        want = run(first, ending, "", "")
        check_close(got, want, "%s and %s" % (first.__name__, ending), rtol=1e-4, atol=1e-4)
check({"_FusedMatMul", "_FusedConv2D"} <= fused, "nothing was fused, so nothing was tested:", fused)
ok()
