//! The veth pair that everyone sends over, and what takes the frames at its far end.

use wirestorm_testkit::net::{DropSink, Lab, NetError};

/// What takes the frames. Which of them costs a sender least depends on how it sends, so each
/// contender meets all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// The kernel, which finds no use for them.
    Plain,
    /// The same with GRO, and so with an interface that polls, which is what a veth needs to be
    /// sent to by XDP.
    Polling,
    /// An XDP program that drops.
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

    /// Makes the lab's far end this sink for as long as the value lives.
    pub(super) fn prepare(self, lab: &Lab) -> Result<Option<DropSink>, NetError> {
        lab.b.set_gro(self == Self::Polling)?;
        (self == Self::Xdp).then(|| lab.b.drop_sink()).transpose()
    }
}
