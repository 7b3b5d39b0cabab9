//! Packets of unsupported protocols.

use wirestorm_base::time::Instant;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, UnmatchedCounters};
use wirestorm_stack::program::Buffers;
use wirestorm_wire::checksum;

use super::world::{World, frames, options, put, server, template};

/// Protocol number of SCTP.
const SCTP: u8 = 132;

/// Returns a frame with an IPv4 packet to a server; `change` may modify it.
fn ipv4(protocol: u8, fragment: u16, data: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let length = (20 + data.len()) as u8;
    let [high, low] = fragment.to_be_bytes();
    let mut frame = [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..],
        &[0x45, 0xb8, 0, length, 0, 7, high, low, 64, protocol, 0, 0, 16, 0, 0, 1, 48, 0, 0, 1],
        data,
    ]
    .concat();
    change(&mut frame);
    let sum = checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Returns a frame with an IPv6 packet; `next` and `extensions` are its extension headers.
fn ipv6(next: u8, extensions: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let length = (extensions.len() + 12) as u8;
    let mut frame = [
        &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd][..],
        &[0x6b, 0x80, 0, 0, 0, length, next, 64],
        &[0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        extensions,
        &[7; 12],
    ]
    .concat();
    change(&mut frame);
    frame
}

/// Returns the server's answers to frames, and its counters.
fn answers(
    sent: &[Vec<u8>],
    change: impl Fn(&mut EndpointOptions),
) -> (Vec<Vec<u8>>, UnmatchedCounters) {
    let mut world = World::of(vec![], vec![], &Buffers::default());
    let mut options = options(vec![template(vec![], server(80))], &Buffers::default(), 1);
    change(&mut options);
    world.server = Endpoint::new(options, Instant::ZERO);
    sent.iter().for_each(|frame| put(&mut world.up.0, frame));
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    (frames(&mut world.down.1), world.server.unmatched())
}

