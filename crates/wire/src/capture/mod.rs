//! Capture files: decoder of pcap, pcapng and ERF, encoders of pcap and pcapng, without I/O.
//!
//! [`Decoder`] takes the file in pieces of any size and returns the ranges of the records in them,
//! so it copies nothing. [`PcapWriter`] and [`PcapngWriter`] append to a buffer of the caller.
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

mod byte_order;
mod decoder;
mod encode_error;
mod erf;
mod error;
mod format;
pub mod link;
mod link_type;
mod magic;
mod pcap;
mod pcap_writer;
mod pcapng;
mod pcapng_writer;
mod record;
mod records;

pub use byte_order::ByteOrder;
pub use decoder::{Decoder, Format};
pub use encode_error::EncodeError;
pub use error::CaptureError;
pub use link_type::LinkType;
pub use magic::Magic;
pub use pcap::Resolution;
pub use pcap_writer::PcapWriter;
pub use pcapng::Interface;
pub use pcapng_writer::{PacketDirection, PcapngWriter};
pub use record::{RecordHeader, Step};
pub use records::Records;

/// Longest record in bytes, as in libpcap (`MAXIMUM_SNAPLEN`).
///
/// A greater length means that the file is corrupted.
pub const RECORD_LENGTH_MAX: u32 = 262_144;

/// Longest pcapng block in bytes, type and lengths included.
pub const BLOCK_LENGTH_MAX: u32 = 16 * 1024 * 1024;

/// Largest number of interfaces in a pcapng section.
pub const INTERFACES_MAX: usize = 65_536;
