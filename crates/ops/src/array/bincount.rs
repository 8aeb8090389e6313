//! `Bincount`, `DenseBincount`: how often, or with which total weight, each small integer occurs.
//!
//! TensorFlow: Bincount(arr: int32, size: int32, weights: T) -> bins: T; DenseBincount(input: Tidx, size: Tidx, weights: T)
//! -> output: T counts the rows of a matrix apart and, with attr binary_output, says only whether. Values from
//! `size` on are left out; empty weights mean one each.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::num::Num;
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use crate::types::INDEX;

const WEIGHTS: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];

const COUNT: OpDef = OpDef {
    gradient: Gradient::None("TensorFlow has none"),
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Bincount",
        inputs: &["arr: int32", "size: int32", "weights: T"],
        outputs: &["bins: T"],
        attrs: &["T: {int32, int64, float, double}"],
        kernels: &[cpu(&[("T", WEIGHTS)], |_| build(false, false))],
        examples: &[
            ex(
                "weighted",
                &[
                    i32s(&[5], &[1, 1, 3, 7, 0]),
                    i32s(&[], &[4]),
                    x(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]),
                ],
                &[x(&[4], &[5.0, 3.0, 0.0, 3.0])],
            ),
            ex(
                "counted, in a matrix",
                &[i32s(&[2, 2], &[1, 1, 3, 0]), i32s(&[], &[4]), x(&[0], &[])],
                &[x(&[4], &[1.0, 2.0, 0.0, 1.0])],
            ),
            ex_err(
                "negative",
                &[],
                &[i32s(&[2], &[1, -1]), i32s(&[], &[4]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "negative size",
                &[],
                &[i32s(&[1], &[1]), i32s(&[], &[-4]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "number of weights",
                &[],
                &[i32s(&[2], &[1, 1]), i32s(&[], &[4]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..COUNT
    },
    OpDef {
        name: "DenseBincount",
        inputs: &["input: Tidx", "size: Tidx", "weights: T"],
        outputs: &["output: T"],
        attrs: &[
            "Tidx: {int32, int64}",
            "T: {int32, int64, float, double}",
            "binary_output: bool = false",
        ],
        kernels: &[cpu(&[("Tidx", INDEX), ("T", WEIGHTS)], |node| {
            build(true, node.attrs.bool("binary_output")?)
        })],
        examples: &[
            ex(
                "rows",
                &[i32s(&[2, 2], &[1, 1, 0, 5]), i32s(&[], &[3]), x(&[0], &[])],
                &[x(&[2, 3], &[0.0, 2.0, 0.0, 1.0, 0.0, 0.0])],
            ),
            ex_attrs(
                "whether at all",
                &[("binary_output", "true")],
                &[i64s(&[3], &[1, 1, 2]), i64s(&[], &[4]), x(&[0], &[])],
                &[x(&[4], &[0.0, 1.0, 1.0, 0.0])],
            ),
            ex_err(
                "negative",
                &[],
                &[i32s(&[1, 1], &[-5]), i32s(&[], &[3]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "",
            ),
            ex_err(
                "rank",
                &[],
                &[i32s(&[1, 1, 1], &[1]), i32s(&[], &[3]), f32s(&[0], &[])],
                Code::InvalidArgument,
                "",
            ),
        ],
        ..COUNT
    },
];

fn build(by_row: bool, binary: bool) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (values, weights) = (ctx.input(0)?, ctx.input(2)?);
        if ctx.input(1)?.rank() != 0 {
            return Err(invalid_argument!(
                "Shape must be rank 0 but is rank {}: size",
                ctx.input(1)?.rank()
            ));
        }
        let size = ctx.int(1)?;
        if size < 0 {
            return Err(invalid_argument!("size ({size}) must be non-negative"));
        }
        if by_row && values.rank() > 2 {
            return Err(invalid_argument!(
                "Shape must be at most rank 2 but is rank {}",
                values.rank()
            ));
        }
        if !weights.is_empty() && weights.shape() != values.shape() {
            return Err(invalid_argument!(
                "Input indices and weights must have the same size: {} and {}",
                values.shape(),
                weights.shape()
            ));
        }
        let numbers = ctx.ints(0)?;
        if let Some(negative) = numbers.iter().find(|number| **number < 0) {
            return Err(invalid_argument!(
                "Input arr must be non-negative! Negative input value found: {negative}"
            ));
        }
        let shape = match values.shape().dims() {
            [rows, _] if by_row => Shape::new(&[*rows, size])?,
            _ => Shape::new(&[size])?,
        };
        let row_len = match values.shape().dims() {
            [_, columns] if by_row => *columns as usize,
            _ => numbers.len(),
        };
        let mut bins = Tensor::zeros(weights.dtype(), shape)?;
        if !numbers.is_empty() && size > 0 {
            let run = match bins.dtype() {
                DType::I32 => count::<i32>,
                DType::I64 => count::<i64>,
                DType::F32 => count::<f32>,
                _ => count::<f64>,
            };
            run(&numbers, row_len, weights, size as usize, binary, &mut bins)?;
        }
        ctx.set(0, bins);
        Ok(())
    })
}

fn count<T: Num + Element>(
    numbers: &[i64],
    row_len: usize,
    weights: &Tensor,
    size: usize,
    binary: bool,
    bins: &mut Tensor,
) -> Result<()> {
    let weights = weights.slice::<T>()?;
    let bins = bins.slice_mut::<T>()?;
    for (at, number) in numbers.iter().enumerate() {
        let Some(column) = usize::try_from(*number)
            .ok()
            .filter(|number| *number < size)
        else {
            continue;
        };
        let bin = &mut bins[at / row_len * size + column];
        *bin = match weights.get(at) {
            _ if binary => T::ONE,
            Some(weight) => bin.add(*weight),
            None => bin.add(T::ONE),
        };
    }
    Ok(())
}
