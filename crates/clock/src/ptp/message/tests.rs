use proptest::prelude::*;

use super::*;
use crate::ptp::identity::ClockIdentity;
use crate::ptp::time::Correction;
use crate::timestamp::Timestamp;

/// A Sync of ptp4l 3.1.1, padded to the least length of an Ethernet frame.
const SYNC: &str = "00 02 00 2c 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 \
                    02 57 53 ff fe 00 00 00 00 01 00 07 00 00 \
                    00 00 00 00 00 00 00 00 00 00 00 00";

/// An Announce of a grandmaster with a primary reference, in domain 3.
const ANNOUNCE: &str = "0b 12 00 40 03 00 00 3c 00 00 00 00 00 00 00 00 00 00 00 00 \
                        02 57 53 ff fe 00 00 01 00 01 01 02 05 01 \
                        00 00 00 00 00 00 00 00 00 00 00 25 00 80 06 21 4e 5d 7f \
                        02 57 53 ff fe 00 00 01 00 00 20";

fn bytes(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn port(last: u8) -> PortIdentity {
    PortIdentity { clock: ClockIdentity::from_mac([2, 0x57, 0x53, 0, 0, last]), port: 1 }
}

#[test]
fn sync_of_ptp4l_is_read_without_its_padding() {
    let Message { header, body } = Message::read(&bytes(SYNC)).unwrap();
    assert_eq!(header.source, port(0));
    assert_eq!((header.sequence, header.log_interval, header.domain), (7, 0, 0));
    assert!(header.flags.has(Flags::TWO_STEP) && !header.flags.has(Flags::UNICAST));
    assert_eq!(body, Body::Sync { origin: PtpTime::default() });
}

#[test]
fn announce_is_read_and_written() {
    let message = Message::read(&bytes(ANNOUNCE)).unwrap();
    assert_eq!(message.header.domain, 3);
    let timescale = Flags::PTP_TIMESCALE.with(Flags::UTC_OFFSET_VALID).with(Flags::TIME_TRACEABLE);
    assert!(message.header.flags.has(timescale));
    let Body::Announce(announce) = &message.body else { panic!("{message:?}") };
    assert_eq!((announce.utc_offset, announce.priority1, announce.priority2), (37, 128, 127));
    assert_eq!((announce.clock_class, announce.accuracy, announce.variance), (6, 0x21, 0x4e5d));
    assert_eq!((announce.grandmaster, announce.time_source), (port(1).clock, 0x20));
    assert_eq!(message.to_bytes(), bytes(ANNOUNCE));
}

#[test]
fn broken_headers_are_refused() {
    let good = bytes(SYNC);
    let with = |position: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[position] = value;
        Message::read(&bytes)
    };
    assert_eq!(with(1, 1), Err(MessageError::Version(1)));
    assert_eq!(with(0, 0x10), Err(MessageError::SdoId(0x100)), "gPTP");
    assert_eq!(with(3, 47), Err(MessageError::Length { length: 46, stated: 47 }));
    assert_eq!(with(3, 33), Err(MessageError::Length { length: 46, stated: 33 }));
    assert_eq!(with(3, 43), Err(MessageError::Short { length: 46, expected: 44 }));
    assert_eq!(with(40, 0xff), Err(MessageError::Time));
    assert_eq!(Message::read(&[]), Err(MessageError::Short { length: 0, expected: 34 }));
    // The default filler of test frames.
    assert!(Message::read(&[b'X'; 64]).is_err());
}

#[test]
fn extensions_are_bounded_and_unknown_ones_are_passed_over() {
    let tlvs = vec![Tlv::Request { kind: MessageType::Sync, log_interval: -3, seconds: 60 }];
    let body = Body::Signaling { target: PortIdentity::ALL, tlvs: tlvs.clone() };
    let header = Message::read(&bytes(SYNC)).unwrap().header;
    let mut message = Message { header, body }.to_bytes();
    // An organization extension with 2 bytes.
    message.extend([0, 3, 0, 2, 1, 2]);
    message[3] = message.len() as u8;
    let Body::Signaling { tlvs: read, .. } = Message::read(&message).unwrap().body else {
        panic!("no Signaling");
    };
    assert_eq!(read, tlvs);
    message.truncate(message.len() - 1);
    message[3] = message.len() as u8;
    assert_eq!(Message::read(&message), Err(MessageError::Tlv));
    let many = Body::Signaling { target: PortIdentity::ALL, tlvs: [tlvs[0]; 17].to_vec() };
    assert_eq!(Message::read(&Message { header, body: many }.to_bytes()), Err(MessageError::Tlv));
}

