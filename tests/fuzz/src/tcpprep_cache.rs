//! Any bytes as a file of tcpprep: an error or sides, never a panic.

use wirestorm_engine::sides::CacheFile;

/// The property, for one input.
pub fn run(input: &[u8]) {
    match CacheFile::parse(input) {
        Ok(cache) => {
            assert!(cache.comment().len() <= input.len());
            // Numbers count from 1; those around every limit, and far beyond the last.
            for number in (0..=input.len() as u64 * 8 + 2).chain([u64::MAX - 1, u64::MAX]) {
                assert_eq!(cache.lookup(number), cache.side(number).ok());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
