//! A capture that a port sends by itself: its frames, their gaps, and what to count for them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_base::pace::Pace;
use wirestorm_base::port::{StoredBytes, Transmit};
use wirestorm_base::resident::{CapturePosition, CapturedFrame, CapturedGap, ResidentCapture};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::packet::ethernet;

use super::chunk::{Chunk, Record, RecordFlags};
use super::render::Renderer;
use super::schedule::Gaps;
use super::worker::{ReplayCounters, WorkerOptions};

/// Bytes of frames that are stored at once. A port stores up to 1 MiB.
const PIECE_BYTES: usize = 1 << 18;

/// Frames between two sums: to count up to a frame, at most so many are looked at.
const SUM_FRAMES: usize = 256;

/// One pass of a worker over a capture whose frames a port has stored.
#[derive(Debug)]
pub(super) struct StoredPass {
    frames: Vec<CapturedFrame>,
    facts: Vec<Facts>,
    /// Without gaps, frames have no due times.
    gaps: Vec<CapturedGap>,
    /// Gap from the start to the first frame.
    lead: CapturedGap,
    fractions: u64,
    passes_milli: Option<u64>,
    /// Counts before each [`SUM_FRAMES`]th frame.
    sums: Vec<ReplayCounters>,
    /// Counts of a whole pass.
    total: ReplayCounters,
    /// Records before some frames that are not sent, by the index of the frame behind them.
    skipped: Vec<(usize, ReplayCounters)>,
    /// Records of a pass that all workers send.
    records: u64,
}

/// What to count for a frame.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// Records before it that all workers send.
    position: u32,
    /// Bytes without FCS.
    length: u16,
    flags: RecordFlags,
    is_truncated: bool,
}

/// Builds a [`StoredPass`].
struct Builder {
    pass: StoredPass,
    gaps: Option<Gaps>,
    /// Bytes of frames that are not stored yet, and the first frame in them.
    piece: Vec<u8>,
    piece_first: usize,
    position: u32,
    skipped: ReplayCounters,
}

