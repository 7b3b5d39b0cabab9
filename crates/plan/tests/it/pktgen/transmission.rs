//! Pace and count of devices, unsupported settings, and notes.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed, Transmission};
use wirestorm_plan::pktgen::LowerError;

use super::{device, lowered};

fn transmission(commands: &[&str]) -> Transmission {
    lowered(commands).streams[0].transmission
}

/// Checks the notes that these commands add.
fn notes(commands: &[&str]) -> Vec<String> {
    let quiet = ["pkt_size 60", "dst 198.51.100.1", "dst_mac 02:00:00:00:00:0b"];
    lowered(&[&quiet[..], commands].concat()).notes
}

#[track_caller]
fn noted(commands: &[&str], expected: &[&str]) {
    let notes = notes(commands);
    assert_eq!(notes.len(), expected.len(), "{notes:#?}");
    for (note, expected) in notes.iter().zip(expected) {
        assert!(note.starts_with(expected), "{note}");
    }
}

#[test]
fn a_count_ends_a_stream_and_zero_does_not() {
    assert_eq!(transmission(&[]).mode, Mode::Burst { frames: 1000 });
    assert_eq!(transmission(&["count 7"]).mode, Mode::Burst { frames: 7 });
    assert_eq!(transmission(&["count 0"]).mode, Mode::Continuous);
    noted(&["count 7", "burst 2"], &["clone_skb 0, burst 2: each packet", "count 7: is exact"]);
    noted(&["count 8", "burst 2", "flag NO_TIMESTAMP"], &["clone_skb 0, burst 2: each packet"]);
}

#[test]
fn the_pace_is_exact() {
    let frames = |units, nanoseconds| {
        let rate = Rate::new(units, Duration::from_nanos(nanoseconds)).expect("a rate");
        Speed::Frames(rate)
    };
    assert_eq!(transmission(&[]).speed, Speed::Max);
    assert_eq!(transmission(&["delay 0"]).speed, Speed::Max);
    assert_eq!(transmission(&["delay 333"]).speed, frames(1, 333));
    assert_eq!(transmission(&["delay 333", "burst 32"]).speed, frames(32, 333));
    assert_eq!(transmission(&["ratep 3000000"]).speed, frames(3, 1000));
    assert_eq!(transmission(&["ratep 3000000", "burst 32"]).speed, frames(3, 1000));
    let megabits = Rate::new(100_000_000, Duration::from_secs(1)).expect("a rate");
    let bits = Speed::Bits(megabits, Layer::Frame);
    assert_eq!(transmission(&["pkt_size 60", "rate 100"]).speed, bits);
    assert_eq!(transmission(&["rate 100", "pkt_size 60"]).speed, bits);
    assert_eq!(transmission(&["rate 100", "ratep 1"]).speed, frames(1, 1_000_000_000));
    assert_eq!(transmission(&["ratep 1", "delay 0"]).speed, Speed::Max, "the last one counts");
    let greatest = Rate::new(9_999_999_999 * 1_000_000, Duration::from_secs(1)).expect("a rate");
    assert_eq!(transmission(&["rate 9999999999"]).speed, Speed::Bits(greatest, Layer::Frame));
}

#[test]
fn notes_list_differences_of_the_pace() {
    noted(&["rate 100"], &["rate 100: counts frames without FCS"]);
    let various = lowered(&["min_pkt_size 60", "max_pkt_size 1500", "rate 100"]).notes;
    assert!(various.iter().any(|note| note.contains("converts it to a delay of 4800 ns")));
    let late = lowered(&["rate 100", "pkt_size 64"]).notes;
    assert!(late.iter().any(|note| note.contains("converts it to a delay of 0 ns")), "{late:?}");
    noted(
        &["ratep 1000", "burst 2", "flag NO_TIMESTAMP"],
        &["clone_skb 0, burst 2: each packet", "burst 2: the kernel's delay is between bursts"],
    );
    noted(
        &["delay 1000", "burst 2"],
        &["clone_skb 0, burst 2: each packet", "burst 2: 2 frames for each delay"],
    );
}

