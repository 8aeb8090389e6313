//! [`Values`]: a vector of one of the types that features have, and [`Row`], a stretch of a tensor of one.

use tensorfleet_checkpoint::example::{Kind, List, Value as _};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{DType, Element, Shape, TString, Tensor};

/// Values of a feature, as many as there are.
pub(super) enum Values {
    Float(Vec<f32>),
    Int64(Vec<i64>),
    Bytes(Vec<TString>),
}

/// Runs the same for each type.
macro_rules! each {
    ($type:ident, $values:expr, $name:ident => $body:expr) => {
        match $values {
            $type::Float($name) => $body,
            $type::Int64($name) => $body,
            $type::Bytes($name) => $body,
        }
    };
}

/// The dtype of a kind of feature.
pub(super) fn dtype_of(kind: Kind) -> DType {
    match kind {
        Kind::Bytes => DType::String,
        Kind::Float => DType::F32,
        Kind::Int64 => DType::I64,
    }
}

/// What TensorFlow calls the values of a dtype.
pub(super) fn list_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::I64 => "int64",
        _ => "bytes",
    }
}

impl Values {
    /// None yet, of a dtype that features have.
    pub(super) fn new(dtype: DType) -> Values {
        match dtype {
            DType::F32 => Values::Float(Vec::new()),
            DType::I64 => Values::Int64(Vec::new()),
            _ => Values::Bytes(Vec::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        each!(Values, self, values => values.len())
    }

    /// Appends a list of this type; how many there were.
    pub(super) fn append(&mut self, list: List<'_>) -> Option<usize> {
        let before = self.len();
        match self {
            Values::Float(values) => f32::append(list, values)?,
            Values::Int64(values) => i64::append(list, values)?,
            Values::Bytes(values) => TString::append(list, values)?,
        }
        Some(self.len() - before)
    }

    /// Appends values of the same type.
    pub(super) fn extend(&mut self, other: Values) {
        match (self, other) {
            (Values::Float(values), Values::Float(more)) => values.extend(more),
            (Values::Int64(values), Values::Int64(more)) => values.extend(more),
            (Values::Bytes(values), Values::Bytes(more)) => values.extend(more),
            // INVARIANT: all of a column have its dtype.
            _ => {}
        }
    }

    /// Appends the elements of a tensor of the same type.
    pub(super) fn extend_from(&mut self, tensor: &Tensor) -> Result<()> {
        each!(Values, self, values => values.extend_from_slice(tensor.slice()?));
        Ok(())
    }

    /// All of them as a tensor.
    pub(super) fn into_tensor(self, shape: Shape) -> Result<Tensor> {
        each!(Values, self, values => Tensor::from_vec(shape, values))
    }

    /// All of them as a vector.
    pub(super) fn into_vector(self) -> Result<Tensor> {
        let shape = Shape::vector(self.len());
        self.into_tensor(shape)
    }

    /// Rows of these lengths, each put to the front of its row of a tensor that is `filler` elsewhere.
    pub(super) fn into_padded(
        self,
        shape: Shape,
        row_len: usize,
        lengths: &[usize],
        filler: &Tensor,
    ) -> Result<Tensor> {
        // One long row makes all of them long: whether there is memory for that is not taken for granted.
        let mut out = Tensor::new(filler.dtype(), shape)?;
        each!(Values, self, values => pad(values, &mut out, row_len, lengths, filler)?);
        Ok(out)
    }
}

fn pad<T: Element>(
    values: Vec<T>,
    out: &mut Tensor,
    row_len: usize,
    lengths: &[usize],
    filler: &Tensor,
) -> Result<()> {
    let slots = out.slice_mut::<T>()?;
    if let Some(filler) = filler.slice::<T>()?.first() {
        slots.fill(filler.clone());
    }
    let mut values = values.into_iter();
    // Rows without any values have no places.
    for (row, len) in slots.chunks_exact_mut(row_len.max(1)).zip(lengths) {
        for (target, value) in row.iter_mut().zip(values.by_ref().take(*len)) {
            *target = value;
        }
    }
    Ok(())
}

/// A stretch of a tensor to write to.
pub(super) enum Row<'a> {
    Float(&'a mut [f32]),
    Int64(&'a mut [i64]),
    Bytes(&'a mut [TString]),
}

impl<'a> Row<'a> {
    /// A tensor cut into stretches of `len` elements, the last one perhaps shorter.
    pub(super) fn cut(tensor: &'a mut Tensor, len: usize) -> Result<Vec<Row<'a>>> {
        // A tensor without elements has no stretches, whatever their length.
        let len = len.max(1);
        Ok(match tensor.dtype() {
            DType::F32 => tensor
                .slice_mut()?
                .chunks_mut(len)
                .map(Row::Float)
                .collect(),
            DType::I64 => tensor
                .slice_mut()?
                .chunks_mut(len)
                .map(Row::Int64)
                .collect(),
            DType::String => tensor
                .slice_mut()?
                .chunks_mut(len)
                .map(Row::Bytes)
                .collect(),
            other => return Err(internal!("features have no {other}")),
        })
    }

    /// Puts the values of a list to `start..start + len`, and counts them.
    pub(super) fn fill(&mut self, start: usize, len: usize, list: List<'_>) -> Option<usize> {
        match self {
            Row::Float(row) => f32::fill(list, row.get_mut(start..start + len)?),
            Row::Int64(row) => i64::fill(list, row.get_mut(start..start + len)?),
            Row::Bytes(row) => TString::fill(list, row.get_mut(start..start + len)?),
        }
    }

    /// Copies a tensor to `start..`, as far as there is room.
    pub(super) fn copy(&mut self, start: usize, from: &Tensor) -> Result<()> {
        each!(Row, self, row => {
            let row = row.get_mut(start..).unwrap_or_default();
            for (target, value) in row.iter_mut().zip(from.slice()?) {
                target.clone_from(value);
            }
        });
        Ok(())
    }
}
