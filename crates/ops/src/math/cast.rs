//! `Cast`: every number as the nearest of another type.
//!
//! TensorFlow: Cast(x: SrcT) -> y: DstT, attr Truncate (narrower floats towards zero). Numbers and bools are converted into each
//! other by the rules in `tensorfleet_math::cast`; any type is cast to itself. What has no arithmetic, quantized types, floats of
//! eight and integers of four bits, is cast by way of a type that has, see `cast_stored`.

use tensorfleet_graph::example::{
    Data, Lit, bools, c64s, ex_attrs, ex_err, f32s, f64s, i32s, of, strs, x,
};
use tensorfleet_graph::gradient::{GradCtx, InputGrads, dense};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::cast::{Slice, SliceMut, cast};
use tensorfleet_math::par::{Par, Serial};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::cast_stored;
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
        ex_attrs(
            "to quantized",
            &[("DstT", "DT_QINT8")],
            &[f32s(&[3], &[1.75, -1.75, 100.0])],
            &[of(DType::QI8, &[3], &[1.0, -1.0, 100.0])],
        ),
        ex_attrs(
            "from quantized",
            &[("DstT", "DT_INT32")],
            &[of(DType::QU16, &[2], &[1.0, 65535.0])],
            &[i32s(&[2], &[1, 65535])],
        ),
        ex_attrs(
            "quantized to quantized",
            &[("DstT", "DT_QUINT8")],
            &[of(DType::QI32, &[2], &[-1.0, 257.0])],
            &[of(DType::QU8, &[2], &[255.0, 1.0])],
        ),
        ex_attrs(
            "to five bits of exponent",
            &[("DstT", "DT_FLOAT8_E5M2")],
            &[f64s(&[5], &[1.125, -1.375, 61439.0, 1e6, f64::NAN])],
            &[of(
                DType::F8E5M2,
                &[5],
                &[1.0, -1.5, 57344.0, f64::INFINITY, f64::NAN],
            )],
        ),
        ex_attrs(
            "to four bits of exponent",
            &[("DstT", "DT_FLOAT8_E4M3FN")],
            &[f32s(&[4], &[1.0625, -0.3, 464.0, 465.0])],
            &[of(DType::F8E4M3Fn, &[4], &[1.0, -0.3125, 448.0, f64::NAN])],
        ),
        ex_attrs(
            "eight bits towards zero",
            &[("DstT", "DT_FLOAT8_E4M3FN"), ("Truncate", "true")],
            &[of(DType::BF16, &[3], &[1.1875, -0.3, 464.0])],
            &[of(DType::F8E4M3Fn, &[3], &[1.125, -0.28125, 448.0])],
        ),
        ex_attrs(
            "from eight bits",
            &[("DstT", "DT_HALF")],
            &[of(DType::F8E5M2, &[3], &[1.5, -57344.0, f64::INFINITY])],
            &[of(DType::F16, &[3], &[1.5, -57344.0, f64::INFINITY])],
        ),
        ex_attrs(
            "eight bits to eight bits",
            &[("DstT", "DT_FLOAT8_E4M3FN")],
            &[of(DType::F8E5M2, &[3], &[1.75, -448.0, 512.0])],
            &[of(DType::F8E4M3Fn, &[3], &[1.75, -448.0, f64::NAN])],
        ),
        ex_attrs(
            "eight bits to integers wrap",
            &[("DstT", "DT_INT8")],
            &[of(DType::F8E4M3Fn, &[4], &[1.75, 160.0, -416.0, f64::NAN])],
            &[of(DType::I8, &[4], &[1.0, -96.0, 96.0, 0.0])],
        ),
        ex_attrs(
            "eight bits to flags",
            &[("DstT", "DT_BOOL")],
            &[of(DType::F8E4M3Fn, &[3], &[0.0, 0.5, f64::NAN])],
            &[bools(&[3], &[false, true, true])],
        ),
        ex_attrs(
            "to four bits",
            &[("DstT", "DT_INT4")],
            &[i32s(&[5], &[-9, -8, 7, 8, 200])],
            &[of(DType::I4, &[5], &[7.0, -8.0, 7.0, -8.0, -8.0])],
        ),
        ex_attrs(
            "to four bits without sign",
            &[("DstT", "DT_UINT4")],
            &[of(DType::QI8, &[3], &[-1.0, 15.0, 16.0])],
            &[of(DType::U4, &[3], &[15.0, 15.0, 0.0])],
        ),
        ex_attrs(
            "from four bits",
            &[("DstT", "DT_UINT64")],
            &[of(DType::I4, &[2], &[-1.0, 7.0])],
            &[Lit {
                dtype: Some(DType::U64),
                dims: &[2],
                data: Data::I(&[-1, 7]),
            }],
        ),
        ex_attrs(
            "four bits to four bits",
            &[("DstT", "DT_INT4")],
            &[of(DType::U4, &[2], &[15.0, 7.0])],
            &[of(DType::I4, &[2], &[-1.0, 7.0])],
        ),
        ex_err(
            "four bits are no floats",
            &[("DstT", "DT_FLOAT")],
            &[of(DType::I4, &[1], &[1.0])],
            Code::Unimplemented,
            "Cast int4 to float is not supported",
        ),
        ex_err(
            "integers are no floats of eight bits",
            &[("DstT", "DT_FLOAT8_E5M2")],
            &[i32s(&[1], &[1])],
            Code::Unimplemented,
            "Cast int32 to float8_e5m2 is not supported",
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
    let truncate = node.attrs.bool("Truncate")?;
    if !PLAIN.contains(&from) || !PLAIN.contains(&to) {
        return cast_stored::build(from, to, truncate);
    }
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
    convert(par, tensor, dtype, false)
}

/// Real numbers or bools in the smallest of the types of [`by_order!`](crate::by_order) that has all of them.
pub(crate) fn comparable(par: &dyn Par, tensor: &Tensor) -> Result<Tensor> {
    let dtype = match tensor.dtype() {
        DType::F16 | DType::BF16 => DType::F32,
        DType::Bool | DType::I8 | DType::I16 | DType::U8 | DType::U16 => DType::I32,
        DType::U32 => DType::I64,
        dtype => dtype,
    };
    converted(par, tensor, dtype)
}

/// As [`converted`], towards zero if `truncate`.
pub(super) fn convert(
    par: &dyn Par,
    tensor: &Tensor,
    dtype: DType,
    truncate: bool,
) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let mut out = Tensor::new(dtype, tensor.shape().clone())?;
    cast(par, numbers(tensor)?, numbers_mut(&mut out)?, truncate);
    Ok(out)
}
