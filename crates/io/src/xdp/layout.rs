//! Layout of the memory that the process and the XDP programs share, same as `bpf/ring.h`,
//! `bpf/resident.h` and `bpf/captured.h`.
//!
//! Fields that one side reads while the other may write are atomic.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use wirestorm_base::histogram;
use wirestorm_base::resident::CURSORS_MAX;

/// Number of descriptors in the ring; a power of two.
pub(super) const DESCRIPTORS: usize = 16_384;
/// Size of the frame buffers in bytes; [`buffer_distance`] gives the distance between two.
pub(super) const BUFFERS_BYTES: usize = 24 << 20;
/// Longest frame that fits in one page beside the kernel's headroom and bookkeeping.
pub(super) const FRAME_BYTES_MAX: usize = 3400;

/// Distance between the starts of two buffers of `bytes` bytes. An odd number of cache lines
/// spreads consecutive buffers over all sets of a cache.
pub(super) const fn buffer_distance(bytes: usize) -> usize {
    const LINE: usize = 64;
    (bytes.div_ceil(LINE) | 1) * LINE
}

/// Number of buffers at this distance, at most one for each descriptor, so the ring cannot
/// overflow.
pub(super) const fn buffers(distance: usize) -> usize {
    let fitting = BUFFERS_BYTES / distance;
    if fitting < DESCRIPTORS { fitting } else { DESCRIPTORS }
}

/// Size of a slab of the frame store in bytes; each frame lies within one slab.
pub(super) const SLAB_BYTES: usize = 1 << SLAB_SHIFT;
pub(super) const SLAB_SHIFT: u32 = 20;
/// Distance between the starts of two slabs.
pub(super) const SLAB_DISTANCE: usize = SLAB_BYTES + 4096;
/// Highest number of slabs that a descriptor can address.
pub(super) const SLABS_MAX: usize = 1024;

/// One frame to be sent.
#[repr(C)]
pub(super) struct Descriptor {
    /// Departure time by `CLOCK_MONOTONIC` in ns; 0 means as soon as possible.
    pub(super) departure: u64,
    /// Location in the store ([`stored`]); 0 if the frame is in the buffer.
    pub(super) source: u32,
    pub(super) buffer: u16,
    /// Length in bytes; with [`STAMPED`] if the program writes the departure time.
    pub(super) length: u16,
}

/// Flag in the length: the program writes the departure time into the end of the frame.
pub(super) const STAMPED: u16 = 1 << 15;

/// Encodes the location of a frame in the store.
#[inline]
pub(super) const fn stored(slab: u32, offset: usize) -> u32 {
    debug_assert!((slab as usize) < SLABS_MAX && offset < SLAB_BYTES);
    1 << 31 | slab << SLAB_SHIFT | offset as u32
}

/// Fields written by the process.
#[repr(C)]
pub(super) struct UserSide {
    pub(super) produced: AtomicU64,
    pub(super) abort: AtomicU64,
    pub(super) resident: AtomicU64,
    reserved: [AtomicU64; 5],
}

/// Fields written by the sending program.
#[repr(C)]
pub(super) struct KernelSide {
    pub(super) consumed: AtomicU64,
    pub(super) redirected: AtomicU64,
    pub(super) redirected_bytes: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) idle_iterations: AtomicU64,
    pub(super) start_delay: AtomicU64,
    pub(super) regained: AtomicU64,
    pub(super) timed: AtomicU64,
    pub(super) first: AtomicU64,
    pub(super) last: AtomicU64,
    pub(super) previous_due: AtomicU64,
    pub(super) shifted: AtomicU64,
    pub(super) lateness_max: AtomicU64,
    pub(super) gap_max: AtomicU64,
    pub(super) gap_error_max: AtomicU64,
}

/// Fields written by the program on the device's transmit tracepoint.
#[repr(C)]
pub(super) struct DeviceSide {
    pub(super) sent: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) last_error: AtomicU64,
    reserved: [AtomicU64; 5],
}

/// Fields of the resident streams. The process writes them while `UserSide::resident` is 0, the
/// program otherwise.
#[repr(C)]
pub(super) struct ResidentSide {
    pub(super) sending: AtomicU64,
    pub(super) left: AtomicU64,
    pub(super) until: AtomicU64,
    pub(super) turn: AtomicU64,
    pub(super) turn_left: AtomicU64,
    pub(super) stream: AtomicU64,
    pub(super) time: AtomicU64,
    pub(super) leaves_out: AtomicU64,
}

/// Frames for which the program reads the clock once, without due times.
pub(super) const CLOCK_FRAMES: usize = 4;

