//! What can be set of TCP, for all connections of a template.

/// The largest window scale (RFC 7323 section 2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;

/// Pieces of data beyond holes that a connection keeps by default.
pub const RANGES_MAX: usize = 256;

/// The shortest "longest segment" that is asked for, and that a peer is believed to ask for, in
/// bytes of data: TRex's. What options take is off it only as far as so much is left.
pub const SEGMENT_SIZE_MIN: u16 = 10;

/// What is done about ECN (RFC 3168 section 6.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// It is neither asked for nor agreed to.
    #[default]
    Never,
    /// Peers that ask for it get it: "If a host has received an ECN-setup SYN packet, then it MAY
    /// send an ECN-setup SYN-ACK packet."
    Answer,
    /// It is asked for as well.
    Ask,
}

/// Which rules a congestion window follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 5681 with RFC 3465 and RFC 6582.
    NewReno,
    /// RFC 9438: the default, as in Linux, Windows, macOS and FreeBSD.
    #[default]
    Cubic,
    /// BBR, version 1, as in Linux: it goes by the bandwidth and the round trip that it measures,
    /// and paces what it sends.
    Bbr,
}

/// The bounds of retransmission timeouts, in microseconds; of a template, not of each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoBounds {
    /// The timeout as long as no round-trip time is known. Default: 1 s (RFC 6298 section 2.1).
    pub initial: u32,
    /// How much longer than the smoothed round-trip time the timeout is at least.
    ///
    /// Default: 200 ms. RFC 6298 section 2.4 asks for a timeout of 1 s or more, for the coarse
    /// clocks of its time, and notes that a smaller one may do. Stacks in use have one: Linux
    /// adds 200 ms or more to the smoothed round-trip time, FreeBSD 200 ms (`rexmit_slop`) to a
    /// timeout of 30 ms or more. It must be longer than peers delay their acknowledgments, which
    /// Linux does by 200 ms at most; so it is added here, too. With 1 s the RFC is met to the
    /// letter.
    pub min: u32,
    /// The longest timeout, however often it was backed off; this bound comes before the others.
    /// Default: 120 s, as in Linux; RFC 6298 section 2.5 asks for 60 s or more.
    pub max: u32,
}

impl Default for RtoBounds {
    fn default() -> Self {
        Self { initial: 1_000_000, min: 200_000, max: 120_000_000 }
    }
}

/// How connections behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest segment to send and to ask for, in bytes of data, [`SEGMENT_SIZE_MIN`] or more.
    /// Default 1460.
    pub maximum_segment_size: u16,
    /// The longest segment that a peer is sent which does not say what it takes (RFC 9293 section
    /// 3.7.1). Default 536; an endpoint makes it 1220 over IPv6.
    pub default_segment_size: u16,
    /// The first congestion window in segments, 1 to 20 (RFC 6928). Default 10.
    pub initial_window: u8,
    /// Room for what arrives, in bytes; the window, and its scale, follow from it. Default 32 KiB.
    pub receive_buffer: u32,
    /// The most bytes that are sent and not acknowledged, whatever the peer has room for and the
    /// network carries: as if what is sent again had to fit so much memory. At least 1. Default:
    /// any number.
    pub send_buffer: u32,
    /// Whether windows are scaled (RFC 7323 section 2). Default yes.
    pub window_scaling: bool,
    /// By how many bits, at most 14; a window of nothing at all is never offered. Default: as few
    /// as the room for what arrives needs.
    pub window_shift: Option<u8>,
    /// Whether segments carry timestamps (RFC 7323 section 3). Default yes.
    pub timestamps: bool,
    /// Whether losses are told by SACK (RFC 2018). Default yes.
    pub sack: bool,
    /// Whether losses are found by time, those of a tail by probes (RFC 8985, RACK-TLP), where SACK
    /// was agreed upon; else they are by what RFC 6675 counts. Default yes.
    pub rack: bool,
    /// How many duplicate acknowledgements tell of a loss, at least 1: DupThresh of RFC 6675
    /// section 2, and in RFC 8985 section 6.2, step 4, what ends the waiting for segments that
    /// were overtaken. Default 3: "The fast retransmit algorithm uses the arrival of 3 duplicate
    /// ACKs [...] as an indication that a segment has been lost" (RFC 5681 section 3.2).
    pub dupack_threshold: u8,
    /// How many pieces are kept of what arrived beyond holes; one more is thrown away, which RFC
    /// 9293 section 3.10.7.4 leaves open: segments beyond a hole "SHOULD be held". 0: none is.
    /// Default 256.
    pub reassembly_max: u16,
    /// Whether ECN is asked for and answered (RFC 3168). Default never.
    pub ecn: EcnUse,
    /// Whether data goes with SYN to servers that gave a cookie, and is taken from clients that
    /// were given one (TCP Fast Open, RFC 7413). Default no.
    pub fast_open: bool,
    /// Which congestion control. Default CUBIC.
    pub congestion: Algorithm,
    /// Bounds of the retransmission timeout.
    pub retransmission: RtoBounds,
    /// How often a segment is sent again before the connection is given up. Default 8.
    pub retries: u8,
    /// The same of SYN. Default 5.
    pub syn_retries: u8,
    /// How long a connection may take to open, in ms, however often SYN was sent until then; 0: as
    /// long as that takes. RFC 9293 section 3.8.3 wants three minutes or more of a SYN, for which a
    /// load test seldom waits. Default 0.
    pub open_timeout_ms: u32,
    /// How long an acknowledgement may wait, in ms, at most 500 (RFC 9293 section 3.8.6.3);
    /// 0: it does not wait. Default 40.
    pub delayed_ack_ms: u16,
    /// After how many bytes one does not wait any longer; 0: after the second segment, as RFC 9293
    /// section 3.8.6.3 wants. More than two segments saves acknowledgements, and slows down a peer
    /// whose congestion window is smaller. Default 0.
    pub ack_after_bytes: u32,
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
            send_buffer: u32::MAX,
            window_scaling: true,
            window_shift: None,
            timestamps: true,
            sack: true,
            rack: true,
            dupack_threshold: 3,
            reassembly_max: RANGES_MAX as u16,
            ecn: EcnUse::Never,
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
    /// By how many bits our windows are shifted: as few as make the buffer fit 16 bits, where
    /// nothing else is asked for.
    pub fn window_scale(&self) -> u8 {
        let bits = (u32::BITS - self.receive_buffer.leading_zeros()) as u8;
        // More would leave nothing of the buffer.
        let shift = self.window_shift.map(|shift| shift.min(bits.saturating_sub(1)));
        shift.unwrap_or(bits.saturating_sub(16)).min(WINDOW_SCALE_MAX)
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

    #[test]
    fn a_scale_that_is_asked_for_leaves_something_of_the_window() {
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
