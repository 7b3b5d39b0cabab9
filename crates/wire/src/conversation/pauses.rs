//! Whose a pause within what one side says is: that of who says it, or the network's.
//!
//! A sender that has more to say sends full segments, and stops only until one of them is
//! acknowledged. So a pause is the network's where it is behind a full segment, and over as soon as
//! an acknowledgement can have had its effect. Every other one is of who speaks: behind a short
//! segment there was nothing more to say, nor had one something to say that heard of an
//! acknowledgement and said nothing.

use wirestorm_base::time::{Duration, Instant};

/// What one side of a connection sends, seen from where the capture was made.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// When the last of it passed.
    last: Option<Instant>,
    /// Whether that was a full segment.
    was_full: bool,
    /// When the first acknowledgement of something new passed since then.
    acknowledged: Option<Instant>,
    /// Whether all of it is acknowledged.
    is_answered: bool,
    /// The shortest time from what passes to where the other side's acknowledgement of it does.
    echo: Option<Duration>,
}

impl Pauses {
    /// SYN passes, or a segment with data that was not there before; with data of no more than
    /// `full` bytes.
    pub(super) fn send(&mut self, now: Instant, length: usize, full: u16) {
        /// What options may take of a segment.
        const OPTIONS: usize = 40;
        self.last = Some(now);
        self.was_full = length + OPTIONS >= usize::from(full);
        self.acknowledged = None;
        self.is_answered = false;
    }

    /// An acknowledgement of the other side passes; `is_new`: for the first time, `is_all`: of all
    /// that passed here.
    pub(super) fn acknowledge(&mut self, now: Instant, is_new: bool, is_all: bool) {
        if is_new {
            self.acknowledged.get_or_insert(now);
        }
        if let (Some(last), true, false) = (self.last, is_all, self.is_answered) {
            let echo = now.saturating_since(last);
            self.echo = Some(self.echo.map_or(echo, |known| known.min(echo)));
            self.is_answered = true;
        }
    }

    /// Whether it was for the network that nothing passed until now. `other` is what the other side
    /// sends.
    pub(super) fn are_of_network(&self, now: Instant, other: &Self) -> bool {
        /// What times that were measured once differ by.
        const SLACK: Duration = Duration::from_millis(1);
        let Some(last) = self.last.filter(|_| self.was_full) else { return false };
        let there = self.echo.unwrap_or(Duration::ZERO);
        let back = other.echo.unwrap_or(Duration::ZERO);
        // Full segments of which none is acknowledged yet come as fast as the path lets them.
        let heard = self.acknowledged.unwrap_or_else(|| last.saturating_add(there));
        let slack = Duration::from_nanos(back.as_nanos() / 4).saturating_add(SLACK);
        now <= heard.saturating_add(back).saturating_add(slack)
    }
}
