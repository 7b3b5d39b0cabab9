//! Netlink (RFC 3549): requests to the kernel, and attributes of the answers.
//!
//! Parsing uses bounds-checked slices only and skips messages that are too short.

use std::io;
use std::mem::size_of;

use crate::system::socket::{Plain, Socket};

/// The kernel sends the answer to a dump in datagrams of at most 32 KiB.
const BUFFER_BYTES: usize = 64 * 1024;
/// Highest number of datagrams that [`Netlink::exchange`] reads for one answer.
const MESSAGES_MAX: usize = 1 << 20;

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;

/// A socket for one netlink family, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
    buffer: Box<[u8]>,
    sequence: u32,
}

/// One message of an answer or a notification.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    /// Message type, such as `RTM_NEWLINK`.
    pub(super) kind: u16,
    /// Sequence number of the request that it answers; zero in a notification.
    sequence: u32,
    /// Bytes after the header.
    pub(super) payload: &'a [u8],
}

impl Netlink {
    /// Opens a socket that also receives the multicast `groups` (one bit each).
    pub(super) fn open(protocol: i32, groups: u32) -> io::Result<Self> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
        let mut address = libc::sockaddr_nl::zeroed();
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = groups;
        socket.bind(&address, size_of::<libc::sockaddr_nl>())?;
        Ok(Self { socket, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), sequence: 0 })
    }

    /// Requests one object and passes each message of the answer to `visit`.
    ///
    /// # Errors
    /// The kernel's error code as an operating system error.
    pub(super) fn request(
        &mut self,
        kind: u16,
        payload: &[u8],
        visit: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        self.exchange(kind, libc::NLM_F_ACK as u16, payload, visit)
    }

    /// Requests all objects and passes each one to `visit`.
    ///
    /// # Errors
    /// The kernel's error code as an operating system error.
    pub(super) fn dump(
        &mut self,
        kind: u16,
        payload: &[u8],
        visit: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        self.exchange(kind, libc::NLM_F_DUMP as u16, payload, visit)
    }

    /// Returns the socket, for code that polls for notifications.
    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        mut visit: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let length = HEADER_BYTES + payload.len();
        let mut request = Vec::with_capacity(length);
        request.extend((length as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((libc::NLM_F_REQUEST as u16 | flags).to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend(0_u32.to_ne_bytes());
        request.extend(payload);
        self.socket.send(&request, 0)?;
        for _ in 0..MESSAGES_MAX {
            let datagram = receive(&self.socket, &mut self.buffer, 0)?;
            for message in messages(datagram) {
                if message.sequence != self.sequence {
                    continue;
                }
                match i32::from(message.kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return error_of(message.payload),
                    _ => visit(message),
                }
            }
        }
        Err(io::Error::other("the kernel's answer has no end"))
    }

    /// Passes each pending notification to `visit`. Reads at most `limit` datagrams and does not
    /// block.
    ///
    /// # Errors
    /// `ENOBUFS` if the kernel dropped notifications.
    pub(super) fn notifications(
        &mut self,
        limit: usize,
        mut visit: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        for _ in 0..limit {
            match receive(&self.socket, &mut self.buffer, libc::MSG_DONTWAIT) {
                Ok(datagram) => messages(datagram).for_each(&mut visit),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn receive<'a>(socket: &Socket, buffer: &'a mut [u8], flags: i32) -> io::Result<&'a [u8]> {
    let length = loop {
        match socket.receive(buffer, flags | libc::MSG_TRUNC) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    buffer.get(..length).ok_or_else(|| {
        io::Error::other(format!("a netlink message of {length} bytes, over {BUFFER_BYTES}"))
    })
}

fn error_of(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::Error::other("a netlink error without a code")),
    }
}

/// Iterates over the messages of one datagram.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let message = Message {
            kind: u16_at(rest, 4)?,
            sequence: u32_at(rest, 8)?,
            payload: rest.get(HEADER_BYTES..length)?,
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Iterates over the attributes in `rest`: type (without its flag bits) and value.
pub(super) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & libc::NLA_TYPE_MASK as u16;
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Appends an attribute to a request.
pub(super) fn push_attribute(request: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = ATTRIBUTE_HEADER_BYTES + value.len();
    request.extend((length as u16).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(request.len().next_multiple_of(4), 0);
}

/// Reads a `u16` in native byte order.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

/// Reads a `u32` in native byte order.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

/// Reads a `u64` in native byte order.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Decodes a string up to its terminating null byte.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_round_trip() {
        let mut request = Vec::new();
        push_attribute(&mut request, 3, b"veth0\0");
        push_attribute(&mut request, 0x8000 | 4, &7_u32.to_ne_bytes());
        let read: Vec<_> = attributes(&request).collect();
        assert_eq!(read, [(3, &b"veth0\0"[..]), (4, &7_u32.to_ne_bytes()[..])]);
        assert_eq!(text(read[0].1), "veth0");
    }

    #[test]
    fn invalid_lengths_end_the_iteration() {
        for length in [0_u16, 3, 9, u16::MAX] {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend([1, 0, 0, 0, 0, 0]);
            assert_eq!(attributes(&bytes).count(), 0, "{length}");
        }
        for length in [0_u32, 15, 17, u32::MAX] {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.resize(HEADER_BYTES, 0);
            assert_eq!(messages(&bytes).count(), 0, "{length}");
        }
    }
}
