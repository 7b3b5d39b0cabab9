//! Streams that a port makes and sends by itself: their operations, and their state.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wirestorm_base::resident::{
    CURSORS_MAX, FieldWrite, Operation as Lowered, ResidentOptions, SHAPES_MAX, STREAMS_MAX, Shape,
    VALUES_MAX,
};
use wirestorm_model::stream::{ByteOrder, GapDistribution, Mode, Speed, Stream, Write};

use super::program::{FrameBuilder, Operation, OperationCache, VariableWords};
use super::share::Share;

/// What a port can send by itself of some streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResidentStreams {
    /// What to open the port for; no shape if no stream is resident.
    pub options: ResidentOptions,
    /// For each stream, the reason why the port does not send it by itself; `None` if it does.
    pub obstacles: Vec<Option<&'static str>>,
}

impl ResidentStreams {
    /// Returns whether the port sends all its streams by itself, without due times: its process has
    /// nothing to do.
    pub fn need_no_process(&self) -> bool {
        let options = &self.options;
        options.streams > 0 && options.streams == self.obstacles.len() && !options.is_timed
    }

    /// Examines the streams of a port and a worker.
    pub fn of(streams: &[Stream], share: Share) -> Self {
        let mut recipes = OperationCache::default();
        let mut resident = Self::default();
        let is_at_once = |stream: &Stream| stream.transmission.speed == Speed::Max;
        let is_timed = !streams.iter().all(is_at_once);
        // A port cannot divide its time between streams that it makes and others without due times.
        let is_mixed = is_timed && streams.iter().any(is_at_once);
        for stream in streams {
            let examined = match obstacle(stream) {
                _ if is_mixed => Err("the port also has streams without a rate"),
                Some(obstacle) => Err(obstacle),
                None => resident.take(&FrameBuilder::new(stream, 0, share, &mut recipes)),
            };
            resident.obstacles.push(examined.err());
        }
        if !is_timed && resident.obstacles.iter().any(Option::is_some) {
            resident.options = ResidentOptions::default();
            for obstacle in resident.obstacles.iter_mut().filter(|it| it.is_none()) {
                *obstacle = Some("the process makes another stream without a rate on the port");
            }
        }
        resident.options.is_timed = is_timed;
        resident
    }

    /// Adds a stream to those that the port sends by itself.
    fn take(&mut self, maker: &FrameBuilder) -> Result<(), &'static str> {
        let (shape, cursors) = maker.resident()?;
        let values: usize = cursors.iter().map(|it| it.values.count()).sum();
        let options = &mut self.options;
        let is_new = !options.shapes.contains(&shape);
        match () {
            () if cursors.len() > CURSORS_MAX => return Err("more than 6 values change"),
            () if options.streams == STREAMS_MAX => return Err("the port has too many streams"),
            () if options.values + values > VALUES_MAX => return Err("the lists are too long"),
            () if is_new && options.shapes.len() == SHAPES_MAX => {
                return Err("the port has more than 63 kinds of frames");
            }
            () => {}
        }
        options.streams += 1;
        options.values += values;
        options.shapes.extend(is_new.then_some(shape));
        Ok(())
    }
}

/// Returns why a port cannot send a stream by itself, whatever its frames.
fn obstacle(stream: &Stream) -> Option<&'static str> {
    let transmission = &stream.transmission;
    match transmission.mode {
        _ if stream.member.is_some() => Some("members of a link aggregation group share it"),
        _ if transmission.next.is_some() => Some("another stream starts when it ends"),
        _ if transmission.departures != GapDistribution::Constant => Some("its gaps vary"),
        Mode::Bursts { count: 2.., .. } => Some("it has several bursts"),
        _ => None,
    }
}

