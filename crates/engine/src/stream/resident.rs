//! Streams that a port makes and sends by itself: their operations, and their state.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wirestorm_base::resident::{FieldWrite, Operation as Lowered, ResidentOptions, Shape};
use wirestorm_model::stream::{ByteOrder, Mode, Speed, Stream, Write};

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
    /// Examines the streams of a port and a worker.
    pub fn of(streams: &[Stream], share: Share) -> Self {
        let mut recipes = OperationCache::default();
        let mut resident = Self::default();
        let is_timed = streams.iter().any(|stream| stream.transmission.speed != Speed::Max);
        for stream in streams {
            let maker = FrameBuilder::new(stream, 0, share, &mut recipes);
            let examined = match obstacle(stream, is_timed) {
                Some(obstacle) => Err(obstacle),
                None => maker.resident(),
            };
            resident.obstacles.push(examined.as_ref().err().copied());
            if let Ok((shape, cursors)) = examined {
                resident.options.streams += 1;
                resident.options.values +=
                    cursors.iter().map(|it| it.values.count()).sum::<usize>();
                if !resident.options.shapes.contains(&shape) {
                    resident.options.shapes.push(shape);
                }
            }
        }
        resident.options.is_timed = is_timed;
        // Without due times, a port cannot divide its time between those that it makes and others.
        if !is_timed && resident.obstacles.iter().any(Option::is_some) {
            for obstacle in resident.obstacles.iter_mut().filter(|it| it.is_none()) {
                *obstacle =
                    Some("another stream of the port, also without a rate, is made frame by frame");
            }
            resident.options = ResidentOptions { is_timed, ..ResidentOptions::default() };
        }
        resident
    }
}

/// Returns why a port cannot send a stream by itself, whatever its frames.
pub(super) fn obstacle(stream: &Stream, is_timed: bool) -> Option<&'static str> {
    use wirestorm_model::stream::GapDistribution;
    let transmission = &stream.transmission;
    let is_steady = transmission.departures == GapDistribution::Constant;
    match transmission.mode {
        _ if is_timed && transmission.speed == Speed::Max => {
            Some("it has no rate, and shares the port with streams that have one")
        }
        _ if stream.member.is_some() => {
            Some("it is shared by the members of a link aggregation group")
        }
        _ if transmission.next.is_some() => Some("another stream starts when it ends"),
        _ if !is_steady => Some("its gaps vary"),
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
