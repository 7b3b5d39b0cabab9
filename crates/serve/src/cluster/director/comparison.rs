//! Offsets of the clocks of two agents, by each method, and the choice between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use wirestorm_control::plan::test_plan::ClockSource;
use wirestorm_control::result::{AsymmetryReport, ClockAlternative};
use wirestorm_control::sync::estimate::{Estimate, Timeline};
use wirestorm_control::sync::exchange::Exchange;
use wirestorm_control::sync::timestamp::Timestamp;
use wirestorm_control::sync::{Assumption, Comparison, STAMP_ERROR_NS, references};

use super::collected::{Collected, PtpExchanges};

/// How the clocks of a test are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockFacts {
    /// Whether all nodes have one clock.
    pub(super) one_clock: bool,
    /// Known asymmetry of the paths in ns, from the sender to the receiver minus the opposite.
    pub(super) asymmetry_ns: i64,
    /// Constant delay of the testers in ns.
    pub(super) bias_ns: f64,
    /// What may be used.
    pub(super) source: ClockSource,
}

/// Receiver and sender.
type Pair = (String, String);

/// Comparisons of the clocks of all agents. Each pair is computed once.
#[derive(Debug)]
pub(super) struct Comparisons<'c> {
    collected: &'c Collected,
    clocks: ClockFacts,
    known: RefCell<BTreeMap<Pair, Option<Rc<Compared>>>>,
}

/// Comparison of the clocks of a receiver (near) and a sender (far).
#[derive(Debug)]
pub(super) struct Compared {
    /// The one with the smallest bound.
    pub(super) chosen: Comparison,
    /// The other ones.
    pub(super) alternatives: Vec<ClockAlternative>,
    /// Asymmetry of the path of the exchanges, which independent references show.
    pub(super) asymmetry: Option<AsymmetryReport>,
    /// The true one, if both agents are on one machine and have virtual clocks.
    pub(super) truth: Option<Comparison>,
}

/// Offsets by one method.
#[derive(Debug)]
struct Candidate {
    timeline: Timeline,
    method: String,
    assumption: Assumption,
    /// Asymmetry that the offsets do not have in them yet, in ns.
    asymmetry_ns: f64,
}

impl Candidate {
    /// Returns the largest error without an assumption, in ns.
    fn bound_ns(&self) -> f64 {
        self.timeline.knots.iter().map(Estimate::bound_ns).fold(0.0, f64::max)
    }

    fn half_width_ns(&self) -> f64 {
        self.timeline.knots.iter().map(|knot| knot.half_width_ns).fold(0.0, f64::max)
    }

    /// Returns the first and the last time with an offset.
    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.timeline.knots.first()?.at, self.timeline.knots.last()?.at))
    }

    /// Returns how far the offsets of another method are from these, in ns, in the middle of the time
    /// that both know.
    fn difference_ns(&self, other: &Self) -> Option<f64> {
        let (own, others) = (self.span()?, other.span()?);
        let (from, to) = (own.0.max(others.0), own.1.min(others.1));
        let middle = from + (to - from) / 2;
        let offset = |it: &Self| Some(it.timeline.at(middle)?.offset_ns + it.asymmetry_ns / 2.0);
        Some(offset(other)? - offset(self)?)
    }
}

impl<'c> Comparisons<'c> {
    pub(super) fn new(collected: &'c Collected, clocks: ClockFacts) -> Self {
        Self { collected, clocks, known: RefCell::default() }
    }

