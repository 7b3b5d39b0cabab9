//! TCP settings for all connections of a template.

/// The largest window scale (RFC 7323 section 2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;

/// Default maximum number of out-of-order ranges that a connection keeps.
pub const REASSEMBLY_RANGES_DEFAULT: usize = 256;

/// Minimum segment size, for our own MSS and for the peer's, in bytes of data; the same as TRex.
/// Options never reduce the data of a segment below it.
pub const SEGMENT_SIZE_MIN: u16 = 10;

/// Use of ECN (RFC 3168 section 6.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Neither offered nor accepted.
    #[default]
    Never,
    /// Accepted if the peer offers it: "If a host has received an ECN-setup SYN packet, then it MAY
    /// send an ECN-setup SYN-ACK packet."
    Accept,
    /// Offered and accepted.
    Offer,
}

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// NewReno: RFC 5681 with RFC 3465 and RFC 6582.
    NewReno,
    /// CUBIC: RFC 9438, the default of Linux, Windows, macOS and FreeBSD.
    #[default]
    Cubic,
    /// BBR version 1 as in Linux: a model of bandwidth and round-trip time, with pacing.
    Bbr,
}

/// Bounds of retransmission timeouts in microseconds, shared by all flows of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoBounds {
    /// Timeout before the first round-trip time sample. Default: 1 s (RFC 6298 section 2.1).
    pub initial: u32,
    /// Minimum margin of the timeout above the smoothed round-trip time.
    ///
    /// Default: 200 ms. RFC 6298 section 2.4 requires a timeout of at least 1 s because of coarse
    /// clocks, and notes that a smaller one may do. Linux adds at least 200 ms to the smoothed
    /// round-trip time. FreeBSD adds 200 ms (`rexmit_slop`) to a timeout of at least 30 ms.
    ///
    /// The margin must exceed the delay of the peer's acknowledgements, which is at most 200 ms in
    /// Linux. A margin of 1 s satisfies the RFC literally.
    pub min: u32,
    /// Maximum timeout, whatever the backoff; it overrides the other bounds. Default: 120 s, as in
    /// Linux; RFC 6298 section 2.5 requires at least 60 s.
    pub max: u32,
}

impl Default for RtoBounds {
    fn default() -> Self {
        Self { initial: 1_000_000, min: 200_000, max: 120_000_000 }
    }
}

