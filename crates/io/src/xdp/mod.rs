//! The in-kernel sender and the counting receiver: ports on any interface, without kernel modules,
//! unbinding or huge pages.
//!
//! # Why it is fast
//!
//! A socket costs a system call, an allocation and the queueing layer for each frame. Here the
//! kernel itself is the sender: one `BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES` (Linux
//! 5.18) runs for the whole test on its own core. It passes recycled pages to a BPF program. The
//! program copies the next frame from a shared ring into the page and redirects it to the driver,
//! 16 at a time. There is no system call, allocation or socket buffer for each frame; the process
//! only writes to memory.
//!
//! Streams that only change fields from frame to frame need no process at all: a program that is
//! compiled for them makes their frames.
//!
//! Frames carry their departure times. The program waits for each by returning pages unused (about
//! 110 ns an iteration), so pacing does not depend on the scheduling of the process.

mod assembler;
mod captured;
mod compiler;
mod count;
mod layout;
mod memory;
mod resident;
mod sender;
mod transmit;

pub use count::{CpuArrivals, XdpAttachment, XdpCounter};
pub use transmit::{FRAME_LENGTH_MAX, XdpTransmit, XdpTransmitOptions};
