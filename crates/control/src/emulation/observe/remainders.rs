//! What is to be said of flows that were not made, or were still there in the end.

use wirestorm_base::count::counted;
use wirestorm_base::time::Duration;

use crate::result::{PortReport, TemplateReport};

/// For how long open connections are reset at the end of a run; what is open then is left open,
/// counted and told.
pub(in crate::emulation) const RESETS_TIME_MAX: Duration = Duration::from_secs(4);

/// Templates that are named, at most.
const NAMED_MAX: usize = 5;

/// How long flows that were there in the end were waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::emulation) enum Waited<'a> {
    /// Somebody ended the run, or an error did, which is told by itself; or who asked for it knows.
    CutShort,
    /// So long after the last one could be made, as an option of this name says.
    Linger(Duration, &'a str),
    /// Until the end of a simulation, which has no such option.
    Simulated {
        /// When the last one could be made.
        duration: Duration,
        /// How long they are waited for then, at most.
        drain_timeout: Duration,
    },
    /// In a simulation, until nothing more could happen.
    Silence,
}

/// A note for each template that reached the most flows at once, whose clients had no addresses and
/// ports left, whose connections nobody answered, whose connections were all given up, of which some
/// are unfinished, unless the run was cut short, and of which some were not reset in the end.
pub(in crate::emulation) fn notes(
    ports: &[PortReport],
    waited: Waited<'_>,
    flows_max: usize,
) -> Vec<String> {
    // Of both sides: an answer may be what has no tunnel.
    let no_tunnel = ports.iter().filter_map(|port| port.tunnels).map(|it| it.no_tunnel).sum();
    let templates = || ports.iter().flat_map(|port| &port.templates);
    let clients = templates().filter(|it| it.side == "client");
    let full = templates().filter_map(|it| full(it, flows_max));
    let notes = clients.flat_map(|it| {
        let unmade = unmade(it).into_iter();
        let unanswered = unmade.chain(unanswered(it, no_tunnel));
        unanswered.chain(given_up(it)).chain(unfinished(it, waited))
    });
    let left_open = templates().filter_map(left_open);
    let mut notes: Vec<String> = full.chain(notes).chain(left_open).collect();
    let more = notes.len().saturating_sub(NAMED_MAX);
    notes.truncate(NAMED_MAX);
    if more > 0 {
        notes.push(format!("the same is so {more} times more: `templates` of --json tell of each"));
    }
    notes
}

fn count(template: &TemplateReport, name: &str) -> u64 {
    template.flows.get(name).copied().unwrap_or(0)
}

/// Those for which there was no place.
fn full(template: &TemplateReport, flows_max: usize) -> Option<String> {
    let missed = count(template, "overflow");
    let (what, less) = match &*template.side {
        "client" => ("not made", "or ask for fewer at once"),
        _ => ("not answered", "or let the clients hold fewer"),
    };
    (missed > 0).then(|| {
        format!(
            "{} ({}): {missed} connections were {what}: {flows_max} flows were open on the port, \
             which is the limit. Raise the limit with --flows-max (in Python: flows_max), {less}; \
             `overflow` counts them",
            template.name, template.side
        )
    })
}

/// Those of which the peers know yet.
fn left_open(template: &TemplateReport) -> Option<String> {
    let left = count(template, "left_open");
    (left > 0).then(|| {
        format!(
            "{} ({}): {left} connections were open when the run ended and got no reset: the \
             interface did not send, or there were more than the {} s for it allow. Their peers \
             keep them until they time out; `left_open` counts them",
            template.name,
            template.side,
            RESETS_TIME_MAX.as_secs_f64()
        )
    })
}

/// Those that have no free addresses and ports.
fn unmade(template: &TemplateReport) -> Option<String> {
    let unmade = count(template, "tuple_in_use");
    (unmade > 0).then(|| {
        format!(
            "{}: {} not made, because all addresses and ports that could be tried were in use, \
             TIME-WAIT included: more `addresses`, `ports` or `servers` of the client \
             have room for more, and with a shorter `time_wait` they are free sooner",
            template.name,
            counted(unmade, "connection was", "connections were")
        )
    })
}

/// Where some were answered, and none had to ask again, those that are asking have only just begun.
fn unanswered(template: &TemplateReport, no_tunnel: u64) -> Option<String> {
    let (asking, made) = (count(template, "syn_sent"), count(template, "made"));
    let tcp = |name: &str| template.tcp.get(name).copied().unwrap_or(0);
    let is_long_ago = tcp("connects") == 0 || tcp("rexmttimeo_syn") > 0 || no_tunnel > 0;
    let asking = if is_long_ago { asking } else { 0 };
    // Those that have asked often enough.
    let given_up = count(template, "unanswered");
    let why = match no_tunnel {
        0 => {
            "somebody on the way drops one or the other, or nobody has the servers' address".into()
        }
        frames => format!(
            "{} not sent, because neither sender nor receiver has a tunnel: give each client one \
             in the port's `tunnels`",
            counted(frames, "frame of this run was", "frames of this run were")
        ),
    };
    (asking + given_up > 0).then(|| {
        format!(
            "{}: of {made} connections that were made, {} had no answer to their SYN, neither \
             SYN-ACK nor RST ({given_up} were given up, {asking} were asking in the end): {why}",
            template.name,
            asking + given_up
        )
    })
}

