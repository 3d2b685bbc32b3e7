//! Counts what a thread takes from the heap, or all threads but some, for the tests that bound it. A program that names this
//! crate has its allocator: the system's, with counters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

thread_local! {
    /// How often this thread took some.
    pub static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that it has taken and not given back; negative where it gives back what another thread took.
    pub static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The most that [`LIVE`] was; a test sets it to what it counts from.
    pub static PEAK: Cell<isize> = const { Cell::new(0) };
    /// This thread is left out of [`ALLOCATIONS_OF_ALL`]: it is the test's own.
    pub static IS_LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// How often all threads took some, but those that are left out.
pub static ALLOCATIONS_OF_ALL: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: isize) {
    ALLOCATIONS.with(|count| count.set(count.get() + usize::from(bytes > 0)));
    LIVE.with(|live| live.set(live.get() + bytes));
    PEAK.with(|peak| peak.set(peak.get().max(LIVE.get())));
    if bytes > 0 && !IS_LEFT_OUT.get() {
        ALLOCATIONS_OF_ALL.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are plain cells of this thread, and a number of
// all, that need no allocation and no destructor.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the pointer comes from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the pointer comes from `System.alloc` with this layout, the caller answers for the size.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
