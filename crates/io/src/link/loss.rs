//! Counts frames that the kernel or the device drops before a receiver sees them.

use std::io;

use super::netlink::{Netlink, push_attribute};
use super::{Link, LinkCounters, LinkKind, link_request, parse_link};

/// Attribute that selects the namespace of a request, by its ID in the requester's namespace
/// (`IFLA_TARGET_NETNSID` of `linux/if_link.h`).
const TARGET_NAMESPACE: u16 = 46;

/// Counts the frames that the interface's device missed. On a veth it adds the frames that did not
/// fit into the ring between both ends: the kernel counts those, together with other drops, as
/// dropped by the sending end.
#[derive(Debug)]
pub(crate) struct LossMeter {
    netlink: Netlink,
    index: u32,
    /// Index and namespace ID of a veth's peer.
    peer: Option<(u32, Option<i32>)>,
    /// Value of the counters at the start.
    baseline: u64,
}

impl LossMeter {
    /// Starts counting. Call this in the network namespace of the interface.
    ///
    /// # Errors
    /// Fails if netlink fails.
    pub(crate) fn open(link: &Link) -> io::Result<Self> {
        let netlink = Netlink::open(libc::NETLINK_ROUTE, 0)?;
        let peer = link.peer.filter(|_| link.kind == LinkKind::Veth);
        let peer = peer.map(|peer| (peer.index, peer.namespace_id));
        let mut meter = Self { netlink, index: link.index, peer, baseline: 0 };
        meter.baseline = meter.lost();
        Ok(meter)
    }

    /// Returns the frames lost since `open`. Makes one or two system calls of some microseconds.
    pub(crate) fn read(&mut self) -> u64 {
        self.lost().saturating_sub(self.baseline)
    }

    /// Reads the counters. A peer in a namespace that cannot be queried counts as zero.
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
