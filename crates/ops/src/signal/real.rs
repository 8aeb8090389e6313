//! `RFFT`, `RFFT2D`, `RFFT3D` and their inverses: transforms of real numbers.
//!
//! TensorFlow: RFFT(input: Treal, fft_length: int32) -> output: Tcomplex, the last dimension cut to half the spectrum;
//! IRFFT(input: Tcomplex, fft_length: int32) -> output: Treal, fft_length of the output. What the input has beyond fft_length is
//! not read. Treal and Tcomplex must be of the same precision. Where the input has no elements but the output has, it is zero
//! here, and not written at all in TensorFlow.

use num_complex::Complex;
use smallvec::SmallVec;
use tensorfleet_graph::example::{Data, Lit, ex, ex_err, ex_ref, f32s, i32s, ramp};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::fft::{Direction, Real, complex_to_real, real_to_complex};
use tensorfleet_math::movement::{Item, View, copy_view};
use tensorfleet_math::par::Par;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use super::plans::Plans;
use super::{NUMBERS, gradients, leading};
use crate::math::elementwise::{lengths, shape_of};

const fn c64(dims: &'static [i64]) -> Lit {
    numbers(DType::C64, dims)
}

const fn numbers(dtype: DType, dims: &'static [i64]) -> Lit {
    Lit {
        dtype: Some(dtype),
        dims,
        data: Data::C(NUMBERS),
    }
}

const fn ramp32(dims: &'static [i64]) -> Lit {
    Lit {
        dtype: Some(DType::F32),
        ..ramp(dims, -2.0, 0.75)
    }
}

const fn ramp64(dims: &'static [i64]) -> Lit {
    Lit {
        dtype: Some(DType::F64),
        ..ramp(dims, 3.0, -0.75)
    }
}

