"""What TensorFlow's master fuses before it hands a graph to another task: products and convolutions with their bias,
sums, normalisation and activation, and more where it uses oneDNN, as it does by itself on some processors. The master is a
TensorFlow server in this process, the ps runs the graph."""

from common import *
from tensorflow.python.framework import test_util

a = parse(__doc__)
server = tf.distribute.Server(tf.train.ClusterSpec({"ps": a.ps, "worker": a.workers}), job_name="worker", task_index=0)
random = np.random.RandomState(3)
dtype, fused = tf.float32, set()


def values(*shape):
    return np.asarray(random.randn(*shape), dtype.as_numpy_dtype)


def fed(*shape, known=None):
    # not a constant, which would be folded
    return v1.placeholder_with_default(values(*shape), known or shape)


def number(x):
    return tf.constant(x, dtype)


def image():
    return fed(2, 12, 12, 8)


def product():
    return tf.nn.bias_add(tf.matmul(fed(16, 32), fed(32, 24)), fed(24))


def product_and_row():
    return tf.matmul(fed(16, 32), fed(32, 24)) + fed(1, 24)


def product_and_sum():
    return product() + fed(16, 24)


def product_of_unknown():
    return tf.nn.bias_add(tf.matmul(fed(16, 32, known=[None, 32]), fed(32, 24)), fed(24)) + fed(16, 24, known=[None, 24])


def convolution(padding="SAME"):
    return tf.nn.conv2d(image(), fed(3, 3, 8, 8), 1, padding)


def biased():
    return tf.nn.bias_add(convolution(), fed(8))


def biased_by_row():
    return convolution() + fed(1, 1, 1, 8)


def biased_and_sum():
    return image() + biased()


def depthwise():
    return tf.nn.bias_add(tf.nn.depthwise_conv2d(image(), fed(3, 3, 8, 2), [1, 1, 1, 1], "VALID"), fed(16))


def padded():
    padding = [[0, 0], [1, 1], [1, 1], [0, 0]]
    return tf.nn.bias_add(tf.nn.conv2d(tf.pad(image(), padding), fed(3, 3, 8, 8), 2, "VALID"), fed(8))


def batch_norm(x, is_training=False):
    scale, offset, mean, variance = (tf.cast(fed(8), tf.float32) for _ in range(4))
    moments = {} if is_training else dict(mean=mean, variance=tf.abs(variance) + 0.5)
    return v1.nn.fused_batch_norm(x, scale, offset, is_training=is_training, **moments)[0]


def normalised():
    return batch_norm(convolution("VALID"))


def normalised_image():
    return batch_norm(image())


def normalised_by_the_batch():
    return batch_norm(image(), is_training=True)


def normalised_over(axes, *shape):
    x = fed(*shape)
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    scale = tf.math.rsqrt(variance + number(1e-3)) * number(values(shape[-1]))
    return x * scale + (number(values(shape[-1])) - mean * scale)


def layer_norm():
    return normalised_over([2], 2, 4, 16)


def instance_norm():
    return normalised_over([1, 2], 2, 12, 12, 8)


def attention():
    scores = tf.matmul(fed(2, 3, 6, 8), fed(2, 3, 6, 8), transpose_b=True) * number(0.35) + fed(2, 1, 1, 6)
    return tf.matmul(tf.nn.softmax(scores), fed(2, 3, 6, 8))


def hashed():
    numbers = tf.cast(image() * number(100), tf.int64)
    return tf.cast(tf.strings.to_hash_bucket_fast(tf.as_string(numbers), 100), tf.float32)


def trained():
    hidden = tf.nn.relu(batch_norm(biased(), is_training=True))
    logits = tf.matmul(tf.reshape(hidden, [2, -1]), fed(1152, 5)) + fed(5)
    inputs = [op.outputs[0] for op in v1.get_default_graph().get_operations() if op.type == "PlaceholderWithDefault"]
    slopes = [slope for slope in tf.gradients(tf.reduce_sum(tf.tanh(logits)), inputs) if slope is not None]
    return tf.concat([tf.reshape(tf.cast(slope, tf.float32), [-1]) for slope in slopes], 0)


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
    "add": lambda x: x + number(1),
    "swish": lambda x: x * tf.sigmoid(x),
    "swish_leaky_relu": lambda x: tf.nn.leaky_relu(x * tf.sigmoid(x), 0.3),
    "hard_swish": lambda x: x * tf.nn.relu6(x + number(3)) * number(1 / 6),
    "mish": lambda x: x * tf.tanh(tf.math.softplus(x)),
}


def run(first, ending, device, target, rewritten):
    random.seed(11)
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = not rewritten
    with tf.Graph().as_default():
        with v1.device(device):
            out = tf.cast(ENDINGS[ending](first()), tf.float32)
        trace, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
        with v1.Session(target, config=config) as session:
            got = session.run(tf.identity(out), options=options, run_metadata=trace)
    if rewritten:
        for node in (node for graph in trace.partition_graphs for node in graph.node if node.op.startswith("_")):
            steps = b"+".join(node.attr["fused_ops"].list.s).decode()
            fused.update((node.op, "%s %s" % (node.op, steps)))
    return got


def compare(first, ending="nothing", near=1e-4):
    name = "%s and %s of %s" % (first.__name__, ending, dtype.name)
    try:
        got = run(first, ending, "/job:ps/task:0", server.target, True)
    except tf.errors.UnimplementedError as error:
        # its own kernels do not take everything that its optimiser makes
        check(a.reference and "Fusion is not implemented" in str(error), name, error)
        return
    # not rewritten: the reference must not depend on what is tested
    check_close(got, run(first, ending, "", "", False), name, rtol=near, atol=near)


every = (product, biased, normalised, padded, depthwise, product_and_sum, biased_and_sum, normalised_by_the_batch)
for first in every:
    for ending in ENDINGS:
        # the optimiser forgets the slope of [BiasAdd,Add,LeakyRelu]
        if (first, ending) != (biased_and_sum, "leaky_relu"):
            compare(first, ending)
alone = (image, product_and_row, product_of_unknown, biased_by_row, normalised_image, layer_norm, instance_norm)
for first in alone + (attention, hashed, trained):
    for ending in ("nothing", "relu", "sigmoid", "swish", "mish"):
        compare(first, ending)
dtype = tf.float16
for first in every + alone:
    compare(first, "relu", near=0.02)

must = {"_FusedMatMul", "_FusedConv2D", "_TensorToHashBucketFast"}
if test_util.IsMklEnabled():
    must |= {"_FusedDepthwiseConv2dNative", "_FusedBatchNormEx", "_MklSwish", "_MklFusedMish", "_MklLayerNorm"}
    must |= {"_MklFusedInstanceNorm", "_MklFusedBatchMatMulV2 Mul+Add", "_FusedMatMul BiasAdd+Add"}
    must |= {"_FusedConv2D BiasAdd+" + steps for steps in ("Add+Relu", "Mish", "_FusedHardSwish", "_MklSwish+LeakyRelu")}
# TensorFlow's worker rewrites what it was given once more
check(a.reference or must <= fused, "was not fused, so was not tested:", must - fused)
ok()
