//! Small pieces that gradient rules of several ops build their graphs from.

use tensorfleet_graph::Output;
use tensorfleet_graph::gradient::GradCtx;
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Tensor};

/// An int32 scalar.
pub(crate) fn int(g: &mut GradCtx<'_>, value: i32) -> Result<Output> {
    g.builder().constant(Tensor::scalar(value))
}

/// An integer scalar of the dtype of `like`.
pub(crate) fn int_like(g: &mut GradCtx<'_>, value: i32, like: Output) -> Result<Output> {
    match g.dtype(like) {
        DType::I64 => g.builder().constant(Tensor::scalar(i64::from(value))),
        DType::I16 => g.builder().constant(Tensor::scalar(value as i16)),
        _ => int(g, value),
    }
}

/// `Shape` with this dtype.
pub(crate) fn shape_as(g: &mut GradCtx<'_>, value: Output, dtype: DType) -> Result<Output> {
    let out_type = if dtype == DType::I64 {
        DType::I64
    } else {
        DType::I32
    };
    let node = g.builder().op("Shape").input(value);
    let shape = node.attr("out_type", out_type).output()?;
    g.cast(shape, dtype)
}

/// `0, 1, …, rank - 1`.
pub(crate) fn all_axes(g: &mut GradCtx<'_>, value: Output) -> Result<Output> {
    let rank = g.apply("Rank", &[value])?;
    let (zero, one) = (int(g, 0)?, int(g, 1)?);
    g.apply("Range", &[zero, rank, one])
}

/// `vector[begin:]`, or `vector[begin:end]`.
pub(crate) fn part(
    g: &mut GradCtx<'_>,
    vector: Output,
    begin: Output,
    end: Option<Output>,
) -> Result<Output> {
    let zero = int(g, 0)?;
    let begin = g.apply("ExpandDims", &[begin, zero])?;
    let end_index = match end {
        Some(end) => g.apply("ExpandDims", &[end, zero])?,
        None => begin,
    };
    let one = int_like(g, 1, begin)?;
    let strides = g.apply("ExpandDims", &[one, zero])?;
    g.builder()
        .op("StridedSlice")
        .input(vector)
        .input(begin)
        .input(end_index)
        .input(strides)
        .attr("end_mask", i64::from(end.is_none()))
        .output()
}

/// `vector[index]`.
pub(crate) fn element(g: &mut GradCtx<'_>, vector: Output, index: Output) -> Result<Output> {
    let axis = int(g, 0)?;
    g.apply("GatherV2", &[vector, index, axis])
}

/// Vectors one after the other.
pub(crate) fn join(g: &mut GradCtx<'_>, vectors: &[Output]) -> Result<Output> {
    let axis = int(g, 0)?;
    g.builder()
        .op("ConcatV2")
        .list(vectors)
        .input(axis)
        .output()
}

/// The sum of `whole` without `part`: the gradient of a padding value, where `part` went elsewhere.
pub(crate) fn sum_beside(g: &mut GradCtx<'_>, whole: Output, part: Output) -> Result<Output> {
    let axes = all_axes(g, whole)?;
    let whole = g.apply("Sum", &[whole, axes])?;
    let axes = all_axes(g, part)?;
    let part = g.apply("Sum", &[part, axes])?;
    g.apply("Sub", &[whole, part])
}
