//! UDP and packet sockets with time stamps of the kernel (`Documentation/networking/timestamping.rst`).
//!
//! A stamp of the kernel does not include the time until a thread runs: on a busy machine that is
//! milliseconds, while the kernel's stamps are some microseconds off.

mod multicast;
mod packet;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration as StdDuration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4RecvTtl, Ipv4Ttl, Ipv6RecvHopLimit, Ipv6Ttl, Timestamping};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn6, SockaddrStorage, TimestampingFlag, Timestamps,
    UnknownCmsg, recvmsg, setsockopt,
};
use wirestorm_base::time::Duration;

use crate::clock_ports::ClockPort;
use crate::namespace::Namespace;
use crate::system::socket::wait_any_readable;
use crate::udp::UdpError;

pub use packet::{PacketArrival, StampedPacketSocket};

/// A UDP socket that stamps datagrams on departure and arrival.
#[derive(Debug)]
pub struct StampedSocket {
    socket: UdpSocket,
    /// Number of the next datagram in the kernel's reports of departures.
    next: u32,
    /// Keeps the datagrams out of receivers of test traffic.
    _port: ClockPort,
}

/// A time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// `CLOCK_REALTIME` in ns since the Unix epoch.
    pub realtime_ns: i64,
    /// Who read the clock.
    pub point: StampSource,
}

/// Who read the clock for a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    /// The kernel, when the datagram passed the driver.
    Kernel,
    /// This process, before it sent or after it received the datagram.
    Process,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Bytes written to the buffer.
    pub length: usize,
    /// Sender.
    pub from: SocketAddr,
    /// Time of arrival.
    pub stamp: Stamp,
    /// Time to live or hop limit of the IP packet, if known.
    pub ttl: Option<u8>,
}

/// Number of a datagram, to find its departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendNumber(u32);

/// Departure of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Result of [`StampedSocket::send_to`].
    pub number: SendNumber,
    /// Time of departure.
    pub stamp: Stamp,
}

impl StampedSocket {
    /// Binds a socket in a namespace. Port 0 chooses a free port. The kernel stamps all datagrams.
    /// Receivers of test traffic that this process opens later leave the datagrams to the kernel.
    ///
    /// The first such socket of a system starts the stamps, which takes effect a little later. What
    /// arrives before has a stamp of the process.
    ///
    /// # Errors
    /// See [`UdpError`].
    pub fn bind(namespace: &Namespace, address: SocketAddr) -> Result<Self, UdpError> {
        let bind = |error| UdpError::Bind { address, error };
        let socket = namespace.enter(|| UdpSocket::bind(address))?.map_err(bind)?;
        let options = |socket: &UdpSocket| -> nix::Result<()> {
            enable_stamps(socket)?;
            match address {
                SocketAddr::V4(_) => setsockopt(socket, Ipv4RecvTtl, &true),
                SocketAddr::V6(_) => setsockopt(socket, Ipv6RecvHopLimit, &true),
            }
        };
        options(&socket).map_err(|error| bind(error.into()))?;
        let port = socket.local_addr().map_err(bind)?.port();
        Ok(Self { socket, next: 0, _port: ClockPort::open(port) })
    }

