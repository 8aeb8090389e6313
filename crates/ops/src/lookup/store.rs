//! [`Store`]: what a table keeps its entries in, and [`Hashed`], the store of all tables but the dense ones.
//!
//! A hash map leads from a key to the number of a row, and the values lie row by row beside it. So the map's code exists
//! once for each type of keys, whatever the values are, and scalars and vectors are kept in the same way.

use std::fmt::Write as _;
use std::hash::Hash;

use rustc_hash::FxHashMap;
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Result, Status, failed_precondition, internal, resource_exhausted};
use tensorfleet_tensor::{Bytes, DType, Element, Shape, Tensor, Word, write_element};

/// Keys and values, whose types and shapes the table has checked.
pub(super) trait Store: Send + Sync {
    /// The number of entries.
    fn len(&self) -> usize;
    /// Writes the values of the keys, or their defaults.
    fn find(&self, par: &dyn Par, keys: &Tensor, defaults: &Tensor, out: &mut Tensor)
    -> Result<()>;
    /// Adds entries.
    fn insert(&mut self, keys: &Tensor, values: &Tensor, twice: Twice) -> Result<()>;
    /// Removes the entries of these keys, as far as there are any.
    fn remove(&mut self, keys: &Tensor) -> Result<()>;
    /// All keys and values.
    fn export(&self) -> Result<(Tensor, Tensor)>;
    /// Replaces all entries by what [`export`](Self::export) gave.
    fn import(&mut self, keys: &Tensor, values: &Tensor) -> Result<()>;
}

/// What becomes of a key that has a value already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    /// It gets the new one.
    Replaces,
    /// The new one must be the same.
    MustAgree,
}

/// An element that can be a key.
pub(super) trait Key: Element + Hash + Eq {
    /// A copy to keep.
    fn kept(&self) -> Self {
        self.clone()
    }

    /// The hash by which TensorFlow's dense tables place it.
    fn dense_hash(&self) -> u64;
}

impl Key for i32 {
    fn dense_hash(&self) -> u64 {
        i64::from(*self) as u64
    }
}

impl Key for i64 {
    fn dense_hash(&self) -> u64 {
        *self as u64
    }
}

impl Key for Bytes {
    /// Not shared: a few bytes would keep the whole message alive that they came in.
    fn kept(&self) -> Bytes {
        Bytes::copy_from_slice(self)
    }

    fn dense_hash(&self) -> u64 {
        super::hash64::hash64(self)
    }
}

/// Runs the body with type aliases for the keys and the values of a table.
macro_rules! by_entry {
    ($key:expr, $value:expr, $k:ident, $w:ident => $body:expr) => {{
        use tensorfleet_tensor::{Bytes, DType};
        macro_rules! with_key {
            () => {
                match $key {
                    DType::I32 => {
                        type $k = i32;
                        $body
                    }
                    DType::I64 => {
                        type $k = i64;
                        $body
                    }
                    DType::String => {
                        type $k = Bytes;
                        $body
                    }
                    other => Err(tensorfleet_status::invalid_argument!(
                        "keys of a table cannot be {other}"
                    )),
                }
            };
        }
        match $value {
            DType::F32 | DType::I32 => {
                type $w = u32;
                with_key!()
            }
            DType::F64 | DType::I64 => {
                type $w = u64;
                with_key!()
            }
            DType::Bool => {
                type $w = bool;
                with_key!()
            }
            DType::String => {
                type $w = Bytes;
                with_key!()
            }
            DType::Variant => {
                type $w = tensorfleet_tensor::Variant;
                with_key!()
            }
            DType::Resource => {
                type $w = tensorfleet_tensor::ResourceHandle;
                with_key!()
            }
            other => Err(tensorfleet_status::invalid_argument!(
                "values of a table cannot be {other}"
            )),
        }
    }};
}
pub(super) use by_entry;

/// An empty [`Hashed`] for values of this shape. `own_defaults`: whether keys may each have their own default.
pub(super) fn hashed(
    key: DType,
    value: DType,
    shape: &Shape,
    own_defaults: bool,
) -> Result<Box<dyn Store>> {
    by_entry!(key, value, K, W => Ok(Box::new(Hashed::<K, W> {
        dtype: value,
        shape: shape.clone(),
        own_defaults,
        index: FxHashMap::default(),
        rows: Vec::new(),
        count: 0,
        free: Vec::new(),
    })))
}

