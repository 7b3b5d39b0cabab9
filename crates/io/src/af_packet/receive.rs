//! The receiving half of a packet socket port.

use std::io;

use wirestorm_base::port::{
    Capabilities, FrameId, Offloads, PortError, Receive, ReceiveCounters, Received, StampPoint,
};
use wirestorm_base::time::Duration;

use super::bound_socket::BoundSocket;
use super::receive_ring::{FRAME_ALIGNMENT, ReceiveRing};
use super::{AfPacketError, AfPacketOptions, FanoutBy, FilterInstruction};
use crate::clock::RealtimeOffset;
use crate::link::Link;
use crate::system::socket::Socket;

const FILTER_INSTRUCTIONS_MAX: usize = 4096;
/// Bytes that each frame occupies in the ring besides its data.
const RING_FRAME_OVERHEAD: usize = 112;
/// Frames of one burst.
const BURST: usize = 64;
/// Number of consecutive empty polls after which the port reads the socket's error. Only that error
/// shows that the interface is down or gone. Arriving frames do not clear it: a socket whose
/// interface was down and is up again does not block until the error is read.
const EMPTY_POLLS_PER_CHECK: u32 = 4096;

/// Receives through a packet socket.
///
/// The arrival time is the kernel's (`CLOCK_REALTIME`), converted to `CLOCK_MONOTONIC` with one
/// offset for each block. The port restores VLAN tags that the kernel removed. With generic receive
/// offload, the interface delivers merged TCP and UDP frames. To compare frames, turn it off
/// (`ethtool -K IFACE gro off`).
pub struct AfPacketReceive {
    bound: BoundSocket,
    ring: ReceiveRing,
    queue: u32,
    offset: RealtimeOffset,
    capabilities: Capabilities,
    empty_polls: u32,
    taken: u64,
    taken_bytes: u64,
}

impl AfPacketReceive {
    /// Opens a socket that receives all frames arriving on the interface, but not those that it
    /// sends; with [`Direction::Leaving`](super::Direction::Leaving) the other way round.
    ///
    /// # Errors
    /// Fails if the interface does not exist, is down or is not Ethernet. Also fails if the process
    /// lacks `CAP_NET_RAW`, or if an option is out of range.
    pub fn open(options: &AfPacketOptions) -> Result<Self, AfPacketError> {
        let ring_bytes = options.receive_ring_bytes;
        if !(256 << 10..=1 << 30).contains(&ring_bytes) {
            let (option, expected) = ("receive_ring_bytes", "262,144 (256 KiB) to 1 GiB");
            return Err(AfPacketError::Option { option, found: ring_bytes, expected });
        }
        if options.filter.len() > FILTER_INSTRUCTIONS_MAX {
            let (option, expected) = ("filter", "at most 4,096 instructions");
            return Err(AfPacketError::Option { option, found: options.filter.len(), expected });
        }
        let (socket, link) = options.socket()?;
        attach_filter(&socket, &options.filter_with_direction())
            .map_err(options.system("attaching the filter (is it a valid program?)"))?;
        let ring = ReceiveRing::open(&socket, ring_bytes)
            .map_err(options.system("setting up a receive ring"))?;
        let hearing = BoundSocket::bind(options, socket, &link, libc::ETH_P_ALL as u16)?;
        if let Some(fanout) = options.fanout {
            let by = match fanout.by {
                FanoutBy::Flow => libc::PACKET_FANOUT_HASH,
                FanoutBy::RoundRobin => libc::PACKET_FANOUT_LB,
                FanoutBy::Cpu => libc::PACKET_FANOUT_CPU,
                FanoutBy::Queue => libc::PACKET_FANOUT_QM,
            };
            let value = u32::from(fanout.group) | by << 16;
            hearing
                .socket
                .set_option(libc::SOL_PACKET, libc::PACKET_FANOUT, &value)
                .map_err(options.system("joining the fan-out group"))?;
        }
        Ok(Self {
            bound: hearing,
            ring,
            queue: options.queue,
            offset: RealtimeOffset::read(),
            capabilities: capabilities(&link, ring_bytes),
            empty_polls: 0,
            taken: 0,
            taken_bytes: 0,
        })
    }

    /// Waits up to `patience` for frames. Returns early on a signal, and if the interface failed,
    /// which [`Receive::receive`] then reports. The kernel signals whole blocks: at low rates this
    /// is a few milliseconds after the arrival.
    pub fn wait(&self, patience: Duration) {
        self.bound.socket.wait_readable(patience);
    }
}

impl Receive for AfPacketReceive {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let mut count = 0;
        while count < room {
            let Some(frame) = self.ring.next() else { break };
            if frame.begins_block {
                self.offset = RealtimeOffset::read();
            }
            self.taken += 1;
            self.taken_bytes += frame.original_length as u64;
            batch.push(Received {
                frame: FrameId::from_index((frame.offset / FRAME_ALIGNMENT) as u32),
                length: frame.length,
                original_length: frame.original_length,
                arrival: self.offset.to_monotonic(frame.realtime_nanos),
                queue: self.queue,
                offloads: Offloads { is_verified: frame.is_verified, segment_data: 0 },
            });
            count += 1;
        }
        if count > 0 || room == 0 {
            return Ok(count);
        }
        self.empty_polls += 1;
        if self.empty_polls >= EMPTY_POLLS_PER_CHECK {
            self.empty_polls = 0;
            self.bound.check()?;
        }
        Ok(0)
    }

    fn frame(&self, received: &Received) -> &[u8] {
        self.ring.frame(received.frame.index() as usize * FRAME_ALIGNMENT, received.length)
    }

    fn release(&mut self, received: Received) {
        self.ring.release(received.frame.index() as usize * FRAME_ALIGNMENT);
    }

    /// Makes one system call: do not call this for every batch.
    fn received(&self) -> ReceiveCounters {
        let missed = self.bound.missed();
        ReceiveCounters {
            received: self.taken + missed,
            received_bytes: self.taken_bytes,
            rx_dropped: missed,
        }
    }
}

fn capabilities(link: &Link, ring_bytes: usize) -> Capabilities {
    let frame_length_max = link.frame_length_max();
    let frames = ring_bytes / (frame_length_max + RING_FRAME_OVERHEAD);
    link.socket_capabilities(frame_length_max, frames, BURST, StampPoint::Kernel)
}

/// Attaches a filter before the socket is bound, so that no frame bypasses it.
pub(super) fn attach_filter(socket: &Socket, filter: &[FilterInstruction]) -> io::Result<()> {
    if filter.is_empty() {
        return Ok(());
    }
    let mut instructions: Vec<libc::sock_filter> = filter
        .iter()
        .map(|instruction| libc::sock_filter {
            code: instruction.code,
            jt: instruction.jump_true,
            jf: instruction.jump_false,
            k: instruction.operand,
        })
        .collect();
    let program =
        libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
    socket.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
