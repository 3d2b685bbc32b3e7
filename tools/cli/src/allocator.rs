//! A count of what is allocated, for those who ask for one.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[cfg(feature = "lab")]
use onetrip_lab::Allocated;

/// An allocator around another. The program names that one: a library that did would bring it into Python. It counts once
/// it was asked to; until then each allocation looks at one flag.
#[derive(Debug)]
pub struct CountingAllocator<A>(pub A);

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// From now on allocations are counted, if this is the allocator of the program: it is not where Python is. Whether it is.
#[cfg(feature = "lab")]
pub(crate) fn count() -> bool {
    IS_COUNTING.store(true, Relaxed);
    drop(std::hint::black_box(Box::new(0_u8)));
    COUNT.load(Relaxed) > 0
}

/// What has been allocated since then.
#[cfg(feature = "lab")]
pub(crate) fn allocated() -> Allocated {
    Allocated { count: Some(COUNT.load(Relaxed)), bytes: BYTES.load(Relaxed) }
}

fn note(bytes: usize) {
    if IS_COUNTING.load(Relaxed) {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: every call goes to the allocator inside unchanged; the counters need no allocation.
#[allow(unsafe_code)]
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer comes from the allocator inside with this layout.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the pointer comes from the allocator inside with this layout, the caller answers for the size.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}
