//! Elements to be compared and hashed, whatever their dtype: one set of loops for all of them.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use tensorfleet_math::movement::{Unique, unique, unique_by};
use tensorfleet_status::{Result, unimplemented};
use tensorfleet_tensor::{Bytes, DType, Tensor};

/// The elements of a tensor as keys.
pub(crate) enum Keys<'a> {
    /// Integers and bools.
    Integers(Vec<u64>),
    /// Floats of any width: a NaN equals nothing, zeros of either sign are equal.
    Floats(Vec<f64>),
    /// Strings.
    Strings(&'a [Bytes]),
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
            DType::String => Keys::Strings(tensor.slice::<Bytes>()?),
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
        self.equal_to(a, self, b)
    }

    /// Whether an element equals one of other keys of the same dtype.
    pub(crate) fn equal_to(&self, at: usize, other: &Keys<'_>, other_at: usize) -> bool {
        match (self, other) {
            (Keys::Integers(a), Keys::Integers(b)) => a[at] == b[other_at],
            (Keys::Floats(a), Keys::Floats(b)) => a[at] == b[other_at],
            (Keys::Strings(a), Keys::Strings(b)) => a[at] == b[other_at],
            _ => false,
        }
    }

    /// The distinct elements.
    pub(crate) fn unique(&self) -> Unique {
        match self {
            Keys::Integers(values) => unique(values, |value| value),
            Keys::Floats(values) => unique(values, hash_float),
            Keys::Strings(values) => unique_by(
                values.len(),
                |at| hash_bytes(&values[at]),
                |a, b| values[a] == values[b],
            ),
        }
    }
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
