//! [`parse`]: a batch of serialized Examples, or one, column by column.
//!
//! ```text
//! examples ─► cut into parts ─► each part by one thread: ─┬─► fixed columns: straight into the tensors
//!                                                         └─► others: gathered, joined when all parts are done
//! ```

use tensorfleet_checkpoint::example::{self, Entry, List};
use tensorfleet_math::par::{Par, chunks_mut};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::columns::{Column, Columns, Form, Look};
use super::values::{Row, Values, dtype_of, list_name};

/// A part is worth a thread from about this many bytes on.
pub(super) const PART_BYTES: usize = 32 << 10;

/// What is parsed.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) examples: &'a [TString],
    /// One for each Example, or none; for errors.
    pub(super) names: &'a [TString],
    /// One Example, and results without a dimension for the batch.
    pub(super) is_single: bool,
}

impl Input<'_> {
    /// What an Example is called.
    pub(super) fn name(&self, index: usize) -> String {
        match self.names.get(index) {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => "<unknown>".to_owned(),
        }
    }

    /// The dimension of the batch, if there is one, before others.
    pub(super) fn shape(&self, dims: &[i64]) -> Result<Shape> {
        match self.is_single {
            true => Shape::new(dims),
            false => Shape::vector(self.examples.len()).concat(dims),
        }
    }
}

/// The tensors of each column: one, or three of a sparse and two of a ragged one.
pub(super) fn parse(
    par: &dyn Par,
    columns: &Columns,
    input: Input<'_>,
) -> Result<Vec<Vec<Tensor>>> {
    let count = input.examples.len();
    let bytes: usize = input.examples.iter().map(TString::len).sum();
    let parts = (bytes / PART_BYTES).clamp(1, 64).min(count.max(1));
    let rows = count.div_ceil(parts).max(1);

    let mut fixed = Vec::new();
    for column in columns.all() {
        fixed.push(match &column.form {
            Form::Fixed { look, .. } => {
                let dims = look.shape.dims().unwrap_or_default();
                Some(Tensor::new(column.dtype, input.shape(dims)?)?)
            }
            _ => None,
        });
    }
    let mut gathered = {
        let mut parts = cut(columns, input, &mut fixed, rows)?;
        chunks_mut(par, &mut parts, 1, |_, parts| {
            for part in parts {
                part.result = part.parse();
            }
        });
        let mut gathered: Vec<Gathered> = columns.all().iter().map(Gathered::of).collect();
        for part in parts {
            part.result?;
            for (all, target) in gathered.iter_mut().zip(part.targets) {
                if let Target::Gathered(more) = target {
                    all.join(more);
                }
            }
        }
        gathered
    };
    let tensors = columns.all().iter().zip(fixed).zip(gathered.drain(..));
    tensors
        .map(|((column, fixed), gathered)| match fixed {
            Some(tensor) => Ok(vec![tensor]),
            None => gathered.finish(column, input),
        })
        .collect()
}

/// Values of a column, and how many each Example has.
struct Gathered {
    values: Values,
    lengths: Vec<usize>,
}

impl Gathered {
    fn of(column: &Column) -> Gathered {
        Gathered {
            values: Values::new(column.dtype),
            lengths: Vec::new(),
        }
    }

    fn join(&mut self, more: Gathered) {
        if self.lengths.is_empty() {
            *self = more;
        } else {
            self.values.extend(more.values);
            self.lengths.extend(more.lengths);
        }
    }

    fn finish(self, column: &Column, input: Input<'_>) -> Result<Vec<Tensor>> {
        let Gathered { values, lengths } = self;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        match &column.form {
            Form::Fixed { .. } | Form::Rows { .. } => Ok(Vec::new()),
            Form::Padded { look, filler } => {
                // Lengths are multiples of the stride.
                let steps = longest.checked_div(look.stride).unwrap_or(0);
                let shape = Shape::vector(steps).concat(look.inner())?;
                let shape = input.shape(shape.dims())?;
                Ok(vec![values.into_padded(shape, longest, &lengths, filler)?])
            }
            Form::Sparse => sparse(values, &lengths, longest, input),
            Form::Ragged(splits) => {
                let splits = match input.is_single {
                    true => Tensor::new(*splits, Shape::vector(0))?,
                    false => row_splits(&lengths, *splits)?,
                };
                Ok(vec![values.into_vector()?, splits])
            }
        }
    }
}

