//! Writes to the files, and their contents.

use std::collections::BTreeMap;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_plan::pktgen::{Counters, Effect, Errno, Link, Problem};

use super::{device, lowered, machine, refused, result, set};

#[test]
fn settings_are_parsed_and_shown_as_in_the_kernel() {
    let cases = [
        ("count 1000000", "OK: count=1000000"),
        ("count 0", "OK: count=0"),
        ("count=5", "OK: count=5"),
        ("  \"count\" \t7 and the rest", "OK: count=7"),
        ("count 12345678901", "OK: count=1234567890"),
        ("clone_skb 10", "OK: clone_skb=10"),
        ("burst 32", "OK: burst=32"),
        ("burst 0", "OK: burst=1"),
        ("debug 1", "OK: debug=1"),
        ("pkt_size 60", "OK: pkt_size=60"),
        ("pkt_size 41", "OK: pkt_size=42"),
        ("min_pkt_size 64", "OK: min_pkt_size=64"),
        ("max_pkt_size 1514", "OK: max_pkt_size=1514"),
        ("frags 5", "OK: frags=5"),
        ("delay 400", "OK: delay=400"),
        ("delay 2147483647", "OK: delay=18446744073709551615"),
        ("rate 300", "OK: rate=300"),
        ("ratep 1000", "OK: rate=1000"),
        ("dst 198.51.100.1", "OK: dst_min=198.51.100.1"),
        ("dst_min 198.51.100.1", "OK: dst_min=198.51.100.1"),
        ("dst_max 198.51.100.9", "OK: dst_max=198.51.100.9"),
        ("src_min 198.51.100.1", "OK: src_min=198.51.100.1"),
        ("src_max 198.51.100.9", "OK: src_max=198.51.100.9"),
        ("dst6 2001:DB8::1", "OK: dst6=2001:db8::1"),
        ("dst6_min 2001:db8::", "OK: dst6_min=2001:db8::"),
        ("dst6_max 2001:db8::ff", "OK: dst6_max=2001:db8::ff"),
        ("src6 2001:db8::2", "OK: src6=2001:db8::2"),
        ("udp_src_min 9", "OK: udp_src_min=9"),
        ("udp_src_max 65536", "OK: udp_src_max=0"),
        ("udp_dst_min 53", "OK: udp_dst_min=53"),
        ("udp_dst_max 65535", "OK: udp_dst_max=65535"),
        ("src_mac 02:00:00:00:00:0A", "OK: srcmac 02:00:00:00:00:0a"),
        ("dst_mac  02:00:00:00:00:0b", "OK: dstmac 02:00:00:00:00:0b"),
        ("src_mac_count 16", "OK: src_mac_count=16"),
        ("dst_mac_count 16", "OK: dst_mac_count=16"),
        ("vlan_id 77", "OK: vlan_id=77"),
        ("mpls 0001000a,0002000a,0000000a", "OK: mpls=0001000a,0002000a,0000000a"),
        ("mpls 0", "OK: mpls="),
        ("tos 2e", "OK: tos=0x2e"),
        ("traffic_class B8", "OK: traffic_class=0xb8"),
        ("flows 70000", "OK: flows=65536"),
        ("flowlen 30", "OK: flowlen=30"),
        ("queue_map_min 1", "OK: queue_map_min=1"),
        ("queue_map_max 70000", "OK: queue_map_max=4464"),
        ("skb_priority 5", "OK: skb_priority=5"),
        ("node 0", "OK: node=0"),
        ("spi 7", "OK: spi=7"),
        ("xmit_mode start_xmit", "OK: xmit_mode=start_xmit"),
        ("xmit_mode netif_receive", "OK: xmit_mode=netif_receive"),
        ("xmit_mode queue_xmit", "OK: xmit_mode=queue_xmit"),
        ("clear_counters", "OK: Clearing counters.\n"),
    ];
    for (command, expected) in cases {
        assert_eq!(result(&device(&[command]), "eth0"), expected, "{command}");
    }
}

