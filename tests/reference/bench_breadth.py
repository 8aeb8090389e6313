"""One case for each of many ops, so that none is slow unseen: `cargo xtask bench each_`.

Every case is one op at a size where its own work counts, with TensorFlow's speed as the aim. The cases that
issues and figures speak of stand in `bench_cases.py`, and only those are run when no part is named.
"""

import numpy as np
import tensorflow as tf

from bench_cases import Case, case, raw, repeat, tensor

PREFIX = "each_"
REPEATS = 4


def op(name, inputs, make):
    """The case of `make(*inputs)`, where inputs are arrays, or tensors to be drawn as (shape, low, high, dtype)."""

    @case(PREFIX + name)
    def _(folder):
        given = [
            constant(value) if isinstance(value, np.ndarray) else drawn("x%d" % i, *value)
            for i, value in enumerate(inputs)
        ]
        return Case(repeat(REPEATS, lambda: first(make(*given))), units=REPEATS, want={"ratio": 1.0})


def constant(value):
    return tf.constant(value, tf.string if value.dtype == object else None)


def drawn(name, shape, low=0.1, high=0.9, dtype=tf.float32):
    direct = dtype in (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
    value = tensor(name, list(shape), low, high, dtype if direct else tf.float32)
    return value if direct else tf.cast(value, dtype)


def first(made):
    """An op with several outputs is run for the first."""
    return made[0] if isinstance(made, (list, tuple)) else made


def numbers(low, high, dtype=tf.int32, count=1_000_000):
    return ((count,), low, high, dtype)


SQUARE = ((1000, 1000),)
ABOVE_ONE = ((1000, 1000), 1.1, 2.0)
IMAGES = ((4, 128, 128, 3),)
LARGE_IMAGES = ((4, 224, 224, 3),)
MAPS = ((8, 32, 32, 32),)
VOLUMES = ((4, 16, 16, 16, 16),)
MATRICES = ((16, 100, 100),)

# Elementwise.

for name in """Asin Asinh Atan Atanh Acos Ceil Cos Cosh Digamma Erf Erfc Erfinv Exp Expm1 Floor IsFinite IsInf IsNan Lgamma
        Log Log1p Ndtri Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh Tan BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0
        BesselK0 BesselY0 Dawsn Expint FresnelCos FresnelSin Spence""".split():
    op(name, [SQUARE], lambda x, kernel=getattr(raw, name): kernel(x=x))
op("Acosh", [ABOVE_ONE], lambda x: raw.Acosh(x=x))
for name in "Elu Relu6 Selu Softplus Softsign".split():
    op(name, [SQUARE], lambda x, kernel=getattr(raw, name): kernel(features=x))
for name in "FloorDiv FloorMod Pow SquaredDifference Xdivy Xlogy DivNoNan TruncateMod Minimum".split():
    op(name, [ABOVE_ONE, ABOVE_ONE], lambda x, y, kernel=getattr(raw, name): kernel(x=x, y=y))
op("Atan2", [ABOVE_ONE, ABOVE_ONE], lambda x, y: raw.Atan2(y=y, x=x))
op("Zeta", [ABOVE_ONE, ABOVE_ONE], lambda x, y: raw.Zeta(x=x, q=y))
op("Polygamma", [ABOVE_ONE, ABOVE_ONE], lambda x, y: raw.Polygamma(a=x, x=y))
op("Igamma", [ABOVE_ONE, ABOVE_ONE], lambda x, y: raw.Igamma(a=x, x=y))
op("Igammac", [ABOVE_ONE, ABOVE_ONE], lambda x, y: raw.Igammac(a=x, x=y))
op("ReluGrad", [SQUARE, SQUARE], lambda x, y: raw.ReluGrad(gradients=x, features=y))
op("TanhGrad", [SQUARE, SQUARE], lambda x, y: raw.TanhGrad(y=x, dy=y))
for dtype in (tf.bfloat16, tf.float16, tf.float64, tf.int32, tf.complex64):
    of = ((1000, 1000), 1, 9, dtype)
    op("AddV2_" + dtype.name, [of, of], lambda x, y: raw.AddV2(x=x, y=y))
    op("Mul_" + dtype.name, [of, of], lambda x, y: raw.Mul(x=x, y=y))
    op("Sum_" + dtype.name, [of], lambda x: raw.Sum(input=x, axis=[1]))
for dtype in (tf.bfloat16, tf.bool, tf.complex64, tf.float16, tf.float64, tf.int64):
    op("Cast_float_" + dtype.name, [SQUARE], lambda x, to=dtype: raw.Cast(x=x, DstT=to))
op("FloorDiv_int32", [numbers(1, 9), numbers(1, 9)], lambda x, y: raw.FloorDiv(x=x, y=y))
op("Equal_int64", [numbers(0, 9, tf.int64)] * 2, lambda x, y: raw.Equal(x=x, y=y))
op("SelectV2", [SQUARE, SQUARE], lambda x, y: raw.SelectV2(condition=x > 0.5, t=x, e=y))
op("ClipByValue", [SQUARE], lambda x: raw.ClipByValue(t=x, clip_value_min=0.2, clip_value_max=0.8))
op("AddN", [SQUARE, SQUARE, SQUARE], lambda *x: raw.AddN(inputs=x))
op("ComplexAbs", [((1000, 1000), 0, 1, tf.complex64)], lambda x: raw.ComplexAbs(x=x))
op("Angle", [((1000, 1000), 0, 1, tf.complex64)], lambda x: raw.Angle(input=x))
op("FakeQuantWithMinMaxArgs", [SQUARE], lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x))
op("QuantizeV2", [SQUARE], lambda x: raw.QuantizeV2(input=x, min_range=0.0, max_range=1.0, T=tf.quint8))
op("Bucketize", [SQUARE], lambda x: raw.Bucketize(input=x, boundaries=[0.1 * i for i in range(10)]))