fn any_kind() -> impl Strategy<Value = MessageType> {
    (0_u8..16).prop_map(MessageType::from_bits)
}

fn any_port() -> impl Strategy<Value = PortIdentity> {
    any::<([u8; 8], u16)>()
        .prop_map(|(clock, port)| PortIdentity { clock: ClockIdentity(clock), port })
}

fn any_time() -> impl Strategy<Value = PtpTime> {
    (0..=i64::MAX).prop_map(|nanos| PtpTime::from_timestamp(Timestamp::from_nanos(nanos)))
}

fn any_tlv() -> impl Strategy<Value = Tlv> {
    (0..4, any_kind(), any::<i8>(), any::<u32>()).prop_map(
        |(which, kind, log_interval, seconds)| match which {
            0 => Tlv::Request { kind, log_interval, seconds },
            1 => Tlv::Grant { kind, log_interval, seconds },
            2 => Tlv::Cancel { kind },
            _ => Tlv::AcknowledgeCancel { kind },
        },
    )
}

fn any_announce() -> impl Strategy<Value = Announce> {
    let clock = any::<(i16, u8, u8, u8, u16, u8)>();
    (any_time(), clock, any_port(), any::<u16>(), any::<u8>()).prop_map(
        |(origin, clock, grandmaster, steps_removed, time_source)| {
            let (utc_offset, priority1, clock_class, accuracy, variance, priority2) = clock;
            let grandmaster = grandmaster.clock;
            Announce {
                origin,
                utc_offset,
                priority1,
                clock_class,
                accuracy,
                variance,
                priority2,
                grandmaster,
                steps_removed,
                time_source,
            }
        },
    )
}

fn any_body() -> impl Strategy<Value = Body> {
    let data = prop::collection::vec(any::<u8>(), 0..64);
    prop_oneof![
        any_announce().prop_map(Body::Announce),
        any_time().prop_map(|origin| Body::Sync { origin }),
        any_time().prop_map(|origin| Body::FollowUp { origin }),
        any_time().prop_map(|origin| Body::DelayReq { origin }),
        (any_time(), any_port())
            .prop_map(|(receive, requesting)| Body::DelayResp { receive, requesting }),
        (any_port(), prop::collection::vec(any_tlv(), 0..=TLVS_MAX))
            .prop_map(|(target, tlvs)| Body::Signaling { target, tlvs }),
        (any_port(), any::<u16>(), data).prop_map(|(target, id, data)| {
            let (action, id) = (ManagementAction::Response, Some(ManagementId(id)));
            Body::Management(Management { target, action, id, data })
        }),
    ]
}

/// Any message that can be written.
pub(in crate::ptp) fn any_message() -> impl Strategy<Value = Message> {
    let numbers = any::<(u8, u16, i64, u16, i8)>();
    (numbers, any_port(), any_body()).prop_map(|(numbers, source, body)| {
        let (domain, flags, correction, sequence, log_interval) = numbers;
        let (flags, correction) = (Flags(flags), Correction(correction));
        let header = Header { domain, flags, correction, source, sequence, log_interval };
        Message { header, body }
    })
}

proptest! {
    #[test]
    fn messages_survive_the_wire(message in any_message(), padding in 0_usize..32) {
        let mut bytes = message.to_bytes();
        bytes.resize(bytes.len() + padding, 0);
        prop_assert_eq!(Message::read(&bytes), Ok(message));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        let _ = Message::read(&bytes);
    }

    #[test]
    fn any_damage_is_read_without_a_panic(
        message in any_message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = message.to_bytes();
        for (position, value) in damage {
            let position = position.index(bytes.len());
            bytes[position] = value;
        }
        let _ = Message::read(&bytes);
        let _ = Message::read(&bytes[..cut.index(bytes.len())]);
    }
}
