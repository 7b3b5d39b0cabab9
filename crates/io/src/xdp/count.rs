//! The counting receiver: an XDP program that counts, times and ends what arrives.

use std::io;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::xdp::{XdpLink, XdpLinkId};
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use wirestorm_base::histogram::{self, Histogram};
use wirestorm_base::time::{Duration, Instant};

use crate::system::bpf::{failure, program};

/// A counting receiver on an interface. Dropping it detaches the program; so does the kernel
/// when the process ends in whatever way.
///
/// Frames are counted and dropped. ARP, ICMPv6 neighbour discovery and pings without a signature
/// are counted and passed on to the kernel, which answers for the interface's own addresses.
pub struct XdpCounter {
    map: PerCpuArray<MapData, Arrivals>,
    is_native: bool,
    link: XdpLinkId,
    programs: Ebpf,
}

/// The place of a program on an interface, which another one can take over: no frame passes by
/// both. Dropping it leaves the interface without one.
pub struct XdpPlace {
    pub(crate) link: XdpLink,
    pub(crate) is_native: bool,
}

/// What arrived on one CPU.
#[derive(Clone, Debug)]
pub struct CpuArrivals {
    /// The CPU's number.
    pub cpu: u32,
    /// Frames.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Those of the frames that were ARP or neighbour discovery.
    pub neighbour_packets: u64,
    /// Arrival of the first frame; `None` before it.
    pub first: Option<Instant>,
    /// Arrival of the last frame that was timed: all of them, or one in 32.
    pub last: Option<Instant>,
    /// Time between consecutive arrivals on this CPU, where all are timed.
    pub gaps: Histogram,
}

/// `struct arrivals` of `bpf/count.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arrivals {
    packets: u64,
    bytes: u64,
    neighbour_packets: u64,
    first: u64,
    last: u64,
    gap_max: u64,
    gaps: [u64; histogram::BUCKETS],
}

// SAFETY: whole words without padding; any bits are valid.
unsafe impl aya::Pod for Arrivals {}

impl XdpCounter {
    /// Attaches to an interface of the calling thread's network namespace: in the driver where
    /// it can, before the network stack otherwise.
    ///
    /// # Errors
    /// No privilege (`CAP_BPF`, `CAP_NET_ADMIN`), no such interface, another XDP program on it.
    pub fn open(interface: &str, times_all: bool) -> io::Result<Self> {
        let times_all = u32::from(times_all);
        let mut programs = EbpfLoader::new()
            .override_global("times_all", &times_all, true)
            .load(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/count.o")))
            .map_err(failure)?;
        let count: &mut Xdp = program(&mut programs, "count")?;
        count.load().map_err(failure)?;
        let (link, is_native) = match count.attach(interface, XdpMode::Driver) {
            Ok(link) => (link, true),
            Err(_) => (count.attach(interface, XdpMode::Skb).map_err(failure)?, false),
        };
        let map = programs
            .take_map("arrivals_map")
            .ok_or_else(|| io::Error::other("count.bpf.c has no map named arrivals_map"))?;
        let map = PerCpuArray::try_from(map).map_err(failure)?;
        Ok(Self { map, is_native, link, programs })
    }

    /// Whether the program runs in the driver.
    pub const fn is_native(&self) -> bool {
        self.is_native
    }

    /// Counts no more, and leaves its place to another program.
    ///
    /// # Errors
    /// Where the program is not attached, which it is.
    pub fn into_place(self) -> io::Result<XdpPlace> {
        let Self { link, mut programs, is_native, .. } = self;
        let count: &mut Xdp = program(&mut programs, "count")?;
        let link = count.take_link(link).map_err(failure)?;
        Ok(XdpPlace { link, is_native })
    }

    /// What has arrived so far on each CPU that saw anything.
    ///
    /// # Errors
    /// What the system said.
    pub fn read(&self) -> io::Result<Vec<CpuArrivals>> {
        let values = self.map.get(&0, 0).map_err(failure)?;
        let arrived = values.iter().enumerate().filter(|(_, arrivals)| arrivals.packets > 0);
        Ok(arrived.map(|(cpu, arrivals)| arrivals.report(cpu as u32)).collect())
    }
}

impl Arrivals {
    fn report(&self, cpu: u32) -> CpuArrivals {
        let mut gaps = Histogram::new();
        for (bucket, &count) in self.gaps.iter().enumerate() {
            gaps.add_bucket(bucket, count);
        }
        gaps.note_max(Duration::from_nanos(self.gap_max));
        CpuArrivals {
            cpu,
            packets: self.packets,
            bytes: self.bytes,
            neighbour_packets: self.neighbour_packets,
            first: (self.first > 0).then(|| Instant::from_nanos(self.first)),
            last: (self.last > 0).then(|| Instant::from_nanos(self.last)),
            gaps,
        }
    }
}