/// A store by hash map.
struct Hashed<K, W> {
    dtype: DType,
    /// The shape of a value.
    shape: Shape,
    own_defaults: bool,
    /// The row of each key.
    index: FxHashMap<K, u32>,
    /// The rows, each of as many words as a value has elements.
    rows: Vec<W>,
    /// The number of rows.
    count: u32,
    /// Rows of entries that were removed.
    free: Vec<u32>,
}

/// So many keys are worth another thread.
const GRAIN: usize = 2048;

impl<K: Key, W: Word> Store for Hashed<K, W> {
    fn len(&self) -> usize {
        self.index.len()
    }

    fn find(
        &self,
        par: &dyn Par,
        keys: &Tensor,
        defaults: &Tensor,
        out: &mut Tensor,
    ) -> Result<()> {
        let width = self.shape.elements();
        let own = self.own_defaults && defaults.elements() == out.elements();
        let keys = keys.slice::<K>()?;
        let defaults = defaults.words::<W>()?;
        let out = out.words_mut::<W>()?;
        if width == 1 {
            rows_mut(par, out, 1, GRAIN, |first, out| {
                let keys = keys.get(first..).unwrap_or_default();
                self.find_scalars(keys, defaults, own.then_some(first), out);
            });
            return Ok(());
        }
        rows_mut(
            par,
            out,
            width.max(1),
            GRAIN.div_ceil(width.max(1)),
            |first, out| {
                for (at, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                    let row = keys.get(first + at).and_then(|key| self.row(key));
                    let own = if own { first + at } else { 0 };
                    let value = row.or_else(|| defaults.get(own * width..)?.get(..width));
                    if let Some(value) = value {
                        out.clone_from_slice(value);
                    }
                }
            },
        );
        Ok(())
    }

