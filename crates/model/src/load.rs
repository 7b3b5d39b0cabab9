//! Loads: start times of the flows of a template.

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;

/// Start times of the flows of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A program or a caller starts each flow.
    OnDemand,
    /// Starts flows at equal intervals, independent of their progress (an open loop). Flow k is due
    /// exactly k intervals after the start, so late flows start back to back. A flow that is late
    /// by more than a second is dropped and counted.
    Rate {
        /// Flows per second.
        rate: Rate,
        /// Maximum number of open flows, without those in TIME-WAIT; `None`: the size of the flow
        /// table. Flows that are due above it are skipped and counted.
        concurrent_max: Option<u64>,
    },
    /// Starts flows at exponentially distributed intervals, as independent users do (an open
    /// loop).
    Poisson {
        /// Flows per second on average.
        rate: Rate,
        /// Maximum number of open flows, as for [`Load::Rate`].
        concurrent_max: Option<u64>,
    },
    /// Keeps this many flows open (a closed loop); flows in TIME-WAIT do not count. A failed flow
    /// is replaced after 100 ms. The delay doubles with each further failure, up to 1 s.
    Concurrent(u64),
    /// Adjusts the rate of flows so that they receive this many bits of data per second. If a flow
    /// takes longer than a second, adjusts the number of open flows instead. Keeps at least one
    /// flow open, and adds flows only while they increase the throughput.
    Throughput(u64),
    /// A fixed number of users. Each starts a flow, thinks after its end, and starts the next one.
    /// After a failure a user thinks at least as long as [`Load::Concurrent`] waits.
    Users {
        /// Number of users.
        users: u64,
        /// Time between the end of a flow and the start of the next one.
        think_time: ThinkTime,
    },
}

/// Think time of a user: from the end of a flow to the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkTime {
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
        stddev: Duration,
    },
}
