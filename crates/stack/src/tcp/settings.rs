//! What can be set of TCP, for all connections of a template.

use super::congestion::Algorithm;
use super::round_trip::RtoBounds;

/// How connections behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest segment to send and to ask for, in bytes of data. Default 1460.
    pub maximum_segment_size: u16,
    /// The longest segment that a peer is sent which does not say what it takes (RFC 9293 section
    /// 3.7.1). Default 536; an endpoint makes it 1220 over IPv6.
    pub default_segment_size: u16,
    /// The first congestion window in segments, 1 to 20 (RFC 6928). Default 10.
    pub initial_window: u8,
    /// Room for what arrives, in bytes; the window, and its scale, follow from it. Default 32 KiB.
    pub receive_buffer: u32,
    /// Whether windows are scaled (RFC 7323 section 2). Default yes.
    pub window_scaling: bool,
    /// Whether segments carry timestamps (RFC 7323 section 3). Default yes.
    pub timestamps: bool,
    /// Whether losses are told by SACK (RFC 2018). Default yes.
    pub sack: bool,
    /// Whether losses are found by time, those of a tail by probes (RFC 8985, RACK-TLP), where SACK
    /// was agreed upon; else they are by what RFC 6675 counts. Default yes.
    pub rack: bool,
    /// Whether ECN is asked for and answered (RFC 3168). Default no.
    pub ecn: bool,
    /// Which congestion control. Default CUBIC.
    pub congestion: Algorithm,
    /// Bounds of the retransmission timeout.
    pub retransmission: RtoBounds,
    /// How often a segment is sent again before the connection is given up. Default 8.
    pub retries: u8,
    /// The same of SYN. Default 5.
    pub syn_retries: u8,
    /// How long an acknowledgement may wait, in ms, at most 500 (RFC 9293 section 3.8.6.3);
    /// 0: it does not wait. Default 40.
    pub delayed_ack_ms: u16,
    /// Whether a short segment leaves though another one is not acknowledged (no Nagle,
    /// RFC 9293 section 3.7.4). Default no.
    pub no_delay: bool,
    /// Whether every segment with data has PSH, not only the last of what a program sends.
    /// Default no.
    pub push_all: bool,
    /// How long a connection is remembered after it was closed, in ms: twice the maximum segment
    /// lifetime, which RFC 9293 section 3.4.2 wants to be minutes, and which a load test over
    /// short paths can not wait for. Default 500.
    pub time_wait_ms: u32,
    /// How long a connection may be idle before the peer is asked whether it is there, in ms;
    /// 0: for ever (RFC 9293 section 3.8.4). Default 0.
    pub keepalive_ms: u32,
    /// How long between such questions, in ms. Default 7000.
    pub keepalive_interval_ms: u32,
    /// How many of them may stay unanswered. Default 8.
    pub keepalive_probes: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            maximum_segment_size: 1460,
            default_segment_size: 536,
            initial_window: 10,
            receive_buffer: 32 << 10,
            window_scaling: true,
            timestamps: true,
            sack: true,
            rack: true,
            ecn: false,
            congestion: Algorithm::Cubic,
            retransmission: RtoBounds::default(),
            retries: 8,
            syn_retries: 5,
            delayed_ack_ms: 40,
            no_delay: false,
            push_all: false,
            time_wait_ms: 500,
            keepalive_ms: 0,
            keepalive_interval_ms: 7_000,
            keepalive_probes: 8,
        }
    }
}

impl Settings {
    /// By how many bits our windows are shifted: as few as make the buffer fit 16 bits.
    pub fn window_scale(&self) -> u8 {
        let bits = u32::BITS - self.receive_buffer.leading_zeros();
        (bits.saturating_sub(16) as u8).min(super::segment::WINDOW_SCALE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_scaled_as_little_as_possible() {
        let scale =
            |receive_buffer| Settings { receive_buffer, ..Settings::default() }.window_scale();
        assert_eq!([scale(32 << 10), scale(65_535), scale(65_536), scale(1 << 20)], [0, 0, 1, 5]);
        assert_eq!(scale(u32::MAX), 14);
    }
}
