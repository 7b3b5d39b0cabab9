//! The transmit port: writes frames to the shared ring, which the in-kernel sender reads.

use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use aya::maps::{Map, MapData};
use aya::programs::{RawTracePoint, Xdp};
use aya::{Ebpf, EbpfLoader};
use wirestorm_base::departure::{CatchUp, DeparturePolicy, DepartureRecord};
use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, StampPoint, StoredBytes, Transmit, TransmitCounters,
};
use wirestorm_base::time::{Duration, Instant};

use super::layout::{Descriptor, FRAME_BYTES_MAX, SLAB_BYTES, SLABS_MAX, STAMPED, buffer_distance};
use super::memory::{RingMemory, StoreMemory, raise_locked_memory_limit};
use super::sender::Sender;
use crate::system::bpf::{failure, program};

/// Options of the transmit port.
#[derive(Clone, Debug)]
pub struct XdpTransmitOptions {
    /// Interface name in the namespace of the calling thread.
    pub interface: String,
    /// Longest frame of the interface, in bytes without FCS.
    pub frame_length_max: usize,
    /// Longest frame without a VLAN tag, in bytes without FCS.
    pub untagged_length_max: usize,
    /// CPU for the sender thread; `None`: the scheduler chooses.
    pub cpu: Option<usize>,
    /// Policy for late frames.
    pub policy: DeparturePolicy,
    /// Whether frames carry departure times. Small batches keep the times better; large batches are
    /// faster.
    pub paced: bool,
    /// Size of the store for frames that are sent more than once ([`Transmit::store`]), in bytes,
    /// up to 1 GiB. It uses kernel memory.
    pub store_bytes: usize,
}

/// Longest frame of the in-kernel sender, in bytes without FCS: a live frame is one page, which
/// also contains headroom and the kernel's bookkeeping.
pub const FRAME_LENGTH_MAX: usize = FRAME_BYTES_MAX;

/// Iterations between two flushes to the device. A redirected frame waits for the end of its batch.
/// An idle iteration takes about 110 ns, so 8 of them delay a paced frame by less than 1 us.
const BATCH_TOPSPEED: u32 = 64;
const BATCH_PACED: u32 = 8;

/// Highest number of frames in flight. At top speed the working set of 1,024 descriptors and short
/// buffers stays within a core's L2 cache. At a set rate all buffers are used, to bridge times when
/// the process is off its CPU. An interface with an MTU of 1,500 bytes has 15,728 buffers, which
/// last 5 ms at 3 Mpps.
const IN_FLIGHT_TOPSPEED: usize = 1024;
const IN_FLIGHT_PACED: usize = usize::MAX;

/// Highest time span in ns between the due times of the first and the last frame in flight. It
/// exceeds the time that workers are ahead. If the sender is off its CPU long enough to shift its
/// schedule, this limit keeps frames from piling up, so that changes take effect soon.
const IN_FLIGHT_SPAN_MAX: u64 = 25_000_000;

/// The process's side of the in-kernel sender.
pub struct XdpTransmit {
    interface: String,
    capabilities: Capabilities,
    memory: RingMemory,
    store: StoreMemory,
    sender: Sender,
    free: Vec<u32>,
    /// Number of descriptors written; `flush` publishes them to the program.
    written: u64,
    /// Number of descriptors whose buffers were reclaimed.
    reclaimed: u64,
    /// Idle iterations when the ring was first seen empty, to detect that the last batch has left.
    idle_at_drain: Option<u64>,
    /// Whether the last batch has been handed to the device.
    is_flushed: bool,
    /// Counters as of the last flush.
    counters: TransmitCounters,
    batch: u32,
    /// Latest due time of any frame, in ns.
    last_due: u64,
}

impl XdpTransmit {
    /// Loads the programs, starts the sender thread in the caller's network namespace, and maps the
    /// ring.
    ///
    /// # Errors
    /// The error of the failed operation: no privilege (`CAP_BPF`, `CAP_NET_ADMIN`, `CAP_PERFMON`),
    /// a kernel older than 5.18, or no such interface.
    pub fn open(options: &XdpTransmitOptions) -> io::Result<Self> {
        raise_locked_memory_limit();
        let index = interface_index(&options.interface)?;
        let (batch, in_flight) = if options.paced {
            (BATCH_PACED, IN_FLIGHT_PACED)
        } else {
            (BATCH_TOPSPEED, IN_FLIGHT_TOPSPEED)
        };
        let frame_length_max = FRAME_BYTES_MAX.min(options.frame_length_max);
        let distance = buffer_distance(frame_length_max);
        let template = vec![0_u8; FRAME_BYTES_MAX];
        let policy = options.policy;
        let slabs = options.store_bytes.div_ceil(SLAB_BYTES).clamp(1, SLABS_MAX);
        let (give_maps, maps) = std::sync::mpsc::channel();
        let sender = Sender::start(options.cpu, template, batch, move |thread| {
            let mut programs = Programs::load(index, thread, policy, slabs, distance)?;
            let _ = give_maps.send((programs.take("ring_map")?, programs.take("store_map")?));
            Ok(programs)
        })?;
        let (ring, store) = maps.recv().map_err(failure)?;
        let memory = RingMemory::map(ring.fd().as_fd(), distance)?;
        let in_flight = memory.buffers().min(in_flight);
        let store = StoreMemory::map(store.fd().as_fd(), slabs)?;
        wait_for_first_iteration(&memory, &sender)?;
        Ok(Self {
            interface: options.interface.clone(),
            capabilities: Capabilities {
                frame_length_max,
                untagged_length_max: FRAME_BYTES_MAX.min(options.untagged_length_max),
                frames: in_flight,
                burst: batch as usize,
                holds_departure: true,
                departure_stamp: StampPoint::Xdp,
                arrival_stamp: StampPoint::Xdp,
            },
            memory,
            store,
            sender,
            free: (0..in_flight as u32).rev().collect(),
            written: 0,
            reclaimed: 0,
            idle_at_drain: None,
            batch,
            last_due: 0,
            is_flushed: true,
            counters: TransmitCounters::default(),
        })
    }

