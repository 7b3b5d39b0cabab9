//! Capture files, pcap, pcapng and ERF, decoded and, the first two, encoded, without any input or
//! output of their own.
//!
//! [`Decoder`] is handed the bytes that the caller has, in pieces of any size, and points at the
//! records inside them: nothing is copied. [`PcapWriter`] and [`PcapngWriter`] append to a buffer
//! of the caller. Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

mod byte_order;
mod decoder;
mod encode_error;
mod erf;
mod error;
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
pub use pcapng_writer::PcapngWriter;
pub use record::{RecordHeader, Step};
pub use records::Records;

/// The most bytes that one record may hold, as in libpcap (`MAXIMUM_SNAPLEN`).
///
/// A longer length is taken for a corrupted file, not for a packet.
pub const RECORD_LENGTH_MAX: u32 = 262_144;

/// The most bytes that one pcapng block may hold, its frame of type and lengths included.
pub const BLOCK_LENGTH_MAX: u32 = 16 * 1024 * 1024;

/// The most interfaces that one pcapng section may describe.
pub const INTERFACES_MAX: usize = 65_536;
