//! `Cast`: every number as the nearest of another type.
//!
//! TensorFlow: Cast(x: SrcT) -> y: DstT, attr Truncate (narrower floats towards zero). Numbers and bools are converted into each
//! other by the rules in `tensorfleet_math::cast`; any type is cast to itself. The 8-bit floats and the integers of less than a
//! byte, which TensorFlow casts too, are storage only here.

use tensorfleet_graph::example::{
    Lit, bools, c64s, ex_attrs, ex_err, f32s, f64s, i32s, of, strs, x,
};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::cast::{Slice, SliceMut, cast};
use tensorfleet_math::par::{Par, Serial};
use tensorfleet_status::{Code, Result, ensure, unimplemented};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::elementwise::input_dtype;
use crate::by_number;
use crate::types::PLAIN;

const SMALL: Lit = x(&[3], &[0.0, 1.0, 100.0]);

pub(crate) static OP: OpDef = OpDef {
    name: "Cast",
    inputs: &["x: SrcT"],
    outputs: &["y: DstT"],
    attrs: &["SrcT: type", "DstT: type", "Truncate: bool = false"],
    infer: infer::same_as_first,
    gradient: Gradient::Rule(gradient),
    kernels: &[
        cpu(&[("SrcT", PLAIN), ("DstT", PLAIN)], build),
        cpu(&[], build),
    ],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs("to float", &[("DstT", "DT_FLOAT")], &[SMALL], &[SMALL]),
        ex_attrs("to double", &[("DstT", "DT_DOUBLE")], &[SMALL], &[SMALL]),
        ex_attrs("to half", &[("DstT", "DT_HALF")], &[SMALL], &[SMALL]),
        ex_attrs(
            "to bfloat16",
            &[("DstT", "DT_BFLOAT16")],
            &[SMALL],
            &[SMALL],
        ),
        ex_attrs("to int8", &[("DstT", "DT_INT8")], &[SMALL], &[SMALL]),
        ex_attrs("to int16", &[("DstT", "DT_INT16")], &[SMALL], &[SMALL]),
        ex_attrs("to int32", &[("DstT", "DT_INT32")], &[SMALL], &[SMALL]),
        ex_attrs("to int64", &[("DstT", "DT_INT64")], &[SMALL], &[SMALL]),
        ex_attrs("to uint8", &[("DstT", "DT_UINT8")], &[SMALL], &[SMALL]),
        ex_attrs("to uint16", &[("DstT", "DT_UINT16")], &[SMALL], &[SMALL]),
        ex_attrs("to uint32", &[("DstT", "DT_UINT32")], &[SMALL], &[SMALL]),
        ex_attrs("to uint64", &[("DstT", "DT_UINT64")], &[SMALL], &[SMALL]),
        ex_attrs(
            "to complex64",
            &[("DstT", "DT_COMPLEX64")],
            &[SMALL],
            &[SMALL],
        ),
        ex_attrs(
            "to complex128",
            &[("DstT", "DT_COMPLEX128")],
            &[SMALL],
            &[SMALL],
        ),
        ex_attrs(
            "to bool",
            &[("DstT", "DT_BOOL")],
            &[SMALL],
            &[bools(&[3], &[false, true, true])],
        ),
        ex_attrs(
            "from bool",
            &[("DstT", "DT_FLOAT")],
            &[bools(&[2], &[true, false])],
            &[f32s(&[2], &[1.0, 0.0])],
        ),
        ex_attrs(
            "floats truncate",
            &[("DstT", "DT_INT32")],
            &[f32s(&[4], &[1.75, -1.75, 0.5, -0.5])],
            &[i32s(&[4], &[1, -1, 0, 0])],
        ),
        ex_attrs(
            "integers wrap",
            &[("DstT", "DT_INT8")],
            &[i32s(&[3], &[128, -129, 300])],
            &[of(DType::I8, &[3], &[-128.0, 127.0, 44.0])],
        ),
        ex_attrs(
            "nearest even",
            &[("DstT", "DT_BFLOAT16")],
            &[f32s(&[2], &[1.003_906_25, 1.011_718_75])],
            &[of(DType::BF16, &[2], &[1.0, 1.015_625])],
        ),
        ex_attrs(
            "towards zero",
            &[("DstT", "DT_BFLOAT16"), ("Truncate", "true")],
            &[f32s(&[2], &[1.003_906_25, -1.011_718_75])],
            &[of(DType::BF16, &[2], &[1.0, -1.007_812_5])],
        ),
        ex_attrs(
            "beyond the range of half",
            &[("DstT", "DT_HALF")],
            &[f64s(&[2], &[1e6, -1e6])],
            &[of(DType::F16, &[2], &[f64::INFINITY, f64::NEG_INFINITY])],
        ),
        ex_attrs(
            "imaginary parts are dropped",
            &[("DstT", "DT_FLOAT")],
            &[c64s(&[1], &[(1.5, 2.0)])],
            &[f32s(&[1], &[1.5])],
        ),
        ex_attrs(
            "scalar",
            &[("DstT", "DT_INT64")],
            &[i32s(&[], &[7])],
            &[of(DType::I64, &[], &[7.0])],
        ),
        ex_attrs(
            "strings to themselves",
            &[("DstT", "DT_STRING")],
            &[strs(&[1], &["a"])],
            &[strs(&[1], &["a"])],
        ),
        ex_err(
            "strings to numbers",
            &[("DstT", "DT_FLOAT")],
            &[strs(&[1], &["1"])],
            Code::Unimplemented,
            "Cast string to float is not supported",
        ),
    ],
    ..OpDef::BLANK
};

