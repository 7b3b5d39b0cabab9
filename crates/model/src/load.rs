//! Loads: when the clients of a template start flows.

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;

/// When the flows of a template start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A program or a caller starts each flow.
    OnDemand,
    /// Starts flows at equal intervals, whatever becomes of them (an open loop). Flow k is due
    /// exactly k intervals after the start, so flows that are late follow one another at once. A
    /// flow that is late by more than a second is dropped and counted.
    Rate {
        /// Flows per second.
        rate: Rate,
        /// Open flows at most, without those in TIME-WAIT; `None`: as many as the table holds.
        /// Flows that are due above it are skipped and counted.
        at_most: Option<u64>,
    },
    /// Starts flows at exponentially distributed intervals, as independent users do (an open
    /// loop).
    Poisson {
        /// Flows per second on average.
        rate: Rate,
        /// Open flows at most, as for [`Load::Rate`].
        at_most: Option<u64>,
    },
    /// Keeps this many flows open (a closed loop); flows in TIME-WAIT do not count. The place of
    /// a flow that fails stays empty for 100 ms, then twice as long after each further failure, up
    /// to 1 s.
    Hold(u64),
    /// Adjusts the rate of flows so that they receive this many bits of data per second. If a flow
    /// takes longer than a second, adjusts the number of open flows. Keeps at least one flow open,
    /// and no more than have been found to increase the throughput.
    Throughput(u64),
    /// A fixed number of users. Each starts a flow, thinks after its end, and starts the next one.
    /// After a failure a user thinks at least as long as a place of [`Load::Hold`] stays empty.
    Users {
        /// Number of users.
        users: u64,
        /// Time between the end of a flow and the start of the next one.
        think: Think,
    },
}

/// Think time of a user: from the end of a flow to the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Uniform distribution.
    Uniform {
        /// Minimum.
        min: Duration,
        /// Maximum.
        max: Duration,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// Normal distribution; negative values become 0.
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
}
