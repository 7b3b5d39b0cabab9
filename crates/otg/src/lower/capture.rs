//! Captures: their filters and formats.

use wirestorm_wire::layout::{Layout, ethernet, ipv4, ipv6, vlan};
use wirestorm_wire::packet::ethertype;

use super::packet::hex;
use super::ports::Names;
use super::problems::{ConfigError, Problems};
use crate::proto::capture::format::Enum as Format;
use crate::proto::capture_filter::choice::Enum as Choice;
use crate::proto::{
    Capture, CaptureCustom, CaptureEthernet, CaptureField, CaptureFilter, CaptureIpv4, CaptureIpv6,
    CaptureVlan, Config,
};

/// What a port captures. A port has at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Name in the configuration.
    pub name: String,
    /// Indices of the ports.
    pub ports: Vec<usize>,
    /// Filters; a frame must pass all.
    pub filters: Vec<FieldFilter>,
    /// Whether the newest frames replace the oldest ones when the buffer is full.
    pub overwrite: bool,
    /// Maximum bytes of a frame to keep; `None` means all.
    pub packet_size: Option<u32>,
    /// Format of the file.
    pub format: CaptureFormat,
}

/// Format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Classic pcap.
    Pcap,
    /// pcapng.
    Pcapng,
}

/// A comparison of bits of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    /// Header whose start the offset counts from.
    pub base: FilterBase,
    /// Offset in bits.
    pub bit_offset: usize,
    /// Number of bits.
    pub bit_length: usize,
    /// Expected bits: the last `bit_length` of these bytes; missing ones are zeros.
    pub value: Vec<u8>,
    /// Bits to compare, aligned as `value`. All are compared if none is set.
    pub mask: Vec<u8>,
    /// Whether the filter accepts the other frames.
    pub negate: bool,
}

/// Start of a filter's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterBase {
    /// The frame.
    Frame,
    /// The first VLAN tag, behind its TPID.
    Vlan,
    /// The first IPv4 header behind any VLAN tags.
    Ipv4,
    /// The first IPv6 header behind any VLAN tags.
    Ipv6,
}

impl CaptureSettings {
    /// Returns whether a frame, without its FCS, passes all filters.
    pub fn accepts(&self, frame: &[u8]) -> bool {
        self.filters.iter().all(|filter| filter.accepts(frame))
    }
}

impl FieldFilter {
    /// Returns whether a frame, without its FCS, passes the filter. A frame without the header or
    /// the bits does not have the value.
    pub fn accepts(&self, frame: &[u8]) -> bool {
        self.is_equal(frame) != self.negate
    }

    fn is_equal(&self, frame: &[u8]) -> bool {
        let Some(base) = self.base.offset(frame) else { return false };
        let start = 8 * base + self.bit_offset;
        if start.saturating_add(self.bit_length) > 8 * frame.len() {
            return false;
        }
        let compares_all = self.mask.iter().all(|byte| *byte == 0);
        (0..self.bit_length).all(|index| {
            let at = start + index;
            let found = frame[at / 8] >> (7 - at % 8) & 1;
            // Both end with the last bit.
            let from_end = self.bit_length - 1 - index;
            let is_compared = compares_all || bit_from_end(&self.mask, from_end) == 1;
            !is_compared || found == bit_from_end(&self.value, from_end)
        })
    }
}

fn bit_from_end(bytes: &[u8], index: usize) -> u8 {
    let byte = bytes.len().checked_sub(1 + index / 8).and_then(|at| bytes.get(at));
    byte.map_or(0, |byte| byte >> (index % 8) & 1)
}

