//! Frames that a receiver of test traffic leaves to the kernel. `crates/io/bpf/neighbour.h` has the
//! same rules.

use crate::capture::LinkType;
use crate::dissect::dissect;
use crate::packet::{ethertype, protocol};

/// Kind of a frame that receivers skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFrame {
    /// ARP.
    Arp,
    /// ICMPv6 neighbour discovery.
    Discovery,
    /// A fragment of an ICMP or ICMPv6 packet.
    Fragment,
    /// An echo request or reply. Receivers count it if it carries a signature.
    Ping,
}

impl KernelFrame {
    /// Classifies a frame; `None` for frames that receivers count.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let dissection = dissect(LinkType::EN10MB, frame);
        if dissection.ethertype == ethertype::ARP {
            return Some(Self::Arp);
        }
        let network = usize::from(dissection.network_offset);
        let header = frame.get(network..)?;
        match dissection.ethertype {
            ethertype::IPV4 if *header.get(9)? == protocol::ICMP => {
                if header[6] & 0x3f | header[7] != 0 {
                    return Some(Self::Fragment);
                }
                let kind = header.get(usize::from(header[0] & 0x0f) * 4)?;
                matches!(kind, 0 | 8).then_some(Self::Ping)
            }
            ethertype::IPV6 => {
                const FRAGMENT: u8 = 44;
                let (next, hop_limit, kind) = (*header.get(6)?, *header.get(7)?, *header.get(40)?);
                match (next, kind) {
                    // The fragment header begins with the next header number.
                    (FRAGMENT, protocol::ICMPV6) => Some(Self::Fragment),
                    (protocol::ICMPV6, 133..=137) if hop_limit == 255 => Some(Self::Discovery),
                    (protocol::ICMPV6, 128 | 129) => Some(Self::Ping),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ipv4(protocol: u8, fragment: u8, kind: u8) -> Vec<u8> {
        let packet = [0x45, 0, 0, 28, 0, 1, fragment, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0];
        [&[2; 12][..], &[8, 0], &packet, &[2, kind, 0, 0, 0, 0, 0, 0, 0]].concat()
    }

    fn ipv6(next: u8, hop_limit: u8, kind: u8) -> Vec<u8> {
        let mut packet = [0; 48];
        (packet[0], packet[6], packet[7], packet[40]) = (0x60, next, hop_limit, kind);
        [&[2; 12][..], &[0x81, 0, 0, 7], &[0x86, 0xdd], &packet].concat()
    }

    #[test]
    fn frames_for_the_kernel_are_classified() {
        for (frame, expected) in [
            ([&[2; 12][..], &[8, 6], &[0; 46]].concat(), Some(KernelFrame::Arp)),
            (ipv4(1, 0, 8), Some(KernelFrame::Ping)),
            (ipv4(1, 0, 3), None),
            (ipv4(1, 0x20, 3), Some(KernelFrame::Fragment)),
            (ipv4(17, 0x20, 8), None),
            (ipv6(58, 255, 135), Some(KernelFrame::Discovery)),
            (ipv6(58, 64, 135), None),
            (ipv6(58, 64, 128), Some(KernelFrame::Ping)),
            (ipv6(44, 64, 58), Some(KernelFrame::Fragment)),
            (ipv6(17, 255, 135), None),
            (Vec::new(), None),
            (ipv4(1, 0, 8)[..30].to_vec(), None),
        ] {
            assert_eq!(KernelFrame::of(&frame), expected, "{frame:02x?}");
        }
    }
}