/// Programs of the ring and of the first shape.
pub(super) const PROGRAM_RING: usize = 0;
pub(super) const PROGRAM_SHAPES: usize = 1;
/// Length of a template up to which it is in its stream; longer ones are in the store.
pub(super) const SHORT_TEMPLATE: usize = 128;
/// Frames that a stream without due times sends in a turn.
pub(super) const TURN_FRAMES: u64 = 8;

/// State of a variable of a resident stream.
#[repr(C)]
#[derive(Default)]
pub(super) struct CursorRecord {
    pub(super) place: AtomicU64,
    pub(super) cycle: AtomicU64,
    pub(super) places: AtomicU64,
    pub(super) wraps_beside: AtomicU64,
    /// Counter: the value at place 0. List: index of its first value. Random: seed.
    pub(super) base: AtomicU64,
    /// Random: number of values.
    pub(super) step: AtomicU64,
    /// Random: the smallest value.
    pub(super) min: AtomicU64,
    pub(super) upper: AtomicU64,
}

/// A resident stream.
#[repr(C)]
pub(super) struct StreamRecord {
    pub(super) left: AtomicU64,
    pub(super) sequence: AtomicU64,
    pub(super) number: AtomicU32,
    pub(super) shape: AtomicU32,
    pub(super) source: AtomicU32,
    reserved: AtomicU32,
    pub(super) due: AtomicU64,
    pub(super) gap: AtomicU64,
    pub(super) gap_rest: AtomicU64,
    pub(super) units: AtomicU64,
    pub(super) rest: AtomicU64,
    pub(super) cursors: [CursorRecord; CURSORS_MAX],
    pub(super) template: [AtomicU64; SHORT_TEMPLATE / 8],
}

/// Place of a sending stream in the order of turns.
#[repr(C)]
pub(super) struct Turn {
    pub(super) due: AtomicU64,
    pub(super) stream: AtomicU32,
    reserved: AtomicU32,
}

/// A value of a list.
#[repr(C)]
pub(super) struct ListValue {
    pub(super) lower: AtomicU64,
    pub(super) upper: AtomicU64,
}

/// State of the resident capture; written as [`ResidentSide`] is.
#[repr(C)]
pub(super) struct CaptureSide {
    pub(super) next: AtomicU64,
    pub(super) frames: AtomicU64,
    pub(super) pass: AtomicU64,
    pub(super) passes_milli: AtomicU64,
    pub(super) iteration: AtomicU64,
    pub(super) due: AtomicU64,
    pub(super) rest: AtomicU64,
    pub(super) units: AtomicU64,
}

/// A frame of a capture.
#[repr(C)]
pub(super) struct CapturedRecord {
    pub(super) source: AtomicU32,
    pub(super) length: AtomicU16,
    /// [`MOVES_ADDRESSES`] and the others.
    pub(super) flags: AtomicU16,
    pub(super) source_address: AtomicU16,
    pub(super) destination_address: AtomicU16,
    pub(super) ports: AtomicU16,
    pub(super) checksum: AtomicU16,
}

/// Flags of a [`CapturedRecord`].
pub(super) const MOVES_ADDRESSES: u16 = 1;
pub(super) const MOVES_PORTS: u16 = 2;
pub(super) const HAS_CHECKSUM: u16 = 4;
pub(super) const NEVER_ZERO: u16 = 8;

/// Time between the due times of two frames of a capture.
#[repr(C)]
pub(super) struct GapRecord {
    pub(super) gap: AtomicU64,
    pub(super) rest: AtomicU64,
}

