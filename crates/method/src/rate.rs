//! Maximum frame rates of Ethernet links.

/// Bytes of preamble, start delimiter and minimum inter-packet gap (IEEE 802.3).
const PREAMBLE_AND_GAP: u64 = 20;

/// Returns the theoretical maximum frame rate of a link in frames per second (RFC 5180 appendix A),
/// rounded down. `frame_size` is in bytes with FCS, `bits_per_second` counts layer 1.
pub fn line_rate(frame_size: u32, bits_per_second: u64) -> u64 {
    bits_per_second / ((u64::from(frame_size) + PREAMBLE_AND_GAP) * 8)
}

/// Returns the layer-1 bit rate of frames of one size, in bit/s.
pub fn layer_1_rate(frames_per_second: f64, frame_size: u32) -> f64 {
    frames_per_second * (u64::from(frame_size) + PREAMBLE_AND_GAP) as f64 * 8.0
}

/// Returns the layer-2 bit rate of frames of one size, in bit/s.
pub fn layer_2_rate(frames_per_second: f64, frame_size: u32) -> f64 {
    frames_per_second * f64::from(frame_size) * 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5180 appendix A.1 (Ethernet): the rates of 10 Mb/s to 10 Gb/s at 64 to 9216 bytes.
    #[test]
    fn line_rates_are_those_of_rfc_5180() {
        for (size, ten_mega, ten_giga) in [
            (64, 14_880, 14_880_952),
            (128, 8_445, 8_445_945),
            (256, 4_528, 4_528_985),
            (512, 2_349, 2_349_624),
            (1024, 1_197, 1_197_318),
            (1280, 961, 961_538),
            (1518, 812, 812_743),
            (9216, 135, 135_339),
        ] {
            assert_eq!(line_rate(size, 10_000_000), ten_mega);
            assert_eq!(line_rate(size, 10_000_000_000), ten_giga);
        }
    }
}
