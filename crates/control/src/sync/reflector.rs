//! A STAMP reflector: a thread that answers requests.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use wirestorm_clock::stamp::{Reflected, Reflector};
use wirestorm_io::clock::{RealtimeOffset, RealtimeOffsetTracker};
use wirestorm_io::namespace::Namespace;
use wirestorm_io::timestamps::{SendNumber, StampedSocket};
use wirestorm_io::udp::UdpError;

use super::{DATAGRAM_BYTES, PATIENCE, node_time, now, unknown_error};

/// Number of replies whose departure the kernel may still report.
const UNREPORTED_MAX: usize = 256;

/// Answers STAMP and TWAMP Light requests on a UDP port until it is dropped.
#[derive(Debug)]
pub struct StampReflector {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl StampReflector {
    /// Starts a reflector. Port 0 chooses a free port.
    ///
    /// # Errors
    /// The address cannot be used, or there is no thread.
    pub fn start(namespace: &Namespace, address: SocketAddr) -> Result<Self, UdpError> {
        let socket = StampedSocket::bind(namespace, address)?;
        let bind = |error| UdpError::Bind { address, error };
        let address = socket.local_address().map_err(bind)?;
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopping, counter) = (Arc::clone(&stop), Arc::clone(&answered));
        let thread = std::thread::Builder::new()
            .name("reflector".into())
            .spawn(move || reflect(socket, &stopping, &counter))
            .map_err(bind)?;
        Ok(Self { address, stop, answered, thread: Some(thread) })
    }

    /// Returns the address that the reflector listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of requests that were answered.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends the reflector.
    ///
    /// # Errors
    /// Its socket failed before.
    pub fn stop(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for StampReflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // An error of the socket has no receiver here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn reflect(mut socket: StampedSocket, stop: &AtomicBool, answered: &AtomicU64) -> io::Result<()> {
    let mut reflector = Reflector::default();
    let mut clocks = RealtimeOffsetTracker::default();
    let mut unreported: VecDeque<(SendNumber, Reflected)> = VecDeque::new();
    let mut buffer = [0; DATAGRAM_BYTES];
    while !stop.load(Ordering::Acquire) {
        let arrival = socket.receive(&mut buffer, PATIENCE)?;
        let offset = clocks.update();
        note_departures(&socket, offset, &mut reflector, &mut unreported)?;
        let Some(arrival) = arrival else { continue };
        let received = node_time(arrival.stamp, offset);
        let packet = buffer.get(..arrival.length).unwrap_or_default();
        let departure = (now(), unknown_error());
        let reply = reflector.reply(packet, arrival.from, received, arrival.ttl, departure);
        let Some(reply) = reply else { continue };
        // An unreachable sender is not a reason to end.
        let Ok(number) = socket.send_to(&reply.bytes, reply.to) else { continue };
        answered.fetch_add(1, Ordering::Relaxed);
        if unreported.len() == UNREPORTED_MAX {
            unreported.pop_front();
        }
        unreported.push_back((number, reply));
        note_departures(&socket, offset, &mut reflector, &mut unreported)?;
    }
    Ok(())
}

fn note_departures(
    socket: &StampedSocket,
    offset: RealtimeOffset,
    reflector: &mut Reflector,
    unreported: &mut VecDeque<(SendNumber, Reflected)>,
) -> io::Result<()> {
    while let Some(departure) = socket.departure()? {
        let Some(place) = unreported.iter().position(|(number, _)| *number == departure.number)
        else {
            continue;
        };
        // Departures come in order: those before have no report.
        if let Some((_, reply)) = unreported.drain(..=place).next_back() {
            let at = node_time(departure.stamp, offset);
            reflector.departed(reply.to, reply.session, reply.sequence, at);
        }
    }
    Ok(())
}
