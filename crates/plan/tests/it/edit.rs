//! Edit options: parsing and errors.

use std::net::IpAddr;

use wirestorm_plan::edit::{
    EditArguments, EditError, EditOptions, Fuzz, MacSeed, MacSubstitution, PortReplacement, Prefix,
    PrefixReplacement, TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
    parse_port_map, parse_prefix, parse_prefix_mappings, parse_time_to_live,
};
use wirestorm_wire::packet::MacAddress;

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn prefix(text: &str, length: u8) -> Prefix {
    Prefix { address: text.parse::<IpAddr>().expect("an address"), length }
}

fn mapping(from: (&str, u8), to: (&str, u8)) -> PrefixReplacement {
    PrefixReplacement { from: prefix(from.0, from.1), to: prefix(to.0, to.1) }
}

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

#[track_caller]
fn assert_malformed(words: EditArguments, expected_option: &str, expected_found: &str) {
    match words.parse() {
        Err(EditError::Malformed { option, found, .. }) => {
            assert_eq!((option, found.as_str()), (expected_option, expected_found));
        }
        other => panic!("--{expected_option} {expected_found}: {other:?}"),
    }
}

#[test]
fn no_options_mean_no_edits() {
    assert_eq!(EditArguments::default().parse(), Ok(EditOptions::default()));
}

#[test]
fn each_option_sets_its_field() {
    let words = EditArguments {
        portmap: vec!["80:8080".into(), "443:8443".into()],
        seed: some("55"),
        srcipmap: some("10.0.0.0/8:11.0.0.0/8"),
        tcp_sequence: some("42"),
        skipbroadcast: true,
        fixcsum: true,
        fixhdrlen: true,
        mtu: some("300"),
        mtu_trunc: true,
        efcs: true,
        ttl: some("+58"),
        tos: some("0x32"),
        tclass: some("255"),
        flowlabel: some("1048575"),
        fixlen: some("del"),
        fuzz_seed: some("7"),
        skipl2broadcast: true,
        enet_dmac: some("02:00:00:00:00:01,02:00:00:00:00:02"),
        enet_smac: some("2:0:0:0:0:3"),
        enet_subsmac: vec!["02:00:00:00:00:04,02:00:00:00:00:05".into()],
        enet_vlan: some("add"),
        enet_vlan_tag: some("42"),
        enet_vlan_cfi: some("1"),
        enet_vlan_pri: some("2"),
        enet_vlan_proto: some("802.1ad"),
        ..EditArguments::default()
    };
    let source = vec![mapping(("10.0.0.0", 8), ("11.0.0.0", 8))];
    let expected = EditOptions {
        remove_fcs: true,
        destination_mac: Some([mac(1), mac(2)]),
        source_mac: Some([mac(3), mac(3)]),
        substituted_macs: vec![MacSubstitution { from: mac(4), to: mac(5) }],
        mac_seed: None,
        keep_group_macs: true,
        vlan: Some(VlanEdit::Add(VlanTag {
            ethertype: 0x88a8,
            identifier: 42,
            priority: 2,
            drop_eligible: true,
        })),
        type_of_service: Some(50),
        traffic_class: Some(255),
        flow_label: Some(0xfffff),
        time_to_live: Some(TimeToLiveEdit::Add(58)),
        port_map: vec![
            PortReplacement { first: 80, last: 80, to: 8080 },
            PortReplacement { first: 443, last: 443, to: 8443 },
        ],
        tcp_sequence_seed: Some(42),
        fuzz: Some(Fuzz { seed: 7, factor: 8 }),
        truncated_frames: Some(TruncatedFrameAction::Delete),
        mtu_truncate: Some(300),
        source_addresses: [source.clone(), source],
        destination_addresses: [vec![], vec![]],
        address_seed: Some(55),
        keep_group_addresses: true,
        fix_header_length: true,
        fix_checksums: true,
    };
    assert_eq!(words.parse(), Ok(expected));
}

