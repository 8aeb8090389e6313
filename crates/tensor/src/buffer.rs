//! [`Buffer`]: shared, 64-byte aligned, always initialised memory that is recycled.
//!
//! A fresh block comes zeroed from the system, a recycled one holds old values: no byte is ever
//! uninitialised, so a kernel may write into an output without clearing it first. Large blocks go
//! back to a bounded free list instead of the system, because on the tensor path fresh pages cost
//! more (page faults) than the copy itself. The largest ask for huge pages, so that rows picked from
//! all over a table cost no page walk each.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

/// Alignment of every owned buffer.
pub const ALIGNMENT: usize = 64;

/// Blocks below this size are left to the system allocator, which is fast enough for them.
const RECYCLE_FROM: usize = 16 << 10;

/// Blocks from this size on ask for huge pages.
#[cfg(target_os = "linux")]
const HUGE_FROM: usize = 4 << 20;

/// How many bytes the free lists may hold unless [`set_recycle_limit`] says otherwise.
const DEFAULT_RECYCLE_LIMIT: usize = 512 << 20;

/// Size classes: four per power of two from [`RECYCLE_FROM`] up to 2^40.
const CLASSES: usize = 4 * 27;

static FREE: [Mutex<Vec<Memory>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];
static FREE_BYTES: AtomicUsize = AtomicUsize::new(0);
static FREE_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_RECYCLE_LIMIT);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Sets how many bytes of freed buffers are kept for reuse.
pub fn set_recycle_limit(bytes: usize) {
    FREE_LIMIT.store(bytes, Ordering::Relaxed);
    if bytes == 0 {
        release_recycled();
    }
}

