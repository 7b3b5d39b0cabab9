//! Multicast groups of a UDP socket on one interface (`ip(7)`, `ipv6(7)`).

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{BindToDevice, IpMulticastLoop, IpMulticastTtl, Ipv6MulticastHops};

use super::StampedSocket;
use crate::system::socket::{Plain, Socket};

impl StampedSocket {
    /// Restricts the socket to an interface of its namespace: it receives from this interface alone,
    /// and sends there whatever the routes are.
    ///
    /// # Errors
    /// The interface does not exist, or the process lacks `CAP_NET_RAW`.
    pub fn bind_to_interface(&self, name: &str) -> io::Result<()> {
        setsockopt(&self.socket, BindToDevice, &name.into()).map_err(Into::into)
    }

    /// Joins a multicast group on the interface with this index, and sends multicast datagrams there.
    /// They reach the neighbours on the link, and no socket of this machine.
    ///
    /// # Errors
    /// The interface does not exist or has no multicast, or `group` is of another address family than
    /// the socket.
    pub fn join(&self, group: IpAddr, index: u32) -> io::Result<()> {
        let options = Socket::from(OwnedFd::from(self.socket.try_clone()?));
        match group {
            IpAddr::V4(group) => {
                let mut membership = libc::ip_mreqn::zeroed();
                membership.imr_multiaddr.s_addr = to_network(group);
                membership.imr_ifindex = index.cast_signed();
                options.set_option(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &membership)?;
                options.set_option(libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &membership)?;
                setsockopt(&self.socket, IpMulticastLoop, &false)?;
                setsockopt(&self.socket, IpMulticastTtl, &1)?;
            }
            IpAddr::V6(group) => {
                self.socket.join_multicast_v6(&group, index)?;
                options.set_option(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, &index)?;
                self.socket.set_multicast_loop_v6(false)?;
                setsockopt(&self.socket, Ipv6MulticastHops, &1)?;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of an address as the kernel keeps them in an integer.
fn to_network(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}
