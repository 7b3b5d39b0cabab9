//! Notes on a device's settings for users of the kernel's pktgen.

use std::net::Ipv4Addr;

use wirestorm_wire::packet::MacAddress;

use super::device::{Device, XmitMode};
use super::flags::Flag;
use super::flows::Flows;
use super::frame::Frames;

/// Returns the notes on all settings except the pace.
pub(super) fn of_settings(device: &Device, frames: &Frames) -> Vec<String> {
    let mut notes: Vec<String> = device
        .reading_notes
        .values()
        .map(|reading| format!("{reading}, as in the kernel"))
        .collect();
    sizes(device, frames, &mut notes);
    addresses(device, &mut notes);
    destinations(device, frames, &mut notes);
    ports(device, &mut notes);
    tags(device, &mut notes);
    copies(device, frames, &mut notes);
    note_settings_without_effect(device, &mut notes);
    notes
}

fn sizes(device: &Device, frames: &Frames, notes: &mut Vec<String>) {
    let (min, max) = frames.sizes;
    let floor = frames.floor;
    let follows_imix = min >= max && !device.imix.is_empty();
    let least = match device.imix.iter().map(|(size, _)| *size).min() {
        Some(least) if follows_imix => least,
        _ => u64::from(min),
    };
    if least < u64::from(floor) {
        notes.push(format!(
            "size {least}: frames have at least {floor} bytes for their headers, as in the kernel, \
             whose bit rates count {least}"
        ));
    }
    if min < max && device.flags.has(Flag::SizeRandom) {
        notes.push(format!("max_pkt_size {max}: random sizes stay below it, as in the kernel"));
    }
    if min < max && !device.imix.is_empty() {
        notes.push(
            "imix_weights: ignored, because max_pkt_size is above min_pkt_size, as in the \
             kernel"
                .to_owned(),
        );
    }
    if follows_imix {
        notes.push(
            "imix_weights: exact; the kernel rounds weights down to whole percents and \
             gives the rest to the last size"
                .to_owned(),
        );
    }
}

fn addresses(device: &Device, notes: &mut Vec<String>) {
    let mut note = |text: &str| notes.push(text.to_owned());
    if device.destination_mac == MacAddress::default() {
        note("dst_mac: not set, so frames go to 00:00:00:00:00:00, as in the kernel");
    }
    if device.source_macs > 1 && device.source_mac == MacAddress::default() {
        note(
            "src_mac_count: counts from the interface's own address; the kernel would count \
             from zero, because src_mac is not set",
        );
    }
    if device.flags.has(Flag::Ipv6) {
        addresses6(device, &mut note);
        return;
    }
    let random = |flag: Flag| device.flags.has(flag);
    let source = device.source;
    match (source.min, source.max) {
        (None, Some(_)) => note("src_max: without effect, because src_min is not set"),
        (None, None) if device.link.ipv4.is_none() => {
            note(
                "src_min: not set, and the interface has no IPv4 address: frames come from \
                 0.0.0.0, as in the kernel",
            );
        }
        (Some(min), Some(max)) if max < min => note("src_max: below src_min, so without effect"),
        (Some(min), Some(max)) if min < max && random(Flag::SourceRandom) => {
            note("src_max: random addresses stay below it, as in the kernel");
        }
        _ => {}
    }
    let destination = device.destination;
    match (destination.min, destination.max) {
        (None, Some(max)) if !max.is_unspecified() => {
            note("dst_min: not set, so destinations are from 0.0.0.0 on, as in the kernel");
        }
        (None, _) => note("dst_min: not set, so frames go to 0.0.0.0, as in the kernel"),
        (Some(min), Some(max)) if max < min => note("dst_max: below dst_min, so without effect"),
        _ => {}
    }
    if random(Flag::DestinationRandom)
        && destination.min.unwrap_or(Ipv4Addr::UNSPECIFIED)
            < destination.max.unwrap_or(Ipv4Addr::UNSPECIFIED)
    {
        note(
            "dst_max: random addresses stay below it, and exclude 0.0.0.0/8, loopback, multicast \
             and broadcast, as in the kernel",
        );
    }
    if device.traffic_class != 0 {
        note("traffic_class: without effect on IPv4; tos is its setting");
    }
}

fn addresses6(device: &Device, note: &mut impl FnMut(&str)) {
    if device.source6.is_unspecified() && device.link.ipv6.is_none() {
        note(
            "src6: not set, and the interface has no link-local address: frames come from ::, \
             as in the kernel",
        );
    }
    match (device.destination6_min.is_unspecified(), device.destination6_max.is_unspecified()) {
        (false, true) => {
            note("dst6_max: not set, so all frames go to dst6_min; the kernel would send to ::");
        }
        (false, false) => {
            note(
                "dst6_min, dst6_max: no range, as in the kernel: the bits in dst6_max but not in \
                 dst6_min are random, those in both are set",
            );
        }
        (true, _) if device.destination6.is_unspecified() => {
            note("dst6: not set, so frames go to ::, as in the kernel");
        }
        (true, _) => {}
    }
    if !device.flags.has(Flag::UdpChecksum) {
        note(
            "flag UDPCSUM: not set, so UDP checksums are zero, as in the kernel; receivers drop \
             such packets over IPv6 (RFC 8200 section 8.1)",
        );
    }
    if device.tos != 0 {
        note("tos: without effect on IPv6; traffic_class is its setting");
    }
    let (source, destination) = (device.source, device.destination);
    if [source.min, source.max, destination.min, destination.max].iter().any(Option::is_some) {
        note("IPv4 addresses: without effect, because an IPv6 address is set");
    }
    if device.flows > 0 {
        note("flows: without effect on IPv6, as in the kernel");
    }
}

