//! Matrices in the last two dimensions: solves, factorisations, eigenvalues.

mod carried;
mod determinant;
mod eigen;
mod factor;
mod functions;
mod gradients;
mod qr;
mod solve;
mod svd;
mod triangular;
mod tridiagonal;

use crate::Family;
use crate::room::gathered;

pub(crate) static FAMILY: Family = Family {
    name: "linalg",
    ops: &[],
    tables: &[
        &determinant::OPS,
        &eigen::OPS,
        &factor::OPS,
        &functions::OPS,
        &qr::OPS,
        &solve::OPS,
        &svd::OPS,
        &triangular::OPS,
        &tridiagonal::OPS,
    ],
};

pub(crate) use carried::Carried;
use carried::each;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{DType, Shape};

/// What these ops take.
const TYPES: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// A kernel for the carried type of attr `T`.
macro_rules! by_carried {
    ($node:expr, $s:ident => $body:expr) => {
        if $node.attrs.dtype("T")?.is_complex() {
            type $s = tensorfleet_tensor::Complex64;
            $body
        } else {
            type $s = f64;
            $body
        }
    };
}
use by_carried;

/// Rows, columns and the dimensions before.
struct Matrices {
    batch: Vec<i64>,
    rows: usize,
    cols: usize,
}

impl Matrices {
    fn of(shape: &Shape, input: usize) -> Result<Matrices> {
        ensure!(
            shape.rank() >= 2,
            invalid_argument,
            "Input tensor {input} must have rank >= 2, got {}",
            shape.rank()
        );
        let inner = shape.rank() - 2;
        Ok(Matrices {
            batch: shape.dims()[..inner].to_vec(),
            rows: shape.dim(inner),
            cols: shape.dim(inner + 1),
        })
    }

    /// The side of square matrices.
    fn square(shape: &Shape) -> Result<Matrices> {
        let found = Matrices::of(shape, 0)?;
        ensure!(
            found.rows == found.cols,
            invalid_argument,
            "Input matrix must be square."
        );
        Ok(found)
    }

    fn count(&self) -> usize {
        count(&self.batch)
    }

    fn size(&self) -> usize {
        self.rows * self.cols
    }

    /// The shape of as many results with these dimensions.
    fn shape(&self, inner: &[usize]) -> Result<Shape> {
        let mut dims = self.batch.clone();
        dims.extend(inner.iter().map(|dim| *dim as i64));
        Shape::new(&dims)
    }
}

/// How many matrices there are of these batch dimensions: matrices without elements may be more than fit.
fn count(batch: &[i64]) -> usize {
    let dims = batch.iter().map(|dim| *dim as usize);
    dims.fold(1, usize::saturating_mul)
}

/// Batch dimensions, and for each matrix of them those of two operands.
type Broadcast = (Vec<i64>, Vec<[usize; 2]>);

/// For two lists of batch dimensions: the dimensions of the result, and for each of its places those of the operands.
fn broadcast(a: &[i64], b: &[i64]) -> Result<Option<Broadcast>> {
    let rank = a.len().max(b.len());
    let at = |dims: &[i64], axis: usize| {
        let missing = rank - dims.len();
        if axis < missing {
            1
        } else {
            dims[axis - missing]
        }
    };
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        dims.push(match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return Ok(None),
        });
    }
    let places = (0..count(&dims)).map(|mut place| {
        let (mut from, mut stride) = ([0, 0], [1, 1]);
        for axis in (0..rank).rev() {
            let dim = dims[axis] as usize;
            let index = place % dim;
            place /= dim;
            for (side, own) in [at(a, axis), at(b, axis)].into_iter().enumerate() {
                if own != 1 {
                    from[side] += index * stride[side];
                    stride[side] *= own as usize;
                }
            }
        }
        from
    });
    let places = gathered(places)?;
    Ok(Some((dims, places)))
}
