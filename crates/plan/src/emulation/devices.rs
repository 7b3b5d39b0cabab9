//! Parses devices: link-layer addresses, VLAN tags, MPLS labels and next hops of clients.

use std::net::IpAddr;

use wirestorm_model::address_range::AddressRange;
use wirestorm_wire::packet::{MacAddress, ethertype};

use crate::document::error::PlanError;
use crate::document::range::read_range;
use crate::document::value_at::{Fields, ValueAt};

/// Devices that clients are behind. The clients use the devices round robin, in order of their
/// addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// Addresses of the clients.
    pub clients: AddressRange,
    /// Applies to every Nth client only, from the first one on; at least 1.
    pub stride: u32,
    /// Number of devices, at least 1.
    pub count: u32,
    /// VLAN tags of the frames; `None`: untagged.
    pub vlan: Option<Vlans>,
    /// MPLS labels after the VLAN tags; empty: none.
    pub labels: MplsLabels,
    /// Destination MAC address for the first device's clients; each next device uses the next
    /// address. `None`: as for clients without a device.
    pub destination: Option<MacAddress>,
    /// Source MAC address for the first device's clients; each next device uses the next address.
    /// `None`: the port's address.
    pub source: Option<MacAddress>,
    /// Routers that ARP or neighbour discovery resolves instead of `destination`, one per device.
    pub next_hop: Option<NextHop>,
}

/// One VLAN tag of a frame, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vlans {
    /// Service VLAN of the outer tag (IEEE 802.1ad); `None`: one tag.
    pub outer: Option<u16>,
    /// Customer VLAN (IEEE 802.1Q).
    pub inner: u16,
}

impl From<u16> for Vlans {
    fn from(inner: u16) -> Self {
        Self { outer: None, inner }
    }
}

impl Vlans {
    /// Returns the bytes between the Ethernet addresses and the last EtherType: each tag's own
    /// EtherType and its VLAN.
    pub fn tags(&self) -> Vec<u8> {
        let outer = self.outer.map(|outer| [ethertype::SERVICE_VLAN, outer]);
        let tags = outer.into_iter().chain([[ethertype::VLAN, self.inner]]);
        tags.flatten().flat_map(u16::to_be_bytes).collect()
    }
}

/// MPLS labels, the outermost first; at most [`COUNT_MAX`](Self::COUNT_MAX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MplsLabels {
    entries: [MplsLabel; Self::COUNT_MAX],
    count: u8,
}

/// An MPLS label stack entry (RFC 3032 section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MplsLabel {
    /// Label value, 20 bits.
    pub value: u32,
    /// Traffic class (RFC 5462), 0 to 7.
    pub traffic_class: u8,
    /// Time to live.
    pub time_to_live: u8,
}

impl MplsLabels {
    /// Maximum number of labels: a link header has room for these after two VLAN tags.
    pub const COUNT_MAX: usize = 4;

    /// Creates a stack from a list; `None` if it has more than [`Self::COUNT_MAX`] labels.
    pub fn new(labels: &[MplsLabel]) -> Option<Self> {
        let mut entries = [MplsLabel::default(); Self::COUNT_MAX];
        entries.get_mut(..labels.len())?.copy_from_slice(labels);
        Some(Self { entries, count: labels.len() as u8 })
    }

    /// Returns the labels, the outermost first.
    pub fn as_slice(&self) -> &[MplsLabel] {
        self.entries.get(..self.count.into()).unwrap_or_default()
    }

    /// Encodes the label stack; the last entry has the bottom-of-stack bit.
    pub fn stack(&self) -> Vec<u8> {
        let labels = self.as_slice();
        let entry = |(place, label): (usize, &MplsLabel)| {
            let is_bottom = u32::from(place + 1 == labels.len());
            let class = u32::from(label.traffic_class) << 9;
            label.value << 12 | class | is_bottom << 8 | u32::from(label.time_to_live)
        };
        labels.iter().enumerate().map(entry).flat_map(u32::to_be_bytes).collect()
    }
}

