//! Notes about flows that did not start, failed, or were still open at the end.

use wirestorm_base::count::pluralise;
use wirestorm_base::time::Duration;

use crate::result::{PortReport, TemplateReport};

/// Maximum time to reset open connections at the end of a run. Connections that are open afterwards
/// count as `left_open`.
pub(in crate::emulation) const RESETS_TIME_MAX: Duration = Duration::from_secs(4);

/// Maximum number of notes. One more note has the number of the others.
const NAMED_MAX: usize = 5;

/// Time that open flows had at the end of the load.
#[derive(Clone, Copy, Debug)]
pub(in crate::emulation) enum DrainTime<'a> {
    /// None: the user or an error ended the run, or the caller wants no note.
    CutShort,
    /// Drain timeout, and the name of the option that sets it.
    DrainTimeout(Duration, &'a str),
    /// Until the end of a simulation, which has no option for it.
    Simulated {
        /// End of the load.
        duration: Duration,
        /// Maximum time after the load.
        drain_timeout: Duration,
    },
    /// Until a simulation had no more events.
    NoMoreEvents,
}

/// Returns notes about the templates of all ports, at most [`NAMED_MAX`] and their remainder:
///
/// - flows above the limit of concurrent flows
/// - clients without free addresses and ports
/// - connections without an answer to their SYN
/// - connections that all timed out
/// - unfinished flows, unless the run was cut short
/// - connections that were not reset at the end
pub(in crate::emulation) fn notes(
    ports: &[PortReport],
    waited: DrainTime<'_>,
    flows_max: usize,
) -> Vec<String> {
    // Sum both sides: the answer may be the packet without a tunnel.
    let no_tunnel = ports.iter().filter_map(|port| port.tunnels).map(|it| it.no_tunnel).sum();
    let templates = || ports.iter().flat_map(|port| &port.templates);
    let clients = templates().filter(|it| it.side == "client");
    let full = templates().filter_map(|it| full(it, flows_max));
    let notes = clients.flat_map(|it| {
        let failed = tuples_in_use(it).into_iter();
        let unanswered = failed.chain(unanswered(it, no_tunnel));
        unanswered.chain(given_up(it)).chain(unfinished(it, waited))
    });
    let left_open = templates().filter_map(left_open);
    let mut notes: Vec<String> = full.chain(notes).chain(left_open).collect();
    let more = notes.len().saturating_sub(NAMED_MAX);
    notes.truncate(NAMED_MAX);
    if more > 0 {
        notes.push(format!("{more} more such notes: see the counters in `templates` of --json"));
    }
    notes
}

fn count(template: &TemplateReport, name: &str) -> u64 {
    template.flows.get(name).copied().unwrap_or(0)
}

/// Returns a note about flows above the limit of concurrent flows.
fn full(template: &TemplateReport, flows_max: usize) -> Option<String> {
    let missed = count(template, "flow_table_full");
    let (what, less) = match &*template.side {
        "client" => ("not started", "or reduce the load"),
        _ => ("not answered", "or reduce the load of the clients"),
    };
    (missed > 0).then(|| {
        format!(
            "{} ({}): {missed} connections were {what}: {flows_max} flows were open on the port, \
             which is the limit. Raise the limit with --flows-max (in Python: flows_max), {less}; \
             `flow_table_full` counts them",
            template.name, template.side
        )
    })
}

/// Returns a note about connections that the peers still have.
fn left_open(template: &TemplateReport) -> Option<String> {
    let left = count(template, "left_open");
    (left > 0).then(|| {
        format!(
            "{} ({}): {left} connections were open when the run ended and got no reset: the \
             interface did not send, or there were too many for the limit of {} s. Their peers \
             keep them until they time out; `left_open` counts them",
            template.name,
            template.side,
            RESETS_TIME_MAX.as_secs_f64()
        )
    })
}

/// Returns a note about connections without a free address and port.
fn tuples_in_use(template: &TemplateReport) -> Option<String> {
    let failed = count(template, "no_free_tuple");
    (failed > 0).then(|| {
        format!(
            "{}: {} not started, because all addresses and ports tried were in use or in \
             TIME-WAIT: give the client more `addresses`, `ports` or `servers`, or set a shorter \
             `time_wait`",
            template.name,
            pluralise(failed, "connection was", "connections were")
        )
    })
}

/// Returns a note about SYNs without an answer. If some connections were established and no SYN was
/// retransmitted, connections in SYN-SENT have just started and do not count.
fn unanswered(template: &TemplateReport, no_tunnel: u64) -> Option<String> {
    let (syn_sent, started) = (count(template, "syn_sent"), count(template, "started"));
    let tcp = |name: &str| template.tcp.get(name).copied().unwrap_or(0);
    let is_long_ago = tcp("connects") == 0 || tcp("rexmttimeo_syn") > 0 || no_tunnel > 0;
    let asking = if is_long_ago { syn_sent } else { 0 };
    // Connections that have sent all retransmissions of their SYN.
    let given_up = count(template, "syn_timeout");
    let why = match no_tunnel {
        0 => {
            "a device on the path drops SYNs or answers, or no host has the servers' address".into()
        }
        frames => format!(
            "{} not sent, because neither sender nor receiver has a tunnel: give each client one \
             in the port's `tunnels`",
            pluralise(frames, "frame of this run was", "frames of this run were")
        ),
    };
    (asking + given_up > 0).then(|| {
        format!(
            "{}: of {started} connections started, {} had no answer to their SYN, neither SYN-ACK \
             nor RST ({given_up} gave up, {asking} were in SYN-SENT at the end): {why}",
            template.name,
            asking + given_up
        )
    })
}

