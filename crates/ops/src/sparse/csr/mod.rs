//! Sparse matrices in rows (CSR), or batches of them, as values of variant tensors.

pub(super) mod cholesky;
pub(super) mod convert;
mod gradient;
pub(super) mod inspect;
pub(super) mod product;
pub(super) mod sparse_product;

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use tensorfleet_kernel::KernelCtx;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, Shape, Tensor, Variant, VariantObject};

use super::parts::picked;
use crate::room::filled;

/// The name under which they travel.
const TYPE_NAME: &str = "tensorflow::CSRSparseMatrix";

/// What the matrices hold.
const TYPES: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// A matrix, or a batch of matrices of one shape.
#[derive(Clone)]
pub(crate) struct Csr {
    /// Rows and columns, with the number of matrices before them if it is a batch.
    shape: Vec<i64>,
    /// Where the values of each matrix begin, and the end.
    batches: Vec<i32>,
    /// For each matrix, where the values of its rows begin within it, and their end.
    rows: Vec<i32>,
    columns: Vec<i32>,
    values: Tensor,
}

impl VariantObject for Csr {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        // That it has been checked, and the dtype.
        let mut metadata = vec![1, 0, 0, 0];
        metadata.extend(self.values.dtype().number().to_le_bytes());
        let tensors = vec![
            Tensor::vector(&self.shape),
            Tensor::vector(&self.batches),
            Tensor::vector(&self.rows),
            Tensor::vector(&self.columns),
            self.values.clone(),
        ];
        Some((metadata.into(), tensors))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Csr {
    /// The one in a variant, also if it came over the wire.
    fn of(variant: &Variant) -> Option<Cow<'_, Csr>> {
        match variant {
            Variant::Opaque(opaque) if opaque.type_name == TYPE_NAME => {
                let [shape, batches, rows, columns, values] = opaque.tensors.as_slice() else {
                    return None;
                };
                let csr = Csr {
                    shape: shape.slice::<i64>().ok()?.to_vec(),
                    batches: batches.slice::<i32>().ok()?.to_vec(),
                    rows: rows.slice::<i32>().ok()?.to_vec(),
                    columns: columns.slice::<i32>().ok()?.to_vec(),
                    values: values.clone(),
                };
                csr.is_sound().then_some(Cow::Owned(csr))
            }
            other => other.downcast::<Csr>().map(Cow::Borrowed),
        }
    }

    /// Whether all numbers lie where they may: what a peer sent need not.
    fn is_sound(&self) -> bool {
        let Ok(shape) = Shape::new(&self.shape) else {
            return false;
        };
        let rising = |numbers: &[i32]| numbers.first() == Some(&0) && numbers.is_sorted();
        let ends =
            |numbers: &[i32], end: usize| numbers.last().map(|last| *last as usize) == Some(end);
        let (batch, row) = (self.batch(), self.row_count());
        matches!(shape.rank(), 2 | 3)
            && TYPES.contains(&self.values.dtype())
            && self.values.rank() == 1
            && self.values.elements() == self.columns.len()
            && self.batches.len() == batch.saturating_add(1)
            && rising(&self.batches)
            && ends(&self.batches, self.columns.len())
            && Some(self.rows.len()) == row.checked_add(1).and_then(|row| row.checked_mul(batch))
            && (0..batch).all(|at| {
                let rows = self.row_starts(at);
                rising(rows) && ends(rows, self.range(at).len())
            })
            && self
                .columns
                .iter()
                .all(|column| (0..self.column_count() as i64).contains(&i64::from(*column)))
    }

    fn into_tensor(self) -> Tensor {
        Tensor::scalar(Variant::Object(Arc::new(self)))
    }

    fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The number of matrices.
    fn batch(&self) -> usize {
        match self.shape.as_slice() {
            [batch, _, _] => *batch as usize,
            _ => 1,
        }
    }

    fn row_count(&self) -> usize {
        self.shape.iter().nth_back(1).map_or(0, |dim| *dim as usize)
    }

