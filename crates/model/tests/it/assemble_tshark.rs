//! Assembled frames compared with tshark's dissection.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

use wirestorm_model::assemble::{Assembled, Header, Payload, Value, assemble};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::{Resolution, Writer};
use wirestorm_testkit::require::require_tool;
use wirestorm_wire::layout::{self, Layout};

/// A frame and the names of its fields in tshark.
struct Case {
    name: &'static str,
    headers: Vec<Header>,
    payload: Payload,
    length: usize,
    /// `HEADER.FIELD`, tshark's name, and the size of its unit in tshark's units. `#` and a number
    /// select one of several occurrences in tshark.
    fields: Vec<(&'static str, &'static str, u128)>,
}

impl Case {
    fn assemble(&self) -> Assembled {
        assemble(&self.headers, &self.payload, self.length)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn with_item(&self, name: &str) -> usize {
        self.headers.iter().filter(|header| header.layout.name == name).count()
    }
}

fn header(name: &str, values: &[(&'static str, u128)]) -> Header {
    let layout = layout::find(name).unwrap_or_else(|| panic!("no layout {name}"));
    filled(layout, values)
}

fn filled(layout: &'static Layout, values: &[(&'static str, u128)]) -> Header {
    values.iter().fold(Header::new(layout), |header, (name, value)| header.with(*name, *value))
}

trait With: Sized {
    /// Adds an item with values.
    fn has(self, name: &str, values: &[(&'static str, u128)]) -> Self;
    /// Adds an item with values and a field of bytes.
    fn with_item_bytes(
        self,
        name: &str,
        values: &[(&'static str, u128)],
        field: &'static str,
        bytes: &[u8],
    ) -> Self;
    /// Adds an item to the last item.
    fn with_nested_item(self, name: &str, values: &[(&'static str, u128)]) -> Self;
}

impl With for Header {
    fn has(self, name: &str, values: &[(&'static str, u128)]) -> Self {
        let layout = self.layout.item(name).unwrap_or_else(|| panic!("no item {name}"));
        self.item(filled(layout, values))
    }

    fn with_item_bytes(
        self,
        name: &str,
        values: &[(&'static str, u128)],
        field: &'static str,
        bytes: &[u8],
    ) -> Self {
        let layout = self.layout.item(name).unwrap_or_else(|| panic!("no item {name}"));
        self.item(filled(layout, values).with(field, bytes.to_vec()))
    }

    fn with_nested_item(mut self, name: &str, values: &[(&'static str, u128)]) -> Self {
        let last = self.items.pop().expect("an item").has(name, values);
        self.item(last)
    }
}

fn mac(last: u128) -> u128 {
    0x02_00_00_00_00_00 | last
}

fn v4(text: &str) -> u128 {
    u32::from(text.parse::<Ipv4Addr>().unwrap()).into()
}

fn v6(text: &str) -> u128 {
    text.parse::<Ipv6Addr>().unwrap().into()
}

fn ethernet() -> Header {
    header("ethernet", &[("dst", mac(0x0a0b)), ("src", mac(0x0c0d))])
}

fn ipv4() -> Header {
    header("ipv4", &[("src", v4("10.1.2.3")), ("dst", v4("10.4.5.6"))])
}

fn ipv6() -> Header {
    header("ipv6", &[("src", v6("2001:db8::1")), ("dst", v6("2001:db8::2"))])
}

fn udp() -> Header {
    header("udp", &[("src_port", 7001), ("dst_port", 7002)])
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let bytes = Payload::IncrementingBytes(1);
    let case = |name, length, headers: &[Header], fields: &[(&'static str, &'static str, u128)]| {
        let (headers, fields) = (headers.to_vec(), fields.to_vec());
        Case { name, headers, payload: bytes.clone(), length, fields }
    };
    let closed = |name, length, headers: &[Header], fields: &[(&'static str, &'static str, u128)]| {
        let (headers, fields) = (headers.to_vec(), fields.to_vec());
        Case { name, headers, payload: Payload::Padding, length, fields }
    };
    vec![
        case("udp over ipv4", 100, &[
            ethernet(),
            ipv4().with("dscp", 46).with("ecn", 2).with("identification", 0x1234)
                .with("dont_fragment", 1).with("time_to_live", 33),
            udp(),
        ], &[
            ("0.dst", "eth.dst", 1), ("0.src", "eth.src", 1), ("0.ether_type", "eth.type", 1),
            ("1.version", "ip.version", 1), ("1.header_length", "ip.hdr_len", 4),
            ("1.priority", "ip.dsfield", 1), ("1.dscp", "ip.dsfield.dscp", 1),
            ("1.ecn", "ip.dsfield.ecn", 1), ("1.total_length", "ip.len", 1),
            ("1.identification", "ip.id", 1), ("1.reserved", "ip.flags.rb", 1),
            ("1.dont_fragment", "ip.flags.df", 1), ("1.more_fragments", "ip.flags.mf", 1),
            ("1.fragment_offset", "ip.frag_offset", 1), ("1.time_to_live", "ip.ttl", 1),
            ("1.protocol", "ip.proto", 1), ("1.header_checksum", "ip.checksum", 1),
            ("1.src", "ip.src", 1), ("1.dst", "ip.dst", 1),
            ("2.src_port", "udp.srcport", 1), ("2.dst_port", "udp.dstport", 1),
            ("2.length", "udp.length", 1), ("2.checksum", "udp.checksum", 1),
        ]),
        case("fragment", 100, &[
            ethernet(), ipv4().with("fragment_offset", 0x123).with("more_fragments", 1),
        ], &[("1.fragment_offset", "ip.frag_offset", 1), ("1.more_fragments", "ip.flags.mf", 1),
             ("1.protocol", "ip.proto", 1)]),
        case("ipv4 options", 140, &[
            ethernet(),
            ipv4()
                .has("router_alert", &[("value", 7)])
                .has("no_operation", &[])
                .has("timestamp", &[("flag", 1), ("overflow", 3)])
                .with_nested_item("address", &[("value", v4("9.8.7.6"))])
                .with_nested_item("timestamp", &[("value", 123_456)])
                .has("record_route", &[("pointer", 8)])
                .with_nested_item("address", &[("value", v4("1.2.3.4"))])
                .with_item_bytes("custom", &[("copied_flag", 1), ("option_class", 0), ("option_number", 8)],
                           "value", &[1, 2])
                .has("end_of_options", &[]),
            udp(),
        ], &[
            ("1.header_length", "ip.hdr_len", 4),
            ("1.options.0.type", "ip.opt.type#0", 1), ("1.options.0.value", "ip.opt.ra", 1),
            ("1.options.0.length", "ip.opt.len#0", 1), ("1.options.1.type", "ip.opt.type#1", 1),
            ("1.options.2.length", "ip.opt.len#1", 1), ("1.options.2.pointer", "ip.opt.ptr#0", 1),
            ("1.options.2.overflow", "ip.opt.overflow", 1), ("1.options.2.flag", "ip.opt.flag", 1),
            ("1.options.2.entries.0.value", "ip.opt.time_stamp_addr", 1),
            ("1.options.2.entries.1.value", "ip.opt.time_stamp", 1),
            ("1.options.3.pointer", "ip.opt.ptr#1", 1), ("1.options.3.length", "ip.opt.len#2", 1),
            ("1.options.3.route.0.value", "ip.rec_rt", 1),
            ("1.options.4.type", "ip.opt.type#4", 1), ("1.options.4.length", "ip.opt.len#3", 1),
            ("1.options.4.copied_flag", "ip.opt.type.copy#4", 1),
            ("1.options.4.option_class", "ip.opt.type.class#4", 1),
            ("1.options.4.option_number", "ip.opt.type.number#4", 1),
            ("2.dst_port", "udp.dstport", 1),
        ]),
        case("tcp with options over ipv6", 160, &[
            ethernet(),
            ipv6().with("traffic_class", 0xb9).with("flow_label", 0x12345).with("hop_limit", 7),
            header("tcp", &[
                ("src_port", 7003), ("dst_port", 7004), ("seq_num", 0x0102_0304),
                ("ack_num", 0x0506_0708), ("ecn_ns", 1), ("ecn_cwr", 0), ("ecn_echo", 1),
                ("ctl_ack", 1), ("ctl_psh", 1), ("window", 0x1122), ("urgent_pointer", 0),
            ])
                .has("no_operation", &[])
                .has("timestamps", &[("value", 0x0a0b_0c0d), ("echo_reply", 0x0102_0304)])
                .has("sack", &[])
                .with_nested_item("block", &[("left_edge", 0x0506_0709), ("right_edge", 0x0506_0809)])
                .with_item_bytes("custom", &[("kind", 30)], "value", &[0x20, 0])
                .has("end_of_options", &[]),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.version", "ipv6.version", 1),
            ("1.traffic_class", "ipv6.tclass", 1), ("1.dscp", "ipv6.tclass.dscp", 1),
            ("1.ecn", "ipv6.tclass.ecn", 1), ("1.flow_label", "ipv6.flow", 1),
            ("1.payload_length", "ipv6.plen", 1), ("1.next_header", "ipv6.nxt", 1),
            ("1.hop_limit", "ipv6.hlim", 1), ("1.src", "ipv6.src", 1), ("1.dst", "ipv6.dst", 1),
            ("2.src_port", "tcp.srcport", 1), ("2.dst_port", "tcp.dstport", 1),
            ("2.seq_num", "tcp.seq_raw", 1), ("2.ack_num", "tcp.ack_raw", 1),
            ("2.data_offset", "tcp.hdr_len", 4), ("2.reserved", "tcp.flags.res", 1),
            ("2.ecn_ns", "tcp.flags.ae", 1), ("2.ecn_cwr", "tcp.flags.cwr", 1),
            ("2.ecn_echo", "tcp.flags.ece", 1), ("2.ctl_urg", "tcp.flags.urg", 1),
            ("2.ctl_ack", "tcp.flags.ack", 1), ("2.ctl_psh", "tcp.flags.push", 1),
            ("2.ctl_rst", "tcp.flags.reset", 1), ("2.ctl_syn", "tcp.flags.syn", 1),
            ("2.ctl_fin", "tcp.flags.fin", 1), ("2.window", "tcp.window_size_value", 1),
            ("2.checksum", "tcp.checksum", 1), ("2.urgent_pointer", "tcp.urgent_pointer", 1),
            ("2.options.1.value", "tcp.options.timestamp.tsval", 1),
            ("2.options.1.echo_reply", "tcp.options.timestamp.tsecr", 1),
            ("2.options.2.blocks.0.left_edge", "tcp.options.sack_le", 1),
            ("2.options.2.blocks.0.right_edge", "tcp.options.sack_re", 1),
            ("2.options.0.kind", "tcp.option_kind#0", 1),
            ("2.options.1.length", "tcp.option_len#0", 1),
            ("2.options.2.length", "tcp.option_len#1", 1),
            ("2.options.3.length", "tcp.option_len#2", 1),
        ]),
        case("tcp syn", 80, &[
            ethernet(), ipv4(),
            header("tcp", &[("src_port", 7005), ("dst_port", 7006), ("flags", 0x02)])
                .has("mss", &[("value", 1234)]).has("window_scale", &[("shift", 9)])
                .has("sack_permitted", &[]),
        ], &[
            ("1.protocol", "ip.proto", 1), ("2.ctl_syn", "tcp.flags.syn", 1),
            ("2.data_offset", "tcp.hdr_len", 4), ("2.options.0.kind", "tcp.option_kind#0", 1),
            ("2.options.0.value", "tcp.options.mss_val", 1),
            ("2.options.1.shift", "tcp.options.wscale.shift", 1),
            ("2.options.2.kind", "tcp.option_kind#2", 1),
            ("2.options.2.length", "tcp.option_len#2", 1), ("2.checksum", "tcp.checksum", 1),
        ]),
        case("service and customer tag", 90, &[
            ethernet(),
            header("vlan", &[("priority", 5), ("cfi", 1), ("id", 0x123)]),
            header("vlan", &[("priority", 2), ("id", 0x456)]),
            ipv4(), udp(),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.tpid", "eth.type", 1),
            ("1.priority", "ieee8021ad.priority", 1), ("1.cfi", "ieee8021ad.dei", 1),
            ("1.id", "ieee8021ad.id", 1), ("2.priority", "vlan.priority", 1),
            ("2.id", "vlan.id", 1), ("2.ether_type", "vlan.etype#0", 1),
        ]),
        case("tags of one kind", 90, &[
            ethernet(), header("vlan", &[("tpid", 0x8100), ("id", 1)]), header("vlan", &[("id", 2)]),
            ipv6(), udp(),
        ], &[
            ("1.tpid", "eth.type", 1), ("1.id", "vlan.id#0", 1), ("2.id", "vlan.id#1", 1),
            ("1.ether_type", "vlan.etype#0", 1), ("2.ether_type", "vlan.etype#1", 1),
        ]),
        case("label stack", 90, &[
            ethernet(),
            header("mpls", &[("label", 0x12345), ("traffic_class", 6), ("time_to_live", 12)]),
            header("mpls", &[("label", 0x54321)]),
            ipv4(), udp(),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.label", "mpls.label#0", 1),
            ("1.traffic_class", "mpls.exp#0", 1), ("1.bottom_of_stack", "mpls.bottom#0", 1),
            ("1.time_to_live", "mpls.ttl#0", 1), ("2.label", "mpls.label#1", 1),
            ("2.bottom_of_stack", "mpls.bottom#1", 1), ("3.src", "ip.src", 1),
        ]),
        closed("arp", 60, &[
            header("ethernet", &[("dst", 0xffff_ffff_ffff), ("src", mac(1))]),
            header("arp", &[
                ("operation", 2), ("sender_hardware_addr", mac(1)),
                ("sender_protocol_addr", v4("10.0.0.1")), ("target_hardware_addr", mac(2)),
                ("target_protocol_addr", v4("10.0.0.2")),
            ]),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.hardware_type", "arp.hw.type", 1),
            ("1.protocol_type", "arp.proto.type", 1), ("1.hardware_length", "arp.hw.size", 1),
            ("1.protocol_length", "arp.proto.size", 1), ("1.operation", "arp.opcode", 1),
            ("1.sender_hardware_addr", "arp.src.hw_mac", 1),
            ("1.sender_protocol_addr", "arp.src.proto_ipv4", 1),
            ("1.target_hardware_addr", "arp.dst.hw_mac", 1),
            ("1.target_protocol_addr", "arp.dst.proto_ipv4", 1),
        ]),
        case("ping", 70, &[
            ethernet(), ipv4(),
            header("icmp", &[("identifier", 0x1122), ("sequence_number", 0x3344)]),
        ], &[
            ("1.protocol", "ip.proto", 1), ("2.type", "icmp.type", 1), ("2.code", "icmp.code", 1),
            ("2.checksum", "icmp.checksum", 1), ("2.identifier", "icmp.ident#0", 1),
            ("2.sequence_number", "icmp.seq#0", 1),
        ]),
        case("packet too big", 90, &[
            ethernet(), ipv4(),
            header("icmp", &[("type", 3), ("code", 4), ("next_hop_mtu", 1280)]), ipv4(), udp(),
        ], &[("2.type", "icmp.type", 1), ("2.code", "icmp.code", 1),
             ("2.next_hop_mtu", "icmp.mtu", 1), ("3.dst", "ip.dst#1", 1)]),
        case("redirect of ipv4", 90, &[
            ethernet(), ipv4(),
            header("icmp", &[("type", 5), ("gateway", v4("10.9.9.9"))]), ipv4(),
        ], &[("2.gateway", "icmp.redir_gw", 1), ("3.dst", "ip.dst#1", 1)]),
        case("packet too big for ipv6", 130, &[
            ethernet(), ipv6(), header("icmpv6", &[("type", 2), ("mtu", 1290)]), ipv6(), udp(),
        ], &[("2.mtu", "icmpv6.mtu", 1), ("3.dst", "ipv6.dst#1", 1)]),
        case("ping of ipv6", 80, &[
            ethernet(), ipv6(),
            header("icmpv6", &[("identifier", 0x1122), ("sequence_number", 0x3344)]),
        ], &[
            ("1.next_header", "ipv6.nxt", 1), ("2.type", "icmpv6.type", 1),
            ("2.code", "icmpv6.code", 1), ("2.checksum", "icmpv6.checksum", 1),
            ("2.identifier", "icmpv6.echo.identifier", 1),
            ("2.sequence_number", "icmpv6.echo.sequence_number", 1),
        ]),
        closed("router solicitation", 90, &[
            ethernet(), ipv6().with("hop_limit", 255),
            header("icmpv6_router_solicitation", &[])
                .has("source_link_layer_address", &[("address", mac(0x55))])
                .with_item_bytes("custom", &[("type", 253)], "value", &[1; 9]),
        ], &[
            ("1.payload_length", "ipv6.plen", 1), ("2.type", "icmpv6.type", 1),
            ("2.options.0.type", "icmpv6.opt.type#0", 1),
            ("2.options.0.length", "icmpv6.opt.length#0", 1),
            ("2.options.0.address", "icmpv6.opt.src_linkaddr", 1),
            ("2.options.1.type", "icmpv6.opt.type#1", 1),
            ("2.options.1.length", "icmpv6.opt.length#1", 1),
        ]),
        closed("router advertisement", 130, &[
            ethernet(), ipv6().with("hop_limit", 255),
            header("icmpv6_router_advertisement", &[
                ("cur_hop_limit", 63), ("managed", 1), ("other_configuration", 0),
                ("router_lifetime", 0x1234), ("reachable_time", 0x0102_0304),
                ("retransmission_timer", 0x0506_0708),
            ])
                .has("prefix_information", &[
                    ("prefix_length", 56), ("on_link", 0), ("valid_lifetime", 0x1000),
                    ("preferred_lifetime", 0x0800), ("prefix", v6("2001:db8:1::")),
                ])
                .has("mtu", &[("mtu", 1400)]),
        ], &[
            ("2.type", "icmpv6.type", 1), ("2.cur_hop_limit", "icmpv6.nd.ra.cur_hop_limit", 1),
            ("2.managed", "icmpv6.nd.ra.flag.m", 1),
            ("2.other_configuration", "icmpv6.nd.ra.flag.o", 1),
            ("2.router_lifetime", "icmpv6.nd.ra.router_lifetime", 1),
            ("2.reachable_time", "icmpv6.nd.ra.reachable_time", 1),
            ("2.retransmission_timer", "icmpv6.nd.ra.retrans_timer", 1),
            ("2.options.0.prefix_length", "icmpv6.opt.prefix.length", 1),
            ("2.options.0.on_link", "icmpv6.opt.prefix.flag.l", 1),
            ("2.options.0.autonomous", "icmpv6.opt.prefix.flag.a", 1),
            ("2.options.0.valid_lifetime", "icmpv6.opt.prefix.valid_lifetime", 1),
            ("2.options.0.preferred_lifetime", "icmpv6.opt.prefix.preferred_lifetime", 1),
            ("2.options.0.prefix", "icmpv6.opt.prefix", 1),
            ("2.options.1.mtu", "icmpv6.opt.mtu", 1),
        ]),
        closed("neighbor solicitation", 86, &[
            ethernet(), ipv6().with("hop_limit", 255),
            header("icmpv6_neighbor_solicitation", &[("target_address", v6("2001:db8::77"))])
                .has("source_link_layer_address", &[("address", mac(0x55))]),
        ], &[
            ("2.type", "icmpv6.type", 1), ("2.target_address", "icmpv6.nd.ns.target_address", 1),
            ("2.options.0.address", "icmpv6.opt.src_linkaddr", 1),
            ("2.checksum", "icmpv6.checksum", 1),
        ]),
        closed("neighbor advertisement", 90, &[
            ethernet(), ipv6().with("hop_limit", 255),
            header("icmpv6_neighbor_advertisement", &[
                ("router", 1), ("solicited", 0), ("override", 1),
                ("target_address", v6("2001:db8::77")),
            ])
                .has("target_link_layer_address", &[("address", mac(0x66))]),
        ], &[
            ("2.type", "icmpv6.type", 1), ("2.router", "icmpv6.nd.na.flag.r", 1),
            ("2.solicited", "icmpv6.nd.na.flag.s", 1), ("2.override", "icmpv6.nd.na.flag.o", 1),
            ("2.target_address", "icmpv6.nd.na.target_address", 1),
            ("2.options.0.address", "icmpv6.opt.target_linkaddr", 1),
        ]),
        closed("redirect", 100, &[
            ethernet(), ipv6().with("hop_limit", 255),
            header("icmpv6_redirect", &[
                ("target_address", v6("fe80::1")), ("destination_address", v6("2001:db8::99")),
            ]),
        ], &[
            ("2.type", "icmpv6.type", 1), ("2.target_address", "icmpv6.nd.rd.target_address", 1),
            ("2.destination_address", "icmpv6.rd.na.destination_address", 1),
        ]),
        closed("igmp version 1", 60, &[
            ethernet(), ipv4().with("time_to_live", 1),
            header("igmpv1", &[("type", 2), ("group_address", v4("239.1.2.3"))]),
        ], &[
            ("1.protocol", "ip.proto", 1), ("1.total_length", "ip.len", 1),
            ("2.checksum", "igmp.checksum", 1), ("2.group_address", "igmp.maddr", 1),
        ]),
        closed("igmp version 2", 60, &[
            ethernet(), ipv4().with("time_to_live", 1),
            header("igmpv2", &[("type", 0x16), ("max_response_time", 50), ("group_address", v4("239.1.2.3"))]),
        ], &[
            ("2.type", "igmp.type", 1), ("2.max_response_time", "igmp.max_resp", 1),
            ("2.checksum", "igmp.checksum", 1), ("2.group_address", "igmp.maddr", 1),
        ]),
        closed("igmp version 3 query", 70, &[
            ethernet(), ipv4().with("time_to_live", 1).has("router_alert", &[]),
            header("igmpv3_query", &[
                ("max_response_code", 33), ("group_address", v4("239.1.2.3")),
                ("suppress_router_processing", 1), ("querier_robustness", 5),
                ("query_interval_code", 77),
            ])
                .has("source", &[("value", v4("1.1.1.1"))]).has("source", &[("value", v4("2.2.2.2"))]),
        ], &[
            ("2.type", "igmp.type", 1), ("2.max_response_code", "igmp.max_resp", 1),
            ("2.group_address", "igmp.maddr", 1), ("2.suppress_router_processing", "igmp.s", 1),
            ("2.querier_robustness", "igmp.qrv", 1), ("2.query_interval_code", "igmp.qqic", 1),
            ("2.number_of_sources", "igmp.num_src", 1), ("2.sources.0.value", "igmp.saddr#0", 1),
            ("2.sources.1.value", "igmp.saddr#1", 1),
        ]),
        closed("igmp version 3 report", 90, &[
            ethernet(), ipv4().with("time_to_live", 1),
            header("igmpv3_report", &[])
                .has("group_record", &[("type", 3), ("group_address", v4("239.1.2.3"))])
                .with_nested_item("source", &[("value", v4("1.1.1.1"))])
                .with_item_bytes("custom", &[], "bytes", &[4, 0, 0, 0, 239, 9, 9, 9]),
        ], &[
            ("2.type", "igmp.type", 1), ("2.number_of_records", "igmp.num_grp_recs", 1),
            ("2.records.0.type", "igmp.record_type#0", 1),
            ("2.records.0.auxiliary_length", "igmp.aux_data_len#0", 1),
            ("2.records.0.number_of_sources", "igmp.num_src#0", 1),
            ("2.records.0.group_address", "igmp.maddr#0", 1),
            ("2.records.0.sources.0.value", "igmp.saddr", 1),
        ]),
        case("sctp data", 98, &[
            ethernet(), ipv4(),
            header("sctp", &[("src_port", 7007), ("dst_port", 7008), ("verification_tag", 0x0a0b_0c0d)]),
            header("sctp_data", &[
                ("transmission_sequence_number", 0x0102_0304), ("stream_identifier", 5),
                ("stream_sequence_number", 6), ("payload_protocol", 0), ("unordered", 0),
                ("immediate", 1),
            ]),
        ], &[
            ("1.protocol", "ip.proto", 1), ("2.src_port", "sctp.srcport", 1),
            ("2.dst_port", "sctp.dstport", 1), ("2.verification_tag", "sctp.verification_tag", 1),
            ("2.checksum", "sctp.checksum", 1), ("3.type", "sctp.chunk_type", 1),
            ("3.length", "sctp.chunk_length", 1),
            ("3.transmission_sequence_number", "sctp.data_tsn_raw", 1),
            ("3.stream_identifier", "sctp.data_sid", 1),
            ("3.stream_sequence_number", "sctp.data_ssn", 1),
            ("3.payload_protocol", "sctp.data_payload_proto_id", 1),
            ("3.immediate", "sctp.data_i_bit", 1), ("3.unordered", "sctp.data_u_bit", 1),
            ("3.beginning", "sctp.data_b_bit", 1), ("3.ending", "sctp.data_e_bit", 1),
        ]),
        closed("sctp chunks", 14 + 40 + 12 + 12 + 4, &[
            ethernet(), ipv6(),
            header("sctp", &[("src_port", 7007), ("dst_port", 7008)])
                .with_item_bytes("chunk", &[("type", 10)], "value", &[0, 1, 0, 5, 9])
                .with_item_bytes("chunk", &[("type", 11), ("flags", 0)], "value", &[]),
        ], &[
            ("1.next_header", "ipv6.nxt", 1), ("2.chunks.0.type", "sctp.chunk_type#0", 1),
            ("2.chunks.0.length", "sctp.chunk_length#0", 1),
            ("2.chunks.1.type", "sctp.chunk_type#1", 1),
            ("2.chunks.1.length", "sctp.chunk_length#1", 1),
        ]),
        case("gre with all options", 110, &[
            ethernet(), ipv4(),
            header("gre", &[("key", 0x0102_0304), ("sequence_number", 0x0506_0708)])
                .with("checksum", Value::Auto),
            ipv6(), udp(),
        ], &[
            ("1.protocol", "ip.proto", 1), ("2.checksum_present", "gre.flags.checksum", 1),
            ("2.key_present", "gre.flags.key", 1), ("2.version", "gre.flags.version", 1),
            ("2.sequence_present", "gre.flags.sequence_number", 1),
            ("2.protocol", "gre.proto", 1), ("2.checksum", "gre.checksum", 1),
            ("2.key", "gre.key", 1), ("2.sequence_number", "gre.sequence_number", 1),
            ("3.dst", "ipv6.dst", 1), ("4.length", "udp.length", 1),
        ]),
        case("ethernet in gre", 110, &[
            ethernet(), ipv6(), header("gre", &[("key", 9)]), ethernet(), ipv4(), udp(),
        ], &[
            ("2.protocol", "gre.proto", 1), ("2.checksum_present", "gre.flags.checksum", 1),
            ("2.key", "gre.key", 1), ("3.ether_type", "eth.type#1", 1), ("4.src", "ip.src", 1),
        ]),
        case("vxlan", 140, &[
            ethernet(), ipv4(), header("udp", &[("src_port", 7009)]),
            header("vxlan", &[("vni", 0x123456)]), ethernet(), ipv4(), udp(),
        ], &[
            ("2.dst_port", "udp.dstport#0", 1), ("2.length", "udp.length#0", 1),
            ("2.checksum", "udp.checksum#0", 1), ("3.vni", "vxlan.vni", 1),
            ("3.flags", "vxlan.flags", 256), ("4.ether_type", "eth.type#1", 1),
            ("5.total_length", "ip.len#1", 1), ("6.length", "udp.length#1", 1),
            ("6.checksum", "udp.checksum#1", 1),
        ]),
        case("gtp-u", 110, &[
            ethernet(), ipv4(), header("udp", &[("src_port", 2152)]),
            header("gtpv1", &[("teid", 0x0a0b_0c0d)]), ipv4(), udp(),
        ], &[
            ("2.dst_port", "udp.dstport#0", 1), ("3.version", "gtp.flags.version", 1),
            ("3.message_type", "gtp.message", 1), ("3.message_length", "gtp.length", 1),
            ("3.teid", "gtp.teid", 1), ("3.e_flag", "gtp.flags.e", 1), ("5.length", "udp.length#1", 1),
        ]),
        case("gtp-u with optional fields", 130, &[
            ethernet(), ipv6(), header("udp", &[("src_port", 2152)]),
            header("gtpv1", &[
                ("teid", 1), ("sequence_number", 0x1122), ("next_extension_header_type", 0x85),
            ])
                .with_item_bytes("extension_header", &[], "contents", &[0x10, 9, 0]),
            ipv4(), udp(),
        ], &[
            ("3.message_length", "gtp.length", 1), ("3.e_flag", "gtp.flags.e", 1),
            ("3.protocol_type", "gtp.flags.payload", 1),
            ("3.s_flag", "gtp.flags.s", 1), ("3.pn_flag", "gtp.flags.pn", 1),
            ("3.sequence_number", "gtp.seq_number", 1),
            ("3.next_extension_header_type", "gtp.ext_hdr.next#0", 1),
            ("3.extension_headers.0.extension_length", "gtp.ext_hdr.length", 1),
            ("4.total_length", "ip.len", 1),
        ]),
        case("pppoe session", 90, &[
            ethernet(), header("pppoe", &[("session_id", 0x1234)]), header("ppp", &[]), ipv6(), udp(),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.version", "pppoe.version", 1),
            ("1.type", "pppoe.type", 1), ("1.code", "pppoe.code", 1),
            ("1.session_id", "pppoe.session_id", 1), ("1.length", "pppoe.payload_length", 1),
            ("2.protocol_type", "ppp.protocol", 1), ("3.payload_length", "ipv6.plen", 1),
        ]),
        closed("pppoe discovery", 60, &[
            ethernet(),
            header("pppoe_discovery", &[])
                .has("tag", &[]).with_item_bytes("tag", &[("type", 0x0103)], "value", b"host"),
        ], &[
            ("0.ether_type", "eth.type", 1), ("1.code", "pppoe.code", 1),
            ("1.length", "pppoe.payload_length", 1),
            // tshark only finds it if type and length of both tags are correct.
            ("1.tags.1.value", "pppoed.tags.host_uniq", 1),
        ]),
        case("framed ppp in gre", 100, &[
            ethernet(), ipv4(), header("gre", &[("protocol", 0x880b)]).with("sequence_number", 7),
            header("ppp", &[("address", 0xff)]), ipv4(), udp(),
        ], &[
            ("2.protocol", "gre.proto", 1), ("2.sequence_number", "gre.sequence_number", 1),
            ("3.address", "ppp.address", 1),
            ("3.control", "ppp.control", 1), ("3.protocol_type", "ppp.protocol", 1),
            ("4.total_length", "ip.len#1", 1),
        ]),
        case("extension headers", 230, &[
            ethernet(), ipv6(),
            header("ipv6_hop_by_hop", &[])
                .has("router_alert", &[("value", 3)]).has("pad1", &[]).with_item_bytes("padn", &[], "value", &[0; 3]),
            header("ipv6_destination_options", &[])
                .with_item_bytes("custom", &[("type", 0x1e)], "value", &[7; 5]),
            header("ipv6_routing", &[("tag", 0x1234)])
                .has("segment", &[("value", v6("2001:db8::2"))])
                .has("segment", &[("value", v6("2001:db8::3"))]),
            header("ipv6_fragment", &[("identification", 0x0102_0304)]),
            udp(),
        ], &[
            ("1.payload_length", "ipv6.plen", 1), ("1.next_header", "ipv6.nxt", 1),
            ("2.next_header", "ipv6.hopopts.nxt", 1), ("2.hdr_ext_len", "ipv6.hopopts.len", 1),
            ("2.options.0.type", "ipv6.opt.type#0", 1), ("2.options.0.length", "ipv6.opt.length#0", 1),
            ("2.options.0.value", "ipv6.opt.router_alert", 1),
            ("3.next_header", "ipv6.dstopts.nxt", 1), ("3.hdr_ext_len", "ipv6.dstopts.len", 1),
            ("4.next_header", "ipv6.routing.nxt", 1), ("4.hdr_ext_len", "ipv6.routing.len", 1),
            ("4.routing_type", "ipv6.routing.type", 1), ("4.segments_left", "ipv6.routing.segleft", 1),
            ("4.last_entry", "ipv6.routing.srh.last_entry", 1),
            ("4.flags", "ipv6.routing.srh.flags", 1), ("4.tag", "ipv6.routing.srh.tag", 1),
            ("4.segments.0.value", "ipv6.routing.srh.addr#0", 1),
            ("4.segments.1.value", "ipv6.routing.srh.addr#1", 1),
            ("5.next_header", "ipv6.fraghdr.nxt", 1), ("5.fragment_offset", "ipv6.fraghdr.offset", 1),
            ("5.more_fragments", "ipv6.fraghdr.more", 1),
            ("5.identification", "ipv6.fraghdr.ident", 1), ("6.dst_port", "udp.dstport", 1),
        ]),
        case("ipv6 fragment", 100, &[
            ethernet(), ipv6(),
            header("ipv6_fragment", &[
                ("fragment_offset", 0x123), ("more_fragments", 1), ("identification", 5),
                ("next_header", 17),
            ]),
        ], &[
            ("1.next_header", "ipv6.nxt", 1), ("2.fragment_offset", "ipv6.fraghdr.offset", 1),
            ("2.more_fragments", "ipv6.fraghdr.more", 1), ("2.next_header", "ipv6.fraghdr.nxt", 1),
        ]),
        case("segments before an inner packet", 160, &[
            ethernet(), ipv6(),
            header("ipv6_routing", &[("segments_left", 1)])
                .has("segment", &[("value", v6("2001:db8::9"))]).has("segment", &[("value", v6("2001:db8::2"))]),
            ipv4(), udp(),
        ], &[
            ("2.segments_left", "ipv6.routing.segleft", 1), ("2.next_header", "ipv6.routing.nxt", 1),
            ("3.src", "ip.src", 1), ("4.checksum", "udp.checksum", 1),
        ]),
        case("any bytes", 60, &[
            ethernet().with("ether_type", 0x0800),
            header("custom", &[]).with("bytes", {
                assemble(&[ipv4(), udp()], &Payload::text("any"), 46).unwrap().frame
            }),
        ], &[("0.ether_type", "eth.type", 1)]),
    ]
}

/// Returns tshark's rows for the frames, with all checksums verified.
fn dissect(frames: &[Vec<u8>], fields: &[String]) -> Vec<Vec<Vec<String>>> {
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("frames.pcap");
    let mut writer = Writer::new(File::create(&path).unwrap(), Resolution::Nanoseconds).unwrap();
    for (index, frame) in frames.iter().enumerate() {
        writer.write(index as u64 * 1_000_000_000, frame).unwrap();
    }
    writer.finish().unwrap();
    let rows = tshark(&path, fields);
    assert_eq!(rows.len(), frames.len());
    rows
}

fn tshark(path: &Path, fields: &[String]) -> Vec<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path);
    for option in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "sctp.checksum:CRC 32c",
        "ip.defragment:FALSE",
        "ipv6.defragment:FALSE",
        "tcp.relative_sequence_numbers:FALSE",
        "gtp.dissect_tpdu_as:TPDU Heuristic",
    ] {
        command.args(["-o", option]);
    }
    command.args([
        "-T",
        "fields",
        "-E",
        "separator=/t",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=;",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let split =
        |text: &str| text.split(';').filter(|one| !one.is_empty()).map(str::to_owned).collect();
    let rows = String::from_utf8(output.stdout).unwrap();
    rows.lines().map(|line| line.split('\t').map(split).collect()).collect()
}

/// Parses a number as tshark prints it.
fn number(text: &str) -> Option<u128> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(u32::from(address).into());
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(address.into());
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u128::from_str_radix(hex, 16).ok();
    }
    match text {
        "True" | "Set" => Some(1),
        "False" | "Not set" => Some(0),
        _ if text.contains(':') => u128::from_str_radix(&text.replace(':', ""), 16).ok(),
        _ => text.parse().ok(),
    }
}

/// Fields that tshark prints only as hexadecimal digits.
const BYTES: [&str; 2] = ["ipv6.routing.srh.tag", "pppoed.tags.host_uniq"];

/// Status fields of the checksums that tshark verifies, with the headers that have them.
const STATUS: [(&str, &[&str]); 9] = [
    ("ip.checksum.status", &["ipv4"]),
    ("udp.checksum.status", &["udp"]),
    ("tcp.checksum.status", &["tcp"]),
    ("icmp.checksum.status", &["icmp"]),
    (
        "icmpv6.checksum.status",
        &[
            "icmpv6",
            "icmpv6_router_solicitation",
            "icmpv6_router_advertisement",
            "icmpv6_neighbor_solicitation",
            "icmpv6_neighbor_advertisement",
            "icmpv6_redirect",
        ],
    ),
    ("igmp.checksum.status", &["igmpv1", "igmpv2", "igmpv3_query", "igmpv3_report"]),
    ("sctp.checksum.status", &["sctp"]),
    ("gre.checksum.status", &[]),
    ("_ws.malformed", &[]),
];

const GOOD: &str = "1";
const BAD: &str = "0";

#[test]
fn every_field_has_the_value_that_tshark_reports() {
    if !require_tool("tshark") {
        return;
    }
    let cases = cases();
    let assembled: Vec<_> = cases.iter().map(Case::assemble).collect();
    let frames: Vec<_> = assembled.iter().map(|one| one.frame.clone()).collect();
    let names: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| &case.fields)
        .map(|(_, name, _)| name.split('#').next().unwrap())
        .collect();
    let fields: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let rows = dissect(&frames, &fields);
    let mut wrong = Vec::new();
    for ((case, assembled), row) in cases.iter().zip(&assembled).zip(&rows) {
        for (path, name, factor) in &case.fields {
            let (index, field) = path.split_once('.').unwrap();
            let place = assembled.place(index.parse().unwrap(), field).unwrap();
            let expected = place.read(&assembled.frame).unwrap() * factor;
            let (name, occurrence) = name.split_once('#').unwrap_or((name, "0"));
            let column = fields.iter().position(|field| field == name).unwrap();
            let shown = row[column].get(occurrence.parse::<usize>().unwrap());
            let found = shown.and_then(|shown| match BYTES.contains(&name) {
                true => u128::from_str_radix(&shown.replace(':', ""), 16).ok(),
                false => number(shown),
            });
            if found != Some(expected) {
                wrong.push(format!(
                    "{}: {path} is {expected:#x}, {name} {:?}",
                    case.name, row[column]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn checksums_are_valid_and_no_frame_is_malformed() {
    if !require_tool("tshark") {
        return;
    }
    let cases = cases();
    let frames: Vec<_> = cases.iter().map(|case| case.assemble().frame).collect();
    let mut fields: Vec<String> = STATUS.iter().map(|(field, _)| (*field).to_owned()).collect();
    fields.extend(["frame.protocols".to_owned(), "_ws.expert.message".to_owned()]);
    let rows = dissect(&frames, &fields);
    let mut wrong = Vec::new();
    for (case, row) in cases.iter().zip(&rows) {
        for ((field, layouts), found) in STATUS.iter().zip(row) {
            let mut count: usize = layouts.iter().map(|name| case.with_item(name)).sum();
            match (case.name, *field) {
                ("any bytes", "ip.checksum.status") => count = 1,
                ("any bytes", "udp.checksum.status") => count = 1,
                ("gre with all options", "gre.checksum.status") => count = 1,
                _ => {}
            }
            if *found != vec![GOOD; count] {
                let (protocols, words) = (&row[STATUS.len()], &row[STATUS.len() + 1]);
                wrong.push(format!("{}: {field} {found:?} {protocols:?} {words:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_checksum_leaves_the_others_valid() {
    if !require_tool("tshark") {
        return;
    }
    let mut bad = Vec::new();
    for case in cases() {
        // An outer checksum that covers a bad inner one must still be correct.
        for index in 0..case.headers.len() {
            let Some(status) = STATUS
                .iter()
                .position(|(_, names)| names.contains(&case.headers[index].layout.name))
            else {
                continue;
            };
            let name = case.headers[index].layout.name;
            let field = if name == "ipv4" { "header_checksum" } else { "checksum" };
            let mut headers = case.headers.clone();
            headers[index] = headers[index].clone().with(field, Value::WrongChecksum);
            let frame = assemble(&headers, &case.payload, case.length).unwrap().frame;
            let before = case.headers[..index].iter();
            let names = STATUS[status].1;
            let occurrence = before.filter(|header| names.contains(&header.layout.name)).count();
            bad.push((format!("{} header {index}", case.name), status, occurrence, frame));
        }
    }
    assert!(bad.len() > 40);
    let fields: Vec<String> = STATUS.iter().map(|(field, _)| (*field).to_owned()).collect();
    let frames: Vec<_> = bad.iter().map(|(.., frame)| frame.clone()).collect();
    let rows = dissect(&frames, &fields);
    for ((name, status, occurrence, _), row) in bad.iter().zip(&rows) {
        for (column, found) in row.iter().enumerate().filter(|(column, _)| *column < 8) {
            for (number, found) in found.iter().enumerate() {
                let is_bad = (column, number) == (*status, *occurrence);
                let expected = if is_bad { BAD } else { GOOD };
                assert_eq!(found, expected, "{name}: {} #{number}", fields[column]);
            }
        }
        assert!(row[*status].len() > *occurrence, "{name}: not verified");
    }
}

#[test]
fn every_layout_has_a_case() {
    let mut seen = BTreeSet::new();
    let mut every = BTreeSet::new();
    let mut headers: Vec<Header> = cases().into_iter().flat_map(|case| case.headers).collect();
    while let Some(header) = headers.pop() {
        seen.insert(header.layout.description);
        headers.extend(header.items);
    }
    let mut layouts = layout::all().to_vec();
    while let Some(layout) = layouts.pop() {
        every.insert(layout.description);
        layouts.extend(layout.items.layouts);
    }
    // tshark reads a jumbo payload only in packets of more than 65,535 bytes.
    every.remove("Jumbo payload, RFC 2675 section 2");
    assert_eq!(every.difference(&seen).collect::<Vec<_>>(), Vec::<&&str>::new());
}