# Reductions, scans, counts, order.

op("Cumsum_rows", [SQUARE], lambda x: raw.Cumsum(x=x, axis=1))
op("Cumsum_columns", [SQUARE], lambda x: raw.Cumsum(x=x, axis=0))
op("CumulativeLogsumexp", [SQUARE], lambda x: raw.CumulativeLogsumexp(x=x, axis=1))
op("Prod", [SQUARE], lambda x: raw.Prod(input=x, axis=[0, 1]))
op("Min_middle", [((100, 100, 100),)], lambda x: raw.Min(input=x, axis=[1]))
op("ArgMax_rows", [SQUARE], lambda x: raw.ArgMax(input=x, dimension=1))
op("ArgMax_columns", [SQUARE], lambda x: raw.ArgMax(input=x, dimension=0))
op("TopKV2_5", [SQUARE], lambda x: raw.TopKV2(input=x, k=5))
op("TopKV2_100", [SQUARE], lambda x: raw.TopKV2(input=x, k=100))
op("NthElement", [SQUARE], lambda x: raw.NthElement(input=x, n=10))
op("InTopKV2", [SQUARE, np.zeros(1000, np.int32)], lambda x, y: raw.InTopKV2(predictions=x, targets=y, k=5))
op("Where", [((1000, 1000), -1, 1)], lambda x: raw.Where(condition=x > 0))
op("Unique_few", [numbers(0, 1000)], lambda x: raw.Unique(x=x))
op("Unique_many", [numbers(0, 1_000_000, tf.int64)], lambda x: raw.Unique(x=x))
op("ListDiff", [numbers(0, 100_000, count=100_000), np.arange(1000, dtype=np.int32)], lambda x, y: raw.ListDiff(x=x, y=y))
op("Bincount", [numbers(0, 1000)], lambda x: raw.Bincount(arr=x, size=1000, weights=np.zeros(0, np.float32)))
op("DenseBincount", [numbers(0, 1000)], lambda x: raw.DenseBincount(input=x, size=1000, weights=np.zeros(0, np.float32)))
op("HistogramFixedWidth", [SQUARE], lambda x: raw.HistogramFixedWidth(values=x, value_range=[0.0, 1.0], nbins=100))
LEVELS = np.linspace(0, 1, 1000, dtype=np.float32)[None]
op("LowerBound", [LEVELS, ((1, 100_000),)], lambda x, y: raw.LowerBound(sorted_inputs=x, values=y))
GROUPS = np.repeat(np.arange(1000, dtype=np.int32), 100)
POINTS, NAMED = ((100_000, 16),), numbers(0, 1000, count=100_000)
op("SegmentSum", [POINTS, GROUPS], lambda x, y: raw.SegmentSum(data=x, segment_ids=y))
op("UnsortedSegmentSum", [POINTS, NAMED], lambda x, y: raw.UnsortedSegmentSum(data=x, segment_ids=y, num_segments=1000))
op("UnsortedSegmentMax", [POINTS, NAMED], lambda x, y: raw.UnsortedSegmentMax(data=x, segment_ids=y, num_segments=1000))
op("SparseSegmentSum", [((1000, 64),), NAMED, GROUPS], lambda x, y, z: raw.SparseSegmentSum(data=x, indices=y, segment_ids=z))