/// RFC 1122 section 3.2.2.1.
#[test]
fn unknown_ipv4_protocol_gets_protocol_unreachable() {
    // ICMPv6 is an unknown protocol in IPv4.
    for protocol in [SCTP, 58, 255] {
        let sent = ipv4(protocol, 0, &[7; 12], |_| {});
        let padded = [&sent[..], &[0; 14]].concat();
        let (answered, unmatched) = answers(&[padded], |_| {});
        let [answer] = &answered[..] else { panic!("{protocol}: {answered:?}") };
        assert_eq!(answer[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        // "An ICMP error message SHOULD be sent with normal (i.e., zero) TOS bits."
        assert_eq!((answer[15], answer[23]), (0, 1));
        assert_eq!(answer[26..34], [48, 0, 0, 1, 16, 0, 0, 1]);
        let message = &answer[34..];
        assert_eq!(message[..2], [3, 2]);
        assert_eq!(message[4..], [&[0; 4], &sent[14..]].concat());
        assert_eq!(checksum::sum(message), 0xffff);
        assert_eq!((unmatched.unreachable_sent, unmatched.other_protocol), (1, 1));
    }
    // A fragmented packet gets one error.
    let parts = [ipv4(SCTP, 0x2000, &[7; 16], |_| {}), ipv4(SCTP, 2, &[7; 16], |_| {})];
    let (answered, unmatched) = answers(&parts, |_| {});
    assert_eq!((answered.len(), unmatched.reassembled, unmatched.unreachable_sent), (1, 1, 1));
}

/// RFC 4443 section 3.4, RFC 8200 section 4.
#[test]
fn unknown_ipv6_header_gets_parameter_problem_with_its_offset() {
    let cases: [(u8, &[u8], u32); 5] = [
        (SCTP, &[], 6),
        // ICMPv4.
        (1, &[], 6),
        // Hop-by-hop and destination options.
        (0, &[60, 0, 1, 4, 0, 0, 0, 0, SCTP, 0, 1, 4, 0, 0, 0, 0], 48),
        // A routing header with no segments left, longer than others.
        (43, &[SCTP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 40),
        // A fragment that is a whole packet.
        (44, &[SCTP, 0, 0, 0, 0, 0, 0, 9], 40),
    ];
    for (next, extensions, at) in cases {
        let sent = ipv6(next, extensions, |_| {});
        let (answered, unmatched) = answers(std::slice::from_ref(&sent), |_| {});
        let [answer] = &answered[..] else { panic!("{next}: {answered:?}") };
        assert_eq!((answer[15] & 0xf0, answer[20]), (0, 58));
        assert_eq!((&answer[22..38], &answer[38..54]), (&sent[38..54], &sent[22..38]));
        let message = &answer[54..];
        assert_eq!(message[..2], [4, 1]);
        assert_eq!(message[4..], [&at.to_be_bytes(), &sent[14..]].concat());
        let (from, to) = (answer[22..38].try_into().unwrap(), answer[38..54].try_into().unwrap());
        let sum = checksum::pseudo_header_ipv6(from, to, 58, message.len() as u32);
        assert_eq!(checksum::combine(sum, checksum::sum(message)), 0xffff);
        assert_eq!((unmatched.unreachable_sent, unmatched.other_protocol), (1, 1));
    }
}

#[test]
fn no_error_for_known_multicast_or_damaged_packets() {
    let to_nobody: [u8; 8] = [SCTP, 0, 0, 1, 0, 0, 0, 0];
    let cases = [
        // ICMP queries that get no answer.
        ipv4(1, 0, &[13; 12], |_| {}),
        ipv6(58, &[], |_| {}),
        // No next header.
        ipv6(59, &[], |_| {}),
        ipv6(60, &[59, 0, 1, 4, 0, 0, 0, 0], |_| {}),
        // Options and routing headers for which the packet is discarded before its protocol is
        // known.
        ipv6(60, &[SCTP, 0, 0x5e, 4, 0, 0, 0, 0], |_| {}),
        ipv6(43, &to_nobody, |_| {}),
        // Ethernet and IP groups, and an unspecified source.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[0] |= 1),
        ipv4(2, 0, &[7; 12], |frame| frame[30] = 224),
        ipv4(SCTP, 0, &[7; 12], |frame| frame[26..30].fill(0)),
        ipv6(SCTP, &[], |frame| frame[38] = 0xff),
        ipv6(SCTP, &[], |frame| frame[22..38].fill(0)),
        // A frame of another EtherType that starts like a packet.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[12..14].copy_from_slice(&[0x88, 0xb5])),
        // Longer than the frame.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[17] = 200),
        ipv6(SCTP, &[], |frame| frame[19] = 200),
    ];
    for (case, frame) in cases.into_iter().enumerate() {
        let (answered, unmatched) = answers(&[frame], |_| {});
        assert_eq!((answered.len(), unmatched.unreachable_sent), (0, 0), "case {case}");
        assert_eq!(unmatched.other_protocol + unmatched.malformed, 1, "case {case}");
    }
    let mut damaged = ipv4(SCTP, 0, &[7; 12], |_| {});
    damaged[22] -= 1;
    assert_eq!(answers(std::slice::from_ref(&damaged), |_| {}).0.len(), 0);
    assert_eq!(answers(&[damaged], |it| it.verifies_checksums = false).0.len(), 1);
    let silent = |it: &mut EndpointOptions| it.blackhole = Blackhole::All;
    assert_eq!(answers(&[ipv6(SCTP, &[], |_| {})], silent).0.len(), 0);
}

#[test]
fn protocol_errors_share_the_rate_limit_of_port_errors() {
    let sent: Vec<_> = (0..60).map(|_| ipv4(SCTP, 0, &[7; 12], |_| {})).collect();
    let (answered, unmatched) = answers(&sent, |_| {});
    assert_eq!(
        (answered.len(), unmatched.unreachable_sent, unmatched.other_protocol),
        (50, 50, 60)
    );
}
