//! Table of known flows, with the capture time of their last packet.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;

/// State of a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// First packet of the flow.
    First,
    /// First packet after the flow was idle longer than the expiry.
    FirstAfterExpiry,
    /// Further packet.
    Again,
    /// The table is full, and the flow is not in it.
    Unknown,
}

/// Bounded table of flows.
#[derive(Debug)]
pub struct FlowTable {
    flows: HashTable<(FlowKey, Instant)>,
    /// Idle time after which the same key is a new flow; `None` for never.
    expiry: Option<Duration>,
    flows_max: usize,
    overflowed: u64,
}

/// A constant seed is sufficient: keys come from a file, and the bound on the table also limits the
/// cost of collisions.
const SEED: u64 = 0x5773_746f_726d;

impl FlowTable {
    /// Creates an empty table for at most `flows_max` flows.
    pub fn new(expiry: Option<Duration>, flows_max: usize) -> Self {
        Self { flows: HashTable::new(), expiry, flows_max, overflowed: 0 }
    }

    /// Records a packet of flow `key` captured at `timestamp`.
    #[inline]
    pub fn note(&mut self, key: &FlowKey, timestamp: Instant) -> FlowState {
        let hash = key.hash64(SEED);
        let is_full = self.flows.len() >= self.flows_max;
        if is_full && self.flows.find(hash, |flow| flow.0 == *key).is_none() {
            self.overflowed += 1;
            return FlowState::Unknown;
        }
        match self.flows.entry(hash, |flow| flow.0 == *key, |flow| flow.0.hash64(SEED)) {
            Entry::Vacant(vacant) => {
                vacant.insert((*key, timestamp));
                FlowState::First
            }
            Entry::Occupied(mut flow) => {
                let idle = timestamp.saturating_since(flow.get().1);
                let expired = self.expiry.is_some_and(|expiry| idle > expiry);
                flow.get_mut().1 = flow.get().1.max(timestamp);
                if expired { FlowState::FirstAfterExpiry } else { FlowState::Again }
            }
        }
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the number of packets of flows that did not fit into the table.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }
}
