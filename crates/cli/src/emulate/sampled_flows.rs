//! Sampled flows: the `--sample-flows` option and its tables, at most 80 columns wide.

use std::fmt::{self, Formatter};

use wirestorm_control::emulation::FlowChoice;
use wirestorm_control::result::{FlowSample, SampledFlow};

use super::port::Port;
use crate::number::{grouped, nanoseconds, scaled};
use crate::terminal_width::row;
use crate::traffic::{clipped, shortened};

/// Parses `--sample-flows`: a count and optional filters. Without the option, the count is 0.
pub(crate) fn read_sample_flows(text: Option<&str>) -> Result<FlowChoice, String> {
    const EXPECTED: &str =
        "a number of flows and optional filters: 5, or 5,template=page,address=10.0.0.7,port=80";
    let mut choice = FlowChoice::default();
    let Some(text) = text else { return Ok(choice) };
    let wrong = |part: &str, expected: String| {
        Err(format!("--sample-flows {text:?}: found {part:?}, expected {expected}"))
    };
    let mut parts = text.split(',');
    let count = parts.next().unwrap_or_default();
    choice.count = match count.parse() {
        Ok(count) if (1..=FlowChoice::COUNT_MAX).contains(&count) => count,
        Ok(_) => return wrong(count, format!("1 to {} flows", FlowChoice::COUNT_MAX)),
        Err(_) => return wrong(count, EXPECTED.to_owned()),
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "template" if !value.is_empty() => choice.template = Some(value.to_owned()),
            "address" => match value.parse() {
                Ok(address) => choice.address = Some(address),
                Err(_) => return wrong(part, "an address such as address=10.0.0.7".to_owned()),
            },
            "port" => match value.parse() {
                Ok(port) => choice.port = Some(port),
                Err(_) => return wrong(part, "a port such as port=80".to_owned()),
            },
            _ => return wrong(part, EXPECTED.to_owned()),
        }
    }
    Ok(choice)
}

/// Prints two lines for each sampled flow: its addresses and template, and its last sample.
pub(super) fn table(f: &mut Formatter<'_>, port: &Port<'_>) -> fmt::Result {
    if port.connections.sampled_flows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nflows of {}", shortened(port.name(), 71))?;
    writeln!(
        f,
        "    {:<11} {:>7} {:>10} {:>9} {:>9} {:>6} {:>9} {:>8}",
        "state", "cwnd", "ssthresh", "RTT", "RTO", "retx", "acked", "received"
    )?;
    for flow in &port.connections.sampled_flows {
        let seen = match flow.samples.last() {
            Some(last) if flow.ended => format!("ended at {:.3} s", last.at_s),
            _ if flow.ended => "ended".to_owned(),
            _ => format!("began at {:.3} s", flow.start_s),
        };
        writeln!(f, "{}", clipped(&format!("  {}, {seen}", name(flow)), 80))?;
        match flow.samples.last() {
            Some(last) => writeln!(f, "    {}", numbers(last))?,
            None => writeln!(f, "    UDP")?,
        }
    }
    Ok(())
}

/// Appends a line for each sampled flow to the live table.
pub(super) fn live(text: &mut String, columns: usize, flows: &[SampledFlow]) {
    for flow in flows {
        let last = flow.samples.last();
        let state = last.map_or("UDP", |last| if flow.ended { "ended" } else { &last.state });
        let [window, round_trip, again] = last.map_or(["-".into(), "-".into(), "-".into()], |it| {
            [grouped(it.cwnd.into()), time(it.rtt_us), grouped(it.retransmitted)]
        });
        let name = format!("  {} > {}", flow.local, flow.remote);
        live_row(text, columns, &name, [state, &window, &round_trip, &again]);
    }
}

/// Appends the heads of the live table.
pub(super) fn live_heads(text: &mut String, columns: usize) {
    live_row(text, columns, "  flow", ["state", "cwnd", "RTT", "retx"]);
}

fn live_row(text: &mut String, columns: usize, name: &str, cells: [&str; 4]) {
    let [state, window, round_trip, again] = cells;
    let state = &*format!("{state:<12}");
    row(text, columns, (40, name), &[(12, state), (9, window), (9, round_trip), (6, again)]);
}

fn name(flow: &SampledFlow) -> String {
    format!("{} > {}, {}: {}", flow.local, flow.remote, flow.template, flow.side)
}

fn numbers(sample: &FlowSample) -> String {
    let bytes = |bytes: u64| scaled(bytes as f64).trim_end().to_owned();
    let threshold = sample.ssthresh.map_or("-".to_owned(), |it| grouped(it.into()));
    format!(
        "{:<11} {:>7} {:>10} {:>9} {:>9} {:>6} {:>9} {:>8}",
        shortened(&sample.state, 11),
        bytes(sample.cwnd.into()),
        threshold,
        time(sample.rtt_us),
        time(Some(sample.rto_us)),
        grouped(sample.retransmitted),
        bytes(sample.acknowledged_bytes),
        bytes(sample.received_bytes)
    )
}

fn time(micros: Option<u32>) -> String {
    micros.map_or("-".to_owned(), |micros| nanoseconds(u64::from(micros) * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_choice_has_a_count_and_filters() {
        let chosen =
            read_sample_flows(Some("5,template=page,address=2001:db8::1,port=80")).unwrap();
        let expected = FlowChoice {
            count: 5,
            template: Some("page".into()),
            address: Some("2001:db8::1".parse().unwrap()),
            port: Some(80),
        };
        assert_eq!(chosen, expected);
        assert_eq!(read_sample_flows(None).unwrap().count, 0);
        for (wrong, expected) in [
            ("0", "found \"0\", expected 1 to 1000 flows"),
            ("1001", "expected 1 to 1000 flows"),
            ("page", "found \"page\", expected a number of flows"),
            ("5,port=http", "found \"port=http\", expected a port such as port=80"),
            ("5,address=x", "found \"address=x\", expected an address"),
            ("5,template", "found \"template\", expected a number of flows"),
            ("5,name=page", "found \"name=page\""),
        ] {
            let error = read_sample_flows(Some(wrong)).unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
