//! Connections that peers open.

use wirestorm_wire::packet::tcp::Flags;
use wirestorm_wire::packet::{ipv4, ipv6};

use super::super::common::Common;
use super::super::template;
use super::super::times::age;
use super::{Connections, FlowFlags};
use crate::frame::Packet;
use crate::tcp::connection::Connection;
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;

impl Connections {
    /// Creates a connection of a template for a received SYN. Returns its slot, or `None` if too
    /// many flows exist or the packet has too many tags.
    pub(in crate::endpoint) fn accept(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        template: u16,
        now: Now,
        common: &mut Common,
    ) -> Option<u32> {
        if common.is_full() {
            common.templates[usize::from(template)].tally.flows.flow_table_full += 1;
            return None;
        }
        let link = common.reply_link(packet)?;
        let excess = link.excess();
        let link = common.links.take(link);
        let initial = common.initial(&packet.key, now);
        let (_, settings, tally) = common.templates[usize::from(template)].tcp(&packet.key);
        let mut connection = Connection::accept(settings, segment, initial, now, &mut tally.tcp);
        common.paths.limit(&packet.key, &mut connection, settings);
        if excess > 0 {
            let ip = match packet.key.version() {
                4 => ipv4::HEADER_LENGTH_MIN,
                _ => ipv6::HEADER_LENGTH,
            };
            let room = template::room(common.frame_length_max.saturating_sub(excess), ip);
            connection.limit_segment_size(room, settings);
        }
        Some(self.insert(packet.key, connection, template, link, now, common))
    }

    /// Stores the cookie in a SYN-ACK with the option of TCP Fast Open.
    #[cold]
    pub(in crate::endpoint) fn learn_cookie(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        common: &mut Common,
    ) {
        let Some(flow) = self.flows.get(place) else { return };
        let (_, settings, _) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        if segment.flags.contains(Flags::SYN) && settings.fast_open {
            self.fast_open.learn(&flow.key, segment, settings);
        }
    }

    /// Handles a SYN with the option of TCP Fast Open. RFC 7413 section 4.2.2: "If the FastOpened
    /// flag is set, the packet acknowledges the SYN and data sequence. Otherwise, it acknowledges
    /// only the SYN sequence." The answer contains the valid cookie.
    #[cold]
    pub(in crate::endpoint) fn take_early(
        &mut self,
        place: u32,
        segment: &Segment<'_>,
        data: &[u8],
        now: Now,
        common: &mut Common,
    ) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        let is_known = usize::from(flow.template) < common.templates_known;
        let (_, settings, tally) = common.templates[usize::from(flow.template)].tcp(&flow.key);
        if !settings.fast_open {
            return;
        }
        flow.connection.send_cookie();
        let is_good = segment.cookie == self.fast_open.cookie_for(&flow.key).as_slice();
        // A connection whose data selects its template waits until it is established.
        if !is_good || !is_known || segment.length == 0 {
            return;
        }
        let length = flow.connection.accept_syn_data(segment, &mut tally.tcp);
        let mut received = length;
        if flow.run.exchange().is_some() {
            let flags = Flags(segment.flags.0 & !Flags::SYN.0);
            let behind = Segment { sequence: segment.sequence + 1, flags, ..*segment };
            let arrival = SegmentOutcome { data: length, ..SegmentOutcome::default() };
            received = flow.run.receive(&behind, data, &arrival, &flow.connection, now);
        }
        if received > 0 {
            flow.run.note_received(received);
            flow.marks.set(FlowFlags::ANSWERED);
            tally.times.time_to_first_byte.record(age(flow.began_at, now));
        }
    }
}
