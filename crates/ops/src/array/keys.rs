//! Elements to be compared and hashed, whatever their dtype: one set of loops for all of them.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use tensorfleet_math::movement::{Unique, unique, unique_by};
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::{DType, TString, Tensor};

/// The elements of a tensor as keys.
pub(crate) enum Keys<'a> {
    /// Integers and bools.
    Integers(Vec<u64>),
    /// Floats of any width: a NaN equals nothing, zeros of either sign are equal.
    Floats(Vec<f64>),
    /// Strings.
    Strings(&'a [TString]),
}

impl<'a> Keys<'a> {
    /// The elements of a tensor.
    pub(crate) fn of(tensor: &'a Tensor) -> Result<Keys<'a>> {
        macro_rules! integers {
            ($type:ty) => {
                Keys::Integers(tensor.slice::<$type>()?.iter().map(|v| *v as u64).collect())
            };
        }
        macro_rules! floats {
            ($type:ty) => {
                Keys::Floats(
                    tensor
                        .slice::<$type>()?
                        .iter()
                        .map(|v| f64::from(*v))
                        .collect(),
                )
            };
        }
        Ok(match tensor.dtype() {
            DType::I8 => integers!(i8),
            DType::I16 => integers!(i16),
            DType::I32 => integers!(i32),
            DType::I64 => integers!(i64),
            DType::U8 => integers!(u8),
            DType::U16 => integers!(u16),
            DType::U32 => integers!(u32),
            DType::U64 => integers!(u64),
            DType::Bool => integers!(bool),
            DType::F16 => floats!(tensorfleet_tensor::f16),
            DType::BF16 => floats!(tensorfleet_tensor::bf16),
            DType::F32 => floats!(f32),
            DType::F64 => floats!(f64),
            DType::String => Keys::Strings(tensor.slice::<TString>()?),
            dtype => {
                return Err(unimplemented!(
                    "elements of dtype {dtype} cannot be compared"
                ));
            }
        })
    }

    /// The hash of an element.
    pub(crate) fn hash(&self, at: usize) -> u64 {
        match self {
            Keys::Integers(values) => values[at],
            Keys::Floats(values) => hash_float(values[at]),
            Keys::Strings(values) => hash_bytes(&values[at]),
        }
    }

    /// Whether two elements are equal.
    pub(crate) fn equal(&self, a: usize, b: usize) -> bool {
        match self {
            Keys::Integers(values) => values[a] == values[b],
            Keys::Floats(values) => values[a] == values[b],
            Keys::Strings(values) => values[a] == values[b],
        }
    }

    /// The distinct elements; `put` gets, for each element, which of them it is.
    pub(crate) fn unique(&self, put: impl FnMut(usize)) -> Unique {
        match self {
            Keys::Integers(values) => unique(values, |value| value, put),
            Keys::Floats(values) => unique(values, hash_float, put),
            Keys::Strings(values) => unique_by(
                values.len(),
                |at| hash_bytes(&values[at]),
                |a, b| values[a] == values[b],
                put,
            ),
        }
    }

    /// The positions of the elements that are not among others of the same dtype.
    pub(crate) fn without(&self, others: &Keys<'_>) -> Vec<i64> {
        match (self, others) {
            (Keys::Integers(x), Keys::Integers(y)) => difference(x, y, |value| *value),
            (Keys::Floats(x), Keys::Floats(y)) => difference(x, y, |value| hash_float(*value)),
            (Keys::Strings(x), Keys::Strings(y)) => difference(x, y, |value| hash_bytes(value)),
            _ => Vec::new(),
        }
    }
}

fn difference<T: PartialEq>(x: &[T], y: &[T], hash: impl Fn(&T) -> u64) -> Vec<i64> {
    // Chains of the elements of y by hash, in a table at most an eighth full, if it is small: few of x find a chain that is not
    // theirs.
    let room = if y.len() < 1 << 20 { 8 } else { 2 };
    let mask = (room * y.len()).next_power_of_two().max(8) - 1;
    let slot = |value: &T| (hash(value).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
    let mut heads = vec![usize::MAX; mask + 1];
    let mut next = vec![usize::MAX; y.len()];
    for (at, next) in next.iter_mut().enumerate() {
        let head = &mut heads[slot(&y[at])];
        *next = std::mem::replace(head, at);
    }
    let mut kept = Vec::with_capacity(x.len());
    for (at, value) in x.iter().enumerate() {
        let mut candidate = heads[slot(value)];
        while let Some(other) = y.get(candidate) {
            if other == value {
                break;
            }
            candidate = next[candidate];
        }
        if candidate == usize::MAX {
            kept.push(at as i64);
        }
    }
    kept
}

/// A hash that depends on both and on their order.
pub(crate) fn mix(hash: u64, next: u64) -> u64 {
    (hash.rotate_left(5) ^ next).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn hash_float(value: f64) -> u64 {
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    // The low bits of widened floats are zeros.
    bits ^ bits >> 32
}

fn hash_bytes(value: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(value);
    hasher.finish()
}
