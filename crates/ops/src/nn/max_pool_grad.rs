//! `MaxPoolGrad`, `MaxPoolGradV2` and their own gradients `MaxPoolGradGrad`, `MaxPoolGradGradV2`, over NHWC images.
//!
//! TensorFlow: MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> output: T hands each window's gradient to its largest
//! element; MaxPoolGradGrad, with the same arguments but `grad` shaped as the input, picks what stands there. Of equal maxima
//! the first counts. The second versions take ksize and strides as further inputs.

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::pool2d::{PoolElement, max_pool_grad, max_pool_grad_grad};
use tensorfleet_status::{Code, Result, internal};
use tensorfleet_tensor::Element;

use super::conv_attrs::with_attrs;
use super::conv_shapes;
use super::pool::{Pooling, check_output, check_shape, output_shape};
use crate::by_real;
use crate::types::REAL_NUMBERS;

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

/// The inputs `ksize` or `strides`.
const PAIR: Lit = i32s(&[4], &[1, 2, 2, 1]);
const IMAGE: Lit = x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]);
const POOLED: Lit = x(&[1, 1, 2, 1], &[5.0, 7.0]);
const GRAD: Lit = x(&[1, 1, 2, 1], &[3.0, 4.0]);
const SPREAD: Lit = x(&[1, 2, 4, 1], &[0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0]);
/// As long as the image: a gradient of the gradient.
const BACK: Lit = x(&[1, 2, 4, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
const PICKED: Lit = x(&[1, 1, 2, 1], &[2.0, 7.0]);
/// In float: at equal elements differences, taken in double, say nothing.
const EQUALS: Lit = f32s(&[1, 2, 2, 1], &[1.0, 5.0, 5.0, 2.0]);
const FIVE: Lit = f32s(&[1, 1, 1, 1], &[5.0]);

const BACKWARD: OpDef = OpDef {
    outputs: &["output: T"],
    exactness: Exactness::Relative(1e-6),
    ..OpDef::BLANK
};

const V1_INPUTS: &[&str] = &["orig_input: T", "orig_output: T", "grad: T"];
const V2_INPUTS: &[&str] = &[
    "orig_input: T",
    "orig_output: T",
    "grad: T",
    "ksize: int32",
    "strides: int32",
];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "MaxPoolGrad",
        inputs: V1_INPUTS,
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPoolGradGrad")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad)],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[IMAGE, POOLED, GRAD],
                &[SPREAD],
            ),
            ex_attrs(
                "first of equals",
                &[TWO, STRIDE, VALID],
                &[EQUALS, FIVE, f32s(&[1, 1, 1, 1], &[3.0])],
                &[f32s(&[1, 2, 2, 1], &[0.0, 3.0, 0.0, 0.0])],
            ),
            ex_err(
                "orig_output",
                &[TWO, STRIDE, VALID],
                &[f32s(&[1, 2, 4, 1], &[1.0]), FIVE, FIVE],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BACKWARD
    },
    OpDef {
        name: "MaxPoolGradGrad",
        inputs: V1_INPUTS,
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        ],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPoolGrad")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad_grad)],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[IMAGE, POOLED, BACK],
                &[PICKED],
            ),
            ex_attrs(
                "first of equals",
                &[TWO, STRIDE, VALID],
                &[EQUALS, FIVE, f32s(&[1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0])],
                &[f32s(&[1, 1, 1, 1], &[2.0])],
            ),
            ex_attrs(
                "not what was pooled",
                &[TWO, STRIDE, VALID],
                &[
                    f32s(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0]),
                    f32s(&[1, 1, 2, 1], &[4.0, 9.0]),
                    f32s(&[1, 2, 4, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
                ],
                &[f32s(&[1, 1, 2, 1], &[5.0, 0.0])],
            ),
            ex_ref(
                "same, overlapping",
                &[("ksize", "[1, 3, 3, 1]"), STRIDE, SAME],
                &[
                    ramp(&[2, 3, 2, 1], -12.0, 1.0),
                    x(&[2, 2, 1, 1], &[-9.0, -7.0, -3.0, -1.0]),
                    ramp(&[2, 3, 2, 1], 60.0, -0.5),
                ],
            ),
            ex_err(
                "orig_output",
                &[TWO, STRIDE, VALID],
                &[EQUALS, EQUALS, EQUALS],
                Code::InvalidArgument,
                "Expected orig_output shape to be [1,1,1,1], but got [1,2,2,1]",
            ),
            ex_err(
                "grad",
                &[TWO, STRIDE, VALID],
                &[EQUALS, FIVE, FIVE],
                Code::InvalidArgument,
                "Expected grad shape to be [1,2,2,1], but got [1,1,1,1]",
            ),
        ],
        ..BACKWARD
    },
    OpDef {
        name: "MaxPoolGradGradV2",
        inputs: V2_INPUTS,
        attrs: &[
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
        ],
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPoolGradV2")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad_grad)],
        examples: &[
            ex_attrs(
                "two by two",
                &[VALID],
                &[IMAGE, POOLED, BACK, PAIR, PAIR],
                &[PICKED],
            ),
            ex_err(
                "ksize",
                &[VALID],
                &[EQUALS, FIVE, EQUALS, i32s(&[3], &[1, 2, 2]), PAIR],
                Code::InvalidArgument,
                "Sliding window ksize field must specify 4 dimensions",
            ),
        ],
        ..BACKWARD
    },
    OpDef {
        name: "MaxPoolGradV2",
        inputs: V2_INPUTS,
        attrs: &[
            "padding: {'SAME', 'VALID'}",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = DT_FLOAT",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(|g| by_the_other(g, "MaxPoolGradGradV2")),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build_grad)],
        examples: &[
            ex_attrs(
                "two by two",
                &[VALID],
                &[IMAGE, POOLED, GRAD, PAIR, PAIR],
                &[SPREAD],
            ),
            ex_attrs(
                "first of equals",
                &[VALID],
                &[EQUALS, FIVE, f32s(&[1, 1, 1, 1], &[3.0]), PAIR, PAIR],
                &[f32s(&[1, 2, 2, 1], &[0.0, 3.0, 0.0, 0.0])],
            ),
        ],
        ..BACKWARD
    },
];

