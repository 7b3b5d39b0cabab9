//! The receiving half of an AF_XDP port.

use std::cell::RefCell;
use std::sync::Arc;

use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
};
use wirestorm_base::time::{Duration, Instant};

use super::frame_memory::Chunks;
use super::program::ReceiveProgram;
use super::ring::{Consumer, Producer};
use super::socket::{ReceiveHalf, XdpSocket};
use crate::clock;
use crate::link::{Link, LossMeter};

/// Size of `struct arrival` of `bpf/receive.bpf.c`, which directly precedes the frame.
const ARRIVAL_BYTES: usize = 8;
/// Frames of one burst.
const BURST: usize = 64;
/// Number of consecutive empty polls after which the port checks the interface.
const EMPTY_POLLS_PER_CHECK: u32 = 4096;

/// Receives from one queue.
///
/// The XDP program takes the arrival time. If the driver leaves no room for it before the frame,
/// the arrival time is the time at which this process found the frame.
pub struct AfXdpReceive {
    socket: Arc<XdpSocket>,
    chunks: Chunks,
    receive: Consumer<libc::xdp_desc>,
    fill: Producer<u64>,
    /// Offset of the frame within each chunk.
    offsets: Box<[u16]>,
    queue: u32,
    empty_polls: u32,
    taken: u64,
    taken_bytes: u64,
    capabilities: Capabilities,
    /// Frames lost before the socket, if
    /// [`AfXdpOptions::counts_veth_drops`](super::AfXdpOptions::counts_veth_drops).
    losses: Option<RefCell<LossMeter>>,
    /// Keeps the program attached while any port receives.
    _program: Arc<ReceiveProgram>,
}

impl AfXdpReceive {
    pub(super) fn new(
        socket: Arc<XdpSocket>,
        half: ReceiveHalf,
        link: &Link,
        queue: u32,
        program: Arc<ReceiveProgram>,
        losses: Option<LossMeter>,
    ) -> Self {
        let ReceiveHalf { chunks, receive, mut fill, frame_length_max } = half;
        let count = chunks.count();
        (0..count).for_each(|index| fill.push(chunks.address(index)));
        fill.publish();
        debug_assert!(frame_length_max <= link.frame_length_max());
        Self {
            socket,
            chunks,
            receive,
            fill,
            offsets: vec![0; count as usize].into_boxed_slice(),
            queue,
            empty_polls: 0,
            taken: 0,
            taken_bytes: 0,
            capabilities: link.socket_capabilities(
                frame_length_max,
                count as usize,
                BURST,
                StampPoint::Xdp,
            ),
            losses: losses.map(RefCell::new),
            _program: program,
        }
    }

    /// Waits up to `patience` for frames on one of these ports. Returns early on a signal. The
    /// sockets do not report a failed interface, so the next empty [`Receive::receive`] checks it.
    pub fn wait(ports: &mut [&mut Self], patience: Duration) {
        XdpSocket::wait(ports.iter().map(|port| &*port.socket), patience);
        for port in ports {
            port.empty_polls = EMPTY_POLLS_PER_CHECK;
        }
    }

    /// Reads the arrival time that the program wrote before the frame at `offset` of a chunk.
    /// Zeroes it, so that the next frame in this chunk does not inherit the time.
    fn arrival(&mut self, index: u32, offset: usize) -> Option<Instant> {
        let place = offset.checked_sub(ARRIVAL_BYTES)?;
        let bytes: &mut [u8; ARRIVAL_BYTES] =
            self.chunks.bytes_mut(index, place, ARRIVAL_BYTES).try_into().ok()?;
        let nanoseconds = u64::from_ne_bytes(std::mem::take(bytes));
        (nanoseconds != 0).then(|| clock::of_kernel(nanoseconds))
    }

    /// Publishes free chunks to the kernel and wakes it if necessary.
    fn refill(&mut self) -> Result<(), PortError> {
        self.fill.publish();
        if !self.fill.needs_wakeup() && !self.socket.must_always_wake() {
            return Ok(());
        }
        match self.socket.wake_reception() {
            Ok(()) => Ok(()),
            Err(reason) => match reason.raw_os_error() {
                Some(libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENOBUFS) => Ok(()),
                _ => Err(self.socket.interface.port_error("receiving", &reason)),
            },
        }
    }
}

impl Receive for AfXdpReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        self.refill()?;
        let mut count = 0;
        let mut now = None;
        while count < room {
            let Some(descriptor) = self.receive.pop() else { break };
            // The kernel returns only addresses from the fill ring, so `locate` always succeeds.
            let Some((index, offset)) = self.chunks.locate(descriptor.addr) else { continue };
            let length = descriptor.len as usize;
            self.offsets[index as usize] = offset as u16;
            let arrival = match self.arrival(index, offset) {
                Some(arrival) => arrival,
                None => *now.get_or_insert_with(clock::now),
            };
            self.taken += 1;
            self.taken_bytes += length as u64;
            batch.push(Received {
                frame: FrameId::from_index(index),
                length,
                original_length: length,
                arrival,
                queue: self.queue,
                offloads: Offloads::default(),
            });
            count += 1;
        }
        self.receive.release();
        if count > 0 || room == 0 {
            self.empty_polls = 0;
            return Ok(count);
        }
        self.empty_polls += 1;
        if self.empty_polls >= EMPTY_POLLS_PER_CHECK {
            self.empty_polls = 0;
            self.socket.check_interface()?;
        }
        Ok(0)
    }

    fn frame(&self, received: &Received) -> &[u8] {
        let index = received.frame.index();
        let offset = usize::from(self.offsets[index as usize]);
        self.chunks.bytes(index, offset, received.length)
    }

    fn release(&mut self, received: Received) {
        // The fill ring takes the chunk's start; the kernel chooses the offset of the next frame.
        self.fill.push(self.chunks.address(received.frame.index()));
    }

    /// Makes one or more system calls: do not call this for every batch.
    fn received(&self) -> ReceiveCounters {
        let statistics = self.socket.statistics();
        // In copy mode, `rx_dropped` includes frames that found the fill ring empty.
        let lost = self.losses.as_ref().map_or(0, |losses| losses.borrow_mut().read());
        let missed = statistics.rx_dropped + statistics.rx_ring_full + lost;
        ReceiveCounters {
            received: self.taken + missed,
            received_bytes: self.taken_bytes,
            rx_dropped: missed,
        }
    }
}
