//! Memory of what runs for months.

/// From now on the kernel gives this process no huge pages. The allocator returns what is free in pieces that are smaller
/// than one, so that a huge page with a few bytes in use is kept whole: a gateway whose values take 4 MiB then holds 50.
///
/// Not for what starts programs: they would inherit it. Kernels without this setting go on as before.
/// Source: `PR_SET_THP_DISABLE` in prctl(2).
pub(crate) fn keep_small() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
