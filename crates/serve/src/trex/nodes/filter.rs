//! VLAN tags of a node, and which frames it gets.

/// Bits of a filter: packets that are neither TCP nor UDP, and those that are.
pub(super) const OTHER: u8 = 1;
pub(super) const TCP_AND_UDP: u8 = 2;
pub(super) const ALL: u8 = OTHER | TCP_AND_UDP;

const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
/// TPIDs of VLAN tags: IEEE 802.1Q and 802.1ad, and older ones for stacked tags.
const TPIDS: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
const VLAN_ID: u16 = 0x0fff;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) tpid: u16,
    pub(super) vlan: u16,
}

/// The VLAN tags of a node, outer first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tags(pub(super) Vec<Tag>);

impl Tags {
    /// Adds the tags to a frame that a node sends.
    pub(super) fn add(&self, frame: &[u8]) -> Vec<u8> {
        let (addresses, rest) = frame.split_at(ADDRESSES_BYTES.min(frame.len()));
        let tags = self.0.iter();
        let tags = tags.flat_map(|tag| [tag.tpid.to_be_bytes(), tag.vlan.to_be_bytes()].concat());
        addresses.iter().copied().chain(tags).chain(rest.iter().copied()).collect()
    }

    /// Returns a frame without its tags; `None` if it has others or the filter keeps it off.
    pub(super) fn remove(&self, frame: &[u8], filter: u8) -> Option<Vec<u8>> {
        let (addresses, mut rest) = frame.split_at_checked(ADDRESSES_BYTES)?;
        for tag in &self.0 {
            let (tpid, vlan) = (number(rest)?, number(rest.get(2..)?)?);
            if (tpid, vlan & VLAN_ID) != (tag.tpid, tag.vlan) {
                return None;
            }
            rest = rest.get(TAG_BYTES..)?;
        }
        let kind = number(rest)?;
        let protocol = match kind {
            kind if TPIDS.contains(&kind) => return None,
            IPV4 => rest.get(2 + 9),
            IPV6 => rest.get(2 + 6),
            _ => None,
        };
        let kind = match protocol {
            Some(&(TCP | UDP)) => TCP_AND_UDP,
            _ => OTHER,
        };
        (filter & kind != 0).then(|| [addresses, rest].concat())
    }
}

/// Returns the name of a filter.
pub(super) const fn name(filter: u8) -> &'static str {
    match filter & ALL {
        OTHER => "no_tcp_udp",
        TCP_AND_UDP => "tcp_udp",
        ALL => "all",
        _ => "none",
    }
}

fn number(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tags: &[u8], protocol: u8) -> Vec<u8> {
        let mut packet = [0; 20];
        packet[9] = protocol;
        [&[2; 12], tags, &IPV4.to_be_bytes(), &packet].concat()
    }

    #[test]
    fn tags_are_added_and_removed() {
        let tags = Tags(vec![Tag { tpid: 0x88a8, vlan: 7 }, Tag { tpid: 0x8100, vlan: 300 }]);
        let bytes = [0x88, 0xa8, 0, 7, 0x81, 0, 1, 44];
        let plain = frame(&[], 1);
        assert_eq!(tags.add(&plain), frame(&bytes, 1));
        assert_eq!(tags.remove(&frame(&bytes, 1), OTHER), Some(plain.clone()));
        // The priority of a tag does not matter; its ID and the number of tags do.
        let with_priority = [0x88, 0xa8, 0xe0, 7, 0x81, 0, 1, 44];
        assert_eq!(tags.remove(&frame(&with_priority, 1), OTHER), Some(plain.clone()));
        for wrong in [&bytes[..4], &bytes[4..], &[bytes, bytes].concat(), &[]] {
            assert_eq!(tags.remove(&frame(wrong, 1), ALL), None);
        }
        assert_eq!(Tags::default().remove(&frame(&bytes[4..], 1), ALL), None);
        for length in 0..14 {
            assert_eq!(Tags::default().remove(&plain[..length], ALL), None);
        }
    }

    #[test]
    fn filter_keeps_off_protocols() {
        let passes = |protocol, filter| Tags::default().remove(&frame(&[], protocol), filter);
        for (protocol, filter, expected) in [
            (1, OTHER, true),
            (TCP, OTHER, false),
            (UDP, TCP_AND_UDP, true),
            (1, TCP_AND_UDP, false),
            (TCP, ALL, true),
            (1, ALL, true),
            (1, 0, false),
        ] {
            assert_eq!(passes(protocol, filter).is_some(), expected, "{protocol} {filter}");
        }
    }
}
