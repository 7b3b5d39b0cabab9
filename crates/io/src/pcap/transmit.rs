//! A transmit port that writes a capture file.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;
use wirestorm_wire::capture::{LinkType, PcapWriter, RECORD_LENGTH_MAX, Resolution};

/// Number of frame buffers: the maximum number of frames between two flushes.
const FRAMES: usize = 256;

/// Writes frames to a pcap file with nanosecond time stamps. The time stamp is the departure time
/// in nanoseconds since the Unix epoch. A frame without a departure time gets the time stamp of the
/// previous frame.
///
/// After an error, such as a full disk, the file ends with the last complete record.
#[derive(Debug)]
pub struct PcapTransmit {
    path: PathBuf,
    file: File,
    /// Length of the complete records in the file, in bytes.
    length: u64,
    writer: PcapWriter,
    capabilities: Capabilities,
    free: Vec<u32>,
    frames: Vec<Vec<u8>>,
    /// Encoded records that the next flush writes.
    queued: Vec<u8>,
    queued_departures: Vec<Instant>,
    queued_bytes: u64,
    /// Time stamp of the previous record.
    stamp_before: Instant,
    counters: TransmitCounters,
    departures: DepartureRecord,
}

impl PcapTransmit {
    /// Creates or truncates the file. The first flush writes the header.
    ///
    /// # Errors
    /// The error of `open(2)`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let writer =
            PcapWriter { resolution: Resolution::Nanoseconds, ..PcapWriter::new(LinkType::EN10MB) };
        Ok(Self {
            path: path.to_owned(),
            file: File::create(path)?,
            length: 0,
            writer,
            capabilities: Capabilities {
                frame_length_max: RECORD_LENGTH_MAX as usize,
                untagged_length_max: RECORD_LENGTH_MAX as usize,
                frames: FRAMES,
                burst: FRAMES,
                holds_departure: true,
                departure_stamp: StampPoint::Virtual,
                arrival_stamp: StampPoint::Virtual,
            },
            free: (0..FRAMES as u32).rev().collect(),
            frames: vec![Vec::new(); FRAMES],
            queued: Vec::new(),
            queued_departures: Vec::new(),
            queued_bytes: 0,
            stamp_before: Instant::ZERO,
            counters: TransmitCounters::default(),
            departures: DepartureRecord::default(),
        })
    }

    /// Writes the header if the file is empty.
    fn begin(&mut self) -> io::Result<()> {
        if self.length == 0 {
            let header = self.writer.header();
            self.file.write_all(&header)?;
            self.length = header.len() as u64;
        }
        Ok(())
    }
}

impl Transmit for PcapTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn take(&mut self) -> Option<FrameId> {
        self.free.pop().map(FrameId::from_index)
    }

    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        let buffer = &mut self.frames[frame.index() as usize];
        // Allocate on first use: most captures never use most buffers.
        if buffer.is_empty() {
            buffer.resize(RECORD_LENGTH_MAX as usize, 0);
        }
        buffer
    }

    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.capabilities.assert_length(length);
        let data = &self.frames[frame.index() as usize][..length];
        let stamp = if departure == Instant::ZERO { self.stamp_before } else { departure };
        match self.writer.push_record(&mut self.queued, stamp, length as u32, data) {
            Ok(()) => {
                self.stamp_before = stamp;
                self.queued_departures.push(departure);
                self.queued_bytes += length as u64;
            }
            // pcap cannot store a time after the year 2106.
            Err(_) => self.counters.failed += 1,
        }
        self.free.push(frame.index());
    }

    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let written = self.begin().and_then(|()| self.file.write_all(&self.queued));
        let length = self.queued.len() as u64;
        self.queued.clear();
        let frames = self.queued_departures.len() as u64;
        let bytes = std::mem::take(&mut self.queued_bytes);
        let departures = self.queued_departures.drain(..);
        match written {
            Ok(()) => {
                self.departures.record_exact(departures);
                self.length += length;
                self.counters.sent += frames;
                self.counters.sent_bytes += bytes;
                Ok(())
            }
            Err(error) => {
                drop(departures);
                self.counters.failed += frames;
                // Restore the last complete record; a second failure cannot be repaired.
                let _ = self.file.set_len(self.length);
                let _ = self.file.seek(io::SeekFrom::Start(self.length));
                Err(PortError::System {
                    interface: self.path.display().to_string(),
                    operation: "writing the capture",
                    reason: error.to_string(),
                })
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.queued_departures.len()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn departures(&self) -> Option<DepartureRecord> {
        Some(self.departures.clone())
    }

    fn abort(&mut self) {
        self.counters.unsent += self.queued_departures.drain(..).len() as u64;
        self.queued_bytes = 0;
        self.queued.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::capture::Records;

    fn send(port: &mut PcapTransmit, data: &[u8], departure: u64) {
        let frame = port.take().unwrap();
        port.frame_mut(&frame)[..data.len()].copy_from_slice(data);
        port.send(frame, data.len(), Instant::from_nanos(departure));
    }

    #[test]
    fn each_frame_becomes_a_record_with_its_departure_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let mut port = PcapTransmit::create(&path).unwrap();
        send(&mut port, &[1; 60], 1_000_000_001);
        send(&mut port, &[2; 1514], 2_000_000_002);
        port.flush().unwrap();
        let file = std::fs::read(&path).unwrap();
        let records: Vec<_> = Records::new(&file).map(Result::unwrap).collect();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].0.timestamp, Instant::from_nanos(1_000_000_001));
        assert_eq!(records[1].1, [2; 1514]);
        assert_eq!(port.transmitted().sent_bytes, 1574);
    }

    #[test]
    fn frame_without_a_departure_time_gets_the_previous_time_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let mut port = PcapTransmit::create(&path).unwrap();
        // The port accepts decreasing time stamps.
        for departure in [0, 5_000, 0, 4_000, 0] {
            send(&mut port, &[1; 60], departure);
        }
        port.flush().unwrap();
        let file = std::fs::read(&path).unwrap();
        let stamps: Vec<_> =
            Records::new(&file).map(|record| record.unwrap().0.timestamp.as_nanos()).collect();
        assert_eq!(stamps, [0, 5_000, 5_000, 4_000, 4_000]);
        assert_eq!(port.departures().unwrap().frames, 2);
    }

    #[test]
    fn full_disk_is_an_error_and_counts_the_frames_as_failed() {
        let mut port = PcapTransmit::create(Path::new("/dev/full")).unwrap();
        send(&mut port, &[1; 60], 1);
        let error = port.flush().unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
        assert_eq!(port.transmitted().failed, 1);
        assert_eq!(port.departures().unwrap().frames, 0);
        assert_eq!(port.in_flight(), 0);
    }

    #[test]
    fn empty_capture_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let mut port = PcapTransmit::create(&path).unwrap();
        send(&mut port, &[1; 60], 1);
        port.abort();
        port.flush().unwrap();
        assert_eq!(Records::new(&std::fs::read(&path).unwrap()).count(), 0);
    }
}
