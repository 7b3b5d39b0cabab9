//! Flows whose packet is a captured frame.

use wirestorm_model::assemble::{Header, Payload, Value, assemble};
use wirestorm_model::stream::{Step, Stream};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::{PlanErrors, TrafficPlan};
use wirestorm_wire::checksum;
use wirestorm_wire::layout;

/// Builds a frame of these headers with this length.
fn frame(names: &[&str], payload: &Payload, length: usize) -> Vec<u8> {
    let header = |name: &&str| Header::new(layout::find(name).expect("a layout"));
    let headers: Vec<_> = names.iter().map(header).collect();
    assemble(&headers, payload, length).expect("a frame").frame
}

const UDP: [&str; 3] = ["ethernet", "ipv4", "udp"];

fn udp() -> Vec<u8> {
    frame(&UDP, &Payload::text("as it was seen on the wire"), 80)
}

/// Reads the plan of a flow that sends this captured frame. `fields` goes into `capture`, `flow`
/// into the flow.
fn plan(captured: Vec<u8>, fields: &str, flow: &str) -> Result<TrafficPlan, String> {
    let text = format!(
        "ports: [{{name: a}}]\nflows:\n  - name: f\n    tx: a\n    packet: [{{capture: {{file: f.pcap{fields}}}}}]\n{flow}"
    );
    let load = |file: &str, number| {
        assert_eq!((file, number), ("f.pcap", 1));
        Ok(captured.clone())
    };
    TrafficPlan::parse_with(&text, load).map_err(|errors| errors.to_string())
}

fn stream(captured: Vec<u8>, fields: &str, flow: &str) -> Stream {
    let plan = plan(captured, fields, flow).unwrap_or_else(|errors| panic!("{errors}"));
    plan.streams(0, None, Multiplier::ONE).expect("streams").remove(0).1
}

fn error(fields: &str, flow: &str) -> String {
    plan(udp(), fields, flow).expect_err("an error")
}

/// Returns whether the checksums of the IPv4 and UDP headers are correct.
fn is_right(frame: &[u8]) -> bool {
    let length = u16::from_be_bytes([frame[16], frame[17]]);
    let packet = &frame[14..14 + usize::from(length)];
    let addresses = [12, 16].map(|at| *packet[at..].first_chunk().expect("an address"));
    let pseudo = checksum::pseudo_header_ipv4(addresses[0], addresses[1], 17, length - 20);
    checksum::sum(&packet[..20]) == 0xffff
        && checksum::combine(checksum::sum(&packet[20..]), pseudo) == 0xffff
}

#[test]
fn sends_the_captured_frame_unchanged() {
    let mut captured = udp();
    // Errors stay, such as a checksum that the network card was to fill in.
    captured[40] ^= 0x55;
    let stream = stream(captured.clone(), "", "");
    assert_eq!(stream.template, captured);
    assert!(stream.program.steps.is_empty());
}

#[test]
fn padding_a_short_frame_keeps_the_packet_length() {
    let captured = frame(&UDP, &Payload::text("four"), 46);
    let stream = stream(captured.clone(), ", fields: {ipv4.src: 10.0.0.9}", "");
    assert_eq!(stream.template.len(), 60);
    assert_eq!(stream.template[16..18], captured[16..18]);
    assert!(is_right(&stream.template));
}

#[test]
fn varying_fields_update_checksums() {
    let fields = ", fields: {ipv4.src: {increment: {start: 10.0.0.1, count: 3}}, udp.dst_port: {values: [7, 9], after: ipv4.src}, 'bytes[50..52]': {random: {}}}";
    let stream = stream(udp(), fields, "");
    assert!(is_right(&stream.template));
    assert_eq!(stream.template[26..30], [10, 0, 0, 1]);
    let mut values = Vec::new();
    for number in [0, 2, 3, 6] {
        let mut frame = stream.template.clone();
        for step in &stream.program.steps {
            if let Step::Write(write) = step {
                let variable = &stream.program.variables[write.variable];
                write.apply(variable.value(number, &stream.program.variables), &mut frame);
            }
        }
        values.push((frame[29], frame[37]));
        assert_eq!(frame[52..], udp()[52..]);
    }
    assert_eq!(values, [(1, 7), (3, 7), (1, 9), (1, 7)]);
    let sums = stream.program.steps.iter().filter(|step| matches!(step, Step::Checksum(_)));
    assert_eq!(sums.count(), 2, "of IPv4 and of UDP");
}

