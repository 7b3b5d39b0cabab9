//! State that the parts of an endpoint share: templates with their counters, and what frames need
//! to leave.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_base::port::FrameId;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::MacAddress;

use super::counters::UnmatchedCounters;
use super::events::{Event, PendingRequest};
use super::fragments::FragmentState;
use super::links::LinkTable;
use super::paths::PathMtus;
use super::pauses::YieldSchedule;
use super::sampled::FlowSampler;
use super::servers::Servers;
use super::template::{Role, TemplateState};
use crate::frame::{LinkHeader, Packet};
use crate::host::without_priority;
use crate::program::Buffers;
use crate::tcp::now::Now;
use crate::tcp::sequence::SequenceNumber;
use wirestorm_base::random::Random;

/// State that the parts of an endpoint share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) templates: Vec<TemplateState>,
    /// Number of templates in the options. Templates of connections without a known template
    /// follow.
    pub(super) templates_known: usize,
    pub(super) buffers: Buffers,
    pub(super) servers: Servers,
    pub(super) links: LinkTable,
    pub(super) paths: PathMtus,
    pub(super) pieces: FragmentState,
    pub(super) pauses: YieldSchedule,
    pub(super) followed: FlowSampler,
    pub(super) unmatched: UnmatchedCounters,
    /// Free frames, within an iteration.
    pub(super) spare: Vec<FrameId>,
    /// Pending requests of programs.
    pub(super) requested: VecDeque<PendingRequest>,
    /// Whether any flow waits for another; otherwise no events are recorded.
    pub(super) are_awaited: bool,
    /// Recorded events, not yet handled.
    pub(super) events: Vec<Event>,
    pub(super) random: Random,
    pub(super) secret: u64,
    pub(super) frame_length_max: usize,
    pub(super) flows_max: usize,
    /// Existing flows of both transports, and their maximum so far.
    pub(super) active: usize,
    pub(super) active_max: u64,
}

impl Common {
    /// Whether the maximum number of flows exists.
    pub(super) const fn is_full(&self) -> bool {
        self.active >= self.flows_max
    }

    /// Counts a new flow of a template.
    pub(super) fn note_begin(&mut self, template: u16) {
        self.templates[usize::from(template)].tally.flows.note_begin();
        self.active += 1;
        self.active_max = self.active_max.max(self.active as u64);
    }

    /// Returns the initial sequence number of a connection (RFC 6528 section 3, RFC 9293 section
    /// 3.4.1). It grows with time, so that a host can tell an earlier connection of the same tuple
    /// apart. Its start is unpredictable.
    pub(super) fn initial(&self, key: &FlowKey, now: Now) -> SequenceNumber {
        const TICK_MICROS: u64 = 4;
        SequenceNumber(
            (key.hash64(self.secret) as u32).wrapping_add((now.micros / TICK_MICROS) as u32),
        )
    }

    /// Returns the link header of answers to a packet that starts a flow.
    pub(super) fn reply_link(&mut self, packet: &Packet<'_>) -> Option<LinkHeader> {
        let link = LinkHeader::answering(packet.link);
        // The packet has more tags and labels than a link header has room for.
        self.unmatched.other_protocol += u64::from(link.is_none());
        link
    }

    /// Changes the MAC address of a next hop of clients. Returns the number of flows that use it.
    pub(super) fn next_hop_moved(&mut self, number: u16, to: MacAddress) -> u32 {
        for template in &mut self.templates {
            if let Role::Client { link, .. } = &mut template.template.role {
                link.next_hop_moved(number, to);
            }
        }
        self.links.redirect(|it| it.next_hop() == number, to)
    }

    /// Changes the MAC address of a peer, in VLANs or without tags. Returns the number of flows
    /// that use the new one.
    pub(super) fn peer_moved(&mut self, tags: &[u8], from: MacAddress, to: MacAddress) -> u32 {
        let is_moved = |it: &LinkHeader| {
            it.next_hop() == 0
                && it.destination() == from.0
                && without_priority(it.tags()).eq(without_priority(tags))
        };
        self.links.redirect(is_moved, to)
    }
}
