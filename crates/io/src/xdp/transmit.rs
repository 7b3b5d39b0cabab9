//! The transmit port: writes frames to the shared ring, which the in-kernel sender reads.

use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use aya::maps::{Map, MapData};
use aya::programs::{RawTracePoint, Xdp};
use aya::{Ebpf, EbpfLoader};
use wirestorm_base::departure::{CatchUp, DeparturePolicy, DepartureRecord};
use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{
    Capabilities, FrameId, PortError, Resident, StampPoint, StoredBytes, Transmit, TransmitCounters,
};
use wirestorm_base::resident::{
    CaptureOptions, CapturePosition, ResidentCapture, ResidentOptions, ResidentStream,
};
use wirestorm_base::time::{Duration, Instant};

use super::captured::{self, Captured, CapturedMaps};
use super::compiler::{Surroundings, compile};
use super::layout::{
    Descriptor, FRAME_BYTES_MAX, PROGRAM_RING, PROGRAM_SHAPES, SLAB_BYTES, SLABS_MAX, STAMPED,
    buffer_distance,
};
use super::memory::{RingMemory, StoreMemory, raise_locked_memory_limit};
use super::resident::{self, ResidentMaps, ResidentStreams};
use super::sender::Sender;
use crate::system::bpf::{failure, load_xdp, program, set_element};

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
    /// Streams or capture that the kernel should send by itself; `None` for none.
    pub resident: Option<ResidentOptions>,
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
    options: ResidentOptions,
    resident: Option<ResidentStreams>,
    captured: Option<Captured>,
    /// Frames of resident streams or the capture that the program has taken, as of the last flush.
    made: u64,
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
        let fits = |it: &&ResidentOptions| match &it.capture {
            Some(capture) => captured::fits(capture),
            None => resident::fits(it, frame_length_max),
        };
        let resident = options.resident.as_ref().filter(fits).cloned().unwrap_or_default();
        let setup = Setup {
            interface: index,
            policy: options.policy,
            slabs: options.store_bytes.div_ceil(SLAB_BYTES).clamp(1, SLABS_MAX),
            distance,
            page_bytes: page_bytes(&resident),
            resident: resident.clone(),
        };
        let slabs = setup.slabs;
        let template = vec![0_u8; setup.page_bytes];
        let (give_maps, maps) = std::sync::mpsc::channel();
        let sender = Sender::start(options.cpu, template, batch, move |thread| {
            let (programs, maps) = Programs::load(&setup, thread)?;
            let _ = give_maps.send(maps);
            Ok(programs)
        })?;
        let maps = maps.recv().map_err(failure)?;
        let memory = RingMemory::map(maps.ring.fd().as_fd(), distance)?;
        let in_flight = memory.buffers().min(in_flight);
        let store = StoreMemory::map(maps.store.fd().as_fd(), slabs)?;
        let options_kept = if maps.is_resident { resident } else { ResidentOptions::default() };
        let (captured, resident) = match &options_kept {
            it if it.capture.is_some() => (it.capture, None),
            it if it.streams > 0 => (None, Some(it.clone())),
            _ => (None, None),
        };
        let captured = captured
            .map(|it| Captured::map(it, options_kept.is_timed, &maps.captured))
            .transpose()?;
        let resident = resident.map(|it| ResidentStreams::map(it, &maps.resident)).transpose()?;
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
            options: options_kept,
            resident,
            captured,
            made: 0,
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

    /// Whether the port was opened for resident streams or a capture.
    fn is_resident(&self) -> bool {
        self.resident.is_some() || self.captured.is_some()
    }

    /// Whether the program sends resident streams or a capture.
    fn sends_streams(&self) -> bool {
        self.is_resident() && self.memory.sends_streams()
    }

    /// Notes that the program sends by itself from now on.
    fn note_hosted(&mut self) {
        self.is_flushed = false;
        self.idle_at_drain = None;
    }

    /// Detects that the last batch has been handed to the device. A consumed frame may still wait
    /// for the end of its batch, and every later iteration of that batch is idle.
    fn detect_flushed(&mut self) {
        if self.reclaimed < self.written || self.sends_streams() {
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

    fn resident(&mut self) -> Option<&mut dyn Resident> {
        self.is_resident().then_some(self as &mut dyn Resident)
    }

    #[inline]
    fn release(&mut self, frame: FrameId) {
        self.free.push(frame.index());
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.memory.user().produced.store(self.written, Ordering::Release);
        self.reclaim();
        if self.reclaimed == self.written {
            // An abort drops only what was queued before.
            self.memory.user().abort.store(0, Ordering::Relaxed);
        }
        self.detect_flushed();
        self.counters = self.read_counters();
        if self.is_resident() {
            // Exact unless the program takes frames meanwhile.
            self.made = self.memory.taken().saturating_sub(self.reclaimed);
        }
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
        (self.written + self.made).saturating_sub(done) as usize
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
        if self.sends_streams() {
            ResidentStreams::recall(&self.memory, &self.sender);
        }
    }
}

impl Resident for XdpTransmit {
    fn options(&self) -> &ResidentOptions {
        &self.options
    }

    fn host(
        &mut self,
        streams: &[ResidentStream],
        frames_max: u64,
        until: Instant,
    ) -> Result<(), String> {
        let Some(resident) = &mut self.resident else {
            return Err("the port was not opened for them".into());
        };
        resident.host(streams, frames_max, until, &self.memory, &mut self.store)?;
        self.note_hosted();
        Ok(())
    }

    fn host_capture(
        &mut self,
        capture: &ResidentCapture<'_>,
        frames_max: u64,
        until: Instant,
    ) -> Result<(), String> {
        let Some(captured) = &mut self.captured else {
            return Err("the port was not opened for it".into());
        };
        captured.host(capture, frames_max, until, &self.memory, &self.store)?;
        self.note_hosted();
        Ok(())
    }

    fn sending(&self) -> usize {
        let side = self.memory.resident();
        match side.left.load(Ordering::Acquire) {
            0 => 0,
            _ => side.sending.load(Ordering::Acquire) as usize,
        }
    }

    fn taken(&self, index: usize) -> u64 {
        match (&self.resident, &self.captured) {
            (Some(resident), _) => resident.taken(index),
            (None, Some(captured)) => captured.taken(&self.memory),
            (None, None) => 0,
        }
    }

    fn position(&self) -> CapturePosition {
        let captured = self.captured.as_ref();
        captured.map(|it| it.position(&self.memory)).unwrap_or_default()
    }

    fn recall(&mut self) {
        ResidentStreams::recall(&self.memory, &self.sender);
    }
}

/// Returns the length of the frame in a page before the program runs: that of all frames if they
/// are equal, so that none must be cut. Else that of the longest, because growing clears bytes.
fn page_bytes(resident: &ResidentOptions) -> usize {
    match resident.shapes.split_first() {
        Some((first, others)) if others.iter().all(|it| it.length == first.length) => first.length,
        _ => FRAME_BYTES_MAX,
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

/// What the programs are loaded for.
struct Setup {
    /// Index of the interface.
    interface: u32,
    policy: DeparturePolicy,
    /// Slabs of the store.
    slabs: usize,
    /// Distance of the buffers.
    distance: usize,
    page_bytes: usize,
    resident: ResidentOptions,
}

/// Maps that the process shares with the programs.
struct Maps {
    ring: MapData,
    store: MapData,
    resident: ResidentMaps,
    captured: CapturedMaps,
    /// Whether the programs for resident streams or a capture are loaded.
    is_resident: bool,
}

/// The loaded programs, kept as long as the sender runs.
struct Programs {
    programs: Ebpf,
    /// The program to run.
    first: OwnedFd,
    /// Those that it calls.
    called: Vec<OwnedFd>,
    /// Array by which it calls them. The kernel empties it when the process closes it.
    array: Option<MapData>,
    /// Map of the interface.
    interface: Option<MapData>,
}

impl Programs {
    fn load(setup: &Setup, thread: u32) -> io::Result<(Self, Maps)> {
        let resident = &setup.resident;
        let template_bytes = setup.page_bytes as u32;
        let distance = setup.distance as u32;
        let catch_up: u32 = match setup.policy.catch_up {
            CatchUp::Bounded => 0,
            CatchUp::Strict => 1,
            CatchUp::Stretch => 2,
        };
        let backlog = setup.policy.backlog.as_nanos();
        let shapes_count = resident.shapes.len() as u32;
        let is_timed = u32::from(resident.is_timed);
        let streams = resident.streams.max(1) as u32;
        let has_capture = u32::from(resident.capture.is_some());
        let captured = resident.capture.map_or(1, |it| it.frames) as u32;
        let gaps = |it: &CaptureOptions| captured::gaps(it, resident.is_timed);
        let gaps = resident.capture.as_ref().map_or(1, gaps) as u32;
        let mut programs = EbpfLoader::new()
            .override_global("template_bytes", &template_bytes, true)
            .override_global("catch_up", &catch_up, true)
            .override_global("backlog", &backlog, true)
            .override_global("sender_thread", &thread, true)
            .override_global("buffer_distance", &distance, true)
            .override_global("shapes_count", &shapes_count, true)
            .override_global("is_timed", &is_timed, true)
            .override_global("has_capture", &has_capture, true)
            .map_max_entries("store_map", setup.slabs as u32)
            .map_max_entries("stream_map", streams)
            .map_max_entries("turn_map", streams)
            .map_max_entries("value_map", resident.values.max(1) as u32)
            .map_max_entries("captured_map", captured)
            .map_max_entries("gap_map", gaps)
            .load(aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/send.o")))
            .map_err(failure)?;
        let watcher: &mut RawTracePoint = program(&mut programs, "device_transmit")?;
        watcher.load().map_err(failure)?;
        watcher.attach("xdp_devmap_xmit").map_err(failure)?;
        let sender: &mut Xdp = program(&mut programs, "send")?;
        sender.load().map_err(failure)?;
        let sender = sender.fd().map_err(failure)?.as_fd().try_clone_to_owned()?;
        let mut programs =
            Self { programs, first: sender, called: Vec::new(), array: None, interface: None };
        let mut maps = Maps {
            ring: programs.take("ring_map")?,
            store: programs.take("store_map")?,
            resident: ResidentMaps {
                streams: programs.take("stream_map")?,
                turns: programs.take("turn_map")?,
                values: programs.take("value_map")?,
            },
            captured: CapturedMaps {
                frames: programs.take("captured_map")?,
                gaps: programs.take("gap_map")?,
            },
            is_resident: false,
        };
        let interface = programs.take_interface(setup.interface)?;
        // If the kernel refuses a program, the process makes the frames.
        maps.is_resident = match resident.streams {
            0 => resident.capture.is_some(),
            _ => programs.compile(resident, setup, &maps, &interface).is_ok(),
        };
        programs.interface = Some(interface);
        Ok((programs, maps))
    }

    /// Compiles and loads a program for each shape.
    fn compile(
        &mut self,
        resident: &ResidentOptions,
        setup: &Setup,
        maps: &Maps,
        interface: &MapData,
    ) -> io::Result<()> {
        let Some(Map::ProgramArray(array)) = self.programs.take_map("program_map") else {
            return Err(io::Error::other("send.bpf.c has no array of programs named program_map"));
        };
        let is_first = resident.streams == 1 && !resident.is_timed;
        let surroundings = Surroundings {
            ring: maps.ring.fd().as_fd(),
            streams: maps.resident.streams.fd().as_fd(),
            values: maps.resident.values.fd().as_fd(),
            store: maps.store.fd().as_fd(),
            programs: array.fd().as_fd(),
            interface: interface.fd().as_fd(),
            page_bytes: setup.page_bytes,
            is_first,
            leaves_out: resident.is_timed && setup.policy.catch_up == CatchUp::Strict,
        };
        let set = |index: u32, program: &OwnedFd| {
            set_element(array.fd().as_fd(), index, program.as_raw_fd().cast_unsigned())
        };
        set(PROGRAM_RING as u32, &self.first)?;
        for (index, shape) in (PROGRAM_SHAPES as u32..).zip(&resident.shapes) {
            let program = load_xdp("resident", &compile(shape, &surroundings))?;
            if !is_first {
                set(index, &program)?;
            }
            self.called.push(program);
        }
        if is_first && let Some(program) = self.called.pop() {
            self.called.push(std::mem::replace(&mut self.first, program));
        }
        self.array = Some(array);
        Ok(())
    }

    /// Takes the map of the interface, and puts the interface into it.
    fn take_interface(&mut self, index: u32) -> io::Result<MapData> {
        let Some(Map::DevMap(map)) = self.programs.take_map("interface_map") else {
            return Err(io::Error::other(
                "send.bpf.c has no map of interfaces named interface_map",
            ));
        };
        set_element(map.fd().as_fd(), 0, index)?;
        Ok(map)
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
        self.first.as_fd()
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
