//! Detection of the file format by the first bytes.

use super::ByteOrder;
use super::erf::is_erf;
use super::pcap::{Records, Resolution};

/// File format by the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pcap {
        order: ByteOrder,
        resolution: Resolution,
        records: Records,
    },
    Pcapng,
    Erf,
    /// A known format that this crate does not read, and how to convert it.
    Unsupported {
        name: &'static str,
        remedy: &'static str,
    },
    Unknown,
}

/// Magic numbers of pcap in the writer's byte order.
pub(super) const PCAP_MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(super) const PCAP_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// The "modified" pcap format of Alexey Kuznetzov's libpcap.
const PCAP_MODIFIED: u32 = 0xa1b2_cd34;
/// Hardware and software captures of IXIA.
const PCAP_IXIA: [u32; 2] = [0x1c00_01ac, 0x1c00_01ab];

const CONVERT: &str = "convert it with: editcap -F pcap IN OUT";

/// Detects the format of a file. `start` holds at least 4 bytes, and 16 for ERF if the file is that
/// long.
pub(super) fn recognise(start: &[u8]) -> Kind {
    let Some(first) = start.first_chunk::<4>() else { return Kind::Unknown };
    for (order, number) in [
        (ByteOrder::Little, u32::from_le_bytes(*first)),
        (ByteOrder::Big, u32::from_be_bytes(*first)),
    ] {
        let pcap = |resolution, records| Kind::Pcap { order, resolution, records };
        match number {
            PCAP_MICROSECONDS => return pcap(Resolution::Microseconds, Records::Standard),
            PCAP_NANOSECONDS => return pcap(Resolution::Nanoseconds, Records::Standard),
            PCAP_MODIFIED => return pcap(Resolution::Microseconds, Records::Modified),
            number if PCAP_IXIA.contains(&number) => return foreign("IXIA pcap", CONVERT),
            _ => {}
        }
    }
    match start {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => Kind::Pcapng,
        [0x1f, 0x8b, ..] => foreign("gzip", "decompress it with: gzip -d"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => foreign("zstd", "decompress it with: zstd -d"),
        [0xfd, b'7', b'z', b'X', ..] => foreign("xz", "decompress it with: xz -d"),
        [b'B', b'Z', b'h', ..] => foreign("bzip2", "decompress it with: bzip2 -d"),
        [0x04, 0x22, 0x4d, 0x18, ..] => foreign("lz4", "decompress it with: lz4 -d"),
        [b'P', b'K', 0x03, 0x04, ..] => foreign("zip", "extract it with: unzip"),
        [b's', b'n', b'o', b'o', b'p', 0, ..] => foreign("snoop", CONVERT),
        [b'G' | b'R', b'M' | b'T', b'B' | b'S', b'U' | b'S', ..]
            if matches!(first, b"GMBU" | b"RTSS") =>
        {
            foreign("Microsoft Network Monitor", CONVERT)
        }
        _ if is_erf(start) => Kind::Erf,
        _ => Kind::Unknown,
    }
}

const fn foreign(name: &'static str, remedy: &'static str) -> Kind {
    Kind::Unsupported { name, remedy }
}
