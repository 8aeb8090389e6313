//! Random ops whose stream is kept in a variable: `StatefulUniform` and its kin, `RngSkip`, `RngReadAndSkip`;
//! `NonDeterministicInts`, from which such variables are seeded.
//!
//! TensorFlow: Op(resource: resource, algorithm: int64, shape: shape_dtype) -> output: dtype. The variable holds int64s: the
//! counter, low half first, then the key. A run moves the counter on by 256 samples for each output. Of the algorithms only
//! Philox is known (1, or 3 for automatic).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{Philox, RESERVED_SAMPLES_PER_OUTPUT};
use tensorfleet_status::{Result, ensure, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use super::distribution::{Distribution, check_range, fill_range};
use super::{entropy, shape_input};
use crate::state::target::Target;
use crate::types::{FLOATS, INDEX};

const FULL: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

const STATEFUL: OpDef = OpDef {
    inputs: &[
        "resource: resource",
        "algorithm: int64",
        "shape: shape_dtype",
    ],
    outputs: &["output: dtype"],
    attrs: &["dtype: type = DT_FLOAT", "shape_dtype: type = DT_INT64"],
    stateful: true,
    infer: infer::shape_in::<2>,
    gradient: Gradient::Stop("random numbers depend on nothing"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// A variable with a stream, and what it holds after each step.
macro_rules! two_runs {
    ($op:literal, $types:literal, $other:literal) => {
        script(
            "two runs",
            concat!(
                "v = VarHandleOp() {dtype=int64, shape=[3], shared_name='v'}
                 c = int64[3]{5, -1, 99}
                 init = AssignVariableOp(v, c)
                 alg = int64[]{1}
                 s = int64[2]{3, 5}
                 s4 = int32[1]{7}
                 x = ",
                $op,
                "(v, alg, s) {dtype=",
                $types,
                "}
                 y = ",
                $op,
                "(v, alg, s4, ^x) {dtype=",
                $other,
                "}
                 read = ReadVariableOp(v, ^y) {dtype=int64}"
            ),
            &["run init", "fetch x, y, read => ?", "fetch x, y, read => ?"],
        )
    };
}

const SHORT_STATE: Script = script(
    "states that are none",
    "v = VarHandleOp() {dtype=int64, shape=[2], shared_name='short'}
     c = int64[2]{5, 6}
     init = AssignVariableOp(v, c)
     w = VarHandleOp() {dtype=float, shape=[3], shared_name='float'}
     f = float[3]{5, 6, 7}
     init_w = AssignVariableOp(w, f)
     alg = int64[]{1}
     other = int64[]{2}
     none = int64[]{77}
     s = int64[1]{3}
     short = StatefulUniform(v, alg, s)
     float = StatefulUniform(w, alg, s)
     three_fry = StatefulUniform(v, other, s)
     unknown = StatefulUniform(v, none, s)",
    &[
        "run init, init_w",
        "fetch short fails INVALID_ARGUMENT the size of state must be at least 3; got 2",
        "fetch float fails INVALID_ARGUMENT dtype of RNG state variable must be int64, not float",
        "fetch three_fry fails UNIMPLEMENTED ",
        "fetch unknown fails INVALID_ARGUMENT Unsupported algorithm id",
    ],
);

pub(crate) static OPS: [OpDef; 8] = [
    OpDef {
        name: "StatefulUniform",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Uniform)
        })],
        scripts: &[two_runs!("StatefulUniform", "float", "half"), SHORT_STATE],
        ..STATEFUL
    },
    OpDef {
        name: "StatefulStandardNormalV2",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::Normal)
        })],
        scripts: &[two_runs!("StatefulStandardNormalV2", "float", "double")],
        ..STATEFUL
    },
    OpDef {
        name: "StatefulTruncatedNormal",
        kernels: &[cpu(&[("dtype", FLOATS)], |node| {
            draw(node, Distribution::TruncatedNormal)
        })],
        scripts: &[two_runs!("StatefulTruncatedNormal", "float", "double")],
        ..STATEFUL
    },
    OpDef {
        name: "StatefulUniformFullInt",
        attrs: &["dtype: type = DT_UINT64", "shape_dtype: type = DT_INT64"],
        kernels: &[cpu(&[("dtype", FULL)], |node| {
            draw(node, Distribution::FullInt)
        })],
        scripts: &[two_runs!("StatefulUniformFullInt", "uint64", "int32")],
        ..STATEFUL
    },
    OpDef {
        name: "StatefulUniformInt",
        inputs: &[
            "resource: resource",
            "algorithm: int64",
            "shape: shape_dtype",
            "minval: dtype",
            "maxval: dtype",
        ],
        attrs: &["dtype: type = DT_INT64", "shape_dtype: type = DT_INT64"],
        kernels: &[cpu(&[("dtype", INDEX)], |node| {
            let dtype = node.attrs.dtype("dtype")?;
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                let mut out = ctx.allocate(dtype, shape_input(ctx, 2)?)?;
                let (low, high) = (ctx.input(3)?, ctx.input(4)?);
                check_range(low, high)?;
                let philox = advance(ctx, out.elements() as u64)?;
                fill_range(ctx.par(), philox, low, high, &mut out)?;
                ctx.set(0, out);
                Ok(())
            })
        })],
        scripts: &[script(
            "a range, and none",
            "v = VarHandleOp() {dtype=int64, shape=[3], shared_name='v'}
             c = int64[3]{5, -1, 99}
             init = AssignVariableOp(v, c)
             alg = int64[]{3}
             s = int64[1]{6}
             lo = int32[]{-3}
             hi = int32[]{1000}
             x = StatefulUniformInt(v, alg, s, lo, hi)
             bad = StatefulUniformInt(v, alg, s, hi, lo)",
            &[
                "run init",
                "fetch x => ?",
                "fetch bad fails INVALID_ARGUMENT Need minval < maxval, got 1000 >= -3",
            ],
        )],
        ..STATEFUL
    },
    OpDef {
        name: "RngSkip",
        inputs: &["resource: resource", "algorithm: int64", "delta: int64"],
        outputs: &[],
        attrs: &[],
        infer: infer::unknown,
        cost: Cost::Cheap,
        kernels: &[cpu(&[], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
                let delta = ctx.scalar::<i64>(2)? as u64;
                advance(ctx, delta)?;
                Ok(())
            })
        })],
        scripts: &[script(
            "over the end of the low half",
            "v = VarHandleOp() {dtype=int64, shape=[3], shared_name='v'}
             c = int64[3]{-2, 7, 99}
             init = AssignVariableOp(v, c)
             alg = int64[]{1}
             d = int64[]{3}
             skip = RngSkip(v, alg, d)
             read = ReadVariableOp(v, ^skip) {dtype=int64}",
            &["run init", "fetch read => int64[3]{766, 8, 99}"],
        )],
        ..STATEFUL
    },
    OpDef {
        name: "RngReadAndSkip",
        inputs: &["resource: resource", "alg: int32", "delta: uint64"],
        outputs: &["value: int64"],
        attrs: &[],
        infer: |ctx| {
            ctx.set(0, PartialShape::new(&[3]));
            Ok(())
        },
        cost: Cost::Cheap,
        kernels: &[cpu(&[], |_| {
            AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
                let philox = advance(ctx, ctx.scalar::<u64>(2)?)?;
                let [low, high] = philox.counter().map(u64::cast_signed);
                let old = [low, high, philox.key().cast_signed()];
                ctx.set(0, Tensor::vector(&old));
                Ok(())
            })
        })],
        scripts: &[script(
            "what was there before",
            "v = VarHandleOp() {dtype=int64, shape=[3], shared_name='v'}
             c = int64[3]{1, 2, -99}
             init = AssignVariableOp(v, c)
             alg = int32[]{1}
             d = uint64[]{2}
             old = RngReadAndSkip(v, alg, d)
             read = ReadVariableOp(v, ^old) {dtype=int64}",
            &[
                "run init",
                "fetch old, read => int64[3]{1, 2, -99}; int64[3]{513, 2, -99}",
            ],
        )],
        ..STATEFUL
    },
    OpDef {
        name: "NonDeterministicInts",
        inputs: &["shape: shape_dtype"],
        attrs: &["dtype: type = DT_INT64", "shape_dtype: type = DT_INT64"],
        infer: infer::shape_in::<0>,
        kernels: &[cpu(&[("dtype", FULL)], |node| {
            let dtype = node.attrs.dtype("dtype")?;
            let fill = Distribution::FullInt.fill(dtype)?;
            AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
                let mut out = ctx.allocate(dtype, shape_input(ctx, 0)?)?;
                fill(ctx.par(), Philox::new(entropy(), entropy()), &mut out)?;
                ctx.set(0, out);
                Ok(())
            })
        })],
        exactness: Exactness::Shape,
        scripts: &[script(
            "as many as wanted",
            "s = int64[2]{2, 3}
             x = NonDeterministicInts(s) {dtype=uint32}
             shape = Shape(x)",
            &["fetch shape => int32[2]{2, 3}"],
        )],
        ..STATEFUL
    },
];

