//! Packets in tunnels arrive unchanged, and invalid frames are counted.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use proptest::prelude::*;
use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_engine::tunnel::{DecapsulatingPort, EncapsulatingPort, TunnelCounters, TunnelTable};
use wirestorm_model::tunnel::ClientTunnels;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_wire::checksum;
use wirestorm_wire::packet::{gtpu, ipv4, ipv6, udp};

const CLIENT: &str = "16.0.0.1";
const SERVER: &str = "48.0.0.1";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn tunnels(from: &str, to: &str) -> ClientTunnels {
    ClientTunnels {
        first: address("16.0.0.0"),
        last: address("16.0.0.255"),
        teid: 100,
        teid_step: 1,
        from: address(from),
        to: address(to),
        source_port: NonZeroU16::new(5_000),
    }
}

/// Returns a UDP packet between two addresses with a payload of `payload` bytes.
fn packet(source: &str, destination: &str, class: u8, payload: usize) -> Vec<u8> {
    let mut datagram = vec![0; udp::HEADER_LENGTH + payload];
    datagram[udp::HEADER_LENGTH..].iter_mut().enumerate().for_each(|(at, it)| *it = at as u8);
    let length = datagram.len() as u16;
    let mut header = udp::Packet::new(&mut datagram[..]).unwrap();
    header.set_source_port(1_024);
    header.set_destination_port(80);
    header.set_length(length);
    let mut bytes = match (address(source), address(destination)) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut bytes = vec![0; ipv4::HEADER_LENGTH_MIN];
            bytes[0] = 0x45;
            let mut header = ipv4::Packet::new(&mut bytes[..]).unwrap();
            header.set_type_of_service(class);
            header.set_total_length(20 + length);
            header.set_time_to_live(9);
            header.set_protocol(17);
            header.set_source(source);
            header.set_destination(destination);
            header.fill_checksum();
            bytes
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut bytes = vec![0; ipv6::HEADER_LENGTH];
            bytes[0] = 0x60;
            let mut header = ipv6::Packet::new(&mut bytes[..]).unwrap();
            header.set_traffic_class(class);
            header.set_payload_length(length);
            header.set_next_header(17);
            header.set_source(source);
            header.set_destination(destination);
            bytes
        }
        _ => unreachable!("both are of one family"),
    };
    bytes.extend(datagram);
    bytes
}

/// Returns the frame of a packet, with `tags` between the addresses and the EtherType.
fn frame(tags: &[u8], packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    // An MPLS label stack has its own EtherType and does not identify its payload.
    let kind = if tags.starts_with(&[0x88, 0x47]) { &[][..] } else { &kind };
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], tags, kind, packet].concat()
}

struct Wire {
    transmit: EncapsulatingPort<MemoryTransmit>,
    /// Receives what is on the wire.
    tap: MemoryReceive,
    /// Second wire: its frames reach the decapsulating port.
    on: MemoryTransmit,
    receive: DecapsulatingPort<MemoryReceive>,
}

impl Wire {
    fn new(table: Option<TunnelTable>) -> Self {
        Self::of(table, false)
    }

    /// Creates a wire; `verifies` enables the verification of outer checksums.
    fn of(table: Option<TunnelTable>, verifies: bool) -> Self {
        let options = WireOptions { frames: 8, frame_length_max: 1_518 };
        let ((out, tap), (on, receive)) = (wire(options), wire(options));
        let has_tunnels = table.is_some();
        let transmit = EncapsulatingPort::new(out, table.map(Arc::new));
        Self { transmit, tap, on, receive: DecapsulatingPort::new(receive, has_tunnels, verifies) }
    }

    /// Sends a frame; returns it as it is on the wire.
    fn send(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let buffer = self.transmit.take().unwrap();
        self.transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(frame);
        self.transmit.send(buffer, frame.len(), Instant::ZERO);
        self.transmit.flush().unwrap();
        take(&mut self.tap)
    }

    /// Delivers a frame; returns what the port above receives.
    fn arrive(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let buffer = self.on.take().unwrap();
        self.on.frame_mut(&buffer)[..frame.len()].copy_from_slice(frame);
        self.on.send(buffer, frame.len(), Instant::ZERO);
        self.on.flush().unwrap();
        take(&mut self.receive)
    }

    fn counters(&self) -> TunnelCounters {
        let mut all = self.transmit.counters().unwrap();
        all.merge(&self.receive.counters().unwrap());
        all
    }
}