#[test]
fn parses_port_maps_with_lists_and_ranges() {
    let one = |first, last, to| PortReplacement { first, last, to };
    for (text, expected) in [
        ("80:8080", vec![one(80, 80, 8080)]),
        ("8000,8080:80", vec![one(8000, 8000, 80), one(8080, 8080, 80)]),
        ("80:8000,8080:80", vec![one(80, 80, 8000), one(8080, 8080, 80)]),
        ("1-100:49148", vec![one(1, 100, 49_148)]),
        ("1-9,20:7,0-65535:65535", vec![one(1, 9, 7), one(20, 20, 7), one(0, 65_535, 65_535)]),
    ] {
        assert_eq!(parse_port_map("portmap", text), Ok(expected), "{text}");
    }
    for (text, found) in [
        ("80", "80"),
        ("80:8080,81", "80:8080,81"),
        ("65536:1", "65536"),
        ("80:http", "http"),
        ("9-8:1", "9-8"),
        ("", ""),
        ("+80:1", "+80"),
        ("80:8080:1", "8080:1"),
    ] {
        match parse_port_map("portmap", text) {
            Err(EditError::Malformed { option: "portmap", found: shown, .. }) => {
                assert_eq!(shown, found, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn parses_ipv4_and_ipv6_prefix_mappings() {
    assert_eq!(parse_prefix("pnat", "10.0.0.0/8"), Ok(prefix("10.0.0.0", 8)));
    assert_eq!(parse_prefix("pnat", "10.0.0.1"), Ok(prefix("10.0.0.1", 32)));
    assert_eq!(parse_prefix("pnat", "[2001:db8::/32]"), Ok(prefix("2001:db8::", 32)));
    assert_eq!(parse_prefix("pnat", "::1"), Ok(prefix("::1", 128)));
    let text = "10.0.0.0/8:172.16.0.0/12,[2001:db8:1::/48]:[2001:db8:2::/48],10.0.0.1:10.0.0.2";
    let expected = vec![
        mapping(("10.0.0.0", 8), ("172.16.0.0", 12)),
        mapping(("2001:db8:1::", 48), ("2001:db8:2::", 48)),
        mapping(("10.0.0.1", 32), ("10.0.0.2", 32)),
    ];
    assert_eq!(parse_prefix_mappings("pnat", text), Ok(expected));
    for (text, found) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/33:10.0.0.0/8", "33"),
        ("10.0.0/8:10.0.0.0/8", "10.0.0/8"),
        ("[::/129]:[::/1]", "129"),
        ("10.0.0.0/8:[2001:db8::/32]", "10.0.0.0/8:[2001:db8::/32]"),
        ("10.0.0.0/:10.0.0.0/8", ""),
    ] {
        match parse_prefix_mappings("pnat", text) {
            Err(EditError::Malformed { found: shown, .. }) => assert_eq!(shown, found, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_second_pnat_maps_the_other_side() {
    let (clients, servers) = (
        vec![mapping(("10.0.0.0", 8), ("11.0.0.0", 8))],
        vec![mapping(("20.0.0.0", 8), ("21.0.0.0", 8))],
    );
    let one =
        EditArguments { pnat: vec!["10.0.0.0/8:11.0.0.0/8".into()], ..EditArguments::default() };
    let meaning = one.parse().expect("a meaning");
    assert!(
        meaning
            .source_addresses
            .iter()
            .chain(&meaning.destination_addresses)
            .all(|list| *list == clients)
    );
    let mut two = one;
    two.pnat.push("20.0.0.0/8:21.0.0.0/8".into());
    let meaning = two.parse().expect("a meaning");
    assert_eq!(meaning.source_addresses, [clients.clone(), servers.clone()]);
    assert_eq!(meaning.destination_addresses, [servers, clients]);
    assert!(meaning.needs_sides());
    two.pnat.push("30.0.0.0/8:31.0.0.0/8".into());
    let error = EditError::TooMany { option: "pnat", found: 3, limit: 2 };
    assert_eq!(two.parse(), Err(error));
}

#[test]
fn endpoints_map_client_and_server_addresses() {
    for (text, all, length, [client, server]) in [
        ("10.10.0.1:10.10.0.2", "0.0.0.0", 32, ["10.10.0.1", "10.10.0.2"]),
        ("[fd00::1]:[fd00::2]", "::", 128, ["fd00::1", "fd00::2"]),
    ] {
        let words = EditArguments { endpoints: some(text), ..EditArguments::default() };
        let meaning = words.parse().expect("a meaning");
        let to = |address| vec![mapping((all, 0), (address, length))];
        assert_eq!(meaning.source_addresses, [to(client), to(server)]);
        assert_eq!(meaning.destination_addresses, [to(server), to(client)]);
        assert!(meaning.needs_sides());
    }
    for text in ["10.0.0.1", "10.0.0.1:[::1]", "10.0.0.1:10.0.0.2/8", "fd00::1:fd00::2"] {
        let words = EditArguments { endpoints: some(text), ..EditArguments::default() };
        assert!(matches!(words.parse(), Err(EditError::Malformed { option: "endpoints", .. })));
    }
}

#[test]
fn ttl_sets_adds_or_subtracts() {
    for (text, expected) in [
        ("64", TimeToLiveEdit::Set(64)),
        ("+1", TimeToLiveEdit::Add(1)),
        ("-255", TimeToLiveEdit::Subtract(255)),
    ] {
        assert_eq!(parse_time_to_live("ttl", text), Ok(expected));
    }
    for text in ["", "+", "256", "+-1", "++1", "-256", "a"] {
        assert!(parse_time_to_live("ttl", text).is_err(), "{text:?}");
    }
}

#[test]
fn numbers_out_of_range_are_errors() {
    type Set = fn(&mut EditArguments, String);
    let set: [(&str, &str, Set); 12] = [
        ("tos", "256", |words, text| words.tos = Some(text)),
        ("tclass", "-1", |words, text| words.tclass = Some(text)),
        ("flowlabel", "1048576", |words, text| words.flowlabel = Some(text)),
        ("mtu", "0", |words, text| words.mtu = Some(text)),
        ("seed", "4294967296", |words, text| words.seed = Some(text)),
        ("tcp-sequence", "0", |words, text| words.tcp_sequence = Some(text)),
        ("enet-mac-seed-keep-bytes", "7", |words, text| {
            words.enet_mac_seed_keep_bytes = Some(text);
        }),
        ("fuzz-factor", "0", |words, text| words.fuzz_factor = Some(text)),
        ("fixlen", "cut", |words, text| words.fixlen = Some(text)),
        ("enet-vlan", "push", |words, text| words.enet_vlan = Some(text)),
        ("enet-dmac", "02:00", |words, text| words.enet_dmac = Some(text)),
        ("enet-subsmac", "02:00:00:00:00:01", |words, text| words.enet_subsmac.push(text)),
    ];
    for (option, text, set) in set {
        let mut words = EditArguments::default();
        set(&mut words, text.to_owned());
        assert_malformed(words, option, text);
    }
    for (field, text) in [("tag", "4096"), ("cfi", "2"), ("pri", "8"), ("proto", "802.3")] {
        let word = |name: &str| (name == field).then(|| text.to_owned());
        let words = EditArguments {
            enet_vlan: some("set"),
            enet_vlan_tag: word("tag"),
            enet_vlan_cfi: word("cfi"),
            enet_vlan_pri: word("pri"),
            enet_vlan_proto: word("proto"),
            ..EditArguments::default()
        };
        assert!(matches!(words.parse(), Err(EditError::Malformed { found, .. }) if found == text));
    }
}

#[test]
fn errors_name_option_value_and_notation() {
    let words = EditArguments { tos: some("300"), ..EditArguments::default() };
    let error = words.parse().expect_err("an error").to_string();
    assert_eq!(error, "--tos: found \"300\", expected a number of 0 to 255");
}

#[test]
fn parses_vlan_edits() {
    let vlan = |word: &str, tag: Option<&str>, priority: Option<&str>| {
        let words = EditArguments {
            enet_vlan: some(word),
            enet_vlan_tag: tag.map(str::to_owned),
            enet_vlan_pri: priority.map(str::to_owned),
            ..EditArguments::default()
        };
        words.parse().map(|meaning| meaning.vlan)
    };
    let tag = VlanTag { ethertype: 0x8100, identifier: 7, priority: 0, drop_eligible: false };
    assert_eq!(vlan("add", Some("7"), None), Ok(Some(VlanEdit::Add(tag))));
    assert_eq!(vlan("del", None, None), Ok(Some(VlanEdit::DeleteOuter)));
    assert_eq!(vlan("del-all", None, None), Ok(Some(VlanEdit::DeleteAll)));
    let change = VlanChange { priority: Some(3), ..VlanChange::default() };
    assert_eq!(vlan("set", None, Some("3")), Ok(Some(VlanEdit::SetOuter(change))));
    assert_eq!(vlan("set-inner", None, Some("3")), Ok(Some(VlanEdit::SetInner(change))));
    for (word, tag, priority) in
        [("add", None, Some("3")), ("del", Some("7"), None), ("set", None, None)]
    {
        let error = vlan(word, tag, priority);
        assert!(matches!(error, Err(EditError::Needs { .. })), "{word}: {error:?}");
    }
    let words = EditArguments { enet_vlan_pri: some("1"), ..EditArguments::default() };
    let error = EditError::Needs { option: "enet-vlan-pri", needs: "enet-vlan" };
    assert_eq!(words.parse(), Err(error));
}

#[test]
fn conflicting_or_incomplete_options_are_errors() {
    let map = || some("10.0.0.0/8:11.0.0.0/8");
    let pnat = || vec!["10.0.0.0/8:11.0.0.0/8".to_owned()];
    let address = || some("02:00:00:00:00:01");
    let conflicts = [
        ("pnat", "srcipmap", EditArguments { pnat: pnat(), srcipmap: map(), ..Default::default() }),
        ("pnat", "dstipmap", EditArguments { pnat: pnat(), dstipmap: map(), ..Default::default() }),
        (
            "endpoints",
            "pnat",
            EditArguments {
                endpoints: some("10.0.0.1:10.0.0.2"),
                pnat: pnat(),
                ..Default::default()
            },
        ),
        (
            "enet-mac-seed",
            "enet-smac",
            EditArguments { enet_mac_seed: some("1"), enet_smac: address(), ..Default::default() },
        ),
    ];
    for (option, other, words) in conflicts {
        assert_eq!(words.parse(), Err(EditError::Conflict { option, other }));
    }
    let words = EditArguments { fuzz_factor: some("2"), ..EditArguments::default() };
    let error = EditError::Needs { option: "fuzz-factor", needs: "fuzz-seed" };
    assert_eq!(words.parse(), Err(error));
    let words = EditArguments { enet_mac_seed_keep_bytes: some("3"), ..EditArguments::default() };
    let error = EditError::Needs { option: "enet-mac-seed-keep-bytes", needs: "enet-mac-seed" };
    assert_eq!(words.parse(), Err(error));
}

#[test]
fn zero_seeds_and_mtu_alone_act_as_in_tcpreplay() {
    let words =
        EditArguments { fuzz_seed: some("0"), mtu: some("300"), ..EditArguments::default() };
    assert_eq!(words.parse(), Ok(EditOptions::default()));
    let words = EditArguments { mtu_trunc: true, seed: some("0"), ..EditArguments::default() };
    let meaning = words.parse().expect("a meaning");
    assert_eq!((meaning.mtu_truncate, meaning.address_seed), (Some(1500), Some(0)));
    let words = EditArguments { enet_mac_seed: some("9"), ..EditArguments::default() };
    let meaning = words.parse().expect("a meaning");
    assert_eq!(meaning.mac_seed, Some(MacSeed { seed: 9, keep_bytes: 0 }));
    assert!(!meaning.needs_sides());
}

#[test]
fn lists_have_a_maximum_length() {
    let many = vec!["80:81"; 1025].join(",");
    let words = EditArguments { portmap: vec![many], ..EditArguments::default() };
    let error = EditError::TooMany { option: "portmap", found: 1025, limit: 1024 };
    assert_eq!(words.parse(), Err(error));
}
