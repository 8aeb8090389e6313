//! `LowerBound`, `UpperBound`: where values would be inserted into sorted rows.
//!
//! TensorFlow: LowerBound(sorted_inputs: T, values: T) -> output: out_type gives the first place, UpperBound the last; both
//! inputs are matrices with as many rows.

use tensorfleet_graph::example::{Lit, ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Real;
use tensorfleet_status::{Code, Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, Tensor};

use crate::by_real;
use crate::types::{INDEX, REAL_NUMBERS};

const BOUND: OpDef = OpDef {
    inputs: &["sorted_inputs: T", "values: T"],
    outputs: &["output: out_type"],
    attrs: &["T: type", "out_type: {int32, int64} = DT_INT32"],
    infer,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const SORTED: Lit = x(&[2, 4], &[1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
const VALUES: Lit = x(&[2, 3], &[2.0, 4.0, 0.0, 5.0, 9.0, 4.0]);

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "LowerBound",
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("out_type", INDEX)], |node| {
            build(node, false)
        })],
        examples: &[
            ex(
                "rows",
                &[SORTED, VALUES],
                &[i32s(&[2, 3], &[1, 4, 0, 1, 4, 0])],
            ),
            ex_err(
                "rows differ",
                &[],
                &[f32s(&[1, 2], &[1.0]), f32s(&[2, 1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "vector",
                &[],
                &[f32s(&[2], &[1.0]), f32s(&[2], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..BOUND
    },
    OpDef {
        name: "UpperBound",
        kernels: &[cpu(&[("T", REAL_NUMBERS), ("out_type", INDEX)], |node| {
            build(node, true)
        })],
        examples: &[ex_attrs(
            "rows, int64",
            &[("out_type", "int64")],
            &[SORTED, VALUES],
            &[i64s(&[2, 3], &[3, 4, 0, 2, 4, 1])],
        )],
        ..BOUND
    },
];

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = ctx.input(1).clone();
    ctx.set(0, shape);
    Ok(())
}

fn build(node: &NodeInfo, upper: bool) -> Result<AnyKernel> {
    let wide = node.attrs.dtype("out_type")? == DType::I64;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (sorted, values) = (ctx.input(0)?, ctx.input(1)?);
        for (name, input) in [("sorted_inputs", sorted), ("values", values)] {
            if input.rank() != 2 {
                return Err(invalid_argument!(
                    "Shape must be rank 2 but is rank {} for `{name}` argument",
                    input.rank()
                ));
            }
        }
        if sorted.shape()[0] != values.shape()[0] {
            return Err(invalid_argument!(
                "Leading dim_size of both tensors must match: {} and {}",
                sorted.shape(),
                values.shape()
            ));
        }
        let places = by_real!(sorted.dtype(), T => places::<T>(sorted, values, upper)?, else => {
            return Err(internal!("no order for dtype {}", sorted.dtype()));
        });
        let shape = values.shape().clone();
        let output = if wide {
            Tensor::from_vec(shape, places)?
        } else {
            Tensor::from_vec(shape, places.iter().map(|place| *place as i32).collect())?
        };
        ctx.set(0, output);
        Ok(())
    })
}

fn places<T: Real + Element>(sorted: &Tensor, values: &Tensor, upper: bool) -> Result<Vec<i64>> {
    let (row_len, count) = (sorted.shape().dim(1), values.shape().dim(1));
    let (sorted, values) = (sorted.slice::<T>()?, values.slice::<T>()?);
    let places = values.iter().enumerate().map(|(at, value)| {
        let row = at / count.max(1) * row_len;
        let row = &sorted[row..row + row_len];
        let place = if upper {
            row.partition_point(|element| element <= value)
        } else {
            row.partition_point(|element| element < value)
        };
        place as i64
    });
    Ok(places.collect())
}