#[test]
fn each_flag_is_set_and_unset() {
    let flags = [
        ("IPSRC_RND", 1),
        ("IPDST_RND", 2),
        ("TXSIZE_RND", 3),
        ("UDPSRC_RND", 4),
        ("UDPDST_RND", 5),
        ("UDPCSUM", 6),
        ("NO_TIMESTAMP", 7),
        ("MPLS_RND", 8),
        ("QUEUE_MAP_RND", 9),
        ("QUEUE_MAP_CPU", 10),
        ("FLOW_SEQ", 11),
        ("IPSEC", 12),
        ("MACSRC_RND", 13),
        ("MACDST_RND", 14),
        ("VID_RND", 15),
        ("SVID_RND", 16),
        ("NODE", 17),
        ("NODE_ALLOC", 17),
    ];
    const SHARED: u32 = 1 << 18;
    for (name, bit) in flags {
        let mut pktgen = device(&["flows 1", &format!("flag {name}")]);
        assert_eq!(result(&pktgen, "eth0"), format!("OK: flags=0x{:x}", SHARED | 1 << bit));
        let shown = name.strip_suffix("_ALLOC").unwrap_or(name);
        assert!(pktgen.show("eth0").expect("a file").contains(&format!(" {shown}  ")), "{name}");
        set(&mut pktgen, &format!("flag !{name}"));
        assert_eq!(result(&pktgen, "eth0"), format!("OK: flags=0x{SHARED:x}"));
        assert!(!pktgen.show("eth0").expect("a file").contains(&format!(" {shown}  ")), "{name}");
    }
    assert_eq!(result(&device(&["flag !SHARED"]), "eth0"), "OK: flags=0x0");
    let both_flags = device(&["flag FLOW_SEQ", "flag FLOW_RND"]);
    assert_eq!(result(&both_flags, "eth0"), format!("OK: flags=0x{SHARED:x}"));
    let off = device(&["dst6 2001:db8::1", "flag !IPV6"]);
    assert_eq!(result(&off, "eth0"), format!("OK: flags=0x{SHARED:x}"));
}

#[test]
fn unknown_flags_and_modes_list_the_known_ones() {
    let mut pktgen = device(&[]);
    for flag in ["IPV6", "UDP", ""] {
        let (problem, errno) = refused(&mut pktgen, "eth0", &format!("flag {flag}\n"));
        assert_eq!(errno, None, "the kernel's write succeeds");
        assert!(problem.to_string().contains("IPSRC_RND, "), "{problem}");
        assert_eq!(
            result(&pktgen, "eth0"),
            format!(
                "Flag -:{flag}:- unknown\nAvailable flags, (prepend ! to un-set flag):\nIPV6, \
                 IPSRC_RND, IPDST_RND, TXSIZE_RND, UDPSRC_RND, UDPDST_RND, UDPCSUM, NO_TIMESTAMP, \
                 MPLS_RND, QUEUE_MAP_RND, QUEUE_MAP_CPU, FLOW_SEQ, IPSEC, MACSRC_RND, MACDST_RND, \
                 VID_RND, SVID_RND, NODE, SHARED"
            )
        );
    }
    let (problem, errno) = refused(&mut pktgen, "eth0", "xmit_mode fast\n");
    assert_eq!(errno, None);
    assert_eq!(
        problem.to_string(),
        "found \"fast\", expected start_xmit, netif_receive or queue_xmit"
    );
    assert_eq!(
        result(&pktgen, "eth0"),
        "xmit_mode -:fast:- unknown\nAvailable modes: start_xmit, netif_receive\n"
    );
}

