//! The memory that the process and the XDP programs share, as `bpf/ring.h` lays it out.
//!
//! What one side reads while the other may write is atomic.

use std::sync::atomic::AtomicU64;

use wirestorm_base::histogram;

/// Descriptors in the ring; a power of two.
pub(super) const DESCRIPTORS: usize = 16_384;
/// Bytes in which frame buffers begin and end, at the distance that [`buffer_distance`] says.
pub(super) const BUFFERS_BYTES: usize = 24 << 20;
/// The longest frame that fits one page together with what the kernel keeps beside it.
pub(super) const FRAME_BYTES_MAX: usize = 3400;

/// The distance between the starts of two buffers of so many bytes: an odd number of cache lines,
/// so that consecutive ones spread over all sets of a cache.
pub(super) const fn buffer_distance(bytes: usize) -> usize {
    const LINE: usize = 64;
    (bytes.div_ceil(LINE) | 1) * LINE
}

/// Buffers at such a distance; no more than descriptors, so that the ring cannot overflow.
pub(super) const fn buffers(distance: usize) -> usize {
    let fitting = BUFFERS_BYTES / distance;
    if fitting < DESCRIPTORS { fitting } else { DESCRIPTORS }
}

/// Bytes of a slab of the store in which frames may begin and have to end.
pub(super) const SLAB_BYTES: usize = 1 << SLAB_SHIFT;
const SLAB_SHIFT: u32 = 20;
/// Distance between the starts of two slabs.
pub(super) const SLAB_DISTANCE: usize = SLAB_BYTES + 4096;
/// Slabs that a descriptor can name.
pub(super) const SLABS_MAX: usize = 1024;

/// One frame to be sent.
#[repr(C)]
pub(super) struct Descriptor {
    /// `CLOCK_MONOTONIC` in ns; 0: as soon as possible.
    pub(super) departure: u64,
    /// [`stored`]; 0: the frame is in the buffer.
    pub(super) source: u32,
    pub(super) buffer: u16,
    /// With [`STAMPED`] where the frame ends in the time of its departure.
    pub(super) length: u16,
}

/// Beside a length: the program writes the departure.
pub(super) const STAMPED: u16 = 1 << 15;

/// The source of a frame in the store.
#[inline]
pub(super) const fn stored(slab: u32, offset: usize) -> u32 {
    debug_assert!((slab as usize) < SLABS_MAX && offset < SLAB_BYTES);
    1 << 31 | slab << SLAB_SHIFT | offset as u32
}

/// Written by the process.
#[repr(C)]
pub(super) struct UserSide {
    pub(super) produced: AtomicU64,
    pub(super) abort: AtomicU64,
    reserved: [AtomicU64; 6],
}

/// Written by the sending program.
#[repr(C)]
pub(super) struct KernelSide {
    pub(super) consumed: AtomicU64,
    pub(super) redirected: AtomicU64,
    pub(super) redirected_bytes: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) idle_turns: AtomicU64,
    pub(super) start_delay: AtomicU64,
    pub(super) regained: AtomicU64,
    pub(super) timed: AtomicU64,
    pub(super) first: AtomicU64,
    pub(super) last: AtomicU64,
    pub(super) due_before: AtomicU64,
    pub(super) shifted: AtomicU64,
    pub(super) lateness_max: AtomicU64,
    pub(super) gap_max: AtomicU64,
    pub(super) gap_error_max: AtomicU64,
}

/// Written by the program on the device's transmit tracepoint.
#[repr(C)]
pub(super) struct DeviceSide {
    pub(super) sent: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) last_error: AtomicU64,
    reserved: [AtomicU64; 5],
}

/// The one value of the map.
#[repr(C)]
pub(super) struct Ring {
    pub(super) user: UserSide,
    pub(super) kernel: KernelSide,
    pub(super) device: DeviceSide,
    pub(super) descriptors: [Descriptor; DESCRIPTORS],
    pub(super) gaps: [AtomicU64; histogram::BUCKETS],
    pub(super) gap_errors: [AtomicU64; histogram::BUCKETS],
    /// The room behind lets the program read on from the start of any buffer.
    pub(super) buffers: [u8; BUFFERS_BYTES + FRAME_BYTES_MAX],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    /// The C compiler's view, computed from `ring.h` by the same clang that builds the programs.
    #[test]
    fn the_layout_is_that_of_the_header() {
        let fields = [
            ("user.abort", offset_of!(Ring, user.abort)),
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
        let mut source = String::from("#include <stddef.h>\n#include \"ring.h\"\n");
        for (field, offset) in fields {
            source += &format!(
                "_Static_assert(offsetof(struct ring, {field}) == {offset}, \"{field}\");\n"
            );
        }
        source += &format!("_Static_assert(sizeof(struct ring) == {}, \"\");\n", size_of::<Ring>());
        let constants = [
            ("RING_DESCRIPTORS", DESCRIPTORS),
            ("BUFFERS_BYTES", BUFFERS_BYTES),
            ("FRAME_BYTES_MAX", FRAME_BYTES_MAX),
            ("SLAB_BYTES", SLAB_BYTES),
            ("SLAB_DISTANCE", SLAB_DISTANCE),
            ("SLABS_MAX", SLABS_MAX),
            ("STAMPED", usize::from(STAMPED)),
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
        assert!(compiler.wait().expect("clang ends").success(), "src/xdp/layout.rs != bpf/ring.h");
    }
}
