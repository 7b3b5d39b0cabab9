//! Several conversations of one template: each is a template of its own, and they share what the
//! one was asked for.

use super::{Load, Template};
use crate::document::error::PlanError;
use crate::document::place::Place;

/// Shares the load and the limit of templates that were read at one place: each conversation is as
/// frequent as the others, and all together are as many as was asked for.
pub(super) fn share(place: &Place<'_>, templates: &mut [Template]) -> Result<(), PlanError> {
    let count = templates.len() as u64;
    let part = |whole: u64, index: u64| whole / count + u64::from(index < whole % count);
    for (index, template) in (0..).zip(templates) {
        let Some(client) = &mut template.client else { continue };
        let wrong = |what: &str| {
            place.says(format!("{what} is too small for the {count} conversations that share it"))
        };
        client.load = match client.load {
            Load::Rate(rate) => {
                Load::Rate(rate.scaled(1, count).map_err(|_| wrong("client.load"))?)
            }
            Load::Poisson(rate) => {
                Load::Poisson(rate.scaled(1, count).map_err(|_| wrong("client.load"))?)
            }
            Load::Hold(flows) if flows >= count => Load::Hold(part(flows, index)),
            Load::Hold(_) => return Err(wrong("client.load.hold")),
            Load::OnDemand => Load::OnDemand,
        };
        client.limit = client.limit.map(|limit| part(limit, index));
        if client.limit == Some(0) {
            return Err(wrong("client.limit"));
        }
    }
    Ok(())
}