/// Routers whose MAC addresses ARP or neighbour discovery resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Address of the first device's router; each next device has the next address.
    pub first: IpAddr,
    /// Source address of the requests, for which the port answers as well; `None`: an address of
    /// the port.
    pub from: Option<IpAddr>,
}

/// An address that a port answers for beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredAddress {
    /// Index of the port in the plan.
    pub port: usize,
    /// VLAN tags of requests and answers; `None`: untagged.
    pub vlan: Option<Vlans>,
    /// Address to answer for.
    pub address: IpAddr,
}

pub(super) const DEVICES: [&str; 9] =
    ["clients", "stride", "count", "vlan", "mpls", "dst", "src", "next_hop", "next_hop_source"];
/// Fields that change frames; at least one of them is required.
const FRAME_FIELDS: [&str; 5] = ["dst", "src", "vlan", "mpls", "next_hop"];
pub(super) const LABEL: [&str; 3] = ["label", "tc", "ttl"];
pub(super) const LABEL_MAX: u64 = (1 << 20) - 1;
/// Maximum VLAN identifier. IEEE 802.1Q reserves 4095; 0 is a priority tag without a VLAN.
pub(super) const VLAN_MAX: u64 = 4_094;
const MAC: &str = "an Ethernet address such as 02:00:00:00:00:01";

pub(super) fn read(place: &ValueAt<'_>) -> Result<Vec<Devices>, PlanError> {
    let device = |place: &ValueAt<'_>| {
        let fields = place.fields(&DEVICES)?;
        let mac = |name: &str| fields.get(name).map(|it| read_unicast_mac(&it)).transpose();
        let number =
            |name: &str| fields.get(name).map_or(Ok(1), |it| it.integer(1, u32::MAX.into()));
        let (every, count) = (number("stride")?, number("count")?);
        let vlan = fields.get("vlan").map(|it| read_vlans(&it)).transpose()?;
        let labels = fields.get("mpls").map_or(Ok(MplsLabels::default()), |it| read_labels(&it))?;
        if !FRAME_FIELDS.iter().any(|name| fields.get(name).is_some()) {
            let expected = format!("at least one of {}", FRAME_FIELDS.join(", "));
            return Err(place.error("no field that changes frames", expected));
        }
        Ok(Devices {
            clients: read_range(&fields.required("clients", "addresses of clients")?)?,
            stride: every as u32,
            count: count as u32,
            vlan,
            labels,
            destination: mac("dst")?,
            source: mac("src")?,
            next_hop: read_next_hop(&fields, count as u32)?,
        })
    };
    place.items("devices")?.iter().map(device).collect()
}

/// Reads a VLAN, or a list of the outer and the inner one.
pub(super) fn read_vlans(place: &ValueAt<'_>) -> Result<Vlans, PlanError> {
    let number = |place: &ValueAt<'_>| Ok(place.integer(0, VLAN_MAX)? as u16);
    if !place.value().is_array() {
        return Ok(number(place)?.into());
    }
    let both = place.items("a VLAN, or the outer and the inner one")?;
    let [outer, inner] = both.as_slice() else {
        return Err(place.error(format!("{} VLANs", both.len()), "two, the outer one first"));
    };
    Ok(Vlans { outer: Some(number(outer)?), inner: number(inner)? })
}