impl FilterBase {
    /// Returns the offset of the header in bytes; `None` if the frame does not have it.
    fn offset(self, frame: &[u8]) -> Option<usize> {
        const ETHERNET: usize = 14;
        let protocol = |end: usize| {
            let bytes = frame.get(end.checked_sub(2)?..end)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        let is_tag = |protocol| matches!(protocol, ethertype::VLAN | ethertype::SERVICE_VLAN);
        match self {
            Self::Frame => Some(0),
            Self::Vlan => is_tag(protocol(ETHERNET)?).then_some(ETHERNET),
            Self::Ipv4 | Self::Ipv6 => {
                let mut end = ETHERNET;
                while is_tag(protocol(end)?) {
                    end += 4;
                }
                let wanted = if self == Self::Ipv4 { ethertype::IPV4 } else { ethertype::IPV6 };
                (protocol(end)? == wanted).then_some(end)
            }
        }
    }
}

/// Reads the captures.
pub(super) fn read(
    config: &Config,
    ports: &Names,
    problems: &mut Problems,
) -> Vec<CaptureSettings> {
    let mut captured = Vec::new();
    let mut captures = Vec::with_capacity(config.captures.len());
    for (index, capture) in config.captures.iter().enumerate() {
        let path = format!("captures[{index}]");
        let mut members = Vec::with_capacity(capture.port_names.len());
        for (member, name) in capture.port_names.iter().enumerate() {
            let path = format!("{path}.port_names[{member}]");
            let Some(port) = problems.take(ports.port(name, &path)) else { continue };
            if captured.contains(&port) {
                let message = format!("found port {name:?} in a second capture");
                problems.error(ConfigError::new(path, message));
                continue;
            }
            captured.push(port);
            members.push(port);
        }
        captures.push(settings(capture, members, &path, problems));
    }
    captures
}

fn settings(
    capture: &Capture,
    ports: Vec<usize>,
    path: &str,
    problems: &mut Problems,
) -> CaptureSettings {
    let mut filters = Vec::new();
    for (index, filter) in capture.filters.iter().enumerate() {
        let path = format!("{path}.filters[{index}]");
        let outcome = read_filter(filter, &path, &mut filters);
        problems.take(outcome);
    }
    CaptureSettings {
        name: capture.name().to_owned(),
        ports,
        filters,
        overwrite: capture.overwrite.unwrap_or(true),
        packet_size: capture.packet_size,
        format: match capture.format() {
            Format::Pcapng => CaptureFormat::Pcapng,
            Format::Pcap | Format::Unspecified => CaptureFormat::Pcap,
        },
    }
}

/// A field of a filter with its name in the layout.
type Named<'a> = (&'static str, &'a Option<CaptureField>);

fn read_filter(
    filter: &CaptureFilter,
    path: &str,
    filters: &mut Vec<FieldFilter>,
) -> Result<(), ConfigError> {
    match filter.choice() {
        Choice::Custom | Choice::Unspecified => {
            let custom = filter.custom.clone().unwrap_or_default();
            filters.push(custom_filter(&custom, &format!("{path}.custom"))?);
            Ok(())
        }
        Choice::Ethernet => {
            let CaptureEthernet { src, dst, ether_type, pfc_queue: _ } =
                filter.ethernet.clone().unwrap_or_default();
            let fields = [("src", &src), ("dst", &dst), ("ether_type", &ether_type)];
            let path = format!("{path}.ethernet");
            named(FilterBase::Frame, &ethernet::ETHERNET, &fields, &path, filters)
        }
        Choice::Vlan => {
            let CaptureVlan { priority, cfi, id, protocol } =
                filter.vlan.clone().unwrap_or_default();
            let fields =
                [("priority", &priority), ("cfi", &cfi), ("id", &id), ("ether_type", &protocol)];
            named(FilterBase::Vlan, &vlan::VLAN, &fields, &format!("{path}.vlan"), filters)
        }
        Choice::Ipv4 => {
            let it: CaptureIpv4 = filter.ipv4.clone().unwrap_or_default();
            let fields = [
                ("version", &it.version),
                ("header_length", &it.header_length),
                ("priority", &it.priority),
                ("total_length", &it.total_length),
                ("identification", &it.identification),
                ("reserved", &it.reserved),
                ("dont_fragment", &it.dont_fragment),
                ("more_fragments", &it.more_fragments),
                ("fragment_offset", &it.fragment_offset),
                ("time_to_live", &it.time_to_live),
                ("protocol", &it.protocol),
                ("header_checksum", &it.header_checksum),
                ("src", &it.src),
                ("dst", &it.dst),
            ];
            named(FilterBase::Ipv4, &ipv4::IPV4, &fields, &format!("{path}.ipv4"), filters)
        }
        Choice::Ipv6 => {
            let it: CaptureIpv6 = filter.ipv6.clone().unwrap_or_default();
            let fields = [
                ("version", &it.version),
                ("traffic_class", &it.traffic_class),
                ("flow_label", &it.flow_label),
                ("payload_length", &it.payload_length),
                ("next_header", &it.next_header),
                ("hop_limit", &it.hop_limit),
                ("src", &it.src),
                ("dst", &it.dst),
            ];
            named(FilterBase::Ipv6, &ipv6::IPV6, &fields, &format!("{path}.ipv6"), filters)
        }
    }
}

fn custom_filter(custom: &CaptureCustom, path: &str) -> Result<FieldFilter, ConfigError> {
    const BITS_MAX: u32 = 8 * 16_384;
    let bit_length = custom.bit_length.unwrap_or(8);
    if bit_length == 0 || custom.offset().saturating_add(bit_length) > BITS_MAX {
        let message = format!("found bits that no frame has; expected at most {BITS_MAX}");
        return Err(ConfigError::new(path, message));
    }
    Ok(FieldFilter {
        base: FilterBase::Frame,
        bit_offset: custom.offset() as usize,
        bit_length: bit_length as usize,
        value: hex(custom.value(), &format!("{path}.value"))?,
        mask: hex(custom.mask(), &format!("{path}.mask"))?,
        negate: custom.negate(),
    })
}

fn named(
    base: FilterBase,
    layout: &Layout,
    fields: &[Named<'_>],
    path: &str,
    filters: &mut Vec<FieldFilter>,
) -> Result<(), ConfigError> {
    for (name, field) in fields {
        let Some(field) = field else { continue };
        let path = format!("{path}.{name}");
        let Some(place) = layout.field(name) else { continue };
        filters.push(FieldFilter {
            base,
            bit_offset: place.bit_offset,
            bit_length: place.bits,
            value: hex(field.value(), &format!("{path}.value"))?,
            mask: hex(field.mask(), &format!("{path}.mask"))?,
            negate: field.negate(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(base: FilterBase, bit_offset: usize, bit_length: usize) -> FieldFilter {
        let (value, mask) = (Vec::new(), Vec::new());
        FieldFilter { base, bit_offset, bit_length, value, mask, negate: false }
    }

    fn frame(headers: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], headers].concat()
    }

    #[test]
    fn a_filter_compares_the_bits_of_its_mask() {
        let source = FieldFilter {
            value: vec![2, 0, 0, 0, 0, 0xff],
            mask: vec![0xff, 0, 0, 0, 0, 0],
            ..filter(FilterBase::Frame, 48, 48)
        };
        let frame = frame(&[8, 0]);
        assert!(source.accepts(&frame));
        let all = FieldFilter { mask: vec![0], ..source };
        assert!(!all.accepts(&frame));
        assert!(FieldFilter { negate: true, ..all }.accepts(&frame));
    }

    #[test]
    fn header_filters_find_their_header() {
        let ttl = FieldFilter { value: vec![64], ..filter(FilterBase::Ipv4, 64, 8) };
        let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17];
        assert!(ttl.accepts(&frame(&[&[8, 0][..], &header].concat())));
        assert!(ttl.accepts(&frame(&[&[0x81, 0, 0, 5, 8, 0][..], &header].concat())));
        assert!(!ttl.accepts(&frame(&[&[0x86, 0xdd][..], &header].concat())));
        assert!(!ttl.accepts(&frame(&[8, 0, 0x45])));
        let id = FieldFilter { value: vec![5], ..filter(FilterBase::Vlan, 4, 12) };
        assert!(id.accepts(&frame(&[0x81, 0, 0x60, 5, 8, 0])));
        assert!(!id.accepts(&frame(&[8, 0, 0, 5, 8, 0])));
    }
}
