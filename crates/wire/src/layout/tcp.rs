//! TCP, RFC 9293 section 3.1, and its options.

use super::field::{bytes, checksum, option_length, uint};
use super::{ChecksumCoverage, Layout, Number, Padding, Role, Space};
use crate::packet::protocol;

/// TCP header.
pub static TCP: Layout = Layout::new(
    "tcp",
    "TCP, RFC 9293 section 3.1",
    &[
        uint("src_port", 0, 16),
        uint("dst_port", 16, 16),
        uint("seq_num", 32, 32),
        uint("ack_num", 64, 32),
        uint("data_offset", 96, 4).role(Role::HeaderLength { unit: 4, subtract: 0 }),
        uint("reserved", 100, 3),
        // RFC 3540 section 9, RFC 3168 section 6.1.
        uint("ecn_ns", 103, 1),
        uint("ecn_cwr", 104, 1),
        uint("ecn_echo", 105, 1),
        uint("ctl_urg", 106, 1),
        uint("ctl_ack", 107, 1),
        uint("ctl_psh", 108, 1),
        uint("ctl_rst", 109, 1),
        uint("ctl_syn", 110, 1),
        uint("ctl_fin", 111, 1),
        uint("flags", 104, 8).view(),
        uint("window", 112, 16),
        checksum("checksum", 128, ChecksumCoverage::PacketAndAddresses { never_zero: false }),
        uint("urgent_pointer", 144, 16),
    ],
)
.items(
    "options",
    &[
        &MAXIMUM_SEGMENT_SIZE,
        &WINDOW_SCALE,
        &SACK_PERMITTED,
        &SACK,
        &TIMESTAMPS,
        &NO_OPERATION,
        &END_OF_OPTIONS,
        &OTHER,
    ],
)
.align(4, Padding::Zeros)
.numbers(&[Number::new(Space::IpProtocol, protocol::TCP as u16)]);

static MAXIMUM_SEGMENT_SIZE: Layout = Layout::new(
    "mss",
    "Maximum segment size, RFC 9293 section 3.2",
    &[uint("kind", 0, 8).default(2), option_length(8), uint("value", 16, 16).default(1460)],
);

static WINDOW_SCALE: Layout = Layout::new(
    "window_scale",
    "Window scale, RFC 7323 section 2.2",
    &[uint("kind", 0, 8).default(3), option_length(8), uint("shift", 16, 8)],
);

static SACK_PERMITTED: Layout = Layout::new(
    "sack_permitted",
    "SACK permitted, RFC 2018 section 2",
    &[uint("kind", 0, 8).default(4), option_length(8)],
);

static SACK: Layout = Layout::new(
    "sack",
    "SACK, RFC 2018 section 3",
    &[uint("kind", 0, 8).default(5), option_length(8)],
)
.items("blocks", &[&SACK_BLOCK]);

static SACK_BLOCK: Layout = Layout::new(
    "block",
    "A block of a SACK, RFC 2018 section 3",
    &[uint("left_edge", 0, 32), uint("right_edge", 32, 32)],
);

static TIMESTAMPS: Layout = Layout::new(
    "timestamps",
    "Timestamps, RFC 7323 section 3.2",
    &[
        uint("kind", 0, 8).default(8),
        option_length(8),
        uint("value", 16, 32),
        uint("echo_reply", 48, 32),
    ],
);

static NO_OPERATION: Layout = Layout::new(
    "no_operation",
    "No operation, RFC 9293 section 3.2",
    &[uint("kind", 0, 8).default(1)],
);

static END_OF_OPTIONS: Layout = Layout::new(
    "end_of_options",
    "End of option list, RFC 9293 section 3.2",
    &[uint("kind", 0, 8)],
);

static OTHER: Layout = Layout::new(
    "custom",
    "Any option, RFC 9293 section 3.1",
    &[uint("kind", 0, 8), option_length(8), bytes("value", 16)],
);
