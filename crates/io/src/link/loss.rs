//! Frames for an interface that got lost right before it, of which no receiver hears.

use std::io;

use super::netlink::{Netlink, push_attribute};
use super::{Link, LinkCounters, LinkKind, link_request, parse_link};

/// Which namespace a question is about, by the number that the asker's knows it by
/// (`IFLA_TARGET_NETNSID` of `linux/if_link.h`).
const TARGET_NAMESPACE: u16 = 46;

/// Counts what an interface's device had no room for, and on a virtual cable what the other end found
/// no room for in the ring between both: the kernel counts that as dropped by the sending end, whatever
/// else it dropped there.
#[derive(Debug)]
pub(crate) struct LossMeter {
    netlink: Netlink,
    index: u32,
    /// Index and namespace of a virtual cable's other end.
    peer: Option<(u32, Option<i32>)>,
    /// What was lost before.
    before: u64,
}

impl LossMeter {
    /// Counts from now on. To be called in the interface's namespace.
    ///
    /// # Errors
    /// Where netlink does not work.
    pub(crate) fn open(link: &Link) -> io::Result<Self> {
        let netlink = Netlink::open(libc::NETLINK_ROUTE, 0)?;
        let peer = link.peer.filter(|_| link.kind == LinkKind::Veth);
        let peer = peer.map(|peer| (peer.index, peer.namespace_id));
        let mut meter = Self { netlink, index: link.index, peer, before: 0 };
        meter.before = meter.lost();
        Ok(meter)
    }

    /// What was lost since it was opened. A system call or two of some microseconds.
    pub(crate) fn read(&mut self) -> u64 {
        self.lost().saturating_sub(self.before)
    }

    /// What cannot be asked, as an end in a namespace of others, adds nothing.
    fn lost(&mut self) -> u64 {
        let missed = self.counters(self.index, None).receive_missed;
        let Some((index, namespace)) = self.peer else { return missed };
        missed + self.counters(index, namespace).transmit_dropped
    }

    fn counters(&mut self, index: u32, namespace: Option<i32>) -> LinkCounters {
        let mut request = link_request(index);
        if let Some(namespace) = namespace {
            push_attribute(&mut request, TARGET_NAMESPACE, &namespace.to_ne_bytes());
        }
        let mut counters = LinkCounters::default();
        let answer = self.netlink.request(libc::RTM_GETLINK, &request, |message| {
            if let Some(link) = parse_link(message) {
                counters = link.counters;
            }
        });
        answer.map_or(LinkCounters::default(), |()| counters)
    }
}