/// Where some were closed, or have failed otherwise, something gets through.
fn given_up(template: &TemplateReport) -> Option<String> {
    let names = ["timed_out", "keepalive_timeout"];
    let given_up: u64 = names.iter().map(|it| count(template, it)).sum();
    let made = count(template, "made");
    let gets_through =
        ["closed", "reset", "reset_after_close", "aborted", "expected_resets", "program_failed"];
    (given_up > 0 && gets_through.iter().all(|it| count(template, it) == 0)).then(|| {
        format!(
            "{}: of {made} connections that were made, {given_up} were established and then given \
             up, for nothing came of the other side any more: somebody on the way drops what \
             follows",
            template.name
        )
    })
}

fn unfinished(template: &TemplateReport, waited: Waited<'_>) -> Option<String> {
    let (unfinished, made) = (count(template, "unfinished"), count(template, "made"));
    let when = match waited {
        Waited::CutShort => return None,
        Waited::Linger(drain_timeout, option) => format!(
            "{} s after the last one could be made: {option} says how long they are waited for",
            drain_timeout.as_secs_f64()
        ),
        Waited::Simulated { duration, drain_timeout } => {
            let [duration, drain_timeout] = [duration, drain_timeout].map(|it| it.as_secs_f64());
            format!(
                "when the simulation ended: up to {drain_timeout} s after its duration, which is \
                 {duration} s"
            )
        }
        Waited::Silence => "when nothing more could happen: each side waits for the other".into(),
    };
    let name = &template.name;
    (unfinished > 0).then(|| {
        format!(
            "{name}: of {made} flows that were made, {unfinished} were unfinished in the end, {when}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(asking: u64, connects: u64, asked_again: u64) -> TemplateReport {
        TemplateReport {
            name: "pages".into(),
            flows: [("made".into(), 100), ("syn_sent".into(), asking)].into(),
            tcp: [("connects".into(), connects), ("rexmttimeo_syn".into(), asked_again)].into(),
            ..TemplateReport::default()
        }
    }

    #[test]
    fn nobody_is_blamed_for_a_syn_that_was_sent_only_just_now() {
        assert_eq!(unanswered(&template(1, 99, 0), 0), None);
        assert_eq!(unanswered(&template(0, 99, 3), 0), None);
        for lost in [template(1, 98, 1), template(100, 0, 0), template(100, 0, 200)] {
            let note = unanswered(&lost, 0).unwrap();
            assert!(note.contains("had no answer to their SYN"), "{note}");
        }
    }

    #[test]
    fn a_side_that_has_reached_its_limit_is_told_which_and_what_to_do() {
        let mut starved = template(0, 100, 0);
        assert_eq!(full(&starved, 10_000), None);
        starved.flows.insert("overflow".into(), 7);
        for (side, expected) in [
            ("client", "pages (client): 7 connections were not made: 10000 flows were open"),
            ("server", "pages (server): 7 connections were not answered: 10000 flows were open"),
        ] {
            starved.side = side.into();
            let note = full(&starved, 10_000).unwrap();
            assert!(note.starts_with(expected) && note.contains("--flows-max"), "{note}");
        }
    }

    #[test]
    fn connections_that_peers_still_have_are_told_of() {
        let mut left = template(0, 100, 0);
        left.side = "server".into();
        assert_eq!(left_open(&left), None);
        left.flows.insert("left_open".into(), 9);
        let note = left_open(&left).unwrap();
        assert!(note.starts_with("pages (server): 9 connections were open when"), "{note}");
    }

    #[test]
    fn who_has_no_ports_left_is_told_what_gives_more() {
        let mut full = template(0, 100, 0);
        assert_eq!(unmade(&full), None);
        full.flows.insert("tuple_in_use".into(), 3);
        let note = unmade(&full).unwrap();
        assert!(note.starts_with("pages: 3 connections were not made"), "{note}");
        assert!(note.contains("`ports`") && note.contains("`time_wait`"), "{note}");
    }

    #[test]
    fn connections_that_were_all_given_up_are_told_of() {
        let mut silent = template(0, 0, 400);
        silent.flows.insert("unanswered".into(), 100);
        let note = unanswered(&silent, 0).unwrap();
        assert!(note.contains("of 100 connections that were made, 100 had no answer"), "{note}");
        assert_eq!(given_up(&silent), None);
        let mut cut = template(0, 100, 0);
        cut.flows.insert("timed_out".into(), 60);
        let note = given_up(&cut).unwrap();
        assert!(note.contains("60 were established and then given up"), "{note}");
        cut.flows.insert("closed".into(), 1);
        assert_eq!(given_up(&cut), None);
    }
}