/// Returns a note about connections that timed out after they were established. There is no note if
/// any connection ended otherwise, because segments then get through.
fn given_up(template: &TemplateReport) -> Option<String> {
    let names = ["retransmission_timeout", "keepalive_timeout"];
    let given_up: u64 = names.iter().map(|it| count(template, it)).sum();
    let started = count(template, "started");
    let gets_through =
        ["closed", "reset", "reset_after_close", "aborted", "expected_resets", "program_failed"];
    (given_up > 0 && gets_through.iter().all(|it| count(template, it) == 0)).then(|| {
        format!(
            "{}: of {started} connections started, {given_up} were established and then timed out \
             without an answer: a device on the path drops segments after the handshake",
            template.name
        )
    })
}

/// Returns a note about flows that were still open at the end.
fn unfinished(template: &TemplateReport, waited: DrainTime<'_>) -> Option<String> {
    let (unfinished, started) = (count(template, "unfinished"), count(template, "started"));
    let when = match waited {
        DrainTime::CutShort => return None,
        DrainTime::DrainTimeout(drain_timeout, option) => format!(
            "{} s after the load ended: {option} sets this time",
            drain_timeout.as_secs_f64()
        ),
        DrainTime::Simulated { duration, drain_timeout } => {
            let [duration, drain_timeout] = [duration, drain_timeout].map(|it| it.as_secs_f64());
            format!(
                "when the simulation ended: up to {drain_timeout} s after its duration, which is \
                 {duration} s"
            )
        }
        DrainTime::NoMoreEvents => {
            "when nothing more could happen: each side waits for the other".into()
        }
    };
    let name = &template.name;
    (unfinished > 0).then(|| {
        format!(
            "{name}: of {started} flows started, {unfinished} were unfinished at the end, {when}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(asking: u64, connects: u64, asked_again: u64) -> TemplateReport {
        TemplateReport {
            name: "pages".into(),
            flows: [("started".into(), 100), ("syn_sent".into(), asking)].into(),
            tcp: [("connects".into(), connects), ("rexmttimeo_syn".into(), asked_again)].into(),
            ..TemplateReport::default()
        }
    }

    #[test]
    fn recent_syn_gives_no_note() {
        assert_eq!(unanswered(&template(1, 99, 0), 0), None);
        assert_eq!(unanswered(&template(0, 99, 3), 0), None);
        for lost in [template(1, 98, 1), template(100, 0, 0), template(100, 0, 200)] {
            let note = unanswered(&lost, 0).unwrap();
            assert!(note.contains("had no answer to their SYN"), "{note}");
        }
    }

    #[test]
    fn note_about_the_flow_limit_names_the_side_and_the_option() {
        let mut report = template(0, 100, 0);
        assert_eq!(full(&report, 10_000), None);
        report.flows.insert("flow_table_full".into(), 7);
        for (side, expected) in [
            ("client", "pages (client): 7 connections were not started: 10000 flows were open"),
            ("server", "pages (server): 7 connections were not answered: 10000 flows were open"),
        ] {
            report.side = side.into();
            let note = full(&report, 10_000).unwrap();
            assert!(note.starts_with(expected) && note.contains("--flows-max"), "{note}");
        }
    }

    #[test]
    fn left_open_connections_are_reported() {
        let mut left = template(0, 100, 0);
        left.side = "server".into();
        assert_eq!(left_open(&left), None);
        left.flows.insert("left_open".into(), 9);
        let note = left_open(&left).unwrap();
        assert!(note.starts_with("pages (server): 9 connections were open when"), "{note}");
    }

    #[test]
    fn note_about_exhausted_ports_names_the_remedies() {
        let mut full = template(0, 100, 0);
        assert_eq!(tuples_in_use(&full), None);
        full.flows.insert("no_free_tuple".into(), 3);
        let note = tuples_in_use(&full).unwrap();
        assert!(note.starts_with("pages: 3 connections were not started"), "{note}");
        assert!(note.contains("`ports`") && note.contains("`time_wait`"), "{note}");
    }

    #[test]
    fn timed_out_connections_are_reported_if_none_closed() {
        let mut silent = template(0, 0, 400);
        silent.flows.insert("syn_timeout".into(), 100);
        let note = unanswered(&silent, 0).unwrap();
        assert!(note.contains("of 100 connections started, 100 had no answer"), "{note}");
        assert_eq!(given_up(&silent), None);
        let mut cut = template(0, 100, 0);
        cut.flows.insert("retransmission_timeout".into(), 60);
        let note = given_up(&cut).unwrap();
        assert!(note.contains("60 were established and then timed out"), "{note}");
        cut.flows.insert("closed".into(), 1);
        assert_eq!(given_up(&cut), None);
    }
}
