//! Captures for replay tests.

use std::path::{Path, PathBuf};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::{Packet, Resolution};
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

/// Link type of Ethernet.
pub const LINKTYPE_ETHERNET: u32 = 1;

/// Byte order of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Format of a classic pcap file.
#[derive(Clone, Copy, Debug)]
pub struct FileForm {
    /// Byte order of the headers.
    pub order: ByteOrder,
    /// Resolution of the time stamps.
    pub resolution: Resolution,
    /// Link type of the packets.
    pub link_type: u32,
    /// Snapshot length in the file header, in bytes.
    pub snapshot_length: u32,
}

impl Default for FileForm {
    /// Returns the most common format: little-endian, microseconds, whole Ethernet frames.
    fn default() -> Self {
        Self {
            order: ByteOrder::Little,
            resolution: Resolution::Microseconds,
            link_type: LINKTYPE_ETHERNET,
            snapshot_length: 262_144,
        }
    }
}

/// Encodes a classic pcap file (draft-ietf-opsawg-pcap sections 4 and 5).
///
/// # Panics
/// Panics if a time or a length exceeds 32 bits.
pub fn encode(form: FileForm, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let word = |bytes: &mut Vec<u8>, value: u32| match form.order {
        ByteOrder::Little => bytes.extend(value.to_le_bytes()),
        ByteOrder::Big => bytes.extend(value.to_be_bytes()),
    };
    let (magic, unit) = match form.resolution {
        Resolution::Microseconds => (0xa1b2_c3d4, 1_000),
        Resolution::Nanoseconds => (0xa1b2_3c4d, 1),
    };
    word(&mut bytes, magic);
    bytes.extend(match form.order {
        ByteOrder::Little => [2, 0, 4, 0],
        ByteOrder::Big => [0, 2, 0, 4],
    });
    for value in [0, 0, form.snapshot_length, form.link_type] {
        word(&mut bytes, value);
    }
    for Packet { time, frame } in packets {
        let narrow = |value: u64| u32::try_from(value).expect("fits a pcap");
        word(&mut bytes, narrow(time / 1_000_000_000));
        word(&mut bytes, narrow(time % 1_000_000_000 / unit));
        word(&mut bytes, narrow(frame.len() as u64));
        word(&mut bytes, narrow(frame.len() as u64));
        bytes.extend(frame);
    }
    bytes
}

/// Generates packets of conversations that start within 100 ms, reproducible from the seed.
pub fn traffic(conversations: u64, seed: u64) -> Vec<Packet> {
    let options =
        TrafficOptions { conversations, seed, duration: 100_000_000, ..TrafficOptions::default() };
    Traffic::new(options).collect()
}

/// Writes packets to a file with nanosecond time stamps; returns its path.
///
/// # Panics
/// Panics if the file cannot be written.
pub fn write_capture(scratch: &Scratch, name: &str, packets: &[Packet]) -> PathBuf {
    let path = scratch.file(name);
    write_to(&path, packets);
    path
}

fn write_to(path: &Path, packets: &[Packet]) {
    write_file(packets.iter().cloned(), Resolution::Nanoseconds, path)
        .expect("a capture is written");
}
