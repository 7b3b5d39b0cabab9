//! Table of flows by key, with a timer for each and a queue of flows to serve.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_base::timer_wheel::TimerWheel;
use wirestorm_wire::flow::FlowKey;

use super::index::Index;

/// Entry with a flow key.
pub(super) trait Keyed {
    /// Key of packets from the peer to us.
    fn key(&self) -> &FlowKey;
}

/// Number of flows that exceeds most caches.
const MANY: usize = 64 << 10;

/// Flows of one transport.
#[derive(Debug)]
pub(super) struct Flows<F> {
    /// Flows by slot.
    slots: Vec<Option<F>>,
    free: Vec<u32>,
    index: Index,
    /// Slot of the last flow found.
    last: u32,
    /// Timer of each slot, in ticks of 1 ms.
    pub(super) wheel: TimerWheel,
    /// Slots of flows that have changed or wait for a free frame.
    pub(super) pending: VecDeque<u32>,
}

impl<F: Keyed> Flows<F> {
    /// Creates an empty table; the timer wheel starts at a time in ms.
    pub(super) fn new(millis: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: Index::default(),
            last: 0,
            wheel: TimerWheel::new(millis),
            pending: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut F> {
        self.slots[place as usize].as_mut()
    }

    /// Returns a flow and the queue of flows to serve.
    #[inline]
    pub(super) fn get_with_queue(&mut self, place: u32) -> Option<(&mut F, &mut VecDeque<u32>)> {
        Some((self.slots[place as usize].as_mut()?, &mut self.pending))
    }

    /// Returns the number of slots.
    pub(super) fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns all flows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &F> {
        self.slots.iter().flatten()
    }

    /// Returns the flow in a slot.
    pub(super) fn get(&self, place: u32) -> Option<&F> {
        self.slots[place as usize].as_ref()
    }

    /// Returns the flow with a key.
    pub(super) fn peek(&self, key: &FlowKey) -> Option<&F> {
        self.get(self.look_up(key)?)
    }

    /// Whether there is a flow with a key.
    pub(super) fn contains(&self, key: &FlowKey) -> bool {
        self.look_up(key).is_some()
    }

    /// Returns the slot of the flow with a key.
    #[inline(always)]
    pub(super) fn find(&mut self, key: &FlowKey) -> Option<u32> {
        // Packets of one flow often arrive in a row.
        if self.key(self.last) == Some(key) {
            return Some(self.last);
        }
        let found = self.look_up(key);
        self.last = found.unwrap_or(self.last);
        found
    }

    /// Whether the flows exceed most caches.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.slots.len() >= MANY
    }

    /// Prefetches the memory of a lookup by key.
    #[inline]
    pub(super) fn prefetch(&self, key: &FlowKey) {
        self.index.prefetch(key.hash64(0));
    }

    #[inline(always)]
    fn look_up(&self, key: &FlowKey) -> Option<u32> {
        self.index.find(key.hash64(0), |place| self.key(place) == Some(key))
    }

    #[inline]
    fn key(&self, place: u32) -> Option<&FlowKey> {
        self.slots.get(place as usize)?.as_ref().map(Keyed::key)
    }

    /// Adds a flow with a new key, and returns its slot.
    #[inline]
    pub(super) fn insert(&mut self, flow: F) -> u32 {
        if !self.index.has_room() {
            self.grow_index();
        }
        let hash = flow.key().hash64(0);
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = Some(flow);
                place
            }
            None => {
                self.slots.push(Some(flow));
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(hash, place);
        place
    }

    /// Doubles the index. It reads flows in slot order, which the processor prefetches. In hash
    /// order, a million flows would mean a million cache misses.
    #[cold]
    fn grow_index(&mut self) {
        let flows = (0..).zip(&self.slots);
        let flows = flows.filter_map(|(place, it)| Some((it.as_ref()?.key().hash64(0), place)));
        self.index = self.index.grown(flows);
    }

    /// Removes a flow and its timer.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        let Some(flow) = slot else { return };
        self.index.remove(flow.key().hash64(0), place);
        *slot = None;
        self.wheel.cancel(place);
        self.free.push(place);
    }
}
