//! Which flows were seen, and when last: in capture time.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;

/// What the table knows of a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The first packet of this flow.
    First,
    /// The first since the flow was idle for longer than the expiry.
    FirstSinceExpiry,
    /// One more packet.
    Again,
    /// Not in the table, which is full: cannot be told.
    Unknown,
}

/// A bounded table of flows.
#[derive(Debug)]
pub struct FlowTable {
    flows: HashTable<(FlowKey, Instant)>,
    /// Idle time after which the same key is another flow; `None`: never.
    expiry: Option<Duration>,
    flows_max: usize,
    overflowed: u64,
}

/// Any constant will do: the keys come from a file, and the bound on the table also bounds what
/// a file made to collide can cost.
const SEED: u64 = 0x5773_746f_726d;

impl FlowTable {
    /// An empty table for `flows_max` flows at most.
    pub fn new(expiry: Option<Duration>, flows_max: usize) -> Self {
        Self { flows: HashTable::new(), expiry, flows_max, overflowed: 0 }
    }

    /// Notes a packet of flow `key` captured at `timestamp`.
    #[inline]
    pub fn note(&mut self, key: &FlowKey, timestamp: Instant) -> Seen {
        let hash = key.hash64(SEED);
        let is_full = self.flows.len() >= self.flows_max;
        if is_full && self.flows.find(hash, |flow| flow.0 == *key).is_none() {
            self.overflowed += 1;
            return Seen::Unknown;
        }
        match self.flows.entry(hash, |flow| flow.0 == *key, |flow| flow.0.hash64(SEED)) {
            Entry::Vacant(vacant) => {
                vacant.insert((*key, timestamp));
                Seen::First
            }
            Entry::Occupied(mut flow) => {
                let idle = timestamp.saturating_since(flow.get().1);
                let expired = self.expiry.is_some_and(|expiry| idle > expiry);
                flow.get_mut().1 = flow.get().1.max(timestamp);
                if expired { Seen::FirstSinceExpiry } else { Seen::Again }
            }
        }
    }

    /// Forgets all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
    }

    /// Flows in the table.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether no flow was seen.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Packets whose flow could not be told because the table was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }
}
