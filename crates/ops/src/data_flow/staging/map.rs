//! [`Keyed`]: tuples under keys, which may come and go component by component.

use std::collections::BTreeMap;

use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::{Limits, byte_size};

/// Components of a tuple; missing ones have not come yet or were taken.
type Slots = Vec<Option<Tensor>>;

/// Tuples by key.
#[derive(Default)]
pub(super) struct Keyed {
    complete: BTreeMap<i64, Slots>,
    incomplete: BTreeMap<i64, Slots>,
    bytes: usize,
}

impl Keyed {
    pub(super) fn len(&self) -> usize {
        self.complete.len()
    }

    pub(super) fn incomplete_len(&self) -> usize {
        self.incomplete.len()
    }

    /// Puts values at `indices` of the tuple under `key`, which has `count` components. False if there is no room yet.
    pub(super) fn put(
        &mut self,
        limits: Limits,
        key: i64,
        indices: &[usize],
        values: &[Tensor],
        count: usize,
    ) -> Result<bool> {
        let more = byte_size(values);
        if !limits.admit(self.complete.len(), self.bytes, more)? {
            return Ok(false);
        }
        let mut slots = self
            .incomplete
            .get(&key)
            .cloned()
            .unwrap_or_else(|| vec![None; count]);
        for (index, value) in indices.iter().zip(values) {
            let bound = slots.len();
            let slot = slots.get_mut(*index).ok_or_else(|| {
                invalid_argument!("Index '{index}' for key '{key}' was out of bounds '{bound}'.")
            })?;
            ensure!(
                slot.is_none(),
                invalid_argument,
                "The tensor for index '{index}' for key '{key}' was already initialized '{bound}'."
            );
            *slot = Some(value.clone());
        }
        self.bytes += more;
        if slots.iter().all(Option::is_some) {
            self.incomplete.remove(&key);
            self.complete.entry(key).or_insert(slots);
        } else {
            self.incomplete.insert(key, slots);
        }
        Ok(true)
    }

    /// Copies of values of a complete tuple; `None` if it is not there yet.
    pub(super) fn peek(&self, key: i64, indices: &[usize]) -> Option<Result<Vec<Tensor>>> {
        let slots = self.complete.get(&key)?;
        Some(indices.iter().map(|index| at(slots, key, *index)).collect())
    }

    /// Takes values of a complete tuple; it is gone with its last value.
    pub(super) fn take(&mut self, key: i64, indices: &[usize]) -> Option<Result<Vec<Tensor>>> {
        let slots = self.complete.get_mut(&key)?;
        let taken: Result<Vec<Tensor>> =
            indices.iter().map(|index| at(slots, key, *index)).collect();
        if let Ok(values) = &taken {
            for index in indices {
                slots[*index] = None;
            }
            if slots.iter().all(Option::is_none) {
                self.complete.remove(&key);
            }
            self.bytes = self.bytes.saturating_sub(byte_size(values));
        }
        Some(taken)
    }

    /// The smallest key of a complete tuple.
    pub(super) fn first_key(&self) -> Option<i64> {
        self.complete.keys().next().copied()
    }
}

fn at(slots: &[Option<Tensor>], key: i64, index: usize) -> Result<Tensor> {
    let slot = slots.get(index).ok_or_else(|| {
        invalid_argument!(
            "Index '{index}' for key '{key}' was out of bounds '{}'.",
            slots.len()
        )
    })?;
    slot.clone().ok_or_else(|| {
        invalid_argument!("Tensor at index '{index}' for key '{key}' has already been removed.")
    })
}
