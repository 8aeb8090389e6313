//! Gradients of the sorted and unsorted segment ops.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Tensor};

use crate::math::calculus::{Calculus, first_of};

/// Every row gets the gradient of its segment.
pub(super) fn sum(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let rows = gathered(g, grad, g.input(1))?;
    first_of(2, rows)
}

/// As for the sum, divided by the number of rows.
pub(super) fn mean(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let rank = g.f("Rank", g.input(0))?;
    let one = g.constant(1.0, DType::I32)?;
    let rest = g.sub(rank, one)?;
    let ids = g.shape(g.input(1))?;
    let shape = extended(g, ids, rest)?;
    let one = g.constant(1.0, g.dtype(grad))?;
    let ones = g.apply("Fill", &[shape, one])?;
    let count = g.apply("SegmentSum", &[ones, g.input(1)])?;
    let scaled = g.div(grad, count)?;
    let rows = gathered(g, scaled, g.input(1))?;
    first_of(2, rows)
}

/// The gradient goes to the extremes of each segment, shared evenly where there are several.
pub(super) fn extreme(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (data, ids, grad) = (g.input(0), g.input(1), g.grad(0)?);
    let zeros = g.f("ZerosLike", data)?;
    let best = gathered(g, g.output(0), ids)?;
    let chosen = g.apply("Equal", &[data, best])?;
    let ones = g.cast(chosen, g.dtype(grad))?;
    let count = g.apply("SegmentSum", &[ones, ids])?;
    let share = g.div(grad, count)?;
    let rows = gathered(g, share, ids)?;
    let rows = g.apply("SelectV2", &[chosen, rows, zeros])?;
    first_of(2, rows)
}

/// The product of the other rows: by division, but for a single zero, which gets the product of the rest.
pub(super) fn prod(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (data, ids) = (g.input(0), g.input(1));
    let (is_zero, grad) = zeros_apart(g, "SegmentSum", &[ids])?;
    let ones = g.f("OnesLike", data)?;
    let rest = g.apply("SelectV2", &[is_zero, ones, data])?;
    let rest_product = g.apply("SegmentProd", &[rest, ids])?;
    let product = gathered(g, g.output(0), ids)?;
    let rest_product = gathered(g, rest_product, ids)?;
    let divided = g.div(product, rest)?;
    let derivative = g.apply("SelectV2", &[is_zero, rest_product, divided])?;
    let rows = gathered(g, grad, ids)?;
    let rows = g.mul(rows, derivative)?;
    first_of(2, rows)
}

pub(super) fn unsorted_sum(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let places = Places::new(g)?;
    let rows = places.gather(g, grad)?;
    first_of(3, rows)
}

pub(super) fn unsorted_extreme(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (data, ids, count, grad) = (g.input(0), g.input(1), g.input(2), g.grad(0)?);
    let places = Places::new(g)?;
    let best = places.gather(g, g.output(0))?;
    let chosen = g.apply("Equal", &[data, best])?;
    let mask = places.mask(g, best)?;
    let chosen = g.apply("LogicalAnd", &[chosen, mask])?;
    let ones = g.cast(chosen, g.dtype(grad))?;
    let chosen_count = g.apply("UnsortedSegmentSum", &[ones, ids, count])?;
    let share = g.div(grad, chosen_count)?;
    let rows = places.gather(g, share)?;
    let zeros = g.f("ZerosLike", rows)?;
    let rows = g.apply("SelectV2", &[chosen, rows, zeros])?;
    first_of(3, rows)
}

pub(super) fn unsorted_prod(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let (data, ids, count) = (g.input(0), g.input(1), g.input(2));
    let (is_zero, grad) = zeros_apart(g, "UnsortedSegmentSum", &[ids, count])?;
    let ones = g.f("OnesLike", data)?;
    let rest = g.apply("SelectV2", &[is_zero, ones, data])?;
    let rest_product = g.apply("UnsortedSegmentProd", &[rest, ids, count])?;
    let places = Places::new(g)?;
    let product = gathered(g, g.output(0), places.clipped)?;
    let rest_product = gathered(g, rest_product, places.clipped)?;
    let divided = g.div(product, data)?;
    let derivative = g.apply("SelectV2", &[is_zero, rest_product, divided])?;
    let rows = places.gather(g, grad)?;
    let rows = g.mul(rows, derivative)?;
    first_of(3, rows)
}

/// Where the data is zero, and the gradient, zero for segments with more than one zero.
fn zeros_apart(g: &mut GradCtx<'_>, sum: &str, ids: &[Output]) -> Result<(Output, Output)> {
    let (data, grad) = (g.input(0), g.grad(0)?);
    let zero = g.constant(0.0, g.dtype(data))?;
    let is_zero = g.apply("Equal", &[data, zero])?;
    let ones = g.cast(is_zero, DType::I32)?;
    let mut inputs = vec![ones];
    inputs.extend_from_slice(ids);
    let count = g.apply(sum, &inputs)?;
    let one = g.constant(1.0, DType::I32)?;
    let many = g.apply("Greater", &[count, one])?;
    let zeros = g.f("ZerosLike", grad)?;
    let grad = g.apply("SelectV2", &[many, zeros, grad])?;
    Ok((is_zero, grad))
}

/// Rows of `values` by index.
fn gathered(g: &mut GradCtx<'_>, values: Output, indices: Output) -> Result<Output> {
    let axis = g.builder().constant(Tensor::scalar(0i32))?;
    g.apply("GatherV2", &[values, indices, axis])
}

/// `shape` followed by this many ones.
fn extended(g: &mut GradCtx<'_>, shape: Output, ones: Output) -> Result<Output> {
    let zero = g.builder().constant(Tensor::scalar(0i32))?;
    let one = g.builder().constant(Tensor::scalar(1i32))?;
    let count = g.apply("ExpandDims", &[ones, zero])?;
    let ones = g.apply("Fill", &[count, one])?;
    let node = g.builder().op("ConcatV2");
    node.list(&[shape, ones]).input(zero).output()
}

/// Segment ids of which some may be negative.
struct Places {
    ids: Output,
    /// The ids, zero where negative.
    clipped: Output,
}

impl Places {
    fn new(g: &mut GradCtx<'_>) -> Result<Places> {
        let ids = g.input(1);
        let zeros = g.f("ZerosLike", ids)?;
        let clipped = g.apply("Maximum", &[ids, zeros])?;
        Ok(Places { ids, clipped })
    }

    /// Rows of `values` by id, zeros where the id is negative.
    fn gather(&self, g: &mut GradCtx<'_>, values: Output) -> Result<Output> {
        let rows = gathered(g, values, self.clipped)?;
        let mask = self.mask(g, rows)?;
        let zeros = g.f("ZerosLike", rows)?;
        g.apply("SelectV2", &[mask, rows, zeros])
    }

    /// Whether ids are not negative, in a shape that broadcasts to that of `rows`.
    fn mask(&self, g: &mut GradCtx<'_>, rows: Output) -> Result<Output> {
        let zero = g.constant(0.0, g.dtype(self.ids))?;
        let is_there = g.apply("GreaterEqual", &[self.ids, zero])?;
        let (rank, part) = (g.f("Rank", rows)?, g.f("Rank", is_there)?);
        let rest = g.sub(rank, part)?;
        let shape = g.shape(is_there)?;
        let shape = extended(g, shape, rest)?;
        g.apply("Reshape", &[is_there, shape])
    }
}
