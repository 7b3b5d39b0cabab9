//! Arbitrary bytes as a tcpprep file: an error or sides, never a panic.

use wirestorm_engine::sides::CacheFile;

/// Checks one input.
pub fn run(input: &[u8]) {
    match CacheFile::parse(input) {
        Ok(cache) => {
            assert!(cache.comment().len() <= input.len());
            // Packet numbers start at 1; check those around the limits and far above the last one.
            for number in (0..=input.len() as u64 * 8 + 2).chain([u64::MAX - 1, u64::MAX]) {
                assert_eq!(cache.lookup(number), cache.side(number).ok());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
