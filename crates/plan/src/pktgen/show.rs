//! Contents of the files, in the kernel's exact format (net/core/pktgen.c).

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::device::{Device, XmitMode};
use super::flags::{FLAGS, Flag};

/// Contents of `pgctrl`.
pub(super) const VERSION: &str = "Packet Generator for packet performance testing. Version: 2.75\n";

/// Returns the contents of a thread's file.
pub(super) fn thread(devices: &[Device], result: &str) -> String {
    let names = |is_running: bool| -> String {
        let devices = devices.iter().filter(|device| device.is_running == is_running);
        devices.map(|device| format!("{} ", device.name)).collect()
    };
    let result = if result.is_empty() { "NA" } else { result };
    format!("Running: {}\nStopped: {}\nResult: {result}\n", names(true), names(false))
}

/// Returns the contents of a device's file.
pub(super) fn device(device: &Device) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = parameters(&mut text, device);
    let _ = current(&mut text, device);
    let result = if device.result.is_empty() { "Idle" } else { &device.result };
    let _ = writeln!(text, "Result: {result}");
    text
}

fn parameters(text: &mut String, device: &Device) -> std::fmt::Result {
    writeln!(
        text,
        "Params: count {}  min_pkt_size: {}  max_pkt_size: {}",
        device.count, device.size_min, device.size_max
    )?;
    if !device.imix.is_empty() {
        let entries = device.imix.iter().map(|(size, weight)| format!("{size},{weight} "));
        writeln!(text, "     imix_weights: {}", entries.collect::<String>())?;
    }
    writeln!(
        text,
        "     frags: {}  delay: {}  clone_skb: {}  ifname: {}",
        device.fragments.cast_signed(),
        device.delay,
        device.clone_skb.cast_signed(),
        device.name
    )?;
    writeln!(text, "     flows: {} flowlen: {}", device.flows, device.flow_length)?;
    writeln!(
        text,
        "     queue_map_min: {}  queue_map_max: {}",
        device.queue_min, device.queue_max
    )?;
    if device.priority != 0 {
        writeln!(text, "     skb_priority: {}", device.priority)?;
    }
    addresses(text, device)?;
    writeln!(
        text,
        "     src_mac: {} dst_mac: {}",
        device.effective_source_mac(),
        device.destination_mac
    )?;
    writeln!(
        text,
        "     udp_src_min: {}  udp_src_max: {}  udp_dst_min: {}  udp_dst_max: {}",
        device.source_port.0,
        device.source_port.1,
        device.destination_port.0,
        device.destination_port.1
    )?;
    writeln!(
        text,
        "     src_mac_count: {}  dst_mac_count: {}",
        device.source_macs.cast_signed(),
        device.destination_macs.cast_signed()
    )?;
    if !device.labels.is_empty() {
        let labels: Vec<String> =
            device.labels.iter().map(|label| format!("{label:08x}")).collect();
        writeln!(text, "     mpls: {}", labels.join(", "))?;
    }
    if let Some(id) = device.vlan {
        let (priority, cfi) = (device.vlan_priority, device.vlan_cfi);
        writeln!(text, "     vlan_id: {id}  vlan_p: {priority}  vlan_cfi: {cfi}")?;
    }
    if let Some(id) = device.service_vlan {
        let (priority, cfi) = (device.service_vlan_priority, device.service_vlan_cfi);
        writeln!(text, "     svlan_id: {id}  vlan_p: {priority}  vlan_cfi: {cfi}")?;
    }
    if device.tos != 0 {
        writeln!(text, "     tos: 0x{:02x}", device.tos)?;
    }
    if device.traffic_class != 0 {
        writeln!(text, "     traffic_class: 0x{:02x}", device.traffic_class)?;
    }
    if device.burst > 1 {
        writeln!(text, "     burst: {}", device.burst.cast_signed())?;
    }
    if let Some(node) = device.node {
        writeln!(text, "     node: {node}")?;
    }
    match device.mode {
        XmitMode::StartXmit => {}
        XmitMode::NetifReceive => writeln!(text, "     xmit_mode: netif_receive")?,
        XmitMode::QueueXmit => writeln!(text, "     xmit_mode: xmit_queue")?,
    }
    flags(text, device)
}

fn addresses(text: &mut String, device: &Device) -> std::fmt::Result {
    if device.flags.has(Flag::Ipv6) {
        // No command sets the range of sources.
        writeln!(text, "     saddr: {}  min_saddr: ::  max_saddr: ::", device.source6)?;
        return writeln!(
            text,
            "     daddr: {}  min_daddr: {}  max_daddr: {}",
            device.destination6, device.destination6_min, device.destination6_max
        );
    }
    let written =
        |address: Option<Ipv4Addr>| address.map(|address| address.to_string()).unwrap_or_default();
    let (destination, source) = (device.destination, device.source);
    writeln!(
        text,
        "     dst_min: {}  dst_max: {}",
        written(destination.min),
        written(destination.max)
    )?;
    writeln!(text, "     src_min: {}  src_max: {}", written(source.min), written(source.max))
}

fn flags(text: &mut String, device: &Device) -> std::fmt::Result {
    write!(text, "     Flags: ")?;
    for (flag, name) in FLAGS {
        let is_set = device.flags.has(flag);
        match flag {
            Flag::FlowsInSequence if device.flows == 0 => {}
            Flag::FlowsInSequence if !is_set => write!(text, "FLOW_RND  ")?,
            _ if !is_set => {}
            Flag::Ipsec if device.spi != 0 => {
                write!(text, "{name}  spi:{}  ", device.spi)?;
            }
            _ => write!(text, "{name}  ")?,
        }
    }
    writeln!(text)
}

fn current(text: &mut String, device: &Device) -> std::fmt::Result {
    let current = &device.current;
    writeln!(text, "Current:\n     pkts-sofar: {}  errors: {}", current.frames, current.errors)?;
    if !device.imix.is_empty() {
        let sizes = device.imix.iter().zip(&current.imix_counts);
        let entries = sizes.map(|((size, _), count)| format!("{size},{count} "));
        writeln!(text, "     imix_size_counts: {}", entries.collect::<String>())?;
    }
    writeln!(
        text,
        "     started: {}us  stopped: {}us idle: {}us",
        current.started.as_nanos() / 1000,
        current.stopped.as_nanos() / 1000,
        current.idle.as_nanos() / 1000
    )?;
    writeln!(
        text,
        "     seq_num: {}  cur_dst_mac_offset: {}  cur_src_mac_offset: {}",
        current.sequence.cast_signed(),
        current.destination_mac_offset.cast_signed(),
        current.source_mac_offset.cast_signed()
    )?;
    if device.flags.has(Flag::Ipv6) {
        let (source, destination) = (current.source6, current.destination6);
        writeln!(text, "     cur_saddr: {source}  cur_daddr: {destination}")?;
    } else {
        let (source, destination) = (current.source, current.destination);
        writeln!(text, "     cur_saddr: {source}  cur_daddr: {destination}")?;
    }
    writeln!(
        text,
        "     cur_udp_dst: {}  cur_udp_src: {}",
        current.destination_port, current.source_port
    )?;
    // The port picks the queue, so the file always shows 0.
    writeln!(text, "     cur_queue_map: 0\n     flows: {}", current.flows)
}
