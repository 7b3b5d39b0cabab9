//! An arbitrary frame with arbitrary edits: no panic, no byte outside the buffer, and a
//! deterministic result.

use arbitrary::Arbitrary;
use wirestorm_engine::edit::{
    EditOptions, EditResult, Editor, FrameFacts, Fuzz, MacSeed, MacSubstitution, PortReplacement,
    Prefix, PrefixReplacement, TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
};
use wirestorm_wire::capture::LinkType;
use wirestorm_wire::dissect::{Class, dissect};
use wirestorm_wire::packet::MacAddress;

use crate::arbitrary_input;

/// Highest number of bytes after a frame in the buffer; a capture's reader bounds the lengths.
const GROWTH_MAX: usize = 2_048;

#[derive(Arbitrary, Debug)]
struct Input {
    edits: Edits,
    secondary: bool,
    number: u64,
    /// Bytes of the original frame that were not captured.
    beyond: u16,
    /// Bytes in the buffer after the frame.
    room: u16,
    frame: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Edits {
    flags: [bool; 6],
    destination_mac: Option<[[u8; 6]; 2]>,
    source_mac: Option<[[u8; 6]; 2]>,
    substituted_macs: Vec<([u8; 6], [u8; 6])>,
    mac_seed: Option<(u32, u8)>,
    vlan: Option<Vlan>,
    type_of_service: Option<u8>,
    traffic_class: Option<u8>,
    flow_label: Option<u32>,
    time_to_live: Option<(u8, u8)>,
    port_map: Vec<(u16, u16, u16)>,
    tcp_sequence_seed: Option<u32>,
    fuzz: Option<(u32, u8)>,
    captured_short: Option<u8>,
    mtu_truncate: Option<u16>,
    source_addresses: [Vec<(Address, Address)>; 2],
    destination_addresses: [Vec<(Address, Address)>; 2],
    address_seed: Option<u32>,
}

#[derive(Arbitrary, Debug)]
enum Vlan {
    Add(u16, u16, u8, bool),
    DeleteOuter,
    DeleteAll,
    SetOuter(Option<u16>, Option<u16>, Option<u8>, Option<bool>),
    SetInner(Option<u16>, Option<u16>, Option<u8>, Option<bool>),
}

#[derive(Arbitrary, Debug)]
enum Address {
    Four([u8; 4], u8),
    Six([u8; 16], u8),
}

impl Address {
    fn prefix(&self) -> Prefix {
        match *self {
            Self::Four(address, length) => Prefix { address: address.into(), length },
            Self::Six(address, length) => Prefix { address: address.into(), length },
        }
    }
}

impl Edits {
    fn options(&self) -> EditOptions {
        let [remove_fcs, keep_group_macs, keep_group_addresses, lengths, checksums, _] = self.flags;
        let change = |ethertype, identifier, priority, drop_eligible| VlanChange {
            ethertype,
            identifier,
            priority,
            drop_eligible,
        };
        let mappings = |pairs: &Vec<(Address, Address)>| {
            let mapping = |(from, to): &(Address, Address)| PrefixReplacement {
                from: from.prefix(),
                to: to.prefix(),
            };
            pairs.iter().map(mapping).collect()
        };
        EditOptions {
            remove_fcs,
            destination_mac: self.destination_mac.map(|pair| pair.map(MacAddress)),
            source_mac: self.source_mac.map(|pair| pair.map(MacAddress)),
            substituted_macs: self
                .substituted_macs
                .iter()
                .map(|(from, to)| MacSubstitution { from: MacAddress(*from), to: MacAddress(*to) })
                .collect(),
            mac_seed: self.mac_seed.map(|(seed, keep_bytes)| MacSeed { seed, keep_bytes }),
            keep_group_macs,
            vlan: self.vlan.as_ref().map(|vlan| match *vlan {
                Vlan::Add(ethertype, identifier, priority, drop_eligible) => {
                    VlanEdit::Add(VlanTag { ethertype, identifier, priority, drop_eligible })
                }
                Vlan::DeleteOuter => VlanEdit::DeleteOuter,
                Vlan::DeleteAll => VlanEdit::DeleteAll,
                Vlan::SetOuter(a, b, c, d) => VlanEdit::SetOuter(change(a, b, c, d)),
                Vlan::SetInner(a, b, c, d) => VlanEdit::SetInner(change(a, b, c, d)),
            }),
            type_of_service: self.type_of_service,
            traffic_class: self.traffic_class,
            flow_label: self.flow_label,
            time_to_live: self.time_to_live.map(|(kind, value)| match kind % 3 {
                0 => TimeToLiveEdit::Set(value),
                1 => TimeToLiveEdit::Add(value),
                _ => TimeToLiveEdit::Subtract(value),
            }),
            port_map: self
                .port_map
                .iter()
                .map(|&(first, last, to)| PortReplacement { first, last, to })
                .collect(),
            tcp_sequence_seed: self.tcp_sequence_seed,
            fuzz: self.fuzz.map(|(seed, factor)| Fuzz { seed, factor: u32::from(factor).max(1) }),
            truncated_frames: self.captured_short.map(|kind| match kind % 3 {
                0 => TruncatedFrameAction::Pad,
                1 => TruncatedFrameAction::Truncate,
                _ => TruncatedFrameAction::Delete,
            }),
            mtu_truncate: self.mtu_truncate.map(u32::from),
            source_addresses: self.source_addresses.each_ref().map(mappings),
            destination_addresses: self.destination_addresses.each_ref().map(mappings),
            address_seed: self.address_seed,
            keep_group_addresses,
            fix_header_length: lengths,
            fix_checksums: checksums,
        }
    }
}

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(input) = arbitrary_input::<Input>(input) else { return };
    for link in [LinkType::RAW, LinkType::LINUX_SLL, LinkType::LINUX_SLL2, LinkType::NULL] {
        let dissection = dissect(link, &input.frame);
        assert!(usize::from(dissection.network_offset) <= input.frame.len());
    }
    let facts =
        FrameFacts { secondary: input.secondary, number: input.number, ..facts_of(&input.frame) };
    let editor = Editor::new(&input.edits.options());
    let room = usize::from(input.room) % GROWTH_MAX;
    let original_length = input.frame.len() + usize::from(input.beyond);
    let edit = |filler: u8| {
        let mut buffer = input.frame.clone();
        buffer.resize(input.frame.len() + room, filler);
        match editor.apply(&mut buffer, input.frame.len(), original_length, facts) {
            EditResult::Length(length) => {
                assert!(length <= buffer.len(), "{length} bytes in a buffer of {}", buffer.len());
                buffer.truncate(length);
                Some(buffer)
            }
            EditResult::Drop => None,
        }
    };
    // The previous contents of the buffer must not affect the result.
    assert_eq!(edit(0), edit(0xa5));
}

/// Facts that a capture's index provides about an Ethernet frame.
fn facts_of(frame: &[u8]) -> FrameFacts {
    let dissection = dissect(LinkType::EN10MB, frame);
    assert!(usize::from(dissection.network_offset) <= frame.len());
    assert!(usize::from(dissection.transport_offset) <= frame.len());
    let Class::Flow(key) = dissection.class else { return FrameFacts::default() };
    FrameFacts {
        network_offset: dissection.network_offset,
        transport_offset: dissection.transport_offset,
        protocol: dissection.protocol,
        is_ip: true,
        is_ipv6: key.version() == 6,
        ..FrameFacts::default()
    }
}
