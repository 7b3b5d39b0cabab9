//! The veth pair between sender and receiver, and the sinks at its far end.

use wirestorm_testkit::net::{DropSink, Lab, NetError};

/// A receiver that discards frames. The cheapest one depends on how a contender sends, so each
/// contender runs with all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// The kernel's network stack, which drops the frames.
    Plain,
    /// The network stack with GRO, which enables NAPI polling. A veth needs it to accept redirected
    /// XDP frames.
    Polling,
    /// An XDP program that drops all frames.
    Xdp,
}

impl Sink {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Polling, Self::Xdp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Polling => "polling",
            Self::Xdp => "xdp",
        }
    }

    /// Configures the far end of the lab as this sink until the value is dropped.
    pub(super) fn prepare(self, lab: &Lab) -> Result<Option<DropSink>, NetError> {
        lab.b.set_gro(self == Self::Polling)?;
        (self == Self::Xdp).then(|| lab.b.drop_sink()).transpose()
    }
}
