//! [`Gathered`]: what an accumulator has summed so far, dense or as slices.

use smallvec::SmallVec;
use tensorfleet_status::{Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Element, PartialShape, Tensor, f16};

/// A gradient, or the sum of some.
pub(super) enum Gathered {
    Dense(Tensor),
    Slices(Slices),
}

/// Rows of a larger tensor; `counts` says how many gradients each row is the sum of.
pub(super) struct Slices {
    pub(super) indices: Vec<i64>,
    pub(super) counts: Vec<i64>,
    pub(super) values: Tensor,
}

impl Gathered {
    /// Slices as they come in: one index for each row of `values`.
    pub(super) fn slices(indices: &Tensor, values: Tensor) -> Result<Gathered> {
        ensure!(
            indices.rank() == 1,
            invalid_argument,
            "Input indices should be vector but received shape: {}",
            indices.shape()
        );
        ensure!(
            values.rank() > 0,
            invalid_argument,
            "Values cannot be 0-dimensional."
        );
        ensure!(
            values.shape().dim(0) == indices.elements(),
            invalid_argument,
            "Expected {} non-empty input values, got {}",
            indices.elements(),
            values.shape().dim(0)
        );
        let indices = indices.slice::<i64>()?.to_vec();
        Ok(Gathered::Slices(Slices {
            counts: vec![1; indices.len()],
            indices,
            values,
        }))
    }

    pub(super) fn dtype(&self) -> DType {
        match self {
            Gathered::Dense(tensor) => tensor.dtype(),
            Gathered::Slices(slices) => slices.values.dtype(),
        }
    }

    /// Whether this gradient fits the shape of the accumulator and what it has summed.
    pub(super) fn check(&self, shape: &PartialShape, sum: Option<&Gathered>) -> Result<()> {
        match (self, sum) {
            (Gathered::Dense(gradient), sum) => {
                let mismatch = |expected: &dyn std::fmt::Display| {
                    invalid_argument!(
                        "Shape mismatch: expected {expected}, got {}",
                        gradient.shape()
                    )
                };
                if !shape.admits(gradient.shape()) {
                    return Err(mismatch(shape));
                }
                match sum {
                    Some(Gathered::Dense(sum)) if sum.shape() != gradient.shape() => {
                        Err(mismatch(sum.shape()))
                    }
                    _ => Ok(()),
                }
            }
            (Gathered::Slices(gradient), Some(Gathered::Slices(sum))) => {
                gradient.check_bounds(shape)?;
                let (wanted, found) = (sum.values.shape(), gradient.values.shape());
                ensure!(
                    wanted.rank() == found.rank(),
                    invalid_argument,
                    "Shape mismatch: expected values rank {}, got {}",
                    wanted.rank(),
                    found.rank()
                );
                check_rows(wanted.dims(), found.dims())
            }
            (Gathered::Slices(gradient), _) => {
                gradient.check_bounds(shape)?;
                let wanted = shape.dims().unwrap_or(&[]);
                let found = gradient.values.shape();
                ensure!(
                    wanted.len() <= found.rank(),
                    invalid_argument,
                    "Shape mismatch: expected values rank at least {}, got {}",
                    wanted.len(),
                    found.rank()
                );
                check_rows(wanted, found.dims())
            }
        }
    }

    /// The sum with one more gradient, which was checked.
    pub(super) fn plus(self, gradient: Gathered) -> Result<Gathered> {
        match (self, gradient) {
            (Gathered::Dense(mut sum), Gathered::Dense(gradient)) => {
                add(&mut sum, &gradient)?;
                Ok(Gathered::Dense(sum))
            }
            (Gathered::Slices(sum), Gathered::Slices(gradient)) => {
                Ok(Gathered::Slices(sum.plus(&gradient)?))
            }
            _ => Err(internal!("dense and sparse gradients in one accumulator")),
        }
    }

    /// The mean of `count` gradients; of slices each row is divided by how often it came.
    pub(super) fn mean(self, count: i64) -> Result<Gathered> {
        match self {
            Gathered::Dense(mut sum) => {
                let elements = sum.elements();
                divide(&mut sum, &[count], elements)?;
                Ok(Gathered::Dense(sum))
            }
            Gathered::Slices(mut slices) => {
                let row = slices.row();
                divide(&mut slices.values, &slices.counts, row)?;
                Ok(Gathered::Slices(slices))
            }
        }
    }

    /// The outputs of a take. Of slices: indices, values, and the shape of the whole as far as `shape` says.
    pub(super) fn outputs(self, shape: &PartialShape) -> SmallVec<[Tensor; 3]> {
        match self {
            Gathered::Dense(value) => SmallVec::from_iter([value]),
            Gathered::Slices(slices) => {
                let mut dims = slices.values.shape().dims().to_vec();
                if let Some(first) = dims.first_mut() {
                    *first = shape.dim(0).unwrap_or(-1);
                }
                SmallVec::from_iter([
                    Tensor::vector(&slices.indices),
                    slices.values,
                    Tensor::vector(&dims),
                ])
            }
        }
    }
}

impl Slices {
    /// Elements of one row.
    fn row(&self) -> usize {
        self.values.shape().elements_in(1..self.values.rank())
    }

