//! A ZeroMQ PAIR socket that connects to a client's socket, and connects again after each end of a
//! connection.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::{sleep, timeout};

use super::zmtp::{self, Event};

/// Maximum length of a message of the client in bytes.
const MESSAGE_BYTES_MAX: u64 = 9_238;
/// Time for connecting with the handshake, and for writing a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a new connection, as in ZeroMQ.
const PAUSE: Duration = Duration::from_millis(100);

/// Address of a client's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// Host name and port.
    Tcp(String),
    /// Path of a Unix socket.
    Ipc(String),
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("ipc://") {
            return (!path.is_empty()).then(|| Self::Ipc(path.to_owned()));
        }
        let address = text.strip_prefix("tcp://")?;
        let (host, port) = address.rsplit_once(':')?;
        (!host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
            .then(|| Self::Tcp(address.to_owned()))
    }
}

/// What goes to the client.
pub(super) trait Outgoing: Send {
    /// A connection begins.
    fn begin(&mut self);

    /// A connection ends.
    fn end(&mut self);

    /// Waits for the next message; `None` ends the socket. Dropping the future loses no message.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Forwards messages until `outgoing` has no more. Messages of the client go to `incoming`, or
/// nowhere without it.
pub(super) async fn stay_connected(
    endpoint: Endpoint,
    mut outgoing: impl Outgoing,
    incoming: Option<Sender<Vec<u8>>>,
) {
    loop {
        // An error ends this connection alone.
        let is_over = match &endpoint {
            Endpoint::Tcp(address) => match timeout(TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let _ = stream.set_nodelay(true);
                    forward(stream, &mut outgoing, incoming.as_ref()).await
                }
                Ok(Err(error)) => Err(error),
                Err(late) => Err(late.into()),
            },
            Endpoint::Ipc(path) => match UnixStream::connect(path).await {
                Ok(stream) => forward(stream, &mut outgoing, incoming.as_ref()).await,
                Err(error) => Err(error),
            },
        };
        outgoing.end();
        if is_over.is_ok() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Forwards messages. Returns at the end of the messages; the end of the connection is an error.
async fn forward<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    outgoing: &mut impl Outgoing,
    incoming: Option<&Sender<Vec<u8>>>,
) -> io::Result<()> {
    timeout(TIMEOUT, zmtp::shake_hands(&mut stream, "PAIR")).await??;
    outgoing.begin();
    let (reader, mut writer) = tokio::io::split(stream);
    let (pings, mut pinged) = channel(1);
    let read = async move {
        let mut reader = tokio::io::BufReader::new(reader);
        loop {
            match zmtp::read(&mut reader, MESSAGE_BYTES_MAX).await? {
                Event::Message(frames) => {
                    if let Some(incoming) = incoming
                        && incoming.send(frames.concat()).await.is_err()
                    {
                        return Ok(());
                    }
                }
                Event::Ping(context) => {
                    if pings.send(context).await.is_err() {
                        return Ok(());
                    }
                }
                Event::Command => {}
            }
        }
    };
    let write = async {
        loop {
            let bytes = tokio::select! {
                message = outgoing.next() => match message {
                    Some(message) => zmtp::message(&[message]),
                    None => return Ok(()),
                },
                context = pinged.recv() => match context {
                    Some(context) => zmtp::pong(&context),
                    None => return Ok(()),
                },
            };
            timeout(TIMEOUT, writer.write_all(&bytes)).await??;
        }
    };
    tokio::select! {
        ended = read => ended,
        ended = write => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_a_tcp_address_or_the_path_of_a_socket() {
        let tcp = Endpoint::Tcp("localhost:5555".to_owned());
        assert_eq!(Endpoint::parse("tcp://localhost:5555"), Some(tcp));
        assert_eq!(Endpoint::parse("ipc:///run/x"), Some(Endpoint::Ipc("/run/x".to_owned())));
        for wrong in
            ["tcp://localhost", "tcp://:5", "tcp://a:0", "tcp://a:x", "udp://a:5", "ipc://"]
        {
            assert_eq!(Endpoint::parse(wrong), None, "{wrong}");
        }
    }
}
