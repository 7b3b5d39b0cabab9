//! The IP addresses of interfaces.

use std::net::IpAddr;

use super::netlink::{Message, Netlink, attributes, u32_at};
use super::{LinkError, Namespace};

/// `struct ifaddrmsg`: family, prefix length, flags, scope, interface.
const ADDRESS_HEADER_BYTES: usize = 8;

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddress {
    /// Index of the interface.
    pub index: u32,
    /// The address; on a point-to-point interface, the address of the peer.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub length: u8,
    /// Whether the scope is link-local (`RT_SCOPE_LINK`).
    pub is_link_local: bool,
    /// Whether duplicate address detection is still in progress (RFC 4862 section 5.4).
    pub is_tentative: bool,
}

/// Lists the addresses of all interfaces in a namespace, in the kernel's order.
///
/// # Errors
/// Same as [`super::list`].
pub fn addresses(namespace: &Namespace) -> Result<Vec<LinkAddress>, LinkError> {
    namespace.enter(|| {
        let mut found = Vec::new();
        let mut route =
            Netlink::open(libc::NETLINK_ROUTE, 0).map_err(LinkError::system("netlink"))?;
        route
            .dump(libc::RTM_GETADDR, &[0; ADDRESS_HEADER_BYTES], |message| {
                found.extend(parse(message));
            })
            .map_err(LinkError::system("listing the addresses"))?;
        Ok(found)
    })?
}

fn parse(message: Message<'_>) -> Option<LinkAddress> {
    if message.kind != libc::RTM_NEWADDR {
        return None;
    }
    let header = message.payload;
    let (length, flags, scope) = (*header.get(1)?, *header.get(2)?, *header.get(3)?);
    let (_, value) = attributes(header.get(ADDRESS_HEADER_BYTES..)?)
        .find(|(kind, _)| *kind == libc::IFA_ADDRESS)?;
    let address = match *value {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        _ => IpAddr::from(<[u8; 16]>::try_from(value).ok()?),
    };
    Some(LinkAddress {
        index: u32_at(header, 4)?,
        address,
        length,
        is_link_local: scope == libc::RT_SCOPE_LINK,
        is_tentative: u32::from(flags) & libc::IFA_F_TENTATIVE != 0,
    })
}
