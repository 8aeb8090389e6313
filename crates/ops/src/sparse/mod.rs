//! Sparse tensors: indices (one row per value), values, dense shape.

mod add;
mod cross;
pub(crate) mod crossing;
pub(crate) mod csr;
mod dense_add;
mod dense_cwise;
mod edit_distance;
mod extremes;
mod fill_empty_rows;
mod matmul;
mod matmul_dense;
pub(crate) mod parts;
mod reduce;
mod reorder;
mod reshape;
mod serialize;
mod sets;
mod softmax;
mod split;
mod tensors_map;
mod to_dense;
mod value_grads;

use crate::Family;
use crate::math::cast::integers;

pub(crate) static FAMILY: Family = Family {
    name: "sparse",
    ops: &[
        &add::OP,
        &csr::product::OP,
        &csr::sparse_product::OP,
        &dense_add::OP,
        &edit_distance::OP,
        &matmul::OP,
        &matmul_dense::OP,
        &reorder::OP,
        &reshape::OP,
        &softmax::OP,
        &to_dense::OP,
    ],
    tables: &[
        &cross::OPS,
        &csr::cholesky::OPS,
        &csr::convert::OPS,
        &csr::inspect::OPS,
        &dense_cwise::OPS,
        &extremes::OPS,
        &fill_empty_rows::OPS,
        &reduce::OPS,
        &serialize::OPS,
        &sets::OPS,
        &split::OPS,
        &tensors_map::OPS,
        &value_grads::OPS,
    ],
};

use std::cmp::Ordering;

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{Shape, Tensor};

/// The coordinates of a sparse tensor, checked against its shape.
struct Coordinates {
    /// Row-major, `rank` numbers per value.
    flat: Vec<i64>,
    rank: usize,
    shape: Shape,
}

impl Coordinates {
    /// Reads indices and shape; every index must lie within the shape.
    fn new(indices: &Tensor, values: &Tensor, shape: &Tensor) -> Result<Coordinates> {
        if indices.rank() != 2 {
            return Err(invalid_argument!(
                "Input indices should be a matrix but received shape {}",
                indices.shape()
            ));
        }
        if values.rank() != 1 || shape.rank() != 1 {
            return Err(invalid_argument!(
                "values and shape should be vectors but received shapes {} and {}",
                values.shape(),
                shape.shape()
            ));
        }
        let (count, rank) = (indices.shape().dim(0), indices.shape().dim(1));
        if values.elements() != count {
            return Err(invalid_argument!(
                "Number of elements in indices ({}) and values ({}) do not match.",
                indices.shape().dim(0),
                values.elements()
            ));
        }
        if shape.elements() != rank {
            return Err(invalid_argument!(
                "Index rank ({}) and shape rank ({}) do not match.",
                indices.shape().dim(1),
                shape.elements()
            ));
        }
        let shape = Shape::new(&integers(shape)?)?;
        let flat = integers(indices)?;
        for (row, index) in flat.chunks_exact(rank.max(1)).enumerate() {
            if let Some(axis) = (0..rank).find(|axis| !(0..shape[*axis]).contains(&index[*axis])) {
                return Err(invalid_argument!(
                    "index ({}) at position {row} is out of bounds for dimension {axis} of shape {shape}",
                    index[axis]
                ));
            }
        }
        Ok(Coordinates { flat, rank, shape })
    }

    fn len(&self) -> usize {
        self.flat.len() / self.rank.max(1)
    }

    fn row(&self, index: usize) -> &[i64] {
        &self.flat[index * self.rank..(index + 1) * self.rank]
    }

    /// The position of a value in the dense tensor.
    fn position(&self, index: usize) -> usize {
        self.row(index)
            .iter()
            .zip(self.shape.iter())
            .fold(0, |position, (at, dim)| {
                position * *dim as usize + *at as usize
            })
    }
}

/// The coordinates in inputs `first`, `first + 1` (values) and `first + 2` (shape).
fn coordinates(ctx: &KernelCtx<'_>, first: usize) -> Result<Coordinates> {
    Coordinates::new(
        ctx.input(first)?,
        ctx.input(first + 1)?,
        ctx.input(first + 2)?,
    )
}

/// Where two sparse tensors in row-major order have values: the places in both of each coordinate that either has.
fn union(a: &Coordinates, b: &Coordinates) -> Vec<(Option<usize>, Option<usize>)> {
    let mut places = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let order = match (i < a.len(), j < b.len()) {
            (true, true) => a.row(i).cmp(b.row(j)),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (in_a, in_b) = (order != Ordering::Greater, order != Ordering::Less);
        places.push((in_a.then_some(i), in_b.then_some(j)));
        i += usize::from(in_a);
        j += usize::from(in_b);
    }
    places
}

/// The coordinates of such places as a matrix.
fn union_indices(
    a: &Coordinates,
    b: &Coordinates,
    places: &[(Option<usize>, Option<usize>)],
) -> Result<Tensor> {
    let mut indices = Vec::with_capacity(places.len() * a.rank);
    for place in places {
        match place {
            (Some(at), _) => indices.extend_from_slice(a.row(*at)),
            (None, Some(at)) => indices.extend_from_slice(b.row(*at)),
            (None, None) => {}
        }
    }
    Tensor::from_vec(Shape::matrix(places.len(), a.rank)?, indices)
}
