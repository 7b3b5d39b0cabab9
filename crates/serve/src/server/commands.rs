//! Conversion of command requests to commands of runs.

use std::collections::HashMap;
use std::net::IpAddr;

use wirestorm_api::error::ErrorDocument;
use wirestorm_api::run::CommandRequest;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::plan::traffic::{RequestedRate, parse_rate};
use wirestorm_control::result::Kind;
use wirestorm_control::{Command, FlowCommand, LoadFactor, StartAt};

use super::request::invalid;
use super::runs::HostedRun;

/// What a command request asks for.
pub(super) enum Request {
    /// Start the run.
    Start(StartAt),
    /// Execute a command.
    Execute(Vec<Command>),
}

/// Converts a request for a run. `line_rate`: speed of an interface in bit/s.
///
/// # Errors
/// A value is not valid, a flow does not exist, or a line rate is unknown.
pub(super) fn convert(
    request: &CommandRequest,
    run: &HostedRun,
    line_rate: impl Fn(&str) -> Option<u64>,
) -> Result<Request, ErrorDocument> {
    let (kind, names) = (run.handle.kind(), &*run.flows);
    let command = match request {
        CommandRequest::Start { at_unix_ns } => {
            let at = at_unix_ns.map_or(StartAt::Now, StartAt::Realtime);
            return Ok(Request::Start(at));
        }
        CommandRequest::Stop => Command::Stop,
        CommandRequest::Pause { flows: None } => Command::Pause,
        CommandRequest::Resume { flows: None } => {
            let paused: Vec<usize> = run.handle.paused_flows().into_iter().collect();
            let mut commands = vec![Command::Resume];
            if !paused.is_empty() {
                commands.push(to_flows(paused, FlowCommand::Resume));
            }
            return Ok(Request::Execute(commands));
        }
        CommandRequest::Pause { flows: Some(flows) } => {
            to_flows(named(flows, names)?, FlowCommand::Pause)
        }
        CommandRequest::Resume { flows: Some(flows) } => {
            to_flows(named(flows, names)?, FlowCommand::Resume)
        }
        CommandRequest::StartFlows { flows } => {
            to_flows(chosen(flows.as_deref(), names)?, FlowCommand::Start)
        }
        CommandRequest::StopFlows { flows } => {
            to_flows(chosen(flows.as_deref(), names)?, FlowCommand::Stop)
        }
        CommandRequest::Rate { rate, flows } => {
            let Some(RequestedRate::Speed(speed)) = parse_rate(rate) else {
                let message =
                    format!("found {rate:?}, expected a rate such as 1Mpps, 10G-l1, 10G-l2 or max");
                return Err(invalid("rate", message));
            };
            to_flows(chosen(flows.as_deref(), names)?, FlowCommand::SetSpeed(speed))
        }
        CommandRequest::Scale { factor, flows } => {
            let decimal = parse_factor(factor)?;
            if kind == Kind::Streams {
                let Decimal { digits: numerator, denominator } = decimal;
                let command = FlowCommand::Scale { numerator, denominator };
                to_flows(chosen(flows.as_deref(), names)?, command)
            } else {
                if flows.is_some() {
                    return Err(invalid("flows", "clients have no flows with names: remove it"));
                }
                let factor = LoadFactor::new(decimal).ok_or_else(|| out_of_range(factor))?;
                Command::ScaleLoad(factor)
            }
        }
        CommandRequest::Load { load, flows } => {
            let flows = flows.as_deref().map(|flows| named(flows, names)).transpose()?;
            let commands = run.load.commands(load, flows.as_deref(), &run.interfaces, line_rate)?;
            return Ok(Request::Execute(commands));
        }
        CommandRequest::EndLoad => Command::EndLoad,
        CommandRequest::Clients { ranges, on } => {
            let ranges = ranges.iter().enumerate().map(|(at, range)| read_range(at, range));
            Command::Clients { ranges: ranges.collect::<Result<_, _>>()?, on: *on }
        }
    };
    Ok(Request::Execute(vec![command]))
}

fn to_flows(flows: Vec<usize>, command: FlowCommand) -> Command {
    Command::Flows { flows, command }
}

/// Returns the indices of flows; of all flows without names.
fn chosen(flows: Option<&[String]>, names: &[String]) -> Result<Vec<usize>, ErrorDocument> {
    match flows {
        None => Ok((0..names.len()).collect()),
        Some(flows) => named(flows, names),
    }
}

fn named(flows: &[String], names: &[String]) -> Result<Vec<usize>, ErrorDocument> {
    // The first flow of a name counts.
    let places: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(index, name)| (name.as_str(), index)).collect();
    let index = |(at, flow): (usize, &String)| {
        places.get(flow.as_str()).copied().ok_or_else(|| {
            let known: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
            let message = match known.is_empty() {
                true => "the run has no flows with names".to_owned(),
                false => format!("found {flow:?}, expected a flow such as {}", known.join(", ")),
            };
            invalid(&format!("flows[{at}]"), message)
        })
    };
    flows.iter().enumerate().map(index).collect()
}

/// Parses a factor such as `0.5` or `50%`.
fn parse_factor(text: &str) -> Result<Decimal, ErrorDocument> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number, 100),
        None => (text, 1),
    };
    let decimal = Decimal::parse(number).ok().filter(|decimal| decimal.digits > 0);
    let decimal = decimal.ok_or_else(|| out_of_range(text))?;
    Ok(Decimal { denominator: decimal.denominator.saturating_mul(divisor), ..decimal })
}

fn out_of_range(text: &str) -> ErrorDocument {
    let message = format!("found {text:?}, expected a factor greater than 0, such as 0.5 or 50%");
    invalid("factor", message)
}

fn read_range(
    at: usize,
    (first, last): &(String, String),
) -> Result<(IpAddr, IpAddr), ErrorDocument> {
    let wrong = || {
        let message =
            format!("found {first:?} and {last:?}, expected an ascending range of IP addresses");
        invalid(&format!("ranges[{at}]"), message)
    };
    let (first, last): (IpAddr, IpAddr) =
        (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
    match first.is_ipv4() == last.is_ipv4() && first <= last {
        true => Ok((first, last)),
        false => Err(wrong()),
    }
}
