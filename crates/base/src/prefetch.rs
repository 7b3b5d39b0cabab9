//! Asking for memory before it is needed.

/// Asks for the cache line that holds the first byte of `place`, and waits for nothing.
///
/// A read that misses the cache holds up all that comes some hundred instructions behind it; this
/// does not. Where the processor has no such instruction, nothing happens.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    safe_arch::prefetch_t0(place);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