#[test]
fn commands_that_the_kernel_refuses_have_its_error_and_no_effect() {
    let cases: [(&[&str], &str, Errno, &str); 23] = [
        (&[], "pktsize 60", Errno::InvalidArgument, "no such command: found \"pktsize\""),
        (&[], "", Errno::InvalidArgument, "no such command: found \"\""),
        (&[], "rate 0", Errno::InvalidArgument, "found \"0\", expected Mbit/s, 1 or more"),
        (&[], "ratep x", Errno::InvalidArgument, "found \"x\", expected frames a second"),
        (&[], "dst 1.2.3", Errno::InvalidArgument, "found \"1.2.3\", expected an IPv4 address"),
        (&[], "dst_min", Errno::InvalidArgument, "found \"\", expected an IPv4 address"),
        (&[], "src_max 10.0.0.256", Errno::InvalidArgument, "expected an IPv4 address"),
        (&[], "dst6 10.0.0.1", Errno::InvalidArgument, "expected an IPv6 address"),
        (&[], "src6 2001:db8::/64", Errno::InvalidArgument, "expected an IPv6 address"),
        (&[], "dst_mac 02:00:00:00:00", Errno::InvalidArgument, "expected a MAC address"),
        (&[], "src_mac 02-00-00-00-00-01", Errno::InvalidArgument, "expected a MAC address"),
        (&[], "mpls", Errno::InvalidArgument, "found \"\", expected label stack entries"),
        (&["clone_skb 1"], "imix_weights 64,7", Errno::InvalidArgument, "with clone_skb"),
        (&[], "imix_weights 64", Errno::InvalidArgument, "found \"64\", expected sizes and"),
        (&[], "imix_weights 64,0", Errno::InvalidArgument, "found \"64,0\", expected sizes and"),
        (&[], "imix_weights 64,7 ", Errno::InvalidArgument, "found \"\", expected sizes and"),
        (&["imix_weights 64,7"], "clone_skb 1", Errno::InvalidArgument, "with imix_weights"),
        (&["flag !SHARED"], "clone_skb 1", Errno::InvalidArgument, "with flag !SHARED"),
        (&["flag !SHARED"], "burst 2", Errno::InvalidArgument, "with flag !SHARED"),
        (&["burst 2"], "flag !SHARED", Errno::InvalidArgument, "with clone_skb or burst"),
        (&["xmit_mode netif_receive"], "clone_skb 1", Errno::NotSupported, "netif_receive"),
        (&["clone_skb 1"], "xmit_mode netif_receive", Errno::NotSupported, "netif_receive"),
        (&["xmit_mode queue_xmit"], "burst 2", Errno::NotSupported, "queue_xmit"),
    ];
    for (before, command, errno, message) in cases {
        let mut pktgen = device(before);
        let unchanged = pktgen.show("eth0");
        let error = pktgen.write("eth0", &format!("{command}\n")).expect_err(command);
        assert_eq!(error.problem.errno(), Some(errno), "{command}");
        assert!(error.to_string().starts_with("eth0: "), "{error}");
        assert!(error.to_string().contains(message), "{error}");
        if !matches!(error.problem, Problem::NoSuchCommand { .. }) {
            assert_eq!(pktgen.show("eth0"), unchanged, "{command}");
        }
    }
    let mut pktgen = device(&[]);
    let many = |entry: &str, count: usize, between: &str| vec![entry; count].join(between);
    for (command, limit) in [
        (format!("imix_weights {}\n", many("64,1", 21, " ")), 20),
        (format!("mpls {}\n", many("00010000", 17, ",")), 16),
    ] {
        let (problem, errno) = refused(&mut pktgen, "eth0", &command);
        assert_eq!((problem, errno), (Problem::TooMany { limit }, Some(Errno::TooBig)));
    }
    set(&mut pktgen, &format!("imix_weights {}", many("64,1", 20, " ")));
    set(&mut pktgen, &format!("mpls {}", many("00010000", 16, ",")));
    let (problem, _) = refused(&mut pktgen, "eth0", "mpls 00010000,");
    assert!(matches!(problem, Problem::Malformed { .. }), "{problem}");
}

