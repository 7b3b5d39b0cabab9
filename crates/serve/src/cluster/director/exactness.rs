//! Whether the clocks of two agents are known exactly enough for a test to start.

use std::time::Duration;

use wirestorm_control::plan::test_plan::ClockSource;

use super::super::protocol::{EXCHANGES_MIN, PtpReport};
use super::agents::AgentLink;

/// Time to wait for a comparison of clocks.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for PTP measurements once there is a master: they come once a second, or less often.
const PTP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to wait for exchanges if another source is exact enough: exchanges also show the drift.
const SESSION_WAIT: Duration = Duration::from_secs(3);

/// Clocks that are not known exactly enough.
#[derive(Debug)]
pub(super) struct Inexact {
    /// What is missing, and what to do about it.
    pub(super) reason: String,
    /// Time since the start of the comparison in which this may change.
    pub(super) patience: Duration,
}

impl Inexact {
    fn new(reason: String) -> Self {
        Self { reason, patience: COMPARE_TIMEOUT }
    }
}

/// Returns why the clocks of two agents are not known exactly enough; `None` if they are.
pub(super) fn inexact(
    near: &AgentLink,
    far: &AgentLink,
    source: ClockSource,
    error_max: Option<f64>,
    waited: Duration,
) -> Option<Inexact> {
    let judged = |error_ns: Result<f64, Inexact>| match error_ns {
        Ok(error_ns) if error_max.is_none_or(|most| error_ns <= most) => None,
        Ok(error_ns) => Some(Inexact::new(format!(
            "the error is {error_ns:.0} ns, expected at most {:.0} ns (clock.error_max)",
            error_max.unwrap_or(0.0)
        ))),
        Err(inexact) => Some(inexact),
    };
    match source {
        ClockSource::Reference => judged(by_references(near, far)),
        ClockSource::Ptp => judged(by_ptp(near, far)),
        ClockSource::Stamp => judged(by_session(near, far)),
        ClockSource::Auto => {
            let has_session = near.report.peers.contains_key(&far.agent);
            if (!has_session || waited >= SESSION_WAIT)
                && (judged(by_references(near, far)).is_none()
                    || judged(by_ptp(near, far)).is_none())
            {
                return None;
            }
            judged(by_session(near, far))
        }
    }
}

fn by_references(near: &AgentLink, far: &AgentLink) -> Result<f64, Inexact> {
    let references = near.report.reference.zip(far.report.reference);
    references.map(|(near, far)| (near.error_ns + far.error_ns) as f64).ok_or_else(|| {
        let agents = names([near, far], |link| link.report.reference.is_none());
        Inexact::new(format!(
            "no reference with a known error on {agents}: look at `wirestorm clock show` there"
        ))
    })
}

fn by_session(near: &AgentLink, far: &AgentLink) -> Result<f64, Inexact> {
    let Some(session) = near.report.peers.get(&far.agent) else {
        return Err(Inexact::new(format!(
            "agent {} has no reflector, and there is no reference with a known error: start it \
             without --no-reflector",
            far.agent
        )));
    };
    let offset = session.offset.filter(|_| session.exchanges >= EXCHANGES_MIN);
    offset.map(|offset| offset.half_width_ns).ok_or_else(|| {
        Inexact::new(format!(
            "{} exchanges with {}: check that UDP port {} of it is open",
            session.exchanges,
            session.address,
            session.address.port()
        ))
    })
}

fn by_ptp(near: &AgentLink, far: &AgentLink) -> Result<f64, Inexact> {
    let (Some(of_near), Some(of_far)) = (&near.report.ptp, &far.report.ptp) else {
        let agents = names([near, far], |link| link.report.ptp.is_none());
        let reason = format!(
            "no PTP on {agents}: start `wirestorm agent` there with --ptp INTERFACE, as a slave or \
             with --ptp-role master"
        );
        // An agent does not get a session later.
        return Err(Inexact { reason, patience: Duration::ZERO });
    };
    let both = [(near, of_near), (far, of_far)];
    for (link, ptp) in both {
        if let Some(problem) = &ptp.problem {
            let reason = format!("PTP of agent {} on {}: {problem}", link.agent, ptp.session);
            return Err(Inexact::new(reason));
        }
        if ptp.source.is_none() {
            return Err(Inexact::new(format!(
                "agent {} has found no PTP master on {}: start one there, such as `wirestorm agent \
                 --ptp INTERFACE --ptp-role master`, or check --ptp-transport and --ptp-domain",
                link.agent, ptp.session
            )));
        }
    }
    if of_near.source != of_far.source || (of_near.is_master && of_far.is_master) {
        let [one, other] = both.map(|(link, ptp)| clock_of(link, ptp));
        return Err(Inexact::new(format!(
            "PTP compares them with different clocks: {one}, and {other}; connect both to one \
             grandmaster in one domain, or make one the master of the other"
        )));
    }
    for (link, ptp) in both {
        if ptp.offset.is_none() {
            let reason = format!(
                "{} PTP measurements of agent {} on {}: check that the master answers Delay_Req \
                 messages, or measure more often with a lower --ptp-log-interval of the master, or \
                 of a unicast slave",
                ptp.exchanges, link.agent, ptp.session
            );
            return Err(Inexact { reason, patience: PTP_TIMEOUT });
        }
    }
    let error = |ptp: &PtpReport| ptp.offset.map_or(0.0, |offset| offset.half_width_ns);
    Ok(error(of_near) + error(of_far))
}

/// Describes the clock that an agent is compared with by PTP.
fn clock_of(link: &AgentLink, ptp: &PtpReport) -> String {
    let source = ptp.source.as_ref().map(ToString::to_string).unwrap_or_default();
    match ptp.is_master {
        true => format!("agent {} is {source} on {}", link.agent, ptp.session),
        false => format!("agent {} follows {source} on {}", link.agent, ptp.session),
    }
}

/// Returns the names of the agents that lack something.
fn names(links: [&AgentLink; 2], lacks: impl Fn(&AgentLink) -> bool) -> String {
    let without = links.into_iter().filter(|link| lacks(link));
    without.map(|link| link.agent.as_str()).collect::<Vec<_>>().join(" and ")
}