    #[inline]
    fn queue(
        &mut self,
        frame: FrameId,
        source: u32,
        length: usize,
        flags: u16,
        departure: Instant,
    ) {
        self.capabilities.assert_length(length);
        let descriptor = Descriptor {
            departure: departure.as_nanos(),
            source,
            buffer: frame.index() as u16,
            length: length as u16 | flags,
        };
        self.last_due = self.last_due.max(departure.as_nanos());
        // There are no more frames than descriptors, so the ring has room for each taken frame.
        self.memory.write_descriptor(self.written, descriptor);
        self.written += 1;
    }

    /// Whether the frames in flight already span [`IN_FLIGHT_SPAN_MAX`].
    #[inline]
    fn exceeds_span(&self) -> bool {
        if self.reclaimed == self.written {
            return false;
        }
        let first_due = self.memory.departure(self.reclaimed);
        first_due > 0 && self.last_due.saturating_sub(first_due) > IN_FLIGHT_SPAN_MAX
    }

    fn reclaim(&mut self) {
        let consumed = self.memory.kernel().consumed.load(Ordering::Acquire);
        while self.reclaimed < consumed {
            self.free.push(self.memory.consumed_buffer(self.reclaimed));
            self.reclaimed += 1;
        }
    }

    /// Reads the kernel's counters. They are consistent except for frames still on their way, which
    /// no counter includes.
    fn read_counters(&self) -> TransmitCounters {
        let kernel = self.memory.kernel();
        let device = self.memory.device();
        let sent = device.sent.load(Ordering::Acquire);
        let dropped = device.dropped.load(Ordering::Acquire);
        let refused = kernel.refused.load(Ordering::Acquire);
        let unsent = kernel.unsent.load(Ordering::Acquire);
        let redirected = kernel.redirected.load(Ordering::Acquire);
        let redirected_bytes = kernel.redirected_bytes.load(Ordering::Acquire);
        // Once the last batch has left, frames that the driver never saw were rejected before it.
        let undelivered =
            if self.is_flushed { redirected.saturating_sub(sent + dropped) } else { 0 };
        // The tracepoint reports how many frames the driver accepted, but not which ones. If it
        // dropped some, estimate the bytes from the mean length.
        let sent_bytes = if sent == redirected {
            redirected_bytes
        } else {
            (u128::from(redirected_bytes) * u128::from(sent) / u128::from(redirected.max(1))) as u64
        };
        TransmitCounters {
            sent,
            sent_bytes,
            failed: refused + dropped + undelivered,
            unsent,
            ..TransmitCounters::default()
        }
    }

    /// Detects that the last batch has been handed to the device. A consumed frame may still wait
    /// for the end of its batch, and every later iteration of that batch is idle.
    fn detect_flushed(&mut self) {
        if self.reclaimed < self.written {
            self.idle_at_drain = None;
            self.is_flushed = false;
            return;
        }
        let idle = self.memory.kernel().idle_iterations.load(Ordering::Acquire);
        let since = *self.idle_at_drain.get_or_insert(idle);
        self.is_flushed |= idle - since > u64::from(self.batch);
    }
}

impl Transmit for XdpTransmit {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn take(&mut self) -> Option<FrameId> {
        if self.exceeds_span() {
            return None;
        }
        self.free.pop().map(FrameId::from_index)
    }

