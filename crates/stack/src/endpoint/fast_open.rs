//! Cookies of TCP Fast Open, RFC 7413: those that servers gave, and those that are given here.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::tcp::Flags;

use super::Endpoint;
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now};
use crate::tcp::segment::{COOKIE_LENGTH_MAX, Segment};
use crate::tcp::settings::Settings;

/// Pairs of a client and a server whose cookies are remembered, at most; others ask for one each
/// time.
const KNOWN_MAX: usize = 65_536;

/// Bytes of the cookies that are given here.
const OWN_LENGTH: usize = 8;

/// Cookies of an endpoint, as a client and as a server.
#[derive(Clone, Debug)]
pub(super) struct FastOpen {
    known: BTreeMap<(IpAddr, IpAddr), Known>,
    /// What own cookies are made with.
    secret: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    cookie: Cookie,
    /// The longest segment that the server took, remembered beside its cookie as in RFC 7413 section
    /// 4.1.3: there is no other way to know how much data it takes with SYN.
    segment_size: u16,
}

/// A cookie; one without bytes asks for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cookie {
    bytes: [u8; COOKIE_LENGTH_MAX],
    length: u8,
}

impl Cookie {
    fn of(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; COOKIE_LENGTH_MAX];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { bytes, length: value.len() as u8 })
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl FastOpen {
    pub(super) const fn new(secret: u64) -> Self {
        Self { known: BTreeMap::new(), secret }
    }

    /// What a SYN of ours tells; `key`: from the peer to us.
    #[cold]
    pub(super) fn begin(&self, key: &FlowKey, connection: &mut Connection) {
        connection.open_fast(self.known.get(&ends(key)).map(|known| known.segment_size));
    }

    /// The cookie of a SYN, or of its answer.
    #[cold]
    pub(super) fn cookie(&self, key: &FlowKey, is_answer: bool) -> Cookie {
        match is_answer {
            true => self.own(key),
            false => self.known.get(&ends(key)).map(|known| known.cookie).unwrap_or_default(),
        }
    }

    /// The cookie that is given to whoever a SYN comes from: of both addresses and a secret, so that
    /// nobody has to be remembered (RFC 7413 section 4.1.2).
    fn own(&self, key: &FlowKey) -> Cookie {
        let hash = key.with_ports(0, 0).without_vlan().hash64(self.secret);
        let bytes: [u8; OWN_LENGTH] = hash.to_be_bytes();
        Cookie::of(&bytes).unwrap_or_default()
    }

    fn learn(&mut self, key: &FlowKey, segment: &Segment<'_>, settings: &Settings) {
        let ends = ends(key);
        let Some(cookie) = Cookie::of(segment.cookie).filter(|it| it.length > 0) else { return };
        let offered = segment.options.maximum_segment_size;
        let segment_size = offered.unwrap_or(settings.default_segment_size);
        if self.known.len() < KNOWN_MAX || self.known.contains_key(&ends) {
            self.known.insert(ends, Known { cookie, segment_size });
        }
    }
}

fn ends(key: &FlowKey) -> (IpAddr, IpAddr) {
    (key.source(), key.destination())
}

impl Endpoint {
    /// A segment of a flow has the option of TCP Fast Open: what answers a SYN may tell a cookie.
    #[cold]
    pub(super) fn learn_cookie(&mut self, place: u32, segment: &Segment<'_>) {
        let Some(flow) = self.flows.get(place) else { return };
        let is_answer = segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK);
        let (_, settings, _) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        if is_answer && settings.fast_open {
            self.fast_open.learn(&flow.key, segment, settings);
        }
    }

    /// A SYN with the option begins a connection. Where its cookie is good, its data is taken; else
    /// it is as if there were none, and the answer tells one that is (RFC 7413 section 4.2.2).
    #[cold]
    pub(super) fn take_early(&mut self, place: u32, segment: &Segment<'_>, data: &[u8], now: Now) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        let is_known = usize::from(flow.template) < self.templates_known;
        let (_, settings, tally) = self.templates[usize::from(flow.template)].tcp(&flow.key);
        if !settings.fast_open {
            return;
        }
        flow.connection.tell_cookie();
        let is_good = segment.cookie == self.fast_open.own(&flow.key).as_slice();
        // Whose data decides on its template waits until it is open.
        if !is_good || !is_known || segment.length == 0 {
            return;
        }
        let length = flow.connection.take_early(segment, &mut tally.tcp);
        let mut received = length;
        if flow.run.exchange().is_some() {
            let flags = Flags(segment.flags.0 & !Flags::SYN.0);
            let behind = Segment { sequence: segment.sequence + 1, flags, ..*segment };
            let arrival = Arrival { data: length, ..Arrival::default() };
            received = flow.run.hear(&behind, data, &arrival, &flow.connection, now);
        }
        if received > 0 {
            flow.run.note_received(received);
        }
    }
}
