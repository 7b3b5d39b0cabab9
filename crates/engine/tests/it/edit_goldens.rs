//! Edits compared byte by byte with the output of tcpreplay 4.5.5 for the same capture.

use std::ops::RangeInclusive;
use std::path::Path;

use wirestorm_engine::edit::{
    EditOptions, Editor, MacSubstitution, PortReplacement, Prefix, PrefixReplacement,
    TimeToLiveEdit, TruncatedFrameAction, VlanEdit, VlanTag,
};
use wirestorm_engine::sides::{CacheFile, Side};
use wirestorm_wire::packet::MacAddress;

use crate::common::{edited, facts, goldens, packets};

/// Reason for an intended difference from the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The capture has a wrong checksum. The reference recomputes checksums of edited packets. Here
    /// it stays wrong unless `fix_checksums` is on; then both results are equal.
    WrongChecksumStays,
    /// Ethernet over MPLS: the reference edits the inner frame. Here the outer frame is edited,
    /// whose addresses and tag the receiving port examines.
    OuterFrameIsEdited,
    /// The stated IP length differs from the frame: the reference skips its checksums with a
    /// warning. Here they are fixed as far as the packet is present.
    ReferenceSkips,
    /// ARP of the secondary side: the reference gives the sender the address of the primary side,
    /// contrary to its rule for IP packets.
    ArpFollowsItsSide,
}

/// Packets with wrong checksums in the capture.
const WRONG_CHECKSUMS: &[(RangeInclusive<usize>, Reason)] = &[
    (19..=19, Reason::WrongChecksumStays),
    (27..=27, Reason::WrongChecksumStays),
    (32..=32, Reason::WrongChecksumStays),
];

struct Case {
    golden: &'static str,
    options: EditOptions,
    cache: Option<&'static str>,
    deviations: &'static [(RangeInclusive<usize>, Reason)],
}

/// Returns a case without differences.
fn case(golden: &'static str, options: EditOptions) -> Case {
    Case { golden, options, cache: None, deviations: &[] }
}

fn mac(text: &str) -> MacAddress {
    text.parse().expect("a MAC address")
}

fn all_to(address: &str) -> Vec<PrefixReplacement> {
    let to = Prefix { address: address.parse().expect("an address"), length: 32 };
    vec![PrefixReplacement { from: Prefix::ALL_IPV4, to }]
}

fn run(folder: &Path, case: &Case) {
    let Case { golden, options, cache, deviations } = case;
    let editor = Editor::new(options);
    let fixing = Editor::new(&EditOptions { fix_checksums: true, ..options.clone() });
    let cache = cache.map(|name| {
        let file = std::fs::read(folder.join(name)).expect("a readable cache");
        CacheFile::parse(&file).expect("a cache file")
    });
    let (before, expected) = (packets(&folder.join("test.pcap")), packets(&folder.join(golden)));
    assert_eq!((before.len(), expected.len()), (179, 179), "{golden}");
    let mut differing = 0;
    for (index, (packet, expected)) in before.iter().zip(&expected).enumerate() {
        let number = index + 1;
        let mut facts = facts(&packet.data);
        facts.number = number as u64;
        if let Some(cache) = &cache {
            facts.secondary =
                cache.side(facts.number).expect("a packet of the cache") == Side::Secondary;
        }
        let made = edited(&editor, &packet.data, packet.original_length, facts).expect("a frame");
        let reason = deviations.iter().find(|(range, _)| range.contains(&number));
        match reason {
            None if made != expected.data => {
                differing += 1;
                println!("{golden}: packet {number}, made and reference");
                println!("{made:02x?}\n{:02x?}", expected.data);
            }
            None => {}
            Some((_, Reason::WrongChecksumStays)) => {
                assert_ne!(made, expected.data, "{golden}: packet {number} is no deviation");
                let fixed = edited(&fixing, &packet.data, packet.original_length, facts);
                assert_eq!(fixed.as_ref(), Some(&expected.data), "{golden}: packet {number}");
            }
            Some(_) => {
                assert_ne!(made, expected.data, "{golden}: packet {number} is no deviation");
            }
        }
    }
    assert_eq!(differing, 0, "{golden}: packets that differ");
}

fn with_goldens(case: impl FnOnce() -> Case) {
    if let Some(folder) = goldens() {
        run(&folder, &case());
    }
}

#[test]
fn port_mapping_matches_tcpreplay() {
    with_goldens(|| {
        let port_map = vec![PortReplacement { first: 80, last: 80, to: 8080 }];
        case("test2.rewrite_portmap", EditOptions { port_map, ..EditOptions::default() })
    });
}

