//! Port that decapsulates the frames it receives.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, PortError, Receive, Received};
use wirestorm_base::wrapper;

use super::TunnelCounters;
use super::outer::{Arrived, InnerPacket};

/// Receiving port that decapsulates packets. It drops and counts TCP and UDP frames outside a
/// tunnel; other frames pass unchanged.
#[derive(Debug)]
pub struct DecapsulatingPort<Port> {
    port: Port,
    taken_out: Option<Decapsulated>,
    verifies: bool,
}

/// Decapsulated frames.
#[derive(Debug, Default)]
struct Decapsulated {
    /// Buffers of all decapsulated frames, by index.
    frames: Vec<Vec<u8>>,
    /// Indices of the free buffers.
    free: Vec<usize>,
    /// Scratch batch of one call.
    fetched: Vec<Received>,
    counters: TunnelCounters,
}

/// First handle of decapsulated copies. No port has this many buffers.
const COPIES: u32 = 1 << 31;

impl<Port: Receive> DecapsulatingPort<Port> {
    /// Creates a port with tunnels, or a plain port. `verifies`: verify outer UDP checksums, unless
    /// the port below has done so.
    pub fn new(port: Port, has_tunnels: bool, verifies: bool) -> Self {
        Self { port, taken_out: has_tunnels.then(Decapsulated::default), verifies }
    }

    /// Returns the port below.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Returns the port below, before decapsulation.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// Returns the counters, if there are tunnels.
    pub fn counters(&self) -> Option<TunnelCounters> {
        self.taken_out.as_ref().map(|it| it.counters)
    }
}

impl Decapsulated {
    /// Stores a decapsulated packet; `received` is the outer frame.
    fn keep(&mut self, within: &InnerPacket<'_>, received: &Received) -> Received {
        let place = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Vec::new());
            self.frames.len() - 1
        });
        let frame = &mut self.frames[place];
        within.decapsulate(frame);
        let mut offloads = received.offloads;
        offloads.is_verified &= within.is_covered;
        Received {
            frame: FrameId::from_index(COPIES | place as u32),
            length: frame.len(),
            original_length: frame.len(),
            offloads,
            ..*received
        }
    }

    /// Returns the buffer index of a copy.
    fn place(received: &Received) -> Option<usize> {
        received.frame.index().checked_sub(COPIES).map(|place| place as usize)
    }
}

impl<Port: Receive> wrapper::ReceiveWrapper for DecapsulatingPort<Port> {
    type Port = Port;

    #[inline]
    fn inner(&self) -> &Port {
        &self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let Some(taken_out) = &mut self.taken_out else { return self.port.receive(room, batch) };
        let before = batch.len();
        self.port.receive(room, &mut taken_out.fetched)?;
        let mut fetched = core::mem::take(&mut taken_out.fetched);
        for received in fetched.drain(..) {
            let verifies = self.verifies && !received.offloads.is_verified;
            match Arrived::of(self.port.frame(&received), verifies) {
                Ok(Arrived::Other) => {
                    batch.push(received);
                    continue;
                }
                Ok(Arrived::Within(within)) => {
                    taken_out.counters.decapsulated += 1;
                    batch.push(taken_out.keep(&within, &received));
                }
                Err(refused) => *refused(&mut taken_out.counters) += 1,
            }
            self.port.release(received);
        }
        taken_out.fetched = fetched;
        Ok(batch.len() - before)
    }

    #[inline]
    fn frame(&self, received: &Received) -> &[u8] {
        let copies = self.taken_out.as_ref();
        match copies.and_then(|copies| copies.frames.get(Decapsulated::place(received)?)) {
            Some(frame) => frame,
            None => self.port.frame(received),
        }
    }

    #[inline]
    fn release(&mut self, received: Received) {
        match (&mut self.taken_out, Decapsulated::place(&received)) {
            (Some(copies), Some(place)) => copies.free.push(place),
            _ => self.port.release(received),
        }
    }
}
