//! [`parse`]: a batch of serialized SequenceExamples, or one, column by column.
//!
//! An Example's context has features like any Example; its lists have one feature for each step of a sequence.

use tensorfleet_checkpoint::example::{self, List};
use tensorfleet_math::par::{Par, Serial, chunks_mut};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::batch::{Input, PART_BYTES, row_splits, sparse};
use super::columns::{Column, Columns, Form};
use super::values::{Values, dtype_of, list_name};

/// Whose words errors have: the op for batches, or the older one for a single Example, which also is stricter.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Words {
    OfBatch,
    OfSingle,
}

/// The bytes of one column in each Example; `None` where it is missing.
type Found<'a> = Vec<Option<&'a [u8]>>;

/// The tensors of each column, first of the context, then of the lists. Those of lists: values and lengths of a dense
/// one, three of a sparse one, values, outer and inner splits of a ragged one.
pub(super) fn parse(
    par: &dyn Par,
    context: &Columns,
    lists: &Columns,
    input: Input<'_>,
    words: Words,
) -> Result<[Vec<Vec<Tensor>>; 2]> {
    if words == Words::OfBatch {
        check_forms("Context", context)?;
        check_forms("Sequence", lists)?;
    }
    let [of_context, of_lists] = find(context, lists, input, words)?;
    let bytes: usize = input.examples.iter().map(TString::len).sum();
    let par: &dyn Par = if bytes < PART_BYTES { &Serial } else { par };
    let reader = Reader { input, words };
    Ok([
        each(par, context, &of_context, |column, found| {
            reader.context(column, found)
        })?,
        each(par, lists, &of_lists, |column, found| {
            reader.list(column, found)
        })?,
    ])
}

/// Runs `read` on all columns, each on one thread.
fn each(
    par: &dyn Par,
    columns: &Columns,
    found: &[Found<'_>],
    read: impl Fn(&Column, &Found<'_>) -> Result<Vec<Tensor>> + Sync,
) -> Result<Vec<Vec<Tensor>>> {
    let mut results: Vec<Result<Vec<Tensor>>> = found.iter().map(|_| Ok(Vec::new())).collect();
    chunks_mut(par, &mut results, 1, |first, results| {
        let work = columns.all().iter().zip(found).skip(first);
        for (result, (column, found)) in results.iter_mut().zip(work) {
            *result = read(column, found);
        }
    });
    results.into_iter().collect()
}

/// No key may be wanted in two forms.
fn check_forms(what: &str, columns: &Columns) -> Result<()> {
    for (at, column) in columns.all().iter().enumerate() {
        let Some((_, other)) = columns.next(at) else {
            continue;
        };
        let forms = match (&column.form, &other.form) {
            (Form::Sparse, Form::Ragged(_)) | (Form::Ragged(_), Form::Sparse) => {
                "ragged and sparse"
            }
            _ if column.is_dense() != other.is_dense() => "dense and sparse",
            _ => continue,
        };
        return Err(invalid_argument!(
            "{what} feature {} cannot be both {forms}",
            column.name()
        ));
    }
    Ok(())
}

/// The bytes of every column in every Example.
fn find<'a>(
    context: &Columns,
    lists: &Columns,
    input: Input<'a>,
    words: Words,
) -> Result<[Vec<Found<'a>>; 2]> {
    let count = input.examples.len();
    let none = |columns: &Columns| vec![vec![None; count]; columns.all().len()];
    let (mut of_context, mut of_lists) = (none(context), none(lists));
    let (mut features, mut sequences) = (Vec::new(), Vec::new());
    for (index, serialized) in input.examples.iter().enumerate() {
        features.clear();
        sequences.clear();
        if example::sequence(serialized, &mut features, &mut sequences).is_none() {
            return Err(match words {
                Words::OfBatch => invalid_argument!(
                    "Invalid protocol message input, example id: {}",
                    input.name(index)
                ),
                Words::OfSingle => invalid_argument!(
                    "Could not parse example input, value: '{}'",
                    String::from_utf8_lossy(serialized)
                ),
            });
        }
        for (columns, entries, found) in [
            (context, &features, &mut of_context),
            (lists, &sequences, &mut of_lists),
        ] {
            for (key, value) in entries {
                let mut column = columns.find(key);
                while let Some((at, _)) = column {
                    // The last one of a key counts.
                    if let Some(slot) = found.get_mut(at).and_then(|found| found.get_mut(index)) {
                        *slot = Some(*value);
                    }
                    column = columns.next(at);
                }
            }
        }
    }
    Ok([of_context, of_lists])
}

/// Reads columns.
#[derive(Clone, Copy)]
struct Reader<'a> {
    input: Input<'a>,
    words: Words,
}

