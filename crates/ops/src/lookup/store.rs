//! [`Store`]: what a table keeps its entries in, and what stores have in common.

use std::fmt::Write as _;
use std::hash::Hash;

use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, Status, failed_precondition, internal, resource_exhausted};
use tensorfleet_tensor::{
    DType, Element, ResourceHandle, Shape, TString, Tensor, Variant, Word, write_element,
};

use crate::string::hashes::murmur;

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

/// What a store keeps.
pub(super) trait Keep: Clone {
    /// A copy to keep.
    fn kept(&self) -> Self {
        self.clone()
    }
}

impl Keep for i32 {}
impl Keep for i64 {}
impl Keep for u32 {}
impl Keep for u64 {}
impl Keep for bool {}
impl Keep for Variant {}
impl Keep for ResourceHandle {}
impl Keep for TString {
    /// Not shared: a few bytes would keep the whole message alive that they came in.
    fn kept(&self) -> TString {
        TString::copy_from_slice(self)
    }
}

/// An element that can be a key.
pub(super) trait Key: Element + Hash + Eq + Keep {
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

impl Key for TString {
    fn dense_hash(&self) -> u64 {
        murmur(self)
    }
}

/// Runs the body with a type alias for the keys of a table.
macro_rules! by_key {
    ($key:expr, $k:ident => $body:expr) => {
        match $key {
            tensorfleet_tensor::DType::I32 => {
                type $k = i32;
                $body
            }
            tensorfleet_tensor::DType::I64 => {
                type $k = i64;
                $body
            }
            tensorfleet_tensor::DType::String => {
                type $k = tensorfleet_tensor::TString;
                $body
            }
            other => Err(tensorfleet_status::invalid_argument!(
                "keys of a table cannot be {other}"
            )),
        }
    };
}
pub(super) use by_key;

/// Runs the body with type aliases for the keys and the values of a table.
macro_rules! by_entry {
    ($key:expr, $value:expr, $k:ident, $w:ident => $body:expr) => {
        match $value {
            tensorfleet_tensor::DType::F32 | tensorfleet_tensor::DType::I32 => {
                type $w = u32;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            tensorfleet_tensor::DType::F64 | tensorfleet_tensor::DType::I64 => {
                type $w = u64;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            tensorfleet_tensor::DType::Bool => {
                type $w = bool;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            tensorfleet_tensor::DType::String => {
                type $w = tensorfleet_tensor::TString;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            tensorfleet_tensor::DType::Variant => {
                type $w = tensorfleet_tensor::Variant;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            tensorfleet_tensor::DType::Resource => {
                type $w = tensorfleet_tensor::ResourceHandle;
                $crate::lookup::store::by_key!($key, $k => $body)
            }
            other => Err(tensorfleet_status::invalid_argument!(
                "values of a table cannot be {other}"
            )),
        }
    };
}
pub(super) use by_entry;

/// So many keys are worth another thread.
pub(super) const GRAIN: usize = 2048;

/// Values of one element each. `own` is the number of the first default where each key has one.
#[inline]
pub(super) fn fill<K, W: Clone>(
    keys: &[K],
    defaults: &[W],
    own: Option<usize>,
    out: &mut [W],
    get: impl Fn(&K) -> Option<W>,
) {
    match (own, defaults) {
        (Some(first), _) => {
            let defaults = defaults.get(first..).unwrap_or_default();
            for ((key, default), out) in keys.iter().zip(defaults).zip(out) {
                *out = get(key).unwrap_or_else(|| default.clone());
            }
        }
        (None, [default, ..]) => {
            for (key, out) in keys.iter().zip(out) {
                *out = get(key).unwrap_or_else(|| default.clone());
            }
        }
        (None, []) => {}
    }
}

/// An error if entry `at` has another value than this one, which its key has already.
#[cold]
pub(super) fn check_agreement<W: Word>(
    word: W,
    (keys, values, at): (&Tensor, &Tensor, usize),
) -> Result<()> {
    let mut kept = Tensor::zeros(values.dtype(), Shape::scalar())?;
    kept.words_mut::<W>()?.fill(word);
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
        DType::String => equal::<TString>(scalar, values, at),
        _ => Ok(false),
    }
}

#[cold]
pub(super) fn no_memory() -> Status {
    resource_exhausted!("a lookup table has no room for more entries")
}