    fn column_count(&self) -> usize {
        self.shape.last().map_or(0, |dim| *dim as usize)
    }

    /// Where the rows of a matrix begin, relative to its first value.
    fn row_starts(&self, batch: usize) -> &[i32] {
        let width = self.row_count() + 1;
        self.rows
            .get(batch * width..(batch + 1) * width)
            .unwrap_or_default()
    }

    /// The values of a matrix.
    fn range(&self, batch: usize) -> std::ops::Range<usize> {
        let at = |index: usize| self.batches.get(index).copied().unwrap_or(0) as usize;
        at(batch)..at(batch + 1)
    }

    /// Row, column and place of each value of a matrix, row by row.
    fn entries(&self, batch: usize) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let first = self.range(batch).start;
        let rows = self.row_starts(batch).windows(2).enumerate();
        rows.flat_map(move |(row, bounds)| {
            let places = first + bounds[0] as usize..first + bounds[1] as usize;
            places.map(move |at| (row, self.columns[at] as usize, at))
        })
    }

    /// A matrix of values at coordinates, which must lie within the shape; each matrix must come as a whole.
    fn from_coordinates(indices: &[i64], values: &Tensor, shape: &[i64]) -> Result<Csr> {
        let rank = shape.len();
        Shape::new(shape)?;
        let whole = [vec![1], shape.to_vec()].concat();
        let [batch, rows, columns] = whole[whole.len() - 3..] else {
            return Err(invalid_argument!("a matrix has two dimensions"));
        };
        let most = i64::from(i32::MAX);
        ensure!(
            batch < most,
            invalid_argument,
            "dense_shape batch_size must be < Int32Max, but the input value is {batch}"
        );
        ensure!(
            values.elements() as i64 <= most,
            invalid_argument,
            "values number of elements must be <= Int32Max, but the input value is {}",
            values.elements()
        );
        let starts = rows.saturating_add(1).saturating_mul(batch);
        ensure!(
            starts <= most,
            invalid_argument,
            "The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is too large. Current value is {starts}"
        );
        let mut csr = Csr {
            shape: shape.to_vec(),
            batches: filled(0, batch as usize + 1)?,
            rows: filled(0, starts as usize)?,
            columns: Vec::with_capacity(values.elements()),
            values: values.clone(),
        };
        let mut keys = Vec::with_capacity(values.elements());
        for index in indices.chunks_exact(rank) {
            let at = match index {
                [batch, row, column] => [*batch, *row, *column],
                [row, column] => [0, *row, *column],
                _ => [0; 3],
            };
            for ((at, dim), name) in at
                .iter()
                .zip([batch, rows, columns])
                .zip(["Batch", "Row", "Column"])
            {
                ensure!(
                    (0..dim).contains(at),
                    invalid_argument,
                    "{name} index {at} is outside of valid range [0, {dim})"
                );
            }
            keys.push((at[0] as usize, at[1] as usize, at[2] as i32));
        }
        if !keys.is_sorted_by_key(|(batch, row, _)| (*batch, *row)) {
            let mut order: Vec<usize> = (0..keys.len()).collect();
            order.sort_by_key(|at| (keys[*at].0, keys[*at].1));
            keys.sort_by_key(|(batch, row, _)| (*batch, *row));
            csr.values = picked(values, &order)?;
        }
        for (batch, row, column) in keys {
            csr.batches[batch + 1] += 1;
            csr.rows[batch * (rows as usize + 1) + row + 1] += 1;
            csr.columns.push(column);
        }
        accumulate(&mut csr.batches);
        csr.rows
            .chunks_exact_mut(rows as usize + 1)
            .for_each(accumulate);
        Ok(csr)
    }

    /// The same matrices with rows for columns.
    fn transposed(&self) -> Result<Csr> {
        let mut shape = self.shape.clone();
        let rank = shape.len();
        shape.swap(rank - 2, rank - 1);
        let mut keys = Vec::with_capacity(self.columns.len());
        for batch in 0..self.batch() {
            keys.extend(
                self.entries(batch)
                    .map(|(row, column, at)| (batch, column, row, at)),
            );
        }
        keys.sort_unstable();
        let indices = keys.iter().flat_map(|(batch, row, column, _)| {
            let index = [*batch as i64, *row as i64, *column as i64];
            index.into_iter().skip(3 - rank)
        });
        let indices: Vec<i64> = indices.collect();
        let places: Vec<usize> = keys.iter().map(|(_, _, _, at)| *at).collect();
        Csr::from_coordinates(&indices, &picked(&self.values, &places)?, &shape)
    }

    /// The same places with the conjugate values.
    fn conjugated(mut self) -> Result<Csr> {
        match self.dtype() {
            DType::C64 => {
                let values = self.values.slice_mut::<tensorfleet_tensor::Complex32>()?;
                values.iter_mut().for_each(|value| *value = value.conj());
            }
            DType::C128 => {
                let values = self.values.slice_mut::<tensorfleet_tensor::Complex64>()?;
                values.iter_mut().for_each(|value| *value = value.conj());
            }
            _ => {}
        }
        Ok(self)
    }
}

