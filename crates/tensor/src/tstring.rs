//! [`TString`]: one string element, any bytes; short ones lie inside it.
//!
//! Words, keys and numbers as text are short, and there are many of them: each costs a copy of three machine words instead of
//! an allocation and a count that all threads fight for. What is longer is shared among clones. Small pieces of a
//! large string or message are copied, so that a key does not keep a whole batch alive.

mod convert;

use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

use bytes::Bytes;

/// The longest string that lies inside the element.
const INLINE: usize = 22;

/// Strings from this length on stay in the memory they come in; shorter ones are copied out of it.
const SHARE_FROM: usize = 1 << 10;

/// An element of a string tensor: bytes that are cheap to clone, and are copied before they are changed where clones share them.
///
/// ```
/// use tensorfleet_tensor::TString;
///
/// let word = TString::from("fleet");
/// assert_eq!(word, "fleet");
/// assert_eq!(word.len(), 5);
/// assert_eq!(word.slice(1..3), "le");
/// ```
#[derive(Clone)]
pub struct TString(Repr);

#[derive(Clone)]
enum Repr {
    Inline {
        len: u8,
        bytes: [u8; INLINE],
    },
    /// Shorter than [`SHARE_FROM`].
    Owned(Arc<[u8]>),
    Shared(Arc<Bytes>),
}

const _: () = assert!(size_of::<TString>() == 24);

impl TString {
    /// The empty string.
    pub const fn new() -> TString {
        TString(Repr::Inline {
            len: 0,
            bytes: [0; INLINE],
        })
    }

    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (**self).len()
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of these bytes.
    #[inline]
    pub fn copy_from_slice(bytes: &[u8]) -> TString {
        match inline(bytes) {
            Some(short) => short,
            None => long(bytes),
        }
    }

    /// A constant; a large one is not copied.
    pub fn from_static(bytes: &'static [u8]) -> TString {
        match bytes.len() {
            SHARE_FROM.. => Bytes::from_static(bytes).into(),
            _ => TString::copy_from_slice(bytes),
        }
    }

    /// Becomes a copy of these bytes, written where they stay: what is made in a variable first and moved then is read back before
    /// it has left the processor, which costs more than to write it.
    #[inline]
    pub fn assign(&mut self, from: &[u8]) {
        match &mut self.0 {
            Repr::Inline { len, bytes } if from.len() <= INLINE => {
                copy_short(from, bytes);
                *len = from.len() as u8;
            }
            _ => *self = TString::copy_from_slice(from),
        }
    }

    /// As [`assign`](Self::assign) for a part of a string; a large one shares its memory.
    ///
    /// # Panics
    /// If a large part does not lie inside the string.
    #[inline]
    pub fn assign_part(&mut self, whole: &TString, part: &[u8]) {
        match part.len() {
            SHARE_FROM.. => *self = whole.slice_ref(part),
            _ => self.assign(part),
        }
    }

    /// The bytes for writing; copies them first if they are shared.
    #[inline]
    pub fn make_mut(&mut self) -> &mut [u8] {
        if let Repr::Shared(bytes) = &self.0 {
            self.0 = Repr::Owned(bytes[..].into());
        }
        match &mut self.0 {
            Repr::Inline { len, bytes } => bytes.get_mut(..usize::from(*len)).unwrap_or_default(),
            Repr::Owned(bytes) => Arc::make_mut(bytes),
            Repr::Shared(_) => &mut [],
        }
    }

    /// The string that is this part of a message; a large one shares its memory.
    ///
    /// # Panics
    /// If a large part does not lie inside the message.
    #[inline]
    pub fn part_of(message: &Bytes, part: &[u8]) -> TString {
        match part.len() {
            SHARE_FROM.. => message.slice_ref(part).into(),
            _ => TString::copy_from_slice(part),
        }
    }

    /// As [`part_of`](Self::part_of) for a part of another string.
    ///
    /// # Panics
    /// If a large part does not lie inside the string.
    #[inline]
    pub fn slice_ref(&self, part: &[u8]) -> TString {
        match &self.0 {
            Repr::Shared(bytes) => TString::part_of(bytes, part),
            _ => TString::copy_from_slice(part),
        }
    }

    /// The bytes of a range; a large part shares the memory.
    ///
    /// # Panics
    /// If the range does not lie inside the string.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> TString {
        let begin = match range.start_bound() {
            Bound::Included(at) => *at,
            Bound::Excluded(at) => *at + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(at) => *at + 1,
            Bound::Excluded(at) => *at,
            Bound::Unbounded => self.len(),
        };
        match &self.0 {
            Repr::Shared(bytes) if end.saturating_sub(begin) >= SHARE_FROM => {
                bytes.slice(begin..end).into()
            }
            _ => TString::copy_from_slice(&self[begin..end]),
        }
    }
}

/// The string, if it is short.
#[inline]
fn inline(from: &[u8]) -> Option<TString> {
    if from.len() > INLINE {
        return None;
    }
    let mut bytes = [0; INLINE];
    copy_short(from, &mut bytes);
    let len = from.len() as u8;
    Some(TString(Repr::Inline { len, bytes }))
}

/// Copies at most [`INLINE`] bytes: by two moves that overlap, instead of a call.
#[inline]
fn copy_short(from: &[u8], to: &mut [u8; INLINE]) {
    let len = from.len().min(INLINE);
    match len {
        16.. => ends::<16>(from, &mut to[..len]),
        8.. => ends::<8>(from, &mut to[..len]),
        4.. => ends::<4>(from, &mut to[..len]),
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

/// Copies the first and the last `N` bytes, which are all.
#[inline]
fn ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut()) {
        *to = *from;
    }
}

#[inline(never)]
fn long(bytes: &[u8]) -> TString {
    TString(match bytes.len() {
        SHARE_FROM.. => Repr::Shared(Arc::new(Bytes::copy_from_slice(bytes))),
        _ => Repr::Owned(bytes.into()),
    })
}

impl Deref for TString {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Repr::Owned(bytes) => bytes,
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl Default for TString {
    fn default() -> TString {
        TString::new()
    }
}

impl fmt::Debug for TString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests;
