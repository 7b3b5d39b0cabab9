//! Fragments of a packet in any order and number, among invalid ones of other packets. Reassembly
//! returns the original packet as soon as all fragments are there, and memory is bounded.

use std::cell::Cell;

use arbitrary::Arbitrary;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::fragment::{
    DropReason, DroppedPacket, Fragments, Reassembler, ReassemblyLimits, Taken,
};

use crate::arbitrary_input;

const BOUNDS: ReassemblyLimits =
    ReassemblyLimits { packets: 6, bytes: 200_000, time: Duration::from_secs(60) };

/// Tags of the test's packet and of other packets.
const OURS: u64 = 1;
const OTHERS: u64 = 0;

#[derive(Arbitrary, Debug)]
struct Input {
    is_ipv4: bool,
    length: u16,
    mtu: u16,
    identification: u32,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A fragment of the test's packet.
    Piece(u8),
    /// A fragment of another packet with arbitrary source, offset and contents.
    Other {
        is_ipv4: bool,
        source: u8,
        place: u16,
        identification: u8,
        behind: Vec<u8>,
    },
    /// Arbitrary bytes, most likely not a packet.
    Bytes(Vec<u8>),
    Seconds(u8),
}

fn ipv4(source: u8, place: u16, identification: u16, behind: &[u8]) -> Vec<u8> {
    let length = (20 + behind.len()).min(65_535) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[6..8].copy_from_slice(&place.to_be_bytes());
    packet.extend(behind);
    packet
}

fn ipv6(source: u8, next: u8, behind: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((behind.len().min(65_535) as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([source; 16]);
    packet.extend([0xfe; 16]);
    packet.extend(behind);
    packet
}

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(input) = arbitrary_input::<Input>(input) else { return };
    let data: Vec<u8> =
        (0..input.length.min(65_515)).map(|place| (place ^ place >> 8) as u8).collect();
    let packet = if input.is_ipv4 { ipv4(1, 0, 0, &data) } else { ipv6(1, 17, &data) };
    let mtu = usize::from(input.mtu);
    let Some(mut fragments) = Fragments::of(&packet, mtu, input.identification) else { return };
    let mut room = vec![0; mtu];
    let mut pieces = Vec::new();
    while let Some(length) = fragments.write_next(&mut room) {
        assert!(length <= mtu);
        pieces.push(room[..length].to_vec());
    }
    if pieces.len() < 2 {
        return;
    }
    let mut reassembler = Reassembler::new(BOUNDS);
    let mut now = Instant::ZERO;
    let mut arrived = vec![false; pieces.len()];
    // Reason why reassembly gave up on the packet.
    let lost = Cell::new(None);
    let on_drop = |it: DroppedPacket| {
        if it.tag == OURS {
            lost.set(Some(it.cause));
        }
    };
    for step in input.steps {
        let others = match step {
            Step::Seconds(seconds) => {
                now += Duration::from_secs(seconds.into());
                reassembler.expire(now, on_drop);
                Vec::new()
            }
            Step::Bytes(bytes) => bytes,
            Step::Other { is_ipv4, source, place, identification, behind } => {
                // Use other sources than that of the test's packet.
                let source = source.max(2);
                if is_ipv4 {
                    ipv4(source, place, identification.into(), &behind)
                } else {
                    let [high, low] = place.to_be_bytes();
                    let header = [17, 0, high, low, 0, 0, 0, identification];
                    ipv6(source, 44, &[&header[..], &behind].concat())
                }
            }
            Step::Piece(place) => {
                let place = usize::from(place) % pieces.len();
                let taken = reassembler.take(&pieces[place], OURS, now, on_drop);
                arrived[place] = true;
                match lost.take() {
                    None => {}
                    // The earlier fragments timed out; this one starts a new reassembly.
                    Some(DropReason::Timeout) => {
                        arrived.fill(false);
                        arrived[place] = true;
                    }
                    Some(DropReason::Limit) => arrived.fill(false),
                    Some(DropReason::Overlap) => panic!("it was cut so"),
                }
                match taken {
                    Taken::Complete(packet_bytes) => {
                        assert!(arrived.iter().all(|it| *it), "not all of it has come");
                        assert_eq!(packet_bytes[packet.len() - data.len()..], data);
                        assert_eq!(packet_bytes.len(), packet.len());
                        arrived.fill(false);
                    }
                    Taken::Incomplete => {
                        assert!(!arrived.iter().all(|it| *it), "all of it is there")
                    }
                    Taken::Invalid => panic!("it was cut so"),
                }
                Vec::new()
            }
        };
        if let Taken::Complete(packet_bytes) = reassembler.take(&others, OTHERS, now, on_drop) {
            assert!(packet_bytes.len() <= 40 + 65_535);
        }
        if lost.take().is_some() {
            arrived.fill(false);
        }
        assert!(reassembler.bytes() <= BOUNDS.bytes);
        assert!(reassembler.incomplete_packets() <= BOUNDS.packets);
    }
}
