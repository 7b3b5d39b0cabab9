//! BPF program at an interface's ingress (`tcx`, Linux 6.6) that copies frames into a ring which
//! this process reads.
//!
//! A packet socket allocates a buffer and wakes its reader for each frame, and delivers frames one
//! by one. The ring avoids all of that. The program copies the beginning of each frame into the
//! ring when the kernel receives it, and the process reads it in place.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use aya::maps::ring_buf::RingBufItem;
use aya::maps::{Array, MapData, RingBuf};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};
use wirestorm_base::port::Offloads;
use wirestorm_base::time::Duration;

use crate::af_packet::VLAN_TAG_BYTES;
use crate::link::{self, Link};
use crate::namespace::InterfaceName;
use crate::system::bpf::{failure, program};

/// Object of `bpf/ingress.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ingress.o"));

/// Name of the program in the object.
const PROGRAM: &str = "ingress";

/// Size of the ring: 30,000 short frames or 5,000 frames of 1,500 bytes. It fits in the cache,
/// which a larger one would not.
const RING_BYTES: u32 = 8 << 20;

/// The attached program, which delivers frames as long as this value lives. The kernel detaches it
/// when the process ends for any reason.
pub(super) struct Ingress {
    ring: RingBuf<MapData>,
    missed: Array<MapData, u64>,
    /// Keeps the program attached.
    programs: Ebpf,
}

/// A frame in the ring.
pub(super) struct RingFrame<'a> {
    item: RingBufItem<'a>,
}

impl Ingress {
    /// Attaches the program to an interface. If the host has no address on the interface, the
    /// program drops TCP and UDP after copying them, since no socket could receive them. Otherwise,
    /// and for all other frames, the network stack receives them too, as with a packet socket.
    ///
    /// # Errors
    /// Fails without privilege (`CAP_BPF`, `CAP_NET_ADMIN`, `CAP_PERFMON`), or before Linux 6.6.
    pub(super) fn attach(interface: &InterfaceName, link: &Link) -> io::Result<Self> {
        let whole_max = link.frame_length_max() as u32;
        let mut programs = EbpfLoader::new()
            .override_global("whole_max", &whole_max, true)
            .override_global("ends_here", &u32::from(!host_has_address(interface, link)?), true)
            .map_max_entries("arrivals", RING_BYTES)
            .load(OBJECT)
            .map_err(failure)?;
        let ring = programs.take_map("arrivals").ok_or_else(|| missing_map("arrivals"))?;
        let missed = programs.take_map("missed").ok_or_else(|| missing_map("missed"))?;
        let ingress: &mut SchedClassifier = program(&mut programs, PROGRAM)?;
        ingress.load().map_err(failure)?;
        let order = TcAttachOptions::TcxOrder(LinkOrder::last());
        interface
            .namespace
            .enter(|| ingress.attach_with_options(interface.name(), TcAttachType::Ingress, order))
            .map_err(io::Error::other)?
            .map_err(failure)?;
        Ok(Self {
            ring: RingBuf::try_from(ring).map_err(failure)?,
            missed: Array::try_from(missed).map_err(failure)?,
            programs,
        })
    }

    /// Returns the next frame; dropping it frees its space in the ring.
    pub(super) fn next(&mut self) -> Option<RingFrame<'_>> {
        self.ring.next().map(|item| RingFrame { item })
    }

    /// Returns the number of frames that did not fit. Makes one system call.
    pub(super) fn missed(&self) -> u64 {
        // The call does not fail on an array of one entry; count an error as zero.
        self.missed.get(&0, 0).unwrap_or_default()
    }

    /// CPU time of the program on all CPUs; `None` unless the kernel measures it
    /// (`kernel.bpf_stats_enabled`).
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        let ingress = self.programs.program(PROGRAM)?.info().ok()?;
        let nanoseconds = ingress.run_time().as_nanos();
        (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds as u64))
    }

    /// Descriptor that is readable while the ring has a frame.
    pub(super) fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

impl RingFrame<'_> {
    /// Size of `struct arrival` in `bpf/ingress.bpf.c`, in bytes.
    const HEADER_BYTES: usize = 16;

    /// Length of the frame on the wire in bytes, without the VLAN tag that the kernel removed.
    pub(super) fn length(&self) -> usize {
        self.item.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes) as usize)
    }

    /// Bytes copied from the frame: all, or only the beginning if it exceeds the interface's MTU.
    pub(super) fn bytes(&self) -> &[u8] {
        let present = usize::from(self.u16_at(4));
        self.item.get(Self::HEADER_BYTES..Self::HEADER_BYTES + present).unwrap_or_default()
    }

    pub(super) fn offloads(&self) -> Offloads {
        let is_verified = self.item.get(12).is_some_and(|&it| it != 0);
        Offloads { is_verified, segment_data: self.u16_at(6) }
    }

    /// VLAN tag that the kernel removed, as TPID and TCI.
    pub(super) fn tag(&self) -> Option<[u8; VLAN_TAG_BYTES]> {
        let ([a, b], [c, d]) = (self.u16_at(8).to_be_bytes(), self.u16_at(10).to_be_bytes());
        ([a, b] != [0, 0]).then_some([a, b, c, d])
    }

    fn u16_at(&self, offset: usize) -> u16 {
        let bytes = self.item.get(offset..).and_then(|it| it.first_chunk());
        bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes))
    }
}

/// Whether the host has an address on the interface, except for link-local addresses, which every
/// IPv6 interface has.
fn host_has_address(interface: &InterfaceName, link: &Link) -> io::Result<bool> {
    let addresses = link::addresses(&interface.namespace).map_err(io::Error::other)?;
    Ok(addresses.iter().any(|it| it.index == link.index && !it.is_link_local))
}

fn missing_map(map: &str) -> io::Error {
    io::Error::other(format!("ingress.bpf.c has no map named {map}"))
}
