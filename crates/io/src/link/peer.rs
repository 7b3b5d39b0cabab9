//! Lookup of the peer of a veth.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::netlink::{Netlink, attributes, push_attribute, u32_at};
use super::{Link, list};
use crate::namespace::{NAMED_NAMESPACES, Namespace};

/// `struct rtgenmsg`, padded.
const GENERIC_ROUTE_BYTES: usize = 4;
/// Attributes of `RTM_GETNSID` (`linux/net_namespace.h`).
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;

/// Finds the peer of `link`, which is in `namespace`, and the peer's namespace. Searches
/// `namespace` if the peer is in the same one, otherwise `known`. Returns `None` if the peer's
/// namespace is not in `known`, or the kernel does not report a peer.
pub fn find_peer(
    namespace: &Namespace,
    link: &Link,
    known: &[Namespace],
) -> Option<(Namespace, Link)> {
    let peer = link.peer?;
    let place = match peer.namespace_id {
        None => namespace,
        Some(id) => {
            known.iter().find(|candidate| namespace_id(candidate, namespace) == Some(id))?
        }
    };
    let found = list(place).ok()?.into_iter().find(|end| end.index == peer.index)?;
    Some((place.clone(), found))
}

/// Returns the ID that `seen_from` assigned to a namespace (`NETNSA_NSID`).
fn namespace_id(namespace: &Namespace, seen_from: &Namespace) -> Option<i32> {
    let path: PathBuf = match namespace {
        // The namespace of the process, not of the calling thread.
        Namespace::Current => "/proc/self/ns/net".into(),
        Namespace::Named(name) => Path::new(NAMED_NAMESPACES).join(name),
        Namespace::Path(path) => path.clone(),
    };
    let file = File::open(path).ok()?;
    let mut request = vec![0; GENERIC_ROUTE_BYTES];
    push_attribute(&mut request, NETNSA_FD, &file.as_raw_fd().to_ne_bytes());
    let answer = seen_from.enter(|| {
        let mut number = None;
        let mut route = Netlink::open(libc::NETLINK_ROUTE, 0).ok()?;
        let answer = route.request(libc::RTM_GETNSID, &request, |message| {
            let body = message.payload.get(GENERIC_ROUTE_BYTES..).unwrap_or_default();
            number = attributes(body)
                .find(|(kind, _)| *kind == NETNSA_NSID)
                .and_then(|(_, value)| u32_at(value, 0))
                .map(|number| number as i32);
        });
        answer.ok()?;
        number
    });
    answer.ok()?
}