#[test]
fn endpoints_get_the_addresses_of_their_sides() {
    with_goldens(|| {
        let (client, server) = (all_to("10.10.0.1"), all_to("10.10.0.2"));
        let options = EditOptions {
            source_addresses: [client.clone(), server.clone()],
            destination_addresses: [server, client],
            ..EditOptions::default()
        };
        Case {
            cache: Some("test.auto_router"),
            deviations: &[(10..=10, Reason::ArpFollowsItsSide)],
            ..case("test2.rewrite_endpoint", options)
        }
    });
}

#[test]
fn complete_frames_are_not_truncated() {
    with_goldens(|| {
        let captured_short = Some(TruncatedFrameAction::Truncate);
        case(
            "test2.rewrite_trunc",
            EditOptions { truncated_frames: captured_short, ..EditOptions::default() },
        )
    });
}

#[test]
fn address_seed_matches_tcpreplay() {
    with_goldens(|| {
        case("test2.rewrite_seed", EditOptions { address_seed: Some(55), ..EditOptions::default() })
    });
}

#[test]
fn ethernet_addresses_follow_the_side() {
    with_goldens(|| {
        let (one, other) = (mac("00:12:13:14:15:16"), mac("00:22:33:44:55:66"));
        let options = EditOptions {
            destination_mac: Some([one, other]),
            source_mac: Some([other, one]),
            ..EditOptions::default()
        };
        Case {
            cache: Some("test.auto_router"),
            deviations: &[
                (142..=142, Reason::OuterFrameIsEdited),
                (150..=150, Reason::OuterFrameIsEdited),
                (157..=157, Reason::OuterFrameIsEdited),
                (170..=170, Reason::OuterFrameIsEdited),
                (174..=179, Reason::OuterFrameIsEdited),
            ],
            ..case("test2.rewrite_mac", options)
        }
    });
}

#[test]
fn service_tag_is_pushed_first() {
    with_goldens(|| {
        let tag = VlanTag { ethertype: 0x88a8, identifier: 42, priority: 2, drop_eligible: true };
        let options = EditOptions { vlan: Some(VlanEdit::Add(tag)), ..EditOptions::default() };
        Case {
            deviations: &[
                (142..=142, Reason::OuterFrameIsEdited),
                (150..=150, Reason::OuterFrameIsEdited),
                (157..=157, Reason::OuterFrameIsEdited),
                (170..=170, Reason::OuterFrameIsEdited),
                (174..=179, Reason::OuterFrameIsEdited),
            ],
            ..case("test2.rewrite_vlan802.1ad", options)
        }
    });
}

#[test]
fn time_to_live_is_set_and_raised() {
    for (golden, edit) in [
        ("test2.rewrite_1ttl", TimeToLiveEdit::Set(58)),
        ("test2.rewrite_2ttl", TimeToLiveEdit::Add(58)),
    ] {
        with_goldens(|| {
            let time_to_live = Some(edit);
            let options = EditOptions { time_to_live, ..EditOptions::default() };
            Case { deviations: WRONG_CHECKSUMS, ..case(golden, options) }
        });
    }
}

#[test]
fn type_of_service_is_set() {
    with_goldens(|| {
        let type_of_service = Some(50);
        case("test2.rewrite_tos", EditOptions { type_of_service, ..EditOptions::default() })
    });
}

#[test]
fn packets_are_cut_to_the_mtu() {
    with_goldens(|| {
        let mtu_truncate = Some(300);
        Case {
            deviations: WRONG_CHECKSUMS,
            ..case("test2.rewrite_mtutrunc", EditOptions { mtu_truncate, ..EditOptions::default() })
        }
    });
}

#[test]
fn only_wrong_checksums_are_fixed() {
    with_goldens(|| {
        let options = EditOptions { fix_checksums: true, ..EditOptions::default() };
        Case {
            deviations: &[(11..=12, Reason::ReferenceSkips), (14..=14, Reason::ReferenceSkips)],
            ..case("test2.rewrite_fixcsum", options)
        }
    });
}

#[test]
fn ethernet_addresses_are_substituted() {
    with_goldens(|| {
        let substituted_macs = vec![
            MacSubstitution { from: mac("00:1f:f3:3c:e1:13"), to: mac("00:22:33:44:55:66") },
            MacSubstitution { from: mac("f8:1e:df:e5:84:3a"), to: mac("00:66:55:44:33:22") },
        ];
        case(
            "test2.rewrite_enet_subsmac",
            EditOptions { substituted_macs, ..EditOptions::default() },
        )
    });
}

#[test]
fn sequence_numbers_match_tcpreplay() {
    with_goldens(|| {
        let tcp_sequence_seed = Some(42);
        case("test2.rewrite_sequence", EditOptions { tcp_sequence_seed, ..EditOptions::default() })
    });
}