    fn check_bounds(&self, shape: &PartialShape) -> Result<()> {
        let Some(limit) = shape.dim(0).filter(|dim| *dim >= 0) else {
            return Ok(());
        };
        match self.indices.iter().position(|index| *index >= limit) {
            None => Ok(()),
            Some(slice) => Err(invalid_argument!(
                "Shape mismatch: index of slice {slice} exceeded limits of shape; index is {} exceeded {limit}",
                self.indices[slice]
            )),
        }
    }

    /// Merges two lists of rows, each in the order of its indices.
    fn plus(&self, other: &Slices) -> Result<Slices> {
        let mut indices = Vec::with_capacity(self.indices.len() + other.indices.len());
        let mut counts = Vec::with_capacity(indices.capacity());
        let mut sources = Vec::with_capacity(indices.capacity());
        let (mut i, mut j) = (0, 0);
        loop {
            let (mine, theirs) = (self.indices.get(i), other.indices.get(j));
            let (index, from) = match (mine, theirs) {
                (None, None) => break,
                (Some(mine), Some(theirs)) if mine == theirs => (*mine, (Some(i), Some(j))),
                (Some(mine), Some(theirs)) if mine > theirs => (*theirs, (None, Some(j))),
                (None, Some(theirs)) => (*theirs, (None, Some(j))),
                (Some(mine), _) => (*mine, (Some(i), None)),
            };
            let count = |list: &[i64], at: Option<usize>| {
                at.and_then(|at| list.get(at)).copied().unwrap_or(0)
            };
            indices.push(index);
            counts.push(count(&self.counts, from.0) + count(&other.counts, from.1));
            i += usize::from(from.0.is_some());
            j += usize::from(from.1.is_some());
            sources.push(from);
        }
        let shape = other.values.shape().with_dim(0, indices.len() as i64)?;
        let mut values = Tensor::zeros(self.values.dtype(), shape)?;
        let (row, mine, theirs) = (self.row(), &self.values, &other.values);
        match values.dtype() {
            DType::F32 => add_rows::<f32>(&mut values, mine, theirs, &sources, row)?,
            DType::F64 => add_rows::<f64>(&mut values, mine, theirs, &sources, row)?,
            DType::F16 => add_rows::<f16>(&mut values, mine, theirs, &sources, row)?,
            other => return Err(internal!("gradients of {other} are not accumulated")),
        }
        Ok(Slices {
            indices,
            counts,
            values,
        })
    }
}

/// Dimensions of values past the first against those wanted; -1 wants any.
fn check_rows(wanted: &[i64], found: &[i64]) -> Result<()> {
    for (axis, (wanted, found)) in wanted.iter().zip(found).enumerate().skip(1) {
        ensure!(
            *wanted < 0 || wanted == found,
            invalid_argument,
            "Shape mismatch: expected values dim {axis} to be {wanted}, got {found}"
        );
    }
    Ok(())
}

fn add_rows<T: Element + Copy + std::ops::Add<Output = T>>(
    out: &mut Tensor,
    mine: &Tensor,
    theirs: &Tensor,
    sources: &[(Option<usize>, Option<usize>)],
    row: usize,
) -> Result<()> {
    if row == 0 {
        return Ok(());
    }
    let (mine, theirs) = (mine.slice::<T>()?, theirs.slice::<T>()?);
    let rows = out.slice_mut::<T>()?.chunks_exact_mut(row);
    for (slot, (first, second)) in rows.zip(sources) {
        let mut is_set = false;
        for (values, at) in [(mine, first), (theirs, second)] {
            let Some(part) = at.and_then(|at| values.get(at * row..(at + 1) * row)) else {
                continue;
            };
            if is_set {
                slot.iter_mut()
                    .zip(part)
                    .for_each(|(slot, value)| *slot = *slot + *value);
            } else {
                slot.copy_from_slice(part);
            }
            is_set = true;
        }
    }
    Ok(())
}

fn add(sum: &mut Tensor, gradient: &Tensor) -> Result<()> {
    fn run<T: Element + Copy + std::ops::Add<Output = T>>(
        sum: &mut Tensor,
        gradient: &Tensor,
    ) -> Result<()> {
        for (slot, value) in sum.slice_mut::<T>()?.iter_mut().zip(gradient.slice::<T>()?) {
            *slot = *slot + *value;
        }
        Ok(())
    }
    match sum.dtype() {
        DType::F32 => run::<f32>(sum, gradient),
        DType::F64 => run::<f64>(sum, gradient),
        DType::F16 => run::<f16>(sum, gradient),
        other => Err(internal!("gradients of {other} are not accumulated")),
    }
}

/// Divides each `row` elements by the next of `counts`.
fn divide(sum: &mut Tensor, counts: &[i64], row: usize) -> Result<()> {
    fn run<T: Element + Copy + std::ops::Div<Output = T>>(
        sum: &mut Tensor,
        counts: &[i64],
        row: usize,
        number: fn(i64) -> T,
    ) -> Result<()> {
        let rows = sum.slice_mut::<T>()?.chunks_exact_mut(row.max(1));
        for (row, count) in rows.zip(counts) {
            let divisor = number(*count);
            row.iter_mut().for_each(|value| *value = *value / divisor);
        }
        Ok(())
    }
    match sum.dtype() {
        DType::F32 => run::<f32>(sum, counts, row, |count| count as f32),
        DType::F64 => run::<f64>(sum, counts, row, |count| count as f64),
        DType::F16 => run::<f16>(sum, counts, row, |count| f16::from_f64(count as f64)),
        other => Err(internal!("gradients of {other} are not accumulated")),
    }
}
