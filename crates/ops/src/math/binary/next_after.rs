//! `NextAfter`: the neighbour of `x1` in the direction of `x2`.
//!
//! TensorFlow: NextAfter(x1: T, x2: T) -> output: T, T in {double, float}, broadcasting.

use tensorfleet_graph::example::{ex, ex_ref, f32s, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Element};

use crate::math::calculus::Calculus;
use crate::math::elementwise::{broadcast, expanded, input_dtype, no_function};
use crate::types::SINGLE_AND_DOUBLE;

pub(crate) static OP: OpDef = OpDef {
    name: "NextAfter",
    inputs: &["x1: T", "x2: T"],
    outputs: &["output: T"],
    attrs: &["T: {double, float} = DT_FLOAT"],
    infer: infer::broadcast,
    gradient: Gradient::Rule(gradient),
    kernels: &[cpu(&[("T", SINGLE_AND_DOUBLE)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "neighbours of one",
            &[f32s(&[3], &[1.0, 1.0, 1.0]), f32s(&[3], &[2.0, 0.0, 1.0])],
            &[f32s(
                &[3],
                &[1.000_000_119_209_289_6, 0.999_999_940_395_355_2, 1.0],
            )],
        ),
        ex_ref(
            "zero, infinities, NaN",
            &[],
            &[
                x(&[5, 1], &[0.0, -0.0, f64::INFINITY, f64::NAN, -1.0]),
                x(&[4], &[1.0, -1.0, f64::NEG_INFINITY, f64::NAN]),
            ],
        ),
    ],
    ..OpDef::BLANK
};

/// One for `x1`, zero for `x2`.
fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let ones = g.f("OnesLike", g.input(0))?;
    let zeros = g.f("ZerosLike", g.input(1))?;
    let (first, second) = (g.mul(ones, grad)?, g.mul(zeros, grad)?);
    g.unbroadcast([first, second])
}

trait Neighbour: Element + Copy {
    fn next_after(self, to: Self) -> Self;
}

macro_rules! neighbour {
    ($($t:ty),*) => {$(
        impl Neighbour for $t {
            fn next_after(self, to: Self) -> Self {
                if self.is_nan() || to.is_nan() {
                    <$t>::NAN
                } else if self == to {
                    to
                } else if to > self {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }
        }
    )*};
}

neighbour!(f32, f64);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match input_dtype(node) {
        DType::F32 => AnyKernel::sync(run::<f32>),
        DType::F64 => AnyKernel::sync(run::<f64>),
        other => Err(no_function("NextAfter", other)),
    }
}

fn run<T: Neighbour>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (x, y) = (ctx.input(0)?, ctx.input(1)?);
    let (_, shape) = broadcast(x.shape(), y.shape())?;
    let mut z = ctx.allocate(T::DTYPE, shape)?;
    let from = expanded(x.slice::<T>()?, x.shape(), z.shape());
    let to = expanded(y.slice::<T>()?, y.shape(), z.shape());
    let pairs = from.iter().zip(to.iter());
    for (z, (from, to)) in z.slice_mut::<T>()?.iter_mut().zip(pairs) {
        *z = from.next_after(*to);
    }
    ctx.set(0, z);
    Ok(())
}
