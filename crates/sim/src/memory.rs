//! Ports in memory: a wire that delivers frames in order at their due times, and a sink.
//!
//! Both ends of a wire live on one thread. Frames move as boxed buffers, so no frame is copied, and
//! nothing is allocated after [`wire`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
    StoredBytes, Transmit, TransmitCounters,
};
use wirestorm_base::time::Instant;

/// Size of a wire.
#[derive(Clone, Copy, Debug)]
pub struct WireOptions {
    /// Number of frame buffers, which both ends share.
    pub frames: usize,
    /// Longest frame in bytes without FCS.
    pub frame_length_max: usize,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self { frames: 512, frame_length_max: 9_216 }
    }
}

/// Creates the two ends of a wire.
pub fn wire(options: WireOptions) -> (MemoryTransmit, MemoryReceive) {
    let capabilities = capabilities(options);
    let buffer = |place| {
        let bytes = vec![0; options.frame_length_max].into_boxed_slice();
        Buffer { place, bytes }
    };
    let medium = Rc::new(RefCell::new(Medium {
        on_the_wire: VecDeque::with_capacity(options.frames),
        spare: (0..options.frames as u32).map(buffer).collect(),
    }));
    let table = || Table((0..options.frames).map(|_| Box::default()).collect());
    let transmit = MemoryTransmit {
        capabilities,
        medium: Rc::clone(&medium),
        table: table(),
        queued: Vec::with_capacity(options.frames),
        queued_bytes: 0,
        store: Vec::new(),
        counters: TransmitCounters::default(),
        departures: DepartureRecord::default(),
        left: Instant::ZERO,
    };
    let receive = MemoryReceive {
        capabilities,
        medium,
        table: table(),
        counters: ReceiveCounters::default(),
    };
    (transmit, receive)
}

/// Port that discards every frame exactly at its due time. It measures the cost of everything above
/// a port.
#[derive(Debug)]
pub struct MemorySink {
    capabilities: Capabilities,
    /// All buffers, each at a multiple of the stride.
    memory: Box<[u8]>,
    free: Vec<u32>,
    /// Frames that the next flush sends.
    queued: Vec<u32>,
    queued_bytes: u64,
    /// Departure times of the queued frames that have one.
    queued_departures: Vec<Instant>,
    counters: TransmitCounters,
    departures: DepartureRecord,
}

/// Distance of two buffers in bytes: an odd number of cache lines, so that consecutive buffers
/// spread over all sets of a cache.
const fn stride(frame_length_max: usize) -> usize {
    (frame_length_max.div_ceil(64) | 1) * 64
}

impl MemorySink {
    /// Creates a sink with its own buffers.
    pub fn new(options: WireOptions) -> Self {
        Self {
            capabilities: capabilities(options),
            memory: vec![0; options.frames * stride(options.frame_length_max)].into_boxed_slice(),
            free: (0..options.frames as u32).rev().collect(),
            queued: Vec::with_capacity(options.frames),
            queued_bytes: 0,
            queued_departures: Vec::with_capacity(options.frames),
            counters: TransmitCounters::default(),
            departures: DepartureRecord::default(),
        }
    }
}

impl Transmit for MemorySink {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        self.free.pop().map(FrameId::from_index)
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        let length = self.capabilities.frame_length_max;
        &mut self.memory[frame.index() as usize * stride(length)..][..length]
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.capabilities.assert_length(length);
        self.queued.push(frame.index());
        self.queued_bytes += length as u64;
        if departure != Instant::ZERO {
            self.queued_departures.push(departure);
        }
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.counters.sent += self.queued.len() as u64;
        self.counters.sent_bytes += self.queued_bytes;
        self.queued_bytes = 0;
        self.free.append(&mut self.queued);
        self.departures.record_exact(self.queued_departures.drain(..));
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queued.len()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn departures(&self) -> Option<DepartureRecord> {
        Some(self.departures.clone())
    }

    fn abort(&mut self) {
        self.counters.unsent += self.queued.len() as u64;
        self.queued_bytes = 0;
        self.queued_departures.clear();
        self.free.append(&mut self.queued);
    }
}

const fn capabilities(options: WireOptions) -> Capabilities {
    Capabilities {
        frame_length_max: options.frame_length_max,
        untagged_length_max: options.frame_length_max,
        frames: options.frames,
        burst: 64,
        holds_departure: true,
        departure_stamp: StampPoint::Virtual,
        arrival_stamp: StampPoint::Virtual,
    }
}

/// Frame buffer, and its index in the table of the end that holds it.
#[derive(Debug)]
struct Buffer {
    place: u32,
    bytes: Box<[u8]>,
}

/// Frame in transit.
#[derive(Debug)]
struct OnTheWire {
    buffer: Buffer,
    length: usize,
    departure: Instant,
}

/// State that both ends share.
#[derive(Debug)]
struct Medium {
    on_the_wire: VecDeque<OnTheWire>,
    /// Free buffers. The last one returned is taken first, while it is still in the cache.
    spare: Vec<Buffer>,
}

