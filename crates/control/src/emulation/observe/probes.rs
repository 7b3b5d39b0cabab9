//! UDP latency probes among a port's received frames: replies to its own probes, and requests to
//! echo.
//!
//! The port's worker receives all frames with any backend. It removes probes before the endpoint
//! sees them, which would answer that their UDP port is unreachable.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestorm_base::port::{PortError, Receive, Received, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_base::wrapper;
use wirestorm_stack::Datagram;

use crate::port::{LinkFlapTolerant, ReceivePort};
use crate::responder::UdpReplyReceiver;

/// Maximum number of echo answers that wait for a free frame. Further requests are dropped.
const ANSWERS_MAX: usize = 1_024;

/// UDP probe handler of a port.
#[derive(Default)]
pub(in crate::emulation) struct UdpProbes {
    /// Receivers of replies to the port's own probes.
    reply_receivers: Vec<UdpReplyReceiver>,
    /// Addresses and ports that echo datagrams.
    echo_addresses: Vec<SocketAddr>,
    /// Frames to send.
    answers: VecDeque<Vec<u8>>,
}

impl UdpProbes {
    /// Adds a receiver of replies to a prober.
    pub(in crate::emulation) fn add_reply_receiver(&mut self, receiver: UdpReplyReceiver) {
        self.reply_receivers.push(receiver);
    }

    /// Echoes datagrams to an address and port from now on.
    pub(in crate::emulation) fn echo_at(&mut self, address: SocketAddr) {
        if !self.echo_addresses.contains(&address) {
            self.echo_addresses.push(address);
        }
    }

    /// Whether there are no probes.
    pub(in crate::emulation) fn is_empty(&self) -> bool {
        self.reply_receivers.is_empty() && self.echo_addresses.is_empty()
    }

    /// Takes the frame of a probe. Returns whether it is one. `verifies`: whether to verify its
    /// checksums.
    fn take(&mut self, frame: &[u8], verifies: bool, arrival: Instant) -> bool {
        let Some(datagram) = Datagram::read(frame, verifies) else { return false };
        if self.reply_receivers.iter().any(|receiver| receiver.receive(&datagram, arrival)) {
            return true;
        }
        // Two echo ports would answer each other forever, and port 0 cannot receive an answer.
        let is_request = self.echo_addresses.contains(&datagram.destination)
            && ![0, datagram.destination.port()].contains(&datagram.source.port());
        if is_request && self.answers.len() < ANSWERS_MAX {
            self.answers.extend(datagram.reply().frame());
        }
        is_request
    }
}

/// Receive half of a port that handles UDP probes itself.
pub(in crate::emulation) struct ProbedPort {
    port: LinkFlapTolerant<ReceivePort>,
    udp_probes: UdpProbes,
    /// Whether to verify checksums that the port has not verified.
    verifies: bool,
}

impl ProbedPort {
    pub(in crate::emulation) fn new(port: ReceivePort, echoes: UdpProbes, verifies: bool) -> Self {
        Self { port: LinkFlapTolerant::new(port), udp_probes: echoes, verifies }
    }

    /// Returns the inner port.
    pub(in crate::emulation) fn port_mut(&mut self) -> &mut LinkFlapTolerant<ReceivePort> {
        &mut self.port
    }

    /// Waits until a frame arrives, for at most `patience`.
    pub(in crate::emulation) fn wait(&mut self, patience: Duration) {
        ReceivePort::wait(std::slice::from_mut(self.port.port_mut()), patience);
    }

    /// See [`ReceivePort::ingress_time`].
    pub(in crate::emulation) fn ingress_time(&self) -> Option<Duration> {
        self.port.port().ingress_time()
    }

    /// Whether the port sends or echoes UDP probes.
    pub(in crate::emulation) fn has_probes(&self) -> bool {
        !self.udp_probes.is_empty()
    }

