//! Flows by their keys, with what calls them: a timer each, and a queue of those that have
//! something to do.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use hashbrown::HashTable;
use wirestorm_base::wheel::Wheel;
use wirestorm_wire::flow::FlowKey;

/// What has a key.
pub(super) trait Keyed {
    /// From the peer to us.
    fn key(&self) -> &FlowKey;
}

/// The flows of one transport.
#[derive(Debug)]
pub(super) struct Flows<F> {
    /// By place.
    slots: Vec<Option<F>>,
    free: Vec<u32>,
    index: HashTable<u32>,
    /// The flow that was heard of last.
    last: u32,
    /// A timer for each place, in ticks of 1 ms.
    pub(super) wheel: Wheel,
    /// Flows that something has happened to, or that wait for a free frame.
    pub(super) pending: VecDeque<u32>,
}

impl<F: Keyed> Flows<F> {
    /// No flows yet; the wheel is at a time in ms.
    pub(super) fn new(millis: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            last: 0,
            wheel: Wheel::new(millis),
            pending: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut F> {
        self.slots[place as usize].as_mut()
    }

    /// A flow, and the queue that it may have to be put into.
    #[inline]
    pub(super) fn get_with_queue(&mut self, place: u32) -> Option<(&mut F, &mut VecDeque<u32>)> {
        Some((self.slots[place as usize].as_mut()?, &mut self.pending))
    }

    /// All flows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &F> {
        self.slots.iter().flatten()
    }

    /// The flow at a place.
    pub(super) fn get(&self, place: u32) -> Option<&F> {
        self.slots[place as usize].as_ref()
    }

    /// The flow with a key.
    pub(super) fn peek(&self, key: &FlowKey) -> Option<&F> {
        self.get(self.look_up(key)?)
    }

    /// Whether there is a flow with a key.
    pub(super) fn contains(&self, key: &FlowKey) -> bool {
        self.look_up(key).is_some()
    }

    /// The place of the flow with a key.
    #[inline(always)]
    pub(super) fn find(&mut self, key: &FlowKey) -> Option<u32> {
        // Packets of one flow often arrive one behind the other.
        if self.key(self.last) == Some(key) {
            return Some(self.last);
        }
        let found = self.look_up(key);
        self.last = found.unwrap_or(self.last);
        found
    }

    #[inline(always)]
    fn look_up(&self, key: &FlowKey) -> Option<u32> {
        self.index.find(key.hash64(0), |place| self.key(*place) == Some(key)).copied()
    }

    #[inline]
    fn key(&self, place: u32) -> Option<&FlowKey> {
        self.slots.get(place as usize)?.as_ref().map(Keyed::key)
    }

    #[inline]
    /// Adds a flow, whose key no other has, and returns its place.
    pub(super) fn insert(&mut self, flow: F) -> u32 {
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
        let slots = &self.slots;
        let rehash = |it: &u32| slots[*it as usize].as_ref().map_or(0, |it| it.key().hash64(0));
        self.index.insert_unique(hash, place, rehash);
        place
    }

    /// Forgets a flow, and its timer.
    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        let Some(flow) = slot else { return };
        if let Ok(entry) = self.index.find_entry(flow.key().hash64(0), |it| *it == place) {
            entry.remove();
        }
        *slot = None;
        self.wheel.cancel(place);
        self.free.push(place);
    }
}
