//! A port whose frames go over a link first.

use wirestorm_base::port::{FrameId, PortError, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;

use super::{HeldOptions, ImpairmentCounters, Link};
use wirestorm_model::impairment::Impairment;

/// A sending port behind a link: what is given to it enters the link, and leaves by the port when
/// it comes out. Without a link it is the port itself.
///
/// Departure times are the link's: those of frames are not looked at.
#[derive(Debug)]
pub struct Impaired<Port> {
    port: Port,
    link: Option<Link>,
    now: Instant,
}

impl<Port: Transmit> Impaired<Port> {
    /// A port behind a link, or none.
    pub fn new(port: Port, impairment: Option<Impairment>, seed: u64) -> Self {
        let frame_length_max = port.capabilities().frame_length_max;
        let options = HeldOptions { frame_length_max, ..HeldOptions::default() };
        let link = impairment.map(|impairment| Link::new(impairment, seed, options));
        Self { port, link, now: Instant::ZERO }
    }

    /// What time it is: when frames that are sent from now on enter the link, and up to when those
    /// that come out leave with the next flush.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// When the next frame comes out of the link.
    pub fn next(&self) -> Option<Instant> {
        self.link.as_ref()?.next()
    }

    /// The port itself.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// What became of frames on the link, where there is one.
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

    /// Nothing is cut behind a link: it loses and delays frames as they are on a wire.
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
                // Those for which no buffer is free leave later.
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