/// Gives all recycled memory back to the system.
pub fn release_recycled() {
    for class in &FREE {
        let blocks = std::mem::take(
            &mut *class
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        let bytes: usize = blocks.iter().map(|memory| memory.capacity).sum();
        FREE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes in large live buffers, and bytes kept for reuse.
pub fn memory_usage() -> (usize, usize) {
    (
        LIVE_BYTES.load(Ordering::Relaxed),
        FREE_BYTES.load(Ordering::Relaxed),
    )
}

/// Shared bytes: a slice of an owned block or of a foreign buffer such as a received message.
#[derive(Clone)]
pub struct Buffer {
    block: Arc<Block>,
    offset: usize,
    len: usize,
}

enum Block {
    Owned(Memory),
    Foreign(Bytes),
}

/// One aligned allocation, all of it initialised.
struct Memory {
    aligned: NonNull<u8>,
    base: NonNull<u8>,
    capacity: usize,
}

// SAFETY: `Memory` owns its allocation exclusively; sharing is decided by the `Arc` around it.
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` is only read; writes go through `Buffer::bytes_mut`, which needs a unique `Arc`.
unsafe impl Sync for Memory {}

impl Buffer {
    /// A buffer of `len` initialised bytes of unspecified value. Without memory the process ends: for sizes that
    /// come from a graph, the network or a disk there is [`try_new`](Self::try_new).
    pub fn new(len: usize) -> Buffer {
        Buffer::try_new(len).unwrap_or_else(|| {
            handle_alloc_error(Memory::layout(len).unwrap_or(Layout::new::<u8>()))
        })
    }

    /// Like [`new`](Self::new); `None` if the system does not give as much memory.
    pub fn try_new(len: usize) -> Option<Buffer> {
        Some(Buffer::owning(Memory::obtain(len)?.0, len))
    }

    /// A buffer of `len` zero bytes; `None` if the system does not give as much memory.
    pub fn try_zeroed(len: usize) -> Option<Buffer> {
        if len < RECYCLE_FROM {
            return Some(Buffer::owning(Memory::fresh(len)?, len));
        }
        let (memory, is_fresh) = Memory::obtain(len)?;
        let mut buffer = Buffer::owning(memory, len);
        // Fresh memory is zero, and not there before it is touched: much may be asked for and little used.
        if !is_fresh && let Some(bytes) = buffer.bytes_mut() {
            bytes.fill(0);
        }
        Some(buffer)
    }

    fn owning(memory: Memory, len: usize) -> Buffer {
        Buffer {
            block: Arc::new(Block::Owned(memory)),
            offset: 0,
            len,
        }
    }

    /// Shares foreign bytes without copying when they are aligned to `alignment`, copies otherwise.
    pub fn from_bytes(bytes: Bytes, alignment: usize) -> Buffer {
        if bytes.as_ptr().addr().is_multiple_of(alignment.max(1)) {
            let len = bytes.len();
            return Buffer {
                block: Arc::new(Block::Foreign(bytes)),
                offset: 0,
                len,
            };
        }
        Buffer::copy_of(&bytes)
    }

    /// A private copy of these bytes.
    pub fn copy_of(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::new(bytes.len());
        if let Some(target) = buffer.bytes_mut() {
            target.copy_from_slice(bytes);
        }
        buffer
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.offset..self.offset + self.len]
    }

    /// The bytes for writing, if this is the only holder of memory of our own.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match Arc::get_mut(&mut self.block)? {
            Block::Owned(memory) => {
                Some(&mut memory.bytes_mut()[self.offset..self.offset + self.len])
            }
            Block::Foreign(_) => None,
        }
    }

    /// Whether [`bytes_mut`](Self::bytes_mut) would succeed.
    pub fn is_unique(&mut self) -> bool {
        matches!(Arc::get_mut(&mut self.block), Some(Block::Owned(_)))
    }

    /// The same memory from `offset` on, `len` bytes of it; `None` if that is out of range.
    pub fn slice(&self, offset: usize, len: usize) -> Option<Buffer> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Buffer {
            block: Arc::clone(&self.block),
            offset: self.offset + offset,
            len,
        })
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes as shared [`Bytes`], without a copy.
    pub fn to_shared(&self) -> Bytes {
        match &*self.block {
            Block::Foreign(bytes) => bytes.slice(self.offset..self.offset + self.len),
            Block::Owned(_) => Bytes::from_owner(self.clone()),
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Block::Owned(memory) => memory.bytes(),
            Block::Foreign(bytes) => bytes,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Block::Owned(memory) = self {
            std::mem::replace(memory, Memory::EMPTY).recycle();
        }
    }
}

impl Memory {
    const EMPTY: Memory = Memory {
        aligned: NonNull::<Aligned>::dangling().cast(),
        base: NonNull::<Aligned>::dangling().cast(),
        capacity: 0,
    };

    /// At least `len` bytes: from the free list if one fits, else fresh, if the system gives them; whether they are fresh.
    fn obtain(len: usize) -> Option<(Memory, bool)> {
        let fresh = |len| Some((Memory::fresh(len)?, true));
        if len < RECYCLE_FROM {
            return fresh(len);
        }
        let Some(class) = size_class(len) else {
            return fresh(len);
        };
        let reused = FREE[class]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .pop();
        let is_fresh = reused.is_none();
        let memory = match reused {
            Some(memory) => {
                FREE_BYTES.fetch_sub(memory.capacity, Ordering::Relaxed);
                memory
            }
            None => Memory::fresh(class_size(class)).or_else(|| {
                // What lies in the free lists may be what is missing.
                release_recycled();
                Memory::fresh(class_size(class))
            })?,
        };
        LIVE_BYTES.fetch_add(class_size(class), Ordering::Relaxed);
        Some((memory, is_fresh))
    }

    /// Zeroed memory from the system, if it gives as much.
    fn fresh(capacity: usize) -> Option<Memory> {
        if capacity == 0 {
            return Some(Memory::EMPTY);
        }
        let layout = Self::layout(capacity)?;
        // SAFETY: the layout has a non-zero size. It asks for little alignment on purpose: that way the
        // system's calloc can hand out untouched zero pages instead of clearing them.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base)?;
        #[cfg(target_os = "linux")]
        if capacity >= HUGE_FROM {
            ask_for_huge_pages(base, layout.size());
        }
        let padding = base.as_ptr().align_offset(ALIGNMENT);
        // SAFETY: the layout has ALIGNMENT spare bytes, so base + padding + capacity is inside it.
        let aligned = unsafe { base.add(padding) };
        Some(Memory {
            aligned,
            base,
            capacity,
        })
    }

    /// `None` for sizes that no memory has.
    fn layout(capacity: usize) -> Option<Layout> {
        Layout::from_size_align(capacity.checked_add(ALIGNMENT)?, 16).ok()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `aligned` points at `capacity` initialised bytes owned by self.
        unsafe { std::slice::from_raw_parts(self.aligned.as_ptr(), self.capacity) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.aligned.as_ptr(), self.capacity) }
    }

    /// Keeps the memory for reuse if the free list has room, else frees it.
    fn recycle(self) {
        if self.capacity < RECYCLE_FROM {
            return;
        }
        let Some(class) = size_class(self.capacity) else {
            return;
        };
        LIVE_BYTES.fetch_sub(self.capacity, Ordering::Relaxed);
        let held = FREE_BYTES.fetch_add(self.capacity, Ordering::Relaxed);
        if held + self.capacity > FREE_LIMIT.load(Ordering::Relaxed) {
            FREE_BYTES.fetch_sub(self.capacity, Ordering::Relaxed);
            return;
        }
        FREE[class]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(self);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let layout = Self::layout(self.capacity).filter(|_| self.capacity > 0);
        if let Some(layout) = layout {
            // SAFETY: `base` came from `alloc_zeroed` with this very layout and is freed once.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
    }
}

/// Asks the system to back the whole pages among `len` bytes by huge ones; that it need not is no error.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(base: NonNull<u8>, len: usize) {
    const PAGE: usize = 4096;
    let skipped = base.as_ptr().align_offset(PAGE);
    if skipped >= len {
        return;
    }
    // SAFETY: `skipped` is below the length of the allocation.
    let first = unsafe { base.add(skipped) };
    let whole = (len - skipped) / PAGE * PAGE;
    // SAFETY: the pages belong to this allocation, and the advice changes none of their bytes.
    unsafe { libc::madvise(first.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
}

/// A type with the buffer alignment, for well-aligned dangling pointers of empty buffers.
#[repr(align(64))]
struct Aligned;

/// The smallest class that holds `len` bytes; `None` beyond the largest class.
fn size_class(len: usize) -> Option<usize> {
    let quarters = len.div_ceil(RECYCLE_FROM / 4); // in units of a quarter of the smallest class
    let power = quarters.next_power_of_two().trailing_zeros() as usize;
    let class = match power.checked_sub(3) {
        None => quarters.saturating_sub(4),
        Some(_) => {
            // Within (2^(power-1), 2^power] quarters there are four steps.
            let step = 1usize << (power - 3);
            let below = 1usize << (power - 1);
            (power - 3) * 4 + (quarters - below).div_ceil(step)
        }
    };
    (class < CLASSES).then_some(class)
}

/// The capacity of blocks in a class.
fn class_size(class: usize) -> usize {
    let quarter = RECYCLE_FROM / 4;
    let (octave, step) = (class / 4, class % 4);
    (quarter * (4 + step)) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_promise() {
        for len in (RECYCLE_FROM..4 << 20).step_by(4099) {
            let class = size_class(len).unwrap();
            assert!(
                class_size(class) >= len,
                "{len} in class {class} of {}",
                class_size(class)
            );
            assert!(
                class == 0 || class_size(class - 1) < len,
                "{len} fits class {}",
                class - 1
            );
            assert_eq!(size_class(class_size(class)), Some(class));
        }
        assert_eq!(size_class(1 << 60), None);
    }

    #[test]
    fn buffers_are_aligned_and_unique_until_shared() {
        for len in [0, 1, 100, 5000, 20_000, 1 << 20] {
            let mut buffer = Buffer::new(len);
            assert!(
                buffer.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT),
                "length {len}"
            );
            assert_eq!(buffer.bytes().len(), len);
            assert!(buffer.is_unique());
            let twin = buffer.clone();
            assert!(buffer.bytes_mut().is_none());
            drop(twin);
            assert!(buffer.bytes_mut().is_some());
        }
    }

    #[test]
    fn zeroed_clears_recycled_memory() {
        let mut buffer = Buffer::new(1 << 20);
        buffer.bytes_mut().unwrap().fill(7);
        drop(buffer);
        assert!(
            Buffer::try_zeroed(1 << 20)
                .unwrap()
                .bytes()
                .iter()
                .all(|byte| *byte == 0)
        );
    }

    #[test]
    fn sharing_as_bytes_and_back_copies_nothing() {
        let buffer = Buffer::copy_of(&[1, 2, 3, 4]);
        let shared = buffer.slice(1, 3).unwrap().to_shared();
        assert_eq!(&shared[..], &[2, 3, 4]);
        assert_eq!(shared.as_ptr(), buffer.bytes()[1..].as_ptr());
        let back = Buffer::from_bytes(shared.clone(), 1);
        assert_eq!(back.bytes().as_ptr(), shared.as_ptr());
        assert!(buffer.slice(2, 3).is_none());
    }
}