/// Indices, values and shape of rows of these lengths.
pub(super) fn sparse(
    values: Values,
    lengths: &[usize],
    longest: usize,
    input: Input<'_>,
) -> Result<Vec<Tensor>> {
    let rank = if input.is_single { 1 } else { 2 };
    let mut indices = Vec::with_capacity(values.len() * rank);
    for (row, len) in lengths.iter().enumerate() {
        for column in 0..*len {
            if !input.is_single {
                indices.push(row as i64);
            }
            indices.push(column as i64);
        }
    }
    let shape = match input.is_single {
        true => Tensor::vector(&[longest as i64]),
        false => Tensor::vector(&[input.examples.len() as i64, longest as i64]),
    };
    let indices = Tensor::from_vec(Shape::matrix(values.len(), rank)?, indices)?;
    Ok(vec![indices, values.into_vector()?, shape])
}

/// Where rows of these lengths begin and end: 0, then each end, as int32 or int64.
pub(super) fn row_splits(lengths: &[usize], dtype: DType) -> Result<Tensor> {
    let mut end = 0;
    let ends = std::iter::once(0).chain(lengths.iter().map(|len| {
        end += len;
        end
    }));
    let shape = Shape::vector(lengths.len() + 1);
    match dtype {
        DType::I32 => Tensor::from_vec(shape, ends.map(|end| end as i32).collect()),
        _ => Tensor::from_vec(shape, ends.map(|end| end as i64).collect()),
    }
}

/// Where the values of a column go.
enum Target<'a> {
    Fixed(Row<'a>),
    Gathered(Gathered),
}

/// Some Examples that one thread parses.
struct Part<'a> {
    columns: &'a Columns,
    input: Input<'a>,
    /// The first Example, and how many there are.
    first: usize,
    count: usize,
    targets: Vec<Target<'a>>,
    result: Result<()>,
}

/// Parts of `rows` Examples with their stretches of the fixed tensors.
fn cut<'a>(
    columns: &'a Columns,
    input: Input<'a>,
    fixed: &'a mut [Option<Tensor>],
    rows: usize,
) -> Result<Vec<Part<'a>>> {
    let count = input.examples.len();
    let starts = (0..count).step_by(rows);
    let mut parts: Vec<Part<'a>> = starts
        .map(|first| Part {
            columns,
            input,
            first,
            count: rows.min(count - first),
            targets: Vec::new(),
            result: Ok(()),
        })
        .collect();
    for (column, tensor) in columns.all().iter().zip(fixed) {
        let mut stretches = match (&column.form, tensor) {
            (Form::Fixed { look, .. }, Some(tensor)) => {
                Row::cut(tensor, look.stride.saturating_mul(rows))?
            }
            _ => Vec::new(),
        }
        .into_iter();
        for part in &mut parts {
            part.targets.push(match stretches.next() {
                Some(row) => Target::Fixed(row),
                None => Target::Gathered(Gathered::of(column)),
            });
        }
    }
    Ok(parts)
}

