//! Loads of runs: the rates that flows would have if the run had started with another multiplier.

use std::sync::Arc;

use wirestorm_api::error::{ErrorAt, ErrorCode, ErrorDocument};
use wirestorm_control::base::rate::{Decimal, Rate};
use wirestorm_control::base::time::Duration;
use wirestorm_control::model::stream::Speed;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::traffic::{PlanErrors, TrafficPlan};
use wirestorm_control::traffic::{TrexPort, plan_of_trex};
use wirestorm_control::{Command, FlowCommand, LoadFactor};

use super::request::{invalid, parse_multiplier};

/// What the load of a run follows from.
#[derive(Clone, Debug, Default)]
pub(crate) enum LoadSource {
    /// Nothing: the run has no load that a multiplier changes.
    #[default]
    Fixed,
    /// Rates of the flows of a plan of streams.
    Plan(Arc<TrafficPlan>),
    /// Rates of streams of TRex.
    Trex(Vec<TrexPort>),
    /// Loads of clients, multiplied by this factor at the start.
    Clients(Decimal),
}

impl LoadSource {
    /// Returns the commands that set a load. `flows`: indices of those that change; `None` for all.
    /// `interfaces`: those of the ports. `line_rate`: speed of an interface in bit/s.
    ///
    /// # Errors
    /// The load is not valid for the run, or a line rate is unknown.
    pub(super) fn commands(
        &self,
        load: &str,
        flows: Option<&[usize]>,
        interfaces: &[String],
        line_rate: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<Command>, ErrorDocument> {
        let multiplier = parse_multiplier("load", load)?;
        let plan = match self {
            Self::Fixed => {
                return Err(invalid("load", "the run has no load that a multiplier changes"));
            }
            Self::Clients(before) => return clients(load, multiplier, *before, flows),
            Self::Plan(plan) => {
                let line_rate = |port: usize| line_rate(interfaces.get(port)?).and_then(rate);
                return speeds(plan, multiplier, flows, line_rate);
            }
            Self::Trex(ports) => plan_of_trex(ports, multiplier),
        };
        let plan = plan.map_err(|error| invalid("load", error.to_string()))?;
        // The rates are multiplied already.
        speeds(&plan, Multiplier::ONE, flows, |_| None)
    }
}

fn rate(bits_per_second: u64) -> Option<Rate> {
    Rate::new(bits_per_second, Duration::from_secs(1)).ok()
}

fn clients(
    load: &str,
    multiplier: Multiplier,
    before: Decimal,
    flows: Option<&[usize]>,
) -> Result<Vec<Command>, ErrorDocument> {
    if flows.is_some() {
        return Err(invalid("flows", "clients have no flows with names: remove it"));
    }
    let Multiplier::Factor(factor) = multiplier else {
        let message = format!("found the total load {load:?}; clients take a factor such as 2");
        return Err(invalid("load", message));
    };
    let value = |it: Decimal| it.digits as f64 / it.denominator as f64;
    let relative = format!("{:.9}", value(factor) / value(before));
    let relative = relative.trim_end_matches('0').trim_end_matches('.');
    let factor = Decimal::parse(relative).ok().and_then(LoadFactor::new).ok_or_else(|| {
        invalid("load", format!("found {load:?}, a factor of {relative} of the load of the start"))
    })?;
    Ok(vec![Command::ScaleLoad(factor)])
}

/// Returns a command for each speed, with the flows that get it.
fn speeds(
    plan: &TrafficPlan,
    multiplier: Multiplier,
    chosen: Option<&[usize]>,
    line_rate: impl Fn(usize) -> Option<Rate>,
) -> Result<Vec<Command>, ErrorDocument> {
    let mut groups: Vec<(Speed, Vec<usize>)> = Vec::new();
    let sends = |port: &usize| plan.flows.iter().any(|flow| flow.tx_port == *port);
    for port in (0..plan.ports.len()).filter(sends) {
        let streams = plan.streams(port, line_rate(port), multiplier).map_err(|it| of_load(&it))?;
        for (flow, stream) in streams {
            let speed = stream.transmission.speed;
            if speed == Speed::Max || chosen.is_some_and(|chosen| !chosen.contains(&flow)) {
                continue;
            }
            match groups.iter_mut().rev().find(|(of, _)| *of == speed) {
                Some((_, flows)) => flows.push(flow),
                None => groups.push((speed, vec![flow])),
            }
        }
    }
    if groups.is_empty() {
        return Err(invalid("load", "the flows have no rate to multiply"));
    }
    let command = |(speed, flows)| Command::Flows { flows, command: FlowCommand::SetSpeed(speed) };
    Ok(groups.into_iter().map(command).collect())
}

fn of_load(errors: &PlanErrors) -> ErrorDocument {
    let at = |error: &wirestorm_control::plan::traffic::PlanError| ErrorAt {
        path: error.path.clone(),
        message: error.message.clone(),
    };
    let errors = errors.iter().map(at).collect();
    ErrorDocument {
        code: ErrorCode::Invalid,
        message: "the load does not fit the run".to_owned(),
        errors,
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_control::files::HostFiles;

    use super::super::request::streams_of;
    use super::*;

    const PLAN: &str = "
ports: [{name: a}, {name: b}]
flows:
  - {name: one, tx: a, rx: b, size: 128, rate: 1kpps, packet: [ethernet: {}]}
  - {name: two, tx: a, rx: b, size: 128, rate: 1kpps, packet: [ethernet: {}]}
  - {name: three, tx: a, rx: b, size: 128, rate: max, packet: [ethernet: {}]}
";

    fn source() -> LoadSource {
        LoadSource::Plan(Arc::new(streams_of(PLAN, &HostFiles).unwrap()))
    }

    /// Returns the flows and the frames a second of each command.
    fn rates(
        load: &str,
        flows: Option<&[usize]>,
        line_rate: Option<u64>,
    ) -> Vec<(Vec<usize>, f64)> {
        let interfaces = ["eth1".to_owned(), "eth2".to_owned()];
        let commands = source().commands(load, flows, &interfaces, |_| line_rate).unwrap();
        let of = |command| match command {
            Command::Flows { flows, command: FlowCommand::SetSpeed(Speed::Frames(rate)) } => {
                (flows, rate.per_second())
            }
            other => panic!("{other:?}"),
        };
        commands.into_iter().map(of).collect()
    }

    #[test]
    fn load_is_that_of_a_start_with_it_and_leaves_full_speed_alone() {
        assert_eq!(rates("2", None, None), [(vec![0, 1], 2_000.0)]);
        assert_eq!(rates("500pps", Some(&[1]), None), [(vec![1], 250.0)]);
        // 148 bytes with preamble, FCS and gap: 1,184 bits.
        let [(flows, rate)] = &rates("0.1184%", None, Some(10_000_000_000))[..] else { panic!() };
        assert_eq!((&flows[..], rate.round()), (&[0, 1][..], 5_000.0));
    }

    #[test]
    fn percentage_of_an_unknown_line_rate_is_refused_with_the_remedy() {
        let error = source().commands("10%", None, &[], |_| None).unwrap_err().to_string();
        assert!(error.contains("port a") && error.contains("set `speed` on the port"), "{error}");
    }

    #[test]
    fn flows_without_a_rate_and_wrong_loads_are_refused() {
        let refused = |source: LoadSource, load: &str, flows: Option<&[usize]>| {
            source.commands(load, flows, &[], |_| None).unwrap_err().to_string()
        };
        assert!(refused(source(), "2", Some(&[2])).contains("no rate to multiply"));
        assert!(refused(source(), "fast", None).contains("load: found \"fast\""));
        assert!(refused(LoadSource::Fixed, "2", None).contains("no load"));
        let clients = LoadSource::Clients(Decimal::parse("2").unwrap());
        assert!(refused(clients.clone(), "10kpps", None).contains("a factor such as 2"));
        assert!(refused(clients, "2", Some(&[0])).contains("no flows with names"));
    }

    #[test]
    fn factor_of_clients_refers_to_the_plan_as_at_the_start() {
        let clients = LoadSource::Clients(Decimal::parse("2").unwrap());
        let commands = clients.commands("1", None, &[], |_| None).unwrap();
        let half = LoadFactor::new(Decimal::parse("0.5").unwrap()).unwrap();
        assert_eq!(commands, [Command::ScaleLoad(half)]);
    }
}
