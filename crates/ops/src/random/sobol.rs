//! `SobolSample`: points that fill a cube evenly.
//!
//! TensorFlow: SobolSample(dim: int32, num_results: int32, skip: int32) -> samples: dtype[num_results, dim], the same points always.
//! TensorFlow has them for 21200 dimensions, we have the first 1111. Its points from number 2^30 - 1 on are
//! negative, as its scale overflows; ours are not.

use tensorfleet_graph::example::{ex_attrs, ex_err, ex_ref, f32s, i32s};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::random::{MOST_SOBOL_DIMENSIONS, fill_sobol};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{DType, PartialShape, Shape, UNKNOWN_DIM};

use crate::types::SINGLE_AND_DOUBLE;

/// TensorFlow's number of dimensions.
const DIMENSIONS: i32 = 21200;

pub(crate) static OP: OpDef = OpDef {
    name: "SobolSample",
    inputs: &["dim: int32", "num_results: int32", "skip: int32"],
    outputs: &["samples: dtype"],
    attrs: &["dtype: {float, double} = DT_FLOAT"],
    infer: shape,
    gradient: Gradient::Stop("points depend on nothing"),
    kernels: &[cpu(&[("dtype", SINGLE_AND_DOUBLE)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "two dimensions",
            &[],
            &[i32s(&[], &[2]), i32s(&[], &[4]), i32s(&[], &[0])],
            &[f32s(
                &[4, 2],
                &[0.5, 0.5, 0.75, 0.25, 0.25, 0.75, 0.375, 0.375],
            )],
        ),
        ex_ref(
            "many dimensions, from later on, in double",
            &[("dtype", "double")],
            &[i32s(&[], &[1111]), i32s(&[], &[5]), i32s(&[], &[123_456])],
        ),
        ex_ref(
            "from far on",
            &[],
            &[
                i32s(&[], &[7]),
                i32s(&[], &[3]),
                i32s(&[], &[1_000_000_000]),
            ],
        ),
        ex_err(
            "no dimension",
            &[],
            &[i32s(&[], &[0]), i32s(&[], &[4]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "too many dimensions",
            &[],
            &[i32s(&[], &[21_201]), i32s(&[], &[4]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "dim must be at most 21200",
        ),
        ex_err(
            "no points",
            &[],
            &[i32s(&[], &[1]), i32s(&[], &[0]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "overflow",
            &[],
            &[
                i32s(&[], &[1]),
                i32s(&[], &[1]),
                i32s(&[], &[2_147_483_647]),
            ],
            Code::InvalidArgument,
            "num_results+skip must be less than 2147483647",
        ),
        ex_err(
            "too many numbers",
            &[],
            &[
                i32s(&[], &[1000]),
                i32s(&[], &[16_384_000]),
                i32s(&[], &[0]),
            ],
            Code::InvalidArgument,
            "num_results*dim must be less than 2147483647",
        ),
        ex_err(
            "vector",
            &[],
            &[i32s(&[1], &[1]), i32s(&[], &[1]), i32s(&[], &[0])],
            Code::InvalidArgument,
            "",
        ),
    ],
    ..OpDef::BLANK
};

fn shape(ctx: &mut InferCtx<'_>) -> Result<()> {
    let known = |input: usize| match ctx.constant_ints(input).as_deref() {
        Some([value]) => *value,
        _ => UNKNOWN_DIM,
    };
    let dims = [known(1), known(0)];
    ctx.set(0, PartialShape::new(&dims));
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        for (input, name) in ["dim", "num_results", "skip"].into_iter().enumerate() {
            ensure!(
                ctx.input(input)?.rank() == 0,
                invalid_argument,
                "{name} must be a scalar"
            );
        }
        let [dim, count, skip] = [
            ctx.scalar::<i32>(0)?,
            ctx.scalar::<i32>(1)?,
            ctx.scalar::<i32>(2)?,
        ];
        ensure!(dim >= 1, invalid_argument, "dim must be at least one");
        ensure!(
            dim <= DIMENSIONS,
            invalid_argument,
            "dim must be at most {DIMENSIONS}"
        );
        ensure!(
            count >= 1,
            invalid_argument,
            "num_results must be at least one"
        );
        ensure!(skip >= 0, invalid_argument, "skip must be non-negative");
        ensure!(
            count < i32::MAX - skip,
            invalid_argument,
            "num_results+skip must be less than {}",
            i32::MAX
        );
        ensure!(
            count < i32::MAX / dim,
            invalid_argument,
            "num_results*dim must be less than {}",
            i32::MAX
        );
        let width = dim as usize;
        ensure!(
            width <= MOST_SOBOL_DIMENSIONS,
            unimplemented,
            "Sobol's points have at most {MOST_SOBOL_DIMENSIONS} dimensions here, got {dim}"
        );
        let shape = Shape::new(&[i64::from(count), i64::from(dim)])?;
        let mut out = ctx.allocate(dtype, shape)?;
        // The digits are those of a binary fraction.
        let (par, skip) = (ctx.par(), skip as u32);
        match dtype {
            DType::F32 => fill_sobol(par, width, skip, out.slice_mut::<f32>()?, |digits| {
                digits as f32 / 4_294_967_296.0
            }),
            _ => fill_sobol(par, width, skip, out.slice_mut::<f64>()?, |digits| {
                f64::from(digits) / 4_294_967_296.0
            }),
        }
        ctx.set(0, out);
        Ok(())
    })
}
