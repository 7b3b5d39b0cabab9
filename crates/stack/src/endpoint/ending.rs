//! What becomes of connections that are open when a run ends: their peers are told to forget them.

use wirestorm_base::port::{PortError, Receive, Received, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::packet::protocol;
use wirestorm_wire::packet::tcp::Flags;

use super::burst::room;
use super::{BATCH, Endpoint};
use crate::frame::{Headers, dissect, has_damaged_header, write_segment};
use crate::tcp::connection::Now;
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::Segment;

/// How far an endpoint is with resetting its connections: from which place in their table on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetCursor(u32);

/// Places of the table that are looked at in one call, at most.
const LOOKED_AT_MAX: u32 = 1 << 14;

impl Endpoint {
    /// Clients of all templates begin at any of their ports, which follow from the seed: who ran
    /// before on the same addresses may have left connections behind, at their peers or in TIME-WAIT.
    /// In turn ports come as they would from the lowest one on. To be called before the first breath.
    pub fn draw_first_ports(&mut self) {
        for template in &mut self.templates {
            template.draw_first_port(&mut self.random);
        }
    }

    /// Sends a reset for each connection that is there, TIME-WAIT aside, from where the last call came
    /// to: so many at most, and as long as frames are free. All that was counted of them stays as it
    /// is, and so do they: nothing is to be asked of this endpoint afterwards but
    /// [`Self::reset_late`], [`Self::note_left_open`] and what it has counted.
    ///
    /// Returns where to go on; `None`: there are no more.
    pub fn reset_open(
        &mut self,
        from: ResetCursor,
        most: usize,
        now: Instant,
        transmit: &mut impl Transmit,
    ) -> Option<ResetCursor> {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        let mut left = most;
        for place in from.0..from.0.saturating_add(LOOKED_AT_MAX) {
            if place >= self.flows.places() {
                return None;
            }
            let Some(flow) = self.flows.get_mut(place) else { continue };
            if left == 0 {
                return Some(ResetCursor(place));
            }
            let Some(frame) = transmit.take() else { return Some(ResetCursor(place)) };
            let state = &mut self.templates[usize::from(flow.template)];
            let tally = &mut state.tally;
            let Some(outgoing) = flow.connection.depart_abandoned(time, &mut tally.tcp) else {
                transmit.release(frame);
                continue;
            };
            let ip = &state.template.ip;
            let how = ip.identification_of(&flow.key);
            let headers = Headers {
                link: self.links.get(flow.link),
                key: &flow.key,
                ip,
                identification: self.pieces.identify(how, 1, &mut self.random),
                cookie: &[],
            };
            match write_segment(room(transmit, &frame), &headers, &outgoing, &[], |_| 0) {
                Some(length) => {
                    transmit.send(frame, length, Instant::ZERO);
                    tally.flows.reset_at_end += 1;
                    left -= 1;
                }
                None => {
                    transmit.release(frame);
                    tally.flows.too_long += 1;
                    tally.flows.left_open += 1;
                }
            }
        }
        Some(ResetCursor(from.0.saturating_add(LOOKED_AT_MAX)))
    }

    /// Counts the connections that were not reset, from where [`Self::reset_open`] has come to.
    pub fn note_left_open(&mut self, from: ResetCursor, now: Instant) {
        let time = Now::from_micros(now.as_nanos() / 1_000);
        for place in from.0..self.flows.places() {
            let Some(flow) = self.flows.get(place) else { continue };
            let is_open =
                flow.connection.depart_abandoned(time, &mut TcpCounters::default()).is_some();
            let tally = &mut self.templates[usize::from(flow.template)].tally;
            tally.flows.left_open += u64::from(is_open);
        }
    }

    /// Answers what arrives of connections that were reset, as one that is not there is answered:
    /// a peer that has not seen all that was sent before a reset asks once more (RFC 5961 section
    /// 3.2), and so does one whose reset was lost. Returns how many frames arrived.
    ///
    /// # Errors
    /// Where the port does not work any more.
    pub fn reset_late(
        &mut self,
        transmit: &mut impl Transmit,
        receive: &mut impl Receive,
    ) -> Result<usize, PortError> {
        let mut batch = core::mem::take(&mut self.batch);
        let outcome = receive.receive(BATCH, &mut batch);
        for received in batch.drain(..) {
            self.reset_for(&received, transmit, receive);
            receive.release(received);
        }
        self.batch = batch;
        transmit.flush()?;
        outcome
    }

    fn reset_for(
        &mut self,
        received: &Received,
        transmit: &mut impl Transmit,
        receive: &impl Receive,
    ) {
        let frame = receive.frame(received);
        let is_verified = received.offloads.is_verified || !self.verifies_checksums;
        if self.verifies_checksums && received.offloads.is_verified && has_damaged_header(frame) {
            return;
        }
        let Ok(packet) = dissect(frame, !is_verified) else { return };
        if packet.key.protocol() != protocol::TCP || !self.flows.contains(&packet.key) {
            return;
        }
        let Ok((segment, _)) = Segment::parse(packet.transport, packet.ecn) else { return };
        if segment.flags.contains(Flags::ACK) {
            self.refuse(&packet, &segment, transmit);
        }
    }
}
