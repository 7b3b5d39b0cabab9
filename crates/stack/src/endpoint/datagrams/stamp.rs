//! Time stamp at the start of a datagram.

use crate::tcp::now::Now;

/// Header: 0, a sequence number, microseconds modulo 2^32, and an identifier of the server.
///
/// It is `latency_header` of TRex's `udp_latency.cpp`, in network order.
pub(super) type Header = [u8; 12];

/// Start of each header.
const MAGIC: [u8; 2] = [0; 2];

/// Time stamp state of a flow.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    source: u32,
    clock: Clock,
}

/// Origin of the sent time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Nothing was sent, and no header was received.
    Open,
    /// This side sent first and uses its own clock.
    Local {
        /// Sequence number of the next datagram.
        sequence: u16,
    },
    /// The peer sent first; its last header is returned.
    Peer(Header),
}

impl Stamp {
    /// Creates the state of a new flow.
    pub(super) const fn new(source: u32) -> Self {
        Self { source, clock: Clock::Open }
    }

    /// Removes the header of a received datagram. Returns its departure time in microseconds modulo
    /// 2^32, and the rest; `None` without a header.
    pub(super) fn take<'a>(&mut self, data: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (header, behind) = data.split_first_chunk()?;
        let &[m0, m1, _, _, t0, t1, t2, t3, ..]: &Header = header;
        if [m0, m1] != MAGIC {
            return None;
        }
        match &mut self.clock {
            Clock::Local { .. } => {}
            clock => *clock = Clock::Peer(*header),
        }
        Some((u32::from_be_bytes([t0, t1, t2, t3]), behind))
    }

    /// Returns the header of the next datagram.
    pub(super) fn header(&self, now: Now) -> Header {
        let sequence = match self.clock {
            Clock::Peer(header) => return header,
            Clock::Local { sequence } => sequence,
            Clock::Open => 0,
        };
        let mut header = Header::default();
        header[..2].copy_from_slice(&MAGIC);
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header[4..8].copy_from_slice(&(now.micros as u32).to_be_bytes());
        header[8..].copy_from_slice(&self.source.to_be_bytes());
        header
    }

    /// Records that this datagram was sent, or was too long.
    pub(super) const fn go_on(&mut self) {
        self.clock = match self.clock {
            Clock::Open => Clock::Local { sequence: 1 },
            Clock::Local { sequence } => Clock::Local { sequence: sequence.wrapping_add(1) },
            Clock::Peer(header) => Clock::Peer(header),
        };
    }
}
