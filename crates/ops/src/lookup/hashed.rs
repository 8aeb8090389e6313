//! [`Hashed`]: the store of tables whose values are vectors, strings or variants.
//!
//! A hash map leads from a key to the number of a row, and the values lie row by row beside it. So the map's code exists
//! once for each type of keys, whatever the values are.

use rustc_hash::FxHashMap;
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::{DType, Shape, Tensor, Word};

use super::scalars::scalars;
use super::store::{GRAIN, Keep, Key, Store, Twice, by_entry, check_agreement, fill, no_memory};

/// An empty store for values of this shape. `own_defaults`: whether keys may each have their own default.
pub(super) fn hashed(
    key: DType,
    value: DType,
    shape: &Shape,
    own_defaults: bool,
) -> Result<Box<dyn Store>> {
    if shape.rank() == 0 && value.is_plain() {
        return scalars(key, value, own_defaults);
    }
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

impl<K: Key, W: Word + Keep> Store for Hashed<K, W> {
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
                fill(keys, defaults, own.then_some(first), out, |key| {
                    self.rows.get(*self.index.get(key)? as usize).cloned()
                });
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
        if self.index.is_empty() {
            let room = self.index.try_reserve(keys.elements());
            room.map_err(|_| no_memory())?;
        }
        for (at, key) in keys.slice::<K>()?.iter().enumerate() {
            let value = words.get(at * width..).and_then(|rest| rest.get(..width));
            let value = value.ok_or_else(|| internal!("there are fewer values than keys"))?;
            let row = match self.index.get(key) {
                None => self.add(key)?,
                Some(row) if twice == Twice::Replaces => *row,
                Some(row) => {
                    let word = self.rows.get(*row as usize).cloned();
                    check_agreement(word.unwrap_or_default(), (keys, values, at))?;
                    continue;
                }
            };
            if let Some(slot) = self.rows.get_mut(row as usize * width..) {
                for (slot, word) in slot.iter_mut().zip(value) {
                    *slot = word.kept();
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
        self.insert(keys, values, Twice::Replaces)
    }
}

impl<K: Key, W: Word + Keep> Hashed<K, W> {
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
}
