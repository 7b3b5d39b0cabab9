//! UDP sockets of collectors and exporters.

mod sender;

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;

use crate::namespace::{Namespace, NamespaceError};
use crate::system::socket::Socket;

pub use sender::{DatagramBatch, UdpSender, is_queue_full};

/// Receive buffer in bytes: a second of 40,000 datagrams of 1,500 bytes.
const RECEIVE_BUFFER: i32 = 64 << 20;

/// Number of values that `SO_MEMINFO` returns, and the position of the drops among them
/// (`linux/sock_diag.h`).
const MEMORY_VALUES: usize = 9;
const MEMORY_DROPS: usize = 8;

/// A bound UDP socket with a large receive buffer.
#[derive(Debug)]
pub struct UdpPort {
    socket: UdpSocket,
    /// The same socket, for its options.
    options: Socket,
}

/// Reason why a UDP socket did not open.
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The address cannot be used.
    #[error("{address}: {error}; use an address of this machine and a free UDP port")]
    Bind {
        /// Requested address.
        address: SocketAddr,
        /// Error of the system call.
        error: io::Error,
    },
    /// There is no way from the source to the target.
    #[error("{source_address} to {target}: {error}; check the route to the target")]
    Connect {
        /// Address of the socket.
        source_address: SocketAddr,
        /// Address to send to.
        target: SocketAddr,
        /// Error of the system call.
        error: io::Error,
    },
}

impl UdpPort {
    /// Binds a socket in a namespace. Port 0 chooses a free port. [`Self::receive`] waits for at most
    /// `patience`, from 1 us.
    ///
    /// # Errors
    /// See [`UdpError`].
    pub fn bind(
        namespace: &Namespace,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<Self, UdpError> {
        let bind = |error| UdpError::Bind { address, error };
        let socket = namespace.enter(|| UdpSocket::bind(address))?.map_err(bind)?;
        let patience = StdDuration::from_nanos(patience.as_nanos().max(1_000));
        socket.set_read_timeout(Some(patience)).map_err(bind)?;
        let options = socket.try_clone().map_err(bind)?;
        let options = Socket::from(OwnedFd::from(options));
        let forced = options.set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER);
        forced
            .or_else(|_| options.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER))
            .map_err(bind)?;
        Ok(Self { socket, options })
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives a datagram; `None` if none arrives in time. A datagram that is longer than the
    /// buffer is cut off.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        match self.socket.recv_from(buffer) {
            Ok((length, sender)) => Ok(Some((length, sender))),
            Err(error)
                if matches!(
                    error.kind(),
                    // The last one reports an ICMP message about an earlier datagram.
                    ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::Interrupted
                        | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// Returns the error of the system call, such as `ConnectionRefused` after an ICMP message that
    /// the port is closed.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(datagram, to).map(|_| ())
    }

    /// Returns the number of datagrams that the socket dropped because its buffer was full.
    pub fn dropped(&self) -> u64 {
        let memory = self.options.option::<[u32; MEMORY_VALUES]>(libc::SOL_SOCKET, SO_MEMINFO);
        memory.map_or(0, |memory| u64::from(memory[MEMORY_DROPS]))
    }
}

/// `SO_MEMINFO` of `asm-generic/socket.h`, which libc has only for some targets.
const SO_MEMINFO: i32 = 55;

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(address: SocketAddr, patience: Duration) -> Result<UdpPort, UdpError> {
        UdpPort::bind(&Namespace::Current, address, patience)
    }

    fn any() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn datagrams_arrive_and_drops_are_counted() {
        let patience = Duration::from_millis(1);
        let receiver = bound(any(), patience).unwrap();
        let sender = bound(any(), patience).unwrap();
        let mut buffer = [0; 2048];
        assert!(receiver.receive(&mut buffer).unwrap().is_none());
        // Loopback delivers before the call returns.
        sender.send(b"flow", receiver.address().unwrap()).unwrap();
        let received = receiver.receive(&mut buffer).unwrap();
        assert_eq!(received, Some((4, sender.address().unwrap())));
        assert_eq!(receiver.dropped(), 0);
        let small = 1_024_i32;
        receiver.options.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, &small).unwrap();
        for _ in 0..1_000 {
            sender.send(&[0; 1_024], receiver.address().unwrap()).unwrap();
        }
        let mut received = 0;
        while receiver.receive(&mut buffer).unwrap().is_some() {
            received += 1;
        }
        assert!(received < 1_000);
        assert_eq!(received + receiver.dropped(), 1_000);
    }

    #[test]
    fn taken_port_is_named() {
        let first = bound(any(), Duration::ZERO).unwrap();
        let taken = first.address().unwrap();
        let error = bound(taken, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(&taken.to_string()) && error.contains("free UDP port"), "{error}");
    }
}
