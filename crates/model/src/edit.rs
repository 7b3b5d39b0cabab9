//! What is to be changed in frames: the words that plans and the engine share.

use alloc::vec::Vec;

use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

/// What is to be changed in frames; by default nothing. Everything given for two sides has the
/// primary (client) side first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditOptions {
    /// The last 4 bytes of every frame are an FCS and left out; of a frame that the capture cut,
    /// as many of them as were captured.
    pub remove_fcs: bool,
    /// New destination addresses. Frames for an IP group keep the group's Ethernet address.
    pub destination_mac: Option<[MacAddress; 2]>,
    /// New source addresses.
    pub source_mac: Option<[MacAddress; 2]>,
    /// Addresses replaced wherever an Ethernet header has them; the first that matches.
    pub substituted_macs: Vec<MacSubstitution>,
    /// Every unicast address becomes another one, always the same.
    pub mac_seed: Option<MacSeed>,
    /// Broadcast and multicast Ethernet addresses stay.
    pub keep_group_macs: bool,
    /// What becomes of VLAN tags.
    pub vlan: Option<VlanEdit>,
    /// New type of service for IPv4.
    pub type_of_service: Option<u8>,
    /// New traffic class for IPv6.
    pub traffic_class: Option<u8>,
    /// New flow label for IPv6; 20 bits.
    pub flow_label: Option<u32>,
    /// What becomes of IPv4's time to live and IPv6's hop limit.
    pub time_to_live: Option<TimeToLiveEdit>,
    /// New ports for TCP and UDP, for source and destination alike. Where several have a port,
    /// the first counts.
    pub port_map: Vec<PortMapping>,
    /// TCP's sequence and acknowledgement numbers move by a number that follows from this seed.
    pub tcp_sequence_seed: Option<u32>,
    /// Damage to payloads.
    pub fuzz: Option<Fuzz>,
    /// What becomes of frames that the capture cut.
    pub captured_short: Option<CapturedShort>,
    /// What follows the Ethernet header, and its VLAN tag if it has one, is cut to so many bytes:
    /// an interface of this MTU takes no more. Further tags are part of it.
    pub mtu_truncate: Option<u32>,
    /// New source addresses in IP and ARP; the first that matches.
    pub source_addresses: [Vec<PrefixMapping>; 2],
    /// New destination addresses in IP and ARP; the first that matches.
    pub destination_addresses: [Vec<PrefixMapping>; 2],
    /// Every address in IP and ARP becomes another one, always the same.
    pub address_seed: Option<u32>,
    /// Broadcast and multicast IP addresses stay.
    pub keep_group_addresses: bool,
    /// The length in the IP header becomes that of what the frame holds.
    pub fix_header_length: bool,
    /// All checksums are made right, those too that were wrong.
    pub fix_checksums: bool,
}

impl EditOptions {
    /// Whether any edit tells the two sides apart, so that something has to say which side a
    /// packet belongs to.
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

/// An Ethernet address in place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacSubstitution {
    /// That which is replaced.
    pub from: MacAddress,
    /// That which takes its place.
    pub to: MacAddress,
}

/// Other Ethernet addresses for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacSeed {
    /// What the new addresses follow from.
    pub seed: u32,
    /// So many bytes at the beginning stay; 3 keep the manufacturer. 6 or more keep all.
    pub keep_bytes: u8,
}

/// What becomes of VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VlanEdit {
    /// A tag in front of all others.
    Add(VlanTag),
    /// The outermost tag goes.
    DeleteOuter,
    /// All tags go that stand one behind the other.
    DeleteAll,
    /// The outermost tag changes in place.
    SetOuter(VlanChange),
    /// The innermost of the tags that stand one behind the other changes in place.
    SetInner(VlanChange),
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The Ethernet type that announces the tag.
    pub ethertype: u16,
    /// The VLAN, 0 to 4095.
    pub identifier: u16,
    /// The priority, 0 to 7.
    pub priority: u8,
    /// Whether the frame may be dropped first; the canonical format bit before 2011.
    pub drop_eligible: bool,
}

/// What changes in a tag; `None` leaves a field as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanChange {
    /// The Ethernet type that announces the tag.
    pub ethertype: Option<u16>,
    /// The VLAN, 0 to 4095.
    pub identifier: Option<u16>,
    /// The priority, 0 to 7.
    pub priority: Option<u8>,
    /// Whether the frame may be dropped first.
    pub drop_eligible: Option<bool>,
}

/// What becomes of a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLiveEdit {
    /// This value.
    Set(u8),
    /// So much more, 255 at most.
    Add(u8),
    /// So much less, 1 at least.
    Subtract(u8),
}

/// One new port for a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMapping {
    /// The first port of the range.
    pub first: u16,
    /// The last port of the range.
    pub last: u16,
    /// The port that all of them become.
    pub to: u16,
}

/// Damage to payloads, the same for the same packet in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuzz {
    /// What the damage follows from.
    pub seed: u32,
    /// One of so many packets is damaged, on average; 1 or more.
    pub factor: u32,
}

/// What becomes of a frame of which the capture has only the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturedShort {
    /// Zeros make it as long as it was on the wire.
    Pad,
    /// Its IP header says the length that is there.
    Truncate,
    /// It is not sent.
    Delete,
}

/// Another prefix for addresses; the bits behind the new prefix stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixMapping {
    /// The addresses that are replaced.
    pub from: Prefix,
    /// Where they move; of the same version of IP, or the mapping has no effect.
    pub to: Prefix,
}