impl Part<'_> {
    fn parse(&mut self) -> Result<()> {
        let mut entries = Vec::new();
        let mut seen = Vec::new();
        for index in self.first..self.first + self.count {
            entries.clear();
            seen.clear();
            seen.resize(self.columns.all().len(), false);
            let Some(serialized) = self.input.examples.get(index) else {
                continue;
            };
            if example::features(serialized, &mut entries).is_none() {
                return Err(invalid_argument!(
                    "Could not parse example input, value: '{}'",
                    String::from_utf8_lossy(serialized)
                ));
            }
            self.take(index, serialized, &entries, &mut seen)?;
            self.finish(index, &seen)?;
        }
        Ok(())
    }

    /// Takes the features that are there. The last one of a key counts.
    fn take(
        &mut self,
        index: usize,
        serialized: &TString,
        entries: &[Entry<'_>],
        seen: &mut [bool],
    ) -> Result<()> {
        let (columns, input) = (self.columns, self.input);
        for (key, feature) in entries.iter().rev() {
            let Some((at, column)) = columns.find(key) else {
                continue;
            };
            let Some(kind) = example::kind(feature) else {
                return Err(invalid_argument!("Unsupported datatype."));
            };
            // Without values a feature is missing; only sparse ones of a batch hide another that came before.
            if kind.is_none() && (column.is_dense() || input.is_single) {
                continue;
            }
            let (Some(seen), Some(target)) = (seen.get_mut(at), self.targets.get_mut(at)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let Some(kind) = kind else { continue };
            let fails = Fails {
                column,
                input,
                index,
            };
            if dtype_of(kind) != column.dtype {
                return Err(fails.dtype(dtype_of(kind)));
            }
            let list = List::of(feature, serialized).ok_or_else(|| fails.damaged())?;
            let row = index - self.first;
            match (target, &column.form) {
                (Target::Fixed(target), Form::Fixed { look, .. }) => {
                    let found = target.fill(row * look.stride, look.stride, list);
                    let found = found.ok_or_else(|| fails.damaged())?;
                    if found != look.stride {
                        return Err(fails.count(found, look));
                    }
                }
                (Target::Gathered(target), form) => {
                    let found = target.values.append(list).ok_or_else(|| fails.damaged())?;
                    target.lengths.push(found);
                    match form {
                        Form::Padded { look, .. }
                            if found.checked_rem(look.stride).unwrap_or(found) != 0 =>
                        {
                            return Err(fails.stride(found, look));
                        }
                        // One that must have no values has no stretch either.
                        Form::Fixed { look, .. } if found > 0 => {
                            return Err(fails.count(found, look));
                        }
                        _ => {}
                    }
                }
                // INVARIANT: only fixed features have a stretch.
                (Target::Fixed(_), _) => {}
            }
        }
        Ok(())
    }

    /// Fills in for the features that are missing in Example `index`.
    fn finish(&mut self, index: usize, seen: &[bool]) -> Result<()> {
        let row = index - self.first;
        let columns = self.columns.all().iter().zip(&mut self.targets).zip(seen);
        for ((column, target), seen) in columns {
            if let Form::Fixed { look, default } = &column.form
                && !seen
            {
                if default.is_empty() {
                    let name = match self.input.is_single {
                        true => String::new(),
                        false => format!("Name: {}, ", self.input.name(index)),
                    };
                    return Err(invalid_argument!(
                        "{name}Feature: {} (data type: {}) is required but could not be found.",
                        column.name(),
                        column.dtype
                    ));
                }
                if let Target::Fixed(target) = target {
                    target.copy(row * look.stride, default)?;
                }
            }
            if let Target::Gathered(target) = target {
                // None for this one, unless it was counted.
                target.lengths.resize(row + 1, 0);
            }
        }
        Ok(())
    }
}

/// What may be wrong with a feature, in TensorFlow's words.
struct Fails<'a> {
    column: &'a Column,
    input: Input<'a>,
    index: usize,
}

impl Fails<'_> {
    #[cold]
    fn with(&self, what: &str) -> Status {
        let key = self.column.name();
        if self.input.is_single {
            return invalid_argument!("Key: {key}.  {what}");
        }
        let name = self.input.name(self.index);
        invalid_argument!("Name: {name}, Key: {key}, Index: {}.  {what}", self.index)
    }

    #[cold]
    fn dtype(&self, found: DType) -> Status {
        let expected = self.column.dtype;
        self.with(&match self.column.is_dense() {
            true => {
                format!("Data types don't match. Data type: {found} but expected type: {expected}")
            }
            false => {
                format!("Data types don't match. Expected type: {expected}, Actual type: {found}")
            }
        })
    }

    #[cold]
    fn damaged(&self) -> Status {
        let list = list_name(self.column.dtype);
        self.with(&match self.input.is_single {
            true => format!("Can't parse serialized Example: Parsing {list}_list failed."),
            false => "Can't parse serialized Example.".to_owned(),
        })
    }

    #[cold]
    fn count(&self, found: usize, look: &Look) -> Status {
        let list = list_name(self.column.dtype);
        // TensorFlow has no room to count strings that are too many.
        if found > look.stride && self.column.dtype == DType::String {
            return self.damaged();
        }
        self.with(&match self.input.is_single {
            true => {
                format!("Can't parse serialized Example: Some {list}_list slice was not parsed.")
            }
            false => format!(
                "Number of {list} values != expected.  Values size: {found} but output shape: {}",
                look.shape
            ),
        })
    }

    #[cold]
    fn stride(&self, found: usize, look: &Look) -> Status {
        if self.input.is_single {
            return invalid_argument!(
                "Error while parsing feature with key {}: number of elements should be divisible by {}, found {found} instead",
                self.column.name(),
                look.stride
            );
        }
        self.with(&format!(
            "Number of {} values is not a multiple of stride length. Saw {found} values but output shape is: {}",
            list_name(self.column.dtype),
            look.shape
        ))
    }
}