/// Returns the received frame, of which there is at most one.
fn take(port: &mut impl Receive) -> Option<Vec<u8>> {
    let mut batch = Vec::new();
    let count = port.receive(8, &mut batch).unwrap();
    assert_eq!(count, batch.len());
    let received = batch.pop()?;
    assert!(batch.is_empty());
    let bytes = port.frame(&received).to_vec();
    assert_eq!((received.length, received.original_length), (bytes.len(), bytes.len()));
    port.release(received);
    Some(bytes)
}

fn table(from: &str, to: &str) -> TunnelTable {
    [tunnels(from, to)].iter().collect()
}

#[test]
fn packets_arrive_unchanged() {
    // No tag, one tag, two tags of 802.1ad and 802.1Q, two MPLS labels.
    let tags: [&[u8]; 4] = [
        &[],
        &[0x81, 0, 0, 7],
        &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7],
        &[0x88, 0x47, 0, 0x01, 0x00, 0x40, 0, 0x02, 0x01, 0x40],
    ];
    for (from, to, around) in [("1.1.1.1", "2.2.2.2", 36), ("fd00::1", "fd00::2", 56)] {
        for tags in tags {
            let mut wire = Wire::new(Some(table(from, to)));
            for length in [0, 1, 2, 1_300] {
                let sent = frame(tags, &packet(CLIENT, SERVER, 0x48, length));
                let within = wire.send(&sent).unwrap();
                assert_eq!(within.len(), sent.len() + around);
                assert_eq!(wire.arrive(&within).unwrap(), sent, "{from} {tags:x?} {length}");
            }
            let expected =
                TunnelCounters { encapsulated: 4, decapsulated: 4, ..TunnelCounters::default() };
            assert_eq!(wire.counters(), expected);
        }
    }
}

#[test]
fn outer_headers_identify_the_client_and_direction() {
    let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
    let cases = [(CLIENT, SERVER, "1.1.1.1", "2.2.2.2"), (SERVER, CLIENT, "2.2.2.2", "1.1.1.1")];
    for (source, destination, from, to) in cases {
        let sent = wire.send(&frame(&[], &packet(source, destination, 0xb9, 100))).unwrap();
        let outer = ipv4::Packet::new(&sent[14..]).unwrap();
        assert_eq!(
            (address(from), address(to)),
            (outer.source().into(), outer.destination().into())
        );
        assert_eq!(outer.type_of_service(), 0xb9, "RFC 6040: copied from the inner packet");
        assert!(outer.is_whole() && outer.dont_fragment());
        assert_eq!(outer.checksum(), outer.computed_checksum());
        let datagram = udp::Packet::new(outer.payload()).unwrap();
        assert_eq!((datagram.source_port(), datagram.destination_port()), (5_000, 2_152));
        assert_eq!(usize::from(datagram.length()), outer.payload().len());
        let sum = checksum::sum(outer.payload());
        assert_eq!(checksum::combine(sum, outer.pseudo_header_sum(datagram.length())), 0xffff);
        let message = gtpu::Packet::new(datagram.payload()).unwrap();
        assert!(message.is_g_pdu());
        assert_eq!((message.teid(), message.payload().unwrap().len()), (101, 128));
    }
}

#[test]
fn outer_source_port_defaults_to_the_inner_one() {
    let ranges = ClientTunnels { source_port: None, ..tunnels("1.1.1.1", "2.2.2.2") };
    let mut wire = Wire::new(Some([ranges].iter().collect()));
    let sent = wire.send(&frame(&[], &packet(CLIENT, SERVER, 0, 10))).unwrap();
    assert_eq!(sent[34..36], 1_024_u16.to_be_bytes());
}

#[test]
fn packets_without_tunnel_are_dropped_and_counted() {
    let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
    let sent = frame(&[], &packet("16.0.1.1", SERVER, 0, 10));
    assert_eq!(wire.send(&sent), None);
    assert_eq!(wire.counters(), TunnelCounters { no_tunnel: 1, ..TunnelCounters::default() });
    let one = address("16.0.1.1");
    let first = ClientTunnels { first: one, last: one, teid: 7, ..tunnels("1.1.1.1", "3.3.3.3") };
    let also = ClientTunnels { first: address(CLIENT), last: address(CLIENT), ..first };
    wire.transmit.change(Arc::new([first, also].iter().collect()));
    for client in ["16.0.1.1", CLIENT] {
        let sent = wire.send(&frame(&[], &packet(client, SERVER, 0, 10))).unwrap();
        assert_eq!((&sent[30..34], &sent[46..50]), (&[3, 3, 3, 3][..], &[0, 0, 0, 7][..]));
    }
    let other = wire.send(&frame(&[], &packet("16.0.0.2", SERVER, 0, 10))).unwrap();
    assert_eq!(other[46..50], [0, 0, 0, 102], "as before");
}

