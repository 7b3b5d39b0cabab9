//! Frames of a device: template and program.
//!
//! Layout: Ethernet, MPLS or VLAN tags, IPv4 or IPv6, UDP, then 16 bytes: magic, sequence number,
//! seconds, microseconds; zeros after them (net/core/pktgen.c, `fill_packet_ipv4`, `_ipv6`,
//! `pktgen_finalize_skb`). The kernel advances its values before it builds a packet, so a sequence
//! starts with its second value. The program does the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use wirestorm_model::stream::{
    Advance, ByteOrder, Checksum, Program, PseudoHeader, Step, Values, Variable, Write, draw,
};
use wirestorm_wire::checksum::checksum;
use wirestorm_wire::packet::{MacAddress, ethertype, protocol};

use super::command::BOTTOM_OF_STACK;
use super::device::Device;
use super::error::LowerError;
use super::flags::Flag;
use super::flows::{Destinations, Flows, PERIOD_MAX, RandomFlows};

/// Magic number of pktgen's packets.
const MAGIC: u32 = 0xbe9b_e955;
/// Length of magic, sequence number, seconds and microseconds.
const PKTGEN_BYTES: usize = 16;
const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
const TIME_TO_LIVE: u8 = 32;

/// Position of the transmit time, which no variable can express. The sender writes it into each
/// frame: seconds and microseconds since 1970, 32 bits each, in network byte order. The template
/// has zeros there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampPosition {
    /// Offset of the seconds; the microseconds follow.
    pub offset: usize,
    /// Offset of the UDP checksum that covers the time (UDPCSUM). The stream computes it for a time
    /// of zero, so the sender must update it (RFC 1624). `None`: no checksum.
    pub checksum: Option<usize>,
}

/// A field whose current value the file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Source,
    Destination,
    Source6,
    Destination6,
    SourcePort,
    DestinationPort,
}

/// Template and program of a device, and other properties of its frames.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) template: Vec<u8>,
    pub(super) program: Program,
    pub(super) stamps: Option<TimestampPosition>,
    /// Minimum and maximum size at the start, as in the kernel.
    pub(super) sizes: (u32, u32),
    /// Minimum frame length that holds all headers.
    pub(super) floor: u32,
    /// Number of times that each packet is sent.
    pub(super) copies: u64,
    /// Number of frames per delay.
    pub(super) burst: u32,
    pub(super) flows: Flows,
    /// Number of packets after which a list of destinations repeats.
    pub(super) repeats_after: Option<u64>,
    /// Sizes of `imix_weights`, if they apply.
    pub(super) imix: Vec<u64>,
    pub(super) size_variable: Option<usize>,
    pub(super) field_sources: Vec<(Field, FieldSource)>,
    seed: u64,
    draws: u64,
    layer3: usize,
    is_ipv6: bool,
}

/// Source of a field's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldSource {
    Constant(u128),
    /// A variable replaces the bits of `mask` in `base`, the template's value.
    Variable {
        index: usize,
        base: u128,
        mask: u128,
    },
}

impl Frames {
    pub(super) fn new(device: &Device, ordinal: usize) -> Result<Self, LowerError> {
        let is_shared = device.flags.has(Flag::Shared);
        let burst = if is_shared { device.burst } else { 1 };
        let clones = if is_shared { device.clone_skb.max(1) } else { 1 };
        let is_ipv6 = device.flags.has(Flag::Ipv6);
        let tags = usize::from(device.vlan.is_some()) + usize::from(device.service_vlan.is_some());
        let layer3 = ETHERNET_BYTES + 4 * (device.labels.len() + tags);
        let ip_bytes = if is_ipv6 { 40 } else { 20 };
        let payload = ip_bytes + UDP_BYTES + PKTGEN_BYTES;
        // The kernel's default size, which does not count tags and labels.
        let size_unset = (ETHERNET_BYTES + payload) as u32;
        let size_min = if device.size_min == 0 { size_unset } else { device.size_min };
        let mut frames = Self {
            template: Vec::new(),
            program: Program::default(),
            stamps: None,
            sizes: (size_min, device.size_max.max(size_min)),
            floor: (layer3 + payload) as u32,
            copies: u64::from(clones) * u64::from(burst),
            burst,
            flows: Flows::None,
            repeats_after: None,
            imix: Vec::new(),
            size_variable: None,
            field_sources: Vec::new(),
            seed: ordinal as u64,
            draws: 0,
            layer3,
            is_ipv6,
        };
        if frames.copies > 1 {
            let last = u128::from(frames.copies) - 1;
            frames.program.variables.push(Variable::new(counter(0, 0, last)));
        }
        let sizes = frames.size_values(device);
        frames.template = vec![0; frames.checked_length(device, &sizes)?];
        frames.ethernet(device);
        frames.tags(device);
        if is_ipv6 {
            frames.ipv6(device);
        } else {
            frames.ipv4(device)?;
        }
        frames.udp(device);
        frames.pktgen(device);
        frames.lengths_and_checksums(device, sizes);
        Ok(frames)
    }

