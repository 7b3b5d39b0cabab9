//! An arbitrary frame to a host: no panic, and an answer that another host parses.

use wirestorm_stack::{Host, HostEvent};
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

const FRAME_LENGTH_MAX: usize = 9_018;

/// Checks one input.
pub fn run(frame: &[u8]) {
    let prefix = |text: &str, length| Prefix { address: text.parse().expect("an address"), length };
    let host = Host {
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        addresses: vec![prefix("10.0.0.1", 24), prefix("2001:db8::1", 64)],
        gateways: vec!["10.0.0.254".parse().expect("an address")],
        ..Host::default()
    };
    if frame.len() > FRAME_LENGTH_MAX {
        return;
    }
    let tagged = Host { tags: vec![0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], ..host.clone() };
    for host in [host, tagged] {
        if let HostEvent::Reply(answer) = host.handle_frame(frame) {
            assert!(answer.len() >= 14 && answer.len() <= frame.len().max(60) + 40);
            assert_eq!(answer[6..12], host.mac.0, "the source is the host's MAC address");
            assert!(
                !matches!(host.handle_frame(&answer), HostEvent::Reply(_)),
                "an answer needs no answer"
            );
        }
    }
}
