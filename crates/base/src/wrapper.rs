//! Ports that wrap other ports. A wrapper overrides some methods; the inner port does the rest.

use alloc::vec::Vec;

use crate::departure::DepartureRecord;
use crate::port::{
    Capabilities, FrameId, PortError, Receive, ReceiveCounters, Received, Segmentation, Transmit,
    TransmitCounters,
};
use crate::time::Instant;

/// A port that sends through an inner port. It implements [`Transmit`]. Each method calls the inner
/// port unless the wrapper overrides it.
///
/// Every frame passes [`send`](Self::send) or [`send_segments`](Self::send_segments). A wrapper
/// stores no frames and sends stamped frames without rewriting the stamp.
pub trait TransmitWrapper {
    /// Type of the inner port.
    type Port: Transmit;

    /// Returns the inner port.
    fn inner(&self) -> &Self::Port;

    /// Returns the inner port for changes.
    fn inner_mut(&mut self) -> &mut Self::Port;

    /// See [`Transmit::capabilities`].
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        self.inner().capabilities()
    }

    /// See [`Transmit::send`].
    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.inner_mut().send(frame, length, departure);
    }

    /// See [`Transmit::segmented_length_max`].
    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        self.inner().segmented_length_max()
    }

    /// See [`Transmit::send_segments`].
    #[inline]
    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        departure: Instant,
    ) {
        self.inner_mut().send_segments(frame, length, segments, departure);
    }

    /// See [`Transmit::flush`].
    ///
    /// # Errors
    /// As [`Transmit::flush`].
    #[inline]
    fn flush(&mut self) -> Result<(), PortError> {
        self.inner_mut().flush()
    }

    /// See [`Transmit::in_flight`].
    #[inline]
    fn in_flight(&self) -> usize {
        self.inner().in_flight()
    }

    /// See [`Transmit::transmitted`].
    #[inline]
    fn transmitted(&self) -> TransmitCounters {
        self.inner().transmitted()
    }

    /// See [`Transmit::abort`].
    fn abort(&mut self) {
        self.inner_mut().abort();
    }
}

impl<W: TransmitWrapper> Transmit for W {
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        TransmitWrapper::capabilities(self)
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        self.inner_mut().take()
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.inner_mut().frame_mut(frame)
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        TransmitWrapper::send(self, frame, length, departure);
    }

    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        TransmitWrapper::segmented_length_max(self)
    }

    #[inline]
    fn send_segments(
        &mut self,
        frame: FrameId,
        length: usize,
        segments: &Segmentation,
        departure: Instant,
    ) {
        TransmitWrapper::send_segments(self, frame, length, segments, departure);
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        self.inner_mut().release(frame);
    }

    #[inline]
    fn flush(&mut self) -> Result<(), PortError> {
        TransmitWrapper::flush(self)
    }

    #[inline]
    fn in_flight(&self) -> usize {
        TransmitWrapper::in_flight(self)
    }

    #[inline]
    fn transmitted(&self) -> TransmitCounters {
        TransmitWrapper::transmitted(self)
    }

    fn departures(&self) -> Option<DepartureRecord> {
        self.inner().departures()
    }

    fn abort(&mut self) {
        TransmitWrapper::abort(self);
    }
}

/// A port that receives through an inner port. It implements [`Receive`]. Each method calls the
/// inner port unless the wrapper overrides it.
pub trait ReceiveWrapper {
    /// Type of the inner port.
    type Port: Receive;

    /// Returns the inner port.
    fn inner(&self) -> &Self::Port;

    /// Returns the inner port for changes.
    fn inner_mut(&mut self) -> &mut Self::Port;

    /// See [`Receive::receive`].
    ///
    /// # Errors
    /// As [`Receive::receive`].
    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        self.inner_mut().receive(room, batch)
    }

    /// See [`Receive::frame`].
    #[inline]
    fn frame(&self, received: &Received) -> &[u8] {
        self.inner().frame(received)
    }

    /// See [`Receive::release`].
    #[inline]
    fn release(&mut self, received: Received) {
        self.inner_mut().release(received);
    }
}

impl<W: ReceiveWrapper> Receive for W {
    #[inline]
    fn capabilities(&self) -> &Capabilities {
        self.inner().capabilities()
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        ReceiveWrapper::receive(self, room, batch)
    }

    #[inline]
    fn frame(&self, received: &Received) -> &[u8] {
        ReceiveWrapper::frame(self, received)
    }

    #[inline]
    fn release(&mut self, received: Received) {
        ReceiveWrapper::release(self, received);
    }

    fn received(&self) -> ReceiveCounters {
        self.inner().received()
    }
}
