//! A device: settings of one instance of an interface, and the state of its last run.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::packet::MacAddress;

use super::flags::{Flag, Flags};

/// State of an interface, which provides defaults for settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Ethernet address.
    pub mac: MacAddress,
    /// Whether the interface is up.
    pub is_up: bool,
    /// First IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Link-local IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

/// One instance of an interface: `eth0`, or `eth0@1` if it has several.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) link: Link,
    pub(super) flags: Flags,
    pub(super) count: u64,
    pub(super) size_min: u32,
    pub(super) size_max: u32,
    /// Sizes and weights.
    pub(super) imix: Vec<(u64, u64)>,
    pub(super) fragments: u32,
    pub(super) delay: u64,
    pub(super) pace: Pace,
    pub(super) clone_skb: u32,
    pub(super) burst: u32,
    pub(super) flows: u32,
    pub(super) flow_length: u32,
    pub(super) queue_min: u16,
    pub(super) queue_max: u16,
    pub(super) priority: u32,
    pub(super) node: Option<u32>,
    pub(super) mode: XmitMode,
    pub(super) spi: u32,
    pub(super) destination: Range,
    pub(super) source: Range,
    pub(super) source6: Ipv6Addr,
    pub(super) destination6: Ipv6Addr,
    pub(super) destination6_min: Ipv6Addr,
    pub(super) destination6_max: Ipv6Addr,
    pub(super) source_mac: MacAddress,
    pub(super) destination_mac: MacAddress,
    pub(super) source_macs: u32,
    pub(super) destination_macs: u32,
    pub(super) source_port: (u16, u16),
    pub(super) destination_port: (u16, u16),
    pub(super) labels: Vec<u32>,
    pub(super) vlan: Option<u16>,
    pub(super) vlan_priority: u8,
    pub(super) vlan_cfi: u8,
    pub(super) service_vlan: Option<u16>,
    pub(super) service_vlan_priority: u8,
    pub(super) service_vlan_cfi: u8,
    pub(super) tos: u8,
    pub(super) traffic_class: u8,
    /// Notes on values that differ from their text, by command.
    pub(super) reading_notes: BTreeMap<&'static str, String>,
    pub(super) result: String,
    pub(super) is_running: bool,
    pub(super) current: Current,
}

/// A range of IPv4 addresses; either bound may be unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: Option<Ipv4Addr>,
    pub(super) max: Option<Ipv4Addr>,
}

/// The pace, and the command that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// `delay`, or none.
    Delay,
    /// `rate`, in Mbit/s.
    Megabits(u64),
    /// `ratep`, in frames per second.
    Frames(u64),
}

/// Transmit mode: the point where frames enter the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XmitMode {
    StartXmit,
    NetifReceive,
    QueueXmit,
}

/// Delay that means never to send; written as 0x7fffffff.
pub(super) const NEVER: u64 = u64::MAX;

/// State that the file shows after `Current:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) frames: u64,
    pub(super) errors: u64,
    pub(super) imix_counts: Vec<u64>,
    pub(super) started: Instant,
    pub(super) stopped: Instant,
    pub(super) idle: Duration,
    pub(super) sequence: u32,
    pub(super) destination_mac_offset: u32,
    pub(super) source_mac_offset: u32,
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) source6: Ipv6Addr,
    pub(super) destination6: Ipv6Addr,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) flows: u64,
}

impl Device {
    /// Creates a device with the kernel's defaults.
    pub(super) fn new(name: &str, link: Link) -> Self {
        Self {
            name: name.to_owned(),
            link,
            flags: Flags(Flag::Shared.bit()),
            count: 1000,
            size_min: 0,
            size_max: 0,
            imix: Vec::new(),
            fragments: 0,
            delay: 0,
            pace: Pace::Delay,
            clone_skb: 0,
            burst: 1,
            flows: 0,
            flow_length: 0,
            queue_min: 0,
            queue_max: 0,
            priority: 0,
            node: None,
            mode: XmitMode::StartXmit,
            spi: 0,
            destination: Range::default(),
            source: Range::default(),
            source6: Ipv6Addr::UNSPECIFIED,
            destination6: Ipv6Addr::UNSPECIFIED,
            destination6_min: Ipv6Addr::UNSPECIFIED,
            destination6_max: Ipv6Addr::UNSPECIFIED,
            source_mac: MacAddress::default(),
            destination_mac: MacAddress::default(),
            source_macs: 0,
            destination_macs: 0,
            source_port: (DISCARD, DISCARD),
            destination_port: (DISCARD, DISCARD),
            labels: Vec::new(),
            vlan: None,
            vlan_priority: 0,
            vlan_cfi: 0,
            service_vlan: None,
            service_vlan_priority: 0,
            service_vlan_cfi: 0,
            tos: 0,
            traffic_class: 0,
            reading_notes: BTreeMap::new(),
            result: String::new(),
            is_running: false,
            current: Current::new(),
        }
    }

    /// Returns the interface: the name without `@` and what follows.
    pub(super) fn interface(&self) -> &str {
        interface_of(&self.name)
    }

    /// Returns the base source address of frames.
    pub(super) fn effective_source_mac(&self) -> MacAddress {
        if self.source_mac == MacAddress::default() { self.link.mac } else { self.source_mac }
    }

    /// Clears the counters, as `clear_counters` and the start of a run do.
    pub(super) fn clear_counters(&mut self) {
        self.current.sequence = 1;
        self.current.idle = Duration::ZERO;
        self.current.frames = 0;
        self.current.errors = 0;
    }
}

/// Returns the interface of a device name.
pub(super) fn interface_of(name: &str) -> &str {
    name.split('@').next().unwrap_or_default()
}

/// Discard port (RFC 863), the kernel's default.
const DISCARD: u16 = 9;

impl Current {
    /// Returns the state before the first run.
    fn new() -> Self {
        Self {
            frames: 0,
            errors: 0,
            imix_counts: Vec::new(),
            started: Instant::ZERO,
            stopped: Instant::ZERO,
            idle: Duration::ZERO,
            sequence: 0,
            destination_mac_offset: 0,
            source_mac_offset: 0,
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            source6: Ipv6Addr::UNSPECIFIED,
            destination6: Ipv6Addr::UNSPECIFIED,
            source_port: 0,
            destination_port: 0,
            flows: 0,
        }
    }
}