/// Each number becomes the sum of itself and all before.
fn accumulate(numbers: &mut [i32]) {
    let mut sum = 0;
    for number in numbers {
        sum += *number;
        *number = sum;
    }
}

/// The matrix in input `index`.
fn matrix<'a>(ctx: &'a KernelCtx<'_>, index: usize) -> Result<Cow<'a, Csr>> {
    let tensor = ctx.input(index)?;
    ensure!(
        tensor.rank() == 0,
        invalid_argument,
        "Invalid input matrix: Shape must be rank 0 but is rank {}",
        tensor.rank()
    );
    let found = tensor.slice::<Variant>()?.first().and_then(Csr::of);
    found.ok_or_else(|| invalid_argument!("Could not retrieve Variant input {index}"))
}

/// The conjugate of a sparse matrix in a variant tensor: what `Conj` does with variants.
pub(crate) fn conjugate(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let out = matrix(ctx, 0)?.into_owned().conjugated()?;
    ctx.set(0, out.into_tensor());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_tensor::OpaqueVariant;

    fn sent(csr: &Csr, change: impl Fn(&mut Vec<Tensor>)) -> Option<Csr> {
        let (metadata, mut tensors) = csr.encode().unwrap();
        change(&mut tensors);
        let opaque = OpaqueVariant {
            type_name: TYPE_NAME.to_owned(),
            metadata,
            tensors,
        };
        Csr::of(&Variant::Opaque(Arc::new(opaque))).map(Cow::into_owned)
    }

    #[test]
    fn arrives_as_it_was_sent_and_not_if_it_does_not_fit() {
        let indices = [0, 0, 1, 2, 0, 0, 2, 1, 1];
        let values = Tensor::vector(&[1.0f32, 2.0, 3.0]);
        let csr = Csr::from_coordinates(&indices, &values, &[3, 2, 2]).unwrap();
        let back = sent(&csr, |_| {}).unwrap();
        assert_eq!(back.entries(2).collect::<Vec<_>>(), [(0, 0, 1), (1, 1, 2)]);
        assert_eq!(
            (back.shape, back.rows),
            (csr.shape.clone(), csr.rows.clone())
        );
        let broken: [(usize, Tensor); 7] = [
            (0, Tensor::vector::<i64>(&[])),
            (0, Tensor::vector(&[3i64])),
            (0, Tensor::vector(&[3i64, -1, 2])),
            (1, Tensor::vector(&[0, 1, 1, 4])),
            (2, Tensor::vector(&[0, 1, 1, 0, 0, 0, 0, 2, 1])),
            (3, Tensor::vector(&[1, 0, 2])),
            (4, Tensor::vector(&[1.0f32])),
        ];
        for (at, tensor) in broken {
            let found = sent(&csr, |tensors| tensors[at] = tensor.clone());
            assert!(found.is_none(), "tensor {at}: {tensor:?}");
        }
    }
}
