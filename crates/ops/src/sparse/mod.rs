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
use crate::math::elementwise::lengths;

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

use std::borrow::Cow;

use tensorfleet_kernel::KernelCtx;
use tensorfleet_math::movement::flatten_coordinates;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

/// The coordinates of a sparse tensor, checked against its shape.
struct Coordinates<'a> {
    /// Row-major, `rank` numbers per value.
    flat: Cow<'a, [i64]>,
    /// The position of each value in the dense tensor.
    positions: Vec<i64>,
    rank: usize,
    shape: Shape,
}

impl<'a> Coordinates<'a> {
    /// Reads indices and shape; every index must lie within the shape.
    fn new(
        par: &dyn Par,
        indices: &'a Tensor,
        values: &Tensor,
        shape: &Tensor,
    ) -> Result<Coordinates<'a>> {
        let Rows { flat, rank } = Rows::new(indices, values, shape)?;
        let shape = Shape::new(&integers(shape)?)?;
        match flatten_coordinates(par, &flat, &lengths(&shape)) {
            Ok(positions) => Ok(Coordinates {
                flat,
                positions,
                rank,
                shape,
            }),
            Err(bad) => Err(outside(&flat, bad.position, &shape)),
        }
    }

    fn len(&self) -> usize {
        self.positions.len()
    }

    fn row(&self, index: usize) -> &[i64] {
        &self.flat[index * self.rank..(index + 1) * self.rank]
    }
}

/// The coordinates of a sparse tensor, one row per value, wherever they lie.
struct Rows<'a> {
    flat: Cow<'a, [i64]>,
    rank: usize,
}

impl<'a> Rows<'a> {
    /// Reads indices; only the sizes of the three parts are checked.
    fn new(indices: &'a Tensor, values: &Tensor, shape: &Tensor) -> Result<Rows<'a>> {
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
                "Number of elements in indices ({count}) and values ({}) do not match.",
                values.elements()
            ));
        }
        if shape.elements() != rank {
            return Err(invalid_argument!(
                "Index rank ({rank}) and shape rank ({}) do not match.",
                shape.elements()
            ));
        }
        let flat = borrowed_integers(indices)?;
        Ok(Rows { flat, rank })
    }

    fn row(&self, index: usize) -> &[i64] {
        &self.flat[index * self.rank..(index + 1) * self.rank]
    }

    /// The position of each value in a dense tensor of these dimensions, if each has one.
    fn positions(&self, par: &dyn Par, dims: &[i64]) -> Option<Vec<i64>> {
        let shape = Shape::new(dims).ok()?;
        flatten_coordinates(par, &self.flat, &lengths(&shape)).ok()
    }
}

/// All elements of a tensor of integers, which are mostly what they must become.
fn borrowed_integers(tensor: &Tensor) -> Result<Cow<'_, [i64]>> {
    Ok(match tensor.dtype() {
        DType::I64 => Cow::Borrowed(tensor.slice::<i64>()?),
        _ => Cow::Owned(integers(tensor)?),
    })
}

#[cold]
fn outside(flat: &[i64], row: usize, shape: &Shape) -> Status {
    let index = flat.chunks_exact(shape.rank().max(1)).nth(row);
    let mut pairs = index.unwrap_or_default().iter().zip(shape.iter());
    let axis = pairs.position(|(at, dim)| !(0..*dim).contains(at));
    let axis = axis.unwrap_or(0);
    let at = index.and_then(|index| index.get(axis)).unwrap_or(&0);
    invalid_argument!(
        "index ({at}) at position {row} is out of bounds for dimension {axis} of shape {shape}"
    )
}

/// The coordinates in inputs `first`, `first + 1` (values) and `first + 2` (shape).
fn coordinates<'a>(ctx: &'a KernelCtx<'_>, first: usize) -> Result<Coordinates<'a>> {
    Coordinates::new(
        ctx.par(),
        ctx.input(first)?,
        ctx.input(first + 1)?,
        ctx.input(first + 2)?,
    )
}

/// Where two sparse tensors of one shape, in row-major order, have values: hands `visit` the places in both of each coordinate
/// that either has.
fn union(
    a: &Coordinates<'_>,
    b: &Coordinates<'_>,
    mut visit: impl FnMut(Option<usize>, Option<usize>),
) {
    let (mut i, mut j) = (0, 0);
    while let (Some(at_a), Some(at_b)) = (a.positions.get(i), b.positions.get(j)) {
        let (in_a, in_b) = (at_a <= at_b, at_b <= at_a);
        visit(in_a.then_some(i), in_b.then_some(j));
        i += usize::from(in_a);
        j += usize::from(in_b);
    }
    (i..a.len()).for_each(|i| visit(Some(i), None));
    (j..b.len()).for_each(|j| visit(None, Some(j)));
}

/// The rows of coordinates and the values of a sparse tensor in the making.
struct Union<'a, T> {
    a: &'a Coordinates<'a>,
    b: &'a Coordinates<'a>,
    indices: Vec<i64>,
    values: Vec<T>,
}

impl<'a, T: Element> Union<'a, T> {
    fn new(a: &'a Coordinates<'a>, b: &'a Coordinates<'a>) -> Union<'a, T> {
        let places = a.len().max(b.len());
        Union {
            a,
            b,
            indices: Vec::with_capacity(places * a.rank),
            values: Vec::with_capacity(places),
        }
    }

    /// Adds a value at a place of either.
    fn push(&mut self, place: (Option<usize>, Option<usize>), value: T) {
        match place {
            (Some(at), _) => extend_by_row(&mut self.indices, self.a.row(at)),
            (None, Some(at)) => extend_by_row(&mut self.indices, self.b.row(at)),
            (None, None) => return,
        }
        self.values.push(value);
    }

    /// Indices and values.
    fn finish(self) -> Result<(Tensor, Tensor)> {
        let count = self.values.len();
        Ok((
            Tensor::from_vec(Shape::matrix(count, self.a.rank)?, self.indices)?,
            Tensor::from_vec(Shape::vector(count), self.values)?,
        ))
    }
}

/// Most sparse tensors are matrices: their rows are copied without a loop.
fn extend_by_row(to: &mut Vec<i64>, row: &[i64]) {
    match row {
        [a, b] => to.extend([*a, *b]),
        row => to.extend_from_slice(row),
    }
}
