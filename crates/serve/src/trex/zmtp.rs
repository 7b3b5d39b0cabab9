//! ZeroMQ's wire protocol (ZMTP 3.0, <https://rfc.zeromq.org/spec/23/>) for a server: NULL mechanism,
//! sockets REP and PUB.
//!
//! ```text
//! greeting = signature version mechanism as-server filler            64 bytes, from both sides
//! frame    = flags size body        flags: 1 more, 2 long size, 4 command
//! message  = *frame-more frame-last; a REQ socket puts an empty frame before the body
//! ```
//!
//! The length of a frame reserves no memory: buffers grow with the bytes that arrive.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Length of the greeting in bytes.
const GREETING_BYTES: usize = 64;
/// Maximum number of frames of a message.
const FRAMES_MAX: usize = 8;
/// Maximum length of a command in bytes.
const COMMAND_BYTES_MAX: u64 = 4_096;
/// Capacity that a buffer has before the first bytes of a long frame arrive.
const CAPACITY: u64 = 16 << 10;
/// Length of the time to live in a PING command.
const TTL_BYTES: usize = 2;

mod flag {
    pub(super) const MORE: u8 = 1;
    pub(super) const LONG: u8 = 2;
    pub(super) const COMMAND: u8 = 4;
}

/// What a peer sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A message: its frames.
    Message(Vec<Vec<u8>>),
    /// A PING command; the value is its context, which the answer repeats.
    Ping(Vec<u8>),
    /// Any other command.
    Command,
}

/// Exchanges greetings and READY commands.
///
/// # Errors
/// The peer speaks another protocol, another mechanism, or goes away.
pub(super) async fn shake_hands<S>(stream: &mut S, socket_type: &str) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&greeting()).await?;
    let mut found = [0; GREETING_BYTES];
    stream.read_exact(&mut found).await?;
    // Signature: 0xff, eight bytes of padding, 0x7f. Then the major version.
    if found[0] != 0xff || found[9] & 1 == 0 || found[10] < 3 {
        return Err(invalid("the peer does not speak ZMTP 3"));
    }
    if &found[12..16] != b"NULL" || found[16] != 0 {
        return Err(invalid("the peer asks for a security mechanism other than NULL"));
    }
    stream.write_all(&ready(socket_type)).await?;
    stream.flush().await?;
    match read(stream, COMMAND_BYTES_MAX).await? {
        Event::Command => Ok(()),
        _ => Err(invalid("expected the command READY")),
    }
}

fn greeting() -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn ready(socket_type: &str) -> Vec<u8> {
    let mut body = vec![5];
    body.extend(b"READY");
    for (name, value) in [("Socket-Type", socket_type), ("Identity", "")] {
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(value.as_bytes());
    }
    frame(flag::COMMAND, &body)
}

/// Returns the command that answers a PING with this context.
pub(super) fn pong(context: &[u8]) -> Vec<u8> {
    let mut body = vec![4];
    body.extend(b"PONG");
    body.extend(context);
    frame(flag::COMMAND, &body)
}

/// Returns a message as bytes.
pub(super) fn message(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, body) in frames.iter().enumerate() {
        let flags = if index + 1 < frames.len() { flag::MORE } else { 0 };
        bytes.extend(frame(flags, body));
    }
    bytes
}

fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 9);
    match u8::try_from(body.len()) {
        Ok(length) => bytes.extend([flags, length]),
        Err(_) => {
            bytes.push(flags | flag::LONG);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(body);
    bytes
}

/// Reads the next message or command. `bytes_max`: maximum length of all frames of a message.
///
/// # Errors
/// The peer goes away, sends an invalid frame, or exceeds a bound.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S, bytes_max: u64) -> Result<Event> {
    let (mut frames, mut left) = (Vec::new(), bytes_max);
    loop {
        let flags = stream.read_u8().await?;
        if flags & !(flag::MORE | flag::LONG | flag::COMMAND) != 0 {
            return Err(invalid("a frame has unknown flags"));
        }
        let length = match flags & flag::LONG {
            0 => u64::from(stream.read_u8().await?),
            _ => stream.read_u64().await?,
        };
        if flags & flag::COMMAND != 0 {
            if length > COMMAND_BYTES_MAX || flags & flag::MORE != 0 || !frames.is_empty() {
                return Err(invalid("a command is too long or in the middle of a message"));
            }
            return Ok(command(&body(stream, length).await?));
        }
        left = left.checked_sub(length).ok_or_else(|| invalid("a message is too long"))?;
        frames.push(body(stream, length).await?);
        if flags & flag::MORE == 0 {
            return Ok(Event::Message(frames));
        }
        if frames.len() == FRAMES_MAX {
            return Err(invalid("a message has too many frames"));
        }
    }
}

async fn body<S: AsyncRead + Unpin>(stream: &mut S, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length.min(CAPACITY) as usize);
    let found = stream.take(length).read_to_end(&mut bytes).await?;
    match found as u64 == length {
        true => Ok(bytes),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn command(body: &[u8]) -> Event {
    match body {
        [4, b'P', b'I', b'N', b'G', rest @ ..] if rest.len() >= TTL_BYTES => {
            Event::Ping(rest[TTL_BYTES..].to_vec())
        }
        _ => Event::Command,
    }
}

fn invalid(reason: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn messages_and_commands_are_read_in_order() {
        let long = vec![7; 300];
        let mut bytes = message(&[Vec::new(), long.clone()]);
        bytes.extend(frame(flag::COMMAND, b"\x04PING\x00\x05abc"));
        bytes.extend(frame(flag::COMMAND, b"\x05READY"));
        run(async {
            let mut stream = &bytes[..];
            let event = read(&mut stream, 1_000).await.unwrap();
            assert_eq!(event, Event::Message(vec![Vec::new(), long]));
            assert_eq!(read(&mut stream, 0).await.unwrap(), Event::Ping(b"abc".to_vec()));
            assert_eq!(read(&mut stream, 0).await.unwrap(), Event::Command);
            assert_eq!(read(&mut stream, 0).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        });
        assert_eq!(pong(b"abc"), b"\x04\x08\x04PONGabc");
    }

    #[test]
    fn invalid_frames_are_errors_and_reserve_no_memory() {
        let mut huge = vec![flag::LONG];
        huge.extend(u64::MAX.to_be_bytes());
        let mut truncated = vec![flag::LONG];
        truncated.extend(1_000_000_u64.to_be_bytes());
        truncated.extend([0; 10]);
        let many: Vec<u8> = [flag::MORE, 0].repeat(FRAMES_MAX + 1);
        for bytes in [&huge[..], &truncated, &many, &[0xff, 0], &[0, 5, 1], &[5, 1, 0]] {
            run(async {
                assert!(read(&mut &bytes[..], 1 << 20).await.is_err(), "{bytes:?}");
            });
        }
    }

    #[test]
    fn handshake_needs_version_3_and_no_security() {
        let client = |change: fn(&mut [u8; GREETING_BYTES])| {
            let mut found = greeting();
            change(&mut found);
            let bytes: Vec<u8> = [&found[..], &ready("REQ")].concat();
            run(async {
                let mut stream = tokio::io::join(&bytes[..], Vec::new());
                shake_hands(&mut stream, "REP").await
            })
        };
        client(|_| {}).unwrap();
        assert!(client(|greeting| greeting[10] = 1).is_err());
        assert!(client(|greeting| greeting[0] = b'G').is_err());
        assert!(client(|greeting| greeting[12..17].copy_from_slice(b"CURVE")).is_err());
    }
}
