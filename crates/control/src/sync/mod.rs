//! Comparison of this machine's clock with others: STAMP sessions and reflectors, delays of each
//! direction, PTP sessions, and sources that know the error of the system clock.

mod flow_delay;
mod one_way;
pub mod ptp;
mod ptp_monitor;
mod ptp_transport;
mod reference;
mod reflector;
mod session;
pub mod sources;

use wirestorm_base::time::Duration;
use wirestorm_clock::stamp::ErrorEstimate;
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_io::clock::{self, RealtimeOffset};
use wirestorm_io::timestamps::Stamp;

pub use flow_delay::Comparison;
pub use one_way::{Assumption, DirectionReport, OwpingReport, STAMP_ERROR_NS, owping_report};
pub use ptp_monitor::{PtpMonitor, PtpState, PtpTrack};
pub use ptp_transport::{TransportError, TransportKind};
pub use reference::ReferenceMonitor;
pub use reflector::StampReflector;
pub use session::{SessionOptions, StampSession};
pub use wirestorm_clock::reference::{self as references, ReferenceReading};
pub use wirestorm_clock::{estimate, exchange, stamp, timestamp};
pub use wirestorm_io::timestamps::StampedSocket;

/// Time that a thread waits for a datagram before it looks whether it has to end.
const PATIENCE: Duration = Duration::from_millis(50);

/// Longest datagram; longer ones are cut off.
const DATAGRAM_BYTES: usize = 2_048;

/// Error of our own clock in packets: this machine's clock runs free, and its error is unknown. Peers
/// that compare clocks do not use the field.
fn unknown_error() -> ErrorEstimate {
    ErrorEstimate::new(1e9, false)
}

fn now() -> Timestamp {
    clock::node_time(clock::now())
}

/// Converts a stamp of a datagram to the time of this machine.
fn node_time(stamp: Stamp, offset: RealtimeOffset) -> Timestamp {
    clock::node_time(offset.to_monotonic(stamp.realtime_ns.max(0) as u64))
}