impl Reader<'_> {
    /// Appends the values of a feature, and counts them; `None` if it is of another type or damaged.
    fn append(
        &self,
        feature: &[u8],
        index: usize,
        values: &mut Values,
        dtype: DType,
    ) -> Option<usize> {
        if feature.is_empty() {
            return Some(0);
        }
        if dtype_of(example::kind(feature)??) != dtype {
            return None;
        }
        values.append(List::of(feature, self.input.examples.get(index)?)?)
    }

    fn context(&self, column: &Column, found: &Found<'_>) -> Result<Vec<Tensor>> {
        let mut values = Values::new(column.dtype);
        let mut lengths = Vec::with_capacity(found.len());
        for (index, feature) in found.iter().enumerate() {
            let added = match (feature, &column.form) {
                (None, Form::Fixed { default, .. }) => {
                    values.extend_from(default)?;
                    Some(default.elements())
                }
                (None, _) => Some(0),
                (Some(feature), _) => self.append(feature, index, &mut values, column.dtype),
            };
            lengths.push(added.ok_or_else(|| {
                invalid_argument!(
                    "Name: {}, Context feature: {}.  Data types don't match. Expected type: {}",
                    self.input.name(index),
                    column.name(),
                    column.dtype
                )
            })?);
        }
        let longest = lengths.iter().copied().max().unwrap_or(0);
        match &column.form {
            Form::Fixed { look, default } => {
                let dims = look.shape.dims().unwrap_or_default();
                let wanted = Wanted {
                    column,
                    count: look.stride,
                    shape: Shape::new(dims)?,
                };
                self.check_context(&wanted, found, &lengths, default)?;
                Ok(vec![values.into_tensor(self.input.shape(dims)?)?])
            }
            Form::Ragged(splits) => {
                let splits = match self.input.is_single {
                    true => Tensor::zeros(*splits, Shape::scalar())?,
                    false => row_splits(&lengths, *splits)?,
                };
                Ok(vec![values.into_vector()?, splits])
            }
            _ => sparse(values, &lengths, longest, self.input),
        }
    }

    /// Whether a fixed feature has in every Example the values it should have.
    fn check_context(
        &self,
        wanted: &Wanted<'_>,
        found: &Found<'_>,
        lengths: &[usize],
        default: &Tensor,
    ) -> Result<()> {
        let key = wanted.column.name();
        let dtype = wanted.column.dtype;
        let longest = lengths
            .iter()
            .copied()
            .max()
            .unwrap_or(0)
            .max(default.elements());
        if self.words == Words::OfBatch && longest != wanted.count {
            return Err(invalid_argument!(
                "Inconsistent max number of elements for feature {key}: expected {}, but found {longest}",
                wanted.count
            ));
        }
        for (index, (feature, len)) in found.iter().zip(lengths).enumerate() {
            let name = self.input.name(index);
            if feature.is_none() && default.is_empty() {
                return Err(match self.words {
                    Words::OfBatch => invalid_argument!(
                        "Feature: {key} (data type: {dtype}) is required but could not be found."
                    ),
                    Words::OfSingle => invalid_argument!(
                        "Name: {name}, Context feature '{key}' is required but could not be found."
                    ),
                });
            }
            if *len != wanted.count {
                return Err(match self.words {
                    Words::OfBatch => {
                        invalid_argument!("Unexpected number of elements in example {name}")
                    }
                    Words::OfSingle => wanted.of_single(&name, index, *len),
                });
            }
        }
        Ok(())
    }

    fn list(&self, column: &Column, found: &Found<'_>) -> Result<Vec<Tensor>> {
        let mut values = Values::new(column.dtype);
        // The lengths of all rows, and how many rows and values each Example has.
        let (mut rows, mut counts, mut totals) = (Vec::new(), Vec::new(), Vec::new());
        for (index, list) in found.iter().enumerate() {
            let (rows_before, before) = (rows.len(), values.len());
            for feature in example::list_features(list.unwrap_or_default()) {
                // One byte is a tag without a length.
                let Some(feature) = feature.filter(|feature| feature.len() != 1) else {
                    return Err(invalid_argument!(
                        "Error in sequence feature {} in example {}",
                        column.name(),
                        self.input.name(index)
                    ));
                };
                let added = self.append(feature, index, &mut values, column.dtype);
                rows.push(added.ok_or_else(|| {
                    invalid_argument!(
                        "Name: {}, Feature list: {}, Index: {}.  Data types don't match. Expected type: {}",
                        self.input.name(index),
                        column.name(),
                        rows.len() - rows_before,
                        column.dtype
                    )
                })?);
            }
            counts.push(rows.len() - rows_before);
            totals.push(values.len() - before);
        }
        let longest = counts.iter().copied().max().unwrap_or(0);
        match &column.form {
            Form::Rows {
                row,
                may_be_missing,
            } => {
                let wanted = Wanted {
                    column,
                    count: row.elements(),
                    shape: row.clone(),
                };
                let most = totals.iter().copied().max().unwrap_or(0);
                self.check_rows(&wanted, most)?;
                let mut rows = rows.iter();
                for (index, (list, count)) in found.iter().zip(&counts).enumerate() {
                    if list.is_none() && !may_be_missing {
                        return Err(self.missing_list(column, index));
                    }
                    for (at, len) in rows.by_ref().take(*count).enumerate() {
                        if *len != wanted.count {
                            let name = self.input.name(index);
                            return Err(match self.words {
                                Words::OfBatch => wanted.of_batch(&name, at, *len),
                                Words::OfSingle => wanted.of_single(&name, at, *len),
                            });
                        }
                    }
                }
                let shape = Shape::vector(longest).concat(row.dims())?;
                let shape = self.input.shape(shape.dims())?;
                let zero = Tensor::zeros(column.dtype, Shape::scalar())?;
                let lengths: Vec<i64> = counts.iter().map(|count| *count as i64).collect();
                Ok(vec![
                    values.into_padded(shape, most, &totals, &zero)?,
                    Tensor::from_vec(self.input.shape(&[])?, lengths)?,
                ])
            }
            Form::Ragged(dtype) => {
                let outer = match self.input.is_single {
                    true => Tensor::zeros(*dtype, Shape::scalar())?,
                    false => row_splits(&counts, *dtype)?,
                };
                Ok(vec![
                    values.into_vector()?,
                    outer,
                    row_splits(&rows, *dtype)?,
                ])
            }
            _ => self.sparse_list(values, &rows, &counts, longest),
        }
    }

    /// Whether the longest list can be made of whole rows.
    fn check_rows(&self, wanted: &Wanted<'_>, most: usize) -> Result<()> {
        let rest = most.checked_rem(wanted.count).unwrap_or(most);
        if self.words == Words::OfSingle || rest == 0 {
            return Ok(());
        }
        let dims: Vec<String> = wanted
            .shape
            .dims()
            .iter()
            .map(|dim| format!(",{dim}"))
            .collect();
        Err(invalid_argument!(
            "Feature list '{}' has an unexpected number of values.  Total values size: {most} is not consistent with output shape: [?{}]",
            wanted.column.name(),
            dims.concat()
        ))
    }

    #[cold]
    fn missing_list(&self, column: &Column, index: usize) -> Status {
        invalid_argument!(
            "Name: {}, Feature list '{}' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
            self.input.name(index),
            column.name()
        )
    }

    /// Indices, values and shape: Example, row, place in the row.
    fn sparse_list(
        &self,
        values: Values,
        rows: &[usize],
        counts: &[usize],
        longest: usize,
    ) -> Result<Vec<Tensor>> {
        let rank = if self.input.is_single { 2 } else { 3 };
        let mut indices = Vec::with_capacity(values.len() * rank);
        let mut lengths = rows.iter();
        for (example, count) in counts.iter().enumerate() {
            for (row, len) in lengths.by_ref().take(*count).enumerate() {
                for at in 0..*len {
                    if !self.input.is_single {
                        indices.push(example as i64);
                    }
                    indices.extend([row as i64, at as i64]);
                }
            }
        }
        let widest = rows.iter().copied().max().unwrap_or(0);
        let shape = [counts.len(), longest, widest].map(|dim| dim as i64);
        let shape = shape.get(3 - rank..).unwrap_or_default();
        let indices = Tensor::from_vec(Shape::matrix(values.len(), rank)?, indices)?;
        Ok(vec![indices, values.into_vector()?, Tensor::vector(shape)])
    }
}

/// How many values a feature should have.
struct Wanted<'a> {
    column: &'a Column,
    count: usize,
    shape: Shape,
}

impl Wanted<'_> {
    #[cold]
    fn of_batch(&self, name: &str, index: usize, found: usize) -> Status {
        invalid_argument!(
            "Name: {name}, Key: {}, Index: {index}.  Number of values != expected.  values size: {found} but output shape: {}",
            self.column.name(),
            self.shape
        )
    }

    #[cold]
    fn of_single(&self, name: &str, index: usize, found: usize) -> Status {
        invalid_argument!(
            "Name: {name}, Key: {}, Index: {index}.  Number of {} values != expected.  values size: {found} but output shape: {}",
            self.column.name(),
            list_name(self.column.dtype),
            self.shape
        )
    }
}