    #[inline]
    fn frame_mut(&mut self, frame: &FrameId) -> &mut [u8] {
        self.memory.buffer_mut(frame.index())
    }

    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.queue(frame, 0, length, 0, departure);
    }

    #[inline]
    fn send_stamped(&mut self, frame: FrameId, length: usize, departure: Instant) {
        self.queue(frame, 0, length, STAMPED, departure);
    }

    fn store(&mut self, bytes: &[u8]) -> Option<StoredBytes> {
        self.store.store(bytes).map(StoredBytes::from_index)
    }

    #[inline]
    fn send_stored(
        &mut self,
        frame: FrameId,
        stored: StoredBytes,
        range: Range<usize>,
        departure: Instant,
    ) {
        let source = self.store.source(stored.index(), &range);
        self.queue(frame, source, range.len(), 0, departure);
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.memory.user().produced.store(self.written, Ordering::Release);
        self.reclaim();
        self.detect_flushed();
        self.counters = self.read_counters();
        match self.sender.error() {
            None => Ok(()),
            Some(error) => Err(PortError::System {
                interface: self.interface.clone(),
                operation: "running the in-kernel sender (BPF_PROG_TEST_RUN)",
                reason: error.to_string(),
            }),
        }
    }

    fn in_flight(&self) -> usize {
        let done = self.counters.sent + self.counters.failed + self.counters.unsent;
        (self.written - done) as usize
    }

    fn transmitted(&self) -> TransmitCounters {
        self.counters
    }

    fn departures(&self) -> Option<DepartureRecord> {
        let kernel = self.memory.kernel();
        let nanoseconds = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Acquire);
        let frames = nanoseconds(&kernel.timed);
        let stamp = |counter| (frames > 0).then(|| Instant::from_nanos(nanoseconds(counter)));
        Some(DepartureRecord {
            frames,
            first: stamp(&kernel.first),
            last: stamp(&kernel.last),
            unsent: nanoseconds(&kernel.unsent),
            start_delay: Duration::from_nanos(nanoseconds(&kernel.start_delay)),
            shifted: Duration::from_nanos(nanoseconds(&kernel.shifted)),
            recovered: Duration::from_nanos(nanoseconds(&kernel.regained)),
            lateness_max: Duration::from_nanos(nanoseconds(&kernel.lateness_max)),
            gaps: histogram(self.memory.gaps(), nanoseconds(&kernel.gap_max)),
            gap_errors: histogram(self.memory.gap_errors(), nanoseconds(&kernel.gap_error_max)),
        })
    }

    fn abort(&mut self) {
        self.memory.user().abort.store(1, Ordering::Release);
    }
}

/// Waits until the kernel has set up the run, which takes milliseconds and would delay the first
/// frame.
fn wait_for_first_iteration(memory: &RingMemory, sender: &Sender) -> io::Result<()> {
    const POLLS_MAX: u32 = 2_000;
    const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);
    for _ in 0..POLLS_MAX {
        if memory.kernel().idle_iterations.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        if let Some(error) = sender.error() {
            return Err(error);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(io::Error::other("the in-kernel sender did not start within 2 s"))
}

fn histogram(buckets: &[std::sync::atomic::AtomicU64], max: u64) -> Histogram {
    let mut histogram = Histogram::new();
    for (bucket, count) in buckets.iter().enumerate() {
        histogram.add_bucket(bucket, count.load(Ordering::Relaxed));
    }
    histogram.note_max(Duration::from_nanos(max));
    histogram
}

/// The loaded programs, kept as long as the sender runs.
struct Programs {
    programs: Ebpf,
    sender: OwnedFd,
}

impl Programs {
    fn load(
        interface: u32,
        thread: u32,
        policy: DeparturePolicy,
        slabs: usize,
        distance: usize,
    ) -> io::Result<Self> {
        let template_bytes = FRAME_BYTES_MAX as u32;
        let distance = distance as u32;
        let catch_up: u32 = match policy.catch_up {
            CatchUp::Bounded => 0,
            CatchUp::Strict => 1,
            CatchUp::Stretch => 2,
        };
        let backlog = policy.backlog.as_nanos();
        let mut programs = EbpfLoader::new()
            .override_global("target_interface", &interface, true)
            .override_global("template_bytes", &template_bytes, true)
            .override_global("catch_up", &catch_up, true)
            .override_global("backlog", &backlog, true)
            .override_global("sender_thread", &thread, true)
            .override_global("buffer_distance", &distance, true)
            .map_max_entries("store_map", slabs as u32)
            .load(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/send.o")))
            .map_err(failure)?;
        let watcher: &mut RawTracePoint = program(&mut programs, "device_transmit")?;
        watcher.load().map_err(failure)?;
        watcher.attach("xdp_devmap_xmit").map_err(failure)?;
        let sender: &mut Xdp = program(&mut programs, "send")?;
        sender.load().map_err(failure)?;
        let descriptor = sender.fd().map_err(failure)?.as_fd().try_clone_to_owned()?;
        Ok(Self { programs, sender: descriptor })
    }

    fn take(&mut self, name: &str) -> io::Result<MapData> {
        match self.programs.take_map(name) {
            Some(Map::Array(map)) => Ok(map),
            _ => Err(io::Error::other(format!("send.bpf.c has no array named {name}"))),
        }
    }
}

impl AsFd for Programs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sender.as_fd()
    }
}

fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(failure)?;
    // SAFETY: the name is a null-terminated string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
