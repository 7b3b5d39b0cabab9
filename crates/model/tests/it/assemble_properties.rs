//! Properties of every assembled frame.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use wirestorm_model::assemble::{
    AssembleError, Assembled, Header, Payload, Value, assemble, length_min, recognise,
};
use wirestorm_model::stream::{ByteOrder, Checksum, PseudoHeader, Step, Write};
use wirestorm_wire::checksum::{combine, crc32c, sum};
use wirestorm_wire::layout::{self, Field, Layout, Role, ValueKind};

/// Reference implementation: runs a program's steps and returns the frame for these values.
fn run(template: &[u8], steps: &[Step], values: &[u128]) -> Vec<u8> {
    let mut frame = template.to_vec();
    for step in steps {
        match step {
            Step::Write(write) => write_value(write, values[write.variable], &mut frame),
            Step::Length { variable } => frame.truncate(values[*variable] as usize),
            Step::WriteLength { offset, less } => {
                let length = (frame.len() - less) as u16;
                frame[*offset..offset + 2].copy_from_slice(&length.to_be_bytes());
            }
            Step::Checksum(sum) => write_sum(sum, 0, &mut frame),
            Step::WrongChecksum(sum) => write_sum(sum, 1, &mut frame),
        }
    }
    frame
}

fn write_value(write: &Write, value: u128, frame: &mut [u8]) {
    assert_eq!(write.order, ByteOrder::Network);
    let field = &mut frame[write.offset..write.offset + write.width];
    let old = field.iter().fold(0_u128, |old, byte| old << 8 | u128::from(*byte));
    let new = old & !write.mask | value.wrapping_add(write.add) << write.shift & write.mask;
    let bytes = new.to_be_bytes();
    field.copy_from_slice(&bytes[16 - write.width..]);
}

