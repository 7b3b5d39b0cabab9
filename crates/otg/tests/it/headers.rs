//! All packet headers, with tshark as the reference.

use std::fs::File;

use wirestorm_testkit::pcap::{Resolution, Writer};
use wirestorm_testkit::require::require_tool;
use wirestorm_testkit::{Scratch, tshark};
use wirestorm_wire::checksum;

use crate::support::{
    bytes, errors, fixture, frames, frames_of, lowered, number, packet_frames, with_flow,
};

#[test]
fn a_macsec_header_is_an_error() {
    let config = with_flow(r#"[{"ethernet": {}}, {"macsec": {}}]"#, "");
    assert_eq!(errors(&config), ["flows[0].packet[1].macsec: not supported"]);
}

#[test]
fn tshark_finds_the_headers_without_errors() {
    if !require_tool("tshark") {
        return;
    }
    let config = fixture("all_headers");
    let lowered = lowered(&config);
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("headers.pcap");
    let mut writer = Writer::new(File::create(&path).unwrap(), Resolution::Nanoseconds).unwrap();
    for flow in &lowered.plan.flows {
        writer.write(0, &frames(&flow.stream, 1)[0]).unwrap();
    }
    writer.finish().unwrap();
    let rows = tshark::fields(&path, "", &["frame.protocols", "_ws.malformed"]).unwrap();
    let expected = [
        ("arp", "eth:ethertype:arp"),
        ("icmp", "eth:ethertype:ip:icmp"),
        ("icmpv6", "eth:ethertype:ipv6:icmpv6"),
        ("vxlan", "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:tcp"),
        ("gre", "eth:ethertype:ip:gre:ip:udp"),
        ("mpls", "eth:ethertype:mpls:ip:udp"),
        ("gtpv1", "eth:ethertype:ip:udp:gtp"),
        ("gtpv2", "eth:ethertype:ip:udp:gtp:gtpv2"),
        ("ppp", "eth:ethertype"),
        ("igmpv1", "eth:ethertype:ip:igmp"),
        ("pfcpause", "eth:ethertype:macc"),
        ("ethernetpause", "eth:ethertype:macc"),
        ("lacp", "eth:ethertype:slow:lacp"),
        ("rsvp", "eth:ethertype:ip:rsvp"),
        ("snmpv2c", "eth:ethertype:ip:udp:snmp"),
        ("cfm", "eth:ethertype:cfm"),
        ("custom", "eth:ethertype"),
    ];
    assert_eq!(rows.len(), expected.len());
    for ((flow, row), (name, protocols)) in config.flows.iter().zip(&rows).zip(expected) {
        assert_eq!(flow.name(), name);
        assert!(row[0].starts_with(protocols), "{name}: {}", row[0]);
        assert_eq!(row.get(1).map_or("", String::as_str), "", "{name}");
    }
    let wrong = "ip.checksum.status == 0 || udp.checksum.status == 0 || tcp.checksum.status == 0 \
                 || icmp.checksum.status == 0 || icmpv6.checksum.status == 0";
    assert_eq!(tshark::count(&path, wrong).unwrap(), 0);
}

#[test]
fn tcp_has_the_length_of_its_header() {
    let packet = r#"[{"ethernet": {}}, {"ipv4": {}}, {"tcp": {"ctl_syn": {"value": 1}}}]"#;
    let frame = &packet_frames(packet, 1)[0];
    assert_eq!(frame[46..48], [0x50, 0x02]);
    assert_eq!((frame[22], frame[23]), (64, 6));
}

#[test]
fn checksums_are_good_bad_or_given() {
    let checksum = |pattern: &str| {
        let packet =
            format!(r#"[{{"ethernet": {{}}}}, {{"ipv4": {{"header_checksum": {pattern}}}}}]"#);
        number(&packet_frames(&packet, 1)[0][24..26])
    };
    let good = checksum(r#"{"choice": "generated", "generated": "good"}"#);
    assert_eq!(checksum("{}"), good);
    assert_ne!(checksum(r#"{"generated": "bad"}"#), good);
    assert_eq!(checksum(r#"{"custom": 4660}"#), 4660);
}

#[test]
fn priorities_have_three_forms() {
    let priority = |priority: &str| {
        let packet = format!(r#"[{{"ethernet": {{}}}}, {{"ipv4": {{"priority": {priority}}}}}]"#);
        packet_frames(&packet, 1)[0][15]
    };
    assert_eq!(priority(r#"{"raw": {"value": 77}}"#), 77);
    assert_eq!(priority(r#"{"dscp": {"phb": {"value": 46}, "ecn": {"value": 1}}}"#), 46 << 2 | 1);
    assert_eq!(priority(r#"{"tos": {"precedence": {"value": 5}, "delay": {"value": 1}}}"#), 0xb0);
}

#[test]
fn ipv4_options_lengthen_the_header() {
    let packet = r#"[{"ethernet": {}}, {"ipv4": {"options": [{"choice": "router_alert"},
        {"custom": {"type": {"copied_flag": {"value": 1}, "option_number": {"value": 3}},
            "value": "abcd"}},
        {"timestamp": {"format": {"timestamps": [{"timestamp": {"value": 7}}]}}},
        {"choice": "end_of_options"}]}}]"#;
    let frame = &packet_frames(packet, 1)[0];
    assert_eq!(frame[14], 0x4a);
    assert_eq!(frame[34..54], bytes("94040000 8304abcd 44080500 00000007 00000000"));
}

#[test]
fn the_tag_protocol_is_that_of_the_tag() {
    let types = |packet: &str| {
        let frame = &packet_frames(packet, 1)[0];
        (number(&frame[12..14]), number(&frame[16..18]))
    };
    let tag = |tpid: u32| format!(r#"{{"vlan": {{"tpid": {{"value": {tpid}}}}}}}"#);
    let plain =
        |tpid| types(&format!(r#"[{{"ethernet": {{}}}}, {}, {{"ipv4": {{}}}}]"#, tag(tpid)));
    assert_eq!(plain(0x88a8), (0x88a8, 0x0800));
    assert_eq!(plain(0xffff), (0x8100, 0x0800));
    let given = r#"{"ethernet": {"ether_type": {"value": 33024}}}"#;
    assert_eq!(types(&format!("[{given}, {}, {{\"ipv4\": {{}}}}]", tag(0x8100))), (0x8100, 0x0800));
    // The type of an unknown protocol behind the tag.
    assert_eq!(types(&format!("[{given}, {}]", tag(0x6007))), (0x8100, 0x6007));
    let config = with_flow(&format!("[{given}, {}, {{\"ipv4\": {{}}}}]", tag(0x88a8)), "");
    assert_eq!(
        errors(&config),
        ["flows[0].packet[1].vlan.tpid: found 34984, but ether_type of the header before it is \
          33024"]
    );
}

#[test]
fn gre_has_a_checksum_if_the_bit_is_set() {
    let gre = |fields: &str| {
        let packet = format!(
            r#"[{{"ethernet": {{}}}}, {{"ipv4": {{}}}}, {{"gre": {fields}}}, {{"ipv4": {{}}}}]"#
        );
        packet_frames(&packet, 1)[0][34..46].to_vec()
    };
    assert_eq!(gre("{}")[..5], bytes("0000080045"));
    assert_eq!(gre(r#"{"checksum": {"generated": "good"}}"#)[..5], bytes("0000080045"));
    let with = gre(r#"{"checksum_present": {"value": 1}, "reserved1": {"value": 9}}"#);
    assert_eq!(with[..4], bytes("80000800"));
    assert_eq!(with[6..9], bytes("000945"));
}

#[test]
fn a_bottom_of_stack_is_the_last_label() {
    let packet = r#"[{"ethernet": {}}, {"mpls": {"label": {"increment": {"start": 100, "step": 1,
        "count": 2}}}}, {"mpls": {"bottom_of_stack": {"choice": "auto"}}}, {"ipv6": {}}]"#;
    let sent = packet_frames(packet, 3);
    assert_eq!(sent[0][14..22], bytes("00064040 00010140"));
    assert_eq!(sent[1][14..18], bytes("00065040"));
    assert_eq!(sent[2][14..18], sent[0][14..18]);
}

#[test]
fn pause_frames_are_whole_frames() {
    let packet = r#"[{"pfcpause": {"src": {"value": "02:00:00:00:00:01"}, "class_enable_vector":
        {"value": 3}, "pause_class_1": {"values": [1, 65535]}}}]"#;
    let sent = packet_frames(packet, 2);
    assert_eq!(sent[0][..22], bytes("0180c2000001 020000000001 8808 0101 0003 0000 0001"));
    assert_eq!(sent[1][20..22], [0xff, 0xff]);
}

#[test]
fn lacp_states_start_with_the_lowest_bit() {
    let packet = r#"[{"ethernet": {}}, {"lacp": {"lacpdu": {"actor": {"actor_state": {"activity":
        {"value": 1}, "aggregation": {"values": [1, 0]}}, "key": {"value": 258}}}}}]"#;
    let sent = frames_of(&with_flow(packet, r#", "size": {"fixed": 128}"#), 2);
    assert_eq!(sent[0][12..18], bytes("8809 01 01 01 14"));
    // Type, length, priority, system, key, port priority, port number: then the state.
    assert_eq!(number(&sent[0][26..28]), 258);
    assert_eq!((sent[0][32], sent[1][32]), (0b101, 0b001));
    // Partner, collector.
    assert_eq!(sent[0][36..38], bytes("0214"));
    assert_eq!(sent[0][56..58], bytes("0310"));
}

#[test]
fn gtpv2_has_a_length_and_an_optional_endpoint() {
    let packet = |flag: u32| {
        format!(
            r#"[{{"ethernet": {{}}}}, {{"ipv4": {{}}}}, {{"udp": {{}}}}, {{"gtpv2": {{"teid_flag":
                {{"value": {flag}}}, "teid": {{"value": 7}}, "sequence_number": {{"value": 5}}}}}}]"#
        )
    };
    let sizes = r#", "size": {"increment": {"start": 100, "end": 101}}"#;
    for flag in [0, 1] {
        let config = with_flow(&packet(flag), sizes);
        for frame in frames(&lowered(&config).plan.flows[0].stream, 2) {
            assert_eq!(number(&frame[36..38]), 2123);
            assert_eq!(number(&frame[44..46]) as usize, frame.len() - 46);
            let sequence = if flag == 1 { 50 } else { 46 };
            assert_eq!(number(&frame[sequence..sequence + 3]), 5);
        }
    }
}

