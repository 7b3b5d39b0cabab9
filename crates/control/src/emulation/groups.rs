//! Sums of the templates of each group.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::found::TransactionReport;
use super::report::{PortReport, TemplateReport, TimesReport};

/// The clients or the servers of all templates of a group.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupReport {
    /// Its name in the plan.
    pub name: String,
    /// `client` or `server`.
    pub side: &'static str,
    /// How many templates are in it.
    pub templates: u64,
    /// What became of their flows, by the names that templates have for it, but for the most at
    /// once, of which there is no sum.
    pub flows: BTreeMap<&'static str, u64>,
    /// What TCP counted.
    pub tcp: BTreeMap<&'static str, u64>,
    /// What UDP counted.
    pub udp: BTreeMap<&'static str, u64>,
    /// What their programs counted.
    pub counters: BTreeMap<&'static str, u64>,
    /// How long their connections took.
    pub times: TimesReport,
    /// Transactions that their programs time, those of one name together.
    pub transactions: Vec<TransactionReport>,
}

/// A template's counter that is no sum.
const NO_SUM: &str = "active_max";

impl GroupReport {
    /// The groups of some ports, in the order in which their templates name them.
    pub(super) fn of(ports: &[PortReport]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut places = BTreeMap::new();
        for template in ports.iter().flat_map(|port| &port.templates) {
            let Some(name) = &template.group else { continue };
            let place = *places.entry((name.as_str(), template.side)).or_insert(groups.len());
            if place == groups.len() {
                let (name, side) = (name.clone(), template.side);
                groups.push(Self { name, side, ..Self::default() });
            }
            groups[place].add(template);
        }
        groups
    }

    fn add(&mut self, template: &TemplateReport) {
        self.templates += 1;
        add(&mut self.flows, &template.flows);
        self.flows.remove(NO_SUM);
        add(&mut self.tcp, &template.tcp);
        add(&mut self.udp, &template.udp);
        add(&mut self.counters, &template.counters);
        self.times.add(&template.times);
        for transaction in &template.transactions {
            match self.transactions.iter_mut().find(|it| it.name == transaction.name) {
                Some(sum) => sum.add(transaction),
                None => self.transactions.push(transaction.clone()),
            }
        }
    }
}

fn add(sums: &mut BTreeMap<&'static str, u64>, counted: &BTreeMap<&'static str, u64>) {
    for (&name, count) in counted {
        *sums.entry(name).or_default() += count;
    }
}