/// Translates operations for a port.
///
/// # Errors
/// The reason why a port cannot run one.
pub(super) fn lower(operations: &[Operation]) -> Result<Vec<Lowered>, &'static str> {
    let mut lowered = Vec::new();
    for operation in operations {
        match operation {
            Operation::Write16 { cursor, offset, add } => {
                lowered.push(whole(*cursor, *offset, 2, u128::from(*add)));
            }
            Operation::Write32 { cursor, offset, add } => {
                lowered.push(whole(*cursor, *offset, 4, u128::from(*add)));
            }
            Operation::Write64 { cursor, offset, add } => {
                lowered.push(whole(*cursor, *offset, 8, u128::from(*add)));
            }
            Operation::WriteBits(write) => split(write, &mut lowered)?,
            Operation::SumOfChanges { offset, changing, never_zero, .. } => {
                let added = added(changing, &lowered);
                lowered.push(Lowered::SumBegin { offset: *offset });
                lowered.extend(added);
                lowered.push(Lowered::SumEnd { offset: *offset, never_zero: *never_zero });
            }
            Operation::Length { .. } | Operation::WriteLength { .. } => {
                return Err("its frames differ in length");
            }
            Operation::ClearSignature { .. } => return Err("a field overlaps the signature"),
            Operation::WholeSum(_) => return Err("a checksum is computed over all bytes"),
            Operation::WrongSum(_) => return Err("a checksum is wrong on purpose"),
        }
    }
    Ok(lowered)
}

const fn whole(cursor: usize, offset: usize, width: usize, add: u128) -> Lowered {
    let mask = FieldWrite::whole(width);
    let write = FieldWrite {
        cursor,
        is_upper: false,
        add,
        shift: 0,
        offset,
        width,
        mask,
        is_little: false,
    };
    Lowered::Write(write)
}

/// Splits a write into writes of up to 64 bits, each of one half of the value.
fn split(write: &Write, lowered: &mut Vec<Lowered>) -> Result<(), &'static str> {
    let Write { variable: cursor, offset, width, add, shift, mask, order } = *write;
    let is_little = order == ByteOrder::Little;
    // Bytes done, from the least significant one.
    let mut done = 0;
    while done < width {
        let fitting = [8, 4, 2, 1].into_iter().filter(|bytes| done + bytes <= width);
        // The bits of the sum from which these bytes come.
        let first = 8 * done as i32 - shift;
        let part = fitting.into_iter().find_map(|bytes| {
            let end = first + 8 * bytes as i32;
            match first {
                -63..64 if end <= 64 => Some((bytes, false, -first)),
                64..128 => Some((bytes, true, 64 - first)),
                _ => None,
            }
        });
        let Some((bytes, is_upper, shift)) = part else {
            return Err("a field takes bits of both halves of a long value");
        };
        let place = if is_little { offset + done } else { offset + width - done - bytes };
        let part_mask = (mask >> (8 * done)) as u64 & FieldWrite::whole(bytes);
        if part_mask != 0 {
            lowered.push(Lowered::Write(FieldWrite {
                cursor,
                is_upper,
                add,
                shift,
                offset: place,
                width: bytes,
                mask: part_mask,
                is_little,
            }));
        }
        done += bytes;
    }
    Ok(())
}

/// Returns the additions of a checksum. A field is added as it was written: a wider load than the
/// store before it waits for the store to reach the cache.
fn added(changing: &[VariableWords], before: &[Lowered]) -> Vec<Lowered> {
    let mut words: BTreeSet<usize> = BTreeSet::new();
    for VariableWords { offset, mask } in changing {
        words.extend((mask >> 16 != 0).then_some(*offset));
        words.extend((mask & 0xffff != 0).then_some(offset + 2));
    }
    let mut added = Vec::new();
    while let Some(offset) = words.pop_first() {
        let mut width = 2;
        for operation in before {
            let Lowered::Write(write) = operation else { continue };
            let covered = (write.offset..write.offset + write.width).step_by(2).skip(1);
            let is_whole = covered.clone().all(|word| words.contains(&word));
            if write.offset == offset && write.width > width && is_whole {
                width = write.width;
            }
        }
        (offset..offset + width).step_by(2).for_each(|word| _ = words.remove(&word));
        added.push(Lowered::SumAdd { offset, width });
    }
    added
}

/// Returns the place of a shape in what a port was opened for.
pub(super) fn place(shape: &Shape, options: &ResidentOptions) -> Option<usize> {
    options.shapes.iter().position(|known| known == shape)
}
