//! Where the elements of a tensor live: inline for 16 bytes or less, else in a shared buffer or vector.

use std::sync::Arc;

use bytes::Bytes;

use crate::buffer::Buffer;
use crate::resource::ResourceHandle;
use crate::tstring::TString;
use crate::variant::Variant;

/// Up to this many bytes live inside the tensor itself: scalars need no allocation and no counting.
pub(crate) const INLINE_BYTES: usize = 16;

/// Small plain data, aligned for every element type.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub struct Inline([u8; INLINE_BYTES]);

/// The elements of a tensor. Not for use outside this crate.
#[doc(hidden)]
#[derive(Clone)]
pub enum Storage {
    /// The length stands beside the bytes, not inside their struct, where alignment would double its size.
    Inline {
        bytes: Inline,
        len: u8,
    },
    Heap(Buffer),
    String(Arc<Vec<TString>>),
    Resource(Arc<Vec<ResourceHandle>>),
    Variant(Arc<Vec<Variant>>),
}

impl Storage {
    /// Plain storage of `len` initialised bytes of unspecified value; `None` without memory for it.
    #[inline]
    pub(crate) fn plain_uninit(len: usize) -> Option<Storage> {
        if len <= INLINE_BYTES {
            return Some(Storage::zeroed_inline(len));
        }
        Buffer::try_new(len).map(Storage::Heap)
    }

    /// Plain storage of `len` zero bytes; `None` without memory for it.
    pub(crate) fn plain_zeroed(len: usize) -> Option<Storage> {
        if len <= INLINE_BYTES {
            return Some(Storage::zeroed_inline(len));
        }
        Buffer::try_zeroed(len).map(Storage::Heap)
    }

    /// Plain storage for `len` bytes that are there already, elsewhere: their copy is not refused.
    #[inline]
    pub(crate) fn plain_given(len: usize) -> Storage {
        if len <= INLINE_BYTES {
            return Storage::zeroed_inline(len);
        }
        Storage::Heap(Buffer::new(len))
    }

    #[inline]
    fn zeroed_inline(len: usize) -> Storage {
        Storage::Inline {
            bytes: Inline([0; INLINE_BYTES]),
            len: len as u8,
        }
    }

    /// Plain storage with a copy of these bytes.
    #[inline]
    pub(crate) fn from_plain(bytes: &[u8]) -> Storage {
        let mut storage = Storage::plain_given(bytes.len());
        if let Some(target) = storage.plain_mut() {
            target.copy_from_slice(bytes);
        }
        storage
    }

    /// Plain storage that shares `bytes` where size and alignment allow.
    pub(crate) fn from_shared(bytes: Bytes, alignment: usize) -> Storage {
        if bytes.len() <= INLINE_BYTES {
            return Storage::from_plain(&bytes);
        }
        Storage::Heap(Buffer::from_bytes(bytes, alignment))
    }

    /// The bytes of plain storage.
    #[inline]
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        match self {
            Storage::Inline { bytes, len } => Some(&bytes.0[..usize::from(*len)]),
            Storage::Heap(buffer) => Some(buffer.bytes()),
            _ => None,
        }
    }

    /// The bytes of plain storage for writing; copies first if they are shared.
    #[inline]
    pub(crate) fn plain_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Storage::Inline { bytes, len } => Some(&mut bytes.0[..usize::from(*len)]),
            Storage::Heap(buffer) => {
                if !buffer.is_unique() {
                    *buffer = Buffer::copy_of(buffer.bytes());
                }
                buffer.bytes_mut()
            }
            _ => None,
        }
    }

    /// Whether writing would not copy.
    pub(crate) fn is_unique(&mut self) -> bool {
        match self {
            Storage::Inline { .. } => true,
            Storage::Heap(buffer) => buffer.is_unique(),
            Storage::String(values) => Arc::get_mut(values).is_some(),
            Storage::Resource(values) => Arc::get_mut(values).is_some(),
            Storage::Variant(values) => Arc::get_mut(values).is_some(),
        }
    }

    /// Plain bytes as bools. Callers know that the dtype is bool, whose bytes are all 0 or 1.
    #[inline]
    pub(crate) fn bools(&self) -> Option<&[bool]> {
        let bytes = self.plain()?;
        // SAFETY: bool has size and alignment 1; every way to fill a bool tensor stores 0 or 1
        // (`Tensor` checks the dtype before it calls this, and normalises raw input).
        Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<bool>(), bytes.len()) })
    }

    /// Plain bytes as bools for writing.
    pub(crate) fn bools_mut(&mut self) -> Option<&mut [bool]> {
        let bytes = self.plain_mut()?;
        // SAFETY: as in `bools`; the exclusive borrow is passed on.
        Some(unsafe {
            std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<bool>(), bytes.len())
        })
    }
}
