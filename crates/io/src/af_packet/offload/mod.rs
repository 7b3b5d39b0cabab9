//! A port over a packet socket that lets the interface do what it can (`PACKET_VNET_HDR`): long
//! frames of TCP leave in one piece and are cut by the interface, or by nobody where they never meet
//! a wire, as on a virtual cable; and what the kernel has put together of what arrived comes in one
//! piece. It is how Linux's own TCP sends and hears.
//!
//! Frames go by `sendmmsg` and `recvmmsg`: the kernel copies each, once. A ring is faster for short
//! frames, but frames that are longer than a page would refer to it, and on a virtual cable the
//! kernel says that they have left while the other end has not read them; and a receive ring hands
//! over what is a millisecond old, which is long for who waits for an answer.

mod ingress;
mod messages;
mod receive;
mod transmit;

pub use receive::{Fetched, OffloadReceive};
pub use transmit::OffloadTransmit;

use wirestorm_base::port::{Offloads, Segmentation};

/// The longest frame: a packet of IPv4 has at most 65,535 bytes, and stands behind the header of
/// Ethernet with a VLAN tag.
const LONG_FRAME_MAX: usize = 65_535 + 18;

/// `struct virtio_net_hdr` (`linux/virtio_net.h`), which stands before each frame: flags, kind of
/// segmentation, and in the machine's own order the length of the headers, that of a segment's data,
/// where the checksum begins, and where it is written from there.
const VIRTIO_HEADER_BYTES: usize = 10;

type VirtioHeader = [u8; VIRTIO_HEADER_BYTES];

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_VALID: u8 = 2;
const SEGMENTATION_TCP_IPV4: u8 = 1;
const SEGMENTATION_TCP_IPV6: u8 = 4;
/// Beside one of the two: the first segment alone says that the window was reduced (RFC 3168).
const SEGMENTATION_ECN: u8 = 0x80;
/// Where the checksum is in a header of TCP.
const TCP_CHECKSUM: u16 = 16;

/// The header of a frame that is to be cut.
fn virtio_header(segments: &Segmentation) -> VirtioHeader {
    let kind = if segments.is_ipv6 { SEGMENTATION_TCP_IPV6 } else { SEGMENTATION_TCP_IPV4 };
    let mut header = [NEEDS_CHECKSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    let fields = [segments.headers, segments.data, segments.transport, TCP_CHECKSUM];
    for (bytes, field) in header[2..].as_chunks_mut().0.iter_mut().zip(fields) {
        *bytes = field.to_ne_bytes();
    }
    header
}

/// What the header of a frame that arrived says.
fn offloads(header: &VirtioHeader) -> Offloads {
    let [flags, kind, _, _, low, high, ..] = *header;
    let is_tcp = matches!(kind & !SEGMENTATION_ECN, SEGMENTATION_TCP_IPV4 | SEGMENTATION_TCP_IPV6);
    Offloads {
        is_verified: flags & (NEEDS_CHECKSUM | CHECKSUM_VALID) != 0,
        segment_data: if is_tcp { u16::from_ne_bytes([low, high]) } else { 0 },
    }
}
