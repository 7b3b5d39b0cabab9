//! A receive port that reads a capture file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
};
use wirestorm_wire::capture::{Decoder, LinkType, RECORD_LENGTH_MAX, Step};

/// Number of frame buffers.
const FRAMES: usize = 256;

/// Minimum number of bytes that one read requests.
const READ_BYTES: usize = 1 << 16;

/// Delivers the records of a pcap or pcapng file as frames that arrive at their time stamps.
///
/// If the file ends in the middle of a record, the port waits for the rest. So it can follow a file
/// that another program still writes, and it loses no frame.
#[derive(Debug)]
pub struct PcapReceive {
    path: PathBuf,
    file: File,
    decoder: Decoder,
    /// Bytes read from the file; those from `start` on are not decoded yet.
    bytes: Vec<u8>,
    start: usize,
    capabilities: Capabilities,
    free: Vec<u32>,
    frames: Vec<Vec<u8>>,
    counters: ReceiveCounters,
}

impl PcapReceive {
    /// Opens the file. The first call of `receive` reads and checks its contents.
    ///
    /// # Errors
    /// The error of `open(2)`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path)?,
            decoder: Decoder::new(),
            bytes: Vec::new(),
            start: 0,
            capabilities: Capabilities {
                frame_length_max: RECORD_LENGTH_MAX as usize,
                untagged_length_max: RECORD_LENGTH_MAX as usize,
                frames: FRAMES,
                burst: FRAMES,
                holds_departure: false,
                departure_stamp: StampPoint::Virtual,
                arrival_stamp: StampPoint::Virtual,
            },
            free: (0..FRAMES as u32).rev().collect(),
            frames: vec![Vec::new(); FRAMES],
            counters: ReceiveCounters::default(),
        })
    }

    /// Decodes the next record if it is complete and a buffer is free.
    fn next(&mut self) -> Result<Option<Received>, PortError> {
        let Some(&index) = self.free.last() else { return Ok(None) };
        loop {
            let input = &self.bytes[self.start..];
            match self.decoder.step(input, false).map_err(|error| self.error(&error))? {
                Step::Record { record, data, consumed } => {
                    if record.link_type != LinkType::EN10MB {
                        let reason = format!("link type {}; expected Ethernet", record.link_type.0);
                        return Err(self.error(&reason));
                    }
                    let frame = &mut self.frames[index as usize];
                    frame.clear();
                    frame.extend_from_slice(&input[data]);
                    self.start += consumed;
                    self.free.pop();
                    self.counters.received += 1;
                    self.counters.received_bytes += u64::from(record.original_length);
                    return Ok(Some(Received {
                        frame: FrameId::from_index(index),
                        length: record.captured_length as usize,
                        original_length: record.original_length as usize,
                        arrival: record.timestamp,
                        queue: 0,
                        offloads: Offloads::default(),
                    }));
                }
                Step::Skipped { consumed } => self.start += consumed,
                Step::NeedMore { at_least } => {
                    if !self.read(at_least)? {
                        return Ok(None);
                    }
                }
                // The decoder returns this only at the end of input, which this port never signals.
                Step::End => return Ok(None),
            }
        }
    }

    /// Reads until `at_least` undecoded bytes are buffered; returns `false` if the file has fewer.
    fn read(&mut self, at_least: usize) -> Result<bool, PortError> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let length = at_least.max(READ_BYTES).saturating_sub(self.bytes.len()) as u64;
        let read = (&self.file).take(length).read_to_end(&mut self.bytes);
        read.map_err(|error| self.error(&error))?;
        Ok(self.bytes.len() >= at_least)
    }

    fn error(&self, reason: &dyn ToString) -> PortError {
        PortError::System {
            interface: self.path.display().to_string(),
            operation: "reading the capture",
            reason: reason.to_string(),
        }
    }
}