/// Behaviour of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Own MSS and upper bound of sent segments, in bytes of data; at least [`SEGMENT_SIZE_MIN`].
    /// Default 1460.
    pub maximum_segment_size: u16,
    /// Segment size for a peer that sends no MSS option (RFC 9293 section 3.7.1). Default 536; an
    /// endpoint uses 1220 over IPv6.
    pub default_segment_size: u16,
    /// Initial congestion window in segments, 1 to 20 (RFC 6928). Default 10.
    pub initial_window: u8,
    /// Receive buffer in bytes; it determines the advertised window and its scale. Default 32 KiB.
    pub receive_buffer: u32,
    /// Maximum number of unacknowledged bytes, at least 1. It has the effect of a retransmission
    /// buffer of that size. Default: no limit.
    pub send_buffer: u32,
    /// Whether to use window scaling (RFC 7323 section 2). Default true.
    pub window_scaling: bool,
    /// Window shift in bits, at most 14, and small enough for a non-zero window. Default: the
    /// smallest shift for the receive buffer.
    pub window_shift: Option<u8>,
    /// Whether to use timestamps (RFC 7323 section 3). Default true.
    pub timestamps: bool,
    /// Whether to use SACK (RFC 2018). Default true.
    pub sack: bool,
    /// Whether to use RACK and tail loss probes (RFC 8985) in connections with SACK. Otherwise RFC
    /// 6675 detects losses. Default true.
    pub rack: bool,
    /// Number of duplicate acknowledgements that indicate a loss, at least 1. It is DupThresh of
    /// RFC 6675 section 2, and in RFC 8985 section 6.2, step 4, it ends the wait for reordered
    /// segments.
    ///
    /// Default 3: "The fast retransmit algorithm uses the arrival of 3 duplicate ACKs [...] as an
    /// indication that a segment has been lost" (RFC 5681 section 3.2).
    pub dupack_threshold: u8,
    /// Maximum number of out-of-order ranges that a receiver keeps; it discards further ones. RFC
    /// 9293 section 3.10.7.4 allows that: segments beyond a hole "SHOULD be held". 0 keeps none.
    /// Default 256.
    pub reassembly_max: u16,
    /// Use of ECN (RFC 3168). Default never.
    pub ecn: EcnMode,
    /// Whether to use TCP Fast Open (RFC 7413): clients with a cookie send data with the SYN, and
    /// servers accept it. Default false.
    pub fast_open: bool,
    /// Congestion control algorithm. Default CUBIC.
    pub congestion: Algorithm,
    /// Bounds of the retransmission timeout.
    pub retransmission: RtoBounds,
    /// Maximum number of retransmissions of a segment before the connection ends. Default 8.
    pub retries: u8,
    /// Maximum number of retransmissions of the SYN. Default 5.
    pub syn_retries: u8,
    /// Maximum time to open a connection in ms, whatever the number of SYN retransmissions; 0: no
    /// limit. RFC 9293 section 3.8.3 requires at least three minutes for a SYN, too long for most
    /// load tests. Default 0.
    pub open_timeout_ms: u32,
    /// Maximum delay of an acknowledgement in ms, at most 500 (RFC 9293 section 3.8.6.3); 0: no
    /// delay. Default 40.
    pub delayed_ack_ms: u16,
    /// Number of received bytes that trigger an acknowledgement. 0: every second segment, as RFC
    /// 9293 section 3.8.6.3 requires. A larger value saves acknowledgements and slows down a peer
    /// with a smaller congestion window. Default 0.
    pub ack_after_bytes: u32,
    /// Whether to disable the Nagle algorithm (RFC 9293 section 3.7.4), so that a short segment
    /// leaves while data is unacknowledged. Default false.
    pub no_delay: bool,
    /// Whether each segment with data has PSH, instead of only the last one of the queued data.
    /// Default false.
    pub push_all: bool,
    /// Duration of TIME-WAIT in ms: twice the maximum segment lifetime. RFC 9293 section 3.4.2 sets
    /// minutes, too long for a load test over short paths. Default 500.
    pub time_wait_ms: u32,
    /// Idle time before keepalive probes in ms; 0: no probes (RFC 9293 section 3.8.4). Default 0.
    pub keepalive_ms: u32,
    /// Interval of keepalive probes in ms. Default 7000.
    pub keepalive_interval_ms: u32,
    /// Maximum number of unanswered keepalive probes. Default 8.
    pub keepalive_probes: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            maximum_segment_size: 1460,
            default_segment_size: 536,
            initial_window: 10,
            receive_buffer: 32 << 10,
            send_buffer: u32::MAX,
            window_scaling: true,
            window_shift: None,
            timestamps: true,
            sack: true,
            rack: true,
            dupack_threshold: 3,
            reassembly_max: REASSEMBLY_RANGES_DEFAULT as u16,
            ecn: EcnMode::Never,
            fast_open: false,
            congestion: Algorithm::Cubic,
            retransmission: RtoBounds::default(),
            retries: 8,
            syn_retries: 5,
            open_timeout_ms: 0,
            delayed_ack_ms: 40,
            ack_after_bytes: 0,
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
    /// Returns the window shift of this end in bits: the configured one, or the smallest one that
    /// makes the receive buffer fit 16 bits.
    pub fn window_scale(&self) -> u8 {
        let bits = (u32::BITS - self.receive_buffer.leading_zeros()) as u8;
        // A larger shift would round the window down to 0.
        let shift = self.window_shift.map(|shift| shift.min(bits.saturating_sub(1)));
        shift.unwrap_or(bits.saturating_sub(16)).min(WINDOW_SCALE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_window_shift_is_minimal() {
        let scale =
            |receive_buffer| Settings { receive_buffer, ..Settings::default() }.window_scale();
        assert_eq!([scale(32 << 10), scale(65_535), scale(65_536), scale(1 << 20)], [0, 0, 1, 5]);
        assert_eq!(scale(u32::MAX), 14);
    }

    #[test]
    fn configured_window_shift_leaves_a_non_zero_window() {
        let scale = |shift, receive_buffer| {
            Settings { receive_buffer, window_shift: Some(shift), ..Settings::default() }
                .window_scale()
        };
        assert_eq!([scale(0, 1 << 20), scale(7, 32 << 10), scale(14, 32 << 10)], [0, 7, 14]);
        assert_eq!(
            [scale(14, 2_048), scale(14, 1), scale(14, 0), scale(15, 1 << 20)],
            [11, 0, 0, 14]
        );
    }
}
