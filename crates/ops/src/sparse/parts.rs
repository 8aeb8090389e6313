//! [`Part`]: one of several sparse tensors that are stored, put together or taken apart.

use crate::room::filled;
use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor, Word, by_word};

/// A sparse tensor.
#[derive(Clone)]
pub(crate) struct Part {
    /// Row-major, `shape.len()` numbers per value.
    pub(crate) indices: Vec<i64>,
    pub(crate) values: Tensor,
    pub(crate) shape: Vec<i64>,
}

impl Part {
    /// The one in inputs `first` to `first + 2`; only the sizes are checked.
    pub(crate) fn of(ctx: &KernelCtx<'_>, first: usize) -> Result<Part> {
        Part::new(
            ctx.input(first)?,
            ctx.input(first + 1)?,
            ctx.input(first + 2)?,
        )
    }

    pub(crate) fn new(indices: &Tensor, values: &Tensor, shape: &Tensor) -> Result<Part> {
        ensure!(
            indices.rank() == 2,
            invalid_argument,
            "Input indices should be a matrix but received shape {}",
            indices.shape()
        );
        ensure!(
            values.rank() == 1,
            invalid_argument,
            "Input values should be a vector but received shape {}",
            values.shape()
        );
        ensure!(
            shape.rank() == 1,
            invalid_argument,
            "Input shape should be a vector but received shape {}",
            shape.shape()
        );
        ensure!(
            values.elements() == indices.shape().dim(0),
            invalid_argument,
            "Number of elements in indices ({}) and values ({}) do not match.",
            indices.shape().dim(0),
            values.elements()
        );
        ensure!(
            shape.elements() == indices.shape().dim(1),
            invalid_argument,
            "Index rank ({}) and shape rank ({}) do not match.",
            indices.shape().dim(1),
            shape.elements()
        );
        Ok(Part {
            indices: indices.slice::<i64>()?.to_vec(),
            values: values.clone(),
            shape: shape.slice::<i64>()?.to_vec(),
        })
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.values.elements()
    }

    /// The coordinates of value `at`.
    pub(crate) fn row(&self, at: usize) -> &[i64] {
        let rank = self.rank();
        self.indices
            .get(at * rank..(at + 1) * rank)
            .unwrap_or_default()
    }

    /// Fails if a value lies outside of the shape.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        for at in 0..self.len() {
            let mut places = self.row(at).iter().zip(&self.shape);
            ensure!(
                places.all(|(place, dim)| (0..*dim).contains(place)),
                invalid_argument,
                "Sparse index tuple at position {at} is {:?} which is out of bounds of shape {:?}",
                self.row(at),
                self.shape
            );
        }
        Ok(())
    }

    /// Indices, values and shape as tensors.
    pub(crate) fn tensors(self) -> Result<[Tensor; 3]> {
        let shape = Shape::matrix(self.len(), self.rank())?;
        let indices = Tensor::from_vec(shape, self.indices)?;
        Ok([indices, self.values, Tensor::vector(&self.shape)])
    }

    /// Sets outputs `first` to `first + 2`.
    pub(crate) fn set(self, ctx: &mut KernelCtx<'_>, first: usize) -> Result<()> {
        for (index, tensor) in self.tensors()?.into_iter().enumerate() {
            ctx.set(first + index, tensor);
        }
        Ok(())
    }

    /// The parts along dimension 0, each without it.
    pub(crate) fn unstacked(&self) -> Result<Vec<Part>> {
        ensure!(
            self.rank() > 1,
            invalid_argument,
            "Rank of input SparseTensor should be > 1, but saw rank: {}",
            self.rank()
        );
        let count = usize::try_from(self.shape[0])
            .map_err(|_| invalid_argument!("a dimension of {} is negative", self.shape[0]))?;
        // Bounded by what can be stored one by one anyway.
        Shape::new(&[self.shape[0], 8])?;
        let mut rows = filled(Vec::new(), count)?;
        for at in 0..self.len() {
            let first = self.row(at)[0];
            let slot = usize::try_from(first)
                .ok()
                .and_then(|row| rows.get_mut(row));
            slot.ok_or_else(|| {
                invalid_argument!("Received unexpected column 0 value in input SparseTensor: {first} < 0 or >= N (= {count})")
            })?
            .push(at);
        }
        rows.into_iter()
            .map(|rows| {
                let coordinates = rows.iter().flat_map(|at| &self.row(*at)[1..]);
                Ok(Part {
                    indices: coordinates.copied().collect(),
                    values: picked(&self.values, &rows)?,
                    shape: self.shape[1..].to_vec(),
                })
            })
            .collect()
    }

    /// Parts of one rank below `prefix` more dimensions, as large as the largest.
    pub(crate) fn stacked(parts: &[Part], prefix: &[i64], dtype: DType) -> Result<Part> {
        let inner = parts.first().map_or(0, Part::rank);
        let mut shape = prefix.to_vec();
        shape.resize(prefix.len() + inner, 0);
        let mut indices = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            for (dim, own) in shape[prefix.len()..].iter_mut().zip(&part.shape) {
                *dim = (*dim).max(*own);
            }
            let place = unravel(at, prefix);
            for row in 0..part.len() {
                indices.extend_from_slice(&place);
                indices.extend_from_slice(part.row(row));
            }
        }
        let values: Vec<&Tensor> = parts.iter().map(|part| &part.values).collect();
        Ok(Part {
            indices,
            values: joined(dtype, &values)?,
            shape,
        })
    }
}

/// The coordinates of a row-major position.
pub(crate) fn unravel(mut position: usize, dims: &[i64]) -> Vec<i64> {
    let mut out = vec![0; dims.len()];
    for (slot, dim) in out.iter_mut().zip(dims).rev() {
        let dim = usize::try_from(*dim).unwrap_or(1).max(1);
        *slot = (position % dim) as i64;
        position /= dim;
    }
    out
}

/// The values at these places, which must exist.
pub(crate) fn picked(values: &Tensor, places: &[usize]) -> Result<Tensor> {
    fn pick<W: Word>(values: &Tensor, places: &[usize], out: &mut Tensor) -> Result<()> {
        let values = values.words::<W>()?;
        for (slot, place) in out.words_mut::<W>()?.iter_mut().zip(places) {
            if let Some(value) = values.get(*place) {
                *slot = value.clone();
            }
        }
        Ok(())
    }
    let mut out = Tensor::zeros(values.dtype(), Shape::vector(places.len()))?;
    by_word!(values.dtype(), W => pick::<W>(values, places, &mut out))?;
    Ok(out)
}

/// Vectors one after the other.
pub(crate) fn joined(dtype: DType, parts: &[&Tensor]) -> Result<Tensor> {
    fn join<W: Word>(parts: &[&Tensor], out: &mut Tensor) -> Result<()> {
        let mut slots = out.words_mut::<W>()?.iter_mut();
        for part in parts {
            for (value, slot) in part.words::<W>()?.iter().zip(&mut slots) {
                *slot = value.clone();
            }
        }
        Ok(())
    }
    let count = parts.iter().map(|part| part.elements()).sum();
    let mut out = Tensor::zeros(dtype, Shape::vector(count))?;
    by_word!(dtype, W => join::<W>(parts, &mut out))?;
    Ok(out)
}