impl Receive for PcapReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let before = batch.len();
        while batch.len() - before < room {
            match self.next() {
                Ok(Some(received)) => batch.push(received),
                Ok(None) => break,
                // Deliver the frames before the fault first; the next call returns the error.
                Err(_) if batch.len() > before => break,
                Err(error) => return Err(error),
            }
        }
        Ok(batch.len() - before)
    }

    fn frame(&self, received: &Received) -> &[u8] {
        &self.frames[received.frame.index() as usize]
    }

    fn release(&mut self, received: Received) {
        self.free.push(received.frame.index());
    }

    fn received(&self) -> ReceiveCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use wirestorm_base::time::Instant;
    use wirestorm_wire::capture::PcapWriter;

    /// A capture of 60-byte frames, one second apart; each byte holds the frame's number.
    fn capture(link_type: LinkType, frames: u8) -> Vec<u8> {
        let writer = PcapWriter::new(link_type);
        let mut file = writer.header().to_vec();
        for number in 1..=frames {
            let time = Instant::from_nanos(u64::from(number) * 1_000_000_000 + 7);
            writer.push_record(&mut file, time, 100, &[number; 60]).unwrap();
        }
        file
    }

    #[test]
    fn records_arrive_at_their_time_stamps_with_original_lengths() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&capture(LinkType::EN10MB, 3)).unwrap();
        let mut port = PcapReceive::open(file.path()).unwrap();
        let mut batch = Vec::new();
        assert_eq!(port.receive(64, &mut batch), Ok(3));
        for (received, number) in batch.iter().zip(1..) {
            assert_eq!(port.frame(received), [number; 60]);
            assert_eq!((received.length, received.original_length), (60, 100));
            let time = u64::from(number) * 1_000_000_000 + 7;
            assert_eq!(received.arrival, Instant::from_nanos(time));
        }
        let counters = port.received();
        assert_eq!((counters.received, counters.received_bytes, counters.rx_dropped), (3, 300, 0));
    }

    #[test]
    fn port_follows_a_file_that_is_still_written() {
        let bytes = capture(LinkType::EN10MB, 2);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut port = PcapReceive::open(file.path()).unwrap();
        let mut batch = Vec::new();
        for byte in &bytes[..bytes.len() - 1] {
            port.receive(64, &mut batch).unwrap();
            file.write_all(&[*byte]).unwrap();
        }
        assert_eq!((port.receive(64, &mut batch), batch.len()), (Ok(0), 1));
        file.write_all(&bytes[bytes.len() - 1..]).unwrap();
        assert_eq!((port.receive(64, &mut batch), batch.len()), (Ok(1), 2));
        assert_eq!(port.frame(&batch[1]), [2; 60]);
    }

    #[test]
    fn frames_stay_in_the_file_until_a_buffer_is_free() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        (file.write_all(&capture(LinkType::EN10MB, 255))).unwrap();
        file.write_all(&capture(LinkType::EN10MB, 10)[24..]).unwrap();
        let mut port = PcapReceive::open(file.path()).unwrap();
        let mut batch = Vec::new();
        assert_eq!(port.receive(1_000, &mut batch), Ok(FRAMES));
        assert_eq!(port.receive(1_000, &mut batch), Ok(0));
        batch.drain(..).for_each(|received| port.release(received));
        assert_eq!(port.receive(1_000, &mut batch), Ok(265 - FRAMES));
        assert_eq!(port.frame(&batch[8]), [10; 60]);
    }

    #[test]
    fn frames_before_a_corrupt_record_are_delivered_before_the_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&capture(LinkType::EN10MB, 1)).unwrap();
        file.write_all(&[0xff; 16]).unwrap();
        let mut port = PcapReceive::open(file.path()).unwrap();
        let mut batch = Vec::new();
        assert_eq!(port.receive(64, &mut batch), Ok(1));
        for _ in 0..2 {
            let error = port.receive(64, &mut batch).unwrap_err().to_string();
            assert!(error.contains("reading the capture failed"), "{error}");
        }
    }

    #[test]
    fn link_type_other_than_ethernet_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&capture(LinkType::RAW, 1)).unwrap();
        let mut port = PcapReceive::open(file.path()).unwrap();
        let error = port.receive(64, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("link type 101; expected Ethernet"), "{error}");
        assert_eq!(port.received(), ReceiveCounters::default());
    }
}