    /// Returns the sizes of frames.
    fn size_values(&mut self, device: &Device) -> Sizes {
        let (min, max) = self.sizes;
        let room = |size: u32| size.max(self.floor);
        if min < max {
            let is_random = device.flags.has(Flag::SizeRandom);
            // A random size is below the maximum.
            let last = if is_random { max - 1 } else { max };
            let (first, last) = (room(min), room(last));
            let (start, longest) = (u128::from(room(min + 1)), u64::from(last));
            let (first, last) = (u128::from(first), u128::from(last));
            return match (first == last, is_random) {
                (true, _) => Sizes { longest, values: None },
                (false, true) => Sizes { longest, values: Some(self.random(first, last)) },
                (false, false) => Sizes { longest, values: Some(counter(start, first, last)) },
            };
        }
        if device.imix.is_empty() {
            return Sizes { longest: u64::from(room(min)), values: None };
        }
        self.imix = device.imix.iter().map(|(size, _)| (*size).max(self.floor.into())).collect();
        // A weight of ten digits is up to four times the maximum of 32 bits.
        let greatest = device.imix.iter().map(|(_, weight)| *weight).max().unwrap_or_default();
        let shift = if greatest > u64::from(u32::MAX) { 2 } else { 0 };
        let weights = device.imix.iter().map(|(_, weight)| (weight >> shift).max(1) as u32);
        let choices = self.imix.iter().map(|size| u128::from(*size)).zip(weights).collect();
        let longest = self.imix.iter().copied().max().unwrap_or_default();
        Sizes { longest, values: Some(Values::Weighted { choices, seed: self.next_seed() }) }
    }

    fn checked_length(&self, device: &Device, sizes: &Sizes) -> Result<usize, LowerError> {
        // The 16-bit lengths of IPv4 and UDP include their header, that of IPv6 does not.
        let limit = self.layer3 as u64 + 65_535;
        match usize::try_from(sizes.longest) {
            Ok(length) if sizes.longest <= limit => Ok(length),
            _ => {
                let (device, bytes) = (device.name.clone(), sizes.longest);
                Err(LowerError::TooLong { device, bytes, limit })
            }
        }
    }

    fn ethernet(&mut self, device: &Device) {
        let source = device.effective_source_mac();
        self.put(0, &device.destination_mac.0);
        self.put(6, &source.0);
        let inner = if self.is_ipv6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let outer = match (device.vlan, device.labels.is_empty()) {
            (Some(_), _) => ethertype::VLAN,
            (None, false) => ethertype::MPLS,
            (None, true) => inner,
        };
        self.put(12, &outer.to_be_bytes());
        if device.vlan.is_some() {
            self.put(self.layer3 - 2, &inner.to_be_bytes());
        }
        let is_random = device.flags.has(Flag::SourceMacRandom);
        self.mac_addresses(6, source, device.source_macs, is_random);
        let is_random = device.flags.has(Flag::DestinationMacRandom);
        self.mac_addresses(0, device.destination_mac, device.destination_macs, is_random);
    }

