//! [`Dense`]: the store of `MutableDenseHashTable`, keys and values in buckets side by side.
//!
//! Exports, and with them checkpoints, show the buckets as they are: hashes, probes and growth are TensorFlow's, so
//! that either side finds the keys of the other. Also where it is odd: a key that is inserted takes the first bucket of a
//! removed one on its way, even if it has a bucket behind that. But no number of buckets is imported that none can be made
//! with: TensorFlow 2.21 takes it, and later versions do not.

use std::slice::ChunksExact;
use std::sync::OnceLock;

use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Result, Status, ensure, internal, invalid_argument, resource_exhausted};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, Word};

use super::store::{GRAIN, Keep, Key, Store, Twice, by_entry};

/// What a dense table is made from.
pub(super) struct Layout<'a> {
    pub(super) empty_key: &'a Tensor,
    pub(super) deleted_key: &'a Tensor,
    pub(super) value: DType,
    pub(super) value_shape: &'a Shape,
    pub(super) buckets: i64,
    pub(super) max_load_factor: f32,
}

/// An empty store; the shapes of the keys are checked.
pub(super) fn dense(layout: &Layout<'_>) -> Result<Box<dyn Store>> {
    by_entry!(layout.empty_key.dtype(), layout.value, K, W => Dense::<K, W>::boxed(layout))
}

struct Dense<K, W> {
    dtype: DType,
    width: usize,
    empty: Vec<K>,
    deleted: Vec<K>,
    max_load_factor: f32,
    /// The number of entries.
    entries: usize,
    /// The number of buckets, a power of two.
    buckets: usize,
    keys: Vec<K>,
    values: Vec<W>,
}

impl<K: Key, W: Word> Dense<K, W> {
    fn boxed(layout: &Layout<'_>) -> Result<Box<dyn Store>> {
        let mut store = Dense::<K, W> {
            dtype: layout.value,
            width: layout.value_shape.elements(),
            empty: layout.empty_key.slice::<K>()?.to_vec(),
            deleted: layout.deleted_key.slice::<K>()?.to_vec(),
            max_load_factor: layout.max_load_factor,
            entries: 0,
            buckets: 0,
            keys: Vec::new(),
            values: Vec::new(),
        };
        ensure!(
            !same(&store.empty, &store.deleted),
            invalid_argument,
            "Empty and deleted keys cannot be equal"
        );
        store.allocate(layout.buckets)?;
        Ok(Box::new(store))
    }

    /// Empty buckets, so many.
    fn allocate(&mut self, buckets: i64) -> Result<()> {
        let size = checked_buckets(buckets)?;
        let (keys, values) = size
            .checked_mul(self.empty.len())
            .zip(size.checked_mul(self.width))
            .ok_or_else(|| no_memory(size))?;
        let (mut new_keys, mut new_values) = (Vec::new(), Vec::new());
        new_keys
            .try_reserve_exact(keys)
            .map_err(|_| no_memory(size))?;
        new_values
            .try_reserve_exact(values)
            .map_err(|_| no_memory(size))?;
        for _ in 0..size {
            new_keys.extend_from_slice(&self.empty);
        }
        new_values.resize(values, W::default());
        (self.keys, self.values) = (new_keys, new_values);
        (self.buckets, self.entries) = (size, 0);
        Ok(())
    }

    fn hash(&self, key: &[K]) -> u64 {
        match key {
            [only] => only.dense_hash(),
            parts => parts
                .iter()
                .fold(0, |hash, part| combine(hash, part.dense_hash())),
        }
    }

    fn bucket(&self, at: usize) -> &[K] {
        let size = self.empty.len();
        self.keys
            .get(at * size..(at + 1) * size)
            .unwrap_or_default()
    }

    /// The bucket of a key, or the first on the way to it at which to `stop`; whether it is the key's.
    #[inline]
    fn probe(&self, key: &[K], stop: impl Fn(&[K]) -> bool, what: &str) -> Result<(usize, bool)> {
        let mask = self.buckets.wrapping_sub(1);
        let mut at = self.hash(key) as usize & mask;
        for step in 1..=self.buckets {
            let bucket = self.bucket(at);
            if same(bucket, key) {
                return Ok((at, true));
            }
            if stop(bucket) {
                return Ok((at, false));
            }
            at = at.wrapping_add(step) & mask;
        }
        Err(internal!("Internal error in MutableDenseHashTable {what}"))
    }

    /// The keys of a tensor.
    fn split<'a>(&self, keys: &'a Tensor) -> Result<ChunksExact<'a, K>> {
        Ok(keys.slice::<K>()?.chunks_exact(self.empty.len().max(1)))
    }

    /// An error for the keys that mark empty and removed buckets.
    fn check_key(&self, key: &[K]) -> Result<()> {
        for (taken, name) in [(&self.empty, "empty_key"), (&self.deleted, "deleted_key")] {
            ensure!(
                !same(taken, key),
                invalid_argument,
                "Using the {name} as a table key is not allowed"
            );
        }
        Ok(())
    }

    fn put(&mut self, key: &[K], value: &[W]) -> Result<()> {
        let free = |bucket: &[K]| same(bucket, &self.empty) || same(bucket, &self.deleted);
        let (at, is_there) = self.probe(key, free, "insert")?;
        if !is_there {
            self.entries += 1;
            write(&mut self.keys, at, key.iter().map(Keep::kept), key.len());
        }
        write(&mut self.values, at, value.iter().cloned(), self.width);
        Ok(())
    }

    /// Moves the entries to so many buckets.
    fn grow(&mut self, buckets: i64) -> Result<()> {
        let old_keys = std::mem::take(&mut self.keys);
        let old_values = std::mem::take(&mut self.values);
        let old = (self.buckets, self.entries);
        if let Err(status) = self.allocate(buckets) {
            (self.keys, self.values) = (old_keys, old_values);
            (self.buckets, self.entries) = old;
            return Err(status);
        }
        for (at, key) in old_keys.chunks_exact(self.empty.len().max(1)).enumerate() {
            if same(key, &self.empty) || same(key, &self.deleted) {
                continue;
            }
            let value = old_values.get(at * self.width..(at + 1) * self.width);
            self.put(key, value.unwrap_or_default())?;
        }
        Ok(())
    }
}

