//! `BroadcastArgs`, `BroadcastGradientArgs`: what broadcasting two shapes gives, and which dimensions of
//! the result each side must be summed over to get back.
//!
//! TensorFlow: BroadcastArgs(s0: T, s1: T) -> r0: T; BroadcastGradientArgs(s0: T, s1: T) -> (r0: T, r1: T).

use smallvec::SmallVec;
use tensorfleet_graph::example::{ex, ex_err, i32s, x};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use crate::types::INDEX;

type Ints = SmallVec<[i64; 8]>;

const ARGS: OpDef = OpDef {
    inputs: &["s0: T", "s1: T"],
    attrs: &["T: {int32, int64} = DT_INT32"],
    gradient: Gradient::Stop("shapes are integers"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "BroadcastArgs",
        outputs: &["r0: T"],
        kernels: &[cpu(&[("T", INDEX)], build_args)],
        examples: &[
            ex(
                "both ways",
                &[x(&[2], &[2.0, 1.0]), x(&[3], &[4.0, 1.0, 3.0])],
                &[x(&[3], &[4.0, 2.0, 3.0])],
            ),
            ex(
                "zero",
                &[x(&[2], &[0.0, 1.0]), x(&[2], &[1.0, 5.0])],
                &[x(&[2], &[0.0, 5.0])],
            ),
            ex("scalars", &[x(&[0], &[]), x(&[0], &[])], &[x(&[0], &[])]),
            ex_err(
                "incompatible",
                &[],
                &[i32s(&[2], &[3, 1]), i32s(&[2], &[4, 5])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ARGS
    },
    OpDef {
        name: "BroadcastGradientArgs",
        outputs: &["r0: T", "r1: T"],
        infer: |ctx| {
            ctx.set(0, PartialShape::of_rank(1));
            ctx.set(1, PartialShape::of_rank(1));
            Ok(())
        },
        kernels: &[cpu(&[("T", INDEX)], build_gradient_args)],
        examples: &[
            ex(
                "missing dimensions",
                &[x(&[3], &[2.0, 3.0, 5.0]), x(&[1], &[1.0])],
                &[x(&[0], &[]), x(&[3], &[0.0, 1.0, 2.0])],
            ),
            ex(
                "both ways",
                &[x(&[3], &[2.0, 1.0, 2.0]), x(&[2], &[3.0, 1.0])],
                &[x(&[1], &[1.0]), x(&[2], &[0.0, 2.0])],
            ),
            ex(
                "equal",
                &[x(&[2], &[1.0, 2.0]), x(&[2], &[1.0, 2.0])],
                &[x(&[0], &[]), x(&[0], &[])],
            ),
            ex(
                "one on both sides",
                &[x(&[2], &[1.0, 2.0]), x(&[1], &[2.0])],
                &[x(&[1], &[0.0]), x(&[1], &[0.0])],
            ),
            ex_err(
                "incompatible",
                &[],
                &[i32s(&[2], &[2, 3]), i32s(&[1], &[4])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..ARGS
    },
];

fn build_args(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (left, right) = (vector(ctx, 0)?, vector(ctx, 1)?);
        let rank = left.len().max(right.len());
        let mut result = Ints::new();
        for axis in 0..rank {
            let (a, b) = (aligned(&left, rank, axis), aligned(&right, rank, axis));
            result.push(match (a, b) {
                (a, 1) => a,
                (1, b) => b,
                (a, b) if a == b => a,
                _ => return Err(incompatible(&left, &right)),
            });
        }
        set(ctx, 0, &result);
        Ok(())
    })
}

fn build_gradient_args(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (left, right) = (vector(ctx, 0)?, vector(ctx, 1)?);
        let (mut of_left, mut of_right) = (Ints::new(), Ints::new());
        // Equal shapes need no sums; otherwise a dimension of extent one counts for every side that has it.
        if left != right {
            let rank = left.len().max(right.len());
            for axis in 0..rank {
                let (a, b) = (aligned(&left, rank, axis), aligned(&right, rank, axis));
                if a != b && a != 1 && b != 1 {
                    return Err(incompatible(&left, &right));
                }
                if a == 1 {
                    of_left.push(axis as i64);
                }
                if b == 1 {
                    of_right.push(axis as i64);
                }
            }
        }
        set(ctx, 0, &of_left);
        set(ctx, 1, &of_right);
        Ok(())
    })
}

fn vector(ctx: &KernelCtx<'_>, index: usize) -> Result<Ints> {
    let shape = ctx.input(index)?.shape();
    if shape.rank() != 1 {
        return Err(invalid_argument!("In[{index}] must be a vector.{shape}"));
    }
    ctx.ints(index)
}

/// Dimension `axis` of `rank` where shorter shapes begin with ones.
fn aligned(dims: &[i64], rank: usize, axis: usize) -> i64 {
    match (axis + dims.len()).checked_sub(rank) {
        Some(index) => dims[index],
        None => 1,
    }
}

fn set(ctx: &mut KernelCtx<'_>, index: usize, values: &[i64]) {
    let wide = ctx.node().output_types.first().map(|port| port.dtype) == Some(DType::I64);
    let tensor = if wide {
        Tensor::vector(values)
    } else {
        let narrow: SmallVec<[i32; 8]> = values.iter().map(|value| *value as i32).collect();
        Tensor::vector(&narrow)
    };
    ctx.set(index, tensor);
}

#[cold]
fn incompatible(left: &[i64], right: &[i64]) -> tensorfleet_status::Status {
    invalid_argument!(
        "Incompatible shapes: {} vs. {}",
        PartialShape::new(left),
        PartialShape::new(right)
    )
}
