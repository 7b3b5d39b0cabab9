//! Trials of a user's plan of clients and servers at a rate of connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_method::trial::{
    Length, OfferOutput, SegmentsOutput, StepOutput, TrialInput, TrialOutput,
};
use wirestorm_model::load::Load;
use wirestorm_plan::emulation::EmulationPlan;

use super::replayed::only_step;
use super::test_bed::TestBed;
use crate::emulation::{EmulationOptions, WatchOptions};
use crate::result::{FAILED_FLOWS, RunResult, TemplateReport};
use crate::run::Plan;

/// Time after the load in which connections may end. Those that are still open count as failed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Most concurrent connections on each port.
const FLOWS_MAX: usize = 16_000_000;
/// Parts of a connection per second that the sum of rates is rounded to.
const PARTS: f64 = 1e6;

/// Outcomes of connections that did not end in time.
const UNFINISHED: [&str; 2] = ["reset_at_end", "left_open"];
/// Reasons why the tester did not start a connection.
const NOT_STARTED: [&str; 5] =
    ["late", "no_free_tuple", "flow_table_full", "skipped", "clients_disabled"];

/// A plan of clients and servers. The rates of its clients keep their proportions.
#[derive(Clone, Debug)]
pub struct ClientsTraffic {
    plan: EmulationPlan,
    folder: PathBuf,
}

impl ClientsTraffic {
    /// Prepares a plan. Files in it are relative to `folder`.
    ///
    /// The ports of the plan, in their order, are the interfaces of the test bed: the sending and
    /// the receiving one of each pair. `ramp_up` and `limit` of clients do not apply.
    ///
    /// # Errors
    /// Returns the template whose load is no rate of connections.
    pub fn new(mut plan: EmulationPlan, folder: &Path) -> Result<Self, String> {
        for template in &mut plan.templates {
            let Some(client) = &mut template.client else { continue };
            if !matches!(client.load, Load::Rate { .. } | Load::Poisson { .. } | Load::OnDemand) {
                return Err(format!(
                    "{}.client.load: found a load that is no rate, expected connections a second \
                     such as {{rate: 100}}; the method sets its value",
                    template.path
                ));
            }
            client.ramp_up = Duration::ZERO;
            client.limit = None;
        }
        let traffic = Self { plan, folder: folder.to_owned() };
        if traffic.rate() <= 0.0 {
            return Err(
                "templates: found no client with a rate of connections, expected one".into()
            );
        }
        Ok(traffic)
    }

    /// Returns the connections per second of all clients, as the plan defines them.
    pub fn rate(&self) -> f64 {
        let clients = self.plan.templates.iter().filter_map(|template| template.client.as_ref());
        let rate = |load| match load {
            Load::Rate { rate, .. } | Load::Poisson { rate, .. } => rate.per_second(),
            _ => 0.0,
        };
        clients.map(|client| rate(client.load)).sum()
    }

    /// Returns the plan whose clients start `load` connections per second together.
    fn scaled(&self, load: u64) -> Result<EmulationPlan, String> {
        let mut plan = self.plan.clone();
        let parts = (self.rate() * PARTS).round().max(1.0) as u64;
        let scaled_load = load.saturating_mul(PARTS as u64);
        for template in &mut plan.templates {
            let Some(client) = &mut template.client else { continue };
            if let Load::Rate { rate, .. } | Load::Poisson { rate, .. } = &mut client.load {
                *rate = rate.scaled(scaled_load, parts).map_err(|error| {
                    format!("{}.client.load: at {load} connections/s: {error}", template.path)
                })?;
            }
        }
        Ok(plan)
    }

