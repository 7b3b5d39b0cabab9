//! Ports over packet sockets with segmentation and receive offload (`PACKET_VNET_HDR`). Long TCP
//! frames leave in one piece and the interface segments them; on a veth nothing segments them.
//! Frames that the kernel merged on reception (GRO) arrive in one piece. Linux's own TCP works the
//! same way.
//!
//! The port uses `sendmmsg` and `recvmmsg`: the kernel copies each frame once. A ring is faster for
//! short frames, but it has two drawbacks. The kernel would reference frames longer than a page in
//! the ring, and a veth reports them as sent before the peer has read them. A receive ring delivers
//! frames up to a millisecond late, which is too long for request and response traffic.

mod ingress;
mod messages;
mod receive;
mod transmit;

pub use receive::{FetchExtent, OffloadReceive};
pub use transmit::OffloadTransmit;

use wirestorm_base::port::{Offloads, Segmentation};

/// Longest frame: an IPv4 packet of 65,535 bytes, an Ethernet header and a VLAN tag.
const LONG_FRAME_MAX: usize = 65_535 + 18;

/// Size of `struct virtio_net_hdr` (`linux/virtio_net.h`), which precedes each frame: flags,
/// segmentation type, then in native byte order header length, segment size, checksum start and
/// checksum offset.
const VIRTIO_HEADER_BYTES: usize = 10;

type VirtioHeader = [u8; VIRTIO_HEADER_BYTES];

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_VALID: u8 = 2;
const SEGMENTATION_TCP_IPV4: u8 = 1;
const SEGMENTATION_TCP_IPV6: u8 = 4;
/// Flag beside the segmentation type: only the first segment carries CWR (RFC 3168).
const SEGMENTATION_ECN: u8 = 0x80;
/// Offset of the checksum in the TCP header.
const TCP_CHECKSUM: u16 = 16;

/// Builds the header of a frame that the interface segments.
fn virtio_header(segments: &Segmentation) -> VirtioHeader {
    let kind = if segments.is_ipv6 { SEGMENTATION_TCP_IPV6 } else { SEGMENTATION_TCP_IPV4 };
    let mut header = [NEEDS_CHECKSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    let fields = [segments.headers, segments.data, segments.transport, TCP_CHECKSUM];
    for (bytes, field) in header[2..].as_chunks_mut().0.iter_mut().zip(fields) {
        *bytes = field.to_ne_bytes();
    }
    header
}

/// Reads the offloads from the header of a received frame.
fn offloads(header: &VirtioHeader) -> Offloads {
    let [flags, kind, _, _, low, high, ..] = *header;
    let is_tcp = matches!(kind & !SEGMENTATION_ECN, SEGMENTATION_TCP_IPV4 | SEGMENTATION_TCP_IPV6);
    Offloads {
        is_verified: flags & (NEEDS_CHECKSUM | CHECKSUM_VALID) != 0,
        segment_data: if is_tcp { u16::from_ne_bytes([low, high]) } else { 0 },
    }
}
