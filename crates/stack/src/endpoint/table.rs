//! Flows by their keys, with what calls them: a timer each, and a queue of those that have
//! something to do.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wirestorm_base::wheel::Wheel;
use wirestorm_wire::flow::FlowKey;

use super::index::Index;

/// What has a key.
pub(super) trait Keyed {
    /// From the peer to us.
    fn key(&self) -> &FlowKey;
}

/// Flows that take more memory than most caches have.
const MANY: usize = 64 << 10;

/// The flows of one transport.
#[derive(Debug)]
pub(super) struct Flows<F> {
    /// By place.
    slots: Vec<Option<F>>,
    free: Vec<u32>,
    index: Index,
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
            index: Index::default(),
            last: 0,
            wheel: Wheel::new(millis),
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

    /// A flow, and the queue that it may have to be put into.
    #[inline]
    pub(super) fn get_with_queue(&mut self, place: u32) -> Option<(&mut F, &mut VecDeque<u32>)> {
        Some((self.slots[place as usize].as_mut()?, &mut self.pending))
    }

    /// Behind the last place that may have a flow.
    pub(super) fn places(&self) -> u32 {
        self.slots.len() as u32
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

    /// Whether they are more than caches hold.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.slots.len() >= MANY
    }

    /// Asks for the memory by which a flow with a key is found, or missed.
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

    /// Adds a flow, whose key no other has, and returns its place.
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

    /// In the order of places, in which memory comes by itself: in that of hashes, a million flows
    /// are waited for a million times.
    #[cold]
    fn grow_index(&mut self) {
        let flows = (0..).zip(&self.slots);
        let flows = flows.filter_map(|(place, it)| Some((it.as_ref()?.key().hash64(0), place)));
        self.index = self.index.grown(flows);
    }

    /// Forgets a flow, and its timer.
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
