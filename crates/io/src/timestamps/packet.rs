//! Packet sockets with time stamps, for protocols directly over Ethernet.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, Timestamps, recvmsg};

use super::{Departure, SendNumber, Stamp, enable_stamps, kernel_stamp, next_departure};
use crate::af_packet::{AfPacketError, AfPacketOptions};
use crate::namespace::InterfaceName;
use crate::system::socket::{Plain, Socket};

/// A packet socket for one EtherType that stamps frames on departure and arrival. Frames have no
/// Ethernet header here: the kernel adds and removes it.
#[derive(Debug)]
pub struct StampedPacketSocket {
    socket: Socket,
    /// Address with the interface and the EtherType.
    address: libc::sockaddr_ll,
    mac: [u8; 6],
    /// Number of the next frame in the kernel's reports of departures.
    next: u32,
}

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct PacketArrival {
    /// Bytes written to the buffer: the payload with its padding.
    pub length: usize,
    /// MAC address of the sender.
    pub from: [u8; 6],
    /// Time of arrival.
    pub stamp: Stamp,
}

impl StampedPacketSocket {
    /// Opens a socket that receives frames of an EtherType to the interface and to `group`.
    ///
    /// # Errors
    /// The interface does not exist, is down or is not Ethernet, or the process lacks `CAP_NET_RAW`.
    pub fn open(
        interface: &InterfaceName,
        ether_type: u16,
        group: [u8; 6],
    ) -> Result<Self, AfPacketError> {
        let options = AfPacketOptions::new(interface.clone());
        let (socket, link) = options.socket_of_kind(libc::SOCK_DGRAM)?;
        let mut membership = libc::packet_mreq::zeroed();
        membership.mr_ifindex = link.index.cast_signed();
        membership.mr_type = libc::PACKET_MR_MULTICAST as u16;
        membership.mr_alen = group.len() as u16;
        membership.mr_address[..group.len()].copy_from_slice(&group);
        socket
            .set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
            .map_err(options.system("joining the multicast group"))?;
        enable_stamps(&socket)
            .map_err(|error| options.system("setting SO_TIMESTAMPING")(error.into()))?;
        socket
            .set_option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
            .map_err(options.system("setting PACKET_IGNORE_OUTGOING (Linux 4.20)"))?;
        let address = crate::af_packet::address(link.index, ether_type);
        // Last, since the socket receives from now on.
        socket
            .bind(&address, size_of::<libc::sockaddr_ll>())
            .map_err(options.system("binding a packet socket"))?;
        Ok(Self { socket, address, mac: link.mac.unwrap_or_default(), next: 0 })
    }

    /// Returns the MAC address of the interface; zero on loopback.
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Sends a frame with this payload.
    ///
    /// # Errors
    /// The interface is down or gone, or the frame is too long.
    pub fn send_to(&mut self, payload: &[u8], to: [u8; 6]) -> io::Result<SendNumber> {
        let mut address = self.address;
        address.sll_halen = to.len() as u8;
        address.sll_addr[..to.len()].copy_from_slice(&to);
        self.socket.send_to(payload, &address)?;
        let number = SendNumber(self.next);
        self.next = self.next.wrapping_add(1);
        Ok(number)
    }

    /// Returns the next departure that the kernel has reported, without waiting; `None` if there is
    /// none. Some drivers report no departures.
    ///
    /// # Errors
    /// The socket failed.
    pub fn departure(&self) -> io::Result<Option<Departure>> {
        next_departure(self.socket.fd())
    }

    /// Receives a frame that has arrived already; `None` if there is none.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<PacketArrival>> {
        let mut parts = [IoSliceMut::new(buffer)];
        let mut space = cmsg_space!(Timestamps);
        let socket = self.socket.as_fd().as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<LinkAddr>(socket, &mut parts, Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(from) = message.address.and_then(|address| address.addr()) else {
            return Ok(None);
        };
        let mut stamp = None;
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampsns(stamps) = part {
                stamp = kernel_stamp(stamps);
            }
        }
        let stamp = stamp.unwrap_or_else(Stamp::now);
        Ok(Some(PacketArrival { length: message.bytes, from, stamp }))
    }
}

impl AsFd for StampedPacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
