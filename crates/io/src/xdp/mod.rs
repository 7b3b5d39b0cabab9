//! The in-kernel sender and the XDP receiver: ports on any interface, without modules, unbinding
//! or huge pages.
//!
//! # Why it is fast
//!
//! A socket costs a system call, an allocation and the queueing layer for each frame. Here the
//! kernel itself is the sender: one `BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES` (Linux
//! 5.18) runs for as long as the test does, on a core of its own, and hands a BPF program one
//! recycled page after the other. The program copies the next frame of a ring that it shares
//! with this process into the page and redirects it to the interface's driver, 16 at a time. No
//! system call, no allocation and no socket buffer on the way; the process only writes to
//! memory.
//!
//! Frames carry their departure times, and the program waits for each by giving pages back
//! (about 110 ns a turn), so pacing does not depend on when the process is scheduled.

mod count;
mod layout;
mod memory;
mod sender;
mod transmit;

pub use count::{CpuArrivals, XdpCounter, XdpPlace};
pub use transmit::{FRAME_LENGTH_MAX, XdpTransmit, XdpTransmitOptions};