const REAL: OpDef = OpDef {
    attrs: &[
        "Treal: {float, double} = DT_FLOAT",
        "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    ],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(1e-5),
    ..OpDef::BLANK
};
const FORWARD: OpDef = OpDef {
    inputs: &["input: Treal", "fft_length: int32"],
    outputs: &["output: Tcomplex"],
    ..REAL
};
const INVERSE: OpDef = OpDef {
    inputs: &["input: Tcomplex", "fft_length: int32"],
    outputs: &["output: Treal"],
    ..REAL
};
const NO_RULE: Gradient = Gradient::None("TensorFlow has none for three dimensions");
const DOUBLE: &[(&str, &str)] = &[("Tcomplex", "complex128")];
const DOUBLE_REAL: &[(&str, &str)] = &[("Treal", "double")];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "RFFT",
        infer: |ctx| infer_real(ctx, 1, true),
        gradient: Gradient::Rule(|g| gradients::forward(g, "IFFT", 1)),
        kernels: &[cpu(&[], |node| build(node, 1, true))],
        examples: &[
            ex_ref("even length", &[], &[ramp32(&[2, 6]), i32s(&[1], &[6])]),
            ex_ref("odd length", DOUBLE, &[ramp64(&[7]), i32s(&[1], &[7])]),
            ex_ref("cut", DOUBLE, &[ramp64(&[2, 9]), i32s(&[1], &[8])]),
            ex_ref("one", &[], &[ramp32(&[2, 1]), i32s(&[1], &[1])]),
            ex(
                "no rows",
                &[f32s(&[0, 4], &[]), i32s(&[1], &[4])],
                &[Lit {
                    dtype: Some(DType::C64),
                    dims: &[0, 3],
                    data: Data::C(&[]),
                }],
            ),
            ex_err(
                "too short",
                &[],
                &[ramp32(&[4]), i32s(&[1], &[5])],
                Code::InvalidArgument,
                "Input dimension 0 must have length of at least 5 but got: 4",
            ),
            ex_err(
                "two lengths",
                &[],
                &[ramp32(&[4]), i32s(&[2], &[4, 4])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "negative length",
                &[],
                &[ramp32(&[4]), i32s(&[1], &[-1])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "precisions differ",
                DOUBLE,
                &[ramp32(&[4]), i32s(&[1], &[4])],
                Code::InvalidArgument,
                "Wrong types for forward real FFT: in=1 out=18",
            ),
        ],
        ..FORWARD
    },
    OpDef {
        name: "IRFFT",
        infer: |ctx| infer_real(ctx, 1, false),
        gradient: Gradient::Rule(|g| gradients::inverse(g, "RFFT", 1)),
        kernels: &[cpu(&[], |node| build(node, 1, false))],
        examples: &[
            ex_ref("even length", &[], &[c64(&[2, 6]), i32s(&[1], &[10])]),
            ex_ref("odd length", &[], &[c64(&[3, 4]), i32s(&[1], &[7])]),
            ex_ref(
                "double",
                DOUBLE_REAL,
                &[numbers(DType::C128, &[12]), i32s(&[1], &[22])],
            ),
            ex_ref("cut", &[], &[c64(&[2, 6]), i32s(&[1], &[6])]),
            ex_err(
                "too short",
                &[],
                &[c64(&[12]), i32s(&[1], &[24])],
                Code::InvalidArgument,
                "Input dimension 0 must have length of at least 13 but got: 12",
            ),
        ],
        ..INVERSE
    },
    OpDef {
        name: "RFFT2D",
        infer: |ctx| infer_real(ctx, 2, true),
        gradient: Gradient::Rule(|g| gradients::forward(g, "IFFT2D", 2)),
        kernels: &[cpu(&[], |node| build(node, 2, true))],
        examples: &[
            ex_ref("matrices", &[], &[ramp32(&[2, 3, 4]), i32s(&[2], &[3, 4])]),
            ex_ref("cut", DOUBLE, &[ramp64(&[5, 4]), i32s(&[2], &[4, 3])]),
        ],
        ..FORWARD
    },
    OpDef {
        name: "IRFFT2D",
        infer: |ctx| infer_real(ctx, 2, false),
        gradient: Gradient::Rule(|g| gradients::inverse(g, "RFFT2D", 2)),
        kernels: &[cpu(&[], |node| build(node, 2, false))],
        examples: &[
            ex_ref("matrices", &[], &[c64(&[2, 2, 3]), i32s(&[2], &[2, 4])]),
            ex_ref("odd length", &[], &[c64(&[4, 3]), i32s(&[2], &[4, 5])]),
        ],
        ..INVERSE
    },
    OpDef {
        name: "RFFT3D",
        infer: |ctx| infer_real(ctx, 3, true),
        gradient: NO_RULE,
        kernels: &[cpu(&[], |node| build(node, 3, true))],
        examples: &[ex_ref(
            "box",
            &[],
            &[ramp32(&[2, 3, 4]), i32s(&[3], &[2, 3, 4])],
        )],
        ..FORWARD
    },
    OpDef {
        name: "IRFFT3D",
        infer: |ctx| infer_real(ctx, 3, false),
        gradient: NO_RULE,
        kernels: &[cpu(&[], |node| build(node, 3, false))],
        examples: &[ex_ref(
            "box",
            &[],
            &[c64(&[2, 2, 3]), i32s(&[3], &[2, 2, 4])],
        )],
        ..INVERSE
    },
];

fn infer_real(ctx: &mut InferCtx<'_>, rank: usize, is_forward: bool) -> Result<()> {
    let Some(dims) = ctx.input(0).dims() else {
        return Ok(());
    };
    let Some(before) = dims.len().checked_sub(rank) else {
        return Err(invalid_argument!("Shape must be at least rank {rank}"));
    };
    let mut out: SmallVec<[i64; 6]> = dims[..before].iter().copied().collect();
    match ctx.constant_ints(1) {
        Some(lengths) if lengths.len() == rank => out.extend(lengths),
        _ => out.extend(std::iter::repeat_n(UNKNOWN_DIM, rank)),
    }
    if let Some(last) = out.last_mut().filter(|last| is_forward && **last > 0) {
        *last = *last / 2 + 1;
    }
    ctx.set(0, PartialShape::new(&out));
    Ok(())
}

fn build(node: &NodeInfo, rank: usize, is_forward: bool) -> Result<AnyKernel> {
    let (real, complex) = (node.attrs.dtype("Treal")?, node.attrs.dtype("Tcomplex")?);
    match (real, complex, is_forward) {
        (DType::F32, DType::C64, true) => build_forward::<f32>(rank),
        (DType::F64, DType::C128, true) => build_forward::<f64>(rank),
        (DType::F32, DType::C64, false) => build_inverse::<f32>(rank),
        (DType::F64, DType::C128, false) => build_inverse::<f64>(rank),
        _ => AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
            sizes(ctx, rank, is_forward)?;
            let (way, from, to) = match is_forward {
                true => ("forward", real, complex),
                false => ("backward", complex, real),
            };
            let (from, to) = (from.number(), to.number());
            Err(invalid_argument!(
                "Wrong types for {way} real FFT: in={from} out={to}"
            ))
        }),
    }
}

/// The lengths to transform, in one direction or the other.
struct Sizes {
    /// Of the real side, all dimensions.
    real: SmallVec<[usize; 6]>,
    /// Of the complex side, all dimensions.
    complex: SmallVec<[usize; 6]>,
    /// The first dimension that is transformed.
    first: usize,
}

