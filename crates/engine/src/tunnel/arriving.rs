//! A port where frames arrive in tunnels.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, PortError, Receive, Received};
use wirestorm_base::wrapper;

use super::TunnelCounters;
use super::outer::{Arrived, Within};

/// A receiving port that takes packets out of tunnels. Frames of TCP and UDP that come in none are
/// dropped, with the reason counted; others are as they came.
#[derive(Debug)]
pub struct Untunnelled<Port> {
    port: Port,
    taken_out: Option<TakenOut>,
    verifies: bool,
}

/// Frames without their tunnels.
#[derive(Debug, Default)]
struct TakenOut {
    /// Buffers of all, by the numbers of their handles.
    frames: Vec<Vec<u8>>,
    /// Those of them that are free.
    free: Vec<usize>,
    /// What a port brought, within a call.
    fetched: Vec<Received>,
    counters: TunnelCounters,
}

/// Where handles of frames begin that are copies. No port has so many buffers.
const COPIES: u32 = 1 << 31;

impl<Port: Receive> Untunnelled<Port> {
    /// A port with tunnels, or without any: then it is the port itself. `verifies`: whether checksums
    /// are looked at of what is around packets, unless they were when it came.
    pub fn new(port: Port, has_tunnels: bool, verifies: bool) -> Self {
        Self { port, taken_out: has_tunnels.then(TakenOut::default), verifies }
    }

    /// The port itself.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The port itself, before anything is taken out.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// What became of frames that arrived, where there are tunnels.
    pub fn counters(&self) -> Option<TunnelCounters> {
        self.taken_out.as_ref().map(|it| it.counters)
    }
}

impl TakenOut {
    /// Keeps what is in a tunnel; `received` is the frame around it.
    fn keep(&mut self, within: &Within<'_>, received: &Received) -> Received {
        let place = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Vec::new());
            self.frames.len() - 1
        });
        let frame = &mut self.frames[place];
        within.take_out(frame);
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

    /// The place of a copy.
    fn place(received: &Received) -> Option<usize> {
        received.frame.index().checked_sub(COPIES).map(|place| place as usize)
    }
}

impl<Port: Receive> wrapper::ReceiveWrapper for Untunnelled<Port> {
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
        match copies.and_then(|copies| copies.frames.get(TakenOut::place(received)?)) {
            Some(frame) => frame,
            None => self.port.frame(received),
        }
    }

    #[inline]
    fn release(&mut self, received: Received) {
        match (&mut self.taken_out, TakenOut::place(&received)) {
            (Some(copies), Some(place)) => copies.free.push(place),
            _ => self.port.release(received),
        }
    }
}