fn read_labels(place: &ValueAt<'_>) -> Result<MplsLabels, PlanError> {
    let label = |place: &ValueAt<'_>| {
        if !place.value().is_object() {
            let value = place.integer(0, LABEL_MAX)? as u32;
            return Ok(MplsLabel { value, traffic_class: 0, time_to_live: 64 });
        }
        let fields = place.fields(&LABEL)?;
        let value = fields.required("label", "a label")?.integer(0, LABEL_MAX)?;
        let or = |name: &str, usual: u64, max: u64| {
            fields.get(name).map_or(Ok(usual), |it| it.integer(0, max))
        };
        Ok::<_, PlanError>(MplsLabel {
            value: value as u32,
            traffic_class: or("tc", 0, 7)? as u8,
            time_to_live: or("ttl", 64, 255)? as u8,
        })
    };
    let items = place.items("labels, the outermost first")?;
    let labels: Vec<MplsLabel> = items.iter().map(label).collect::<Result<_, _>>()?;
    let most = MplsLabels::COUNT_MAX;
    match MplsLabels::new(&labels).filter(|_| !labels.is_empty()) {
        Some(labels) => Ok(labels),
        None => Err(place.error(format!("{} labels", labels.len()), format!("1 to {most}"))),
    }
}

/// Reads the next hops of `count` devices.
fn read_next_hop(fields: &Fields<'_>, count: u32) -> Result<Option<NextHop>, PlanError> {
    const ADDRESS: &str = "an IP address";
    let address = |name: &str, count: u32| -> Result<_, PlanError> {
        let Some(place) = fields.get(name) else { return Ok(None) };
        let address =
            place.text(ADDRESS)?.parse::<IpAddr>().map_err(|_| place.unexpected(ADDRESS))?;
        check_unicast(&place, AddressRange { first: address, count })?;
        Ok(Some((place, address)))
    };
    match (address("next_hop", count)?, address("next_hop_source", 1)?) {
        (None, None) => Ok(None),
        (None, Some((place, _))) => Err(place.message_error("needs next_hop, which is missing")),
        (Some((place, _)), _) if fields.get("dst").is_some() => {
            Err(place.error("dst as well", "one of them: ARP or NDP resolves next_hop"))
        }
        (Some((_, first)), Some((place, from))) if first.is_ipv4() != from.is_ipv4() => {
            Err(place.unexpected(format!("an address of the family of {first}")))
        }
        (Some((_, first)), from) => Ok(Some(NextHop { first, from: from.map(|(_, from)| from) })),
    }
}

/// Checks that all addresses of a range are unicast; `place` has the first one.
fn check_unicast(place: &ValueAt<'_>, all: AddressRange) -> Result<(), PlanError> {
    let of_group = Some(all.first).filter(IpAddr::is_multicast);
    match all.first_unusable().or(of_group) {
        None => Ok(()),
        Some(address) if all.count == 1 => Err(place.error(address, "a unicast address")),
        Some(address) => {
            let message = format!(
                "found {all}, one address for each device, expected unicast addresses, not \
                 {address}"
            );
            Err(place.message_error(message))
        }
    }
}

/// Checks that each item of `devices` applies to some of the clients. The first item that has a
/// client hides later ones.
pub(super) fn check(
    place: &ValueAt<'_>,
    all: &[Devices],
    clients: AddressRange,
) -> Result<(), PlanError> {
    for ((index, devices), item) in all.iter().enumerate().zip(place.items("devices")?) {
        let expected = format!("some of the template's clients, {clients}");
        let item = item.fields(&DEVICES)?.required("clients", "addresses of clients")?;
        if !devices.clients.overlaps(&clients) {
            return Err(item.unexpected(expected));
        }
        let hides = |before: &Devices| {
            before.stride == 1 && before.clients.contains_range(&devices.clients)
        };
        if let Some(before) = all[..index].iter().position(hides) {
            return Err(item.message_error(format!(
                "devices[{before}] comes first and has all of these clients: remove this item, or \
                 move it before that one"
            )));
        }
    }
    Ok(())
}

/// Reads a unicast MAC address.
pub(super) fn read_unicast_mac(place: &ValueAt<'_>) -> Result<MacAddress, PlanError> {
    match read_mac(place)? {
        mac if mac.is_multicast() => Err(place.unexpected("a unicast Ethernet address")),
        mac => Ok(mac),
    }
}

pub(crate) fn read_mac(place: &ValueAt<'_>) -> Result<MacAddress, PlanError> {
    place.text(MAC)?.parse().map_err(|_| place.unexpected(MAC))
}
