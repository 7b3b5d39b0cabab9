//! Fields that wait for others: which variable makes which one go on.

use wirestorm_model::stream::Advance;

use crate::document::error::PlanError;
use crate::document::place::Place;

/// What is told where a field waits for one that there is not.
const EXPECTED: &str = "a field that varies, such as ipv4.src, or packet[2].src";

/// What makes each variable go on, by where it is written for whom it waits; `find` tells a
/// variable by what was written.
pub(super) fn advances(
    afters: &[Option<Place<'_>>],
    find: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<Advance>, PlanError> {
    let mut advances = Vec::with_capacity(afters.len());
    for after in afters {
        advances.push(match after {
            None => Advance::EveryFrame,
            Some(place) => {
                let other = find(place.text(EXPECTED)?).ok_or_else(|| place.wrong(EXPECTED))?;
                Advance::WhenWraps(other)
            }
        });
    }
    for (start, after) in afters.iter().enumerate() {
        let mut at = start;
        // A way without an end is longer than there are variables.
        for _ in 0..afters.len() {
            match advances[at] {
                Advance::EveryFrame => break,
                Advance::WhenWraps(other) => at = other,
            }
        }
        if let (Some(place), Advance::WhenWraps(_)) = (after, advances[at]) {
            return Err(place.says("fields that wait for each other would never go on"));
        }
    }
    Ok(advances)
}
