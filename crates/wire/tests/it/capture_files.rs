//! The capture decoder with valid and invalid files, complete and in pieces.

use proptest::prelude::*;
use wirestorm_base::time::Instant;
use wirestorm_wire::capture::{
    ByteOrder, CaptureError, Decoder, EncodeError, Format, LinkType, Magic, PacketDirection,
    PcapWriter, PcapngWriter, RECORD_LENGTH_MAX, RecordHeader, Resolution, Step,
};

use crate::common::{decode, decode_in_pieces};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// Builds pcapng files block by block, valid or not.
struct Blocks {
    order: ByteOrder,
    file: Vec<u8>,
}

impl Blocks {
    fn new(order: ByteOrder) -> Self {
        let mut file = Vec::new();
        PcapngWriter { order }.push_section(&mut file);
        Self { order, file }
    }

    fn number(&self, number: u32) -> [u8; 4] {
        match self.order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }

    fn half(&self, number: u16) -> [u8; 2] {
        match self.order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }

    fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let length = self.number(body.len().next_multiple_of(4) as u32 + 12);
        self.file.extend(self.number(kind));
        self.file.extend(length);
        self.file.extend(body);
        self.file.resize(self.file.len().next_multiple_of(4), 0);
        self.file.extend(length);
        self
    }

    fn interface(self, link_type: u16, snap_length: u32, options: &[(u16, &[u8])]) -> Self {
        let mut body = [self.half(link_type), [0; 2]].concat();
        body.extend(self.number(snap_length));
        for (code, value) in options {
            body.extend(self.half(*code));
            body.extend(self.half(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.block(1, &body)
    }

    fn packet(self, interface: u32, count: u64, original: u32, data: &[u8]) -> Self {
        let words = [interface, (count >> 32) as u32, count as u32, data.len() as u32, original];
        let mut body: Vec<u8> = words.iter().flat_map(|word| self.number(*word)).collect();
        body.extend(data);
        self.block(6, &body)
    }
}

fn pcap(packets: &[&[u8]]) -> Vec<u8> {
    let writer = PcapWriter::new(LinkType::EN10MB);
    let mut file = writer.header().to_vec();
    for (number, packet) in packets.iter().enumerate() {
        let time = Instant::from_nanos(1_000 + number as u64);
        writer.push_record(&mut file, time, packet.len() as u32, packet).unwrap();
    }
    file
}

fn pcapng(packets: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    let writer = PcapngWriter::new();
    writer.push_section(&mut file);
    writer.push_interface(&mut file, LinkType::EN10MB, 0, "veth0").unwrap();
    for (number, packet) in packets.iter().enumerate() {
        let time = Instant::from_nanos(1_000 + number as u64);
        writer.push_record(&mut file, 0, time, packet.len() as u32, packet).unwrap();
    }
    writer.push_statistics(&mut file, 0, Instant::ZERO, packets.len() as u64, 0);
    file
}

fn error(file: &[u8]) -> CaptureError {
    decode(file).error.unwrap_or_else(|| panic!("no error in {file:02x?}"))
}

#[test]
fn a_pcap_header_has_link_type_snap_length_and_fcs_length() {
    let writer = PcapWriter { snap_length: 96, ..PcapWriter::new(LinkType(0x5400_0001)) };
    let mut decoder = Decoder::new();
    assert_eq!(decoder.format(), None);
    assert_eq!(decoder.step(&writer.header(), true), Ok(Step::Skipped { consumed: 24 }));
    let [interface] = decoder.interfaces() else { panic!("one interface") };
    assert_eq!(interface.link_type, LinkType::EN10MB);
    assert_eq!((interface.snap_length, interface.fcs_length), (96, 10));
    let expected = Format::Pcap { order: ByteOrder::Little, resolution: Resolution::Nanoseconds };
    assert_eq!(decoder.format(), Some(expected));
    assert_eq!(decoder.step(&[], true), Ok(Step::End));
}

#[test]
fn a_snap_length_truncates_written_records() {
    let writer = PcapWriter { snap_length: 4, ..PcapWriter::new(LinkType::RAW) };
    let mut file = writer.header().to_vec();
    writer.push_record(&mut file, Instant::ZERO, 6, b"abcdef").unwrap();
    let (header, data) = &decode(&file).records[0];
    assert_eq!((header.captured_length, header.original_length, &data[..]), (4, 6, &b"abcd"[..]));
}

#[test]
fn a_captured_length_above_the_snap_length_is_tolerated() {
    let mut file =
        PcapWriter { snap_length: 4, ..PcapWriter::new(LinkType::RAW) }.header().to_vec();
    let writer = PcapWriter::new(LinkType::RAW);
    writer.push_record(&mut file, Instant::ZERO, 6, b"abcdef").unwrap();
    assert_eq!(decode(&file).records[0].1, b"abcdef");
}

#[test]
fn records_that_readers_reject_are_not_written() {
    let writer = PcapWriter { snap_length: 0, ..PcapWriter::new(LinkType::EN10MB) };
    let too_long = vec![0; RECORD_LENGTH_MAX as usize + 1];
    let length = too_long.len();
    let mut file = Vec::new();
    assert_eq!(
        writer.push_record(&mut file, Instant::ZERO, u32::MAX, &too_long),
        Err(EncodeError::RecordTooLong { length })
    );
    assert_eq!(
        writer.push_record(&mut file, Instant::MAX, 1, &[0]),
        Err(EncodeError::TimestampTooLate { seconds: u64::MAX / 1_000_000_000 })
    );
    let shorter = EncodeError::CapturedExceedsOriginal { captured: 2, original: 1 };
    assert_eq!(writer.push_record(&mut file, Instant::ZERO, 1, &[0; 2]), Err(shorter));
    let writer = PcapngWriter::new();
    assert_eq!(writer.push_record(&mut file, 0, Instant::ZERO, 1, &[0; 2]), Err(shorter));
    assert_eq!(file, []);
}

#[test]
fn direction_is_an_option_of_a_packet_block() {
    for (direction, flags) in [(PacketDirection::Inbound, 1), (PacketDirection::Outbound, 2)] {
        let mut file = pcapng(&[]);
        let (start, length) = (file.len(), 5);
        let writer = PcapngWriter::new();
        let time = Instant::from_nanos(7);
        writer.push_directed_record(&mut file, 0, time, length, b"abcde", direction).unwrap();
        // 28 bytes of header, the padded packet, the flags, and the end of the options.
        let options = [2, 0, 4, 0, flags, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(file[start + 36..start + 48], options);
        assert_eq!(file.len() - start, 28 + 8 + 12 + 4);
        assert_eq!(decode(&file).records[0].1, b"abcde");
    }
}

#[test]
fn a_record_above_the_maximum_length_is_an_error() {
    let writer = PcapWriter { snap_length: 0, ..PcapWriter::new(LinkType::EN10MB) };
    let mut file = writer.header().to_vec();
    let data = vec![7; RECORD_LENGTH_MAX as usize];
    writer.push_record(&mut file, Instant::ZERO, RECORD_LENGTH_MAX, &data).unwrap();
    assert_eq!(decode_in_pieces(&file, &[100_000]).records.len(), 1);
    let length = RECORD_LENGTH_MAX + 1;
    for (at, number) in [(24 + 8, length), (24 + 12, length)] {
        file[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    assert_eq!(error(&file), CaptureError::RecordTooLong { packet: 1, offset: 24, length });
}

#[test]
fn every_interface_of_a_section_has_its_own_link_type_and_clock() {
    for order in ORDERS {
        let minus_two = match order {
            ByteOrder::Little => (-2_i64).to_le_bytes(),
            ByteOrder::Big => (-2_i64).to_be_bytes(),
        };
        let blocks = Blocks::new(order)
            .interface(1, 0, &[])
            .interface(101, 0, &[(9, &[9])])
            .interface(113, 0, &[(2, b"eth0"), (9, &[3]), (0, &[])])
            .interface(276, 0, &[(9, &[12])])
            .interface(1, 0, &[(9, &[0x80 | 10])])
            .interface(1, 0, &[(9, &[9]), (14, &minus_two)])
            .interface(1, 0, &[(9, &[0])]);
        let times = [
            (0, 1, 1_000),
            (1, 5_000_000_000, 5_000_000_000),
            (2, 7, 7_000_000),
            (3, 7_999, 7),
            (4, 1_536, 1_500_000_000),
            (5, 5_000_000_000, 3_000_000_000),
            (6, 3, 3_000_000_000),
            // Times saturate at the limits of `Instant`.
            (6, u64::MAX, u64::MAX),
            (5, 1, 0),
        ];
        let blocks = times.iter().fold(blocks, |blocks, (interface, count, _)| {
            blocks.packet(*interface, *count, 3, b"abc")
        });
        let decoded = decode(&blocks.file);
        assert_eq!(decoded.error, None);
        let found: Vec<_> = decoded
            .records
            .iter()
            .map(|(header, _)| (header.interface, header.timestamp.as_nanos(), header.link_type.0))
            .collect();
        let expected: Vec<_> = times
            .iter()
            .map(|(interface, _, time)| {
                (*interface, *time, [1, 101, 113, 276, 1, 1, 1][*interface as usize])
            })
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_new_section_has_new_interfaces_and_its_own_byte_order() {
    let first = Blocks::new(ByteOrder::Little).interface(1, 0, &[]).packet(0, 1, 1, b"a");
    let second = Blocks::new(ByteOrder::Big).interface(101, 0, &[]).packet(0, 2, 1, b"b");
    let orphan = Blocks::new(ByteOrder::Little);
    let offset = (first.file.len() + second.file.len() + orphan.file.len()) as u64;
    let orphan = orphan.packet(0, 3, 1, b"c");
    let decoded = decode(&[first.file, second.file, orphan.file].concat());
    let links: Vec<_> = decoded.records.iter().map(|(header, _)| header.link_type).collect();
    assert_eq!(links, [LinkType::EN10MB, LinkType::RAW]);
    assert_eq!(decoded.error, Some(CaptureError::PacketBeforeInterface { packet: 3, offset }));
}

#[test]
fn simple_and_obsolete_packets_are_read_and_other_blocks_skipped() {
    for order in ORDERS {
        let blocks = Blocks::new(order).interface(1, 4, &[]);
        let simple = [&blocks.number(6)[..], b"abcd"].concat();
        let mut obsolete = [blocks.half(0), blocks.half(9)].concat();
        for word in [0, 7, 2, 60] {
            obsolete.extend(blocks.number(word));
        }
        obsolete.extend(b"xy");
        let decoded = decode_in_pieces(
            &blocks
                .block(0x0bad, &[1; 1_000])
                .block(3, &simple)
                .block(4, &[0; 4])
                .block(5, &[0; 12])
                .block(2, &obsolete)
                .file,
            &[5],
        );
        assert_eq!(decoded.error, None);
        let (first, second) = (&decoded.records[0], &decoded.records[1]);
        assert_eq!((first.0.captured_length, first.0.original_length), (4, 6));
        assert_eq!((&first.1[..], first.0.timestamp), (&b"abcd"[..], Instant::ZERO));
        assert_eq!((second.0.captured_length, second.0.original_length), (2, 60));
        assert_eq!(second.0.timestamp, Instant::from_nanos(7_000));
        assert_eq!(second.1, b"xy");
    }
}

#[test]
fn an_interface_has_its_fcs_length() {
    for (written, expected) in [(4, 4), (32, 4), (16, 2), (0, 0)] {
        let file = Blocks::new(ByteOrder::Little).interface(1, 0, &[(13, &[written])]).file;
        let mut decoder = Decoder::new();
        let Ok(Step::Skipped { consumed }) = decoder.step(&file, true) else { panic!("a section") };
        assert!(matches!(decoder.step(&file[consumed..], true), Ok(Step::Skipped { .. })));
        assert_eq!(decoder.interfaces()[0].fcs_length, expected);
    }
}

#[test]
fn other_formats_are_named_in_the_error() {
    assert_eq!(error(&[]), CaptureError::Empty);
    for (start, name) in [
        (&[0x1f, 0x8b, 8, 0][..], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh9", "bzip2"),
        (b"snoop\0\0\0", "snoop"),
        (b"GMBU", "Microsoft Network Monitor"),
        (&[0xac, 0x01, 0x00, 0x1c], "IXIA pcap"),
    ] {
        for padding in [0, 40] {
            let found = error(&[start, &vec![0; padding]].concat());
            assert!(
                matches!(found, CaptureError::UnsupportedFormat { name: found, .. } if found == name),
                "{start:02x?}: {found:?}"
            );
        }
    }
    let text = error(b"hello, world, how are you?");
    assert_eq!(text, CaptureError::UnknownMagic { magic: Magic(*b"hell") });
    assert!(text.to_string().contains("68 65 6c 6c"), "{text}");
    assert_eq!(error(b"ab"), CaptureError::UnknownMagic { magic: Magic(*b"ab\0\0") });
}

#[test]
fn an_unknown_version_is_an_error() {
    let mut file = pcap(&[]);
    file[6] = 5;
    assert!(matches!(error(&file), CaptureError::UnsupportedVersion { major: 2, minor: 5, .. }));
    let mut file = pcapng(&[]);
    file[12] = 2;
    assert!(matches!(error(&file), CaptureError::UnsupportedVersion { major: 2, minor: 0, .. }));
    file[12..16].copy_from_slice(&[1, 0, 2, 0]);
    assert_eq!(decode(&file).error, None);
}

#[test]
fn a_truncated_file_delivers_its_complete_records() {
    for file in [pcap(&[b"one", b"", b"three"]), pcapng(&[b"one", b"", b"three"])] {
        let complete = decode(&file);
        assert_eq!((complete.error, complete.records.len()), (None, 3));
        for length in 1..file.len() {
            let cut = decode(&file[..length]);
            assert_eq!(cut.records, complete.records[..cut.records.len()]);
            match cut.error {
                // At a boundary of records or blocks nothing is missing.
                None => assert_eq!(cut.position, length as u64),
                Some(CaptureError::TruncatedRecord { packet, offset, found, expected }) => {
                    assert_eq!(packet, cut.records.len() as u64 + 1);
                    assert_eq!((offset, offset + found), (cut.position, length as u64));
                    assert!(expected > found);
                }
                Some(CaptureError::TruncatedBlock { offset, found, expected, .. }) => {
                    assert_eq!(offset + found, length as u64);
                    assert!(expected > found);
                }
                Some(CaptureError::TruncatedFileHeader { found, expected: 24 }) => {
                    assert_eq!(found, length as u64);
                    assert!(length < 24);
                }
                Some(CaptureError::UnknownMagic { .. }) => assert!(length < 4),
                Some(other) => panic!("{length} bytes: {other}"),
            }
        }
    }
}

#[test]
fn a_truncated_record_is_named_by_packet_and_offset() {
    let mut file = pcap(&[b"abcd", b"efgh"]);
    file.pop();
    let message = error(&file).to_string();
    assert!(
        message.starts_with("packet 2 at byte 44: the file ends after 19 of its 20 bytes"),
        "{message}"
    );
}

/// Returns the bytes and the original length of each record. Checks that decoding in pieces has the
/// same result.
fn contents(file: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let complete = decode(file);
    assert_eq!(complete.error, None);
    assert_eq!(decode_in_pieces(file, &[1]).records, complete.records);
    let content =
        |(header, bytes): &(RecordHeader, Vec<u8>)| (bytes.clone(), header.original_length);
    complete.records.iter().map(content).collect()
}

#[test]
fn a_captured_length_above_the_original_length_counts_for_both() {
    let expected = [(b"abcd".to_vec(), 4), (b"efgh".to_vec(), 4)];
    let mut file = pcap(&[b"abcd", b"efgh"]);
    file[24 + 12] = 3;
    assert_eq!(contents(&file), expected);
    let blocks = Blocks::new(ByteOrder::Little).interface(1, 0, &[]);
    let blocks = blocks.packet(0, 0, 3, b"abcd").packet(0, 0, 4, b"efgh");
    assert_eq!(contents(&blocks.file), expected);
}

#[test]
fn early_pcap_versions_have_the_lengths_exchanged() {
    // Four captured bytes of 60, and two of two.
    let file = |version: [u16; 2], is_exchanged: bool| {
        let writer = PcapWriter::new(LinkType::EN10MB);
        let mut file = writer.header().to_vec();
        file[4..6].copy_from_slice(&version[0].to_le_bytes());
        file[6..8].copy_from_slice(&version[1].to_le_bytes());
        for (original, bytes) in [(60, &b"abcd"[..]), (2, b"ef")] {
            let start = file.len();
            writer.push_record(&mut file, Instant::ZERO, original, bytes).unwrap();
            if is_exchanged {
                file[start + 8..start + 16].rotate_left(4);
            }
        }
        file
    };
    let expected = [(b"abcd".to_vec(), 60), (b"ef".to_vec(), 2)];
    for minor in 0..=2 {
        assert_eq!(contents(&file([2, minor], true)), expected, "2.{minor}");
    }
    assert_eq!(contents(&file([543, 0], true)), expected, "DG/UX");
    // Writers of 2.3 used either order.
    assert_eq!(contents(&file([2, 3], true)), expected);
    assert_eq!(contents(&file([2, 3], false)), expected);
    assert_eq!(contents(&file([2, 4], false)), expected);
}

#[test]
fn modified_pcap_has_longer_record_headers() {
    let mut file = pcap(&[b"abcd", b"efgh"]);
    file[..4].copy_from_slice(&0xa1b2_cd34_u32.to_le_bytes());
    for start in [44, 24] {
        file.splice(start + 16..start + 16, [0xee; 8]);
    }
    assert_eq!(contents(&file), [(b"abcd".to_vec(), 4), (b"efgh".to_vec(), 4)]);
    file.pop();
    let expected = CaptureError::TruncatedRecord { packet: 2, offset: 52, found: 27, expected: 28 };
    assert_eq!(error(&file), expected);
}

/// Returns an ERF record with the type `kind`, the wire length and the bytes behind the header.
fn erf(kind: u8, wire_length: u16, body: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, 0, 0x80, 0x80, 0, 0x92, 0x65, kind, 4];
    record.extend((16 + body.len() as u16).to_be_bytes());
    record.extend([0, 0]);
    record.extend(wire_length.to_be_bytes());
    record.extend(body);
    record
}

#[test]
fn erf_records_become_frames_without_fcs_and_padding() {
    let frame = [7_u8; 60];
    let padded = |before: &[u8]| [before, &frame[..], &[0xfc; 10]].concat();
    let records = [
        // A frame of 60 bytes with its FCS and two bytes of padding.
        erf(2, 64, &padded(&[0, 0])),
        // Two extension headers.
        erf(2 | 0x80, 64, &padded(&[&[0x83; 8][..], &[3; 8], &[0, 0]].concat())),
        // Padding and metadata records.
        erf(48, 0, &[0; 8]),
        erf(27, 40, &[1; 40]),
        // Truncated to 40 bytes.
        erf(11, 1518, &[&[0, 0][..], &[9; 40]].concat()),
        // IPv4 without a link layer.
        erf(22, 20, &[0x45; 24]),
        // Another record type.
        erf(5, 64, &[5; 24]),
    ];
    let file = records.concat();
    let expected = [
        (frame.to_vec(), 60),
        (frame.to_vec(), 60),
        (vec![9; 40], 1514),
        (vec![0x45; 20], 20),
        (vec![5; 24], 64),
    ];
    assert_eq!(contents(&file), expected);
    let decoded = decode(&file);
    let link_types: Vec<_> = decoded.records.iter().map(|(header, _)| header.link_type).collect();
    let ethernet = LinkType::EN10MB;
    assert_eq!(link_types, [ethernet, ethernet, ethernet, LinkType::RAW, LinkType::ERF]);
    // Half a second after 2024-01-01.
    let time = decoded.records[0].0.timestamp.as_nanos();
    assert_eq!(time, 1_704_067_200_500_000_000);
}

#[test]
fn truncated_or_contradictory_erf_records_are_errors() {
    let mut file = [erf(2, 64, &[0; 64]), erf(2, 64, &[0; 64])].concat();
    file.pop();
    let expected = CaptureError::TruncatedRecord { packet: 2, offset: 80, found: 79, expected: 80 };
    assert_eq!(error(&file), expected);
    assert_eq!(decode(&file).records.len(), 1);
    let short = [erf(2, 64, &[0; 64]), erf(2, 64, &[])].concat();
    let (packet, offset) = (2, 80);
    let expected = CaptureError::RecordTooShort { packet, offset, length: 16, minimum: 18 };
    assert_eq!(error(&short), expected);
    let endless = [erf(2, 64, &[0; 64]), erf(0x82, 64, &[0xff; 64])].concat();
    assert!(matches!(error(&endless), CaptureError::RecordTooShort { packet: 2, .. }));
}

#[test]
fn lengths_that_contradict_each_other_are_errors() {
    let good = || Blocks::new(ByteOrder::Little).interface(1, 0, &[]).packet(0, 0, 4, b"abcd");
    let at = good().file.len() - 36;
    let offset = at as u64;
    let with = |position: usize, number: u32| {
        let mut file = good().file;
        file[at + position..at + position + 4].copy_from_slice(&number.to_le_bytes());
        error(&file)
    };
    let (packet, captured, length) = (1, 8, 36);
    let mut file = good().file;
    file[at + 20] = 8;
    file[at + 24] = 8;
    assert_eq!(
        error(&file),
        CaptureError::RecordExceedsBlock { packet, offset, captured, room: 4 }
    );
    assert_eq!(
        with(8, 1),
        CaptureError::UnknownInterface { packet, offset, interface: 1, described: 1 }
    );
    for bad in [0, 4, 28, 37, 16 * 1024 * 1024 + 4, u32::MAX] {
        assert_eq!(
            with(4, bad),
            CaptureError::BadBlockLength {
                offset,
                block_type: 6,
                packets: 0,
                length: bad,
                minimum: 32
            }
        );
    }
    assert_eq!(
        with(32, 40),
        CaptureError::TrailingLengthMismatch {
            offset,
            block_type: 6,
            packets: 0,
            length,
            trailing: 40
        }
    );
}

#[test]
fn a_skipped_block_is_checked_at_its_end() {
    let mut file = Blocks::new(ByteOrder::Big).block(0x0bad, &[0; 40]).file;
    *file.last_mut().unwrap() ^= 1;
    let complete = decode(&file);
    assert!(matches!(complete.error, Some(CaptureError::TrailingLengthMismatch { .. })));
    assert_eq!(decode_in_pieces(&file, &[3]).error, complete.error);
}

#[test]
fn a_section_without_a_byte_order_is_an_error() {
    let mut file = pcapng(&[]);
    file[8] = 0;
    let magic = Magic([0, 0x3c, 0x2b, 0x1a]);
    assert_eq!(error(&file), CaptureError::BadByteOrder { offset: 0, magic });
}

#[test]
fn a_resolution_beyond_64_bits_is_an_error() {
    for (option, base, maximum) in [(20, 10, 19), (0x80 | 64, 2, 63), (0xff, 2, 63)] {
        let file = Blocks::new(ByteOrder::Little).interface(1, 0, &[(9, &[option])]).file;
        let exponent = option & 0x7f;
        let expected = CaptureError::UnsupportedResolution {
            offset: 28,
            interface: 0,
            base,
            exponent,
            maximum,
        };
        assert_eq!(error(&file), expected);
    }
}

#[test]
fn broken_options_of_an_interface_are_errors() {
    for (code, length) in [(9, 2), (13, 0), (14, 4), (2, 40_000)] {
        let mut file = Blocks::new(ByteOrder::Little).interface(1, 0, &[(code, &[0; 4])]).file;
        let at = file.len() - 12 + 2;
        file[at..at + 2].copy_from_slice(&(length as u16).to_le_bytes());
        assert!(
            matches!(error(&file), CaptureError::BadOption { code: found, .. } if found == code),
            "option {code}"
        );
    }
}

#[test]
fn the_number_of_interfaces_is_bounded() {
    let many =
        (0..65_536).fold(Blocks::new(ByteOrder::Little), |blocks, _| blocks.interface(1, 0, &[]));
    assert_eq!(decode(&many.file).error, None);
    let offset = many.file.len() as u64;
    let one_more = many.interface(1, 0, &[]).file;
    assert_eq!(error(&one_more), CaptureError::TooManyInterfaces { offset });
}

#[test]
fn time_may_go_backwards_and_a_fraction_may_exceed_a_second() {
    let writer =
        PcapWriter { resolution: Resolution::Microseconds, ..PcapWriter::new(LinkType::RAW) };
    let mut file = writer.header().to_vec();
    for [seconds, fraction] in [[5_u32, 0_u32], [1, 466_743_000]] {
        file.extend([seconds, fraction, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    }
    let decoded = decode(&file);
    assert_eq!(decoded.error, None);
    let times: Vec<_> = decoded.records.iter().map(|record| record.0.timestamp).collect();
    assert_eq!(times, [5_000_000_000, 467_743_000_000].map(Instant::from_nanos));
}

/// First bytes of valid and invalid files.
const STARTS: [&[u8]; 4] = [
    &[],
    &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
    &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4],
    &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
];

prop_compose! {
    fn any_packet()(
        nanoseconds in 0..4_000_000_000_000_000_000_u64,
        cut in 0..200_u32,
        data in prop::collection::vec(any::<u8>(), 0..80),
    ) -> (u64, u32, Vec<u8>) {
        (nanoseconds, data.len() as u32 + cut, data)
    }
}

fn any_order() -> impl Strategy<Value = ByteOrder> {
    prop::sample::select(&ORDERS)
}

/// Valid files with a few bytes changed.
fn damaged_file() -> impl Strategy<Value = Vec<u8>> {
    let packets = prop::collection::vec(any_packet(), 0..6);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (packets, any_order(), any::<bool>(), changes).prop_map(|(packets, order, ng, changes)| {
        let mut file = Vec::new();
        let pcap = PcapWriter { order, ..PcapWriter::new(LinkType::EN10MB) };
        let pcapng = PcapngWriter { order };
        if ng {
            pcapng.push_section(&mut file);
            pcapng.push_interface(&mut file, LinkType::RAW, 0, "lo").unwrap();
            pcapng.push_statistics(&mut file, 0, Instant::ZERO, 1, 2);
        } else {
            pcap.push_header(&mut file);
        }
        for (time, original, data) in &packets {
            let time = Instant::from_nanos(*time);
            if ng {
                pcapng.push_record(&mut file, 0, time, *original, data).unwrap();
            } else {
                pcap.push_record(&mut file, time, *original, data).unwrap();
            }
        }
        for (place, byte) in changes {
            *place.get_mut(&mut file) = byte;
        }
        file
    })
}

proptest! {
    #[test]
    fn pcap_round_trips(
        packets in prop::collection::vec(any_packet(), 0..8),
        order in any_order(),
        resolution in prop::sample::select(&[Resolution::Microseconds, Resolution::Nanoseconds]),
        link in 0..400_u32,
        pieces in prop::collection::vec(1..90_usize, 1..5),
    ) {
        let unit = if resolution == Resolution::Microseconds { 1_000 } else { 1 };
        let link_type = LinkType(link);
        let writer = PcapWriter { link_type, resolution, order, snap_length: 0 };
        let mut file = Vec::new();
        writer.push_header(&mut file);
        let mut expected = Vec::new();
        for (time, original_length, data) in packets {
            let time = Instant::from_nanos(time);
            writer.push_record(&mut file, time, original_length, &data).unwrap();
            let timestamp = Instant::from_nanos(time.as_nanos() / unit * unit);
            let captured_length = data.len() as u32;
            let header =
                RecordHeader { timestamp, captured_length, original_length, link_type, interface: 0 };
            expected.push((header, data));
        }
        let decoded = decode_in_pieces(&file, &pieces);
        prop_assert_eq!(decoded.error, None);
        prop_assert_eq!(decoded.records, expected);
        prop_assert_eq!(decoded.position, file.len() as u64);
    }

    #[test]
    fn pcapng_round_trips(
        packets in prop::collection::vec((any_packet(), 0..3_u32), 0..8),
        order in any_order(),
        pieces in prop::collection::vec(1..90_usize, 1..5),
    ) {
        let links = [LinkType::EN10MB, LinkType::RAW, LinkType::LINUX_SLL2];
        let writer = PcapngWriter { order };
        let mut file = Vec::new();
        writer.push_section(&mut file);
        for link_type in links {
            writer.push_interface(&mut file, link_type, 65_535, "some name").unwrap();
        }
        let mut expected = Vec::new();
        for ((time, original_length, data), interface) in packets {
            let timestamp = Instant::from_nanos(time);
            writer.push_record(&mut file, interface, timestamp, original_length, &data).unwrap();
            writer.push_statistics(&mut file, interface, timestamp, 1, 0);
            let captured_length = data.len() as u32;
            let link_type = links[interface as usize];
            let header =
                RecordHeader { timestamp, captured_length, original_length, link_type, interface };
            expected.push((header, data));
        }
        let decoded = decode_in_pieces(&file, &pieces);
        prop_assert_eq!(decoded.error, None);
        prop_assert_eq!(decoded.records, expected);
    }

    #[test]
    fn the_pieces_of_a_file_do_not_change_the_result(
        file in damaged_file(),
        pieces in prop::collection::vec(1..60_usize, 1..6),
    ) {
        let (pieces, complete) = (decode_in_pieces(&file, &pieces), decode(&file));
        prop_assert_eq!((pieces.records, pieces.error), (complete.records, complete.error));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        start in prop::sample::select(&STARTS),
        noise in prop::collection::vec(prop_oneof![Just(0_u8), 0..40_u8, any::<u8>()], 0..400),
        pieces in prop::collection::vec(1..60_usize, 1..6),
    ) {
        let file = [start, &noise].concat();
        let (pieces, complete) = (decode_in_pieces(&file, &pieces), decode(&file));
        prop_assert_eq!((pieces.records, pieces.error), (complete.records, complete.error));
    }
}