#[test]
fn gtpv1_has_extension_headers() {
    let packet = r#"[{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}, {"gtpv1": {"message_type":
        {"value": 255}, "e_flag": {"value": 1}, "next_extension_header_type": {"value": 133},
        "extension_headers": [{"extension_length": {"value": 2}, "contents": {"value": 258}}]}},
        {"ipv4": {}}]"#;
    let frame = &packet_frames(packet, 1)[0];
    assert_eq!(frame[42..44], bytes("34ff"));
    assert_eq!(frame[50..62], bytes("00000085 02 000000000102 00"));
    assert_eq!(frame[62], 0x45);
}

#[test]
fn a_segment_routing_header_has_its_segments() {
    let packet = r#"[{"ethernet": {}}, {"ipv6": {}}, {"ipv6_extension_header": {"routing":
        {"segment_routing": {"flags": {"oam": {"value": 1}}, "segment_list": [{"segment": {"value": "2001:db8::1"}},
            {"segment": {"values": ["2001:db8::2", "2001:db8::3"]}}]}}}}, {"udp": {}}]"#;
    let sent = packet_frames(packet, 2);
    assert_eq!(sent[0][20], 43);
    assert_eq!(sent[0][54..62], bytes("11 04 04 00 01 20 0000"));
    assert_eq!((sent[0][93], sent[1][93]), (2, 3));
}