# Movement.

for axis in (0, 1):
    op("ReverseV2_%d" % axis, [SQUARE], lambda x, axis=axis: raw.ReverseV2(tensor=x, axis=[axis]))
op("Roll", [SQUARE], lambda x: raw.Roll(input=x, shift=[17], axis=[1]))
op("Pad", [SQUARE], lambda x: raw.Pad(input=x, paddings=[[1, 1], [1, 1]]))
op("MirrorPad", [SQUARE], lambda x: raw.MirrorPad(input=x, paddings=[[1, 1], [1, 1]], mode="REFLECT"))
op("Tile", [SQUARE], lambda x: raw.Tile(input=x, multiples=[2, 2]))
op("Transpose_201", [((100, 100, 100),)], lambda x: raw.Transpose(x=x, perm=[2, 0, 1]))
op("Transpose_uint8", [((1000, 1000), 0, 9, tf.uint8)], lambda x: raw.Transpose(x=x, perm=[1, 0]))
op("StridedSlice", [SQUARE], lambda x: raw.StridedSlice(input=x, begin=[0, 0], end=[1000, 1000], strides=[1, 2]))
op("Slice", [SQUARE], lambda x: raw.Slice(input=x, begin=[10, 10], size=[900, 900]))
op("Split", [SQUARE], lambda x: raw.Split(axis=1, value=x, num_split=4))
op("Unpack", [SQUARE], lambda x: raw.Unpack(value=x, num=1000))
op("Pack", [SQUARE, SQUARE], lambda x, y: raw.Pack(values=[x, y], axis=1))
op("ConcatV2", [SQUARE, SQUARE], lambda x, y: raw.ConcatV2(values=[x, y], axis=1))
op("OneHot", [numbers(0, 100, count=10_000)], lambda x: raw.OneHot(indices=x, depth=100, on_value=1.0, off_value=0.0))
op("DepthToSpace", [((8, 64, 64, 32),)], lambda x: raw.DepthToSpace(input=x, block_size=2))
op("SpaceToBatchND", [((8, 64, 64, 32),)], lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]))
op("MatrixBandPart", [SQUARE], lambda x: raw.MatrixBandPart(input=x, num_lower=np.int64(2), num_upper=np.int64(2)))
op("GatherV2_scalars", [numbers(0, 1, tf.float32), numbers(0, 1_000_000)], lambda x, y: raw.GatherV2(params=x, indices=y, axis=0))
op("GatherNd", [((1000, 64),), ((100_000, 1), 0, 1000, tf.int32)], lambda x, y: raw.GatherNd(params=x, indices=y))
op("ScatterNd", [((100_000, 1), 0, 1000, tf.int32), POINTS], lambda x, y: raw.ScatterNd(indices=x, updates=y, shape=[1000, 16]))
op("DynamicPartition", [SQUARE, np.arange(1000, dtype=np.int32) % 4], lambda x, y: raw.DynamicPartition(data=x, partitions=y, num_partitions=4))
op("Range", [], lambda: raw.Range(start=0, limit=1_000_000, delta=1))
op("LinSpace", [], lambda: raw.LinSpace(start=0.0, stop=1.0, num=1_000_000))

