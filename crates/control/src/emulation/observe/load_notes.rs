//! Notes about loads that missed their target.

use wirestorm_stack::endpoint::{Endpoint, ThroughputOutcome};

use super::owner::TemplateOwner;

/// Deviation from the target, in percent, up to which there is no note.
const TOLERANCE_PERCENT: u64 = 5;

/// Describes the deviation of received bytes from the target. Returns `None` if it is at most
/// [`TOLERANCE_PERCENT`].
fn deviation(
    ThroughputOutcome { target_bytes, received_bytes }: ThroughputOutcome,
) -> Option<String> {
    let apart = target_bytes.abs_diff(received_bytes);
    if u128::from(apart) * 100 <= u128::from(target_bytes) * u128::from(TOLERANCE_PERCENT) {
        return None;
    }
    let (how, why) = match received_bytes > target_bytes {
        true => (
            "more",
            "each connection receives too much for the duration: shrink it, or extend the run",
        ),
        false => (
            "less",
            "the load does not make up for a slow start: a longer run reduces the difference",
        ),
    };
    let percent = apart as f64 * 100.0 / target_bytes.max(1) as f64;
    Some(format!(
        "received {received_bytes} bytes, {percent:.0} % {how} than the {target_bytes} of its \
         load's `throughput`; {why}"
    ))
}

/// Returns notes about the loads of an endpoint. `owners` has the owner of each template.
pub(in crate::emulation) fn load_notes(
    owners: &[TemplateOwner],
    endpoint: &Endpoint,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (template, owner) in owners.iter().enumerate() {
        let name = &owner.name;
        if let Some(flows) = endpoint.saturation_flows(template) {
            notes.push(format!(
                "template {name}: its load did not reach its `throughput`, and more than {flows} \
                 concurrent flows did not increase it"
            ));
        } else if let Some(outcome) = endpoint.throughput(template) {
            notes.extend(deviation(outcome).map(|how| format!("template {name}: {how}")));
        }
        let Some(tally) = endpoint.tally(template) else { continue };
        let (late, offered) = (tally.flows.late, tally.flows.offered);
        if late > 0 {
            notes.push(format!(
                "template {name}: {late} of {offered} flows of its load did not start in time: \
                 lower the rate"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_above_five_percent_is_reported() {
        let note = |target_bytes, received_bytes| {
            deviation(ThroughputOutcome { target_bytes, received_bytes }).unwrap_or_default()
        };
        for received in [950, 1_000, 1_050] {
            assert_eq!(note(1_000, received), "");
        }
        let more = "received 1600 bytes, 60 % more than the 1000 of its load's `throughput`";
        assert!(note(1_000, 1_600).starts_with(more), "{}", note(1_000, 1_600));
        let less = "received 940 bytes, 6 % less than the 1000 of its load's `throughput`";
        assert!(note(1_000, 940).starts_with(less), "{}", note(1_000, 940));
        assert_eq!(note(0, 0), "");
        assert_ne!(note(u64::MAX, 0), "");
    }
}