#[test]
fn unknown_commands_list_the_known_ones() {
    let mut pktgen = device(&[]);
    let error = pktgen.write("eth0", "pktsize 60\n").expect_err("no such command");
    assert!(
        error.to_string().starts_with(
            "eth0: \"pktsize 60\": no such command: found \"pktsize\", expected one of \
             min_pkt_size, max_pkt_size, pkt_size, "
        ),
        "{error}"
    );
    assert_eq!(result(&pktgen, "eth0"), "No such parameter \"pktsize\"");
    let Problem::NoSuchCommand { expected, .. } = error.problem else { panic!("{error}") };
    for name in expected.split(", ") {
        let outcome = pktgen.write("eth0", &format!("{name}\n"));
        let is_known =
            !outcome.is_err_and(|error| matches!(error.problem, Problem::NoSuchCommand { .. }));
        assert!(is_known, "{name}");
    }
    assert_eq!(expected.split(", ").count(), 48, "all of the kernel's");
}

#[test]
fn settings_that_the_kernel_ignores_are_reported() {
    let cases: [(&[&str], &str, &str); 9] = [
        (&[], "vlan_p 3", "ERROR: vlan_p must be 0-7"),
        (&["vlan_id 1"], "vlan_p 8", "ERROR: vlan_p must be 0-7"),
        (&[], "vlan_cfi 1", "ERROR: vlan_cfi must be 0-1"),
        (&["vlan_id 1"], "vlan_cfi 2", "ERROR: vlan_cfi must be 0-1"),
        (&["vlan_id 1"], "svlan_p 3", "ERROR: svlan_p must be 0-7"),
        (&["vlan_id 1"], "svlan_cfi 1", "ERROR: svlan_cfi must be 0-1"),
        (&[], "tos 0x10", "ERROR: tos must be 00-ff"),
        (&[], "tos 8", "ERROR: tos must be 00-ff"),
        (&[], "traffic_class xy", "ERROR: traffic_class must be 00-ff"),
    ];
    for (before, command, expected) in cases {
        let mut pktgen = device(before);
        let (problem, errno) = refused(&mut pktgen, "eth0", &format!("{command}\n"));
        assert!(matches!(problem, Problem::Ignored { .. }), "{problem}");
        assert_eq!(errno, None);
        assert_eq!(result(&pktgen, "eth0"), expected, "{command}");
    }
}

#[test]
fn tags_and_labels_exclude_each_other() {
    let shown = |commands: &[&str]| device(commands).show("eth0").expect("a file");
    let tags = shown(&["mpls 00010000", "vlan_id 7", "vlan_p 3", "vlan_cfi 1", "svlan_id 8"]);
    assert!(!tags.contains("mpls:"), "{tags}");
    assert!(tags.contains("     vlan_id: 7  vlan_p: 3  vlan_cfi: 1\n"), "{tags}");
    assert!(tags.contains("     svlan_id: 8  vlan_p: 0  vlan_cfi: 0\n"), "{tags}");
    let labels = shown(&["vlan_id 7", "svlan_id 8", "mpls 00010000,00020100"]);
    assert!(!labels.contains("  vlan_"), "{labels}");
    assert!(labels.contains("     mpls: 00010000, 00020100\n"), "{labels}");
    assert!(labels.contains("MPLS_RND  "), "the bottom-of-stack bit sets it: {labels}");
    for off in ["vlan_id 4096", "vlan_id 65535", "svlan_id 4096"] {
        assert!(!shown(&["vlan_id 7", "svlan_id 8", off]).contains("  vlan_"), "{off}");
    }
    assert!(!shown(&["svlan_id 8"]).contains("  vlan_"), "no outer tag without an inner one");
}