    /// Sets the time to live or hop limit of all datagrams. The default is that of the system.
    ///
    /// # Errors
    /// The value is 0, or the system refuses it.
    pub fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        let set = match self.local_address()?.ip() {
            IpAddr::V4(_) => setsockopt(&self.socket, Ipv4Ttl, &i32::from(ttl)),
            IpAddr::V6(_) => setsockopt(&self.socket, Ipv6Ttl, &i32::from(ttl)),
        };
        set.map_err(Into::into)
    }

    /// Returns the address that the socket is bound to.
    ///
    /// # Errors
    /// The system does not know it.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// There is no route, or the datagram is too long.
    pub fn send_to(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<SendNumber> {
        let mut outcome = self.socket.send_to(bytes, to);
        // An ICMP error of an earlier datagram is reported once, and this one was not sent.
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            outcome = self.socket.send_to(bytes, to);
        }
        outcome?;
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
        next_departure(self.fd())
    }

    /// Receives a datagram; waits for at most `patience`. Returns `None` after that time, on a signal,
    /// and when the report of a departure arrives.
    ///
    /// # Errors
    /// The socket failed.
    pub fn receive(&self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<Arrival>> {
        let patience = StdDuration::from_nanos(patience.as_nanos().max(1_000));
        self.socket.set_read_timeout(Some(patience))?;
        self.receive_with(buffer, MsgFlags::empty())
    }

    /// Receives a datagram that has arrived already; `None` if there is none.
    ///
    /// # Errors
    /// The socket failed.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.receive_with(buffer, MsgFlags::MSG_DONTWAIT)
    }

    fn receive_with(&self, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Option<Arrival>> {
        let mut parts = [IoSliceMut::new(buffer)];
        let mut space = cmsg_space!(Timestamps, i32);
        let message = recvmsg::<SockaddrStorage>(self.fd(), &mut parts, Some(&mut space), flags);
        let message = match message {
            Ok(message) => message,
            // Nobody listens at the other end; the next datagram may arrive all the same.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(from) = message.address.as_ref().and_then(socket_address) else { return Ok(None) };
        let (mut stamp, mut ttl) = (None, None);
        for part in message.cmsgs()? {
            match part {
                ControlMessageOwned::ScmTimestampsns(stamps) => stamp = kernel_stamp(stamps),
                ControlMessageOwned::Ipv4Ttl(value) | ControlMessageOwned::Ipv6HopLimit(value) => {
                    ttl = u8::try_from(value).ok();
                }
                _ => {}
            }
        }
        let stamp = stamp.unwrap_or_else(Stamp::now);
        Ok(Some(Arrival { length: message.bytes, from, stamp, ttl }))
    }

    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Stamp {
    /// Reads the clock.
    pub fn now() -> Self {
        let realtime_ns = crate::clock::realtime_nanos() as i64;
        Self { realtime_ns, point: StampSource::Process }
    }
}

/// Makes the kernel stamp all packets of a socket, and number the reports of departures.
fn enable_stamps(socket: &impl AsFd) -> nix::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(socket, Timestamping, &flags)
}

/// Waits for at most `patience` until one of the sockets has a packet, or the report of a departure.
/// Returns early on a signal.
pub fn wait<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>, patience: Duration) {
    wait_any_readable(sockets, patience);
}

/// Reads the next report of a departure, without waiting.
fn next_departure(socket: RawFd) -> io::Result<Option<Departure>> {
    loop {
        let mut space = cmsg_space!(Timestamps, libc::sock_extended_err, SockaddrIn6);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<SockaddrStorage>(socket, &mut [], Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let (mut stamp, mut number) = (None, None);
        for part in message.cmsgs()? {
            match part {
                ControlMessageOwned::ScmTimestampsns(stamps) => stamp = kernel_stamp(stamps),
                ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _)
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING =>
                {
                    number = Some(SendNumber(error.ee_data));
                }
                ControlMessageOwned::Unknown(part) => number = number.or(packet_number(&part)),
                _ => {}
            }
        }
        // Otherwise it was an ICMP error.
        if let (Some(stamp), Some(number)) = (stamp, number) {
            return Ok(Some(Departure { number, stamp }));
        }
    }
}

/// Returns the number in a report of a packet socket, a `struct sock_extended_err`.
fn packet_number(part: &UnknownCmsg) -> Option<SendNumber> {
    let header = part.cmsg_header;
    let is_report =
        header.cmsg_level == libc::SOL_PACKET && header.cmsg_type == libc::PACKET_TX_TIMESTAMP;
    let &[_, _, _, _, origin, _, _, _, _, _, _, _, a, b, c, d, ..] = part.data_bytes.as_slice()
    else {
        return None;
    };
    let is_stamp = is_report && origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
    is_stamp.then(|| SendNumber(u32::from_ne_bytes([a, b, c, d])))
}

fn kernel_stamp(stamps: Timestamps) -> Option<Stamp> {
    let (seconds, nanoseconds) = (stamps.system.tv_sec(), stamps.system.tv_nsec());
    let realtime_ns = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    // The field is zero if the kernel did not stamp.
    (realtime_ns != 0).then_some(Stamp { realtime_ns, point: StampSource::Kernel })
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|it| SocketAddr::V4((*it).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|it| SocketAddr::V6((*it).into())))
}