/// Returns the values of fields that tshark finds in the first frames of a packet.
fn dissect(packet: &str, count: u64, fields: &[&str]) -> Vec<Vec<String>> {
    let scratch = Scratch::new().unwrap();
    let path = scratch.file("frames.pcap");
    let mut writer = Writer::new(File::create(&path).unwrap(), Resolution::Nanoseconds).unwrap();
    let config = with_flow(packet, r#", "size": {"fixed": 512}"#);
    for frame in frames_of(&config, count) {
        writer.write(0, &frame).unwrap();
    }
    writer.finish().unwrap();
    let rows = tshark::fields(&path, "", &[&["_ws.malformed"], fields].concat()).unwrap();
    assert!(rows.iter().all(|row| row[0].is_empty()), "{rows:?}");
    rows.into_iter().map(|row| row[1..].to_vec()).collect()
}

#[test]
fn snmp_values_are_those_that_tshark_reads() {
    if !require_tool("tshark") {
        return;
    }
    let packet = r#"[{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}, {"snmpv2c": {"community": "pub",
        "data": {"choice": "response", "response": {"request_id": {"increment": {"start": 9,
        "step": 1, "count": 3}}, "error_status": "bad_value", "variable_bindings": [
        {"object_identifier": "1.3.6.1.2.1.1.1.0", "value": {"string_value": {"ascii": "host"}}},
        {"object_identifier": "1.3.6.1.2.1.1.3.0", "value": {"timeticks_value": {"value": 300}}},
        {"object_identifier": "1.3.6.1.4.1.2680.1", "value": {"big_counter_value": {"value":
            5000000000}}},
        {"object_identifier": "1.3.6.1.4.1.2680.2", "value": {"ip_address_value": {"value":
            "192.0.2.7"}}}]}}}}]"#;
    let fields = [
        "snmp.community",
        "snmp.request_id",
        "snmp.error_status",
        "snmp.name",
        "snmp.value.timeticks",
        "snmp.value.counter",
        "snmp.value.ipv4",
    ];
    let rows = dissect(packet, 2, &fields);
    let names = "1.3.6.1.2.1.1.1.0,1.3.6.1.2.1.1.3.0,1.3.6.1.4.1.2680.1,1.3.6.1.4.1.2680.2";
    assert_eq!(rows[0], ["pub", "9", "3", names, "300", "5000000000", "192.0.2.7"]);
    assert_eq!(rows[1][1], "10");
}

