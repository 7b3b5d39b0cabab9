//! Which frames an Ethernet interface takes.

use super::Link;

const ETHERNET_HEADER_BYTES: usize = 14;
const VLAN_TAG_BYTES: usize = 4;
const VLAN_ETHER_TYPE: [u8; 2] = [0x81, 0x00];

/// The kernel's rule for the length of frames (`packet_snd` of `net/packet/af_packet.c`): at
/// least an Ethernet header, at most the MTU behind it, and a VLAN tag comes on top. The fast
/// paths of the ports get past the kernel's check, so the ports make it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLimit {
    untagged_length_max: usize,
}

impl FrameLimit {
    pub(crate) fn of(link: &Link) -> Self {
        Self { untagged_length_max: link.mtu as usize + ETHERNET_HEADER_BYTES }
    }

    /// Whether the kernel would take such a frame.
    pub(crate) fn accepts(self, frame: &[u8]) -> bool {
        let is_tagged = frame.get(12..14) == Some(&VLAN_ETHER_TYPE);
        let length_max = self.untagged_length_max + if is_tagged { VLAN_TAG_BYTES } else { 0 };
        (ETHERNET_HEADER_BYTES..=length_max).contains(&frame.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_tag_may_be_on_top_of_the_mtu() {
        let limit = FrameLimit { untagged_length_max: 114 };
        let mut frame = [0; 119];
        assert!(limit.accepts(&frame[..114]));
        assert!(!limit.accepts(&frame[..115]));
        frame[12..14].copy_from_slice(&VLAN_ETHER_TYPE);
        assert!(limit.accepts(&frame[..118]));
        assert!(!limit.accepts(&frame[..119]));
    }

    #[test]
    fn less_than_a_header_is_no_frame() {
        let limit = FrameLimit { untagged_length_max: 114 };
        assert!(limit.accepts(&[0; 14]));
        assert!(!limit.accepts(&[0; 13]));
        assert!(!limit.accepts(&[]));
    }
}
