//! Arbitrary writes and scripts never cause a panic.

use proptest::prelude::*;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_plan::pktgen::{Action, Counters, Effect, Script};

use super::frames::frame;
use super::{device, machine};

/// Generates commands with plausible values.
fn command() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "count",
        "pkt_size",
        "min_pkt_size",
        "max_pkt_size",
        "imix_weights",
        "clone_skb",
        "burst",
        "delay",
        "rate",
        "ratep",
        "frags",
        "flows",
        "flowlen",
        "dst_min",
        "dst_max",
        "src_min",
        "src_max",
        "dst6",
        "dst6_min",
        "dst6_max",
        "src6",
        "src_mac",
        "dst_mac",
        "src_mac_count",
        "dst_mac_count",
        "udp_src_min",
        "udp_src_max",
        "udp_dst_min",
        "udp_dst_max",
        "vlan_id",
        "svlan_id",
        "vlan_p",
        "mpls",
        "tos",
        "traffic_class",
        "queue_map_min",
        "node",
        "spi",
        "skb_priority",
        "xmit_mode",
        "clear_counters",
        "debug",
    ]);
    let flags = prop::sample::select(vec![
        "IPSRC_RND",
        "IPDST_RND",
        "TXSIZE_RND",
        "UDPSRC_RND",
        "UDPDST_RND",
        "UDPCSUM",
        "NO_TIMESTAMP",
        "MPLS_RND",
        "FLOW_SEQ",
        "FLOW_RND",
        "MACSRC_RND",
        "MACDST_RND",
        "VID_RND",
        "SVID_RND",
        "SHARED",
        "IPV6",
    ]);
    let value = prop_oneof![
        (0_u64..=100).prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<u32>().prop_map(|number| std::net::Ipv4Addr::from(number).to_string()),
        any::<u128>().prop_map(|number| std::net::Ipv6Addr::from(number).to_string()),
        prop::collection::vec((40_u32..2000, 1_u32..100), 1..4).prop_map(|entries| {
            let entries = entries.iter().map(|(size, weight)| format!("{size},{weight}"));
            entries.collect::<Vec<_>>().join(" ")
        }),
        prop::collection::vec(any::<u32>(), 1..4).prop_map(|labels| {
            labels.iter().map(|label| format!("{label:08x}")).collect::<Vec<_>>().join(",")
        }),
        any::<[u8; 6]>()
            .prop_map(|address| { wirestorm_wire::packet::MacAddress(address).to_string() }),
        "\\PC{0,40}",
    ];
    let flag = (any::<bool>(), flags)
        .prop_map(|(unset, name)| format!("flag {}{name}", if unset { "!" } else { "" }));
    prop_oneof![
        3 => (names, value).prop_map(|(name, value)| format!("{name} {value}")),
        1 => flag,
    ]
}

proptest! {
    #[test]
    fn any_write_returns_a_result(
        file in "pgctrl|kpktgend_[0-2]|eth[0-2](@[0-9])?|\\PC{0,12}",
        texts in prop::collection::vec("(add_device |\\PC{0,20})\\PC{0,40}\n?", 0..8),
    ) {
        let mut pktgen = device(&[]);
        for text in &texts {
            if let Err(error) = pktgen.write(&file, text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
        for name in pktgen.files() {
            prop_assert!(pktgen.show(&name).is_ok(), "{}", name);
        }
    }

    #[test]
    fn any_settings_give_frames_within_the_template_or_an_error(
        commands in prop::collection::vec(command(), 0..30),
        numbers in prop::collection::vec(any::<u64>(), 4),
    ) {
        let mut pktgen = device(&[]);
        for command in &commands {
            // Lowering must work, or return an error, after any command.
            let _ = pktgen.write("eth0", command);
        }
        match pktgen.lower() {
            Err(error) => prop_assert!(error.to_string().starts_with("eth0: ")),
            Ok(devices) => {
                let lowered = &devices[0];
                for stream in &lowered.streams {
                    for number in numbers.iter().copied().chain(0..3) {
                        let frame = frame(stream, number);
                        let stamps_end = lowered.stamps.map_or(0, |stamps| stamps.offset + 8);
                        prop_assert!(frame.len() >= stamps_end);
                    }
                    if stream.program.steps.iter().all(|step| {
                        !matches!(step, wirestorm_model::stream::Step::Length { .. })
                    }) {
                        prop_assert_eq!(frame(stream, 0).len(), stream.template.len());
                    }
                }
                let counters = Counters {
                    frames: numbers[0],
                    bytes: numbers[1],
                    errors: numbers[2],
                    started: Instant::from_nanos(numbers[3]),
                    elapsed: Duration::from_nanos(numbers[1]),
                    idle: Duration::from_nanos(numbers[2]),
                    imix: Vec::new(),
                };
                pktgen.finish(lowered, &counters);
                let shown = pktgen.show("eth0").expect("a file");
                prop_assert!(shown.contains("\nResult: OK: "), "{}", shown);
            }
        }
    }

    #[test]
    fn any_script_parses(lines in prop::collection::vec(
        "(PGDEV=/proc/net/pktgen/|pgset |echo |A=|export )?[\"'$A{}; >#\\\\]{0,3}\\PC{0,20}",
        0..20,
    )) {
        let text = lines.join("\n");
        let script = Script::parse(&text);
        let count = text.lines().count();
        for error in &script.unsupported {
            prop_assert!((1..=count).contains(&error.line), "{}", error);
        }
        let mut pktgen = machine();
        for step in &script.steps {
            prop_assert!((1..=count).contains(&step.line));
            if let Action::Write { file, text } = &step.action {
                let effect = pktgen.write(file, text);
                prop_assert!(effect != Ok(Effect::Added(String::new())));
            }
        }
    }
}