#[test]
fn constant_fields_change_the_template_and_nothing_else() {
    let stream = stream(udp(), ", fields: {ipv4.time_to_live: 7, udp.src_port: 1}", "");
    assert!(stream.program.steps.is_empty());
    assert!(is_right(&stream.template));
    let differing: Vec<_> = (0..80).filter(|&at| stream.template[at] != udp()[at]).collect();
    assert!(differing.iter().all(|at| [22, 24, 25, 35, 40, 41].contains(at)), "{differing:?}");
}

#[test]
fn checksums_can_be_absent_wrong_or_repaired() {
    let mut captured = udp();
    captured[40..42].fill(0);
    let absent = stream(captured.clone(), ", fields: {udp.dst_port: 9}", "");
    assert_eq!(absent.template[40..42], [0, 0], "RFC 768: none");
    let wrong =
        stream(udp(), ", fields: {udp.checksum: bad, ipv4.src: {increment: {count: 9}}}", "");
    let is_wrong = |step: &Step| matches!(step, Step::WrongChecksum(_));
    assert!(wrong.program.steps.iter().any(is_wrong) && !is_right(&wrong.template));
    captured[40..42].fill(0x55);
    assert!(!is_right(&captured));
    assert!(is_right(&stream(captured.clone(), ", fields: {udp.checksum: auto}", "").template));
    let packet =
        stream(captured, ", fields: {udp.checksum: 7, ipv4.src: {increment: {count: 9}}}", "");
    assert_eq!(packet.template[40..42], [0, 7]);
    assert!(!packet.program.steps.iter().any(|step| step.target().start == 40));
}

#[test]
fn repairing_a_checksum_repairs_the_outer_checksum() {
    let names = ["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"];
    let right = frame(&names, &Payload::Zeros, 120);
    let mut captured = right.clone();
    captured[90..92].fill(0x55);
    let fields = ", fields: {'udp[1].checksum': auto, udp.checksum: auto}";
    assert_eq!(stream(captured, fields, "").template, right);
}

#[test]
fn a_new_size_changes_the_packet_length() {
    let short = frame(&UDP, &Payload::Padding, 60);
    for (flow, length) in
        [("    size: 132\n", 128), ("    size: 64\n", 60), ("    size: {ip: 64}\n", 78)]
    {
        for captured in [short.clone(), udp()] {
            let stream = stream(captured, "", flow);
            assert_eq!(stream.template.len(), length, "{flow}");
            let [high, low] = ((length - 14) as u16).to_be_bytes();
            assert_eq!(stream.template[16..18], [high, low]);
            assert!(is_right(&stream.template), "{flow}");
        }
    }
    let varied = stream(udp(), "", "    size: imix\n");
    assert_eq!(varied.template.len(), 1514);
    assert!(matches!(varied.program.steps[0], Step::Length { variable: 0 }));
    let lengths = varied.program.steps.iter().filter(|it| matches!(it, Step::WriteLength { .. }));
    assert_eq!(lengths.count(), 2);
}

#[test]
fn measured_frames_append_the_signature() {
    let stream = stream(udp(), "", "    metrics: {enable: true}\n");
    assert_eq!(stream.template.len(), 98);
    assert_eq!(stream.template[42..80], udp()[42..80]);
    assert_eq!(stream.template[80..], [0; 18]);
    assert!(stream.is_measured && is_right(&stream.template));
}

