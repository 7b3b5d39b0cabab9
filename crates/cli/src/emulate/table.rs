//! Result tables of an emulation, at most 80 columns wide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{
    FAILED_FLOWS, GroupReport, HistogramReport, Http2Report, ImpairmentReport, Label, PortReport,
    RunResult, TlsReport, TunnelsReport,
};
use wirestorm_control::stack::endpoint::UdpCounters;
use wirestorm_control::stack::tcp::counters::TcpCounters;

use super::port::Port;
use super::program_results::found;
use super::{latency, sampled_flows, time_series};
use crate::number::{grouped, nanoseconds_or_none, rate, scaled, seconds};
use crate::report::verdict;
use crate::traffic::{clipped, shortened};
use crate::wrap::{wrapped, wrapped_to};

/// Displays a result as tables.
pub(crate) struct Table<'a>(pub(crate) &'a RunResult);

/// Name and getter of a table line.
type Shown<T, Value> = (&'static str, fn(&T) -> Value);

/// Name and getter of a table line about a port.
type ShownPort<Value> = (&'static str, fn(&Port<'_>) -> Value);

/// Maximum number of ports side by side in a table.
const PORTS_PER_TABLE: usize = 2;

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = match result.interrupted {
            _ if !result.errors.is_empty() => "stopped after",
            true => "interrupted after",
            false => "done in",
        };
        writeln!(f, "{ended} {} s", seconds(result.times.elapsed_s))?;
        let ports: Vec<Port<'_>> = result.ports.iter().filter_map(Port::of).collect();
        for ports in ports.chunks(PORTS_PER_TABLE) {
            writeln!(f)?;
            port_table(f, ports, result)?;
        }
        for ports in ports.chunks(PORTS_PER_TABLE) {
            time_series::table(f, ports)?;
        }
        for port in &ports {
            sampled_flows::table(f, port)?;
        }
        latency::table(f, &result.latency)?;
        let templates: usize = result.ports.iter().map(|port| port.templates.len()).sum();
        // A single template on each side repeats the columns of the ports.
        if templates > result.ports.len() {
            writeln!(f)?;
            template_table(f, &result.ports)?;
        }
        if !result.groups.is_empty() {
            writeln!(f)?;
            group_table(f, &result.groups)?;
        }
        found(f, &result.ports, &result.groups)?;
        for port in &result.ports {
            writeln!(f)?;
            writeln!(f, "port {} on {}", port.name, port.interface)?;
            let backend = port.backend.as_deref().unwrap_or("-");
            let reason = port.backend_reason.as_deref().unwrap_or_default();
            writeln!(f, "{}", wrapped(&format!("  by {backend}: "), reason))?;
        }
        for note in &result.notes {
            writeln!(f, "{}", wrapped("note      ", note))?;
        }
        for error in &result.errors {
            writeln!(f, "{}", wrapped("error     ", error))?;
        }
        verdict(f, result)
    }
}

/// Width in columns of a line's caption.
const CAPTION: usize = 50;