impl Sizes {
    fn lengths(&self) -> &[usize] {
        &self.real[self.first..]
    }

    /// The length of the last dimension, and those before it.
    fn last(&self) -> (usize, &[usize]) {
        let last = self.real.len() - 1;
        (self.real[last], &self.real[self.first..last])
    }
}

/// Checks the inputs against each other.
fn sizes(ctx: &KernelCtx<'_>, rank: usize, is_forward: bool) -> Result<Sizes> {
    let (shape, lengths_input) = (ctx.input(0)?.shape(), ctx.input(1)?);
    let first = leading(shape, rank)?;
    ensure!(
        lengths_input.rank() == 1 && lengths_input.elements() == rank,
        invalid_argument,
        "fft_length must have shape [{rank}]"
    );
    let mut real = lengths(shape);
    for (at, len) in lengths_input.slice::<i32>()?.iter().enumerate() {
        let len = usize::try_from(*len)
            .map_err(|_| invalid_argument!("fft_length[{at}] must >= 0, but got: {len}"))?;
        let is_half = at + 1 == rank && !is_forward;
        let (axis, least) = (first + at, if is_half { len / 2 + 1 } else { len });
        ensure!(
            real[axis] == 0 || real[axis] >= least,
            invalid_argument,
            "Input dimension {axis} must have length of at least {least} but got: {}",
            real[axis]
        );
        real[axis] = len;
    }
    let mut complex = real.clone();
    if let Some(last) = complex.last_mut()
        && (*last > 0 || !is_forward)
    {
        *last = *last / 2 + 1;
    }
    Ok(Sizes {
        real,
        complex,
        first,
    })
}

fn build_forward<T: Real + Element + Item>(rank: usize) -> Result<AnyKernel>
where
    Complex<T>: Element,
{
    let (rows, others) = (Plans::new(), Plans::new());
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx, rank, true)?;
        let mut out = ctx.allocate(Complex::<T>::DTYPE, shape_of(&sizes.complex)?)?;
        let input = ctx.take(0)?;
        if !out.is_empty() && !input.is_empty() {
            let (last, before) = sizes.last();
            // Rows may be longer than what is read; other dimensions are cut first.
            let input = cut::<T>(ctx.par(), input, &sizes.real[..sizes.real.len() - 1])?;
            let from = (input.slice::<T>()?, input.shape().dim(input.rank() - 1));
            let plan = rows.real(last);
            let to = out.slice_mut::<Complex<T>>()?;
            real_to_complex(ctx.par(), &plan, from, to);
            let axes = (before, plan.half());
            others.transform(ctx.par(), to, axes, Direction::Forward, 1.0);
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn build_inverse<T: Real + Element>(rank: usize) -> Result<AnyKernel>
where
    Complex<T>: Element + Item,
{
    let (rows, others) = (Plans::new(), Plans::new());
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = sizes(ctx, rank, false)?;
        let mut out = ctx.allocate(T::DTYPE, shape_of(&sizes.real)?)?;
        let input = ctx.take(0)?;
        if !out.is_empty() && !input.is_empty() {
            let count: f64 = sizes.lengths().iter().map(|len| *len as f64).product();
            let (last, before) = sizes.last();
            let kept = sizes.complex.len() - usize::from(before.is_empty());
            let mut input = cut::<Complex<T>>(ctx.par(), input, &sizes.complex[..kept])?;
            let width = input.shape().dim(input.rank() - 1);
            if !before.is_empty() {
                let values = input.slice_mut::<Complex<T>>()?;
                let axes = (before, width);
                others.transform(ctx.par(), values, axes, Direction::Inverse, 1.0);
            }
            let from = (input.slice::<Complex<T>>()?, width);
            let to = out.slice_mut::<T>()?;
            complex_to_real(ctx.par(), &rows.real(last), from, to, 1.0 / count);
        }
        ctx.set(0, out);
        Ok(())
    })
}

/// The tensor with its first dimensions cut to these lengths, as it is if it has them.
fn cut<T: Element + Item>(par: &dyn Par, tensor: Tensor, dims: &[usize]) -> Result<Tensor> {
    let from = lengths(tensor.shape());
    if from.starts_with(dims) {
        return Ok(tensor);
    }
    let mut to = from.clone();
    to[..dims.len()].copy_from_slice(dims);
    let rank = from.len();
    let view = View::sliced(&from, &vec![0; rank], &vec![1; rank], &to);
    let dims: SmallVec<[i64; 6]> = to.iter().map(|len| *len as i64).collect();
    let mut out = Tensor::new(T::DTYPE, Shape::new(&dims)?)?;
    copy_view(par, tensor.slice::<T>()?, &view, out.slice_mut::<T>()?);
    Ok(out)
}
