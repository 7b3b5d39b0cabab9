//! The time of departure before what a datagram says.

use crate::tcp::connection::Now;

/// Its header: 0, a sequence number, microseconds modulo 2^32, and a number of the flow's server.
///
/// That is `latency_header` of TRex's `udp_latency.cpp`, in network order.
pub(super) type Header = [u8; 12];

/// What headers begin with.
const MAGIC: [u8; 2] = [0; 2];

/// Whose time the datagrams of a flow have, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    source: u32,
    clock: Clock,
}

/// Whose time is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Nothing was sent yet, and nothing with a header has come.
    Open,
    /// Ours, as we have sent first.
    Own {
        /// Of the next datagram.
        sequence: u16,
    },
    /// The peer's, with this header last.
    Peer(Header),
}

impl Stamp {
    /// Of a flow in which nothing was said yet.
    pub(super) const fn new(source: u32) -> Self {
        Self { source, clock: Clock::Open }
    }

    /// Takes the header off a datagram that has come; returns when that left, in microseconds
    /// modulo 2^32, and what is behind. `None` where it has none.
    pub(super) fn take<'a>(&mut self, data: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (header, behind) = data.split_first_chunk()?;
        let &[m0, m1, _, _, t0, t1, t2, t3, ..]: &Header = header;
        if [m0, m1] != MAGIC {
            return None;
        }
        match &mut self.clock {
            Clock::Own { .. } => {}
            clock => *clock = Clock::Peer(*header),
        }
        Some((u32::from_be_bytes([t0, t1, t2, t3]), behind))
    }

    /// The header of the next datagram.
    pub(super) fn header(&self, now: Now) -> Header {
        let sequence = match self.clock {
            Clock::Peer(header) => return header,
            Clock::Own { sequence } => sequence,
            Clock::Open => 0,
        };
        let mut header = Header::default();
        header[..2].copy_from_slice(&MAGIC);
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header[4..8].copy_from_slice(&(now.micros as u32).to_be_bytes());
        header[8..].copy_from_slice(&self.source.to_be_bytes());
        header
    }

    /// That datagram has left, or is too long for any packet.
    pub(super) const fn go_on(&mut self) {
        self.clock = match self.clock {
            Clock::Open => Clock::Own { sequence: 1 },
            Clock::Own { sequence } => Clock::Own { sequence: sequence.wrapping_add(1) },
            Clock::Peer(header) => Clock::Peer(header),
        };
    }
}