/// Buffers that one end holds, by index; the other entries are empty.
#[derive(Debug)]
struct Table(Vec<Box<[u8]>>);

impl Table {
    #[inline]
    fn insert(&mut self, buffer: Buffer) -> FrameId {
        let empty = core::mem::replace(&mut self.0[buffer.place as usize], buffer.bytes);
        // The replaced box is empty: forgetting it skips the check for memory to free.
        core::mem::forget(empty);
        FrameId::from_index(buffer.place)
    }

    #[inline]
    fn remove(&mut self, frame: &FrameId) -> Buffer {
        let place = frame.index();
        Buffer { place, bytes: core::mem::take(&mut self.0[place as usize]) }
    }
}

/// Sending end of a wire.
#[derive(Debug)]
pub struct MemoryTransmit {
    capabilities: Capabilities,
    medium: Rc<RefCell<Medium>>,
    table: Table,
    queued: Vec<OnTheWire>,
    queued_bytes: u64,
    store: Vec<Box<[u8]>>,
    counters: TransmitCounters,
    departures: DepartureRecord,
    /// Departure of the last frame; later frames do not leave before it.
    left: Instant,
}

impl MemoryTransmit {
    #[inline]
    fn queue(&mut self, buffer: Buffer, length: usize, departure: Instant) {
        self.queued_bytes += length as u64;
        self.queued.push(OnTheWire { buffer, length, departure });
    }
}

impl Transmit for MemoryTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        let buffer = self.medium.borrow_mut().spare.pop()?;
        Some(self.table.insert(buffer))
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        &mut self.table.0[frame.index() as usize]
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.capabilities.assert_length(length);
        let buffer = self.table.remove(&frame);
        self.queue(buffer, length, departure);
    }

    fn store(&mut self, bytes: &[u8]) -> Option<StoredBytes> {
        self.store.push(bytes.into());
        Some(StoredBytes::from_index(self.store.len() as u32 - 1))
    }

    fn send_stored(
        &mut self,
        frame: FrameId,
        stored: StoredBytes,
        range: Range<usize>,
        departure: Instant,
    ) {
        let length = range.len();
        self.capabilities.assert_length(length);
        let mut buffer = self.table.remove(&frame);
        buffer.bytes[..length].copy_from_slice(&self.store[stored.index() as usize][range]);
        self.queue(buffer, length, departure);
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        let buffer = self.table.remove(&frame);
        self.medium.borrow_mut().spare.push(buffer);
    }

    fn flush(&mut self) -> Result<(), PortError> {
        if self.queued.is_empty() {
            return Ok(());
        }
        self.counters.sent += self.queued.len() as u64;
        self.counters.sent_bytes += core::mem::take(&mut self.queued_bytes);
        for frame in &mut self.queued {
            self.left = self.left.max(frame.departure);
            if frame.departure != Instant::ZERO {
                self.departures.record_exact([self.left]);
            }
            frame.departure = self.left;
        }
        let mut medium = self.medium.borrow_mut();
        if medium.on_the_wire.is_empty() {
            // Swap the two collections: this copies no frame.
            let emptied = core::mem::take(&mut medium.on_the_wire);
            medium.on_the_wire = core::mem::replace(&mut self.queued, emptied.into()).into();
        } else {
            medium.on_the_wire.extend(self.queued.drain(..));
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queued.len()
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn departures(&self) -> Option<DepartureRecord> {
        Some(self.departures.clone())
    }

    fn abort(&mut self) {
        self.counters.unsent += self.queued.len() as u64;
        let mut medium = self.medium.borrow_mut();
        self.queued_bytes = 0;
        medium.spare.extend(self.queued.drain(..).map(|frame| frame.buffer));
    }
}

/// Receiving end of a wire.
#[derive(Debug)]
pub struct MemoryReceive {
    capabilities: Capabilities,
    medium: Rc<RefCell<Medium>>,
    table: Table,
    counters: ReceiveCounters,
}

impl Receive for MemoryReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let mut medium = self.medium.borrow_mut();
        let count = room.min(medium.on_the_wire.len());
        let mut bytes = 0;
        batch.reserve(count);
        for OnTheWire { buffer, length, departure } in medium.on_the_wire.drain(..count) {
            let arrival = departure;
            bytes += length as u64;
            let frame = self.table.insert(buffer);
            let offloads = Offloads::default();
            let original_length = length;
            batch.push(Received { frame, length, original_length, arrival, queue: 0, offloads });
        }
        self.counters.received += count as u64;
        self.counters.received_bytes += bytes;
        Ok(count)
    }

    #[inline]
    fn frame(&self, received: &Received) -> &[u8] {
        &self.table.0[received.frame.index() as usize][..received.length]
    }

    #[inline]
    fn release(&mut self, received: Received) {
        let buffer = self.table.remove(&received.frame);
        self.medium.borrow_mut().spare.push(buffer);
    }

    fn received(&self) -> ReceiveCounters {
        self.counters
    }
}
