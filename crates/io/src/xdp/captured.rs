//! A capture that the kernel sends: its records in the shared memory.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use aya::maps::MapData;
use wirestorm_base::resident::{
    CAPTURED_MAX, CaptureOptions, CapturePosition, CapturedFrame, CapturedGap, ResidentCapture,
};
use wirestorm_base::time::Instant;

use super::layout::{
    CapturedRecord, FRAME_BYTES_MAX, GapRecord, HAS_CHECKSUM, MOVES_ADDRESSES, MOVES_PORTS,
    NEVER_ZERO,
};
use super::memory::{Records, RingMemory, StoreMemory};

/// The resident capture of a port.
pub(super) struct Captured {
    frames: Records<CapturedRecord>,
    gaps: Records<GapRecord>,
    is_timed: bool,
    /// Frames that the program was given.
    given: u64,
}

/// Maps of the resident capture.
pub(super) struct CapturedMaps {
    pub(super) frames: MapData,
    pub(super) gaps: MapData,
}

/// Returns whether the kernel can send such a capture.
pub(super) fn fits(options: &CaptureOptions) -> bool {
    (1..=CAPTURED_MAX).contains(&options.frames)
}

/// Returns the number of records of gaps.
pub(super) const fn gaps(options: &CaptureOptions, is_timed: bool) -> usize {
    if is_timed { options.frames } else { 1 }
}

impl Captured {
    /// Maps the records.
    pub(super) fn map(
        options: CaptureOptions,
        is_timed: bool,
        maps: &CapturedMaps,
    ) -> io::Result<Self> {
        // SAFETY: the records have the layout of the arrays' values (a test compares them), and are
        // atomics, for which all bytes are valid. The arrays have as many values.
        let (frames, gaps) = unsafe {
            (
                Records::map(maps.frames.fd().as_fd(), options.frames)?,
                Records::map(maps.gaps.fd().as_fd(), gaps(&options, is_timed))?,
            )
        };
        Ok(Self { frames, gaps, is_timed, given: 0 })
    }

    /// Writes a capture to the memory and starts it.
    ///
    /// # Errors
    /// The reason why the port cannot send it.
    pub(super) fn host(
        &mut self,
        capture: &ResidentCapture<'_>,
        frames_max: u64,
        until: Instant,
        ring: &RingMemory,
        store: &StoreMemory,
    ) -> Result<(), String> {
        let ResidentCapture { frames, gaps, units, passes_milli, position } = capture;
        if frames.is_empty() || frames.len() > self.frames.len() {
            return Err(format!("{} frames, at most {}", frames.len(), self.frames.len()));
        }
        if self.is_timed != position.due.is_some() || position.frame >= frames.len() {
            return Err("the port was opened for another schedule".into());
        }
        if self.is_timed && gaps.len() != frames.len() {
            return Err(format!("{} gaps, expected {}", gaps.len(), frames.len()));
        }
        for (record, frame) in self.frames.iter().zip(*frames) {
            write(record, frame, store)?;
        }
        for (record, CapturedGap { gap, rest }) in self.gaps.iter().zip(*gaps) {
            record.gap.store(*gap, Ordering::Relaxed);
            record.rest.store(*rest, Ordering::Relaxed);
        }
        self.given = frames_max;
        let side = ring.capture();
        let CapturePosition { pass, frame, due, rest } = *position;
        let milli = passes_milli.unwrap_or(0);
        let iteration = pass.saturating_mul(1_000).checked_div(milli).unwrap_or(0);
        let due = due.map_or(0, Instant::as_nanos);
        let fields = [
            (&side.next, frame as u64),
            (&side.frames, frames.len() as u64),
            (&side.pass, pass),
            (&side.passes_milli, milli),
            (&side.iteration, iteration),
            (&side.due, due),
            (&side.rest, rest),
            (&side.units, (*units).max(1)),
        ];
        for (field, value) in fields {
            field.store(value, Ordering::Relaxed);
        }
        let resident = ring.resident();
        resident.left.store(frames_max, Ordering::Relaxed);
        resident.until.store(until.as_nanos(), Ordering::Relaxed);
        resident.sending.store(1, Ordering::Relaxed);
        ring.user().resident.store(1, Ordering::Release);
        Ok(())
    }

    /// Returns how many frames the program has taken.
    pub(super) fn taken(&self, ring: &RingMemory) -> u64 {
        self.given.saturating_sub(ring.resident().left.load(Ordering::Acquire))
    }

    /// Returns the next frame. The program may change it meanwhile.
    pub(super) fn position(&self, ring: &RingMemory) -> CapturePosition {
        let side = ring.capture();
        let due = Instant::from_nanos(side.due.load(Ordering::Acquire));
        CapturePosition {
            pass: side.pass.load(Ordering::Acquire),
            frame: side.next.load(Ordering::Acquire) as usize,
            due: self.is_timed.then_some(due),
            rest: side.rest.load(Ordering::Acquire),
        }
    }
}

fn write(
    record: &CapturedRecord,
    frame: &CapturedFrame,
    store: &StoreMemory,
) -> Result<(), String> {
    let CapturedFrame { stored, range, moving } = frame;
    let length = range.len();
    if length > FRAME_BYTES_MAX {
        return Err(format!("a frame of {length} bytes"));
    }
    let range = range.start as usize..range.end as usize;
    record.source.store(store.source(stored.index(), &range), Ordering::Relaxed);
    record.length.store(length as u16, Ordering::Relaxed);
    let mut flags = 0;
    if let Some([source, destination]) = moving.addresses {
        flags |= MOVES_ADDRESSES;
        record.source_address.store(source, Ordering::Relaxed);
        record.destination_address.store(destination, Ordering::Relaxed);
    }
    if let Some(ports) = moving.ports {
        flags |= MOVES_PORTS;
        record.ports.store(ports, Ordering::Relaxed);
    }
    if let Some((checksum, never_zero)) = moving.checksum {
        flags |= HAS_CHECKSUM | if never_zero { NEVER_ZERO } else { 0 };
        record.checksum.store(checksum, Ordering::Relaxed);
    }
    record.flags.store(flags, Ordering::Relaxed);
    Ok(())
}
