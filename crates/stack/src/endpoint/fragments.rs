//! Packets in fragments: those that arrive, and datagrams that are too long for their path.

use alloc::vec::Vec;

use wirestorm_base::port::{FrameId, Offloads, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_wire::fragment::{Cause, Fragments, Reassembler, Taken};
use wirestorm_wire::packet::{ipv4, ipv6, udp};

use super::Endpoint;
use super::burst::{fill_up, room};
use super::counters::StrayCounters;
use crate::frame::{Headers, network_header, write_datagram};
use crate::tcp::connection::Now;

/// What has arrived of packets in fragments, and what it takes to send datagrams so.
#[derive(Debug)]
pub(super) struct Pieces {
    arrived: Reassembler,
    /// Where a datagram is written as a whole before it is cut.
    packet: Vec<u8>,
    /// Of the next one.
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
        Self { arrived: Reassembler::default(), packet: Vec::new(), identification }
    }

    /// Packets that have not all of their fragments.
    pub(super) fn waiting(&self) -> u64 {
        self.arrived.waiting() as u64
    }

    /// Gives up packets of which fragments are missing for too long.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant, strays: &mut StrayCounters) {
        if !self.arrived.is_empty() {
            self.arrived.expire(now, |it| strays.give_up(it.cause));
        }
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

impl StrayCounters {
    fn give_up(&mut self, cause: Cause) {
        match cause {
            Cause::Time => self.fragments_incomplete += 1,
            Cause::Room => self.fragments_no_room += 1,
            Cause::Overlap => self.fragments_overlapping += 1,
        }
    }
}

impl Endpoint {
    /// A part of a packet. With the last one that was missing the packet is heard.
    #[cold]
    #[inline(never)]
    pub(super) fn hear_fragment(&mut self, frame: &[u8], now: Now, transmit: &mut impl Transmit) {
        let Some((start, _)) = network_header(frame) else { return };
        let (link, network) = frame.split_at(start);
        let is_damaged = |it: ipv4::Packet<&[u8]>| it.checksum() != it.computed_checksum();
        if self.verifies_checksums && ipv4::Packet::new(network).is_ok_and(is_damaged) {
            return self.strays.damaged += 1;
        }
        let time = Instant::from_nanos(now.micros * 1_000);
        let strays = &mut self.strays;
        match self.pieces.arrived.take(network, 0, time, |it| strays.give_up(it.cause)) {
            Taken::Waits => strays.fragments += 1,
            Taken::Damaged => strays.damaged += 1,
            Taken::Whole(packet) => {
                strays.fragments += 1;
                strays.reassembled += 1;
                let is_verified = !self.verifies_checksums;
                let offloads = Offloads { is_verified, ..Offloads::default() };
                self.hear(&[link, &packet].concat(), offloads, now, transmit);
            }
        }
    }
}