    /// Compares the clocks of a receiver and a sender; `None` if nothing is known.
    pub(super) fn of(&self, receiver: &str, sender: &str) -> Option<Rc<Compared>> {
        let key = (receiver.to_owned(), sender.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let compared = self.compare(receiver, sender).map(Rc::new);
        self.known.borrow_mut().insert(key, compared.clone());
        compared
    }

    /// Returns the offset of the clock of `far` against that of `near` at a time of `near`, in ns.
    pub(super) fn offset(&self, near: &str, far: &str, at_ns: i64) -> Option<f64> {
        let compared = self.of(near, far)?;
        Some(compared.chosen.timeline.at(Timestamp::from_nanos(at_ns))?.offset_ns)
    }

    fn compare(&self, receiver: &str, sender: &str) -> Option<Compared> {
        let collected = self.collected;
        let node_offsets = [collected.node_offset(sender)?, collected.node_offset(receiver)?];
        let comparison = |candidate: Candidate| Comparison {
            timeline: candidate.timeline,
            node_offsets,
            asymmetry_ns: candidate.asymmetry_ns,
            bias_ns: self.clocks.bias_ns,
            method: candidate.method,
            assumption: candidate.assumption,
        };
        if self.clocks.one_clock {
            let chosen = comparison(Candidate {
                timeline: Timeline::constant(0.0, 0.0),
                method: "the nodes have one clock".to_owned(),
                assumption: Assumption::OneClock,
                asymmetry_ns: 0.0,
            });
            let alternatives = Vec::new();
            return Some(Compared { chosen, alternatives, asymmetry: None, truth: None });
        }
        let may_use = |source| [ClockSource::Auto, source].contains(&self.clocks.source);
        let by_exchanges =
            may_use(ClockSource::Stamp).then(|| self.by_exchanges(receiver, sender)).flatten();
        let by_references =
            may_use(ClockSource::Reference).then(|| self.by_references(receiver, sender)).flatten();
        let by_ptp = may_use(ClockSource::Ptp).then(|| self.by_ptp(receiver, sender)).flatten();
        let asymmetry = by_references.as_ref().zip(by_exchanges.as_ref());
        let asymmetry = asymmetry.and_then(|(references, exchanges)| {
            Some(AsymmetryReport {
                // Half of what is not known yet is in the offset of the exchanges.
                value_ns: exchanges.asymmetry_ns - 2.0 * references.difference_ns(exchanges)?,
                half_width_ns: 2.0 * (references.half_width_ns() + exchanges.half_width_ns()),
            })
        });
        let mut candidates: Vec<Candidate> =
            by_references.into_iter().chain(by_exchanges).chain(by_ptp).collect();
        candidates.sort_by(|one, other| one.bound_ns().total_cmp(&other.bound_ns()));
        let mut candidates = candidates.into_iter();
        let chosen = candidates.next()?;
        let alternatives = candidates.map(|other| ClockAlternative {
            method: other.method.clone(),
            assumption: other.assumption.text().into(),
            half_width_ns: other.half_width_ns(),
            bound_ns: other.bound_ns(),
            difference_ns: chosen.difference_ns(&other).unwrap_or(0.0),
        });
        let alternatives = alternatives.collect();
        let truth = collected.truth(receiver).zip(collected.truth(sender));
        let truth = truth.filter(|(near, far)| near.source == far.source).map(|(near, far)| {
            comparison(Candidate {
                timeline: references::compare(&near.readings, &far.readings),
                method: "virtual clocks".to_owned(),
                assumption: Assumption::OneClock,
                asymmetry_ns: 0.0,
            })
        });
        Some(Compared { chosen: comparison(chosen), alternatives, asymmetry, truth })
    }

    /// Compares by exchanges of one of both agents with the other, on the path with the shortest round
    /// trip.
    fn by_exchanges(&self, near: &str, far: &str) -> Option<Candidate> {
        let (mut timeline, address) = match self.collected.best_path(near, far) {
            Some((address, exchanges)) => (Timeline::new(exchanges), address),
            None => {
                let (address, exchanges) = self.collected.best_path(far, near)?;
                let reversed: Vec<Exchange> = exchanges.iter().map(Exchange::reversed).collect();
                (Timeline::new(&reversed), address)
            }
        };
        add_stamp_error(&mut timeline);
        (!timeline.knots.is_empty()).then(|| Candidate {
            timeline,
            method: format!("STAMP to {address}"),
            assumption: Assumption::SymmetricPath,
            asymmetry_ns: self.clocks.asymmetry_ns as f64,
        })
    }

    /// Compares by PTP: one agent follows the other, or both follow the same clock. Of several clocks
    /// in a test, the one with the smallest bound counts.
    fn by_ptp(&self, near: &str, far: &str) -> Option<Candidate> {
        let (near, far) = (self.collected.ptp(near), self.collected.ptp(far));
        let pairs = near.iter().flat_map(|near| far.iter().map(move |far| (near, far)));
        let candidates = pairs.filter(|(near, far)| near.source == far.source);
        let candidates = candidates.filter_map(|(near, far)| {
            let timeline = ptp_timeline(near, far)?;
            (!timeline.knots.is_empty()).then(|| Candidate {
                timeline,
                method: match near.transport == far.transport {
                    true => format!("PTP over {}, {}", near.transport, near.source),
                    false => {
                        format!(
                            "PTP over {} and {}, {}",
                            far.transport, near.transport, near.source
                        )
                    }
                },
                assumption: Assumption::SymmetricPath,
                // Otherwise it is that of the path of STAMP.
                asymmetry_ns: match self.clocks.source {
                    ClockSource::Ptp => self.clocks.asymmetry_ns as f64,
                    _ => 0.0,
                },
            })
        });
        candidates.min_by(|one, other| one.bound_ns().total_cmp(&other.bound_ns()))
    }

    fn by_references(&self, near: &str, far: &str) -> Option<Candidate> {
        let (near, far) = (self.collected.references(near)?, self.collected.references(far)?);
        let timeline = references::compare(&near.readings, &far.readings);
        (!timeline.knots.is_empty()).then(|| Candidate {
            timeline,
            method: match near.source == far.source {
                true => format!("{} on both", near.source),
                false => format!("{} on the sender, {} on the receiver", far.source, near.source),
            },
            assumption: Assumption::Independent,
            asymmetry_ns: 0.0,
        })
    }
}

/// Returns the offsets of the far agent's clock against the near one's, from exchanges with the same
/// clock; `None` if both say that it is theirs.
fn ptp_timeline(near: &PtpExchanges, far: &PtpExchanges) -> Option<Timeline> {
    let follow = |exchanges: &[Exchange]| {
        let mut timeline = Timeline::new(exchanges);
        add_stamp_error(&mut timeline);
        timeline
    };
    match (near.is_master, far.is_master) {
        (false, true) => Some(follow(&near.exchanges)),
        (true, false) => {
            let reversed: Vec<Exchange> = far.exchanges.iter().map(Exchange::reversed).collect();
            Some(follow(&reversed))
        }
        (false, false) => {
            Some(Timeline::through(&follow(&near.exchanges), &follow(&far.exchanges)))
        }
        (true, true) => None,
    }
}

fn add_stamp_error(timeline: &mut Timeline) {
    for knot in &mut timeline.knots {
        knot.half_width_ns += STAMP_ERROR_NS;
    }
}
