//! The administrative state of an interface.

use super::netlink::Netlink;
use super::{Link, LinkError, link_request};
use crate::namespace::InterfaceName;

/// Brings an interface administratively up or down. When an interface goes down, the kernel removes
/// its routes and its IPv6 addresses.
///
/// # Errors
/// Fails if the interface does not exist, or without `CAP_NET_ADMIN`.
pub fn set_up(interface: &InterfaceName, up: bool) -> Result<(), LinkError> {
    let link = Link::open_basic(interface)?;
    let up_flag = libc::IFF_UP as u32;
    // `struct ifinfomsg`: the flags follow the index, and the mask of what to change follows them.
    let mut request = link_request(link.index);
    request[8..12].copy_from_slice(&(if up { up_flag } else { 0 }).to_ne_bytes());
    request[12..16].copy_from_slice(&up_flag.to_ne_bytes());
    interface.namespace.enter(|| {
        let mut route =
            Netlink::open(libc::NETLINK_ROUTE, 0).map_err(LinkError::system("netlink"))?;
        let changed = route.request(libc::RTM_NEWLINK, &request, |_| ());
        changed.map_err(LinkError::system("changing the state of an interface"))
    })?
}
