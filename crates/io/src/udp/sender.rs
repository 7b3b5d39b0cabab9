//! Sending of many UDP datagrams with one system call.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration as StdDuration;

use super::UdpError;
use crate::namespace::Namespace;
use crate::system::checked;
use crate::system::socket::{Plain, Socket};

/// Longest wait for room in the queue of the socket. It bounds the time to stop a sender.
const PATIENCE: StdDuration = StdDuration::from_millis(20);

/// A UDP socket that sends to one address.
#[derive(Debug)]
pub struct UdpSender {
    socket: Socket,
    address: SocketAddr,
}

impl UdpSender {
    /// Binds a socket to `source` in a namespace, and connects it to `target`. Port 0 of the source
    /// chooses a free port; an unspecified address chooses that of the route.
    ///
    /// # Errors
    /// See [`UdpError`].
    pub fn connect(
        namespace: &Namespace,
        source: SocketAddr,
        target: SocketAddr,
    ) -> Result<Self, UdpError> {
        let bind = |error| UdpError::Bind { address: source, error };
        let connect = |error| UdpError::Connect { source_address: source, target, error };
        let socket = namespace.enter(|| UdpSocket::bind(source))?.map_err(bind)?;
        socket.connect(target).map_err(connect)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(connect)?;
        let address = socket.local_addr().map_err(connect)?;
        let socket = Socket::from(OwnedFd::from(socket));
        // Without it the kernel does not report that a queue of the interface dropped a datagram
        // (`udp_send_skb` of `net/ipv4/udp.c`).
        let (level, name) = match target {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        socket.set_option(level, name, &1_i32).map_err(connect)?;
        Ok(Self { socket, address })
    }

    /// Returns the address of the socket.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends datagrams in order, at most [`DatagramBatch::LENGTH_MAX`]; returns the number sent.
    ///
    /// # Errors
    /// Returns the error of the first datagram, which was not sent: `WouldBlock` if the queue of the
    /// socket stays full for 20 ms, `ENOBUFS` if that of the interface is full, and
    /// `ConnectionRefused` after an ICMP message that the port is closed. Each allows to send it
    /// again.
    pub fn send<'a>(
        &self,
        batch: &mut DatagramBatch,
        datagrams: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut count: libc::c_uint = 0;
        let rows = batch.iovecs.iter_mut().zip(&mut batch.headers);
        for ((piece, row), datagram) in rows.zip(datagrams) {
            // The kernel only reads from the buffer of a sent message.
            let start = datagram.as_ptr().cast_mut().cast();
            *piece = libc::iovec { iov_base: start, iov_len: datagram.len() };
            row.msg_hdr.msg_iov = piece;
            row.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let rows = batch.headers.as_mut_ptr();
        // SAFETY: the loop above set the pieces of `count` rows, to memory that is borrowed until
        // the call ends. The call only reads from it.
        let sent = checked(unsafe { libc::sendmmsg(self.socket.fd(), rows, count, 0) })?;
        Ok(sent as usize)
    }
}

/// Returns whether an error of [`UdpSender::send`] means that a queue is full.
pub fn is_queue_full(error: &io::Error) -> bool {
    let is_busy = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
    is_busy || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Memory for the arguments of [`UdpSender::send`], which many senders share.
pub struct DatagramBatch {
    iovecs: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: each call sets the pointers that the kernel reads anew.
unsafe impl Send for DatagramBatch {}

impl DatagramBatch {
    /// Most datagrams of one call.
    pub const LENGTH_MAX: usize = 64;
}

impl Default for DatagramBatch {
    fn default() -> Self {
        Self {
            iovecs: vec![libc::iovec::zeroed(); Self::LENGTH_MAX].into_boxed_slice(),
            headers: vec![libc::mmsghdr::zeroed(); Self::LENGTH_MAX].into_boxed_slice(),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_base::time::Duration;

    use super::super::UdpPort;
    use super::*;

    fn any() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn datagrams_arrive_in_order_from_the_address_of_the_sender() {
        let receiver = UdpPort::bind(&Namespace::Current, any(), Duration::from_secs(5)).unwrap();
        let target = receiver.address().unwrap();
        let sender = UdpSender::connect(&Namespace::Current, any(), target).unwrap();
        let datagrams: Vec<Vec<u8>> = (0..100_u8).map(|number| vec![number; 10]).collect();
        let mut batch = DatagramBatch::default();
        let mut rest = &datagrams[..];
        while !rest.is_empty() {
            let sent = sender.send(&mut batch, rest.iter().map(Vec::as_slice)).unwrap();
            assert!((1..=DatagramBatch::LENGTH_MAX).contains(&sent));
            rest = &rest[sent..];
        }
        let mut buffer = [0; 64];
        for datagram in &datagrams {
            let (length, from) = receiver.receive(&mut buffer).unwrap().unwrap();
            assert_eq!((&buffer[..length], from), (&**datagram, sender.address()));
        }
    }

    #[test]
    fn closed_port_refuses_once_and_the_datagram_can_be_sent_again() {
        let closed = UdpSocket::bind(any()).unwrap().local_addr().unwrap();
        let sender = UdpSender::connect(&Namespace::Current, any(), closed).unwrap();
        let mut batch = DatagramBatch::default();
        let mut send = || sender.send(&mut batch, std::iter::once(&[0_u8; 8][..]));
        assert_eq!(send().unwrap(), 1);
        // Loopback answers before the call returns.
        let error = send().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!is_queue_full(&error));
        assert_eq!(send().unwrap(), 1);
    }

    #[test]
    fn source_that_the_machine_does_not_have_is_named() {
        let source = "192.0.2.77:0".parse().unwrap();
        let error = UdpSender::connect(&Namespace::Current, source, any()).unwrap_err();
        assert!(error.to_string().contains("192.0.2.77"), "{error}");
    }
}