    fn insert(&mut self, keys: &Tensor, values: &Tensor, twice: Twice) -> Result<()> {
        let width = self.shape.elements();
        let words = values.words::<W>()?;
        for (at, key) in keys.slice::<K>()?.iter().enumerate() {
            let value = words.get(at * width..).and_then(|rest| rest.get(..width));
            let value = value.ok_or_else(|| internal!("there are fewer values than keys"))?;
            let row = match self.index.get(key) {
                None => self.add(key)?,
                Some(row) if twice == Twice::Replaces => *row,
                Some(row) => {
                    self.check_agreement(*row, (keys, values, at))?;
                    continue;
                }
            };
            if let Some(slot) = self.rows.get_mut(row as usize * width..) {
                for (slot, word) in slot.iter_mut().zip(value) {
                    *slot = word.clone();
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, keys: &Tensor) -> Result<()> {
        let width = self.shape.elements();
        for key in keys.slice::<K>()? {
            let Some(row) = self.index.remove(key) else {
                continue;
            };
            // What strings and variants hold ends with the entry.
            if let Some(slot) = self.rows.get_mut(row as usize * width..) {
                slot.iter_mut()
                    .take(width)
                    .for_each(|word| *word = W::default());
            }
            self.free.push(row);
        }
        Ok(())
    }

    /// In the order of the rows, which is the order of insertion unless entries were removed.
    fn export(&self) -> Result<(Tensor, Tensor)> {
        let width = self.shape.elements();
        let mut keys: Vec<Option<&K>> = vec![None; self.count as usize];
        for (key, row) in &self.index {
            if let Some(slot) = keys.get_mut(*row as usize) {
                *slot = Some(key);
            }
        }
        let count = Shape::vector(self.index.len());
        let mut values = Tensor::zeros(self.dtype, count.concat(&self.shape)?)?;
        let rows = keys.iter().enumerate().filter(|(_, key)| key.is_some());
        let slots = values.words_mut::<W>()?.chunks_exact_mut(width.max(1));
        for (slot, (row, _)) in slots.zip(rows) {
            if let Some(value) = self.rows.get(row * width..(row + 1) * width) {
                slot.clone_from_slice(value);
            }
        }
        let keys: Vec<K> = keys.into_iter().flatten().cloned().collect();
        Ok((Tensor::from_vec(count, keys)?, values))
    }

    fn import(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.index.clear();
        self.rows.clear();
        self.free.clear();
        self.count = 0;
        self.index
            .try_reserve(keys.elements())
            .map_err(|_| no_memory())?;
        self.insert(keys, values, Twice::Replaces)
    }
}

impl<K: Key, W: Word> Hashed<K, W> {
    /// Values of one element each. `own` is the number of the first default where each key has one.
    fn find_scalars(&self, keys: &[K], defaults: &[W], own: Option<usize>, out: &mut [W]) {
        match (own, defaults) {
            (Some(first), _) => {
                let defaults = defaults.get(first..).unwrap_or_default();
                for ((key, default), out) in keys.iter().zip(defaults).zip(out) {
                    *out = self.scalar(key).unwrap_or(default).clone();
                }
            }
            (None, [default, ..]) => {
                for (key, out) in keys.iter().zip(out) {
                    *out = self.scalar(key).unwrap_or(default).clone();
                }
            }
            (None, []) => {}
        }
    }

    #[inline]
    fn scalar(&self, key: &K) -> Option<&W> {
        self.rows.get(*self.index.get(key)? as usize)
    }

    fn row(&self, key: &K) -> Option<&[W]> {
        let width = self.shape.elements();
        let start = *self.index.get(key)? as usize * width;
        self.rows.get(start..start + width)
    }

    /// A row for a new key.
    fn add(&mut self, key: &K) -> Result<u32> {
        let width = self.shape.elements();
        let row = match self.free.last() {
            Some(row) => *row,
            None => {
                let count = self.count.checked_add(1).ok_or_else(no_memory)?;
                self.rows.try_reserve(width).map_err(|_| no_memory())?;
                self.rows.resize(self.rows.len() + width, W::default());
                std::mem::replace(&mut self.count, count)
            }
        };
        self.index.try_reserve(1).map_err(|_| no_memory())?;
        self.index.insert(key.kept(), row);
        self.free.pop();
        Ok(row)
    }

    /// An error if entry `at` has another value than the row of its key.
    #[cold]
    fn check_agreement(
        &self,
        row: u32,
        (keys, values, at): (&Tensor, &Tensor, usize),
    ) -> Result<()> {
        let mut kept = Tensor::zeros(self.dtype, Shape::scalar())?;
        let word = self.rows.get(row as usize).cloned();
        kept.words_mut::<W>()?.fill(word.unwrap_or_default());
        if is_same(&kept, values, at)? {
            return Ok(());
        }
        let mut text = "HashTable has different value for same key. Key ".to_owned();
        let written = write_element(keys, at, &mut text)
            .and_then(|()| write!(text, " has "))
            .and_then(|()| write_element(&kept, 0, &mut text))
            .and_then(|()| write!(text, " and trying to add value "))
            .and_then(|()| write_element(values, at, &mut text));
        written.map_err(|_| internal!("a key or value cannot be written"))?;
        Err(failed_precondition!("{text}"))
    }
}

/// Whether a scalar equals an element. Floats are compared as such: no NaN is the same as another.
fn is_same(scalar: &Tensor, values: &Tensor, at: usize) -> Result<bool> {
    fn equal<T: Element + PartialEq>(scalar: &Tensor, values: &Tensor, at: usize) -> Result<bool> {
        Ok(scalar.slice::<T>()?.first() == values.slice::<T>()?.get(at))
    }
    match scalar.dtype() {
        DType::F32 => equal::<f32>(scalar, values, at),
        DType::F64 => equal::<f64>(scalar, values, at),
        DType::I32 => equal::<i32>(scalar, values, at),
        DType::I64 => equal::<i64>(scalar, values, at),
        DType::Bool => equal::<bool>(scalar, values, at),
        DType::String => equal::<Bytes>(scalar, values, at),
        _ => Ok(false),
    }
}

#[cold]
fn no_memory() -> Status {
    resource_exhausted!("a lookup table has no room for more entries")
}