/// Value of the map's only entry.
#[repr(C)]
pub(super) struct Ring {
    pub(super) user: UserSide,
    pub(super) kernel: KernelSide,
    pub(super) device: DeviceSide,
    pub(super) resident: ResidentSide,
    pub(super) capture: CaptureSide,
    pub(super) descriptors: [Descriptor; DESCRIPTORS],
    pub(super) gaps: [AtomicU64; histogram::BUCKETS],
    pub(super) gap_errors: [AtomicU64; histogram::BUCKETS],
    /// The padding at the end lets the program read a whole frame from the start of any buffer.
    pub(super) buffers: [u8; BUFFERS_BYTES + FRAME_BYTES_MAX],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};
    use wirestorm_base::resident::{SHAPES_MAX, STREAMS_MAX};

    /// Compares with `ring.h` as compiled by the clang that builds the programs.
    #[test]
    fn layout_matches_the_c_header() {
        let fields = [
            ("user.abort", offset_of!(Ring, user.abort)),
            ("user.resident", offset_of!(Ring, user.resident)),
            ("resident.sending", offset_of!(Ring, resident.sending)),
            ("resident.leaves_out", offset_of!(Ring, resident.leaves_out)),
            ("capture.next", offset_of!(Ring, capture.next)),
            ("capture.units", offset_of!(Ring, capture.units)),
            ("kernel.consumed", offset_of!(Ring, kernel.consumed)),
            ("kernel.start_delay", offset_of!(Ring, kernel.start_delay)),
            ("kernel.timed", offset_of!(Ring, kernel.timed)),
            ("kernel.gap_error_max", offset_of!(Ring, kernel.gap_error_max)),
            ("device.sent", offset_of!(Ring, device.sent)),
            ("device.last_error", offset_of!(Ring, device.last_error)),
            ("descriptors", offset_of!(Ring, descriptors)),
            ("descriptors[0].length", offset_of!(Ring, descriptors) + 14),
            ("gaps", offset_of!(Ring, gaps)),
            ("gap_errors", offset_of!(Ring, gap_errors)),
            ("buffers", offset_of!(Ring, buffers)),
        ];
        let of_streams = [
            ("number", offset_of!(StreamRecord, number)),
            ("source", offset_of!(StreamRecord, source)),
            ("rest", offset_of!(StreamRecord, rest)),
            (
                "cursors[1].upper",
                offset_of!(StreamRecord, cursors) + 2 * size_of::<CursorRecord>() - 8,
            ),
            ("template", offset_of!(StreamRecord, template)),
        ];
        let of_frames = [
            ("flags", offset_of!(CapturedRecord, flags)),
            ("destination_address", offset_of!(CapturedRecord, destination_address)),
            ("checksum", offset_of!(CapturedRecord, checksum)),
        ];
        let mut source = String::from("#include <stddef.h>\n");
        for header in ["ring.h", "resident.h", "captured.h"] {
            source += &format!("#include \"{header}\"\n");
        }
        let checks = fields
            .map(|(field, offset)| ("ring", field, offset))
            .into_iter()
            .chain(of_streams.map(|(field, offset)| ("stream", field, offset)))
            .chain(of_frames.map(|(field, offset)| ("captured", field, offset)));
        for (of, field, offset) in checks {
            source += &format!(
                "_Static_assert(offsetof(struct {of}, {field}) == {offset}, \"{field}\");\n"
            );
        }
        for (of, bytes) in [
            ("ring", size_of::<Ring>()),
            ("stream", size_of::<StreamRecord>()),
            ("turn", size_of::<Turn>()),
            ("value", size_of::<ListValue>()),
            ("captured", size_of::<CapturedRecord>()),
            ("captured_gap", size_of::<GapRecord>()),
        ] {
            source += &format!("_Static_assert(sizeof(struct {of}) == {bytes}, \"{of}\");\n");
        }
        let constants = [
            ("CLOCK_FRAMES", CLOCK_FRAMES),
            ("CURSORS_MAX", CURSORS_MAX),
            ("STREAMS_MAX", STREAMS_MAX),
            ("PROGRAMS_MAX", PROGRAM_SHAPES + SHAPES_MAX),
            ("PROGRAM_RING", PROGRAM_RING),
            ("PROGRAM_SHAPES", PROGRAM_SHAPES),
            ("SHORT_TEMPLATE", SHORT_TEMPLATE),
            ("TURN_FRAMES", TURN_FRAMES as usize),
            ("RING_DESCRIPTORS", DESCRIPTORS),
            ("BUFFERS_BYTES", BUFFERS_BYTES),
            ("FRAME_BYTES_MAX", FRAME_BYTES_MAX),
            ("SLAB_BYTES", SLAB_BYTES),
            ("SLAB_DISTANCE", SLAB_DISTANCE),
            ("SLABS_MAX", SLABS_MAX),
            ("STAMPED", usize::from(STAMPED)),
            ("MOVES_ADDRESSES", usize::from(MOVES_ADDRESSES)),
            ("MOVES_PORTS", usize::from(MOVES_PORTS)),
            ("HAS_CHECKSUM", usize::from(HAS_CHECKSUM)),
            ("NEVER_ZERO", usize::from(NEVER_ZERO)),
            ("(STORED | 3 << SLAB_SHIFT | 5)", stored(3, 5) as usize),
        ];
        for (constant, value) in constants {
            source += &format!("_Static_assert({constant} == {value}, \"\");\n");
        }

        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
        let mut compiler = std::process::Command::new(clang)
            .args(["-fsyntax-only", "-x", "c", "-I"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"))
            .arg("-")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("clang runs, for it built this crate");
        std::io::Write::write_all(
            compiler.stdin.as_mut().expect("stdin is piped"),
            source.as_bytes(),
        )
        .expect("clang reads its input");
        assert!(
            compiler.wait().expect("clang ends").success(),
            "src/xdp/layout.rs differs from bpf/*.h"
        );
    }
}
