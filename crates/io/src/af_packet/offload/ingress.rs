//! A program at an interface's ingress (`tcx`, Linux 6.6) that puts frames into a ring which this
//! process reads.
//!
//! A packet socket has a buffer of its own for each frame, wakes its reader for each, and hands them
//! over one by one. The ring has none of that: a frame's beginning is copied into it where the kernel
//! takes the frame in, and read from it where it lies.

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

/// `bpf/ingress.bpf.c`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ingress.o"));

/// Its name there.
const PROGRAM: &str = "ingress";

/// Room for frames that nobody has read yet: 30,000 short ones, 5,000 of 1,500 bytes. It stays in
/// the cache, which more would not.
const RING_BYTES: u32 = 8 << 20;

/// The program on its interface, which takes frames for as long as this lives. The kernel detaches
/// it when the process ends in whatever way.
pub(super) struct Ingress {
    ring: RingBuf<MapData>,
    missed: Array<MapData, u64>,
    /// Holds the program's place.
    programs: Ebpf,
}

/// A frame in the ring.
pub(super) struct Arrived<'a> {
    item: RingBufItem<'a>,
}

impl Ingress {
    /// Takes in what arrives on an interface. Segments and datagrams end there where the host has no
    /// address on it: nobody else could want them. With an address, and of anything else, the
    /// network stack gets them too, as from a packet socket.
    ///
    /// # Errors
    /// No privilege (`CAP_BPF`, `CAP_NET_ADMIN`, `CAP_PERFMON`), or a kernel before Linux 6.6.
    pub(super) fn attach(interface: &InterfaceName, link: &Link) -> io::Result<Self> {
        let whole_max = link.frame_length_max() as u32;
        let mut programs = EbpfLoader::new()
            .override_global("whole_max", &whole_max, true)
            .override_global("ends_here", &u32::from(!host_has_address(interface, link)?), true)
            .map_max_entries("arrivals", RING_BYTES)
            .load(OBJECT)
            .map_err(failure)?;
        let ring = programs.take_map("arrivals").ok_or_else(|| lacks("arrivals"))?;
        let missed = programs.take_map("missed").ok_or_else(|| lacks("missed"))?;
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

    /// The next frame, which makes room when it is dropped.
    pub(super) fn next(&mut self) -> Option<Arrived<'_>> {
        self.ring.next().map(|item| Arrived { item })
    }

    /// Frames that found no room. One system call.
    pub(super) fn missed(&self) -> u64 {
        // It fails on no map of one entry; what cannot be read adds nothing.
        self.missed.get(&0, 0).unwrap_or_default()
    }

    /// CPU time that the program took on all CPUs, where the kernel measures it
    /// (`kernel.bpf_stats_enabled`).
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        let ingress = self.programs.program(PROGRAM)?.info().ok()?;
        let nanoseconds = ingress.run_time().as_nanos();
        (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds as u64))
    }

    /// Readable where there is a frame.
    pub(super) fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}

impl Arrived<'_> {
    /// Of `struct arrival` in `bpf/ingress.bpf.c`, in bytes.
    const HEADER_BYTES: usize = 16;

    /// Bytes of the frame on the wire, without the tag that the kernel took out.
    pub(super) fn length(&self) -> usize {
        self.item.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes) as usize)
    }

    /// What there is of it: all, or of a longer one than the interface sends the beginning.
    pub(super) fn bytes(&self) -> &[u8] {
        let present = usize::from(self.half_word(4));
        self.item.get(Self::HEADER_BYTES..Self::HEADER_BYTES + present).unwrap_or_default()
    }

    pub(super) fn offloads(&self) -> Offloads {
        let is_verified = self.item.get(12).is_some_and(|&it| it != 0);
        Offloads { is_verified, segment_data: self.half_word(6) }
    }

    /// The tag that the kernel took out.
    pub(super) fn tag(&self) -> Option<[u8; VLAN_TAG_BYTES]> {
        let ([a, b], [c, d]) = (self.half_word(8).to_be_bytes(), self.half_word(10).to_be_bytes());
        ([a, b] != [0, 0]).then_some([a, b, c, d])
    }

    fn half_word(&self, offset: usize) -> u16 {
        let bytes = self.item.get(offset..).and_then(|it| it.first_chunk());
        bytes.map_or(0, |bytes| u16::from_ne_bytes(*bytes))
    }
}

/// Whether the host itself can be reached through an interface. Addresses that every interface of
/// IPv6 makes for itself are not meant.
fn host_has_address(interface: &InterfaceName, link: &Link) -> io::Result<bool> {
    let addresses = link::addresses(&interface.namespace).map_err(io::Error::other)?;
    Ok(addresses.iter().any(|it| it.index == link.index && !it.is_link_local))
}

fn lacks(map: &str) -> io::Error {
    io::Error::other(format!("ingress.bpf.c has no map named {map}"))
}
