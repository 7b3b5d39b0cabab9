//! Order of fields: each `after` becomes the variable that advances another one.

use wirestorm_model::stream::Advance;

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Accepted value of `after`, for error messages.
const EXPECTED: &str = "a field that varies, such as ipv4.src, or packet[2].src";

/// Returns how each variable advances. `afters` has the `after` field of each variable; `find`
/// returns the index of the variable that it names.
pub(super) fn resolve_advances(
    afters: &[Option<ValueAt<'_>>],
    find: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<Advance>, PlanError> {
    let mut advances = Vec::with_capacity(afters.len());
    for after in afters {
        advances.push(match after {
            None => Advance::EveryFrame,
            Some(place) => {
                let other =
                    find(place.text(EXPECTED)?).ok_or_else(|| place.unexpected(EXPECTED))?;
                Advance::WhenWraps(other)
            }
        });
    }
    for (start, after) in afters.iter().enumerate() {
        let mut at = start;
        // A chain longer than the number of variables is a cycle.
        for _ in 0..afters.len() {
            match advances[at] {
                Advance::EveryFrame => break,
                Advance::WhenWraps(other) => at = other,
            }
        }
        if let (Some(place), Advance::WhenWraps(_)) = (after, advances[at]) {
            return Err(place.message_error("fields that wait for each other never advance"));
        }
    }
    Ok(advances)
}