impl<K: Key, W: Word> Store for Dense<K, W> {
    fn len(&self) -> usize {
        self.entries
    }

    /// The default is one for all keys, even where it comes once for each.
    fn find(
        &self,
        par: &dyn Par,
        keys: &Tensor,
        defaults: &Tensor,
        out: &mut Tensor,
    ) -> Result<()> {
        let keys = self.split(keys)?;
        keys.clone().try_for_each(|key| self.check_key(key))?;
        let default = defaults.words::<W>()?.get(..self.width).unwrap_or_default();
        let failed = OnceLock::new();
        let out = out.words_mut::<W>()?;
        let width = self.width.max(1);
        rows_mut(par, out, width, GRAIN, |first, out| {
            let keys = keys.clone().skip(first);
            for (key, out) in keys.zip(out.chunks_exact_mut(width)) {
                let value = match self.probe(key, |bucket| same(bucket, &self.empty), "lookup") {
                    Ok((at, true)) => self.values.get(at * width..(at + 1) * width),
                    Ok((_, false)) => Some(default),
                    Err(status) => {
                        let _ = failed.set(status);
                        return;
                    }
                };
                out.clone_from_slice(value.unwrap_or(default));
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    fn insert(&mut self, keys: &Tensor, values: &Tensor, _: Twice) -> Result<()> {
        let count = keys.elements() / self.empty.len().max(1);
        let pending = (self.entries + count) as f32;
        let mut buckets = self.buckets as i64;
        while pending > buckets as f32 * self.max_load_factor {
            buckets = buckets
                .checked_mul(2)
                .ok_or_else(|| no_memory(self.buckets))?;
        }
        if buckets as usize > self.buckets {
            self.grow(buckets)?;
        }
        let words = values.words::<W>()?;
        for (at, key) in self.split(keys)?.enumerate() {
            self.check_key(key)?;
            let value = words.get(at * self.width..(at + 1) * self.width);
            self.put(key, value.unwrap_or_default())?;
        }
        Ok(())
    }

    fn remove(&mut self, keys: &Tensor) -> Result<()> {
        for key in self.split(keys)? {
            self.check_key(key)?;
            let (at, is_there) = self.probe(key, |bucket| same(bucket, &self.empty), "remove")?;
            if is_there {
                self.entries = self.entries.saturating_sub(1);
                let deleted = self.deleted.iter().cloned();
                write(&mut self.keys, at, deleted, self.deleted.len());
            }
        }
        Ok(())
    }

    fn export(&self) -> Result<(Tensor, Tensor)> {
        let keys = Shape::matrix(self.buckets, self.empty.len())?;
        let keys = Tensor::from_slice(keys, &self.keys)?;
        let mut values = Tensor::new(self.dtype, Shape::matrix(self.buckets, self.width)?)?;
        values.words_mut::<W>()?.clone_from_slice(&self.values);
        Ok((keys, values))
    }

    fn import(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let buckets = checked_buckets(keys.shape().first().copied().unwrap_or_default())?;
        let new_keys: Vec<K> = keys.slice::<K>()?.iter().map(Keep::kept).collect();
        let size = self.empty.len();
        ensure!(
            new_keys.len() == buckets * size && values.elements() == buckets * self.width,
            invalid_argument,
            "Expected key shape {} got {}",
            Shape::matrix(buckets, size)?,
            keys.shape()
        );
        self.values = values.words::<W>()?.to_vec();
        self.entries = new_keys
            .chunks_exact(size.max(1))
            .filter(|key| !same(key, &self.empty) && !same(key, &self.deleted))
            .count();
        self.keys = new_keys;
        self.buckets = buckets;
        Ok(())
    }
}

/// Whether two keys are the same. Keys are short: no call for it.
#[inline]
fn same<K: Element + PartialEq>(a: &[K], b: &[K]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Writes row `at` of rows of `width`.
fn write<T>(rows: &mut [T], at: usize, values: impl Iterator<Item = T>, width: usize) {
    for (slot, value) in rows.iter_mut().skip(at * width).zip(values) {
        *slot = value;
    }
}

fn checked_buckets(buckets: i64) -> Result<usize> {
    match usize::try_from(buckets) {
        Ok(size) if size >= 4 && size.is_power_of_two() => Ok(size),
        _ => Err(invalid_argument!(
            "Number of buckets must be at least 4 and a power of 2, got: {buckets}"
        )),
    }
}

#[cold]
fn no_memory(buckets: usize) -> Status {
    resource_exhausted!("a lookup table of {buckets} buckets does not fit into memory")
}

/// A hash of several, one after the other.
fn combine(so_far: u64, next: u64) -> u64 {
    let mixed = next
        .wrapping_add(0x9e37_79b9_7f4a_7800)
        .wrapping_add(so_far << 10)
        .wrapping_add(so_far >> 4);
    so_far ^ mixed
}
