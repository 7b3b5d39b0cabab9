//! Cookies of TCP Fast Open, RFC 7413: those received from servers, and those issued here.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;

use crate::tcp::connection::Connection;
use crate::tcp::now::Now;
use crate::tcp::segment::{COOKIE_LENGTH_MAX, Segment};
use wirestorm_model::tcp::Settings;

/// Maximum number of client and server pairs with a stored cookie. Others request one each time.
const KNOWN_MAX: usize = 65_536;

/// Length of the issued cookies in bytes.
const COOKIE_LENGTH: usize = 8;

/// Unanswered SYNs with the option in a row, after which the client stops using it for the service.
/// One may be lost like any other SYN.
const UNANSWERED_MAX: u32 = 2;

/// Time without the option after that.
const WITHOUT: Duration = Duration::from_secs(60);

/// Cookies of an endpoint, as a client and as a server.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct FastOpen {
    known: BTreeMap<Ends, Known>,
    /// Services that did not answer. RFC 7413 section 4.1.3.1: "the client's cache should include
    /// remote port numbers, too."
    unanswered: BTreeMap<(Ends, u16), Unanswered>,
    /// Secret of the issued cookies.
    secret: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    cookie: Cookie,
    /// Maximum segment size of the server. RFC 7413 section 4.1.3: "we recommend that the client
    /// also cache the Maximum Segment Size (MSS) advertised by the server."
    segment_size: u16,
}

/// Unanswered SYNs with the option since the last answered one.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    count: u32,
    last: Instant,
}

/// A client and a server. RFC 7413 section 4.1.3: "the client should cache at most one (most
/// recently received) cookie per client and server IP address pair."
type Ends = (IpAddr, IpAddr);

/// Cookie; an empty one requests a cookie.
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
        Self { known: BTreeMap::new(), unanswered: BTreeMap::new(), secret }
    }

    /// Enables the option for a SYN of a client, unless earlier ones were not answered. `key`: from
    /// the peer to us.
    ///
    /// RFC 7413 section 4.1.3.1: "For any negative responses, the client SHOULD disable Fast Open
    /// on the specific path (the source and destination IP addresses and ports) at least
    /// temporarily."
    #[cold]
    pub(in crate::endpoint) fn begin(&self, key: &FlowKey, now: Now, connection: &mut Connection) {
        let unanswered = self.unanswered.get(&service(key));
        let is_in_vain = unanswered.is_some_and(|it| {
            it.count >= UNANSWERED_MAX && now.instant() < it.last.saturating_add(WITHOUT)
        });
        if !is_in_vain {
            connection.open_fast(self.known.get(&ends(key)).map(|known| known.segment_size));
        }
    }

    /// Records a SYN with the option that was not answered in time.
    #[cold]
    pub(super) fn note_unanswered(&mut self, key: &FlowKey, now: Now) {
        let service = service(key);
        if self.unanswered.len() < KNOWN_MAX || self.unanswered.contains_key(&service) {
            let before = self.unanswered.get(&service).map_or(0, |it| it.count);
            let unanswered = Unanswered { count: before.saturating_add(1), last: now.instant() };
            self.unanswered.insert(service, unanswered);
        }
    }

    /// Returns the cookie to send in a SYN, or in the answer to one.
    #[cold]
    pub(super) fn cookie(&self, key: &FlowKey, is_answer: bool) -> Cookie {
        match is_answer {
            true => self.cookie_for(key),
            false => self.known.get(&ends(key)).map(|known| known.cookie).unwrap_or_default(),
        }
    }

    /// Returns the cookie that a client gets: a hash of both addresses and a secret, so no client
    /// needs to be stored. RFC 7413 section 4.1.2: "the best validation process is to simply
    /// regenerate a valid cookie and compare it against the incoming cookie."
    pub(super) fn cookie_for(&self, key: &FlowKey) -> Cookie {
        let hash = key.with_ports(0, 0).without_vlan().hash64(self.secret);
        let bytes: [u8; COOKIE_LENGTH] = hash.to_be_bytes();
        Cookie::of(&bytes).unwrap_or_default()
    }

    /// Stores the cookie of an answer with the option.
    pub(super) fn learn(&mut self, key: &FlowKey, segment: &Segment<'_>, settings: &Settings) {
        let ends = ends(key);
        if !self.unanswered.is_empty() {
            self.unanswered.remove(&service(key));
        }
        let Some(cookie) = Cookie::of(segment.cookie).filter(|it| it.length > 0) else { return };
        let offered = segment.options.maximum_segment_size;
        let segment_size = offered.unwrap_or(settings.default_segment_size);
        if self.known.len() < KNOWN_MAX || self.known.contains_key(&ends) {
            self.known.insert(ends, Known { cookie, segment_size });
        }
    }
}

fn ends(key: &FlowKey) -> Ends {
    (key.source(), key.destination())
}

fn service(key: &FlowKey) -> (Ends, u16) {
    (ends(key), key.source_port())
}