    /// Returns the run of a trial.
    ///
    /// # Errors
    /// Fails if the trial or the test bed does not fit the plan.
    pub(super) fn run(&self, bed: &TestBed, input: &TrialInput) -> Result<Plan, String> {
        let step = only_step(input)?;
        let Length::Time(duration) = step.length else {
            return Err("a trial of connections has a duration, not a number of them".into());
        };
        if bed.paths.is_bidirectional {
            return Err("the plan defines where clients are: remove --bidirectional".into());
        }
        let (interfaces, ports) = (bed.interfaces(), self.plan.ports.len());
        if ports != interfaces.len() {
            return Err(format!(
                "the plan has {ports} ports, but --tx and --rx name {} interfaces",
                interfaces.len()
            ));
        }
        let options = EmulationOptions {
            interfaces: interfaces.into_iter().map(|name| Some(name.to_owned())).collect(),
            folder: self.folder.clone(),
            backend: bed.backend,
            duration,
            drain_timeout: DRAIN_TIMEOUT,
            drain_timeout_flag: None,
            link_down_timeout: EmulationOptions::LINK_DOWN_TIMEOUT,
            watch: WatchOptions::default(),
            rx_coalesce: Duration::from_micros(50),
            flows_max: FLOWS_MAX,
            seed: EmulationOptions::random_seed(),
            force_interface: bed.force_interface,
            verify_checksums: false,
            is_visible: false,
        };
        Ok(Plan::Emulation { plan: Arc::new(self.scaled(step.load)?), options })
    }
}

/// Reads what a method needs from the result of clients and servers.
pub(super) fn read(input: &TrialInput, result: &RunResult) -> TrialOutput {
    let templates = || result.ports.iter().flat_map(|port| &port.templates);
    let clients = || templates().filter(|template| template.side == "client");
    let sum = |names: &[&str]| -> u64 {
        let of = |template: &TemplateReport| -> u64 {
            names.iter().filter_map(|&name| template.flows.get(name)).sum()
        };
        clients().map(of).sum()
    };
    let tcp = |names: &[&str]| -> u64 {
        let of = |template: &TemplateReport| -> u64 {
            names.iter().filter_map(|&name| template.tcp.get(name)).sum()
        };
        templates().map(of).sum()
    };
    let started = sum(&["started"]);
    let seconds = input.duration().as_secs_f64();
    let step = StepOutput {
        intended: started + sum(&NOT_STARTED),
        offered: started,
        received: started.saturating_sub(sum(&FAILED_FLOWS) + sum(&UNFINISHED)),
        seconds,
        ..StepOutput::default()
    };
    let segments = SegmentsOutput {
        sent: tcp(&["sndpack", "sndrexmitpack", "sndctrl"]),
        retransmitted: tcp(&["sndrexmitpack", "rexmttimeo_syn"]),
    };
    TrialOutput {
        offers: vec![OfferOutput { steps: vec![step], ..OfferOutput::default() }],
        segments: Some(segments),
        notes: result.notes.clone(),
        ..TrialOutput::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(loads: &[&str]) -> EmulationPlan {
        let template = |(number, load): (usize, &&str)| {
            format!(
                "  - name: t{number}\n    client: {{tx: c, addresses: 10.0.0.1, servers: 10.0.1.1, \
                 server_port: {}, load: {load}, ramp_up: 1s, limit: 5, program: [{{send: a}}]}}\n    \
                 server: {{tx: s, port: {}, program: [{{receive: {{bytes: 1}}}}]}}\n",
                80 + number,
                80 + number
            )
        };
        let templates: String = loads.iter().enumerate().map(template).collect();
        let text = format!("ports: [{{name: c}}, {{name: s}}]\ntemplates:\n{templates}");
        EmulationPlan::parse(&text).unwrap()
    }

    fn rates(plan: &EmulationPlan) -> Vec<f64> {
        let clients = plan.templates.iter().filter_map(|it| it.client.as_ref());
        let rate = |load| match load {
            Load::Rate { rate, .. } | Load::Poisson { rate, .. } => rate.per_second(),
            _ => 0.0,
        };
        clients.map(|client| rate(client.load)).collect()
    }

    #[test]
    fn rates_keep_their_proportions() {
        let plan = plan(&["{rate: 100}", "{poisson: 50.5}"]);
        let traffic = ClientsTraffic::new(plan, Path::new("")).unwrap();
        assert_eq!(traffic.rate(), 150.5);
        let scaled = traffic.scaled(301).unwrap();
        assert_eq!(rates(&scaled), [200.0, 101.0]);
        let client = scaled.templates[0].client.as_ref().unwrap();
        assert_eq!((client.ramp_up, client.limit), (Duration::ZERO, None));
    }

    #[test]
    fn loads_without_a_rate_are_refused() {
        for load in ["{concurrent: 5}", "{users: 5, think_time: 1s}"] {
            let error = ClientsTraffic::new(plan(&["{rate: 1}", load]), Path::new("")).unwrap_err();
            assert!(error.starts_with("templates[1].client.load: found"), "{error}");
        }
    }
}
