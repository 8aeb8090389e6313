//! Crosses: every combination of one feature of each column in a row, joined as text or as a hash.

use tensorfleet_status::{Result, Status, resource_exhausted};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use crate::string::farm_hash::fingerprint64;
use crate::string::hashes::sip_hash;

/// The features of all rows of one column.
pub(crate) struct Column<'a> {
    values: Values<'a>,
    rows: Rows,
}

enum Values<'a> {
    Texts(&'a [TString]),
    Numbers(&'a [i64]),
}

enum Rows {
    /// So many in each row.
    Even(usize),
    /// Row, first and end of the rows that have some, in order of the rows.
    Runs(Vec<(i64, usize, usize)>),
}

/// How a feature becomes a number.
#[derive(Clone, Copy)]
pub(crate) enum Hashing {
    /// Texts by FarmHash, numbers as they are.
    Plain,
    /// Texts and the low half of numbers by FarmHash, but numbers of dense columns as they are.
    Farm,
    /// Texts and the low half of numbers by SipHash.
    Strong([u64; 2]),
}

impl<'a> Column<'a> {
    fn new(values: &'a Tensor, rows: Rows) -> Result<Column<'a>> {
        let values = match values.dtype() {
            DType::String => Values::Texts(values.slice::<TString>()?),
            _ => Values::Numbers(values.slice::<i64>()?),
        };
        Ok(Column { values, rows })
    }

    /// A matrix.
    pub(crate) fn dense(matrix: &'a Tensor) -> Result<Column<'a>> {
        let width = matrix.shape().last().map_or(0, |width| *width as usize);
        Column::new(matrix, Rows::Even(width))
    }

    /// Values with their rows; those that do not come in order end the column.
    pub(crate) fn by_row(
        values: &'a Tensor,
        rows: impl Iterator<Item = i64>,
    ) -> Result<Column<'a>> {
        let mut runs: Vec<(i64, usize, usize)> = Vec::new();
        for (at, row) in rows.enumerate() {
            match runs.last_mut() {
                Some((last, _, end)) if *last == row => *end += 1,
                Some((last, _, _)) if *last > row => break,
                _ => runs.push((row, at, at + 1)),
            }
        }
        Column::new(values, Rows::Runs(runs))
    }

    /// Where the features of a row stand.
    fn features(&self, row: i64) -> (usize, usize) {
        match &self.rows {
            Rows::Even(width) => (row as usize * width, (row as usize + 1) * width),
            Rows::Runs(runs) => match runs.binary_search_by_key(&row, |(row, _, _)| *row) {
                Ok(found) => (runs[found].1, runs[found].2),
                Err(_) => (0, 0),
            },
        }
    }

    fn text(&self, at: usize) -> TString {
        match &self.values {
            Values::Texts(texts) => texts.get(at).cloned().unwrap_or_default(),
            Values::Numbers(numbers) => match numbers.get(at) {
                Some(number) => number.to_string().into(),
                None => TString::new(),
            },
        }
    }

    fn hash(&self, at: usize, hashing: Hashing) -> u64 {
        let number = match &self.values {
            Values::Texts(texts) => {
                let text = texts.get(at).map_or(&[][..], |text| &text[..]);
                return match hashing {
                    Hashing::Strong(key) => sip_hash(key, text),
                    _ => fingerprint64(text),
                };
            }
            Values::Numbers(numbers) => numbers.get(at).copied().unwrap_or(0),
        };
        let low = (number as u32).to_le_bytes();
        match (hashing, &self.rows) {
            (Hashing::Plain, _) | (Hashing::Farm, Rows::Even(_)) => number as u64,
            (Hashing::Farm, Rows::Runs(_)) => fingerprint64(&low),
            (Hashing::Strong(key), _) => sip_hash(key, &low),
        }
    }
}

/// What is made of a combination.
pub(crate) enum Joining {
    /// Texts with this between them.
    Text(TString),
    /// Hashes one after the other, below so many buckets (none for no limit); a key comes before the first.
    Hash {
        hashing: Hashing,
        key: Option<u64>,
        buckets: i64,
    },
}

/// All crosses, row by row, and how many each row has that has any.
pub(crate) struct Crosses {
    pub(crate) values: Tensor,
    pub(crate) counts: Vec<(i64, usize)>,
}

pub(crate) fn crossed(columns: &[Column<'_>], batch: i64, joining: &Joining) -> Result<Crosses> {
    let mut counts = Vec::new();
    let mut total = 0usize;
    for row in rows(columns, batch) {
        let mut count = 1usize;
        for column in columns {
            let (start, end) = column.features(row);
            count = count.checked_mul(end - start).ok_or_else(too_many)?;
        }
        if count > 0 {
            total = total.checked_add(count).ok_or_else(too_many)?;
            counts.push((row, count));
        }
    }
    let dtype = match joining {
        Joining::Text(_) => DType::String,
        Joining::Hash { .. } => DType::I64,
    };
    let total = i64::try_from(total).map_err(|_| too_many())?;
    let mut values = Tensor::new(dtype, Shape::new(&[total])?)?;
    let places = counts.iter().flat_map(|(row, count)| {
        let bounds: Vec<(usize, usize)> = columns.iter().map(|c| c.features(*row)).collect();
        (0..*count).map(move |number| combination(&bounds, number))
    });
    match joining {
        Joining::Text(separator) => {
            for (slot, places) in values.slice_mut::<TString>()?.iter_mut().zip(places) {
                let texts = columns.iter().zip(places).map(|(c, at)| c.text(at));
                *slot = texts.collect::<Vec<_>>().join(&separator[..]).into();
            }
        }
        Joining::Hash {
            hashing,
            key,
            buckets,
        } => {
            let limit = u64::try_from(*buckets).ok().filter(|buckets| *buckets > 0);
            let limit = limit.unwrap_or(i64::MAX as u64);
            for (slot, places) in values.slice_mut::<i64>()?.iter_mut().zip(places) {
                let hashes = columns
                    .iter()
                    .zip(places)
                    .map(|(c, at)| c.hash(at, *hashing));
                let hash = key.iter().copied().chain(hashes).reduce(joined_hash);
                *slot = (hash.unwrap_or(0) % limit) as i64;
            }
        }
    }
    Ok(Crosses { values, counts })
}

#[cold]
fn too_many() -> Status {
    resource_exhausted!("more crosses than any tensor can hold")
}

/// The rows that may have crosses: those that some column has features in.
fn rows(columns: &[Column<'_>], batch: i64) -> Vec<i64> {
    let runs = columns.iter().find_map(|column| match &column.rows {
        Rows::Runs(runs) => Some(runs),
        Rows::Even(_) => None,
    });
    match runs {
        Some(runs) => {
            let rows = runs.iter().map(|(row, _, _)| *row);
            rows.filter(|row| (0..batch).contains(row)).collect()
        }
        None if columns.iter().any(|c| matches!(c.rows, Rows::Even(0))) => Vec::new(),
        None if columns.is_empty() => Vec::new(),
        None => (0..batch).collect(),
    }
}

/// Combination `number` of one place out of each range; the last moves fastest.
fn combination(bounds: &[(usize, usize)], mut number: usize) -> Vec<usize> {
    let mut places = vec![0; bounds.len()];
    for (place, (start, end)) in places.iter_mut().zip(bounds).rev() {
        let len = (end - start).max(1);
        *place = start + number % len;
        number /= len;
    }
    places
}

/// TensorFlow's hash of two hashes, the order of which counts.
fn joined_hash(first: u64, second: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |value: u64| value ^ (value >> 47);
    let second = mix(second.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let both = (first ^ MULTIPLIER ^ second).wrapping_mul(MULTIPLIER);
    mix(mix(both).wrapping_mul(MULTIPLIER))
}
