//! A socket of ZeroMQ's wire protocol ([ZMTP 3.0](https://rfc.zeromq.org/spec/23/)) over TCP, without
//! encryption.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Timeout of a read.
const PATIENCE: Duration = Duration::from_secs(60);

const GREETING_BYTES: usize = 64;
/// Flags of a frame: more frames of this message follow, a length of eight bytes, a command.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A connected socket.
#[derive(Debug)]
pub struct ZmtpSocket {
    stream: TcpStream,
}

impl ZmtpSocket {
    /// Exchanges greetings over a connection, which either side may have opened. `kind` is the type
    /// of the own socket, such as `REQ`.
    ///
    /// # Errors
    /// The connection ends, or the other side sends no command within 60 s.
    pub fn over(mut stream: TcpStream, kind: &str) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut greeting = [0; GREETING_BYTES];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting)?;
        stream.read_exact(&mut greeting)?;
        let mut socket = Self { stream };
        let kind_bytes = (kind.len() as u32).to_be_bytes();
        let property = [&[11], &b"Socket-Type"[..], &kind_bytes, kind.as_bytes()].concat();
        socket.send(COMMAND, &[&b"\x05READY"[..], &property].concat())?;
        match socket.receive()? {
            (COMMAND, _) => Ok(socket),
            (flags, _) => Err(io::Error::other(format!("no READY, but a frame of flags {flags}"))),
        }
    }

    /// Sends a frame; bit 0 of `flags` announces further frames of the message, bit 2 is a command.
    ///
    /// # Errors
    /// The connection ends.
    pub fn send(&mut self, flags: u8, body: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(body.len() + 9);
        frame.push(flags | LONG);
        frame.extend((body.len() as u64).to_be_bytes());
        frame.extend(body);
        self.stream.write_all(&frame)
    }

    /// Receives a frame: its flags without the one of the length, and its body.
    ///
    /// # Errors
    /// The connection ends, or no frame arrives within 60 s.
    pub fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        let mut length = u64::from(head[1]);
        if head[0] & LONG != 0 {
            let mut rest = [0; 8];
            rest[0] = head[1];
            self.stream.read_exact(&mut rest[1..])?;
            length = u64::from_be_bytes(rest);
        }
        let mut body = Vec::new();
        let received = (&mut self.stream).take(length).read_to_end(&mut body)?;
        if received as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((head[0] & (MORE | COMMAND), body))
    }

    /// Sends a request of a `REQ` socket and returns the answer.
    ///
    /// # Errors
    /// The connection ends, or the answer does not begin with an empty frame.
    pub fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.send(MORE, b"")?;
        self.send(0, request)?;
        match self.receive()? {
            (MORE, delimiter) if delimiter.is_empty() => Ok(self.receive()?.1),
            (flags, _) => Err(io::Error::other(format!("no delimiter, but flags {flags}"))),
        }
    }
}
