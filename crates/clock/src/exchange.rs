//! Two-way exchanges: the time stamps of a request and of its reply.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// Time stamps of one request and its reply, unchanged as two clocks read them.
///
/// ```text
/// near  t1 ──request──┐            ┌──> t4
/// far                 └──> t2   t3 ─┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Departure of the request, by the near clock.
    pub t1: Timestamp,
    /// Arrival of the request, by the far clock.
    pub t2: Timestamp,
    /// Departure of the reply, by the far clock.
    pub t3: Timestamp,
    /// Arrival of the reply, by the near clock.
    pub t4: Timestamp,
}

impl Exchange {
    /// Returns the delay of the request plus the offset of the far clock, in ns.
    pub fn forward(&self) -> i64 {
        self.t2 - self.t1
    }

    /// Returns the delay of the reply minus the offset of the far clock, in ns.
    pub fn backward(&self) -> i64 {
        self.t4 - self.t3
    }

    /// Returns the time both packets were on the path, in ns. The offset of the clocks cancels out.
    pub fn round_trip(&self) -> i64 {
        self.forward().saturating_add(self.backward())
    }

    /// Returns the same exchange as the far end would have measured it, in the other direction.
    pub const fn reversed(&self) -> Self {
        Self { t1: self.t3, t2: self.t4, t3: self.t1, t4: self.t2 }
    }
}
