//! Reads single frames of a capture.

use std::ops::ControlFlow;
use std::path::Path;

use wirestorm_base::count::pluralise;
use wirestorm_wire::capture::RecordHeader;
use wirestorm_wire::capture::link::ethernet_conversion;

use super::records;
use crate::files::Files;

/// Returns packet `number`, from 1, as an Ethernet frame without FCS. The error names the file.
pub(super) fn frame(files: &dyn Files, path: &Path, number: u64) -> Result<Vec<u8>, String> {
    let name = files.name(path);
    let mut packets = 0;
    let found = records::for_each(files, path, |record, data| {
        packets += 1;
        if packets < number {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(ethernet(record, data))
    })?;
    match found {
        Some(frame) => frame.map_err(|reason| format!("{name}: packet {number}: {reason}")),
        None => Err(format!(
            "{name}: found {}, expected {number} or more",
            pluralise(packets, "packet", "packets")
        )),
    }
}

/// Returns the Ethernet frame of a record. If the record has no Ethernet header, the addresses are
/// zero.
fn ethernet(record: &RecordHeader, data: &[u8]) -> Result<Vec<u8>, String> {
    if record.captured_length < record.original_length {
        let (found, expected) = (record.captured_length, record.original_length);
        return Err(format!("found {found} of its {expected} bytes, expected all"));
    }
    let conversion =
        ethernet_conversion(record.link_type, data).map_err(|error| error.to_string())?;
    let rest = data.get(conversion.strip..).unwrap_or_default();
    Ok(match conversion.ethertype {
        None => rest.to_vec(),
        Some(ethertype) => [&[0; 12][..], &ethertype.to_be_bytes(), rest].concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Entry, NoFiles};
    use std::io::{self, Read};
    use std::path::PathBuf;
    use wirestorm_wire::capture::{LinkType, PcapWriter};

    /// Builds a capture from packets and their original lengths.
    fn capture(link: LinkType, packets: &[(&[u8], u32)]) -> Vec<u8> {
        let writer = PcapWriter::new(link);
        let mut file = Vec::new();
        writer.push_header(&mut file);
        for (data, length) in packets {
            writer.push_record(&mut file, Default::default(), *length, data).unwrap();
        }
        file
    }

    /// One capture, whatever its path.
    #[derive(Debug)]
    struct OneFile(Vec<u8>);

    impl Files for OneFile {
        fn open(&self, _: &Path) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(io::Cursor::new(self.0.clone())))
        }

        fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
            self.open(path)
        }

        fn entry(&self, path: &Path) -> io::Result<Entry> {
            NoFiles.entry(path)
        }

        fn output(&self, path: &Path) -> io::Result<PathBuf> {
            NoFiles.output(path)
        }
    }

    fn read(file: &[u8], number: u64) -> Result<Vec<u8>, String> {
        frame(&OneFile(file.to_vec()), Path::new("a.pcap"), number)
    }

    #[test]
    fn packet_is_selected_by_number() {
        let first = [1; 60];
        let last = vec![2; 90_000];
        let file = capture(LinkType::EN10MB, &[(&first, 60), (&[7; 64], 1_514), (&last, 90_000)]);
        assert_eq!(read(&file, 1), Ok(first.to_vec()));
        assert_eq!(read(&file, 3), Ok(last));
        let error = "a.pcap: packet 2: found 64 of its 1514 bytes, expected all";
        assert_eq!(read(&file, 2), Err(error.into()));
        let error = "a.pcap: found 3 packets, expected 4 or more";
        assert_eq!(read(&file, 4), Err(error.into()));
    }

    #[test]
    fn packet_without_ethernet_header_gets_zero_addresses() {
        let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let file = capture(LinkType::RAW, &[(&packet, 20)]);
        let expected = [&[0; 12][..], &[8, 0], &packet].concat();
        assert_eq!(read(&file, 1), Ok(expected));
    }

    #[test]
    fn unreadable_captures_are_reported() {
        let missing = frame(&NoFiles, Path::new("no/such.pcap"), 1).unwrap_err();
        assert!(missing.starts_with("no/such.pcap: cannot open:"), "{missing}");
        assert!(read(b"no capture at all", 1).unwrap_err().starts_with("a.pcap: "));
    }
}