fn line<T: Display>(
    f: &mut Formatter<'_>,
    what: &str,
    ports: &[Port<'_>],
    value: impl Fn(&Port<'_>) -> T,
) -> fmt::Result {
    write!(f, "{what:<CAPTION$}")?;
    for port in ports {
        write!(f, " {:>14}", value(port).to_string())?;
    }
    writeln!(f)
}

/// Width in columns of the name and side of a template or group.
const NAME: usize = 23;

/// Formats the name and side of a template or group. Shortens the name, never the side.
fn named(name: &str, side: &str) -> String {
    let room = NAME.saturating_sub("  : ".len() + side.len());
    format!("  {}: {side}", shortened(name, room))
}

/// Prints a line of the tables of templates and groups.
fn row(f: &mut Formatter<'_>, name: &str, cells: [String; 5]) -> fmt::Result {
    let [started, closed, failed, sent, received] = cells;
    let name = shortened(name, NAME);
    writeln!(f, "{name:<NAME$} {started:>10} {closed:>10} {failed:>8} {sent:>12} {received:>12}")
}

fn heads(f: &mut Formatter<'_>, what: &str) -> fmt::Result {
    row(f, what, ["flows", "closed", "failed", "bytes sent", "received"].map(str::to_owned))
}

/// Counter values by name.
type Counters = BTreeMap<Label, u64>;

/// Returns the cells of a side: flows, closed, failed, bytes sent, bytes received.
fn cells(flows: &Counters, tcp: &Counters, udp: &Counters) -> [String; 5] {
    let count = |counters: &Counters, name: &str| counters.get(name).copied().unwrap_or(0);
    let both = |name: &str| count(tcp, name) + count(udp, name);
    // Uses acknowledged TCP bytes, because the queued bytes (`sndbyte`) may never have left.
    let sent = count(tcp, "sndbyte_ok") + count(udp, "sndbyte");
    let failed = FAILED_FLOWS.iter().map(|name| count(flows, name)).sum();
    let started = both("accepts").max(count(flows, "started"));
    [started, count(flows, "closed"), failed, sent, both("rcvbyte")].map(grouped)
}

/// Prints a line for each side of each group of templates.
fn group_table(f: &mut Formatter<'_>, groups: &[GroupReport]) -> fmt::Result {
    heads(f, "groups")?;
    for GroupReport { sum, .. } in groups {
        row(f, &named(&sum.name, &sum.side), cells(&sum.flows, &sum.tcp, &sum.udp))?;
    }
    Ok(())
}

/// Prints a line for each side of each template.
fn template_table(f: &mut Formatter<'_>, ports: &[PortReport]) -> fmt::Result {
    heads(f, "templates")?;
    for template in ports.iter().flat_map(|port| &port.templates) {
        // A group of one template has the same name. If both names do not fit, the template's is
        // enough.
        let group = template.group.as_ref().filter(|group| **group != template.name);
        let both = group.map(|it| format!("  {} of {it}: {}", template.name, template.side));
        let name = both.filter(|it| it.chars().count() <= NAME);
        let name = name.unwrap_or_else(|| named(&template.name, &template.side));
        row(f, &name, cells(&template.flows, &template.tcp, &template.udp))?;
    }
    Ok(())
}

/// Resets by a program, or resets that a program expects.
const RESETS: [ShownPort<u64>; 2] = [
    ("  reset by the program", |port| port.flows.aborted),
    ("  reset by the peer (expected)", |port| port.flows.expected_resets),
];

/// Causes of failed connections.
const FAILURE_CAUSES: [ShownPort<u64>; 10] = [
    ("    refused by the peer", |port| port.flows.refused),
    ("    ICMP unreachable", |port| port.flows.unreachable),
    ("    reset by the peer", |port| port.flows.reset),
    ("    closed by the peer, which reset later data", |port| port.flows.reset_after_close),
    ("    SYN unanswered", |port| port.flows.syn_timeout),
    ("    retransmission timeout", |port| port.flows.retransmission_timeout),
    ("    keepalive timeout", |port| port.flows.keepalive_timeout),
    ("    TLS or HTTP/2 failed", |port| port.flows.session_failed),
    ("    data did not match the program", |port| port.flows.program_failed),
    ("    UDP idle timeout", |port| port.flows.idle_timeout),
];

/// States of connections that are open at the end of the run.
const OPEN_STATES: [ShownPort<u64>; 6] = [
    ("    in SYN-SENT", |port| port.flows.syn_sent),
    ("    unfinished", |port| port.flows.unfinished),
    ("    reset at the end of the run", |port| port.flows.reset_at_end),
    ("    not reset before the end of the run", |port| port.flows.left_open),
    ("    in TIME-WAIT", |port| port.flows.time_wait),
    ("      after a program or TLS failure", |port| port.flows.time_wait_failed),
];

/// Counters shown only if they are not 0.
const NONZERO_COUNTERS: [ShownPort<u64>; 34] = [
    ("  first bytes match no server", |port| port.flows.no_match),
    ("  reconnected: closed between two requests", |port| port.flows.reconnected),
    ("  not opened: too many concurrent (--flows-max)", |port| port.flows.flow_table_full),
    ("  not opened: addresses and ports in use", |port| port.flows.no_free_tuple),
    ("  not opened: worker behind the target rate", |port| port.flows.late),
    ("  skipped: concurrency limit (concurrent_max)", |port| port.flows.skipped),
    ("  skipped: all clients are switched off", |port| port.flows.clients_disabled),
    ("  SYNs to ports without a listener", |port| port.flows.no_template),
    ("  packets of no known connection or flow", |port| port.flows.no_flow),
    ("  packets to a foreign MAC address", |port| port.flows.foreign_mac),
    ("  packets with martian addresses", |port| port.flows.martian),
    ("  segments too long for a frame", |port| port.flows.too_long),
    ("  packets reassembled from fragments", |port| port.flows.reassembled),
    ("  reassembly timeouts", |port| port.flows.fragments_incomplete),
    ("  reassemblies with overlapping fragments", |port| port.flows.fragments_overlapping),
    ("  reassemblies dropped: buffer full", |port| port.flows.fragments_no_room),
    ("  ICMP Packet Too Big received", |port| port.flows.too_big),
    ("  ICMP Port Unreachable sent", |port| port.flows.unreachable_sent),
    ("  ICMP Time Exceeded sent (reassembly)", |port| port.flows.time_exceeded_sent),
    ("  packets corrupt or truncated", |port| port.flows.malformed),
    ("  packets of other protocols", |port| port.flows.other_protocol),
    ("  frames lost (impair)", |port| impaired(port, |it| it.lost)),
    ("  frames dropped by a full queue (impair)", |port| impaired(port, |it| it.queue_dropped)),
    ("  frames duplicated (impair)", |port| impaired(port, |it| it.duplicated)),
    ("  frames corrupted (impair)", |port| impaired(port, |it| it.corrupted)),
    ("  frames reordered (impair)", |port| impaired(port, |it| it.reordered)),
    ("  frames dropped: buffer full (impair)", |port| impaired(port, |it| it.delay_buffer_full)),
    ("  frames encapsulated", |port| tunnelled(port, |it| it.encapsulated)),
    ("  frames decapsulated", |port| tunnelled(port, |it| it.decapsulated)),
    ("  frames not sent: no tunnel", |port| tunnelled(port, |it| it.no_tunnel)),
    ("  tunnel frames dropped: invalid or too long", |port| {
        tunnelled(port, |it| it.dropped - it.no_tunnel)
    }),
    ("  frames not sent: link down or end of run", |port| port.tx.unsent),
    ("  frames that failed to send", |port| port.tx.failed),
    ("  frames dropped: receiver full", |port| port.rx.dropped),
];

fn impaired(port: &Port<'_>, count: fn(&ImpairmentReport) -> u64) -> u64 {
    port.report.impairment.as_ref().map_or(0, count)
}

fn tunnelled(port: &Port<'_>, count: fn(&TunnelsReport) -> u64) -> u64 {
    port.report.tunnels.as_ref().map_or(0, count)
}

/// Prints a line for each of these counters that is not 0 on any port.
fn counted(f: &mut Formatter<'_>, shown: &[ShownPort<u64>], ports: &[Port<'_>]) -> fmt::Result {
    for (what, value) in shown {
        if ports.iter().any(|port| value(port) > 0) {
            line(f, what, ports, |port| grouped(value(port)))?;
        }
    }
    Ok(())
}

fn port_table(f: &mut Formatter<'_>, ports: &[Port<'_>], result: &RunResult) -> fmt::Result {
    /// Shortest load time, in seconds, for which the table shows a rate.
    const LOAD_MIN_S: f64 = 0.01;
    let count = |value: fn(&Port<'_>) -> u64| move |port: &Port<'_>| grouped(value(port));
    let bits = |bytes: u64| scaled(bytes as f64 * 8.0 / result.times.elapsed_s.max(1e-9));
    let bits = |bytes: u64| bits(bytes).trim_end().to_owned();
    let established = |value: u64| match result.times.load_duration_s.unwrap_or(0.0) {
        load if load >= LOAD_MIN_S => rate(value as f64 / load).trim_end().to_owned(),
        _ => "-".to_owned(),
    };
    line(f, "connections", ports, |port| shortened(port.name(), 14))?;
    line(f, "  established", ports, |port| grouped(port.tcp("connects")))?;
    line(f, "  established per second", ports, |port| established(port.tcp("connects")))?;
    line(f, "  closed by both sides", ports, count(|port| port.flows.closed))?;
    counted(f, &RESETS, ports)?;
    line(f, "  failed", ports, count(|port| port.flows.failed))?;
    counted(f, &FAILURE_CAUSES, ports)?;
    let at_once = "  concurrent, maximum (with TIME-WAIT)";
    line(f, at_once, ports, count(|port| port.flows.active_max))?;
    line(f, "  open at the end", ports, count(|port| port.flows.active))?;
    counted(f, &OPEN_STATES, ports)?;
    counted(f, &NONZERO_COUNTERS, ports)?;
    time_lines(f, ports)?;
    tls_lines(f, ports)?;
    http1_lines(f, ports)?;
    http2_lines(f, ports)?;
    line(f, "traffic", ports, |_| "")?;
    line(f, "  frames sent", ports, count(|port| port.tx.packets))?;
    line(f, "  frames received", ports, count(|port| port.rx.packets))?;
    line(f, "  data sent, b/s", ports, |port| bits(port.tcp("sndbyte_ok") + port.udp("sndbyte")))?;
    let acknowledged = |port: &Port<'_>| port.tcp("rcvackbyte");
    if ports.iter().any(|port| acknowledged(port) > 0) {
        line(f, "  data acknowledged by peers, b/s", ports, |port| bits(acknowledged(port)))?;
    }
    line(f, "  data received, b/s", ports, |port| bits(port.tcp("rcvbyte") + port.udp("rcvbyte")))?;
    line(f, "  CPU time of the worker, s", ports, |port| {
        seconds(port.report.cpu_s.unwrap_or(0.0))
    })?;
    if ports.iter().any(|port| port.report.ingress_cpu_s.is_some()) {
        let shown =
            |port: &Port<'_>| port.report.ingress_cpu_s.map_or_else(|| "-".to_owned(), seconds);
        line(f, "  CPU time of the program at the ingress, s", ports, shown)?;
    }
    protocol_lines(f, ports)?;
    let counter =
        |port: &Port<'_>, name: &str| port.connections.counters.get(name).copied().unwrap_or(0);
    for name in ["A", "B", "C", "D"] {
        if ports.iter().any(|port| counter(port, name) > 0) {
            let what = format!("programs' counter {name}");
            line(f, &what, ports, |port| grouped(counter(port, name)))?;
        }
    }
    Ok(())
}

/// Prints the quantiles of connection times. Skips times without a measurement.
fn time_lines(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    type Times = for<'a> fn(&Port<'a>) -> Option<&'a HistogramReport>;
    let times: [(&str, Times); 4] = [
        ("time to connect", |port| Some(&port.connections.times.connect)),
        ("time of the TLS handshake", |port| Some(&port.connections.tls.as_ref()?.handshake)),
        ("time to the first byte", |port| Some(&port.connections.times.time_to_first_byte)),
        ("round trip of a segment", |port| Some(&port.connections.times.round_trip)),
    ];
    for (what, histogram) in times {
        if ports.iter().any(|port| histogram(port).is_some_and(|it| it.count > 0)) {
            let quantiles: [Shown<HistogramReport, Option<u64>>; 3] =
                [("median", |it| it.p50_ns), ("99 %", |it| it.p99_ns), ("longest", |it| it.max_ns)];
            for (name, value) in quantiles {
                let shown = |port: &Port<'_>| nanoseconds_or_none(histogram(port).and_then(value));
                line(f, &format!("  {what}, {name}"), ports, shown)?;
            }
        }
    }
    Ok(())
}

