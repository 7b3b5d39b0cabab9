//! Next hops of a port that turn up at other Ethernet addresses during a run.

use wirestorm_base::time::Instant;
use wirestorm_stack::endpoint::{Endpoint, LinkHeader};

use crate::emulation::resolve::reached::ReachedBy;

/// What became of a port's flows whose next hops moved.
#[derive(Debug, Default)]
pub(in crate::emulation) struct Moved {
    port: String,
    start: Instant,
    /// The first of them, in words.
    told: Vec<String>,
    /// How many more there were.
    more: u64,
}

impl Moved {
    /// Moves of a port that are told one by one, at most.
    const TOLD_MAX: usize = 10;

    pub(in crate::emulation) fn new(port: &str, start: Instant) -> Self {
        Self { port: port.to_owned(), start, told: Vec::new(), more: 0 }
    }

    /// Lets frames go where next hops and peers have moved meanwhile.
    #[inline]
    pub(in crate::emulation) fn look(
        &mut self,
        by: &ReachedBy,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        for it in by.moves.take() {
            let number = by.next_hops.get(&(it.tags.clone(), it.address)).map_or(0, |it| it.0);
            let mut flows = match number {
                0 | LinkHeader::FIXED => 0,
                number => endpoint.next_hop_moved(number, it.to),
            };
            // Where others are still there as well, nobody knows who of them it was.
            if it.was_alone {
                flows = flows.saturating_add(endpoint.peer_moved(&it.tags, it.from, it.to));
            }
            if flows == 0 && matches!(number, 0 | LinkHeader::FIXED) {
                continue;
            }
            if self.told.len() == Self::TOLD_MAX {
                self.more += 1;
                continue;
            }
            let after = now.saturating_since(self.start).as_secs_f64();
            self.told.push(format!(
                "{}: {} moved from {} to {} after {after:.1} s; frames went there from then on, of \
                 {flows} flows that were there",
                self.port, it.address, it.from, it.to
            ));
        }
    }

    /// What is to be said of it.
    pub(in crate::emulation) fn notes(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0)
            .then(|| format!("{}: next hops moved {} times more", self.port, self.more));
        self.told.iter().cloned().chain(more)
    }
}
