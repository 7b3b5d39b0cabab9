//! A packet socket that hears an interface.

use std::cell::Cell;
use std::io;

use wirestorm_base::port::PortError;

use super::{ADDRESS_BYTES, AfPacketError, AfPacketOptions, address};
use crate::link::Link;
use crate::namespace::InterfaceName;
use crate::system::socket::{Plain, Socket};

/// What hears all frames that arrive on an interface.
pub(super) struct Hearing {
    pub(super) socket: Socket,
    interface: InterfaceName,
    /// Dropped by the kernel for want of room. Reading the kernel's counter resets it.
    missed: Cell<u64>,
}

impl Hearing {
    /// Lets a socket hear what arrives of a type of Ethernet's (`ETH_P_ALL`: everything); what the
    /// interface sends itself is left out.
    ///
    /// # Errors
    /// What the system said.
    pub(super) fn begin(
        options: &AfPacketOptions,
        socket: Socket,
        link: &Link,
        ether_type: u16,
    ) -> Result<Self, AfPacketError> {
        socket
            .set_option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
            .map_err(options.system("setting PACKET_IGNORE_OUTGOING (Linux 4.20)"))?;
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

    /// Asks the socket whether the interface still works.
    pub(super) fn check(&self) -> Result<(), PortError> {
        let error: i32 = self
            .socket
            .option(libc::SOL_SOCKET, libc::SO_ERROR)
            .map_err(|reason| self.interface.port_error("asking for errors", &reason))?;
        match error {
            0 => Ok(()),
            error => Err(self.failed(error)),
        }
    }

    /// Why nothing can be heard any more, by the operating system's number.
    pub(super) fn failed(&self, error: i32) -> PortError {
        // The kernel says "down" for both; a socket whose interface is gone is bound to none.
        let bound = self.socket.name::<libc::sockaddr_ll>().map(|name| name.sll_ifindex);
        let code = if bound.is_ok_and(|index| index <= 0) { libc::ENODEV } else { error };
        self.interface.port_error("receiving", &io::Error::from_raw_os_error(code))
    }

    /// Frames that the kernel dropped for want of room. One system call.
    pub(super) fn missed(&self) -> u64 {
        // Without a ring of version 3 the kernel fills in less of it.
        let statistics =
            self.socket.option::<libc::tpacket_stats_v3>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // It fails on no working socket; what cannot be read adds nothing.
        let missed = statistics.map_or(0, |statistics| u64::from(statistics.tp_drops));
        self.missed.set(self.missed.get() + missed);
        self.missed.get()
    }
}
