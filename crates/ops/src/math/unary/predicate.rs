//! Functions of one input whose result has another dtype: tests of floats, and counted bits.
//!
//! TensorFlow: Is…(x: T) -> y: bool, T in {bfloat16, half, float, double}; PopulationCount(x: T) -> y: uint8 for integers.

use tensorfleet_graph::example::{bools, ex, of, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_math::unary::{Predicate, predicate};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Element};

use super::{FLOAT, INTEGER, UNARY};
use crate::math::elementwise::{input_dtype, no_function};
use crate::types::{FLOATS, INTEGERS};
use crate::{by_float, by_integer};

const NUMBERS: &[f64] = &[0.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "IsNan",
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Predicate::IsNan))],
        examples: &[
            ex(
                "numbers",
                &[x(&[5], NUMBERS)],
                &[bools(&[5], &[false, false, false, false, true])],
            ),
            ex("scalar", &[x(&[], &[1.0])], &[bools(&[], &[false])]),
            ex("empty", &[x(&[2, 0], &[])], &[bools(&[2, 0], &[])]),
        ],
        ..PREDICATE
    },
    OpDef {
        name: "IsInf",
        kernels: &[cpu(&[("T", FLOATS)], |node| build(node, Predicate::IsInf))],
        examples: &[ex(
            "numbers",
            &[x(&[5], NUMBERS)],
            &[bools(&[5], &[false, false, true, true, false])],
        )],
        ..PREDICATE
    },
    OpDef {
        name: "IsFinite",
        kernels: &[cpu(&[("T", FLOATS)], |node| {
            build(node, Predicate::IsFinite)
        })],
        examples: &[ex(
            "numbers",
            &[x(&[5], NUMBERS)],
            &[bools(&[5], &[true, true, false, false, false])],
        )],
        ..PREDICATE
    },
    OpDef {
        name: "PopulationCount",
        outputs: &["y: uint8"],
        attrs: INTEGER,
        gradient: Gradient::Stop("bits have no derivative"),
        kernels: &[cpu(&[("T", INTEGERS)], build_count)],
        exactness: Exactness::Bits,
        examples: &[
            ex(
                "bits",
                &[x(&[2, 2], &[0.0, 1.0, 127.0, 42.0])],
                &[of(DType::U8, &[2, 2], &[0.0, 1.0, 7.0, 3.0])],
            ),
            ex(
                "negative numbers",
                &[of(DType::I32, &[], &[-1.0])],
                &[of(DType::U8, &[], &[32.0])],
            ),
        ],
        ..UNARY
    },
];

const PREDICATE: OpDef = OpDef {
    outputs: &["y: bool"],
    attrs: FLOAT,
    exactness: Exactness::Bits,
    ..UNARY
};

fn build(node: &NodeInfo, test: Predicate) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_float!(dtype, T => build_of::<T>(test), else => Err(no_function(test, dtype)))
}

fn build_of<T: Element + Float>(test: Predicate) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let mut y = ctx.allocate(DType::Bool, x.shape().clone())?;
        predicate(ctx.par(), test, x.slice::<T>()?, y.slice_mut::<bool>()?);
        ctx.set(0, y);
        Ok(())
    })
}

fn build_count(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = input_dtype(node);
    by_integer!(dtype, T => AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let mut y = ctx.allocate(DType::U8, x.shape().clone())?;
        for (y, x) in y.slice_mut::<u8>()?.iter_mut().zip(x.slice::<T>()?) {
            *y = x.count_ones() as u8;
        }
        ctx.set(0, y);
        Ok(())
    }), else => Err(no_function("PopulationCount", dtype)))
}
