//! Sums of the templates of each group.

use std::collections::BTreeMap;

use crate::result::{GroupReport, PortReport, TemplateReport};

/// Returns the sum of each group and side, ordered by their first template.
pub(in crate::emulation) fn groups(ports: &[PortReport]) -> Vec<GroupReport> {
    let mut groups: Vec<GroupReport> = Vec::new();
    let mut places = BTreeMap::new();
    for template in ports.iter().flat_map(|port| &port.templates) {
        let Some(name) = &template.group else { continue };
        let place = *places.entry((name.as_str(), &template.side)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => {
                group.templates += 1;
                group.sum.add(template);
            }
            None => groups.push(GroupReport {
                templates: 1,
                sum: TemplateReport { name: name.clone(), ..template.clone() },
            }),
        }
    }
    groups
}
