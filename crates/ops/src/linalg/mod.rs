//! Matrices in the last two dimensions: solves, factorisations, eigenvalues.

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

use tensorfleet_math::linalg::Scalar;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{Complex32, Complex64, DType, Shape, Tensor, f16};

/// What these ops take.
const TYPES: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// The number type that a dtype is carried in: double precision, real or complex.
pub(crate) trait Carried: Scalar {
    fn read(tensor: &Tensor) -> Result<Vec<Self>>;
    fn write(values: Vec<Self>, dtype: DType, shape: Shape) -> Result<Tensor>;
}

impl Carried for f64 {
    fn read(tensor: &Tensor) -> Result<Vec<f64>> {
        Ok(match tensor.dtype() {
            DType::F64 => tensor.slice::<f64>()?.to_vec(),
            DType::F16 => tensor.slice::<f16>()?.iter().map(|x| x.to_f64()).collect(),
            _ => tensor
                .slice::<f32>()?
                .iter()
                .map(|x| f64::from(*x))
                .collect(),
        })
    }

    fn write(values: Vec<f64>, dtype: DType, shape: Shape) -> Result<Tensor> {
        let values = values.into_iter();
        match dtype {
            DType::F64 => Tensor::from_vec(shape, values.collect()),
            DType::F32 => Tensor::from_vec(shape, values.map(|x| x as f32).collect()),
            DType::F16 => Tensor::from_vec(shape, values.map(f16::from_f64).collect()),
            other => Err(internal!("no matrices of {other}")),
        }
    }
}

impl Carried for Complex64 {
    fn read(tensor: &Tensor) -> Result<Vec<Complex64>> {
        let wide = |x: &Complex32| Complex64::new(f64::from(x.re), f64::from(x.im));
        Ok(match tensor.dtype() {
            DType::C128 => tensor.slice::<Complex64>()?.to_vec(),
            DType::C64 => tensor.slice::<Complex32>()?.iter().map(wide).collect(),
            _ => {
                let real = f64::read(tensor)?;
                real.into_iter().map(|x| Complex64::new(x, 0.0)).collect()
            }
        })
    }

    fn write(values: Vec<Complex64>, dtype: DType, shape: Shape) -> Result<Tensor> {
        let narrow = |x: Complex64| Complex32::new(x.re as f32, x.im as f32);
        match dtype {
            DType::C128 => Tensor::from_vec(shape, values),
            DType::C64 => Tensor::from_vec(shape, values.into_iter().map(narrow).collect()),
            other => Err(internal!("no complex matrices of {other}")),
        }
    }
}

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
        self.batch.iter().map(|dim| *dim as usize).product()
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

/// For two lists of batch dimensions: the dimensions of the result, and for each of its places those of the operands.
fn broadcast(a: &[i64], b: &[i64]) -> Option<(Vec<i64>, Vec<[usize; 2]>)> {
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
            _ => return None,
        });
    }
    let count: usize = dims.iter().map(|dim| *dim as usize).product();
    let places = (0..count).map(|mut place| {
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
    let places = places.collect();
    Some((dims, places))
}
