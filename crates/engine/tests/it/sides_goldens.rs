//! Sides compared with the cache files of tcpprep 4.5.5 for the same capture.

use std::path::Path;

use wirestorm_engine::edit::Prefix;
use wirestorm_engine::sides::{CacheFile, Side, SideRule, Sides, SidesOptions};
use wirestorm_wire::dissect::dissect;

use crate::common::{Packet, goldens, packets};

fn cache(folder: &Path, name: &str) -> CacheFile {
    let file = std::fs::read(folder.join(name)).expect("a readable cache");
    CacheFile::parse(&file).expect("a cache file")
}

fn decided(rule: SideRule, packets: &[Packet]) -> Vec<Side> {
    let mut sides = Sides::new(SidesOptions {
        rule,
        reverse: false,
        non_ip_is_primary: false,
        conversations_max: 1000,
    });
    packets
        .iter()
        .map(|packet| sides.decide(packet.link, &packet.data, &dissect(packet.link, &packet.data)))
        .collect()
}

/// Returns the numbers of the packets for which the cache has another side.
fn differing(cache: &CacheFile, sides: &[Side]) -> Vec<u64> {
    assert_eq!(cache.packets(), sides.len() as u64);
    (1..)
        .zip(sides)
        .filter(|(number, side)| cache.lookup(*number) != Some(**side))
        .map(|(number, _)| number)
        .collect()
}

fn class_c() -> SideRule {
    let prefix = Prefix { address: "96.17.211.0".parse().expect("an address"), length: 24 };
    SideRule::SourceAddress(vec![prefix])
}

#[test]
fn prefix_rule_matches_tcpprep() {
    let Some(folder) = goldens() else { return };
    let sides = decided(class_c(), &packets(&folder.join("test.pcap")));
    assert_eq!(differing(&cache(&folder, "test.cidr"), &sides), []);
}

#[test]
fn port_rule_matches_tcpprep() {
    let Some(folder) = goldens() else { return };
    let sides = decided(SideRule::Port(vec![0..=1023]), &packets(&folder.join("test.pcap")));
    assert_eq!(differing(&cache(&folder, "test.port"), &sides), []);
}

#[test]
fn cache_skips_packets_that_tcpprep_excluded() {
    let Some(folder) = goldens() else { return };
    let sides = decided(class_c(), &packets(&folder.join("test.pcap")));
    let cache = cache(&folder, "test.exclude_packets");
    let filtered: Vec<u64> =
        (1..=179).filter(|number| cache.lookup(*number) == Some(Side::Excluded)).collect();
    assert_eq!(filtered, (61..=65).chain(88..=91).collect::<Vec<_>>());
    assert_eq!(differing(&cache, &sides), filtered);
}

#[test]
fn cache_has_the_tcpprep_comment() {
    let Some(folder) = goldens() else { return };
    assert_eq!(cache(&folder, "test.comment").comment(), b"This is a comment");
    assert_eq!(cache(&folder, "test.port").comment(), b"");
}

/// Packets with an intended difference from `tcpprep -a client`, which treats unknown hosts as
/// clients and all IPv6 hosts as one.
const OTHERWISE: &[u64] = &[
    // Packets from port 443 in a connection whose start was not captured.
    3, 5, 7, 9, //
    // Packets of IPv6 servers.
    30, 33, 34, 37, //
    // Echo replies, also behind MPLS labels.
    12, 132, 134, 136, 138, 140, 150, 170, 175, 177, 179,
];

#[test]
fn auto_rule_matches_tcpprep_except_for_unknown_hosts() {
    let Some(folder) = goldens() else { return };
    let sides = decided(SideRule::Auto, &packets(&folder.join("test.pcap")));
    let mut differing = differing(&cache(&folder, "test.auto_client"), &sides);
    differing.sort_unstable();
    let mut expected = OTHERWISE.to_vec();
    expected.sort_unstable();
    assert_eq!(differing, expected);
    for number in expected {
        assert_eq!(sides[number as usize - 1], Side::Secondary);
    }
}
