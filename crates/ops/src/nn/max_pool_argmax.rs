//! `MaxPoolWithArgmax`, `MaxPoolGradWithArgmax`: the largest element of each window over NHWC images and where it is.
//!
//! TensorFlow: MaxPoolWithArgmax(input: T) -> output: T, argmax: Targmax, with ksize, strides, padding, and
//! include_batch_in_index: whether indices count in the whole batch or in each image; MaxPoolGradWithArgmax(input: T, grad: T,
//! argmax: Targmax) -> output: T hands each window's gradient to the element that its index names. An index that names none, which
//! ends TensorFlow's process, is an error here.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, i64s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Num;
use tensorfleet_math::pool2d::{PoolElement, max_pool_grad_with_argmax, max_pool_with_argmax};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor};

use super::conv_attrs::with_attrs;
use super::conv_shapes;
use super::pool::{Pooling, check_output, output_shape};
use crate::by_real;
use crate::types::{INDEX, REAL_NUMBERS};

const TWO: (&str, &str) = ("ksize", "[1, 2, 2, 1]");
const STRIDE: (&str, &str) = ("strides", "[1, 2, 2, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");
const BATCH: (&str, &str) = ("include_batch_in_index", "true");

const TYPES: &str =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "MaxPoolWithArgmax",
        inputs: &["input: T"],
        outputs: &["output: T", "argmax: Targmax"],
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "Targmax: {int32, int64} = DT_INT64",
            "padding: {'SAME', 'VALID'}",
            "include_batch_in_index: bool = false",
            TYPES,
        ],
        infer: conv_shapes::pooled,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("Targmax", INDEX)], build)],
        exactness: Exactness::Bits,
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[x(&[1, 2, 4, 1], &[1.0, 5.0, 2.0, 3.0, 4.0, 0.0, 7.0, 6.0])],
                &[x(&[1, 1, 2, 1], &[5.0, 7.0]), i64s(&[1, 1, 2, 1], &[1, 6])],
            ),
            ex_ref(
                "index in the batch, overlapping",
                &[("ksize", "[1, 3, 3, 1]"), STRIDE, SAME, BATCH],
                &[ramp(&[2, 5, 4, 3], 60.0, -0.5)],
            ),
            ex_ref(
                "int32",
                &[TWO, STRIDE, SAME, ("Targmax", "int32")],
                &[f32s(&[2, 1, 2, 1], &[1.0, 2.0, 4.0, 3.0])],
            ),
            ex_err(
                "no image",
                &[TWO, STRIDE, VALID],
                &[f32s(&[2, 2], &[0.0])],
                Code::InvalidArgument,
                "4-dimensional",
            ),
            ex_err(
                "empty",
                &[TWO, STRIDE, VALID],
                &[f32s(&[0, 2, 2, 1], &[])],
                Code::InvalidArgument,
                "tensor_in must not be empty (2)",
            ),
        ],
        ..OpDef::BLANK
    },
    OpDef {
        name: "MaxPoolGradWithArgmax",
        inputs: &["input: T", "grad: T", "argmax: Targmax"],
        outputs: &["output: T"],
        attrs: &[
            "ksize: list(int) >= 4",
            "strides: list(int) >= 4",
            "padding: {'SAME', 'VALID'}",
            "include_batch_in_index: bool = false",
            "Targmax: {int32, int64}",
            TYPES,
        ],
        infer: infer::same_as_first,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(
            &[("T", REAL_NUMBERS), ("Targmax", &[DType::I64])],
            build_grad,
        )],
        examples: &[
            ex_attrs(
                "two by two",
                &[TWO, STRIDE, VALID],
                &[
                    x(&[1, 2, 4, 1], &[1.0]),
                    x(&[1, 1, 2, 1], &[3.0, 4.0]),
                    i64s(&[1, 1, 2, 1], &[1, 6]),
                ],
                &[x(&[1, 2, 4, 1], &[0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0])],
            ),
            ex_attrs(
                "index in the batch",
                &[TWO, STRIDE, SAME, BATCH],
                &[
                    x(&[2, 1, 2, 1], &[1.0]),
                    x(&[2, 1, 1, 1], &[3.0, 4.0]),
                    i64s(&[2, 1, 1, 1], &[0, 3]),
                ],
                &[x(&[2, 1, 2, 1], &[3.0, 0.0, 0.0, 4.0])],
            ),
            ex_err(
                "argmax",
                &[TWO, STRIDE, VALID],
                &[
                    f32s(&[1, 2, 2, 1], &[1.0]),
                    f32s(&[1, 1, 1, 1], &[3.0]),
                    i64s(&[1, 1, 1, 2], &[0, 1]),
                ],
                Code::InvalidArgument,
                "Expected argmax shape to be [1,1,1,1], but got [1,1,1,2]",
            ),
        ],
        ..OpDef::BLANK
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.input(0), g.grad(0)?, g.output(1)];
    let names = ["ksize", "strides", "padding", "include_batch_in_index"];
    dense(with_attrs(g, "MaxPoolGradWithArgmax", &names, &inputs)?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 1)?, node.attrs.dtype("T")?);
    let include_batch = node.attrs.bool("include_batch_in_index")?;
    let narrow = node.attrs.dtype("Targmax")? == DType::I32;
    by_real!(dtype, T => maxima::<T>(pooling, include_batch, narrow), else => Err(internal!("no pooling of {dtype}")))
}

fn maxima<T: Element + PoolElement>(
    pooling: Pooling,
    include_batch: bool,
    narrow: bool,
) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let pool = pooling.over(ctx, input.shape())?;
        ensure!(
            !input.is_empty(),
            invalid_argument,
            "tensor_in must not be empty (2)"
        );
        let shape = output_shape(&pool)?;
        let mut out = ctx.allocate(T::DTYPE, shape.clone())?;
        let mut argmax = ctx.allocate(DType::I64, shape.clone())?;
        max_pool_with_argmax(
            ctx.par(),
            &pool,
            include_batch,
            input.slice::<T>()?,
            out.slice_mut::<T>()?,
            argmax.slice_mut::<i64>()?,
        );
        ctx.set(0, out);
        ctx.set(1, if narrow { narrowed(&argmax)? } else { argmax });
        Ok(())
    })
}

/// Indices in int32, which wrap as TensorFlow's do.
fn narrowed(argmax: &Tensor) -> Result<Tensor> {
    let values = argmax.slice::<i64>()?.iter().map(|index| *index as i32);
    Tensor::from_vec(argmax.shape().clone(), values.collect::<Vec<_>>())
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let (pooling, dtype) = (Pooling::new(node, 3)?, node.attrs.dtype("T")?);
    let include_batch = node.attrs.bool("include_batch_in_index")?;
    by_real!(dtype, T => spread::<T>(pooling, include_batch), else => Err(internal!("no pooling of {dtype}")))
}

fn spread<T: Element + Num>(pooling: Pooling, include_batch: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, grad, argmax) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let pool = pooling.over(ctx, input.shape())?;
        check_output(&pool, "grad", grad.shape())?;
        check_output(&pool, "argmax", argmax.shape())?;
        let mut out = ctx.allocate(T::DTYPE, input.shape().clone())?;
        max_pool_grad_with_argmax(
            &pool,
            include_batch,
            grad.slice::<T>()?,
            argmax.slice::<i64>()?,
            out.slice_mut::<T>()?,
        )
        .map_err(|bad| {
            invalid_argument!(
                "Invalid output gradient index: {} at {}",
                bad.value,
                bad.position
            )
        })?;
        ctx.set(0, out);
        Ok(())
    })
}
