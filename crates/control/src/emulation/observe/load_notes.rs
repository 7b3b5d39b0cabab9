//! What became of loads that could not have what they ask for.

use wirestorm_stack::endpoint::{Endpoint, ThroughputOutcome};

use super::owner::Owner;

/// Of what was asked for, by so much less or more may be received unsaid.
const TOLERANCE_PERCENT: u64 = 5;

/// How what was received is not what was asked for, if it is not.
fn beside(ThroughputOutcome { asked_bytes, received_bytes }: ThroughputOutcome) -> Option<String> {
    let apart = asked_bytes.abs_diff(received_bytes);
    if u128::from(apart) * 100 <= u128::from(asked_bytes) * u128::from(TOLERANCE_PERCENT) {
        return None;
    }
    let (how, why) = match received_bytes > asked_bytes {
        true => (
            "more",
            "each connection receives too much for so little time: make them shorter, or the run longer",
        ),
        false => (
            "less",
            "what the first ones do not bring is not made up for: a longer run has less of that",
        ),
    };
    let percent = apart as f64 * 100.0 / asked_bytes.max(1) as f64;
    Some(format!(
        "{received_bytes} bytes were received, {percent:.0} % {how} than the {asked_bytes} that its \
         load's `throughput` asks for; {why}"
    ))
}

/// What one should know of the loads of an endpoint whose templates are these owners'.
pub(in crate::emulation) fn load_notes(owners: &[Owner], endpoint: &Endpoint) -> Vec<String> {
    let mut notes = Vec::new();
    for (template, owner) in owners.iter().enumerate() {
        let name = &owner.name;
        if let Some(flows) = endpoint.in_vain(template) {
            notes.push(format!(
                "template {name}: less was received than its load's `throughput` asks for, and \
                 more than {flows} at once brought no more"
            ));
        } else if let Some(outcome) = endpoint.throughput(template) {
            notes.extend(beside(outcome).map(|how| format!("template {name}: {how}")));
        }
        let Some(tally) = endpoint.tally(template) else { continue };
        let (late, offered) = (tally.flows.late, tally.flows.offered);
        if late > 0 {
            notes.push(format!(
                "template {name}: {late} of {offered} that its load asked for were not made, as \
                 there was no time for them: ask for fewer a second"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_met_by_more_than_a_twentieth_is_told() {
        let told = |asked_bytes, received_bytes| {
            beside(ThroughputOutcome { asked_bytes, received_bytes }).unwrap_or_default()
        };
        for received in [950, 1_000, 1_050] {
            assert_eq!(told(1_000, received), "");
        }
        let more = "1600 bytes were received, 60 % more than the 1000 that its load's `throughput`";
        assert!(told(1_000, 1_600).starts_with(more), "{}", told(1_000, 1_600));
        let less = "940 bytes were received, 6 % less than the 1000 that its load's `throughput`";
        assert!(told(1_000, 940).starts_with(less), "{}", told(1_000, 940));
        assert_eq!(told(0, 0), "");
        assert_ne!(told(u64::MAX, 0), "");
    }
}
