//! Interfaces of runs, and ports on them.

mod error;
mod interfaces;
mod link_flap;
mod options;
mod receive;

use wirestorm_base::port::StampPoint;

pub use error::OpenError;
pub(crate) use interfaces::{Interfaces, Watch, are_one_pair};
pub(crate) use link_flap::LinkFlapTolerant;
pub(crate) use options::{PortOptions, Usage};
pub(crate) use receive::ReceivePort;

/// Returns the name of a timestamp point in results.
pub(crate) const fn stamp_name(stamp: StampPoint) -> &'static str {
    match stamp {
        StampPoint::Process => "process",
        StampPoint::Kernel => "kernel",
        StampPoint::Xdp => "xdp",
        StampPoint::Hardware => "hardware",
        StampPoint::Virtual => "virtual",
    }
}