fn destinations(device: &Device, frames: &Frames, notes: &mut Vec<String>) {
    if let Some(packets) = frames.repeats_after {
        notes.push(format!("destinations repeat after {packets} packets"));
    }
    let sources = device.source.min.is_some() && device.source.min < device.source.max;
    let ports = [device.source_port, device.destination_port].iter().any(|(min, max)| min < max);
    match &frames.flows {
        Flows::None => {
            if device.flow_length > 0 && !device.flags.has(Flag::Ipv6) {
                notes.push("flowlen: without effect, because flows is not set".to_owned());
            }
            return;
        }
        Flows::InSequence(length) => notes.push(format!(
            "flows {}: one after another, each of {length} packets, as in the kernel: the number \
             of flows has no effect",
            device.flows
        )),
        Flows::Random(_) => notes.push(format!(
            "flowlen {}: a flow has one packet more, as in the kernel without FLOW_SEQ",
            device.flow_length
        )),
    }
    if sources || ports {
        notes.push(
            "flows: keep only their destination address, as in the kernel; source \
             addresses and ports change with every packet"
                .to_owned(),
        );
    }
}

fn ports(device: &Device, notes: &mut Vec<String>) {
    let ports = [("udp_src", device.source_port), ("udp_dst", device.destination_port)];
    for (name, (min, max)) in ports {
        if min < max {
            let last = max - 1;
            notes.push(format!(
                "{name}_max {max}: is exclusive, as in the kernel: ports are {min} to {last}"
            ));
        } else if max < min {
            notes.push(format!("{name}_max {max}: below {name}_min {min}, so without effect"));
        }
    }
}

fn tags(device: &Device, notes: &mut Vec<String>) {
    if device.service_vlan.is_some() {
        notes.push(
            "svlan_id: the outer tag has ethertype 0x8100, as in the kernel, not 802.1ad's \
             0x88a8"
                .to_owned(),
        );
    }
    if device.flags.has(Flag::MplsRandom) && !device.labels.is_empty() {
        notes.push(
            "flag MPLS_RND: the labels of entries with the bottom-of-stack bit are random; \
             the kernel would randomise 8 bits of each label, its traffic class and its \
             time to live"
                .to_owned(),
        );
    }
}

fn copies(device: &Device, frames: &Frames, notes: &mut Vec<String>) {
    let copies = frames.copies;
    if copies > 1 {
        notes.push(format!(
            "clone_skb {}, burst {}: each packet is sent {copies} times with the same sequence \
             number, as in the kernel{}",
            device.clone_skb,
            device.burst,
            if frames.stamps.is_some() { ", but each time with its own time stamp" } else { "" }
        ));
    }
}

fn note_settings_without_effect(device: &Device, notes: &mut Vec<String>) {
    let flags = [
        (Flag::VlanRandom, device.vlan.is_none(), "VID_RND", "vlan_id"),
        (Flag::ServiceVlanRandom, device.service_vlan.is_none(), "SVID_RND", "svlan_id"),
        (Flag::SourceMacRandom, device.source_macs < 2, "MACSRC_RND", "src_mac_count"),
        (Flag::DestinationMacRandom, device.destination_macs < 2, "MACDST_RND", "dst_mac_count"),
        (Flag::MplsRandom, device.labels.is_empty(), "MPLS_RND", "mpls"),
        (Flag::FlowsInSequence, device.flows == 0, "FLOW_SEQ", "flows"),
    ];
    for (flag, is_needed, name, needs) in flags {
        if device.flags.has(flag) && is_needed {
            notes.push(format!("flag {name}: without effect, because {needs} is not set"));
        }
    }
    let has_queues = device.queue_min != 0
        || device.queue_max != 0
        || device.flags.has(Flag::QueueRandom)
        || device.flags.has(Flag::QueueCpu);
    let settings = [
        (has_queues, "queue_map_min, queue_map_max, flags QUEUE_MAP_*", "the port picks the queue"),
        (device.priority != 0, "skb_priority", "frames pass no queueing discipline"),
        (
            device.node.is_some() || device.flags.has(Flag::Node),
            "node, flag NODE",
            "no packet is allocated while sending",
        ),
        (device.fragments != 0, "frags", "frames have the same bytes, in one piece"),
        (device.spi != 0, "spi", "flag IPSEC is not set"),
        (
            device.mode == XmitMode::QueueXmit,
            "xmit_mode queue_xmit",
            "frames go to the driver past the queueing discipline, as with start_xmit",
        ),
    ];
    for (is_set, name, reason) in settings {
        if is_set {
            notes.push(format!("{name}: without effect, because {reason}"));
        }
    }
}
