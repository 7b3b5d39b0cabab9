//! Common code of the end-to-end tests: the binary, its runs and captures.
//!
//! The tests use only Wirestorm's command line, exit status and JSON result. Reference data comes
//! from the kernel, tcpdump and tshark. `wirestorm-testkit` is the only workspace package that they
//! use.

#![forbid(unsafe_code)]

mod binary;
mod captures;
mod receiver;
mod run;

pub use binary::wirestorm;
pub use captures::{ByteOrder, FileForm, LINKTYPE_ETHERNET, encode, traffic, write_capture};
pub use receiver::Receiver;
pub use run::{Outcome, Running, replay, run_command, start_command, start_replay};

use wirestorm_testkit::pcap::Packet;
use wirestorm_testkit::require::{require_root, require_tool};

/// Whether labs and captures work and `tools` are installed; prints the missing requirement.
#[must_use = "a test without its lab has to return"]
pub fn can_run(tools: &[&str]) -> bool {
    require_root()
        && ["ip", "ethtool", "tcpdump"].iter().chain(tools).all(|tool| require_tool(tool))
}

/// Compares frames byte by byte and in order.
///
/// # Panics
/// Panics with the first frame that differs.
pub fn assert_same_frames<'a>(
    what: &str,
    expected: impl IntoIterator<Item = &'a [u8]>,
    found: impl IntoIterator<Item = &'a [u8]>,
) {
    let expected: Vec<&[u8]> = expected.into_iter().collect();
    let found: Vec<&[u8]> = found.into_iter().collect();
    let pairs = expected.iter().zip(&found);
    if let Some(position) = pairs.into_iter().position(|(expected, found)| expected != found) {
        panic!(
            "{what}: frame {} of {} differs:\nexpected {}\nfound    {}",
            position + 1,
            expected.len(),
            hex(expected[position]),
            hex(found[position]),
        );
    }
    assert_eq!(expected.len(), found.len(), "{what}: number of frames");
}

/// Iterates over the frames of packets.
pub fn frames(packets: &[Packet]) -> impl Iterator<Item = &[u8]> {
    packets.iter().map(|packet| packet.frame.as_slice())
}

/// Nanoseconds from the first packet to the last.
pub fn span(packets: &[Packet]) -> u64 {
    match packets {
        [first, .., last] => last.time.saturating_sub(first.time),
        _ => 0,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
