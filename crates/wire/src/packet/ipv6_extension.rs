//! The chain of IPv6 extension headers, RFC 8200 section 4.

use super::protocol;

/// Largest number of extension headers in one packet.
pub const EXTENSION_HEADERS_MAX: usize = 32;

/// Length of the fragment header in bytes (RFC 8200 section 4.5).
pub const FRAGMENT_HEADER_LENGTH: usize = 8;

/// Offset of the next header field in the IPv6 header (RFC 8200 section 3); extension headers have
/// it in their first byte.
const NEXT_HEADER_AT: usize = 6;

/// End of a packet's extension headers, and the protocol behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions {
    /// End in bytes from the start of the IPv6 header.
    pub end: usize,
    /// Protocol behind the extension headers; in a later fragment, that of its data.
    pub protocol: u8,
    /// Offset of the field that names `protocol`, in bytes from the start of the IPv6 header.
    pub protocol_at: usize,
    /// Whether this is a fragment, first and last included. An "atomic" fragment (RFC 6946) is a
    /// whole packet.
    pub is_fragment: bool,
    /// Whether this is a fragment but not the first; its data does not begin with a header.
    pub is_later_fragment: bool,
    /// Whether the final destination is in a routing header instead of the IPv6 header.
    pub is_routed: bool,
    /// Whether an option requires the host to discard the packet.
    pub must_discard: bool,
}

/// Walks the extension headers of `packet`, an IPv6 packet without link-layer padding, from
/// `start`. `None` if they are truncated or more than [`EXTENSION_HEADERS_MAX`].
#[inline]
pub(crate) fn walk_extensions(packet: &[u8], start: usize, next_header: u8) -> Option<Extensions> {
    let mut extensions = Extensions {
        end: start,
        protocol: next_header,
        protocol_at: NEXT_HEADER_AT,
        is_fragment: false,
        is_later_fragment: false,
        is_routed: false,
        must_discard: false,
    };
    for _ in 0..=EXTENSION_HEADERS_MAX {
        let kind = extensions.protocol;
        if !is_extension(kind) {
            return Some(extensions);
        }
        let header = packet.get(extensions.end..)?;
        let [next, length] = *header.first_chunk()?;
        let header = header.get(..extension_length(kind, length))?;
        match kind {
            protocol::FRAGMENT => {
                let fragment = u16::from_be_bytes(*header.get(2..)?.first_chunk()?);
                extensions.is_later_fragment = fragment & 0xfff8 != 0;
                extensions.is_fragment = fragment & 0xfff9 != 0;
            }
            // Segments Left of the routing header.
            protocol::ROUTING => extensions.is_routed |= *header.get(3)? != 0,
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS => {
                extensions.must_discard |= !can_skip(&header[2..]);
            }
            _ => {}
        }
        extensions.protocol_at = extensions.end;
        extensions.end += header.len();
        extensions.protocol = next;
        if extensions.is_later_fragment {
            return Some(extensions);
        }
    }
    None
}

/// Returns whether a host that only knows the padding options may skip these options.
///
/// RFC 8200 section 4.2, on the highest two bits of an option type: "00 - skip over this option and
/// continue processing the header. 01 - discard the packet." 10 and 11 discard it as well.
#[cold]
fn can_skip(mut options: &[u8]) -> bool {
    const PAD_1: u8 = 0;
    loop {
        options = match options {
            [] => return true,
            [PAD_1, behind @ ..] => behind,
            [kind, length, behind @ ..] if kind >> 6 == 0 => match behind.get(*length as usize..) {
                Some(behind) => behind,
                None => return false,
            },
            _ => return false,
        }
    }
}

/// Returns whether a next header number is an extension header with a known length format.
pub(crate) const fn is_extension(kind: u8) -> bool {
    matches!(
        kind,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
            | protocol::HOST_IDENTITY
            | protocol::SHIM6
    )
}

/// Returns the length in bytes of extension header `kind` whose second byte is `length`.
pub(crate) const fn extension_length(kind: u8, length: u8) -> usize {
    match kind {
        // The second byte is reserved.
        protocol::FRAGMENT => FRAGMENT_HEADER_LENGTH,
        // RFC 4302 section 2.2: in units of 4 bytes, "minus 2".
        protocol::AUTHENTICATION => (length as usize + 2) * 4,
        // RFC 6564 section 4: in units of 8 bytes, "not including the first 8 octets".
        _ => (length as usize + 1) * 8,
    }
}
