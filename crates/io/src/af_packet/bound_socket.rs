//! A packet socket that receives from an interface.

use std::cell::Cell;
use std::io;

use wirestorm_base::port::PortError;

use super::{ADDRESS_BYTES, AfPacketError, AfPacketOptions, Direction, address};
use crate::link::Link;
use crate::namespace::InterfaceName;
use crate::system::socket::{Plain, Socket};

/// A bound packet socket that receives the frames of an interface.
pub(super) struct BoundSocket {
    pub(super) socket: Socket,
    interface: InterfaceName,
    /// Frames dropped by the kernel for lack of buffer space. Reading the kernel's counter resets
    /// it.
    missed: Cell<u64>,
}

impl BoundSocket {
    /// Binds the socket to an EtherType (`ETH_P_ALL`: all frames). It ignores frames that the
    /// interface sends, unless it captures those.
    ///
    /// # Errors
    /// The error of a failed system call.
    pub(super) fn bind(
        options: &AfPacketOptions,
        socket: Socket,
        link: &Link,
        ether_type: u16,
    ) -> Result<Self, AfPacketError> {
        if options.direction == Direction::Arriving {
            socket
                .set_option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
                .map_err(options.system("setting PACKET_IGNORE_OUTGOING (Linux 4.20)"))?;
        }
        socket
            .bind(&address(link.index, ether_type), ADDRESS_BYTES)
            .map_err(options.system("binding a packet socket"))?;
        if options.promiscuous {
            let mut membership = libc::packet_mreq::zeroed();
            membership.mr_ifindex = link.index as i32;
            membership.mr_type = libc::PACKET_MR_PROMISC as u16;
            socket
                .set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
                .map_err(options.system("making the interface promiscuous"))?;
        }
        Ok(Self { socket, interface: options.interface.clone(), missed: Cell::new(0) })
    }

    /// Reads the socket's pending error, which shows whether the interface still works.
    pub(super) fn check(&self) -> Result<(), PortError> {
        let error: i32 = self
            .socket
            .option(libc::SOL_SOCKET, libc::SO_ERROR)
            .map_err(|reason| self.interface.port_error("reading SO_ERROR", &reason))?;
        match error {
            0 => Ok(()),
            error => Err(self.port_error(error)),
        }
    }

    /// Converts an error number of the socket to a port error.
    pub(super) fn port_error(&self, error: i32) -> PortError {
        // The kernel reports ENETDOWN for both; after its interface was removed, a socket is
        // unbound.
        let bound = self.socket.name::<libc::sockaddr_ll>().map(|name| name.sll_ifindex);
        let code = if bound.is_ok_and(|index| index <= 0) { libc::ENODEV } else { error };
        self.interface.port_error("receiving", &io::Error::from_raw_os_error(code))
    }

    /// Returns the number of frames dropped for lack of buffer space. Makes one system call.
    pub(super) fn missed(&self) -> u64 {
        // Without a ring of version 3, the kernel fills in only the first part.
        let statistics =
            self.socket.option::<libc::tpacket_stats_v3>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // The call does not fail on a working socket; count an error as no drops.
        let missed = statistics.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.missed.set(self.missed.get() + missed);
        self.missed.get()
    }
}
