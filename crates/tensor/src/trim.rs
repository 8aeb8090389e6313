//! When memory that nobody uses goes back to the system: not at once, but when there is time.

use crate::buffer::release_recycled;

/// Gives back what is kept for reuse: recycled buffers, and what the allocator holds of freed small blocks.
///
/// The system's allocator keeps most of what was freed between blocks that live on. A server that once had a
/// thousand connections would look three times its size for ever. It takes about a millisecond.
pub fn trim_memory() {
    release_recycled();
    trim_allocator();
}

/// Lets the allocator keep what is freed until [`trim_memory`].
///
/// A connection takes and frees blocks of a frame's size all the time; an allocator that gives pages back whenever the
/// last block of a heap is free asks for them again, zeroed, with the next frame. For programs that serve; it concerns
/// the whole process.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, value) in [
        (libc::M_TRIM_THRESHOLD, KEEP),
        // Large blocks stay apart: they are zeroed by the system and recycled by us.
        (libc::M_MMAP_THRESHOLD, LARGE),
    ] {
        // SAFETY: `mallopt` takes two numbers and does its own locking.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// How much of a heap's end may be free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEEP: i32 = 256 << 20;

/// Blocks from this size on come from the system directly.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 4 << 20;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim_allocator() {
    // SAFETY: `malloc_trim` takes no pointers and does its own locking.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim_allocator() {}
