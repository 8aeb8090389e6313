//! [`CountingAllocator`]: the system's allocator with a count per thread, for tests that hold a path to few allocations.
//!
//! ```
//! use tensorfleet_tensor::CountingAllocator;
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let before = CountingAllocator::on_this_thread();
//! drop(std::hint::black_box(Box::new(1)));
//! assert_eq!(CountingAllocator::on_this_thread() - before, 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });

/// The system's allocator; counts the allocations of every thread.
pub struct CountingAllocator;

impl CountingAllocator {
    /// How often the calling thread has allocated so far; growing something counts too.
    pub fn on_this_thread() -> u64 {
        COUNT.with(Cell::get)
    }
}

fn count() {
    // A thread that is ending may have no count any more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator as it came; counting allocates nothing, because
// the thread-local is initialised at compile time and has no destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; `block` came from the system's allocator.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
