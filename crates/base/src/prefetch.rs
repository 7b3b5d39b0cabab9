//! Prefetch of cache lines.

/// Prefetches the cache line that holds the first byte of `place`, without waiting for it.
///
/// A read that misses the cache stalls the instructions behind it; a prefetch does not. On other
/// processors than x86-64 it does nothing.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    safe_arch::prefetch_t0(place);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