/// Prints the TCP and UDP counters that are not 0 on any port.
fn protocol_lines(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    line(f, "TCP", ports, |_| "")?;
    for (name, what, _) in TcpCounters::default().iter() {
        if ports.iter().any(|port| port.tcp(name) > 0) {
            let what = format!("  {name} {what}");
            line(f, &clipped(&what, CAPTION), ports, |port| grouped(port.tcp(name)))?;
        }
    }
    if ports.iter().any(|port| port.connections.udp.values().any(|count| *count > 0)) {
        line(f, "UDP", ports, |_| "")?;
        for (name, what, _) in UdpCounters::default().iter() {
            if ports.iter().any(|port| port.udp(name) > 0) {
                let what = format!("  {name} {what}");
                line(f, &clipped(&what, CAPTION), ports, |port| grouped(port.udp(name)))?;
            }
        }
    }
    Ok(())
}

/// Prints the TLS counters. Prints nothing if no port uses TLS.
fn tls_lines(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    if ports.iter().all(|port| port.connections.tls.is_none()) {
        return Ok(());
    }
    line(f, "TLS", ports, |_| "")?;
    let counts: [Shown<TlsReport, u64>; 3] = [
        ("  full handshakes", |it| it.full_handshakes),
        ("  handshakes that resumed a session", |it| it.resumed_handshakes),
        ("  ended by the peer without close_notify", |it| it.truncated),
    ];
    for (what, value) in counts {
        line(f, what, ports, |port| {
            port.connections.tls.as_ref().map_or("-".into(), |it| grouped(value(it)))
        })?;
    }
    failure_lines(f, ports, |port| port.connections.tls.as_ref().map(|it| &it.failures))
}

