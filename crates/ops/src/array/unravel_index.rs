//! `UnravelIndex`: from places in a flat array to coordinates.
//!
//! TensorFlow: UnravelIndex(indices: Tidx, dims: Tidx) -> output: Tidx, a column of coordinates for each index.

use tensorfleet_graph::example::{ex, ex_err, x};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, UNKNOWN_DIM};

use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "UnravelIndex",
    inputs: &["indices: Tidx", "dims: Tidx"],
    outputs: &["output: Tidx"],
    attrs: &["Tidx: {int32, int64} = DT_INT32"],
    infer,
    gradient: Gradient::Stop("coordinates are integers"),
    kernels: &[cpu(&[("Tidx", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "several",
            &[x(&[3], &[2.0, 5.0, 7.0]), x(&[2], &[3.0, 3.0])],
            &[x(&[2, 3], &[0.0, 1.0, 2.0, 2.0, 2.0, 1.0])],
        ),
        ex(
            "one",
            &[x(&[], &[1621.0]), x(&[4], &[6.0, 7.0, 8.0, 9.0])],
            &[x(&[4], &[3.0, 1.0, 4.0, 1.0])],
        ),
        ex(
            "below zero",
            &[x(&[1], &[-4.0]), x(&[2], &[3.0, 3.0])],
            &[x(&[2, 1], &[-1.0, -1.0])],
        ),
        ex(
            "no dimensions",
            &[x(&[1], &[0.0]), x(&[0], &[])],
            &[x(&[0, 1], &[])],
        ),
        ex_err(
            "out of bounds",
            &[],
            &[x(&[1], &[9.0]), x(&[2], &[3.0, 3.0])],
            Code::InvalidArgument,
            "index is out of bound as with dims",
        ),
        ex_err(
            "zero",
            &[],
            &[x(&[1], &[0.0]), x(&[2], &[3.0, 0.0])],
            Code::InvalidArgument,
            "Input dims cannot contain a dim of zero, but dims contains zero at index 1",
        ),
        ex_err(
            "negative dimension",
            &[],
            &[x(&[1], &[0.0]), x(&[2], &[-3.0, 1.0])],
            Code::InvalidArgument,
            "Input dims cannot be negative. Got dim = -3 at index 0",
        ),
        ex_err(
            "too large",
            &[("Tidx", "int32")],
            &[x(&[1], &[0.0]), x(&[2], &[65536.0, 65536.0])],
            Code::InvalidArgument,
            "Input dims product is causing integer overflow",
        ),
        ex_err(
            "no index",
            &[],
            &[x(&[0], &[]), x(&[1], &[3.0])],
            Code::InvalidArgument,
            "received empty tensor indices",
        ),
        ex_err(
            "dims are no vector",
            &[],
            &[x(&[1], &[0.0]), x(&[], &[3.0])],
            Code::InvalidArgument,
            "The indices can only be 1-D, got \"[]\"",
        ),
    ],
    ..OpDef::BLANK
};

fn infer(ctx: &mut InferCtx<'_>) -> Result<()> {
    let (indices, dims) = (ctx.input(0), ctx.input(1));
    let rank = dims.dim(0).unwrap_or(UNKNOWN_DIM);
    match indices.dims() {
        Some([]) => ctx.set(0, PartialShape::new(&[rank])),
        Some([count]) => ctx.set(0, PartialShape::new(&[rank, *count])),
        _ => {}
    }
    Ok(())
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("Tidx")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (indices, dims) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            indices.rank() <= 1,
            invalid_argument,
            "The indices can only be scalar or vector, got \"{}\"",
            indices.shape()
        );
        ensure!(
            !indices.is_empty(),
            invalid_argument,
            "received empty tensor indices: shape {}",
            indices.shape()
        );
        ensure!(
            dims.rank() == 1,
            invalid_argument,
            "The indices can only be 1-D, got \"{}\"",
            dims.shape()
        );
        let shape = Shape::vector(dims.elements()).concat(indices.shape())?;
        let (indices, dims) = (ctx.ints(0)?, ctx.ints(1)?);
        let size = size_of_dims(&dims, dtype)?;
        ensure!(
            indices.iter().all(|index| *index < size),
            invalid_argument,
            "index is out of bound as with dims"
        );
        let mut out = Vec::with_capacity(shape.elements());
        let mut stride = size;
        for dim in dims {
            let inner = stride / dim;
            out.extend(indices.iter().map(|index| index % stride / inner));
            stride = inner;
        }
        let out = match dtype {
            DType::I32 => {
                Tensor::from_vec(shape, out.into_iter().map(|at: i64| at as i32).collect())?
            }
            _ => Tensor::from_vec(shape, out)?,
        };
        ctx.set(0, out);
        Ok(())
    })
}

/// The number of places, all of which must be numbers of the dtype.
fn size_of_dims(dims: &[i64], dtype: DType) -> Result<i64> {
    let limit = match dtype {
        DType::I32 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    let mut size = 1i64;
    for (axis, dim) in dims.iter().enumerate() {
        ensure!(
            *dim != 0,
            invalid_argument,
            "Input dims cannot contain a dim of zero, but dims contains zero at index {axis}"
        );
        ensure!(
            *dim > 0,
            invalid_argument,
            "Input dims cannot be negative. Got dim = {dim} at index {axis}"
        );
        let product = size.checked_mul(*dim).filter(|size| *size <= limit);
        size = product.ok_or_else(|| {
            invalid_argument!("Input dims product is causing integer overflow: ({dims:?})")
        })?;
    }
    Ok(size)
}