fn write_sum(what: &Checksum, wrong: u16, frame: &mut [u8]) {
    match *what {
        Checksum::Internet { offset, start, end, pseudo_header, never_zero } => {
            frame[offset..offset + 2].fill(0);
            let covered = &frame[start..end.unwrap_or(frame.len())];
            let words = [wrong.to_be_bytes(), (covered.len() as u16).to_be_bytes()].concat();
            let pseudo = match pseudo_header {
                PseudoHeader::None => sum(&words[..2]),
                PseudoHeader::Ipv4 { header, protocol } => {
                    sum(&[&words[..], &[0, protocol], &frame[header + 12..header + 20]].concat())
                }
                PseudoHeader::Ipv6 { header, protocol } => {
                    sum(&[&words[..], &[0, protocol], &frame[header + 8..header + 40]].concat())
                }
            };
            let mut checksum = !combine(sum(covered), pseudo);
            if checksum == 0 && never_zero {
                checksum = 0xffff;
            }
            frame[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        Checksum::Crc32c { offset, start } => {
            frame[offset..offset + 4].fill(0);
            let crc = crc32c(&frame[start..]);
            let crc = if wrong == 1 { !crc } else { crc };
            frame[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

fn header(name: &str) -> Header {
    Header::new(layout::find(name).unwrap())
}

fn item(parent: &Header, name: &str) -> Header {
    Header::new(parent.layout.item(name).unwrap())
}

fn with_items(name: &str, items: &[&str]) -> Header {
    let parent = header(name);
    items.iter().fold(parent, |parent, name| {
        let item = item(&parent, name);
        parent.item(item)
    })
}

/// Packets of all kinds, each with headers of at most 200 bytes.
fn stacks() -> Vec<Vec<Header>> {
    let names = |names: &[&str]| names.iter().map(|name| header(name)).collect::<Vec<_>>();
    let mut gre = names(&["ethernet", "ipv4", "gre", "ipv6", "udp"]);
    gre[2] = header("gre").with("checksum", Value::Auto).with("key", 1);
    let mut tcp = names(&["ethernet", "vlan", "ipv6"]);
    tcp.push(with_items("tcp", &["mss", "timestamps", "no_operation"]));
    let mut options = names(&["ethernet"]);
    options.push(with_items("ipv4", &["router_alert", "timestamp", "no_operation"]));
    options.push(header("tcp"));
    let mut extensions = names(&["ethernet", "ipv6"]);
    extensions.push(with_items("ipv6_hop_by_hop", &["router_alert"]));
    extensions.push(with_items("ipv6_routing", &["segment"]));
    extensions.extend(names(&["ipv6_fragment", "udp"]));
    let mut neighbor = names(&["ethernet", "ipv6"]);
    neighbor.push(with_items("icmpv6_neighbor_solicitation", &["source_link_layer_address"]));
    let mut gtp = names(&["ethernet", "ipv4", "udp", "gtpv1", "ipv4", "udp"]);
    gtp[3] = header("gtpv1").with("sequence_number", 7);
    let mut group = names(&["ethernet", "ipv4"]);
    group.push(with_items("igmpv3_report", &["group_record"]));
    let mut wrong = names(&["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "tcp"]);
    wrong[1] = header("ipv4").with("header_checksum", Value::WrongChecksum);
    wrong[2] = header("udp").with("checksum", Value::WrongChecksum);
    wrong[6] = header("tcp").with("checksum", Value::WrongChecksum);
    let mut wrong_sctp = names(&["ethernet", "ipv4", "sctp", "sctp_data"]);
    wrong_sctp[2] = header("sctp").with("checksum", Value::WrongChecksum);
    // The headers behind this one start at an odd offset.
    let mut odd = names(&["custom", "ipv4", "udp"]);
    odd[0] = header("custom").with("bytes", vec![1, 2, 3]);
    vec![
        names(&["ethernet", "ipv4", "udp"]),
        names(&["ethernet", "vlan", "vlan", "mpls", "mpls", "ipv4", "icmp"]),
        names(&["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv6", "tcp"]),
        names(&["ethernet", "ipv6", "icmpv6"]),
        names(&["ethernet", "pppoe", "ppp", "ipv4", "udp"]),
        names(&["ethernet", "ipv4", "sctp", "sctp_data"]),
        names(&["ethernet", "arp"]),
        names(&["ethernet", "ipv4", "ipv4", "igmpv2"]),
        gre,
        tcp,
        options,
        extensions,
        neighbor,
        gtp,
        group,
        wrong,
        wrong_sctp,
        odd,
    ]
}

/// Returns header number and path of every field with a size and a position that does not change
/// the structure.
fn variable_fields(headers: &[Header]) -> Vec<(usize, String, &'static Field)> {
    fn walk(header: &Header, path: &str, found: &mut impl FnMut(String, &'static Field)) {
        for field in header.layout.fields {
            let has_value = header.values.iter().any(|(name, _)| name == field.name);
            let decides = matches!(field.role, Role::Flag(_))
                || field.name == "segments_left"
                || field.presence != layout::Presence::Always && !has_value;
            if !decides && field.kind != ValueKind::Bytes {
                found(format!("{path}{}", field.name), field);
            }
        }
        for (index, item) in header.items.iter().enumerate() {
            walk(item, &format!("{path}{}.{index}.", header.layout.items.name), found);
        }
    }
    let mut fields = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        walk(header, "", &mut |path, field| fields.push((index, path, field)));
    }
    fields
}

/// Sets a field by its path, in place of an earlier value.
fn give(header: &mut Header, path: &str, value: u128) {
    match path.split('.').collect::<Vec<_>>()[..] {
        [name] => {
            header.values.retain(|(other, _)| other != name);
            header.values.push((name.to_owned().into(), value.into()));
        }
        [_, index, ref rest @ ..] => {
            give(&mut header.items[index.parse::<usize>().unwrap()], &rest.join("."), value);
        }
        [] => {}
    }
}

fn low_bits(value: u128, bits: usize) -> u128 {
    value & (u128::MAX >> (128 - bits))
}

fn payloads() -> impl Strategy<Value = Payload> {
    prop_oneof![
        Just(Payload::Zeros),
        vec(any::<u8>(), 0..5).prop_map(Payload::Pattern),
        any::<u8>().prop_map(Payload::IncrementingBytes),
        any::<u16>().prop_map(Payload::IncrementingWords),
        vec(any::<u8>(), 0..9).prop_map(Payload::Bytes),
    ]
}

/// Returns whether protocol numbers alone identify the layout.
fn is_identified_by_numbers(layout: &Layout) -> bool {
    !["custom", "sctp_data"].contains(&layout.name)
        && !["igmpv2", "igmpv3_report", "icmpv6_neighbor_solicitation"].contains(&layout.name)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A program that varies some fields and the length creates the frame that is assembled with
    /// those values.
    #[test]
    fn program_output_equals_a_new_assembly(
        headers in select(stacks()),
        payload in payloads(),
        is_padded in prop::bool::weighted(0.2),
        picks in vec((any::<Index>(), any::<u128>()), 0..4),
        length in prop::option::of(any::<Index>()),
    ) {
        let is_sctp = headers.iter().any(|header| header.layout.name == "sctp");
        let payload = if is_padded && !is_sctp { Payload::Padding } else { payload };
        let template = assemble(&headers, &payload, 260).unwrap();
        let fields = variable_fields(&headers);
        let (mut writes, mut values, mut anew) = (Vec::new(), Vec::new(), headers.clone());
        for (pick, value) in picks {
            let (index, path, field) = pick.get(&fields);
            let Ok(write) = template.write(*index, path, values.len()) else {
                // The tag's own number, without a header before it to hold it.
                prop_assert!(matches!(field.role, Role::OwnNumber(_)));
                continue;
            };
            let value = low_bits(value, field.bits);
            writes.push(write);
            values.push(value);
            give(&mut anew[*index], path, value);
        }
        let minimum = 220;
        let cut = length.map(|length| minimum + length.index(260 - minimum + 1));
        let variable = cut.map(|cut| {
            values.push(cut as u128);
            values.len() - 1
        });
        let Ok(expected) = assemble(&anew, &payload, cut.unwrap_or(260)) else {
            // Two of the drawn fields share bits.
            return Ok(());
        };
        let steps = template.program_steps(variable, &writes, false);
        prop_assert_eq!(run(&template.frame, &steps, &values), &expected.frame[..]);
        // Running all steps has the same effect if no computed field was drawn.
        if expected.steps == template.steps {
            let mut all = steps.clone();
            all.truncate(usize::from(variable.is_some()) + writes.len());
            all.extend(template.steps.iter().cloned());
            prop_assert_eq!(run(&template.frame, &all, &values), &expected.frame[..]);
        }
    }

    /// A field holds its given value and changes no other field.
    #[test]
    fn fields_read_back_their_given_values(
        layout in select(layout::all()),
        picks in vec((any::<Index>(), any::<u128>()), 0..6),
    ) {
        let bits = |field: &Field| field.bit_offset..field.bit_offset + field.bits;
        let is_number = |field: &Field| {
            let is_own_number = matches!(field.role, Role::OwnNumber(_));
            field.kind != ValueKind::Bytes
                && !is_own_number
                && field.presence == layout::Presence::Always
        };
        let plain = |field: &Field| is_number(field) && !matches!(field.role, Role::Flag(_));
        let fields: Vec<&Field> = layout.fields.iter().filter(|field| plain(field)).collect();
        prop_assume!(!fields.is_empty());
        let mut assigned: Vec<(&Field, u128)> = Vec::new();
        for (pick, value) in picks {
            let field = *pick.get(&fields);
            let is_free = assigned.iter().all(|(other, _)| {
                bits(other).end <= bits(field).start || bits(field).end <= bits(other).start
            });
            if is_free {
                assigned.push((field, low_bits(value, field.bits)));
            }
        }
        let mut header = Header::new(layout);
        for field in &fields {
            if matches!(field.role, Role::Checksum(_)) {
                header = header.with(field.name, 0);
            }
        }
        let without = assemble(core::slice::from_ref(&header), &Payload::Zeros, 300).unwrap();
        for (field, value) in &assigned {
            header.values.retain(|(name, _)| name != field.name);
            header = header.with(field.name, *value);
        }
        let with = assemble(&[header], &Payload::Zeros, 300).unwrap();
        for field in layout.fields.iter().filter(|field| is_number(field) && field.role != Role::View) {
            let place = with.place(0, field.name).unwrap();
            let expected =
                assigned.iter().find(|(other, _)| other == &field).map(|(_, value)| *value);
            let is_seen_through = assigned.iter().any(|(other, _)| {
                other.role == Role::View && bits(other).start < bits(field).end
                    && bits(field).start < bits(other).end
            });
            if !is_seen_through {
                let expected = expected.or_else(|| place.read(&without.frame));
                prop_assert_eq!(place.read(&with.frame), expected, "{}", field.name);
            }
        }
        for (field, value) in assigned {
            prop_assert_eq!(with.place(0, field.name).unwrap().read(&with.frame), Some(value));
        }
    }

    /// Any input results in a frame whose steps lie within it, or in an error message.
    #[test]
    fn arbitrary_headers_never_panic(
        headers in vec(any_header(2), 0..6),
        payload in prop_oneof![payloads(), Just(Payload::Padding)],
        length in prop_oneof![0..300_usize, Just(65_535), any::<usize>()],
        path in "[a-z_.0-9]{0,12}",
        number in 0..8_usize,
    ) {
        match assemble(&headers, &payload, length) {
            Ok(assembled) => within_frame(&assembled)?,
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        if let Ok(assembled) = assemble(&headers, &payload, 2000) {
            let _ = assembled.write(number, &path, 0).map_err(|error| error.to_string());
            for (index, path, _) in variable_fields(&headers) {
                if let Ok(write) = assembled.write(index, &path, 0) {
                    prop_assert!(write.offset + write.width <= assembled.frame.len());
                    let _ = assembled.program_steps(Some(0), &[write], false);
                }
            }
        }
    }
}

fn within_frame(assembled: &Assembled) -> Result<(), TestCaseError> {
    let length = assembled.frame.len();
    for step in &assembled.steps {
        let end = match step {
            Step::WriteLength { offset, less } => (offset + 2).max(*less),
            Step::Checksum(Checksum::Internet { offset, start, end, .. })
            | Step::WrongChecksum(Checksum::Internet { offset, start, end, .. }) => {
                prop_assert!(*start <= end.unwrap_or(length));
                (offset + 2).max(end.unwrap_or(length))
            }
            Step::Checksum(Checksum::Crc32c { offset, .. })
            | Step::WrongChecksum(Checksum::Crc32c { offset, .. }) => offset + 4,
            Step::Write(_) | Step::Length { .. } => unreachable!(),
        };
        prop_assert!(end <= length, "{step:?} of {length} bytes");
    }
    Ok(())
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Auto),
        Just(Value::WrongChecksum),
        any::<u128>().prop_map(Value::Number),
        (0..20_u128).prop_map(Value::Number),
        vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
    ]
}

/// A header with values and items that mostly belong to it.
fn any_header(depth: u32) -> BoxedStrategy<Header> {
    any_of(select(layout::all()).boxed(), depth)
}

fn any_of(layouts: BoxedStrategy<&'static Layout>, depth: u32) -> BoxedStrategy<Header> {
    layouts
        .prop_flat_map(move |layout| {
            let field = any::<Index>()
                .prop_map(move |index| layout.fields[index.index(layout.fields.len())].name);
            let field = prop_oneof![20 => field, 1 => Just("nothing")];
            let values = vec((field, any_value()), 0..3);
            let items = if depth == 0 || layout.items.layouts.is_empty() {
                Just(Vec::new()).boxed()
            } else {
                let nested = any_of(select(layout.items.layouts).boxed(), depth - 1);
                vec(prop_oneof![20 => nested, 1 => any_header(0)], 0..3).boxed()
            };
            (values, items).prop_map(move |(values, items)| {
                let values = values.into_iter().map(|(name, value)| (name.into(), value));
                Header { layout, values: values.collect(), items, trailer: 0 }
            })
        })
        .boxed()
}

fn words(result: Result<Assembled, AssembleError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn errors_have_location_found_and_expected_values() {
    let assembled = |headers: &[Header], length| words(assemble(headers, &Payload::Zeros, length));
    let ethernet = || header("ethernet");
    let ipv4 = || header("ipv4");
    let with = |name: &'static str, value: Value| {
        assembled(&[ethernet(), header("ipv4").with(name, value)], 100)
    };
    assert!(with("ttl", Value::Auto).starts_with(
        "header 1 (ipv4), ttl: no such field; expected one of version, header_length, "
    ));
    assert_eq!(
        with("time_to_live", Value::Number(256)),
        "header 1 (ipv4), time_to_live: 256 does not fit its 8 bits; at most 255"
    );
    assert_eq!(
        with("src", Value::Bytes(vec![1, 2])),
        "header 1 (ipv4), src: found 2 bytes, expected 4"
    );
    assert_eq!(
        with("dscp", Value::Bytes(vec![1])),
        "header 1 (ipv4), dscp: found 1 bytes, expected a number of 6 bits"
    );
    assert_eq!(
        with("protocol", Value::WrongChecksum),
        "header 1 (ipv4), protocol: only a checksum can be bad; expected a value"
    );
    assert_eq!(
        assembled(&[ethernet(), ipv4().with("dscp", 1).with("priority", 2)], 100),
        "header 1 (ipv4), priority: dscp already sets these bits; give only one of them"
    );
    assert_eq!(
        assembled(&[ethernet(), ipv4().with("dscp", 1).with("dscp", 2)], 100),
        "header 1 (ipv4), dscp: dscp already sets these bits; give only one of them"
    );
    assert_eq!(
        assembled(&[ethernet(), ipv4(), header("gre").with("key", 1).with("key_present", 0)], 100),
        "header 2 (gre), key: is given, but key_present is 0"
    );
    let mss = header("tcp").layout.item("mss").unwrap();
    assert_eq!(
        assembled(&[ethernet(), ipv4().item(Header::new(mss))], 100),
        "header 1 (ipv4), options.0: mss is not allowed here; expected router_alert, timestamp, \
         record_route, no_operation, end_of_options, custom"
    );
    let mss = Header::new(mss).with("value", 70_000);
    assert_eq!(
        assembled(&[ethernet(), ipv4(), header("tcp").item(mss)], 100),
        "header 2 (tcp), options.0.value: 70000 does not fit its 16 bits; at most 65535"
    );
    let custom = item(&ipv4(), "custom").with("value", vec![0; 41]);
    assert_eq!(
        assembled(&[ethernet(), ipv4().item(custom)], 100),
        "header 1 (ipv4), header_length: the computed value 16 does not fit its 4 bits; at most 15"
    );
    assert_eq!(
        assembled(&[ethernet(), header("udp")], 100),
        "header 1 (udp), checksum: covers the addresses of an IP header, but none precedes \
         it; give it a value"
    );
    assert_eq!(
        assembled(&[header("vlan").with("tpid", 0x8100)], 100),
        "header 0 (vlan), tpid: the header before it has no field for this number"
    );
    assert_eq!(
        assembled(&[ethernet().with("ether_type", 1), header("vlan").with("tpid", 0x8100)], 100),
        "header 1 (vlan), tpid: ether_type already sets these bits; give only one of them"
    );
    let automatic = header("vlan").with("tpid", Value::Auto);
    assert!(assemble(&[ethernet().with("ether_type", 1), automatic], &Payload::Zeros, 60).is_ok());
    let segment = with_items("ipv6_routing", &["segment"]).with("segments_left", 1);
    assert_eq!(
        assembled(&[ethernet(), header("ipv6"), segment, header("udp")], 200),
        "header 3 (udp), checksum: covers the final address in the routing header before it; \
         give it a value"
    );
    assert_eq!(
        words(assemble(&[ethernet(), ipv4(), header("sctp")], &Payload::Padding, 60)),
        "header 2 (sctp), checksum: covers the rest of the frame, so there can be no padding; \
         give it a payload"
    );
    let long = [ethernet(), ipv4(), header("udp")];
    assert_eq!(length_min(&long, &Payload::text("twelve bytes")), Ok(54));
    assert_eq!(
        words(assemble(&long, &Payload::text("twelve bytes"), 50)),
        "a frame of 50 bytes without FCS is 4 too short: headers have 42 bytes, the payload at \
         least 12"
    );
    assert_eq!(
        assembled(&[ethernet()], 65_536),
        "a frame of 65536 bytes without FCS is too long; at most 65535"
    );
}

#[test]
fn writes_cover_exactly_the_bits_of_their_fields() {
    let headers = [header("ethernet"), header("vlan"), header("ipv6"), header("tcp")];
    let assembled = assemble(&headers, &Payload::Zeros, 100).unwrap();
    let write = |header, field| {
        let write = assembled.write(header, field, 3).unwrap();
        (write.variable, write.offset, write.width, write.shift, write.mask)
    };
    assert_eq!(write(0, "dst"), (3, 0, 6, 0, 0xffff_ffff_ffff));
    assert_eq!(write(1, "id"), (3, 14, 2, 0, 0x0fff));
    assert_eq!(write(1, "priority"), (3, 14, 1, 5, 0xe0));
    assert_eq!(write(1, "tpid"), (3, 12, 2, 0, 0xffff));
    assert_eq!(write(2, "traffic_class"), (3, 18, 2, 4, 0x0ff0));
    assert_eq!(write(2, "flow_label"), (3, 19, 3, 0, 0x0f_ffff));
    assert_eq!(write(2, "dst"), (3, 42, 16, 0, u128::MAX));
    assert_eq!(write(3, "src_port"), (3, 58, 2, 0, 0xffff));
    let error = |header, field| assembled.write(header, field, 0).unwrap_err().to_string();
    assert_eq!(error(4, "dst"), "header 4 (none), dst: there are 4 headers, counted from 0");
    assert_eq!(
        error(3, "options.0.value"),
        "header 3 (tcp), options.0.value: no such item; there are 0, counted from 0"
    );
    let headers = [header("gre"), header("custom").with("bytes", vec![0; 17])];
    let assembled = assemble(&headers, &Payload::Zeros, 100).unwrap();
    let error = |header, field| assembled.write(header, field, 0).unwrap_err().to_string();
    assert_eq!(
        error(0, "key"),
        "header 0 (gre), key: the header has no such field, since no value is given"
    );
    assert_eq!(
        error(1, "bytes"),
        "header 1 (custom), bytes: has 136 bits, expected 1 to 128 for a variable"
    );
}

#[test]
fn program_has_only_the_corrections_that_its_writes_need() {
    let headers = ["ethernet", "ipv4", "udp", "vxlan", "ethernet", "ipv4", "udp"].map(header);
    let assembled = assemble(&headers, &Payload::Zeros, 120).unwrap();
    let count = |length, fields: &[(usize, &str)]| {
        let writes =
            fields.iter().map(|(header, field)| assembled.write(*header, field, 0).unwrap());
        let writes: Vec<_> = writes.collect();
        assembled.program_steps(length, &writes, false).len() - writes.len()
    };
    assert_eq!(count(None, &[]), 0);
    assert_eq!(count(None, &[(0, "src")]), 0);
    assert_eq!(count(None, &[(1, "identification")]), 1);
    assert_eq!(count(None, &[(1, "src")]), 2);
    // The checksum of the inner IPv4 header, and of the outer UDP header, which covers it.
    assert_eq!(count(None, &[(5, "identification")]), 2);
    assert_eq!(count(None, &[(5, "src")]), 3);
    assert_eq!(count(None, &[(5, "src"), (5, "header_checksum")]), 2);
    // The length, four length fields and four checksums.
    assert_eq!(count(Some(0), &[]), 9);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The headers of an assembled frame are recognised, with the same steps.
    #[test]
    fn recognise_finds_the_assembled_headers(
        headers in select(stacks()),
        payload in payloads(),
        is_padded in any::<bool>(),
        length in 220..300_usize,
    ) {
        let is_sctp = headers.iter().any(|header| header.layout.name == "sctp");
        let payload = if is_padded && !is_sctp { Payload::Padding } else { payload };
        let assembled = assemble(&headers, &payload, length).unwrap();
        let found = recognise(assembled.frame.clone());
        prop_assert_eq!(&found.frame, &assembled.frame);
        let identified =
            headers.iter().take_while(|header| is_identified_by_numbers(header.layout)).count();
        prop_assert!(found.headers.len() >= identified);
        for (index, (recognised, header)) in
            found.headers.iter().zip(&assembled.headers).enumerate().take(identified)
        {
            prop_assert!(recognised.layout.is(header.layout), "{}", header.layout.name);
            prop_assert_eq!((recognised.offset, recognised.length), (header.offset, header.length));
            for field in header.layout.fields {
                let places = [&assembled, &found].map(|it| it.place(index, field.name).ok());
                prop_assert_eq!(places[0], places[1], "{}", field.name);
            }
        }
        let is_wrong = |step: &Step| matches!(step, Step::WrongChecksum(_));
        if identified == headers.len() && !assembled.steps.iter().any(is_wrong) {
            prop_assert_eq!(&found.steps, &assembled.steps);
        }
        // Correct values stay unchanged.
        let mut repaired = found.clone();
        repaired.repair(&found.steps);
        let is_right = !assembled.steps.iter().any(is_wrong);
        prop_assert!(!is_right || repaired.frame == assembled.frame);
    }

    /// Arbitrary bytes have headers or none, and all steps lie within the frame.
    #[test]
    fn recognise_accepts_arbitrary_bytes(
        headers in select(stacks()),
        changes in vec((any::<Index>(), any::<u8>()), 0..8),
        length in 0..260_usize,
    ) {
        let mut frame = assemble(&headers, &Payload::Zeros, 260).unwrap().frame;
        for (index, value) in changes {
            frame[index.index(120)] = value;
        }
        frame.truncate(length);
        let mut found = recognise(frame);
        prop_assert!(found.headers_end() <= length && found.packet_end() <= length);
        for step in &found.steps {
            prop_assert!(step.target().end <= length, "{:?}", step);
        }
        let steps = found.steps.clone();
        found.repair(&steps);
        prop_assert_eq!(found.frame.len(), length);
    }
}
