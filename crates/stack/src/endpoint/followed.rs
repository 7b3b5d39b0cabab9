//! Single flows that are followed: what they were when they began and when they ended, however
//! short they are. Who looks meanwhile asks for them by their keys.

use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::time::Instant;

use super::details::FlowDetails;

/// Which flows are followed: so many at a time of those that all of this is true of. When one of
/// them is over, the next one that begins takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowOptions {
    /// How many, at most.
    pub count: usize,
    /// The templates that they may be of, by their places.
    pub templates: Vec<usize>,
    /// An address at either end; `None`: any.
    pub address: Option<IpAddr>,
    /// A port at either end; `None`: any.
    pub port: Option<u16>,
}

impl FollowOptions {
    fn takes(&self, template: usize, flow: &FlowDetails) -> bool {
        let ends = [flow.own, flow.peer];
        self.templates.contains(&template)
            && self.address.is_none_or(|address| ends.iter().any(|end| end.0 == address))
            && self.port.is_none_or(|port| ends.iter().any(|end| end.1 == port))
    }
}

/// A flow that is followed, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedFlow {
    /// Which of those that were followed it is, from 0.
    pub number: u64,
    /// The place of its template.
    pub template: usize,
    /// What it was when it became one of its template's, most often as it began, and when that was.
    pub first: (Instant, FlowDetails),
    /// What it was in the end, and when that was, if it is over: gone, or in TIME-WAIT.
    pub last: Option<(Instant, FlowDetails)>,
}

/// The flows of an endpoint that are followed.
#[derive(Debug, Default)]
pub(super) struct Followed {
    options: FollowOptions,
    flows: Vec<FollowedFlow>,
    /// How many of them are not over.
    there: usize,
    next: u64,
    /// Places of connections that are in TIME-WAIT since this breath.
    over: Vec<u32>,
}

impl Followed {
    /// Of these from now on.
    pub(super) fn new(options: FollowOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Those that are followed, and those that were and whose place no other has taken yet.
    pub(super) fn flows(&self) -> &[FollowedFlow] {
        &self.flows
    }

    /// The place of a connection that is in TIME-WAIT since this breath.
    pub(super) fn take_over(&mut self) -> Option<u32> {
        self.over.pop()
    }

    /// Whether a flow that begins may be followed.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.there < self.options.count
    }

    /// Whether a flow that ends may be one that is followed.
    #[inline]
    pub(super) const fn is_any(&self) -> bool {
        self.there > 0
    }

    /// A connection is in TIME-WAIT, which is looked at later in the breath: where it is served
    /// nothing else is to be kept at hand for that.
    #[inline]
    pub(super) fn note_over(&mut self, place: u32) {
        if self.is_any() {
            self.over.push(place);
        }
    }

    /// Whether any connections are in TIME-WAIT since this breath.
    #[inline]
    pub(super) const fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    #[cold]
    pub(super) fn begin(&mut self, template: usize, now: Instant, flow: &FlowDetails) {
        if !self.options.takes(template, flow) {
            return;
        }
        let new = FollowedFlow { number: self.next, template, first: (now, *flow), last: None };
        self.next += 1;
        self.there += 1;
        // The one that is over for longest makes room.
        let is_full = self.flows.len() >= self.options.count;
        let over = self.flows.iter_mut().filter(|it| it.last.is_some());
        match over.min_by_key(|it| it.last.map(|(at, _)| at)).filter(|_| is_full) {
            Some(old) => *old = new,
            None => self.flows.push(new),
        }
    }

    #[cold]
    pub(super) fn end(&mut self, now: Instant, flow: &FlowDetails) {
        let is_it = |it: &&mut FollowedFlow| it.last.is_none() && it.first.1.key == flow.key;
        if let Some(followed) = self.flows.iter_mut().find(is_it) {
            followed.last = Some((now, *flow));
            self.there -= 1;
        }
    }
}
