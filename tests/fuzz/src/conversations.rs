//! Arbitrary segments and frames as a capture. Each flow becomes a conversation or an error with a
//! message. No data comes from outside the packets, and memory is bounded.

use arbitrary::Arbitrary;
use wirestorm_base::time::Instant;
use wirestorm_wire::capture::{LinkType, RecordHeader};
use wirestorm_wire::conversation::{Action, ImportLimits, Importer, Transport};

use crate::arbitrary_input;

const BOUNDS: ImportLimits = ImportLimits { flows: 8, bytes: 20_000, segments: 16 };

#[derive(Arbitrary, Debug)]
struct Packet {
    /// Time stamp in microseconds; may be earlier than the previous one.
    time_us: u32,
    body: Body,
}

#[derive(Arbitrary, Debug)]
enum Body {
    /// A segment between two ends with sequence numbers near zero.
    Segment {
        is_answer: bool,
        flags: u8,
        sequence: i8,
        acknowledgement: i8,
        payload: Vec<u8>,
    },
    /// Arbitrary bytes after an IP header.
    Packet(Vec<u8>),
    Frame(Vec<u8>),
}

impl Body {
    fn bytes(self) -> (LinkType, Vec<u8>) {
        let ip = |is_answer: bool, transport: &[u8]| {
            let length = (20 + transport.len()).min(65_535) as u16;
            let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            for host in if is_answer { [2, 1] } else { [1, 2] } {
                packet.extend([10, 0, 0, host]);
            }
            packet.extend(transport);
            (LinkType::RAW, packet)
        };
        match self {
            Self::Segment { is_answer, flags, sequence, acknowledgement, payload } => {
                let ports: [u8; 4] = if is_answer { [0, 80, 4, 0] } else { [4, 0, 0, 80] };
                let mut segment = ports.to_vec();
                segment.extend(i32::from(sequence).to_be_bytes());
                segment.extend(i32::from(acknowledgement).to_be_bytes());
                segment.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
                segment.extend(payload);
                ip(is_answer, &segment)
            }
            Self::Packet(transport) => ip(false, &transport),
            Self::Frame(frame) => (LinkType::EN10MB, frame),
        }
    }
}

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(packets) = arbitrary_input::<Vec<Packet>>(input) else { return };
    let mut importer = Importer::new(BOUNDS);
    let mut captured = 0;
    for packet in packets {
        let timestamp = Instant::from_nanos(u64::from(packet.time_us) * 1_000);
        let (link_type, data) = packet.body.bytes();
        let length = data.len() as u32;
        let record = RecordHeader {
            timestamp,
            captured_length: length,
            original_length: length,
            link_type,
            interface: 0,
        };
        if let Err(error) = importer.take(&record, &data) {
            assert!(error.to_string().starts_with("packet "));
            break;
        }
        captured += data.len();
    }
    let imported = importer.finish();
    assert!(imported.flows.len() <= BOUNDS.flows);
    let mut payload_bytes = 0;
    for flow in imported.flows {
        let conversation = match flow {
            Ok(conversation) => conversation,
            Err(error) => {
                assert!(error.to_string().starts_with("packet "));
                continue;
            }
        };
        let mut is_over = [false; 2];
        let mut is_reset = false;
        for turn in conversation.turns {
            assert!(!is_reset && !is_over[turn.side as usize], "more behind the end");
            match turn.act {
                Action::Send(bytes) => {
                    payload_bytes += bytes.len();
                    assert!(!bytes.is_empty() || conversation.transport == Transport::Udp);
                }
                Action::Close => is_over[turn.side as usize] = true,
                Action::Reset => is_reset = true,
            }
        }
    }
    assert!(payload_bytes <= captured && payload_bytes <= BOUNDS.bytes);
}
