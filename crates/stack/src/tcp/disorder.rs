//! What a connection remembers only where segments were lost or came in another order.

use super::connection::{Connection, Marks};
use super::rack::Rack;
use super::ranges::Ranges;
use super::sequence::SequenceNumber;

/// What an undisturbed connection does not need, so that it takes no room there: it is made when
/// first needed, and given back once all is in order again.
#[derive(Clone, Debug, Default)]
pub(super) struct Disorder {
    /// What arrived beyond holes.
    pub(super) arrived: Ranges,
    /// What the peer says arrived beyond holes (RFC 6675's scoreboard).
    pub(super) sacked: Ranges,
    /// Behind the highest number sent when a loss was found (RFC 6582's `recover`), as long as not
    /// all before it is acknowledged.
    pub(super) recover: Option<SequenceNumber>,
    /// Behind what was sent again in this recovery (RFC 6675's `HighRxt`).
    pub(super) resent_to: Option<SequenceNumber>,
    /// The number of the peer's FIN, where it arrived beyond a hole.
    pub(super) fin: Option<SequenceNumber>,
    pub(super) duplicate_acks: u16,
    /// When what was sent.
    pub(super) rack: Rack,
}

/// No ranges, for those who have none.
static NOTHING: Ranges = Ranges::new();

impl Connection {
    pub(super) fn disorder_mut(&mut self) -> &mut Disorder {
        self.disorder.get_or_insert_default()
    }

    /// What arrived beyond holes.
    #[inline]
    pub(super) fn arrived(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.arrived)
    }

    /// What the peer says arrived beyond holes.
    #[inline]
    pub(super) fn sacked(&self) -> &Ranges {
        self.disorder.as_ref().map_or(&NOTHING, |it| &it.sacked)
    }

    #[inline]
    pub(super) fn duplicate_acks(&self) -> u16 {
        self.disorder.as_ref().map_or(0, |it| it.duplicate_acks)
    }

    /// Whether what was sent when the window was last reduced is not all acknowledged.
    #[inline]
    pub(super) fn is_recovering(&self) -> bool {
        let recover = self.disorder.as_ref().and_then(|it| it.recover);
        recover.is_some_and(|recover| self.unacknowledged.is_before(recover))
    }

    /// Gives the memory back where all is in order.
    #[cold]
    pub(super) fn settle(&mut self) {
        let is_settled = self.unacknowledged == self.highest && !self.marks.has(Marks::RECOVERY);
        if is_settled && self.disorder.as_ref().is_some_and(|it| it.is_over()) {
            self.disorder = None;
        }
    }
}

impl Disorder {
    /// Whether nothing of it is needed any more, where all that was sent is acknowledged.
    fn is_over(&self) -> bool {
        self.arrived.is_empty() && self.fin.is_none() && self.rack.is_over()
    }
}
