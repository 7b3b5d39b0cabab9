//! Fragmentation of a packet.

use super::{PACKET_LENGTH_MAX, UNIT};
use crate::packet::ipv6_extension::{FRAGMENT_HEADER_LENGTH, is_extension};
use crate::packet::{ipv4, ipv6, protocol};

/// Iterator-like writer of the fragments of a packet without options or extension headers.
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    header: &'a [u8],
    data: &'a [u8],
    is_ipv4: bool,
    identification: u32,
    /// Data bytes in each fragment but the last.
    step: usize,
    /// Data bytes already written.
    position: usize,
}

impl<'a> Fragments<'a> {
    /// Fragments a packet, from its IP header on, into packets of at most `mtu` bytes. IPv4 uses
    /// the lower half of `identification`.
    ///
    /// `None` if the packet is truncated, has options or extension headers, or if `mtu` leaves no
    /// room for data.
    pub fn of(packet: &'a [u8], mtu: usize, identification: u32) -> Option<Self> {
        let (is_ipv4, header_length, length) = match packet.first()? >> 4 {
            4 => {
                let view = ipv4::Packet::new(packet).ok().filter(ipv4::Packet::is_whole)?;
                (true, view.header_length(), usize::from(view.total_length()))
            }
            _ => {
                let view = ipv6::Packet::new(packet).ok().filter(ipv6::Packet::is_whole)?;
                let length = ipv6::HEADER_LENGTH + usize::from(view.payload_length());
                (false, ipv6::HEADER_LENGTH, length)
            }
        };
        let (header, data) = packet.get(..length)?.split_at_checked(header_length)?;
        let has_one = match is_ipv4 {
            true => header.len() == ipv4::HEADER_LENGTH_MIN,
            false => !is_extension(*header.get(ipv6::field::NEXT_HEADER.start)?),
        };
        let step = Self::step(is_ipv4, mtu).filter(|_| has_one)?;
        Some(Self { header, data, is_ipv4, identification, step, position: 0 })
    }

    /// Returns the data bytes of each fragment but the last for this MTU. `None` if there is no
    /// room for data.
    pub fn step(is_ipv4: bool, mtu: usize) -> Option<usize> {
        let headers = match is_ipv4 {
            true => ipv4::HEADER_LENGTH_MIN,
            false => ipv6::HEADER_LENGTH + FRAGMENT_HEADER_LENGTH,
        };
        let room = mtu.min(PACKET_LENGTH_MAX).checked_sub(headers)?;
        Some(room - room % UNIT).filter(|step| *step > 0)
    }

    /// Writes the next fragment and returns its length. `None` at the end, or if `to` is too short.
    pub fn write_next(&mut self, to: &mut [u8]) -> Option<usize> {
        let left = self.data.get(self.position..).filter(|left| !left.is_empty())?;
        let data = &left[..self.step.min(left.len())];
        let has_more = data.len() < left.len();
        // Cannot truncate: the data of a packet is shorter than 2^16 bytes.
        let place = self.position as u16;
        let header = self.header.len();
        let length = if self.is_ipv4 {
            let length = header + data.len();
            let to = to.get_mut(..length)?;
            to[..header].copy_from_slice(self.header);
            to[header..].copy_from_slice(data);
            let mut view = ipv4::Packet::new(to).ok()?;
            view.set_total_length(length as u16);
            view.set_identification(self.identification as u16);
            // RFC 791 section 3.1: bit 2 means that more fragments follow; the offset counts units
            // of 8.
            let (more, units) = (u16::from(has_more) << 13, place / UNIT as u16);
            view.set_fragment(more | units);
            view.fill_checksum();
            length
        } else {
            let behind = FRAGMENT_HEADER_LENGTH + data.len();
            let to = to.get_mut(..header + behind)?;
            to[..header].copy_from_slice(self.header);
            let kind = to[ipv6::field::NEXT_HEADER.start];
            let [a, b, c, d] = self.identification.to_be_bytes();
            let [high, low] = (place | u16::from(has_more)).to_be_bytes();
            let (fragment, payload) = to[header..].split_at_mut(FRAGMENT_HEADER_LENGTH);
            fragment.copy_from_slice(&[kind, 0, high, low, a, b, c, d]);
            payload.copy_from_slice(data);
            let length = to.len();
            let mut view = ipv6::Packet::new(to).ok()?;
            view.set_next_header(protocol::FRAGMENT);
            view.set_payload_length(behind as u16);
            length
        };
        self.position += data.len();
        Some(length)
    }
}