#[test]
fn rsvp_objects_are_those_that_tshark_reads() {
    if !require_tool("tshark") {
        return;
    }
    let object = |name: &str, form: &str, fields: &str| {
        format!(r#"{{"class_num": {{"{name}": {{"c_type": {{"{form}": {fields}}}}}}}}}"#)
    };
    let objects = [
        object(
            "session",
            "lsp_tunnel_ipv4",
            r#"{"ipv4_tunnel_end_point_address": {"value": "192.0.2.1"}, "tunnel_id": {"values":
                [5, 6]}, "extended_tunnel_id": {"as_ipv4": {"value": "192.0.2.9"}}}"#,
        ),
        object("rsvp_hop", "ipv4", r#"{"ipv4_address": {"value": "192.0.2.2"}}"#),
        object("time_values", "type_1", r#"{"refresh_period_r": {"value": 1234}}"#),
        object(
            "explicit_route",
            "type_1",
            r#"{"subobjects": [{"type": {"ipv4_prefix": {"ipv4_address": {"value": "192.0.2.3"},
                "prefix": 24}}}, {"type": {"as_number": {"as_number": 77}}}]}"#,
        ),
        object("label_request", "without_label_range", "{}"),
        object("session_attribute", "lsp_tunnel", r#"{"session_name": "lsp-1"}"#),
        object("sender_template", "lsp_tunnel_ipv4", r#"{"lsp_id": {"value": 8}}"#),
        object("sender_tspec", "int_serv", r#"{"token_bucket_rate": 1000}"#),
    ];
    let packet = format!(
        r#"[{{"ethernet": {{}}}}, {{"ipv4": {{}}}}, {{"rsvp": {{"message_type": {{"path":
            {{"objects": [{}]}}}}}}}}]"#,
        objects.join(",")
    );
    let fields = [
        "rsvp.session.ip",
        "rsvp.session.tunnel_id",
        "rsvp.hop.neighbor_address_ipv4",
        "rsvp.refresh_interval",
        "rsvp.session_attribute.name",
        "rsvp.sender.lsp_id",
        "rsvp.tspec.token_bucket_rate",
        "rsvp.session_attribute.setup_priority",
    ];
    let rows = dissect(&packet, 2, &fields);
    assert_eq!(
        rows[0],
        ["192.0.2.1", "5", "192.0.2.2", "1234", "lsp-1", "8", "1000", "7"],
        "tshark"
    );
    assert_eq!(rows[1][1], "6");
    for frame in frames_of(&with_flow(&packet, r#", "size": {"fixed": 512}"#), 2) {
        let length = number(&frame[40..42]) as usize;
        assert_eq!(checksum::sum(&frame[34..34 + length]), 0xffff);
    }
}

#[test]
fn cfm_messages_are_those_that_tshark_reads() {
    if !require_tool("tshark") {
        return;
    }
    let packet = r#"[{"ethernet": {}}, {"cfm": {"md_level": 5, "op_code": {"ccm": {"flags": {"rdi":
        true, "ccm_interval": 3}, "sequence_number": {"values": [7, 8]},
        "ma_endpoint_identifier": {"value": 99}, "ethernet_oam_protocol": {"cfm": {"md_name":
        {"char_str": "domain"}, "short_ma_name": {"char_str": "net"}}}, "tlvs": [{"interface_status":
        {"status": "testing"}}, {"sender_id": {"chassis_id": {"interface_name": "eth0"}}}]}}}}]"#;
    let fields = [
        "cfm.md.level",
        "cfm.opcode",
        "cfm.flags.rdi",
        "cfm.flags.interval",
        "cfm.ccm.seq.num",
        "cfm.ccm.ma.ep.id",
        "cfm.maid.md.name.string",
        "cfm.maid.ma.name.string",
    ];
    let rows = dissect(packet, 2, &fields);
    assert_eq!(rows[0], ["5", "1", "1", "3", "7", "99", "domain", "net"]);
    assert_eq!(rows[1][4], "8");
    let loopback = r#"[{"ethernet": {}}, {"cfm": {"op_code": {"lbm": {"transaction_id": {"value":
        6}, "tlvs": [{"data": {"data": "abcdef"}}]}}}}]"#;
    let rows = dissect(loopback, 1, &["cfm.opcode", "cfm.lb.transaction.id"]);
    assert_eq!(rows[0], ["3", "6"]);
}
