//! A port that survives outages of its interface.

use wirestorm_base::port::{
    FrameId, PortError, Receive, Received, Segmentation, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;

/// The transmit or receive half of a port whose interface may go down and come up again. While it
/// is down, nothing arrives, and frames to send are dropped and counted as unsent. The owner calls
/// `resume` when the interface is up again.
#[derive(Debug)]
pub(crate) struct LinkFlapTolerant<Port> {
    port: Port,
    is_down: bool,
    /// Frames dropped while the interface was down.
    unsent: u64,
}

impl<Port> LinkFlapTolerant<Port> {
    pub(crate) const fn new(port: Port) -> Self {
        Self { port, is_down: false, unsent: 0 }
    }

    pub(crate) const fn port(&self) -> &Port {
        &self.port
    }

    pub(crate) const fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    pub(crate) const fn is_down(&self) -> bool {
        self.is_down
    }

    /// Records that the interface is up again.
    pub(crate) const fn resume(&mut self) {
        self.is_down = false;
    }
}

impl<Port: Receive> LinkFlapTolerant<Port> {
    /// Records that the interface is down: returns no frames until it is up again.
    pub(crate) const fn suspend_receive(&mut self) {
        self.is_down = true;
    }
}

impl<Port: Transmit> LinkFlapTolerant<Port> {
    /// Records that the interface is down. Aborts the queued frames, which would leave too late.
    pub(crate) fn suspend_transmit(&mut self) {
        if !self.is_down {
            self.is_down = true;
            self.port.abort();
        }
    }

    fn discard(&mut self, frame: FrameId) {
        self.port.release(frame);
        self.unsent += 1;
    }
}

impl<Port: Transmit> wrapper::TransmitWrapper for LinkFlapTolerant<Port> {
    type Port = Port;

    #[inline]
    fn inner(&self) -> &Port {
        &self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        if self.is_down {
            return self.discard(frame);
        }
        self.port.send(frame, length, departure);
    }

    #[inline]
    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        departure: Instant,
    ) {
        if self.is_down {
            return self.discard(frame);
        }
        self.port.send_segments(frame, length, segments, departure);
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.is_down {
            return Ok(());
        }
        match self.port.flush() {
            Err(PortError::Down { .. }) => {
                self.suspend_transmit();
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn transmitted(&self) -> TransmitCounters {
        let mut counters = self.port.transmitted();
        counters.unsent += self.unsent;
        counters
    }
}

impl<Port: Receive> wrapper::ReceiveWrapper for LinkFlapTolerant<Port> {
    type Port = Port;

    #[inline]
    fn inner(&self) -> &Port {
        &self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        if self.is_down {
            return Ok(0);
        }
        match self.port.receive(room, batch) {
            Err(PortError::Down { .. }) => {
                self.suspend_receive();
                Ok(0)
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_sim::memory::{WireOptions, wire};

    #[test]
    fn frames_sent_during_an_outage_count_as_unsent() {
        let (transmit, mut receive) = wire(WireOptions { frames: 16, frame_length_max: 100 });
        let mut port = LinkFlapTolerant::new(transmit);
        let mut send = |port: &mut LinkFlapTolerant<_>, count: usize| {
            for _ in 0..count {
                let frame = port.take().unwrap();
                port.send(frame, 60, Instant::ZERO);
            }
            port.flush().unwrap();
            let mut batch = Vec::new();
            let arrived = receive.receive(64, &mut batch).unwrap();
            batch.drain(..).for_each(|received| receive.release(received));
            arrived
        };
        assert_eq!(send(&mut port, 3), 3);
        port.suspend_transmit();
        // More frames than buffers, so the test also checks that buffers are released.
        assert_eq!(send(&mut port, 40), 0);
        assert!(port.is_down());
        port.resume();
        assert_eq!(send(&mut port, 5), 5);
        let TransmitCounters { sent, unsent, failed, .. } = port.transmitted();
        assert_eq!((sent, unsent, failed, port.in_flight()), (8, 40, 0, 0));
    }
}