/// Prints the HTTP/1.1 counters. Prints nothing if no port parses HTTP/1.1.
fn http1_lines(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    if ports.iter().all(|port| port.connections.http1.is_none()) {
        return Ok(());
    }
    line(f, "HTTP/1.1", ports, |_| "")?;
    let requests = |port: &Port<'_>| port.connections.http1.as_ref().map(|it| it.requests);
    line(f, "  requests received", ports, |port| grouped_or_none(requests(port)))?;
    let name = "responses received";
    response_lines(f, name, ports, |port| port.connections.http1.as_ref().map(|it| &it.responses))?;
    let missing = |port: &Port<'_>| port.connections.http1.as_ref().map(|it| it.missing);
    if ports.iter().any(|port| missing(port).is_some_and(|it| it > 0)) {
        line(f, "  responses missing", ports, |port| grouped_or_none(missing(port)))?;
    }
    Ok(())
}

/// Prints the HTTP/2 counters. Prints nothing if no port uses HTTP/2.
fn http2_lines(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    if ports.iter().all(|port| port.connections.http2.is_none()) {
        return Ok(());
    }
    let count = |value: fn(&Http2Report) -> u64| {
        move |port: &Port<'_>| grouped_or_none(port.connections.http2.as_ref().map(value))
    };
    line(f, "HTTP/2", ports, |_| "")?;
    line(f, "  requests", ports, count(|it| it.requests))?;
    response_lines(f, "responses", ports, |port| {
        port.connections.http2.as_ref().map(|it| &it.responses)
    })?;
    line(f, "  streams reset", ports, count(|it| it.resets))?;
    failure_lines(f, ports, |port| port.connections.http2.as_ref().map(|it| &it.failures))
}

