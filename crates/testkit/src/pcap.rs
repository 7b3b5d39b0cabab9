//! Minimal writer and reader of capture files for the test kit: classic pcap in native byte order,
//! Ethernet, microseconds or nanoseconds.
//!
//! It shares no code with the codec under test. Format: draft-ietf-opsawg-pcap, sections 4 and 5.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const SNAPSHOT_LENGTH: u32 = 262_144;
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// Unit of the time stamps in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds, as most tools write.
    #[default]
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Resolution {
    const fn magic(self) -> u32 {
        match self {
            Self::Microseconds => MAGIC_MICROSECONDS,
            Self::Nanoseconds => MAGIC_NANOSECONDS,
        }
    }

    /// Number of nanoseconds in one unit.
    const fn nanoseconds(self) -> u64 {
        match self {
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// A frame and its arrival time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The frame without FCS.
    pub frame: Vec<u8>,
}

/// Writes a capture file packet by packet without buffering packets.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    resolution: Resolution,
}

impl<W: Write> Writer<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn new(mut to: W, resolution: Resolution) -> io::Result<Self> {
        let mut header = [0; FILE_HEADER_BYTES];
        header[0..4].copy_from_slice(&resolution.magic().to_ne_bytes());
        header[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        header[6..8].copy_from_slice(&4_u16.to_ne_bytes());
        header[16..20].copy_from_slice(&SNAPSHOT_LENGTH.to_ne_bytes());
        header[20..24].copy_from_slice(&LINKTYPE_ETHERNET.to_ne_bytes());
        to.write_all(&header)?;
        Ok(Self { to, resolution })
    }

    /// Writes one frame. The time is truncated to the file's resolution.
    ///
    /// # Errors
    /// The error of the writer; `InvalidInput` for a time or length above 32 bits.
    pub fn write(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        let beyond = |_| io::Error::new(io::ErrorKind::InvalidInput, "beyond a pcap's 32 bits");
        let seconds = u32::try_from(time / NANOSECONDS_PER_SECOND).map_err(beyond)?;
        let fraction = (time % NANOSECONDS_PER_SECOND / self.resolution.nanoseconds()) as u32;
        let length = u32::try_from(frame.len()).map_err(beyond)?;
        let mut header = [0; RECORD_HEADER_BYTES];
        header[0..4].copy_from_slice(&seconds.to_ne_bytes());
        header[4..8].copy_from_slice(&fraction.to_ne_bytes());
        header[8..12].copy_from_slice(&length.to_ne_bytes());
        header[12..16].copy_from_slice(&length.to_ne_bytes());
        self.to.write_all(&header)?;
        self.to.write_all(frame)
    }

    /// Flushes and returns the writer.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Reason why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A system call failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is not a classic pcap in native byte order with complete frames.
    #[error("{}: packet {packet}: {reason}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Number of the packet from 1; 0 for the file header.
        packet: u64,
        /// Description of the error.
        reason: String,
    },
}

/// Reads a whole capture file into memory.
///
/// # Errors
/// Fails if the file cannot be read, is not an Ethernet pcap in native byte order, or contains a
/// truncated frame: tests compare whole frames.
pub fn read(path: &Path) -> Result<Vec<Packet>, ReadError> {
    let io_error = |source| ReadError::Io { path: path.to_owned(), source };
    let format = |packet, reason: String| ReadError::Format { path: path.into(), packet, reason };
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(io_error)?);
    let mut header = [0; FILE_HEADER_BYTES];
    file.read_exact(&mut header).map_err(io_error)?;
    let unit = match word(&header, 0) {
        MAGIC_MICROSECONDS => Resolution::Microseconds.nanoseconds(),
        MAGIC_NANOSECONDS => Resolution::Nanoseconds.nanoseconds(),
        magic => return Err(format(0, format!("magic {magic:#x} is no pcap of this machine"))),
    };
    if word(&header, 20) & 0x0fff_ffff != LINKTYPE_ETHERNET {
        return Err(format(0, format!("link type {}, not Ethernet", word(&header, 20))));
    }
    let mut packets = Vec::new();
    let mut header = [0; RECORD_HEADER_BYTES];
    while read_whole(&mut file, &mut header).map_err(io_error)? {
        let number = packets.len() as u64 + 1;
        let (length, original) = (word(&header, 8), word(&header, 12));
        if length != original || length > SNAPSHOT_LENGTH {
            return Err(format(number, format!("{length} of {original} bytes were captured")));
        }
        let mut frame = vec![0; length as usize];
        file.read_exact(&mut frame).map_err(io_error)?;
        let fraction = u64::from(word(&header, 4)) * unit;
        let time = u64::from(word(&header, 0)) * NANOSECONDS_PER_SECOND + fraction;
        packets.push(Packet { time, frame });
    }
    Ok(packets)
}

/// Fills the buffer; returns `false` at a clean end of the file.
fn read_whole(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 if filled == 0 => return Ok(false),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    Ok(true)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_ne_bytes(word.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    fn written(resolution: Resolution, packets: &[Packet]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), resolution).unwrap();
        for packet in packets {
            writer.write(packet.time, &packet.frame).unwrap();
        }
        writer.finish().unwrap()
    }

    fn packet(time: u64, length: usize) -> Packet {
        Packet { time, frame: vec![7; length] }
    }

    #[test]
    fn written_packets_are_read_back() {
        let scratch = Scratch::new().unwrap();
        let packets = [packet(1_700_000_000_123_456_789, 60), packet(1_700_000_001_000_000_001, 1)];
        let path = scratch.file("nano.pcap");
        std::fs::write(&path, written(Resolution::Nanoseconds, &packets)).unwrap();
        assert_eq!(read(&path).unwrap(), packets);
        std::fs::write(&path, written(Resolution::Microseconds, &packets)).unwrap();
        assert_eq!(read(&path).unwrap()[0].time, 1_700_000_000_123_456_000);
    }

    #[test]
    fn file_that_ends_within_a_packet_is_an_error() {
        let scratch = Scratch::new().unwrap();
        let bytes = written(Resolution::Nanoseconds, &[packet(0, 60)]);
        let path = scratch.file("cut.pcap");
        for length in [0, 1, FILE_HEADER_BYTES + 1, FILE_HEADER_BYTES + 20, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(read(&path).is_err(), "cut to {length} bytes");
        }
    }
}
