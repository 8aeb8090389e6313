//! `Bincount`, `DenseBincount`: how often, or with which total weight, each small integer occurs.
//!
//! TensorFlow: Bincount(arr: int32, size: int32, weights: T) -> bins: T; DenseBincount(input: Tidx, size: Tidx, weights: T)
//! -> output: T counts the rows of a matrix apart and, with attr binary_output, says only whether. Values from
//! `size` on are left out; empty weights mean one each.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, f32s, i32s, i64s, x};
use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::movement::{BadIndex, Index};
use tensorfleet_math::num::Num;
use tensorfleet_math::par::Par;
use tensorfleet_math::segment::bincount;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use crate::types::INDEX;

pub(super) const WEIGHTS: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];

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
        let size = bins(ctx, 1)?;
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
        let shape = match values.shape().dims() {
            [rows, _] if by_row => Shape::new(&[*rows, size])?,
            _ => Shape::new(&[size])?,
        };
        let row_len = match values.shape().dims() {
            [_, columns] if by_row => *columns as usize,
            _ => values.elements(),
        };
        let mut counts = ctx.allocate(weights.dtype(), shape)?;
        let rows = Rows {
            values,
            row_len,
            weights,
            binary,
        };
        let done = match weights.dtype() {
            DType::I32 => rows.count::<i32>(ctx.par(), &mut counts)?,
            DType::I64 => rows.count::<i64>(ctx.par(), &mut counts)?,
            DType::F32 => rows.count::<f32>(ctx.par(), &mut counts)?,
            _ => rows.count::<f64>(ctx.par(), &mut counts)?,
        };
        if let Err(BadIndex { value, .. }) = done {
            return Err(invalid_argument!(
                "Input arr must be non-negative! Negative input value found: {value}"
            ));
        }
        ctx.set(0, counts);
        Ok(())
    })
}

/// What is counted.
struct Rows<'a> {
    values: &'a Tensor,
    row_len: usize,
    weights: &'a Tensor,
    binary: bool,
}

impl Rows<'_> {
    fn count<T: Num + Element>(
        &self,
        par: &dyn Par,
        bins: &mut Tensor,
    ) -> Result<std::result::Result<(), BadIndex>> {
        match self.values.dtype() {
            DType::I32 => self.count_by::<T, i32>(par, bins),
            _ => self.count_by::<T, i64>(par, bins),
        }
    }

    fn count_by<T: Num + Element, I: Index + Element>(
        &self,
        par: &dyn Par,
        bins: &mut Tensor,
    ) -> Result<std::result::Result<(), BadIndex>> {
        let size = bins.shape().last().map_or(0, |size| *size as usize);
        let weights = self.weights.slice::<T>()?;
        Ok(bincount(
            par,
            (self.values.slice::<I>()?, self.row_len),
            (!weights.is_empty()).then_some(weights),
            self.binary,
            (bins.slice_mut::<T>()?, size),
        ))
    }
}

/// The number of bins in input `index`.
pub(super) fn bins(ctx: &KernelCtx<'_>, index: usize) -> Result<i64> {
    ensure!(
        ctx.input(index)?.rank() == 0,
        invalid_argument,
        "Shape must be rank 0 but is rank {}: size",
        ctx.input(index)?.rank()
    );
    let size = ctx.int(index)?;
    ensure!(
        size >= 0,
        invalid_argument,
        "size ({size}) must be non-negative"
    );
    Ok(size)
}

/// Adds each number's weight to its bin in the row that `row_of` gives for its place; what has no bin is left out.
pub(super) fn count(
    numbers: &[i64],
    row_of: &dyn Fn(usize) -> usize,
    weights: &Tensor,
    binary: bool,
    bins: &mut Tensor,
) -> Result<()> {
    match bins.dtype() {
        DType::I32 => count_as::<i32>(numbers, row_of, weights, binary, bins),
        DType::I64 => count_as::<i64>(numbers, row_of, weights, binary, bins),
        DType::F32 => count_as::<f32>(numbers, row_of, weights, binary, bins),
        _ => count_as::<f64>(numbers, row_of, weights, binary, bins),
    }
}

fn count_as<T: Num + Element>(
    numbers: &[i64],
    row_of: &dyn Fn(usize) -> usize,
    weights: &Tensor,
    binary: bool,
    bins: &mut Tensor,
) -> Result<()> {
    let size = bins.shape().last().map_or(0, |size| *size as usize);
    let weights = weights.slice::<T>()?;
    let bins = bins.slice_mut::<T>()?;
    for (at, number) in numbers.iter().enumerate() {
        let number = usize::try_from(*number).ok();
        let column = number.filter(|number| *number < size);
        let Some(bin) = column.and_then(|column| bins.get_mut(row_of(at) * size + column)) else {
            continue;
        };
        *bin = match weights.get(at) {
            _ if binary => T::ONE,
            Some(weight) => bin.add(*weight),
            None => bin.add(T::ONE),
        };
    }
    Ok(())
}