/// Cast back, between types that have derivatives.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (from, grad) = (g.dtype(g.input(0)), g.grad(0)?);
    let has_slope = |dtype: DType| dtype.is_floating() || dtype.is_complex();
    if !has_slope(from) || !has_slope(g.dtype(grad)) {
        return Ok(vec![None]);
    }
    dense(g.cast(grad, from)?)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (from, to) = (input_dtype(node), node.attrs.dtype("DstT")?);
    if from == to {
        return AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
            let tensor = ctx.take(0)?;
            ctx.set(0, tensor);
            Ok(())
        });
    }
    if !PLAIN.contains(&from) || !PLAIN.contains(&to) {
        return Err(unimplemented!("Cast {from} to {to} is not supported"));
    }
    let truncate = node.attrs.bool("Truncate")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        let mut out = ctx.allocate(to, input.shape().clone())?;
        cast(ctx.par(), numbers(input)?, numbers_mut(&mut out)?, truncate);
        ctx.set(0, out);
        Ok(())
    })
}

/// All elements of a tensor of real numbers.
pub(crate) fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    let mut out = vec![0.0; tensor.elements()];
    cast(&Serial, numbers(tensor)?, SliceMut::F64(&mut out), false);
    Ok(out)
}

/// All elements of a tensor of integers.
pub(crate) fn integers(tensor: &Tensor) -> Result<Vec<i64>> {
    let mut out = vec![0; tensor.elements()];
    cast(&Serial, numbers(tensor)?, SliceMut::I64(&mut out), false);
    Ok(out)
}

/// A tensor of these integers as `dtype`, which wrap where they do not fit.
pub(crate) fn from_integers(values: &[i64], dtype: DType, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::new(dtype, shape)?;
    ensure!(
        out.elements() == values.len(),
        internal,
        "{} integers for shape {}",
        values.len(),
        out.shape()
    );
    cast(&Serial, values.into(), numbers_mut(&mut out)?, false);
    Ok(out)
}

fn numbers(tensor: &Tensor) -> Result<Slice<'_>> {
    let dtype = tensor.dtype();
    by_number!(dtype, T => Ok(tensor.slice::<T>()?.into()), else => Ok(tensor.slice::<bool>()?.into()))
}

fn numbers_mut(tensor: &mut Tensor) -> Result<SliceMut<'_>> {
    let dtype = tensor.dtype();
    by_number!(dtype, T => Ok(tensor.slice_mut::<T>()?.into()), else => Ok(tensor.slice_mut::<bool>()?.into()))
}

/// The elements of a tensor in another type of numbers.
pub(crate) fn converted(par: &dyn Par, tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let mut out = Tensor::new(dtype, tensor.shape().clone())?;
    cast(par, numbers(tensor)?, numbers_mut(&mut out)?, false);
    Ok(out)
}
