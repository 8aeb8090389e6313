//! [`Scalars`]: the store of tables whose values are numbers or bools, one each.
//!
//! A value is kept as 64 bits beside its key, whatever it is: one look into memory finds it, and the map's code exists once
//! for each type of keys.

use std::marker::PhantomData;

use rustc_hash::FxHashMap;
use tensorfleet_math::par::{Par, rows_mut};
use tensorfleet_status::{Result, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor, Word};

use super::store::{GRAIN, Key, Store, Twice, by_key, check_agreement, fill, no_memory};

/// An empty store.
pub(super) fn scalars(key: DType, value: DType, own_defaults: bool) -> Result<Box<dyn Store>> {
    match value {
        DType::F32 | DType::I32 => by_key!(key, K => boxed::<K, u32>(value, own_defaults)),
        DType::F64 | DType::I64 => by_key!(key, K => boxed::<K, u64>(value, own_defaults)),
        DType::Bool => by_key!(key, K => boxed::<K, bool>(value, own_defaults)),
        other => Err(invalid_argument!("values of a table cannot be {other}")),
    }
}

fn boxed<K: Key, W: Bits>(dtype: DType, own_defaults: bool) -> Result<Box<dyn Store>> {
    Ok(Box::new(Scalars::<K, W> {
        dtype,
        own_defaults,
        entries: FxHashMap::default(),
        words: PhantomData,
    }))
}

/// A word of at most 64 bits.
trait Bits: Word + Copy {
    fn bits(self) -> u64;
    fn of(bits: u64) -> Self;
}

impl Bits for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }

    fn of(bits: u64) -> u32 {
        bits as u32
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }

    fn of(bits: u64) -> u64 {
        bits
    }
}

impl Bits for bool {
    fn bits(self) -> u64 {
        u64::from(self)
    }

    fn of(bits: u64) -> bool {
        bits != 0
    }
}

struct Scalars<K, W> {
    dtype: DType,
    own_defaults: bool,
    entries: FxHashMap<K, u64>,
    words: PhantomData<W>,
}

impl<K: Key, W: Bits> Store for Scalars<K, W> {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn find(
        &self,
        par: &dyn Par,
        keys: &Tensor,
        defaults: &Tensor,
        out: &mut Tensor,
    ) -> Result<()> {
        let own = self.own_defaults && defaults.elements() == out.elements();
        let keys = keys.slice::<K>()?;
        let defaults = defaults.words::<W>()?;
        rows_mut(par, out.words_mut::<W>()?, 1, GRAIN, |first, out| {
            let keys = keys.get(first..).unwrap_or_default();
            fill(keys, defaults, own.then_some(first), out, |key| {
                self.entries.get(key).map(|bits| W::of(*bits))
            });
        });
        Ok(())
    }

    fn insert(&mut self, keys: &Tensor, values: &Tensor, twice: Twice) -> Result<()> {
        let words = values.words::<W>()?;
        if self.entries.is_empty() {
            let room = self.entries.try_reserve(keys.elements());
            room.map_err(|_| no_memory())?;
        }
        for (at, key) in keys.slice::<K>()?.iter().enumerate() {
            let word = words
                .get(at)
                .ok_or_else(|| internal!("there are fewer values than keys"))?;
            match self.entries.get_mut(key) {
                Some(kept) if twice == Twice::Replaces => *kept = word.bits(),
                Some(kept) => check_agreement(W::of(*kept), (keys, values, at))?,
                None => {
                    self.entries.try_reserve(1).map_err(|_| no_memory())?;
                    self.entries.insert(key.kept(), word.bits());
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, keys: &Tensor) -> Result<()> {
        for key in keys.slice::<K>()? {
            self.entries.remove(key);
        }
        Ok(())
    }

    fn export(&self) -> Result<(Tensor, Tensor)> {
        let shape = Shape::vector(self.entries.len());
        let mut values = Tensor::zeros(self.dtype, shape.clone())?;
        let mut keys = Vec::with_capacity(self.entries.len());
        for (slot, (key, bits)) in values.words_mut::<W>()?.iter_mut().zip(&self.entries) {
            keys.push(key.clone());
            *slot = W::of(*bits);
        }
        Ok((Tensor::from_vec(shape, keys)?, values))
    }

    fn import(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.entries.clear();
        self.insert(keys, values, Twice::Replaces)
    }
}