#[test]
fn maximum_frame_length_shrinks_by_the_tunnel_headers() {
    let lengths = |table: Option<TunnelTable>| {
        let wire = Wire::new(table);
        wire.transmit.capabilities().untagged_length_max
    };
    let plain = lengths(None);
    assert_eq!(lengths(Some(table("1.1.1.1", "2.2.2.2"))), plain - 36);
    assert_eq!(lengths(Some(table("fd00::1", "fd00::2"))), plain - 56);
    assert_eq!(lengths(Some(TunnelTable::default())), plain - 56, "tunnels may use IPv6");
    let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
    let longest = wire.transmit.capabilities().untagged_length_max;
    let sent = frame(&[], &packet(CLIENT, SERVER, 0, longest - 42));
    assert_eq!(wire.send(&sent).unwrap().len(), plain);
    // A tunnel whose headers became longer during the run.
    wire.transmit.change(Arc::new(table("fd00::1", "fd00::2")));
    assert_eq!(wire.send(&sent), None);
    assert_eq!(wire.counters().too_long, 1);
}

#[test]
fn non_ip_frames_pass() {
    let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
    let mut arp = frame(&[], &packet(CLIENT, SERVER, 0, 10));
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(wire.send(&arp), Some(arp.clone()));
    assert_eq!(wire.arrive(&arp), Some(arp.clone()));
    let mut ping = frame(&[], &packet(CLIENT, SERVER, 0, 10));
    ping[23] = 1;
    let mut header = ipv4::Packet::new(&mut ping[14..]).unwrap();
    header.fill_checksum();
    assert_eq!(wire.arrive(&ping), Some(ping.clone()));
    assert_eq!(wire.counters(), TunnelCounters::default());
}

#[test]
fn invalid_frames_are_counted_by_reason() {
    let good = {
        let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
        wire.send(&frame(&[], &packet(CLIENT, SERVER, 2, 100))).unwrap()
    };
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
        let mut frame = good.clone();
        change(&mut frame);
        if frame.len() >= 34 {
            // Otherwise the header checksum would be wrong already.
            let mut header = ipv4::Packet::new(&mut frame[14..34]).unwrap();
            header.fill_checksum();
        }
        assert_eq!(wire.arrive(&frame), None);
        let counters = wire.counters();
        assert_eq!((counters.dropped(), counters.decapsulated), (1, 0), "{counters:?}");
        counters
    };
    assert_eq!(with(&|it| it[23] = 6).not_udp, 1);
    assert_eq!(with(&|it| it[20] = 0x20).fragments, 1);
    assert_eq!(with(&|it| it[37] = 0).other_port, 1);
    assert_eq!(with(&|it| it[43] = 1).other_message, 1, "an echo request");
    assert_eq!(with(&|it| it[42] = 0x50).other_message, 1, "version 2");
    assert_eq!(with(&|it| it[44] = 1).truncated, 1, "an excessive GTP length");
    assert_eq!(with(&|it| it[38] = 9).truncated, 1, "an excessive datagram length");
    assert_eq!(with(&|it| it[42] = 0x34).truncated, 1, "an extension header without an end");
    assert_eq!(with(&|it| it[50] = 0x70).inner_not_ip, 1);
    assert_eq!(with(&|it| it[52] = 9).inner_not_ip, 1, "an excessive inner length");
    assert_eq!(with(&|it| it.truncate(60)).bad_ip, 1);
    let not_capable = |it: &mut Vec<u8>| {
        it[15] |= 3;
        it[51] = 0;
    };
    assert_eq!(with(&not_capable).not_ecn_capable, 1);
    let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
    let mut damaged = good.clone();
    damaged[24] ^= 1;
    assert_eq!(wire.arrive(&damaged), None);
    assert_eq!(wire.counters().bad_ip, 1);
}