impl StoredPass {
    /// Renders the frames of a pass, and stores them in a port.
    ///
    /// # Errors
    /// The reason why the port cannot send the capture by itself.
    pub(super) fn store<P: Transmit>(
        chunks: &[Arc<Chunk>],
        options: &WorkerOptions,
        renderer: &Renderer,
        port: &mut P,
    ) -> Result<Self, &'static str> {
        let gaps = Gaps::new(options.pace);
        let is_timed = options.pace != Pace::TopSpeed;
        match () {
            () if is_timed && gaps.is_none() => return Err("frames leave in groups"),
            () if !is_timed && options.pass_delay > Duration::ZERO => {
                return Err("there is a pause between passes");
            }
            () => {}
        }
        let mut builder = Builder {
            pass: Self {
                frames: Vec::new(),
                facts: Vec::new(),
                gaps: Vec::new(),
                lead: CapturedGap::default(),
                fractions: gaps.as_ref().map_or(1, Gaps::fractions),
                passes_milli: renderer.passes_milli(),
                sums: Vec::new(),
                total: ReplayCounters::default(),
                skipped: Vec::new(),
                records: 0,
            },
            gaps,
            piece: Vec::with_capacity(PIECE_BYTES),
            piece_first: 0,
            position: 0,
            skipped: ReplayCounters::default(),
        };
        for chunk in chunks {
            builder.start_chunk(chunk);
            for (number, record) in (chunk.first_record..).zip(&chunk.records) {
                builder.add(chunk, record, number, options, renderer, port)?;
            }
        }
        builder.store_piece(port)?;
        builder.close(chunks, options, renderer)
    }

    /// Returns what a port needs to send the frames from `position` on.
    pub(super) fn resident(&self, position: CapturePosition) -> ResidentCapture<'_> {
        ResidentCapture {
            frames: &self.frames,
            gaps: &self.gaps,
            units: self.fractions,
            passes_milli: self.passes_milli,
            position,
        }
    }

    /// Returns the position of the first frame of a run that begins at `start`.
    pub(super) fn first(&self, start: Instant) -> CapturePosition {
        let due = start.saturating_add(Duration::from_nanos(self.lead.gap));
        CapturePosition {
            due: (!self.gaps.is_empty()).then_some(due),
            rest: self.lead.rest,
            ..CapturePosition::default()
        }
    }

    /// Returns how many frames this worker sends in `passes` passes of which all workers together send
    /// `records` records.
    pub(super) fn frames_max(&self, passes: u64, records: u64) -> u64 {
        let frames = self.frames.len() as u64;
        let (whole, part) = (records / self.records.max(1), records % self.records.max(1));
        let in_part = self.facts.partition_point(|it| u64::from(it.position) < part) as u64;
        whole.saturating_mul(frames).saturating_add(in_part).min(frames.saturating_mul(passes))
    }

    /// Returns the counts of the first `frames` frames, and the records that all workers have sent
    /// until then.
    pub(super) fn counts(&self, frames: u64) -> (ReplayCounters, u64) {
        let of_pass = self.frames.len() as u64;
        let (passes, part) = (frames / of_pass, (frames % of_pass) as usize);
        let mut counts = self.total.times(passes);
        counts.passes = passes;
        let is_new = |pass: u64| pass == 0 || self.iteration(pass) != self.iteration(pass - 1);
        let new_passes = match passes.checked_sub(1) {
            None => 0,
            Some(last) => 1 + self.iteration(last),
        };
        let flows = self.total.times(new_passes);
        (counts.flows, counts.flows_expired) = (flows.flows, flows.flows_expired);
        let mut within = self.before(part);
        if !is_new(passes) {
            (within.flows, within.flows_expired) = (0, 0);
        }
        counts.merge(&within);
        // Of these, the sum is meant and not the maximum.
        counts.filtered = self.total.filtered * passes + within.filtered;
        counts.unconvertible = self.total.unconvertible * passes + within.unconvertible;
        let position =
            part.checked_sub(1).map_or(0, |last| u64::from(self.facts[last].position) + 1);
        (counts, self.records * passes + position)
    }

    fn iteration(&self, pass: u64) -> u64 {
        self.passes_milli.map_or(0, |milli| (u128::from(pass) * 1_000 / u128::from(milli)) as u64)
    }

    /// Returns the counts of the first `frames` frames of a pass.
    fn before(&self, frames: usize) -> ReplayCounters {
        let begin = frames / SUM_FRAMES * SUM_FRAMES;
        let mut counts = match self.sums.get(frames / SUM_FRAMES) {
            Some(sum) => *sum,
            None => self.total,
        };
        for facts in self.facts.get(begin..frames).unwrap_or_default() {
            facts.count(&mut counts);
        }
        let skipped = |frame: usize| self.skipped.partition_point(|(behind, _)| *behind < frame);
        for (_, skipped) in &self.skipped[skipped(begin)..skipped(frames)] {
            counts.add(skipped);
        }
        counts
    }
}

impl Facts {
    fn count(&self, counts: &mut ReplayCounters) {
        counts.count(self.flags, self.length.into(), true, self.is_truncated);
    }
}

impl Builder {
    fn start_chunk(&mut self, chunk: &Chunk) {
        if let Some(gaps) = self.gaps.as_mut().filter(|_| chunk.starts_file) {
            gaps.restart(Duration::ZERO);
        }
    }

    /// Goes on to a record in the schedule. Returns whether this worker sends it.
    fn advance(
        gaps: &mut Option<Gaps>,
        record: &Record,
        options: &WorkerOptions,
        renderer: &Renderer,
    ) -> bool {
        if let Some(gaps) = gaps {
            gaps.advance(record.timestamp, renderer.frame_length(record));
        }
        record.worker == options.index
    }