fn draw(node: &NodeInfo, distribution: Distribution) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    let fill = distribution.fill(dtype)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let mut out = ctx.allocate(dtype, shape_input(ctx, 2)?)?;
        let philox = advance(ctx, out.elements() as u64)?;
        fill(ctx.par(), philox, &mut out)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The stream in the variable of input 0, which moves on past so many outputs; input 1 is the algorithm.
pub(super) fn advance(ctx: &KernelCtx<'_>, outputs: u64) -> Result<Philox> {
    let algorithm = ctx.input(1)?;
    ensure!(
        algorithm.rank() == 0,
        invalid_argument,
        "input 1 (0-based) must have shape [], not {}",
        algorithm.shape()
    );
    match ctx.int(1)? {
        1 | 3 => {}
        2 => {
            return Err(unimplemented!(
                "Non-XLA devices don't support the ThreeFry algorithm."
            ));
        }
        other => return Err(invalid_argument!("Unsupported algorithm id: {other}")),
    }
    Target::of(ctx, 0)?.update(ctx, |state| {
        ensure!(
            state.dtype() == DType::I64,
            invalid_argument,
            "dtype of RNG state variable must be int64, not {}",
            state.dtype()
        );
        ensure!(
            state.rank() == 1,
            invalid_argument,
            "RNG state must have one and only one dimension, not {}",
            state.rank()
        );
        let size = state.elements();
        let [low, high, key, ..] = state.slice_mut::<i64>()? else {
            return Err(invalid_argument!(
                "For the Philox algorithm, the size of state must be at least 3; got {size}"
            ));
        };
        let counter = [low.cast_unsigned(), high.cast_unsigned()];
        let philox = Philox::from_key_counter(key.cast_unsigned(), counter);
        let samples = outputs.wrapping_mul(RESERVED_SAMPLES_PER_OUTPUT);
        [*low, *high] = philox.skipped(samples).counter().map(u64::cast_signed);
        Ok(philox)
    })
}
