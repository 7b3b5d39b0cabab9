//! Frames of one length, for benchmarks.

use std::net::Ipv4Addr;

use super::frame::{Conversation, FRAME_LENGTH_MIN, Host, UDP_IPV4_HEADERS_BYTES, nth_ipv4};
use crate::pcap::Packet;

/// Options of [`FixedFrames`].
#[derive(Clone, Debug)]
pub struct FixedOptions {
    /// Length of each frame in bytes without FCS; 60 to 1514.
    pub frame_length: usize,
    /// Number of different 5-tuples, used round robin.
    pub flows: u32,
    /// Number of frames.
    pub packets: u64,
    /// Nanoseconds between two frames.
    pub gap: u64,
    /// Time of the first frame in nanoseconds since the Unix epoch.
    pub start: u64,
}

impl Default for FixedOptions {
    /// Returns 10,000 frames of 60 bytes in one flow, 10 us apart.
    fn default() -> Self {
        let (packets, gap) = (10_000, 10_000);
        Self { frame_length: 60, flows: 1, packets, gap, start: super::START }
    }
}

/// UDP over IPv4 in frames of one length. The payload starts with the frame number from 0 in eight
/// bytes, big-endian, so no two frames are equal.
#[derive(Debug)]
pub struct FixedFrames {
    options: FixedOptions,
    next: u64,
}

impl FixedFrames {
    /// Creates a generator that starts with frame 0.
    ///
    /// # Panics
    /// Panics if the frame length is out of range, or without flows.
    pub fn new(options: FixedOptions) -> Self {
        assert!((FRAME_LENGTH_MIN..=1514).contains(&options.frame_length), "{options:?}");
        assert!(options.flows > 0, "{options:?}");
        Self { options, next: 0 }
    }
}

impl Iterator for FixedFrames {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let options = &self.options;
        let number = self.next;
        if number >= options.packets {
            return None;
        }
        self.next += 1;
        let flow = (number % u64::from(options.flows)) as u32;
        let conversation = Conversation {
            client: Host {
                mac: [0x02, 0, 0, 0, 0, 1],
                address: nth_ipv4(Ipv4Addr::new(10, 1, 0, 1), flow),
                port: 1_024 + (flow % 60_000) as u16,
            },
            server: Host {
                mac: [0x02, 0, 0, 0, 0, 2],
                address: nth_ipv4(Ipv4Addr::new(198, 18, 0, 1), flow % 1_000),
                port: 9,
            },
            vlan: None,
        };
        let mut payload = vec![0; options.frame_length - UDP_IPV4_HEADERS_BYTES];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        let frame = conversation.frame(true, super::frame::Upper::Udp, &payload);
        Some(Packet { time: options.start + number * options.gap, frame })
    }
}