#[test]
fn delay_never_sends_nothing() {
    let device = lowered(&["delay 2147483647"]);
    assert_eq!(device.streams.len(), 0);
    assert!(device.notes.iter().any(|note| note.starts_with("delay 2147483647 means never")));
    assert_eq!(device.imix_counts(5), Vec::<u64>::new());
}

#[test]
fn unsupported_settings_are_errors() {
    let error = device(&["flag IPSEC"]).lower().expect_err("encryption");
    assert_eq!(error, LowerError::Ipsec { device: "eth0".to_owned() });
    assert!(error.to_string().starts_with("eth0: flag IPSEC encrypts with the kernel's"));
    let error = device(&["xmit_mode netif_receive"]).lower().expect_err("the receive path");
    assert_eq!(error, LowerError::NetifReceive { device: "eth0".to_owned() });
    assert!(error.to_string().contains("on the other end of a veth pair"), "{error}");
}

#[test]
fn notes_list_settings_without_effect() {
    for command in
        ["queue_map_min 1", "queue_map_max 1", "flag QUEUE_MAP_RND", "flag QUEUE_MAP_CPU"]
    {
        noted(&[command], &["queue_map_min, queue_map_max, flags QUEUE_MAP_*: without effect"]);
    }
    noted(&["skb_priority 3"], &["skb_priority: without effect, because frames pass no"]);
    noted(&["node 0"], &["node, flag NODE: without effect"]);
    noted(&["flag NODE"], &["node, flag NODE: without effect"]);
    noted(&["frags 3"], &["frags: without effect"]);
    noted(&["spi 3"], &["spi: without effect, because flag IPSEC is not set"]);
    noted(&["xmit_mode queue_xmit"], &["xmit_mode queue_xmit: without effect"]);
    noted(&["debug 1"], &[]);
    noted(&["traffic_class 10"], &["traffic_class: without effect on IPv4"]);
    noted(&["flowlen 3"], &["flowlen: without effect, because flows is not set"]);
    noted(&["src_max 10.0.0.1"], &["src_max: without effect, because src_min is not set"]);
    noted(&["dst_max 10.0.0.1"], &["dst_max: below dst_min, so without effect"]);
    noted(&["udp_src_max 1"], &["udp_src_max 1: below udp_src_min 9, so without effect"]);
    for (flag, needs) in [
        ("VID_RND", "vlan_id"),
        ("SVID_RND", "svlan_id"),
        ("MACSRC_RND", "src_mac_count"),
        ("MACDST_RND", "dst_mac_count"),
        ("MPLS_RND", "mpls"),
        ("FLOW_SEQ", "flows"),
    ] {
        let expected = format!("flag {flag}: without effect, because {needs} is not set");
        noted(&[&format!("flag {flag}")], &[&expected]);
    }
    let six = ["dst6 2001:db8::1", "flag UDPCSUM", "tos 10", "flows 3"];
    let notes =
        lowered(&[&six[..], &["pkt_size 80", "dst 1.2.3.4", "dst_mac 02:00:00:00:00:0b"]].concat());
    let starts = ["tos: without effect", "IPv4 addresses: without effect", "flows: without effect"];
    assert_eq!(notes.notes.len(), starts.len(), "{notes:?}");
    for (note, start) in notes.notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}");
    }
}

#[test]
fn notes_list_unset_addresses() {
    let notes = lowered(&["pkt_size 60"]).notes;
    assert_eq!(
        notes,
        [
            "dst_mac: not set, so frames go to 00:00:00:00:00:00, as in the kernel",
            "dst_min: not set, so frames go to 0.0.0.0, as in the kernel",
        ]
    );
}

#[test]
fn notes_list_misread_numbers_until_they_are_set_again() {
    noted(&["count 10k"], &["count: \"10k\" is read as 10, as in the kernel"]);
    noted(&["delay"], &["delay: \"\" is read as 0, as in the kernel"]);
    noted(&["udp_dst_min 65545"], &["udp_dst_min: \"65545\" is read as 9, as in the kernel"]);
    noted(&["count 12345678901"], &["count: \"12345678901\" is read as 1234567890"]);
    noted(&["count 10k", "count 10000"], &[]);
    noted(&["count 0010", "count 0"], &[]);
}