#[test]
fn every_error_has_its_path() {
    let cases = [
        (", number: 0", "", "number: found 0, expected a whole number from 1"),
        (", colour: red", "", "colour: found an unknown field"),
        (
            ", fields: {ipv6.src: 1}",
            "",
            "fields.ipv6.src: found no such header in the frame, expected a field of ethernet, ipv4, udp, or bytes",
        ),
        (", fields: {'ipv4[1].src': 1}", "", "fields.ipv4[1].src: found no such header"),
        (", fields: {ipv4.srcc: 1}", "", "fields.ipv4.srcc: found an unknown field, expected src?"),
        (
            ", fields: {ipv4.src: 1.2.3}",
            "",
            "fields.ipv4.src: found \"1.2.3\", expected an IPv4 address",
        ),
        (
            ", fields: {'bytes[70..90]': 1}",
            "",
            "fields.bytes[70..90]: found bytes[70..90], expected bytes[FIRST..END], at most 16 of the frame's 80, from 0",
        ),
        (", fields: {'bytes[9..9]': 1}", "", "fields.bytes[9..9]: found bytes[9..9]"),
        (", fields: {'bytes[0..17]': 1}", "", "fields.bytes[0..17]: found"),
        (
            ", fields: {ipv4.src: 1, 'bytes[28..30]': 1}",
            "",
            "fields.ipv4.src: overlaps a field that already has a value",
        ),
        (", fields: {ipv4.src: auto}", "", "fields.ipv4.src: found \"auto\", expected a value"),
        (
            ", fields: {ipv4.src: {increment: {count: 2}, after: udp.src_port}}",
            "",
            "fields.ipv4.src.after: found \"udp.src_port\", expected a field that varies",
        ),
        (
            "",
            "    size: 50\n    metrics: {}\n",
            ": its headers and a signature need a frame of 64 bytes with FCS",
        ),
        (
            "",
            "    size: {ip: 65535}\n",
            ": its headers need a frame of 46 bytes with FCS, at most 65539, and the size is 65553",
        ),
    ];
    for (fields, flow, expected) in cases {
        let found = error(fields, flow);
        let path = "flows[0].packet[0].capture";
        let separator = if expected.starts_with(':') { "" } else { "." };
        let expected = format!("{path}{separator}{expected}");
        assert!(found.starts_with(&expected), "{fields} {flow}\n  {found}\n  {expected}");
    }
    let short = plan(vec![1; 13], "", "").unwrap_err();
    assert!(
        short.contains("capture.file: found 13 bytes in packet 1, expected a frame of 14"),
        "{short}"
    );
    let several =
        "ports: [{name: a}]\nflows: [{name: f, tx: a, packet: [{capture: {file: f}}, {ipv4: }]}]";
    let message = |outcome: Result<TrafficPlan, PlanErrors>| outcome.unwrap_err().to_string();
    let found = message(TrafficPlan::parse_with(several, |_, _| Ok(udp())));
    assert!(
        found.starts_with("flows[0].packet[0].capture: found a capture among headers"),
        "{found}"
    );
    let one = several.replace(", {ipv4: }", "");
    let found = message(TrafficPlan::parse_with(&one, |_, _| Err("f: gone".into())));
    assert_eq!(found, "flows[0].packet[0].capture.file: f: gone");
    assert!(message(TrafficPlan::parse(&one)).contains("cannot load captures"));
}

#[test]
fn handles_ip_options_and_fragments() {
    let layout = |name| layout::find(name).expect("a layout");
    let item = |name| Header::new(layout("ipv4").item(name).expect("an option"));
    let headers = [
        Header::new(layout("ethernet")),
        Header::new(layout("ipv4")).item(item("router_alert")),
        Header::new(layout("udp")).with("checksum", Value::Auto),
    ];
    let captured = assemble(&headers, &Payload::Zeros, 80).expect("a frame").frame;
    let stream_of = |frame, fields| stream(frame, fields, "");
    let found = stream_of(captured, ", fields: {udp.src_port: 0x1234}");
    assert_eq!(found.template[38..40], [0x12, 0x34], "after the option");
    // The UDP checksum of a fragment covers the whole datagram.
    let mut fragment = udp();
    fragment[20] = 0x20;
    let found = stream_of(fragment.clone(), ", fields: {ipv4.src: 10.9.8.7}");
    assert_eq!(found.template[40..42], fragment[40..42]);
    assert_eq!(checksum::sum(&found.template[14..34]), 0xffff);
    let refused = plan(fragment, ", fields: {udp.src_port: 1}", "").unwrap_err();
    assert!(refused.contains("no such header in the frame"), "{refused}");
}