/// RFC 768 and RFC 8200 section 8.1: the outer datagram has a checksum too.
#[test]
fn wrong_outer_udp_checksum_drops_the_packet() {
    for (from, to, udp) in [("1.1.1.1", "2.2.2.2", 34), ("fd00::1", "fd00::2", 54)] {
        for verifies in [true, false] {
            let mut wire = Wire::of(Some(table(from, to)), verifies);
            let inner = frame(&[], &packet(CLIENT, SERVER, 2, 100));
            let good = wire.send(&inner).unwrap();
            assert_eq!(wire.arrive(&good), Some(inner.clone()));
            // The TEID, and an address.
            for place in [udp + 15, udp - 1] {
                let mut damaged = good.clone();
                damaged[place] ^= 1;
                if from == "1.1.1.1" {
                    ipv4::Packet::new(&mut damaged[14..34]).unwrap().fill_checksum();
                }
                let outcome = wire.arrive(&damaged);
                assert_eq!(outcome.is_none(), verifies, "{from}: byte {place}");
            }
            let mut none = good.clone();
            none[udp + 6..udp + 8].fill(0);
            assert_eq!(wire.arrive(&none), Some(inner), "without any checksum");
            let (bad, taken) = if verifies { (2, 2) } else { (0, 4) };
            assert_eq!(wire.counters().bad_checksum, bad);
            assert_eq!(wire.counters().dropped(), bad);
            assert_eq!(wire.counters().decapsulated, taken);
        }
    }
}

#[test]
fn ecn_is_merged_on_decapsulation() {
    for (client, server) in [(CLIENT, SERVER), ("fd01::1", "fd02::1")] {
        let six = ClientTunnels {
            first: address("fd01::"),
            last: address("fd01::ff"),
            ..tunnels("1.1.1.1", "2.2.2.2")
        };
        // Figure 4 of RFC 6040: inner field, outer field after the path, and result.
        let (not, ect0, ect1, ce) = (0b00, 0b10, 0b01, 0b11);
        let outers = [not, ect0, ect1, ce];
        let rows = [
            (not, vec![not, not, not]),
            (ect0, vec![ect0, ect0, ect1, ce]),
            (ect1, vec![ect1, ect1, ect1, ce]),
            (ce, vec![ce, ce, ce, ce]),
        ];
        for (inner, row) in rows {
            for (outer, becomes) in outers.into_iter().zip(row) {
                let all = [tunnels("1.1.1.1", "2.2.2.2"), six];
                let mut wire = Wire::new(Some(all.iter().collect()));
                let mut sent = wire.send(&frame(&[], &packet(client, server, inner, 100))).unwrap();
                sent[15] = sent[15] & !3 | outer;
                ipv4::Packet::new(&mut sent[14..34]).unwrap().fill_checksum();
                let arrived = wire.arrive(&sent).unwrap();
                assert_eq!(arrived[14..], packet(client, server, becomes, 100), "{inner} {outer}");
            }
        }
    }
}

/// Generates damaged frames that begin like encapsulated packets.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let ends = prop_oneof![Just(("1.1.1.1", "2.2.2.2")), Just(("fd00::1", "fd00::2"))];
    let inner = prop_oneof![Just((CLIENT, SERVER)), Just(("fd01::1", "fd02::1"))];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (ends, inner, 0_usize..200, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |((from, to), (client, server), length, changes, end, is_cut)| {
            let six = ClientTunnels {
                first: address("fd01::"),
                last: address("fd01::ff"),
                ..tunnels(from, to)
            };
            let mut wire = Wire::new(Some([tunnels(from, to), six].iter().collect()));
            let mut frame = wire.send(&frame(&[], &packet(client, server, 0, length))).unwrap();
            for (place, byte) in changes {
                let place = place.index(frame.len());
                frame[place] = byte;
            }
            // With a correct header checksum, the rest is parsed.
            if let Ok(mut header) = ipv4::Packet::new(&mut frame[14..]) {
                header.fill_checksum();
            }
            if is_cut {
                frame.truncate(1 + end.index(frame.len()));
            }
            frame
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_frame_is_decapsulated_passed_or_counted(frame in damaged()) {
        let mut wire = Wire::new(Some(table("1.1.1.1", "2.2.2.2")));
        let arrived = wire.arrive(&frame);
        let counters = wire.counters();
        let is_out = counters.decapsulated == 1;
        prop_assert!(counters.dropped() + counters.decapsulated <= 1);
        match arrived {
            Some(bytes) if is_out => prop_assert!(bytes.len() < frame.len()),
            Some(bytes) => prop_assert_eq!((&bytes, counters.dropped()), (&frame, 0)),
            None => prop_assert_eq!(counters.dropped(), 1),
        }
        // Any frame can be sent, or is counted.
        let sent = wire.send(&frame);
        let counters = wire.counters();
        prop_assert_eq!(u64::from(sent.is_none()), counters.no_tunnel + counters.too_long);
    }
}