#[test]
fn a_new_device_shows_the_kernels_defaults() {
    let expected = "\
Params: count 1000  min_pkt_size: 0  max_pkt_size: 0
     frags: 0  delay: 0  clone_skb: 0  ifname: eth0
     flows: 0 flowlen: 0
     queue_map_min: 0  queue_map_max: 0
     dst_min:   dst_max: 
     src_min:   src_max: 
     src_mac: 02:00:00:00:00:0a dst_mac: 00:00:00:00:00:00
     udp_src_min: 9  udp_src_max: 9  udp_dst_min: 9  udp_dst_max: 9
     src_mac_count: 0  dst_mac_count: 0
     Flags: SHARED  
Current:
     pkts-sofar: 0  errors: 0
     started: 0us  stopped: 0us idle: 0us
     seq_num: 0  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 0.0.0.0  cur_daddr: 0.0.0.0
     cur_udp_dst: 0  cur_udp_src: 0
     cur_queue_map: 0
     flows: 0
Result: Idle
";
    assert_eq!(device(&[]).show("/proc/net/pktgen/eth0").as_deref(), Ok(expected));
}

#[test]
fn a_device_shows_all_its_settings() {
    let pktgen = device(&[
        "count 0",
        "min_pkt_size 64",
        "max_pkt_size 128",
        "imix_weights 64,7 576,4 1518,1",
        "frags 2",
        "delay 1500",
        "burst 8",
        "flows 4",
        "flowlen 10",
        "queue_map_min 1",
        "queue_map_max 3",
        "skb_priority 6",
        "dst_min 198.51.100.1",
        "dst_max 198.51.100.9",
        "src_min 192.0.2.1",
        "src_max 192.0.2.9",
        "src_mac 02:00:00:00:01:01",
        "dst_mac 02:00:00:00:02:02",
        "udp_src_min 1000",
        "udp_src_max 2000",
        "udp_dst_min 3000",
        "udp_dst_max 4000",
        "src_mac_count 5",
        "dst_mac_count 6",
        "vlan_id 7",
        "vlan_p 1",
        "svlan_id 8",
        "svlan_p 2",
        "svlan_cfi 1",
        "tos 10",
        "traffic_class 20",
        "node 0",
        "spi 99",
        "flag IPSEC",
        "flag IPDST_RND",
        "xmit_mode netif_receive",
    ]);
    let expected = "\
Params: count 0  min_pkt_size: 64  max_pkt_size: 128
     imix_weights: 64,7 576,4 1518,1 
     frags: 2  delay: 1500  clone_skb: 0  ifname: eth0
     flows: 4 flowlen: 10
     queue_map_min: 1  queue_map_max: 3
     skb_priority: 6
     dst_min: 198.51.100.1  dst_max: 198.51.100.9
     src_min: 192.0.2.1  src_max: 192.0.2.9
     src_mac: 02:00:00:00:01:01 dst_mac: 02:00:00:00:02:02
     udp_src_min: 1000  udp_src_max: 2000  udp_dst_min: 3000  udp_dst_max: 4000
     src_mac_count: 5  dst_mac_count: 6
     vlan_id: 7  vlan_p: 1  vlan_cfi: 0
     svlan_id: 8  vlan_p: 2  vlan_cfi: 1
     tos: 0x10
     traffic_class: 0x20
     burst: 8
     node: 0
     xmit_mode: netif_receive
     Flags: IPDST_RND  FLOW_RND  IPSEC  spi:99  SHARED  
Current:
     pkts-sofar: 0  errors: 0
     imix_size_counts: 64,0 576,0 1518,0 
     started: 0us  stopped: 0us idle: 0us
     seq_num: 0  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 192.0.2.9  cur_daddr: 198.51.100.9
     cur_udp_dst: 4000  cur_udp_src: 2000
     cur_queue_map: 0
     flows: 0
Result: OK: xmit_mode=netif_receive
";
    assert_eq!(pktgen.show("eth0").as_deref(), Ok(expected));
}

