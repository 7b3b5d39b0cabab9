//! Edits of frames. Plans and the engine share these types.

use alloc::vec::Vec;

use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

/// Edits of frames; none by default. The first of two values is for the primary (client) side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditOptions {
    /// Removes the last 4 bytes of every frame, its FCS. If the capture truncated the frame, only
    /// the captured part of the FCS is removed.
    pub remove_fcs: bool,
    /// New destination addresses. Frames to an IP multicast group keep the group's Ethernet
    /// address.
    pub destination_mac: Option<[MacAddress; 2]>,
    /// New source addresses.
    pub source_mac: Option<[MacAddress; 2]>,
    /// Replacements of Ethernet addresses; the first match applies.
    pub substituted_macs: Vec<MacSubstitution>,
    /// Replaces each unicast address by a pseudo-random one, consistently.
    pub mac_seed: Option<MacSeed>,
    /// Keeps broadcast and multicast Ethernet addresses.
    pub keep_group_macs: bool,
    /// Edit of VLAN tags.
    pub vlan: Option<VlanEdit>,
    /// New type of service for IPv4.
    pub type_of_service: Option<u8>,
    /// New traffic class for IPv6.
    pub traffic_class: Option<u8>,
    /// New flow label for IPv6; 20 bits.
    pub flow_label: Option<u32>,
    /// Edit of the IPv4 time to live and the IPv6 hop limit.
    pub time_to_live: Option<TimeToLiveEdit>,
    /// New source and destination ports for TCP and UDP; the first match applies.
    pub port_map: Vec<PortReplacement>,
    /// Seed of an offset for TCP sequence and acknowledgement numbers.
    pub tcp_sequence_seed: Option<u32>,
    /// Random damage of payloads.
    pub fuzz: Option<Fuzz>,
    /// Action on frames that the capture truncated.
    pub truncated_frames: Option<TruncatedFrameAction>,
    /// Truncates the data behind the Ethernet header and an optional first VLAN tag to this many
    /// bytes, the MTU of an interface. Further tags count as data.
    pub mtu_truncate: Option<u32>,
    /// New source addresses in IP and ARP, per side; the first match applies.
    pub source_addresses: [Vec<PrefixReplacement>; 2],
    /// New destination addresses in IP and ARP, per side; the first match applies.
    pub destination_addresses: [Vec<PrefixReplacement>; 2],
    /// Seed that replaces each address in IP and ARP by a pseudo-random one, consistently.
    pub address_seed: Option<u32>,
    /// Keeps broadcast and multicast IP addresses.
    pub keep_group_addresses: bool,
    /// Sets the length in the IP header to the length of the data in the frame.
    pub fix_header_length: bool,
    /// Corrects all checksums, including those that are wrong in the capture.
    pub fix_checksums: bool,
}

impl EditOptions {
    /// Returns whether any edit differs between the two sides, so that packets need a side.
    pub fn needs_sides(&self) -> bool {
        let differs = |addresses: &Option<[MacAddress; 2]>| {
            addresses.is_some_and(|[primary, secondary]| primary != secondary)
        };
        differs(&self.destination_mac)
            || differs(&self.source_mac)
            || self.source_addresses[0] != self.source_addresses[1]
            || self.destination_addresses[0] != self.destination_addresses[1]
    }
}

/// A replacement of an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacSubstitution {
    /// Address to replace.
    pub from: MacAddress,
    /// New address.
    pub to: MacAddress,
}

/// Pseudo-random replacement of all Ethernet addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacSeed {
    /// Seed of the new addresses.
    pub seed: u32,
    /// Number of leading bytes to keep; 3 keep the manufacturer, 6 or more keep all.
    pub keep_bytes: u8,
}

/// Edit of VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanEdit {
    /// Adds a tag in front of all others.
    Add(VlanTag),
    /// Deletes the outermost tag.
    DeleteOuter,
    /// Deletes all consecutive tags.
    DeleteAll,
    /// Changes the outermost tag in place.
    SetOuter(VlanChange),
    /// Changes the innermost of the consecutive tags in place.
    SetInner(VlanChange),
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Ethernet type of the tag (TPID).
    pub ethertype: u16,
    /// VLAN identifier, 0 to 4095.
    pub identifier: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator; before 2011 the canonical format indicator.
    pub drop_eligible: bool,
}

/// Changes of a tag; `None` keeps the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanChange {
    /// Ethernet type of the tag (TPID).
    pub ethertype: Option<u16>,
    /// VLAN identifier, 0 to 4095.
    pub identifier: Option<u16>,
    /// Priority, 0 to 7.
    pub priority: Option<u8>,
    /// Drop eligible indicator.
    pub drop_eligible: Option<bool>,
}

/// Edit of a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLiveEdit {
    /// Sets this value.
    Set(u8),
    /// Adds this value, up to 255.
    Add(u8),
    /// Subtracts this value, down to 1.
    Subtract(u8),
}

/// A new port for a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReplacement {
    /// First port of the range.
    pub first: u16,
    /// Last port of the range.
    pub last: u16,
    /// New port for the whole range.
    pub to: u16,
}

/// Random damage of payloads, the same for the same packet in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuzz {
    /// Seed of the damage.
    pub seed: u32,
    /// Damages one of this many packets, on average; 1 or more.
    pub factor: u32,
}

/// Action on a frame that the capture truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncatedFrameAction {
    /// Pads with zeros to the length on the wire.
    Pad,
    /// Sets the length in the IP header to the captured length.
    Truncate,
    /// Drops the frame.
    Delete,
}

/// A new prefix for addresses; the host bits stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixReplacement {
    /// Addresses to replace.
    pub from: Prefix,
    /// New prefix. If it has another IP version than `from`, the mapping has no effect.
    pub to: Prefix,
}