/// Prints responses by status class: always 2xx, the other classes only if they are not 0.
fn response_lines(
    f: &mut Formatter<'_>,
    name: &str,
    ports: &[Port<'_>],
    responses: impl for<'a> Fn(&Port<'a>) -> Option<&'a Counters>,
) -> fmt::Result {
    for class in ["1xx", "2xx", "3xx", "4xx", "5xx"] {
        let value = |port: &Port<'_>| responses(port).and_then(|it| it.get(class)).copied();
        if class == "2xx" || ports.iter().any(|port| value(port).is_some_and(|it| it > 0)) {
            line(f, &format!("  {name} {class}"), ports, |port| grouped_or_none(value(port)))?;
        }
    }
    Ok(())
}

fn grouped_or_none(count: Option<u64>) -> String {
    count.map_or("-".into(), grouped)
}

/// Prints the number of failures by cause.
fn failure_lines(
    f: &mut Formatter<'_>,
    ports: &[Port<'_>],
    failures: impl for<'a> Fn(&Port<'a>) -> Option<&'a BTreeMap<Label, u64>>,
) -> fmt::Result {
    let causes: BTreeSet<_> = ports.iter().filter_map(&failures).flat_map(|it| it.keys()).collect();
    for cause in causes {
        let times = |port: &Port<'_>| {
            let times = failures(port).and_then(|it| it.get(cause));
            grouped(times.copied().unwrap_or(0))
        };
        // Wraps the cause instead of clipping it, because the end can be the relevant part.
        let lines = wrapped_to(CAPTION, "  failed: ", cause);
        let mut lines = lines.lines().peekable();
        while let Some(text) = lines.next() {
            match lines.peek() {
                Some(_) => writeln!(f, "{text}")?,
                None => line(f, text, ports, times)?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sent_are_acknowledged_bytes() {
        let tcp = Counters::from([
            ("sndbyte".into(), 3_000_000),
            ("sndbyte_ok".into(), 1_000),
            ("rcvbyte".into(), 7),
        ]);
        let udp = Counters::from([("sndbyte".into(), 234)]);
        let [.., sent, received] = cells(&Counters::new(), &tcp, &udp);
        assert_eq!([sent.as_str(), received.as_str()], ["1,234", "7"]);
    }
}