#[test]
fn a_device_shows_ipv6_addresses_instead_of_ipv4() {
    let pktgen =
        device(&["src6 2001:db8::1", "dst6_min 2001:db8:1::", "dst6_max 2001:db8:1::ffff"]);
    let text = pktgen.show("eth0").expect("a file");
    for expected in [
        "     saddr: 2001:db8::1  min_saddr: ::  max_saddr: ::\n",
        "     daddr: ::  min_daddr: 2001:db8:1::  max_daddr: 2001:db8:1::ffff\n",
        "     cur_saddr: 2001:db8::1  cur_daddr: 2001:db8:1::\n",
        "     Flags: IPV6  SHARED  \n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("     dst_min"), "{text}");
}

#[test]
fn a_rate_shows_as_the_delay_of_the_kernel() {
    let shown = |commands: &[&str]| device(commands).show("eth0").expect("a file");
    assert!(shown(&["pkt_size 64", "rate 100"]).contains("delay: 5120 "));
    assert!(shown(&["rate 100", "pkt_size 64"]).contains("delay: 0 "));
    assert!(shown(&["ratep 3000000"]).contains("delay: 333 "));
}

#[test]
fn pkt_size_equal_to_the_minimum_keeps_the_maximum() {
    let text = device(&["min_pkt_size 64", "max_pkt_size 128", "pkt_size 64"]).show("eth0");
    assert!(text.expect("a file").contains("min_pkt_size: 64  max_pkt_size: 128\n"));
}

#[test]
fn threads_show_their_devices_and_last_result() {
    let mut pktgen = machine();
    assert_eq!(pktgen.files(), ["pgctrl", "kpktgend_0", "kpktgend_1"]);
    assert_eq!(pktgen.show("kpktgend_0").as_deref(), Ok("Running: \nStopped: \nResult: NA\n"));
    for name in ["eth0@0", "eth0@1"] {
        let effect = pktgen.write("kpktgend_1", &format!("add_device {name}\n"));
        assert_eq!(effect, Ok(Effect::Added(name.to_owned())));
    }
    assert_eq!(
        pktgen.show("kpktgend_1").as_deref(),
        Ok("Running: \nStopped: eth0@1 eth0@0 \nResult: OK: add_device=eth0@1\n")
    );
    assert_eq!(pktgen.files(), ["pgctrl", "kpktgend_0", "kpktgend_1", "eth0@1", "eth0@0"]);
    let shown = pktgen.show("eth0@1").expect("a file");
    assert!(shown.contains("ifname: eth0@1\n"), "{shown}");
    assert!(shown.contains("src_mac: 02:00:00:00:00:0a "), "{shown}");
    let cpus: Vec<_> = pktgen.lower().expect("devices").into_iter().map(|it| it.cpu).collect();
    assert_eq!(cpus, [1, 1]);

    pktgen.mark_running();
    assert_eq!(result(&pktgen, "eth0@0"), "Starting");
    assert_eq!(
        pktgen.show("kpktgend_1").as_deref(),
        Ok("Running: eth0@1 eth0@0 \nStopped: \nResult: OK: add_device=eth0@1\n")
    );

    let removed = Effect::Removed(vec!["eth0@1".to_owned(), "eth0@0".to_owned()]);
    assert_eq!(pktgen.write("kpktgend_1", "rem_device_all"), Ok(removed));
    assert_eq!(result(&pktgen, "kpktgend_1"), "OK: rem_device_all");
    assert_eq!(pktgen.write("kpktgend_0", "max_before_softirq 10000"), Ok(Effect::Set));
    assert_eq!(
        result(&pktgen, "kpktgend_0"),
        "OK: Note! max_before_softirq is obsoleted -- Do not use"
    );
    assert_eq!(pktgen.lower().expect("none").len(), 0);
}

#[test]
fn adding_an_invalid_device_gives_the_error_of_the_kernel() {
    let mut pktgen = device(&[]);
    let cases = [
        ("add_device eth0", Errno::Busy, "already added: use another name, as in eth0@1"),
        ("add_device eth9@3", Errno::NoSuchDevice, "no such interface: \"eth9\""),
        ("add_device", Errno::NoSuchDevice, "no such interface: \"\""),
        ("add_device eth2", Errno::NetworkDown, "bring it up with `ip link set eth2 up`"),
        ("add_device eth0@../x", Errno::InvalidArgument, "expected the name of an interface"),
        (
            "remove_device eth0",
            Errno::InvalidArgument,
            "expected one of add_device, rem_device_all",
        ),
    ];
    for (command, errno, message) in cases {
        let error = pktgen.write("kpktgend_1", command).expect_err(command);
        assert_eq!(error.problem.errno(), Some(errno), "{command}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(result(&pktgen, "kpktgend_1"), "ERROR: can not add device eth0@../x");
}

#[test]
fn pgctrl_has_three_commands() {
    let mut pktgen = device(&[]);
    assert_eq!(
        pktgen.show("pgctrl").as_deref(),
        Ok("Packet Generator for packet performance testing. Version: 2.75\n")
    );
    assert_eq!(pktgen.write("/proc/net/pktgen/pgctrl", "start\n"), Ok(Effect::Start));
    assert_eq!(pktgen.write("pgctrl", "stop"), Ok(Effect::Stop));
    for text in ["", "begin\n", "start \n", " start", "start\n\n"] {
        let (problem, errno) = refused(&mut pktgen, "pgctrl", text);
        assert_eq!(errno, Some(Errno::InvalidArgument), "{text:?}");
        assert!(problem.to_string().ends_with("expected one of start, stop, reset"), "{problem}");
    }
    let removed = Effect::Removed(vec!["eth0".to_owned()]);
    assert_eq!(pktgen.write("pgctrl", "reset\n"), Ok(removed));
    assert_eq!(pktgen.files(), ["pgctrl", "kpktgend_0", "kpktgend_1"]);
}

#[test]
fn unknown_files_list_the_known_ones() {
    let mut pktgen = device(&[]);
    for file in ["eth1", "eth0@0", "kpktgend_2", "kpktgend_01", "kpktgend_", ""] {
        let error = pktgen.write(file, "count 1\n").expect_err(file);
        assert_eq!(error.problem, Problem::NoSuchFile { last_thread: 1 });
        assert_eq!(error.problem.errno(), Some(Errno::NoSuchFile));
        assert!(error.to_string().contains("kpktgend_0 to kpktgend_1"), "{error}");
        assert!(pktgen.show(file).is_err(), "{file}");
    }
}

fn counters(frames: u64, bytes: u64) -> Counters {
    Counters {
        frames,
        bytes,
        errors: 3,
        started: Instant::from_nanos(1_000_000_999),
        elapsed: Duration::from_nanos(2_000_000_500),
        idle: Duration::from_nanos(1_500_000_000),
        imix: Vec::new(),
    }
}

#[test]
fn results_have_the_format_of_the_kernel() {
    let counters = counters(10_000_000, 600_000_000);
    let expected = "OK: 2000000(c500000+d1500000) usec, 10000000 (60byte,0frags)\n  \
                    4999998pps 2399Mb/sec (2399999040bps) errors: 3";
    assert_eq!(counters.result(Some(60)), expected);
    let mean = "OK: 2000000(c500000+d1500000) usec, 10000000 (60byte,0frags)\n  \
                4999998pps 2399Mb/sec (2399999400bps) errors: 3";
    assert_eq!(counters.result(None), mean);
    let nothing = Counters { frames: 0, bytes: 0, elapsed: Duration::ZERO, ..counters };
    assert_eq!(
        nothing.result(None),
        "OK: 0(c0+d1500000) usec, 0 (0byte,0frags)\n  0pps 0Mb/sec (0bps) errors: 3"
    );
}

#[test]
fn a_finished_device_shows_the_last_frame_and_the_result() {
    let commands = [
        "count 10",
        "pkt_size 60",
        "clone_skb 2",
        "src_min 192.0.2.1",
        "src_max 192.0.2.3",
        "dst_min 198.51.100.1",
        "dst_max 198.51.100.9",
        "udp_src_min 10",
        "udp_src_max 13",
        "dst_mac_count 3",
        "src_mac_count 4",
        "flag MACSRC_RND",
        "flows 2",
        "flowlen 2",
        "flag FLOW_SEQ",
    ];
    let mut pktgen = device(&commands);
    pktgen.mark_running();
    pktgen.finish(&lowered(&commands), &counters(10, 600));
    let text = pktgen.show("eth0").expect("a file");
    // Five packets, each sent twice. Sources: .2 .3 .1 .2 .3; ports: 11 12 10 11 12. MAC address
    // offsets: 0 1 2 0 1; destinations: .2 .2 .3 .3 .4.
    let expected = "\
Current:
     pkts-sofar: 10  errors: 3
     started: 1000000us  stopped: 3000001us idle: 1500000us
     seq_num: 11  cur_dst_mac_offset: 2  cur_src_mac_offset: 0
     cur_saddr: 192.0.2.3  cur_daddr: 198.51.100.4
     cur_udp_dst: 9  cur_udp_src: 12
     cur_queue_map: 0
     flows: 3
Result: OK: 2000000(c500000+d1500000) usec, 10 (60byte,0frags)
  4pps 0Mb/sec (1920bps) errors: 3
";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(
        pktgen.show("kpktgend_0").as_deref(),
        Ok("Running: \nStopped: eth0 \nResult: OK: add_device=eth0\n")
    );
    set(&mut pktgen, "clear_counters");
    let text = pktgen.show("eth0").expect("a file");
    assert!(text.contains("     pkts-sofar: 0  errors: 0\n"), "{text}");
    assert!(text.contains("     seq_num: 1  "), "{text}");
}

#[test]
fn a_device_shows_frames_per_size() {
    let commands = ["imix_weights 64,1 576,1", "count 100"];
    let mut pktgen = device(&commands);
    let lowered = lowered(&commands);
    let imix = lowered.imix_counts(100);
    assert_eq!(imix.iter().sum::<u64>(), 100);
    assert!(imix.iter().all(|count| *count > 20), "{imix:?}");
    let bytes = 64 * imix[0] + 576 * imix[1];
    pktgen.finish(&lowered, &Counters { imix: imix.clone(), ..counters(100, bytes) });
    let text = pktgen.show("eth0").expect("a file");
    let expected = format!("     imix_size_counts: 64,{} 576,{} \n", imix[0], imix[1]);
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains(&format!("({}byte,0frags)", bytes / 100)), "{text}");
}

#[test]
fn a_running_device_shows_its_counters() {
    let mut pktgen = device(&[]);
    pktgen.mark_running();
    pktgen.progress("eth0", 7, 2);
    let text = pktgen.show("eth0").expect("a file");
    assert!(text.contains("     pkts-sofar: 7  errors: 2\n"), "{text}");
    assert!(text.contains("     seq_num: 8 "), "{text}");
    assert!(pktgen.show("kpktgend_0").is_ok_and(|text| text.starts_with("Running: eth0 \n")));
}

#[test]
fn abandoned_devices_show_an_error() {
    let mut pktgen = device(&[]);
    pktgen.mark_running();
    pktgen.mark_not_started();
    assert_eq!(result(&pktgen, "eth0"), "ERROR: not started");
    assert!(
        pktgen.show("kpktgend_0").is_ok_and(|text| text.starts_with("Running: \nStopped: eth0"))
    );
}

#[test]
fn an_interface_can_be_added_once_it_is_up() {
    let mut pktgen = machine();
    assert!(pktgen.write("kpktgend_0", "add_device eth2").is_err());
    let link = Link { is_up: true, ..Link::default() };
    pktgen.set_links(BTreeMap::from([("eth2".to_owned(), link)]));
    assert!(pktgen.write("kpktgend_0", "add_device eth2").is_ok());
}
