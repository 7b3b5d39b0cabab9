//! Packets of protocols that nobody speaks.

use wirestorm_base::time::Instant;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_stack::endpoint::{Endpoint, EndpointOptions, StrayCounters};
use wirestorm_stack::program::Buffers;
use wirestorm_wire::checksum;

use super::world::{World, frames, options, put, server, template};

/// Of SCTP.
const SCTP: u8 = 132;

/// A frame with a packet of IPv4 to a server, in which something may be changed.
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

/// The same of IPv6, with headers of extensions that say what follows them.
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

/// What a server answers to frames, and what it counts.
fn answers(
    sent: &[Vec<u8>],
    change: impl Fn(&mut EndpointOptions),
) -> (Vec<Vec<u8>>, StrayCounters) {
    let mut world = World::of(vec![], vec![], &Buffers::default());
    let mut options = options(vec![template(vec![], server(80))], &Buffers::default(), 1);
    change(&mut options);
    world.server = Endpoint::new(options, Instant::ZERO);
    sent.iter().for_each(|frame| put(&mut world.up.0, frame));
    world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
    (frames(&mut world.down.1), world.server.strays())
}

/// RFC 1122 section 3.2.2.1.
#[test]
fn who_sends_a_protocol_of_ipv4_that_nobody_speaks_is_told() {
    // What is of ICMP for IPv6 is nothing here.
    for protocol in [SCTP, 58, 255] {
        let sent = ipv4(protocol, 0, &[7; 12], |_| {});
        let padded = [&sent[..], &[0; 14]].concat();
        let (answered, strays) = answers(&[padded], |_| {});
        let [answer] = &answered[..] else { panic!("{protocol}: {answered:?}") };
        assert_eq!(answer[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        // "An ICMP error message SHOULD be sent with normal (i.e., zero) TOS bits."
        assert_eq!((answer[15], answer[23]), (0, 1));
        assert_eq!(answer[26..34], [48, 0, 0, 1, 16, 0, 0, 1]);
        let message = &answer[34..];
        assert_eq!(message[..2], [3, 2]);
        assert_eq!(message[4..], [&[0; 4], &sent[14..]].concat());
        assert_eq!(checksum::sum(message), 0xffff);
        assert_eq!((strays.unreachable_sent, strays.other_protocol), (1, 1));
    }
    // Of a packet in fragments once.
    let parts = [ipv4(SCTP, 0x2000, &[7; 16], |_| {}), ipv4(SCTP, 2, &[7; 16], |_| {})];
    let (answered, strays) = answers(&parts, |_| {});
    assert_eq!((answered.len(), strays.reassembled, strays.unreachable_sent), (1, 1, 1));
}

/// RFC 4443 section 3.4, RFC 8200 section 4.
#[test]
fn who_sends_a_header_of_ipv6_that_nobody_knows_is_told_where_it_is_named() {
    let cases: [(u8, &[u8], u32); 5] = [
        (SCTP, &[], 6),
        // That of IPv4.
        (1, &[], 6),
        // Options for each hop and for the destination.
        (0, &[60, 0, 1, 4, 0, 0, 0, 0, SCTP, 0, 1, 4, 0, 0, 0, 0], 48),
        // A way that is over, and longer than others.
        (43, &[SCTP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 40),
        // A fragment that is all of its packet.
        (44, &[SCTP, 0, 0, 0, 0, 0, 0, 9], 40),
    ];
    for (next, extensions, at) in cases {
        let sent = ipv6(next, extensions, |_| {});
        let (answered, strays) = answers(std::slice::from_ref(&sent), |_| {});
        let [answer] = &answered[..] else { panic!("{next}: {answered:?}") };
        assert_eq!((answer[15] & 0xf0, answer[20]), (0, 58));
        assert_eq!((&answer[22..38], &answer[38..54]), (&sent[38..54], &sent[22..38]));
        let message = &answer[54..];
        assert_eq!(message[..2], [4, 1]);
        assert_eq!(message[4..], [&at.to_be_bytes(), &sent[14..]].concat());
        let (from, to) = (answer[22..38].try_into().unwrap(), answer[38..54].try_into().unwrap());
        let sum = checksum::pseudo_header_ipv6(from, to, 58, message.len() as u32);
        assert_eq!(checksum::combine(sum, checksum::sum(message)), 0xffff);
        assert_eq!((strays.unreachable_sent, strays.other_protocol), (1, 1));
    }
}

#[test]
fn nobody_is_told_of_what_is_known_or_for_many_or_damaged() {
    let to_nobody: [u8; 8] = [SCTP, 0, 0, 1, 0, 0, 0, 0];
    let cases = [
        // Questions of ICMP that are not answered.
        ipv4(1, 0, &[13; 12], |_| {}),
        ipv6(58, &[], |_| {}),
        // Nothing follows.
        ipv6(59, &[], |_| {}),
        ipv6(60, &[59, 0, 1, 4, 0, 0, 0, 0], |_| {}),
        // Options and ways for which a packet is to be discarded: that is not the protocol's fault.
        ipv6(60, &[SCTP, 0, 0x5e, 4, 0, 0, 0, 0], |_| {}),
        ipv6(43, &to_nobody, |_| {}),
        // Groups of Ethernet and IP, and from nobody.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[0] |= 1),
        ipv4(2, 0, &[7; 12], |frame| frame[30] = 224),
        ipv4(SCTP, 0, &[7; 12], |frame| frame[26..30].fill(0)),
        ipv6(SCTP, &[], |frame| frame[38] = 0xff),
        ipv6(SCTP, &[], |frame| frame[22..38].fill(0)),
        // Another kind of frame, which begins as a packet does.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[12..14].copy_from_slice(&[0x88, 0xb5])),
        // Longer than what is there.
        ipv4(SCTP, 0, &[7; 12], |frame| frame[17] = 200),
        ipv6(SCTP, &[], |frame| frame[19] = 200),
    ];
    for (case, frame) in cases.into_iter().enumerate() {
        let (answered, strays) = answers(&[frame], |_| {});
        assert_eq!((answered.len(), strays.unreachable_sent), (0, 0), "case {case}");
        assert_eq!(strays.other_protocol + strays.damaged, 1, "case {case}");
    }
    let mut damaged = ipv4(SCTP, 0, &[7; 12], |_| {});
    damaged[22] -= 1;
    assert_eq!(answers(std::slice::from_ref(&damaged), |_| {}).0.len(), 0);
    assert_eq!(answers(&[damaged], |it| it.verifies_checksums = false).0.len(), 1);
    let silent = |it: &mut EndpointOptions| it.blackhole = Blackhole::All;
    assert_eq!(answers(&[ipv6(SCTP, &[], |_| {})], silent).0.len(), 0);
}

#[test]
fn no_more_is_said_than_of_ports_where_nobody_waits() {
    let sent: Vec<_> = (0..60).map(|_| ipv4(SCTP, 0, &[7; 12], |_| {})).collect();
    let (answered, strays) = answers(&sent, |_| {});
    assert_eq!((answered.len(), strays.unreachable_sent, strays.other_protocol), (50, 50, 60));
}
