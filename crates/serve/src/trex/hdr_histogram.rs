//! Delays as an HdrHistogram in its interchange format, version 2.
//!
//! Like TRex's histograms, these count whole microseconds from 1 to 10,000,000 with three
//! significant digits.
//!
//! ```text
//! text   = base64(cookie length zlib(header counts))
//! header = cookie, length of the counts, offset, digits, lowest, highest, conversion ratio
//! counts = *ZigZag LEB128; a run of zeros is one negative number
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

const LOWEST_US: i64 = 1;
const HIGHEST_US: u64 = 10_000_000;
const SIGNIFICANT_DIGITS: i32 = 3;
/// For three digits, 2 * 10^3 values have their own count, rounded up to a power of two.
const SUB_BUCKET_BITS: u32 = 11;
/// Cookies of version 2, with the word size for counts in LEB128.
const ENCODING: i32 = 0x1c84_9303 | 0x10;
const COMPRESSION: i32 = 0x1c84_9304 | 0x10;
/// Maximum length of a count. The last byte holds eight bits.
const COUNT_BYTES_MAX: usize = 9;

/// Encodes delays in nanoseconds with their counts. As in TRex, delays above 10 s are dropped.
/// Negative delays, from different clocks, count as zero.
pub(super) fn encode(counted_ns: &[(i64, u64)]) -> String {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (delay_ns, count) in counted_ns {
        let delay_us = u64::try_from(*delay_ns).unwrap_or_default() / 1_000;
        if delay_us <= HIGHEST_US {
            *counts.entry(index_of(delay_us)).or_default() += count;
        }
    }
    let counts = encode_counts(&counts);
    let mut content = Vec::with_capacity(40 + counts.len());
    content.extend(ENCODING.to_be_bytes());
    content.extend(i32::try_from(counts.len()).unwrap_or(i32::MAX).to_be_bytes());
    content.extend(0_i32.to_be_bytes());
    content.extend(SIGNIFICANT_DIGITS.to_be_bytes());
    content.extend(LOWEST_US.to_be_bytes());
    content.extend(HIGHEST_US.to_be_bytes());
    content.extend(1_f64.to_be_bytes());
    content.extend(counts);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(&content);
    let compressed = encoder.finish().unwrap_or_default();
    let mut message = Vec::with_capacity(8 + compressed.len());
    message.extend(COMPRESSION.to_be_bytes());
    message.extend(i32::try_from(compressed.len()).unwrap_or(i32::MAX).to_be_bytes());
    message.extend(compressed);
    STANDARD.encode(message)
}

/// Returns the index of the count of a value.
const fn index_of(value: u64) -> u64 {
    let bits = u64::BITS - value.leading_zeros();
    let bucket = bits.saturating_sub(SUB_BUCKET_BITS);
    ((bucket as u64) << (SUB_BUCKET_BITS - 1)) + (value >> bucket)
}

/// Encodes the counts up to the last one. As in TRex, there is at least the count of zero.
fn encode_counts(counts: &BTreeMap<u64, u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut next = 0;
    for (index, count) in counts {
        if *index > next {
            append(&mut bytes, -((index - next) as i64));
        }
        append(&mut bytes, i64::try_from(*count).unwrap_or(i64::MAX));
        next = index + 1;
    }
    if counts.is_empty() {
        append(&mut bytes, -1);
    }
    bytes
}

/// Appends an integer in LEB128 with the sign in the lowest bit (ZigZag).
fn append(bytes: &mut Vec<u8>, number: i64) {
    let mut value = ((number << 1) ^ (number >> 63)).cast_unsigned();
    for _ in 1..COUNT_BYTES_MAX {
        if value <= 0x7f {
            break;
        }
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    fn content(text: &str) -> Vec<u8> {
        let message = STANDARD.decode(text).unwrap();
        assert_eq!(message[..4], COMPRESSION.to_be_bytes());
        assert_eq!(
            message.len() - 8,
            u32::from_be_bytes(message[4..8].try_into().unwrap()) as usize
        );
        let mut content = Vec::new();
        ZlibDecoder::new(&message[8..]).read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn counts_are_in_the_order_of_their_values_with_runs_of_zeros() {
        // 0 us, 3 us twice, 2,048 us: index 2,048, which is that of 2,049 us too.
        let found = content(&encode(&[(-5, 1), (3_500, 2), (2_049_000, 64), (11_000_000_000, 9)]));
        // 1; two zeros; 2; 2,044 zeros (ZigZag 4,087 = 0x77 + 0x1f << 7); 64 (ZigZag 128).
        assert_eq!(found[40..], [2, 3, 4, 0xf7, 0x1f, 0x80, 1]);
        assert_eq!(found[4..8], [0, 0, 0, 7]);
    }

    #[test]
    fn empty_histogram_has_the_count_of_zero() {
        assert_eq!(content(&encode(&[]))[40..], [1]);
    }

    #[test]
    fn large_values_share_counts_of_a_thousandth() {
        assert_eq!(index_of(2_047), 2_047);
        assert_eq!(index_of(2_048), 2_048);
        assert_eq!(index_of(2_049), 2_048);
        assert_eq!(index_of(4_095), 3_071);
        assert_eq!(index_of(4_096), 3_072);
    }
}