/// Both ops are linear in `grad`, each the transpose of the other; where the maxima are does not change by a little.
fn by_the_other(g: &mut GradCtx<'_>, op: &str) -> Result<InputGrads> {
    let mut inputs = vec![g.input(0), g.input(1), g.grad(0)?];
    let mut names = vec!["padding", "data_format"];
    if g.num_inputs() == inputs.len() {
        names.extend(["ksize", "strides"]);
    } else {
        inputs.extend([g.input(3), g.input(4)]);
    }
    let mut grads = vec![None; g.num_inputs()];
    grads[2] = Some(Grad::Dense(with_attrs(g, op, &names, &inputs)?));
    Ok(grads)
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 3)?, node.attrs.dtype("T")?);
    by_real!(dtype, T => spread::<T>(pooling), else => Err(internal!("no pooling of {dtype}")))
}

fn build_grad_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 3)?, node.attrs.dtype("T")?);
    by_real!(dtype, T => pick::<T>(pooling), else => Err(internal!("no pooling of {dtype}")))
}

fn spread<T: Element + PoolElement>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, grad) = (ctx.input(0)?, ctx.input(2)?);
        let pool = pooling.over(ctx, input.shape())?;
        check_output(&pool, "orig_output", ctx.input(1)?.shape())?;
        check_output(&pool, "grad", grad.shape())?;
        let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
        max_pool_grad(
            ctx.par(),
            &pool,
            input.slice::<T>()?,
            grad.slice::<T>()?,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}

fn pick<T: Element + PoolElement>(pooling: Pooling) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, output, grad) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let pool = pooling.over(ctx, input.shape())?;
        check_output(&pool, "orig_output", output.shape())?;
        check_shape(input.shape(), "grad", grad.shape())?;
        let mut out = ctx.allocate(T::DTYPE, output_shape(&pool)?)?;
        max_pool_grad_grad(
            ctx.par(),
            &pool,
            input.slice::<T>()?,
            output.slice::<T>()?,
            grad.slice::<T>()?,
            out.slice_mut::<T>()?,
        );
        ctx.set(0, out);
        Ok(())
    })
}
