//! The counting receiver: an XDP program that counts, times and drops frames.

use std::io;

use aya::Ebpf;
use aya::maps::{MapData, PerCpuArray};
use aya::programs::xdp::{XdpLink, XdpLinkId};
use aya::programs::{Xdp, XdpMode};
use wirestorm_base::histogram::{self, Histogram};
use wirestorm_base::time::{Duration, Instant};

use crate::system::bpf::{FlagObject, failure, program};
use crate::{clock, clock_ports};

/// Object of `bpf/count.bpf.c`.
static OBJECT: FlagObject =
    FlagObject::new(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/count.o")));

/// A counting receiver on an interface. Dropping it detaches the program; the kernel also does so
/// when the process ends for any reason.
///
/// The program counts and drops frames. It counts ARP, PTP, ICMPv6 neighbour discovery, pings and
/// datagrams that compare clocks, all without a signature, and passes them to the kernel, which
/// answers for the interface's addresses.
pub struct XdpCounter {
    map: PerCpuArray<MapData, Arrivals>,
    is_native: bool,
    link: XdpLinkId,
    programs: Ebpf,
}

/// The BPF link of an attached program, for another program to take over without a gap. Dropping it
/// detaches the program.
pub struct XdpAttachment {
    pub(crate) link: XdpLink,
    pub(crate) is_native: bool,
}

/// Frames that arrived on one CPU.
#[derive(Clone, Debug)]
pub struct CpuArrivals {
    /// CPU number.
    pub cpu: u32,
    /// Number of frames.
    pub packets: u64,
    /// Bytes of the frames without FCS.
    pub bytes: u64,
    /// Number of frames that are ARP, PTP or neighbour discovery.
    pub neighbour_packets: u64,
    /// Arrival time of the first frame; `None` before it.
    pub first: Option<Instant>,
    /// Arrival time of the last timed frame: every frame is timed, or one in 32.
    pub last: Option<Instant>,
    /// Time between consecutive arrivals on this CPU, if every frame is timed.
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
    /// Attaches the program to an interface in the calling thread's network namespace. Uses native
    /// mode if the driver supports it, otherwise generic mode.
    ///
    /// # Errors
    /// Fails without privilege (`CAP_BPF`, `CAP_NET_ADMIN`), if the interface does not exist, or if
    /// it has another XDP program.
    pub fn open(interface: &str, times_all: bool) -> io::Result<Self> {
        let mut programs = OBJECT.load("times_all", times_all)?;
        clock_ports::write_to(&mut programs, true)?;
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

    /// Whether the program runs in native mode.
    pub const fn is_native(&self) -> bool {
        self.is_native
    }

    /// Stops counting and releases the attached BPF link for another program.
    ///
    /// # Errors
    /// Fails if the program is not attached, which does not happen.
    pub fn into_attachment(self) -> io::Result<XdpAttachment> {
        let Self { link, mut programs, is_native, .. } = self;
        let count: &mut Xdp = program(&mut programs, "count")?;
        let link = count.take_link(link).map_err(failure)?;
        Ok(XdpAttachment { link, is_native })
    }

    /// Reads the number of frames that arrived, and their bytes without FCS. Costs less than
    /// [`Self::read`].
    ///
    /// # Errors
    /// The error of the map lookup.
    pub fn read_sum(&self) -> io::Result<(u64, u64)> {
        let values = self.map.get(&0, 0).map_err(failure)?;
        let add = |(packets, bytes), cpu: &Arrivals| (packets + cpu.packets, bytes + cpu.bytes);
        Ok(values.iter().fold((0, 0), add))
    }

    /// Reads the counters of each CPU that received frames.
    ///
    /// # Errors
    /// The error of the map lookup.
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
            first: (self.first > 0).then(|| clock::of_kernel(self.first)),
            last: (self.last > 0).then(|| clock::of_kernel(self.last)),
            gaps,
        }
    }
}