    /// Adds 0 to `count - 1` to an address. The first byte does not change.
    fn mac_addresses(&mut self, offset: usize, base: MacAddress, count: u32, is_random: bool) {
        if count < 2 {
            return;
        }
        const MASK: u128 = 0xff_ffff_ffff;
        let add = base.0.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte)) & MASK;
        let last = u128::from(count) - 1;
        let values = if is_random { self.random(0, last) } else { counter(0, 0, last) };
        let write = Write { add, ..field_write(offset + 1, 5, MASK) };
        self.write(values, write);
    }

    fn tags(&mut self, device: &Device) {
        let last = device.labels.len().saturating_sub(1);
        for (index, label) in device.labels.iter().enumerate() {
            let offset = ETHERNET_BYTES + 4 * index;
            let bottom = if index == last { BOTTOM_OF_STACK } else { 0 };
            let entry = label & !BOTTOM_OF_STACK | bottom;
            self.put(offset, &entry.to_be_bytes());
            if label & BOTTOM_OF_STACK != 0 && device.flags.has(Flag::MplsRandom) {
                let values = self.random(0, 0xf_ffff);
                self.write(values, Write { shift: 12, ..field_write(offset, 4, 0xffff_f000) });
            }
        }
        let service = (
            device.service_vlan,
            device.service_vlan_priority,
            device.service_vlan_cfi,
            Flag::ServiceVlanRandom,
        );
        let customer = (device.vlan, device.vlan_priority, device.vlan_cfi, Flag::VlanRandom);
        let mut offset = ETHERNET_BYTES;
        for (id, priority, cfi, random) in [service, customer] {
            let Some(id) = id else { continue };
            let control = u16::from(priority) << 13 | u16::from(cfi) << 12 | id;
            self.put(offset, &control.to_be_bytes());
            if random == Flag::ServiceVlanRandom {
                self.put(offset + 2, &ethertype::VLAN.to_be_bytes());
            }
            if device.flags.has(random) {
                let values = self.random(0, 0xfff);
                self.write(values, field_write(offset, 2, 0xfff));
            }
            offset += 4;
        }
    }

    fn ipv4(&mut self, device: &Device) -> Result<(), LowerError> {
        let header = self.layer3;
        self.put(header, &[0x45, device.tos]);
        self.put(header + 8, &[TIME_TO_LIVE, protocol::UDP]);
        self.write(counter(0, 0, 0xffff), field_write(header + 4, 2, 0xffff));
        let (min, max) = match device.source.min {
            Some(min) => (min, device.source.max.unwrap_or(Ipv4Addr::UNSPECIFIED)),
            None => {
                let source = device.link.ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED);
                (source, source)
            }
        };
        let (min, max) = (u32::from(min), u32::from(max));
        let is_random = device.flags.has(Flag::SourceRandom);
        let values = self.range(min.into(), max.into(), is_random, false);
        self.field(Field::Source, min.into(), values, header + 12, 4);
        self.destination(device, header + 16)
    }

    fn destination(&mut self, device: &Device, offset: usize) -> Result<(), LowerError> {
        let address =
            |address: Option<Ipv4Addr>| u32::from(address.unwrap_or(Ipv4Addr::UNSPECIFIED));
        let of = Destinations {
            min: address(device.destination.min),
            max: address(device.destination.max),
            is_random: device.flags.has(Flag::DestinationRandom),
            seed: self.next_seed(),
        };
        let parts = of.parts();
        if of.is_varying() && of.is_random && parts.is_empty() {
            return Err(LowerError::NoDestination { device: device.name.clone() });
        }
        let packets = if device.count == 0 { u64::MAX } else { device.count.div_ceil(self.copies) };
        let period = packets.min(PERIOD_MAX);
        if device.flows > 0 {
            self.flows = if device.flags.has(Flag::FlowsInSequence) {
                Flows::InSequence(u64::from(device.flow_length.max(1)))
            } else {
                let (flows, length) = (device.flows, device.flow_length);
                Flows::Random(RandomFlows { flows, length, seed: self.next_seed(), period })
            };
        }
        let mut advance = self.advance();
        let values = match (&self.flows, &parts[..]) {
            _ if !of.is_varying() => None,
            (Flows::Random(flows), _) => Some(Values::List(flows.destinations(&of))),
            _ if !of.is_random => {
                let (first, min) = (of.nth(&parts, 0), of.min);
                Some(counter(first.into(), min.into(), of.max.into()))
            }
            (_, [part]) => {
                let (min, max) = ((*part.start()).into(), (*part.end()).into());
                Some(Values::Random { min, max, seed: of.seed })
            }
            // No variable can skip the middle of a range.
            _ => {
                let addresses = (0..period).map(|number| of.nth(&parts, number).into());
                Some(Values::List(addresses.collect()))
            }
        };
        if let Some(Values::List(_)) = values {
            self.repeats_after = (packets > period).then_some(period);
        }
        if let (Flows::InSequence(2..), Some(_)) = (&self.flows, &values) {
            // A destination stays constant for the length of a flow.
            let last = u128::from(device.flow_length) - 1;
            self.program.variables.push(Variable {
                values: counter(0, 0, last),
                advance,
                restart_after: None,
            });
            advance = Advance::WhenWraps(self.program.variables.len() - 1);
        }
        self.field(Field::Destination, of.min.into(), values, offset, 4);
        if let Some((_, FieldSource::Variable { index, .. })) = self.field_sources.last() {
            self.program.variables[*index].advance = advance;
        }
        Ok(())
    }

    fn ipv6(&mut self, device: &Device) {
        let header = self.layer3;
        let first = 0x6000_0000 | u32::from(device.traffic_class) << 20;
        self.put(header, &first.to_be_bytes());
        self.put(header + 6, &[protocol::UDP, TIME_TO_LIVE]);
        let source = match device.source6 {
            Ipv6Addr::UNSPECIFIED => device.link.ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED),
            source => source,
        };
        self.field(Field::Source6, source.into(), None, header + 8, 16);
        let (min, max) = (device.destination6_min, device.destination6_max);
        let (base, mask) = match (min.into(), max.into()) {
            (0, _) => (device.destination6.into(), 0),
            // The kernel would clear all bits.
            (min, 0) => (min, 0),
            // As in the kernel, only the bits that are in the maximum and not in the minimum are
            // random. There is no carry.
            (min, max) => (min & max, max & !min),
        };
        let values = (mask != 0).then(|| self.random(0, u128::MAX));
        self.put(header + 24, &u128::to_be_bytes(base));
        match values {
            None => self.field_sources.push((Field::Destination6, FieldSource::Constant(base))),
            Some(values) => {
                let index = self.write(values, field_write(header + 24, 16, mask));
                self.field_sources
                    .push((Field::Destination6, FieldSource::Variable { index, base, mask }));
            }
        }
    }

    fn udp(&mut self, device: &Device) {
        let header = self.udp_offset();
        let ports = [
            (Field::SourcePort, device.source_port, Flag::SourcePortRandom),
            (Field::DestinationPort, device.destination_port, Flag::DestinationPortRandom),
        ];
        for ((field, (min, max), random), offset) in ports.into_iter().zip([header, header + 2]) {
            let is_random = device.flags.has(random);
            let values = self.range(min.into(), max.into(), is_random, true);
            self.field(field, min.into(), values, offset, 2);
        }
    }

    fn pktgen(&mut self, device: &Device) {
        let offset = self.udp_offset() + UDP_BYTES;
        self.put(offset, &MAGIC.to_be_bytes());
        self.put(offset + 4, &1_u32.to_be_bytes());
        // The kernel's sequence number counts sent frames, including copies, in 32 bits. This
        // counter is wider, so that it wraps at a multiple of its step.
        let copies = u128::from(self.copies);
        let values =
            Values::Counter { start: 1, min: 1, max: copies << 48, step: copies, downwards: false };
        self.write(values, field_write(offset + 4, 4, 0xffff_ffff));
        if !device.flags.has(Flag::NoTimestamp) {
            let has_checksum = device.flags.has(Flag::UdpChecksum);
            let checksum = has_checksum.then(|| self.udp_offset() + 6);
            self.stamps = Some(TimestampPosition { offset: offset + 8, checksum });
        }
    }

    /// Fills in lengths and checksums, also in the template, which has the maximum length.
    fn lengths_and_checksums(&mut self, device: &Device, sizes: Sizes) {
        let (ip, udp) = (self.layer3, self.udp_offset());
        let ip_length = if self.is_ipv6 { (ip + 4, ip + 40) } else { (ip + 2, ip) };
        let lengths = [ip_length, (udp + 4, udp)];
        for (offset, less) in lengths {
            // `checked_length` has checked that the length fits.
            let counted = (self.template.len() - less) as u16;
            self.put(offset, &counted.to_be_bytes());
        }
        if let Some(values) = sizes.values {
            let variable = self.variable(values);
            self.size_variable = Some(variable);
            self.program.steps.push(Step::Length { variable });
            let steps = lengths.map(|(offset, less)| Step::WriteLength { offset, less });
            self.program.steps.extend(steps);
        }
        if !self.is_ipv6 {
            let sum = checksum(&self.template[ip..ip + 20]);
            self.put(ip + 10, &sum.to_be_bytes());
            self.program.steps.push(Step::Checksum(Checksum::Internet {
                offset: ip + 10,
                start: ip,
                end: Some(ip + 20),
                pseudo_header: PseudoHeader::None,
                never_zero: false,
            }));
        }
        if device.flags.has(Flag::UdpChecksum) {
            let protocol = protocol::UDP;
            self.program.steps.push(Step::Checksum(Checksum::Internet {
                offset: udp + 6,
                start: udp,
                end: None,
                pseudo_header: if self.is_ipv6 {
                    PseudoHeader::Ipv6 { header: ip, protocol }
                } else {
                    PseudoHeader::Ipv4 { header: ip, protocol }
                },
                never_zero: true,
            }));
        }
    }

    fn udp_offset(&self) -> usize {
        self.layer3 + if self.is_ipv6 { 40 } else { 20 }
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self.template[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the values from `min` to `max`, or `None` for a single one. An exclusive or random
    /// range does not include `max`.
    fn range(
        &mut self,
        min: u128,
        max: u128,
        is_random: bool,
        is_exclusive: bool,
    ) -> Option<Values> {
        let last = if is_random || is_exclusive { max.saturating_sub(1) } else { max };
        match (min < last, is_random) {
            (false, _) => None,
            (true, true) => Some(self.random(min, last)),
            (true, false) => Some(counter(min + 1, min, last)),
        }
    }

    /// Adds a field whose current value the file shows. Its mask covers its width.
    fn field(
        &mut self,
        field: Field,
        base: u128,
        values: Option<Values>,
        offset: usize,
        width: usize,
    ) {
        self.put(offset, &base.to_be_bytes()[16 - width..]);
        let mask = u128::MAX >> (8 * (16 - width));
        let held = match values {
            None => FieldSource::Constant(base),
            Some(values) => {
                let index = self.write(values, field_write(offset, width, mask));
                FieldSource::Variable { index, base, mask }
            }
        };
        self.field_sources.push((field, held));
    }

    /// Adds a variable and its write. Returns the index of the variable.
    fn write(&mut self, values: Values, write: Write) -> usize {
        let variable = self.variable(values);
        self.program.steps.push(Step::Write(Write { variable, ..write }));
        variable
    }

    /// Adds a variable that advances with every packet.
    fn variable(&mut self, values: Values) -> usize {
        let advance = self.advance();
        self.program.variables.push(Variable { values, advance, restart_after: None });
        self.program.variables.len() - 1
    }

    /// Returns the advance with every packet: with every frame, or after all copies of a packet.
    fn advance(&self) -> Advance {
        if self.copies > 1 { Advance::WhenWraps(0) } else { Advance::EveryFrame }
    }

    fn random(&mut self, min: u128, max: u128) -> Values {
        Values::Random { min, max, seed: self.next_seed() }
    }

    /// Returns a seed. Each variable of each device has its own, and a script always gives the same
    /// frames.
    fn next_seed(&mut self) -> u64 {
        self.draws += 1;
        draw(self.seed, self.draws)
    }
}

/// Sizes of frames.
struct Sizes {
    longest: u64,
    /// The values, if sizes vary.
    values: Option<Values>,
}

fn counter(start: u128, min: u128, max: u128) -> Values {
    Values::Counter { start, min, max, step: 1, downwards: false }
}

/// Returns a write in network byte order, whose variable is set later.
fn field_write(offset: usize, width: usize, mask: u128) -> Write {
    Write { variable: 0, offset, width, add: 0, shift: 0, mask, order: ByteOrder::Network }
}
