//! Port behind an impaired link.

use wirestorm_base::port::{FrameId, PortError, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;

use super::{DelayQueueOptions, ImpairmentCounters, Link};
use wirestorm_model::impairment::Impairment;

/// Sending port behind an impaired link. Frames enter the link when they are sent, and leave by the
/// port at their departure from the link. Without a link, this is the port itself.
///
/// The link replaces the departure times of frames.
#[derive(Debug)]
pub struct Impaired<Port> {
    port: Port,
    link: Option<Link>,
    now: Instant,
}

impl<Port: Transmit> Impaired<Port> {
    /// Creates a port behind a link; without an impairment, a plain port.
    pub fn new(port: Port, impairment: Option<Impairment>, seed: u64) -> Self {
        let frame_length_max = port.capabilities().frame_length_max;
        let options = DelayQueueOptions { frame_length_max, ..DelayQueueOptions::default() };
        let link = impairment.map(|impairment| Link::new(impairment, seed, options));
        Self { port, link, now: Instant::ZERO }
    }

    /// Sets the current time. Frames sent from now on enter the link at `now`; the next flush sends
    /// the frames that are due by `now`.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// Returns when the next frame leaves the link.
    pub fn next(&self) -> Option<Instant> {
        self.link.as_ref()?.next()
    }

    /// Returns the port below.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// Returns the link's counters, if there is a link.
    pub fn counters(&self) -> Option<ImpairmentCounters> {
        self.link.as_ref().map(|link| *link.counters())
    }
}

impl<Port: Transmit> wrapper::TransmitWrapper for Impaired<Port> {
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
        match &mut self.link {
            None => self.port.send(frame, length, departure),
            Some(link) => {
                self.port.capabilities().assert_length(length);
                link.enter(self.now, &self.port.frame_mut(&frame)[..length]);
                self.port.release(frame);
            }
        }
    }

    /// Returns no segmentation offload behind a link: the link needs frames as they are on the
    /// wire.
    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        match self.link {
            None => self.port.segmented_length_max(),
            Some(_) => None,
        }
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if let Some(link) = &mut self.link {
            while link.next().is_some_and(|at| at <= self.now) {
                // If no buffer is free, the remaining frames leave later.
                let Some(buffer) = self.port.take() else { break };
                match link.leave(self.now) {
                    Some(frame) => {
                        self.port.frame_mut(&buffer)[..frame.len()].copy_from_slice(frame);
                        self.port.send(buffer, frame.len(), Instant::ZERO);
                    }
                    None => self.port.release(buffer),
                }
            }
        }
        self.port.flush()
    }

    fn in_flight(&self) -> usize {
        let held = self.link.as_ref().map_or(0, |link| link.counters().held());
        self.port.in_flight() + held as usize
    }
}