    /// Sends the pending echo answers, as long as frames are free.
    pub(in crate::emulation) fn answer(
        &mut self,
        transmit: &mut impl Transmit,
    ) -> Result<(), PortError> {
        if self.udp_probes.answers.is_empty() {
            return Ok(());
        }
        let longest = transmit.capabilities().untagged_length_max;
        while let Some(answer) = self.udp_probes.answers.pop_front() {
            // The kernel may have merged several received datagrams into a longer one.
            if answer.len() > longest {
                continue;
            }
            let Some(free) = transmit.take() else {
                // Keep the answer for the next call, when sent frames are free again.
                self.udp_probes.answers.push_front(answer);
                break;
            };
            transmit.frame_mut(&free)[..answer.len()].copy_from_slice(&answer);
            transmit.send(free, answer.len(), Instant::ZERO);
        }
        transmit.flush()
    }

    /// Receives one batch, echoes its probes and drops all other frames.
    pub(in crate::emulation) fn serve_probes(
        &mut self,
        transmit: &mut impl Transmit,
    ) -> Result<(), PortError> {
        const ROOM: usize = 64;
        let mut batch = Vec::with_capacity(ROOM);
        self.receive(ROOM, &mut batch)?;
        batch.into_iter().for_each(|received| self.release(received));
        self.answer(transmit)
    }
}

impl wrapper::ReceiveWrapper for ProbedPort {
    type Port = LinkFlapTolerant<ReceivePort>;

    #[inline]
    fn inner(&self) -> &LinkFlapTolerant<ReceivePort> {
        &self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut LinkFlapTolerant<ReceivePort> {
        &mut self.port
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let before = batch.len();
        let fetched = Receive::receive(&mut self.port, room, batch)?;
        if self.udp_probes.is_empty() {
            return Ok(fetched);
        }
        let mut place = before;
        while let Some(received) = batch.get(place) {
            let verifies = self.verifies && !received.offloads.is_verified;
            let frame = Receive::frame(&self.port, received);
            if self.udp_probes.take(frame, verifies, received.arrival) {
                let received = batch.remove(place);
                Receive::release(&mut self.port, received);
            } else {
                place += 1;
            }
        }
        Ok(batch.len() - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::packet::MacAddress;

    fn frame(source: &str, destination: &str) -> Vec<u8> {
        let macs = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Datagram { macs, source, destination, payload: b"echo" }.frame().unwrap()
    }

    #[test]
    fn datagrams_to_an_echo_port_are_answered_and_others_pass() {
        let mut echoes = UdpProbes::default();
        assert!(echoes.is_empty());
        echoes.echo_at("10.0.0.2:7".parse().unwrap());
        let mut take = |frame: &[u8]| echoes.take(frame, true, Instant::ZERO);
        assert!(take(&frame("10.0.0.1:50000", "10.0.0.2:7")));
        for other in ["10.0.0.2:8", "10.0.0.3:7"] {
            assert!(!take(&frame("10.0.0.1:50000", other)), "{other}");
        }
        assert!(!take(&frame("10.0.0.1:7", "10.0.0.2:7")), "both would answer each other forever");
        assert!(!take(&frame("10.0.0.1:0", "10.0.0.2:7")), "port 0");
        let mut damaged = frame("10.0.0.1:50000", "10.0.0.2:7");
        *damaged.last_mut().unwrap() ^= 1;
        assert!(!take(&damaged));
        let answers: Vec<_> = echoes.answers.iter().map(|it| Datagram::read(it, true)).collect();
        let [Some(answer)] = answers[..] else { panic!("{answers:?}") };
        assert_eq!(answer.source, "10.0.0.2:7".parse().unwrap());
        assert_eq!(answer.destination, "10.0.0.1:50000".parse().unwrap());
        assert_eq!(answer.payload, b"echo");
    }

    #[test]
    fn pending_answers_are_bounded() {
        let mut echoes = UdpProbes::default();
        echoes.echo_at("10.0.0.2:7".parse().unwrap());
        for _ in 0..ANSWERS_MAX + 5 {
            assert!(echoes.take(&frame("10.0.0.1:50000", "10.0.0.2:7"), true, Instant::ZERO));
        }
        assert_eq!(echoes.answers.len(), ANSWERS_MAX);
    }
}
