//! `MaxPool`, `MaxPoolV2`: the largest element of each window over NHWC images.
//!
//! TensorFlow: MaxPool(input: T) -> output: T, with ksize, strides, padding; MaxPoolV2 takes ksize and strides as further
//! inputs. Padding takes no part in a maximum.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::pool2d::{PoolElement, max_pool};
use tensorfleet_status::{Code, Result, internal};
use tensorfleet_tensor::Element;

use super::conv_attrs::with_attrs;
use super::conv_shapes;
use super::pool::Pooling;
use crate::by_real;
use crate::math::calculus::first_of;
use crate::types::REAL_NUMBERS;

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const DEEP: (&str, &str) = ("ksize", "[1, 1, 1, 2]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

const MAX: OpDef = OpDef {
    outputs: &["output: T"],
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "MaxPool",
        inputs: &["input: T"],
        attrs: &[
            "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0])],
                &[x(&[1, 1, 2, 1], &[5.0, 7.0])],
            ),
            ex_ref(
                "same, overlapping",
                &[("ksize", "[1, 3, 3, 1]"), STRIDE, SAME],
                &[ramp(&[2, 5, 4, 3], 60.0, -0.5)],
            ),
            ex_attrs(
                "over channels",
                &[DEEP, ("strides", "[1, 1, 1, 2]"), VALID],
                // Gradients stop TensorFlow here, and integers have none.
                &[i32s(&[1, 1, 2, 4], &[1, 5, 2, 3, 4, 0, 7, 6])],
                &[i32s(&[1, 1, 2, 2], &[5, 3, 4, 7])],
            ),
            ex_err(
                "over overlapping channels",
                &[DEEP, ("strides", "[1, 1, 1, 1]"), VALID],
                &[f32s(&[1, 1, 2, 4], &[0.0])],
                Code::Unimplemented,
                "Depthwise max pooling requires the depth window to equal the depth stride",
            ),
            ex_err(
                "over the batch",
                &[("ksize", "[2, 1, 1, 1]"), STRIDE, VALID],
                &[f32s(&[1, 1, 2, 4], &[0.0])],
                Code::Unimplemented,
                "Pooling is not yet supported on the batch dimension.",
            ),
            ex_err(
                "no image",
                &[TWO, STRIDE, VALID],
                &[f32s(&[2, 2], &[0.0])],
                Code::InvalidArgument,
                "4-dimensional",
            ),
        ],
        ..MAX
    },
    OpDef {
        name: "MaxPoolV2",
        inputs: &["input: T", "ksize: int32", "strides: int32"],
        attrs: &[
            "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        gradient: Gradient::Rule(gradient_v2),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
        examples: &[
            ex_attrs(
                "two by two",
                &[VALID],
                &[
                    x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]),
                    i32s(&[4], &[1, 2, 2, 1]),
                    i32s(&[4], &[1, 2, 2, 1]),
                ],
                &[x(&[1, 1, 2, 1], &[5.0, 7.0])],
            ),
            ex_err(
                "ksize",
                &[VALID],
                &[
                    f32s(&[1, 2, 4, 1], &[1.0]),
                    i32s(&[3], &[1, 2, 2]),
                    i32s(&[4], &[1, 2, 2, 1]),
                ],
                Code::InvalidArgument,
                "Sliding window ksize field must specify 4 dimensions",
            ),
        ],
        ..MAX
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.input(0), g.output(0), g.grad(0)?];
    let names = [
        "ksize",
        "strides",
        "padding",
        "explicit_paddings",
        "data_format",
    ];
    dense(with_attrs(g, "MaxPoolGrad", &names, &inputs)?)
}

fn gradient_v2(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (ksize, strides) = (g.input(1), g.input(2));
    let inputs = [g.input(0), g.output(0), g.grad(0)?, ksize, strides];
    let names = ["padding", "data_format"];
    let grad = with_attrs(g, "MaxPoolGradV2", &names, &inputs)?;
    first_of(3, grad)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 1)?, node.attrs.dtype("T")?);
    by_real!(dtype, T => maxima::<T>(pooling), else => Err(internal!("no pooling of {dtype}")))
}

fn maxima<T: Element + PoolElement>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let (pool, shape) = pooling.over_any(ctx, input.shape())?;
        let mut out = ctx.allocate(T::DTYPE, shape)?;
        max_pool(ctx.par(), &pool, input.slice::<T>()?, out.slice_mut::<T>()?);
        ctx.set(0, out);
        Ok(())
    })
}