# Networks and images.

op("LRN", [((8, 32, 32, 64),)], lambda x: raw.LRN(input=x))
op("LogSoftmax", [SQUARE], lambda x: raw.LogSoftmax(logits=x))
ONES = np.ones(64, np.float32)
op("FusedBatchNormV3", [((16, 32, 32, 64),)], lambda x: raw.FusedBatchNormV3(x=x, scale=ONES, offset=ONES, mean=ONES[:0], variance=ONES[:0]))
CUBE = ((3, 3, 3, 16, 16),)
STEP = [1] * 5
op("Conv3D", [VOLUMES, CUBE], lambda x, y: raw.Conv3D(input=x, filter=y, strides=STEP, padding="SAME"))
op("Conv3DBackpropInputV2", [VOLUMES, CUBE], lambda x, y: raw.Conv3DBackpropInputV2(
    input_sizes=[4, 16, 16, 16, 16], filter=y, out_backprop=x, strides=STEP, padding="SAME"))
op("Conv3DBackpropFilterV2", [VOLUMES, VOLUMES], lambda x, y: raw.Conv3DBackpropFilterV2(
    input=x, filter_sizes=[3, 3, 3, 16, 16], out_backprop=y, strides=STEP, padding="SAME"))
for name in "MaxPool3D AvgPool3D".split():
    op(name, [VOLUMES], lambda x, kernel=getattr(raw, name): kernel(
        input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"))
op("DepthwiseConv2dNative", [MAPS, ((3, 3, 32, 1),)], lambda x, y: raw.DepthwiseConv2dNative(
    input=x, filter=y, strides=[1] * 4, padding="SAME"))
op("Dilation2D", [MAPS, ((3, 3, 32),)], lambda x, y: raw.Dilation2D(
    input=x, filter=y, strides=[1] * 4, rates=[1] * 4, padding="SAME"))
op("BlockLSTMV2", [((20, 32, 128),), ((256, 512), -0.1, 0.1), np.zeros((32, 128), np.float32)], lambda x, w, h: raw.BlockLSTMV2(
    seq_len_max=np.int64(20), x=x, cs_prev=h, h_prev=h, w=w, wci=h[0], wcf=h[0], wco=h[0], b=np.zeros(512, np.float32)))
for name in "ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea".split():
    op(name, [IMAGES], lambda x, kernel=getattr(raw, name): kernel(images=x, size=[224, 224]))
op("RGBToHSV", [LARGE_IMAGES], lambda x: raw.RGBToHSV(images=x))
op("AdjustContrastv2", [LARGE_IMAGES], lambda x: raw.AdjustContrastv2(images=x, contrast_factor=0.5))
op("AdjustHue", [LARGE_IMAGES], lambda x: raw.AdjustHue(images=x, delta=0.1))
op("AdjustSaturation", [LARGE_IMAGES], lambda x: raw.AdjustSaturation(images=x, scale=0.5))
TURN = np.array([[1, 0.1, 0, 0.1, 1, 0, 0, 0]], np.float32)
op("ImageProjectiveTransformV3", [IMAGES, TURN], lambda x, y: raw.ImageProjectiveTransformV3(
    images=x, transforms=y, output_shape=[128, 128], fill_value=0.0, interpolation="BILINEAR", fill_mode="REFLECT"))

# Linear algebra, Fourier, random numbers.

for name in "MatrixInverse MatrixDeterminant Lu Qr".split():
    op(name, [MATRICES], lambda x, kernel=getattr(raw, name): kernel(input=x + 9 * np.eye(100, dtype=np.float32)))
op("Cholesky", [MATRICES], lambda x: raw.Cholesky(input=x + 99 * np.eye(100, dtype=np.float32)))
op("MatrixSolve", [MATRICES, MATRICES], lambda x, y: raw.MatrixSolve(matrix=x + 9 * np.eye(100, dtype=np.float32), rhs=y))
op("MatrixTriangularSolve", [MATRICES, MATRICES], lambda x, y: raw.MatrixTriangularSolve(matrix=x + 9 * np.eye(100, dtype=np.float32), rhs=y))
op("Svd", [((4, 64, 64),)], lambda x: raw.Svd(input=x))
op("SelfAdjointEigV2", [((4, 64, 64),)], lambda x: raw.SelfAdjointEigV2(input=x))
op("BatchMatMulV2", [((64, 64, 64),)] * 2, lambda x, y: raw.BatchMatMulV2(x=x, y=y))
for dtype in (tf.bfloat16, tf.complex64, tf.float64, tf.int32):
    op("MatMul_" + dtype.name, [((256, 256), 0, 9, dtype)] * 2, lambda x, y: raw.MatMul(a=x, b=y))
for length in (64, 256, 1000, 1024, 4096):
    of = (100_000 // length, length)
    op("FFT_%d" % length, [(of, 0, 1, tf.complex64)], lambda x: raw.FFT(input=x))
    op("RFFT_%d" % length, [(of,)], lambda x, length=length: raw.RFFT(input=x, fft_length=[length]))
op("FFT2D", [((4, 128, 128), 0, 1, tf.complex64)], lambda x: raw.FFT2D(input=x))
op("RandomUniform", [], lambda: raw.RandomUniform(shape=[1000, 1000], dtype=tf.float32, seed=1))
op("RandomStandardNormal", [], lambda: raw.RandomStandardNormal(shape=[1000, 1000], dtype=tf.float32, seed=1))
op("TruncatedNormal", [], lambda: raw.TruncatedNormal(shape=[1000, 1000], dtype=tf.float32, seed=1))
op("RandomGamma", [], lambda: raw.RandomGamma(shape=[100_000], alpha=[2.0], seed=1))
op("RandomPoissonV2", [], lambda: raw.RandomPoissonV2(shape=[100_000], rate=[5.0], seed=1))
op("RandomShuffle", [((100_000, 4),)], lambda x: raw.RandomShuffle(value=x, seed=1))
op("Multinomial", [((100, 100),)], lambda x: raw.Multinomial(logits=x, num_samples=1000, seed=1))

# Strings and records.

TEXTS = np.array([b"string number %d" % i for i in range(100_000)], object)
WORDS = np.arange(0, 100_001, 10, dtype=np.int64)
op("StringUpper", [TEXTS], lambda x: raw.StringUpper(input=x))
op("StringStrip", [TEXTS], lambda x: raw.StringStrip(input=x))
op("StringJoin", [TEXTS, TEXTS], lambda x, y: raw.StringJoin(inputs=[x, y], separator="-"))
op("StringSplitV2", [TEXTS], lambda x: raw.StringSplitV2(input=x, sep=" "))
op("StringToHashBucketFast", [TEXTS], lambda x: raw.StringToHashBucketFast(input=x, num_buckets=1000))
op("StringNGrams", [TEXTS, WORDS], lambda x, y: raw.StringNGrams(
    data=x, data_splits=y, separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False))
op("Substr", [TEXTS], lambda x: raw.Substr(input=x, pos=2, len=5))
op("ReduceJoin", [TEXTS], lambda x: raw.ReduceJoin(inputs=x, reduction_indices=[0]))
op("StaticRegexReplace", [TEXTS], lambda x: raw.StaticRegexReplace(input=x, pattern="[0-9]+", rewrite="N"))
op("EncodeBase64", [TEXTS], lambda x: raw.EncodeBase64(input=x))
op("UnicodeDecode", [TEXTS], lambda x: raw.UnicodeDecode(input=x, input_encoding="UTF-8"))
op("GatherV2_strings", [TEXTS, numbers(0, 100_000, count=100_000)], lambda x, y: raw.GatherV2(params=x, indices=y, axis=0))
op("ConcatV2_strings", [TEXTS, TEXTS], lambda x, y: raw.ConcatV2(values=[x, y], axis=0))
op("Unique_strings", [TEXTS], lambda x: raw.Unique(x=x))
op("AsString", [((100_000,),)], lambda x: raw.AsString(input=x))
op("StringToNumber", [np.array([b"%d.5" % i for i in range(100_000)], object)], lambda x: raw.StringToNumber(string_tensor=x))
LINES = np.array([b"%d,%d.5,abc" % (i, i) for i in range(20_000)], object)
op("DecodeCSV", [LINES], lambda x: raw.DecodeCSV(records=x, record_defaults=[[0.0], [0.0], [""]]))


def example(i):
    features = tf.train.Features(feature={
        "a": tf.train.Feature(float_list=tf.train.FloatList(value=[float(i)] * 20)),
        "b": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        "c": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x%d" % i])),
    })
    return tf.train.Example(features=features).SerializeToString()


EXAMPLES = np.array([example(i) for i in range(5000)], object)
op("ParseExampleV2", [EXAMPLES], lambda x: raw.ParseExampleV2(
    serialized=x, names=[], sparse_keys=["c"], dense_keys=["a", "b"], ragged_keys=[],
    dense_defaults=[np.zeros(0, np.float32), np.zeros(0, np.int64)], num_sparse=1, sparse_types=[tf.string],
    ragged_value_types=[], ragged_split_types=[], dense_shapes=[[20], []]).dense_values)

# Sparse tensors of 100,000 values in 10,000 rows.

PLACES = np.unique(np.random.RandomState(1).randint(0, 10_000_000, 100_000))
INDICES = np.stack([PLACES // 1000, PLACES % 1000], 1).astype(np.int64)
VALUES = np.ones(len(PLACES), np.float32)
SHAPE = np.array([10_000, 1000], np.int64)
SPARSE = [INDICES, VALUES, SHAPE]
op("SparseTensorDenseMatMul", SPARSE + [((1000, 64),)], lambda i, v, s, b: raw.SparseTensorDenseMatMul(
    a_indices=i, a_values=v, a_shape=s, b=b))
op("SparseToDense", SPARSE, lambda i, v, s: raw.SparseToDense(
    sparse_indices=i, output_shape=s, sparse_values=v, default_value=0.0))
op("SparseReorder", SPARSE, lambda i, v, s: raw.SparseReorder(input_indices=i, input_values=v, input_shape=s))
op("SparseReorder_turned", [INDICES[::-1].copy(), VALUES, SHAPE], lambda i, v, s: raw.SparseReorder(
    input_indices=i, input_values=v, input_shape=s))
op("SparseReduceSum", SPARSE, lambda i, v, s: raw.SparseReduceSum(
    input_indices=i, input_values=v, input_shape=s, reduction_axes=[1]))
op("SparseSoftmax", SPARSE, lambda i, v, s: raw.SparseSoftmax(sp_indices=i, sp_values=v, sp_shape=s))
op("SparseAdd", SPARSE, lambda i, v, s: raw.SparseAdd(
    a_indices=i, a_values=v, a_shape=s, b_indices=i, b_values=v, b_shape=s, thresh=0.0))
op("SparseFillEmptyRows", SPARSE, lambda i, v, s: raw.SparseFillEmptyRows(
    indices=i, values=v, dense_shape=s, default_value=0.0))
op("SparseConcat", SPARSE, lambda i, v, s: raw.SparseConcat(
    indices=[i, i], values=[v, v], shapes=[s, s], concat_dim=0))
