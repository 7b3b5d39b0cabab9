//! What is to be said of flows that were still there in the end.

use wirestorm_base::time::Duration;

use super::report::{PortReport, TemplateReport};

/// Templates that are named, at most.
const NAMED_MAX: usize = 5;

/// How long flows that were there in the end were waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waited {
    /// Somebody ended the run, or an error did, which is told by itself.
    CutShort,
    /// So long after the last one could be made, as an option says.
    Linger(Duration),
    /// So long at most in a simulation, which has no such option.
    Simulated(Duration),
    /// In a simulation, until nothing more could happen.
    Silence,
}

/// A note for each template whose clients' connections nobody answered, and for each of which some
/// are unfinished, unless the run was cut short.
pub(super) fn notes(ports: &[PortReport], waited: Waited) -> Vec<String> {
    // Of both sides: an answer may be what has no tunnel.
    let no_tunnel = ports.iter().filter_map(|port| port.tunnels).map(|it| it.no_tunnel).sum();
    let clients = ports.iter().flat_map(|port| &port.templates).filter(|it| it.side == "client");
    let notes =
        clients.flat_map(|it| unanswered(it, no_tunnel).into_iter().chain(unfinished(it, waited)));
    let mut notes: Vec<String> = notes.collect();
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

/// Where some were answered, and none had to ask again, those that are asking have only just begun.
fn unanswered(template: &TemplateReport, no_tunnel: u64) -> Option<String> {
    let (asking, made) = (count(template, "syn_sent"), count(template, "made"));
    let tcp = |name: &str| template.tcp.get(name).copied().unwrap_or(0);
    let is_long_ago = tcp("connects") == 0 || tcp("rexmttimeo_syn") > 0 || no_tunnel > 0;
    let why = match no_tunnel {
        0 => {
            "somebody on the way drops one or the other, or nobody has the servers' address".into()
        }
        frames => format!(
            "{frames} frames of this run were not sent, for neither their sender nor their \
             receiver has a tunnel: give each client one in the port's `tunnels`"
        ),
    };
    (asking > 0 && is_long_ago).then(|| {
        format!(
            "{}: of {made} connections that were made, {asking} were asking in the end and had no \
             answer to their SYN, neither SYN-ACK nor RST: {why}",
            template.name
        )
    })
}

fn unfinished(template: &TemplateReport, waited: Waited) -> Option<String> {
    let (unfinished, made) = (count(template, "unfinished"), count(template, "made"));
    let when = match waited {
        Waited::CutShort => return None,
        Waited::Linger(linger) => format!(
            "{} s after the last one could be made: --linger says how long they are waited for",
            linger.as_secs_f64()
        ),
        Waited::Simulated(linger) => {
            format!("up to {} s after the last one could be made", linger.as_secs_f64())
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
            flows: [("made", 100), ("syn_sent", asking)].into(),
            tcp: [("connects", connects), ("rexmttimeo_syn", asked_again)].into(),
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
}