    fn add<P: Transmit>(
        &mut self,
        chunk: &Chunk,
        record: &Record,
        number: u64,
        options: &WorkerOptions,
        renderer: &Renderer,
        port: &mut P,
    ) -> Result<(), &'static str> {
        if record.flags.contains(RecordFlags::FILTERED) {
            match record.flags.contains(RecordFlags::INVALID) {
                true => self.skipped.unconvertible += 1,
                false => self.skipped.filtered += 1,
            }
            return Ok(());
        }
        let is_own = Self::advance(&mut self.gaps, record, options, renderer);
        let position = self.position;
        self.position = position.checked_add(1).ok_or("it has too many records")?;
        if !is_own {
            return Ok(());
        }
        let capabilities = *port.capabilities();
        let room = renderer.room(record);
        if renderer.exceeds(room, &capabilities) {
            self.refuse(room);
            return Ok(());
        }
        let begin = self.piece.len();
        self.piece.resize(begin + room, 0);
        let Some(length) = renderer.render(chunk, record, number, &mut self.piece[begin..]) else {
            self.piece.truncate(begin);
            self.skipped.filtered += 1;
            return Ok(());
        };
        self.piece.truncate(begin + length);
        let frame = &self.piece[begin..];
        if !capabilities.accepts(frame) {
            self.piece.truncate(begin);
            self.refuse(length);
            return Ok(());
        }
        let moving = renderer.moving(record, frame).ok_or("edits and addresses change")?;
        let gap = self.gaps.as_mut().map(Gaps::take);
        let pass = &mut self.pass;
        let index = pass.frames.len();
        match gap {
            Some(gap) if index == 0 => pass.lead = gap,
            // The gap before this frame is behind the last one.
            gap => pass.gaps.extend(gap),
        }
        if self.skipped != ReplayCounters::default() {
            pass.skipped.push((index, core::mem::take(&mut self.skipped)));
        }
        let range = begin as u32..(begin + length) as u32;
        pass.frames.push(CapturedFrame { stored: StoredBytes::from_index(0), range, moving });
        pass.facts.push(Facts {
            position,
            length: length as u16,
            flags: record.flags,
            is_truncated: renderer.is_truncated(record, length),
        });
        if self.piece.len() >= PIECE_BYTES {
            self.store_piece(port)?;
        }
        Ok(())
    }

    fn refuse(&mut self, length: usize) {
        if length < ethernet::HEADER_LENGTH {
            self.skipped.too_short += 1;
        } else {
            self.skipped.too_long += 1;
            self.skipped.too_long_max = self.skipped.too_long_max.max(length as u64);
        }
    }

    fn store_piece<P: Transmit>(&mut self, port: &mut P) -> Result<(), &'static str> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let stored = port.store(&self.piece).ok_or("there is no memory for it")?;
        for frame in &mut self.pass.frames[self.piece_first..] {
            frame.stored = stored;
        }
        self.piece_first = self.pass.frames.len();
        self.piece.clear();
        Ok(())
    }

    /// Adds the gap behind the last frame, and the sums.
    fn close(
        self,
        chunks: &[Arc<Chunk>],
        options: &WorkerOptions,
        renderer: &Renderer,
    ) -> Result<StoredPass, &'static str> {
        let Self { mut pass, mut gaps, position, skipped, .. } = self;
        if pass.frames.is_empty() {
            return Err("there is no frame to send");
        }
        if let Some(gaps) = &mut gaps {
            gaps.restart(options.pass_delay);
        }
        let first = pass.facts[0].position;
        let mut scheduled = 0;
        for chunk in chunks {
            if let Some(gaps) = gaps.as_mut().filter(|_| chunk.starts_file) {
                gaps.restart(Duration::ZERO);
            }
            let is_sent = |it: &&Record| !it.flags.contains(RecordFlags::FILTERED);
            for record in chunk.records.iter().filter(is_sent) {
                if scheduled > first {
                    break;
                }
                scheduled += 1;
                Self::advance(&mut gaps, record, options, renderer);
            }
        }
        pass.gaps.extend(gaps.as_mut().map(Gaps::take));
        pass.records = position.into();
        let mut sum = ReplayCounters::default();
        let mut skips = pass.skipped.iter().peekable();
        for (index, facts) in pass.facts.iter().enumerate() {
            if index % SUM_FRAMES == 0 {
                pass.sums.push(sum);
            }
            if let Some((_, skipped)) = skips.next_if(|(behind, _)| *behind == index) {
                sum.add(skipped);
            }
            facts.count(&mut sum);
        }
        sum.add(&skipped);
        pass.total = sum;
        Ok(pass)
    }
}
