//! Sums of the templates of each group.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{PortReport, TemplateReport};

/// The clients or the servers of all templates of a group, told as those of one template are.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupReport {
    /// How many templates are in it.
    pub templates: u64,
    /// Their sum, whose name is the group's.
    #[serde(flatten)]
    pub sum: TemplateReport,
}

impl GroupReport {
    /// The groups of some ports, in the order in which their templates name them.
    pub(super) fn of(ports: &[PortReport]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut places = BTreeMap::new();
        for template in ports.iter().flat_map(|port| &port.templates) {
            let Some(name) = &template.group else { continue };
            let place = *places.entry((name.as_str(), template.side)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => {
                    group.templates += 1;
                    group.sum.add(template);
                }
                None => groups.push(Self {
                    templates: 1,
                    sum: TemplateReport { name: name.clone(), ..template.clone() },
                }),
            }
        }
        groups
    }
}
