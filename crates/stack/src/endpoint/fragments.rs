//! IP fragments: reassembly of received packets, and datagrams longer than the path MTU.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::fragment::{DropReason, DroppedPacket, Fragments, Reassembler, Taken};
use wirestorm_wire::packet::{ipv6, udp};

use super::counters::UnmatchedCounters;
use super::frames::{fill_up, room};
use crate::frame::{Headers, LinkHeader, write_datagram};
use wirestorm_base::random::Random;
use wirestorm_model::ip::Identification;

/// Link header of answers to the sender of a packet. `None` if the frame was not for this endpoint.
pub(super) type ReplyLink = Option<LinkHeader>;

/// Reassembly of received fragments, and buffers to send datagrams in fragments.
#[derive(Debug)]
pub(super) struct FragmentState {
    arrived: Reassembler<ReplyLink>,
    /// Packets whose reassembly timed out, and whose sender has no ICMP message yet.
    late: Vec<DroppedPacket<ReplyLink>>,
    /// Buffer for a datagram before its fragmentation.
    packet: Vec<u8>,
    /// Identification of the next fragmented datagram, or of the next packet if packets count.
    identification: u32,
}

/// Result of sending a datagram in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// All fragments were sent.
    Sent,
    /// The port has too few free frames now.
    Waits,
    /// It is too long for a packet, or has more fragments than the port has frames.
    TooLong,
}

impl FragmentState {
    /// Creates the state; the first fragmented datagram has this identification.
    pub(super) fn new(identification: u32) -> Self {
        let (arrived, late) = (Reassembler::default(), Vec::new());
        Self { arrived, late, packet: Vec::new(), identification }
    }

    /// Returns the number of incomplete packets.
    pub(super) fn waiting(&self) -> u64 {
        self.arrived.incomplete_packets() as u64
    }

    /// Drops packets whose reassembly timed out. Returns whether [`Self::take_late`] has any.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant, unmatched: &mut UnmatchedCounters) -> bool {
        if !self.arrived.is_empty() {
            let late = &mut self.late;
            self.arrived.expire(now, |it| unmatched.give_up(it, late));
        }
        !self.late.is_empty()
    }

    /// Returns the identification of the first of `packets` packets.
    #[inline]
    pub(super) fn identify(
        &mut self,
        how: Identification,
        packets: u32,
        random: &mut Random,
    ) -> u16 {
        match how {
            Identification::Zero => 0,
            Identification::Counting => {
                let first = self.identification;
                self.identification = first.wrapping_add(packets);
                first as u16
            }
            Identification::Random => random.next_u64() as u16,
        }
    }

    /// Takes back the last identification: its packet was not sent.
    #[cold]
    pub(super) fn take_back(&mut self, how: Identification) {
        if how == Identification::Counting {
            self.identification = self.identification.wrapping_sub(1);
        }
    }

    /// Returns the time of the next reassembly timeout.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.arrived.next()
    }

    /// Sends a datagram with `data` bytes of data in packets of at most `mtu` bytes. `fill` writes
    /// the data and returns its one's complement sum. Sends all fragments or none.
    #[cold]
    pub(super) fn send(
        &mut self,
        headers: &Headers<'_>,
        mtu: usize,
        data: u32,
        fill: &dyn Fn(&mut [u8]) -> u16,
        spare: &mut Vec<FrameId>,
        transmit: &mut impl Transmit,
    ) -> Cut {
        let link = headers.link.as_slice();
        let is_ipv4 = headers.key.version() == 4;
        let Some(step) = Fragments::step(is_ipv4, mtu) else { return Cut::TooLong };
        let datagram = udp::HEADER_LENGTH + data as usize;
        let frames = datagram.div_ceil(step);
        if frames > transmit.capabilities().frames {
            return Cut::TooLong;
        }
        fill_up(spare, frames as u32, transmit);
        if spare.len() < frames {
            return Cut::Waits;
        }
        self.packet.resize(link.len() + ipv6::HEADER_LENGTH + datagram, 0);
        let Some(length) = write_datagram(&mut self.packet, headers, data, fill) else {
            return Cut::TooLong;
        };
        let packet = &self.packet[link.len()..length];
        let Some(mut fragments) = Fragments::of(packet, mtu, self.identification) else {
            return Cut::TooLong;
        };
        self.identification = self.identification.wrapping_add(1);
        for frame in spare.drain(spare.len() - frames..) {
            let bytes = room(transmit, &frame);
            let written = bytes.split_at_mut_checked(link.len()).and_then(|(head, behind)| {
                head.copy_from_slice(link);
                Some(link.len() + fragments.write_next(behind)?)
            });
            match written {
                Some(length) => transmit.send(frame, length, Instant::ZERO),
                None => transmit.release(frame),
            }
        }
        Cut::Sent
    }
}

impl FragmentState {
    /// Takes a received fragment.
    pub(super) fn take(
        &mut self,
        network: &[u8],
        sender: ReplyLink,
        now: Instant,
        unmatched: &mut UnmatchedCounters,
    ) -> Taken {
        let late = &mut self.late;
        self.arrived.take(network, sender, now, |it| unmatched.give_up(it, late))
    }

    /// Takes the packets whose reassembly timed out.
    pub(super) fn take_late(&mut self) -> Vec<DroppedPacket<ReplyLink>> {
        core::mem::take(&mut self.late)
    }
}

impl UnmatchedCounters {
    fn give_up(
        &mut self,
        packet: DroppedPacket<ReplyLink>,
        late: &mut Vec<DroppedPacket<ReplyLink>>,
    ) {
        match packet.cause {
            DropReason::Timeout => {
                self.fragments_incomplete += 1;
                if packet.tag.is_some() && packet.contiguous.is_some() {
                    late.push(packet);
                }
            }
            DropReason::Limit => self.fragments_no_room += 1,
            DropReason::Overlap => self.fragments_overlapping += 1,
        }
    }
}
