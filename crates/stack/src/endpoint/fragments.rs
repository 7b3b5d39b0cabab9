//! Packets in fragments: those that arrive, and datagrams that are too long for their path.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::fragment::{Cause, Fragments, GivenUp, Reassembler, Taken};
use wirestorm_wire::packet::{ipv6, udp};

use super::counters::StrayCounters;
use super::frames::{fill_up, room};
use crate::frame::{Headers, LinkHeader, write_datagram};
use crate::random::Random;
use wirestorm_model::ip::Identification;

/// Where the sender of a packet is; `None` where its frame was not to us alone.
pub(super) type Sender = Option<LinkHeader>;

/// What has arrived of packets in fragments, and what it takes to send datagrams so.
#[derive(Debug)]
pub(super) struct Pieces {
    arrived: Reassembler<Sender>,
    /// Packets of which fragments were missing for too long, and nobody was told yet.
    late: Vec<GivenUp<Sender>>,
    /// Where a datagram is written as a whole before it is cut.
    packet: Vec<u8>,
    /// Of the next one, or of the next packet where those count.
    identification: u32,
}

/// What became of a datagram that is too long for one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It left.
    Sent,
    /// There are not enough free frames for all of its fragments now.
    Waits,
    /// It is too long for a packet, or has more fragments than the port has frames.
    TooLong,
}

impl Pieces {
    /// None yet; the first datagram in fragments has this identification.
    pub(super) fn new(identification: u32) -> Self {
        let (arrived, late) = (Reassembler::default(), Vec::new());
        Self { arrived, late, packet: Vec::new(), identification }
    }

    /// Packets that have not all of their fragments.
    pub(super) fn waiting(&self) -> u64 {
        self.arrived.waiting() as u64
    }

    /// Gives up packets of which fragments are missing for too long; returns whether there are any
    /// that [`Self::take_late`] gives.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant, strays: &mut StrayCounters) -> bool {
        if !self.arrived.is_empty() {
            let late = &mut self.late;
            self.arrived.expire(now, |it| strays.give_up(it, late));
        }
        !self.late.is_empty()
    }

    /// The identification of the next packet, which so many follow.
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
            Identification::Random => random.next() as u16,
        }
    }

    /// The packet that was identified last has not left so.
    #[cold]
    pub(super) fn take_back(&mut self, how: Identification) {
        if how == Identification::Counting {
            self.identification = self.identification.wrapping_sub(1);
        }
    }

    /// When a packet is given up next.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        self.arrived.next()
    }

    /// Sends a datagram with so many bytes of data in packets of at most `mtu` bytes; `fill` writes
    /// the data and returns its sum. All of it leaves, or nothing.
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

impl Pieces {
    /// A part of a packet of a sender has arrived.
    pub(super) fn take(
        &mut self,
        network: &[u8],
        sender: Sender,
        now: Instant,
        strays: &mut StrayCounters,
    ) -> Taken {
        let late = &mut self.late;
        self.arrived.take(network, sender, now, |it| strays.give_up(it, late))
    }

    /// Packets of which fragments were missing for too long, and nobody was told yet.
    pub(super) fn take_late(&mut self) -> Vec<GivenUp<Sender>> {
        core::mem::take(&mut self.late)
    }
}

impl StrayCounters {
    fn give_up(&mut self, packet: GivenUp<Sender>, late: &mut Vec<GivenUp<Sender>>) {
        match packet.cause {
            Cause::Time => {
                self.fragments_incomplete += 1;
                if packet.tag.is_some() && packet.beginning.is_some() {
                    late.push(packet);
                }
            }
            Cause::Room => self.fragments_no_room += 1,
            Cause::Overlap => self.fragments_overlapping += 1,
        }
    }
}
