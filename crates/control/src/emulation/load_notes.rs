//! What became of loads that could not have what they ask for.

use wirestorm_stack::endpoint::Endpoint;

use super::report::Owner;

/// What one should know of the loads of an endpoint whose templates are these owners'.
pub(super) fn load_notes(owners: &[Owner], endpoint: &Endpoint) -> Vec<String> {
    let mut notes = Vec::new();
    for (template, owner) in owners.iter().enumerate() {
        let name = &owner.name;
        if let Some(flows) = endpoint.in_vain(template) {
            notes.push(format!(
                "template {name}: less was received than its load's `throughput` asks for, and \
                 more than {flows} at once brought no more"
            ));
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
