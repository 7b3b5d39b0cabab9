//! Ping, from an interface as a host of its own.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_stack::{EchoRequest, Heard};

use super::station::{HostError, Station};

/// The name and version of the document's form.
const SCHEMA: &str = "wirestorm.ping/1";

/// How often it is looked whether all is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What is asked of whom.
#[derive(Clone, Debug)]
pub struct PingOptions {
    /// Destination address.
    pub target: IpAddr,
    /// Requests in all.
    pub count: u64,
    /// Time between requests.
    pub interval: Duration,
    /// Time to wait for the last reply.
    pub patience: Duration,
    /// Bytes of payload.
    pub payload: u16,
}

/// An answer.
#[derive(Clone, Debug, Serialize)]
pub struct PingReply {
    /// The request, from 0.
    pub sequence: u64,
    /// Time to live or hop limit with which it arrived.
    pub hop_limit: u8,
    /// From the request to the answer, in nanoseconds.
    pub round_trip_ns: u64,
    /// Whether it brought back what was sent.
    pub intact: bool,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct PingReport {
    /// The name and version of this document's form.
    pub schema: &'static str,
    /// Destination address.
    pub target: String,
    /// The address that asked.
    pub source: String,
    /// The Ethernet address of the next hop.
    pub next_hop: String,
    /// Requests sent.
    pub sent: u64,
    /// Requests that were answered.
    pub received: u64,
    /// Answers beyond the first to a request.
    pub duplicated: u64,
    /// The quickest answer, in nanoseconds.
    pub min_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// The slowest.
    pub max_ns: Option<u64>,
}

/// Asks, and shows each answer.
///
/// # Errors
/// Where the target's next hop is not found, or the interface failed.
pub fn ping(
    station: &mut Station,
    options: &PingOptions,
    stop: &AtomicBool,
    mut show: impl FnMut(&PingReply),
) -> Result<PingReport, HostError> {
    let (source, next_hop) = station.resolve(options.target)?;
    let mut request = EchoRequest {
        macs: (station.host().mac, next_hop),
        source,
        destination: options.target,
        identifier: std::process::id() as u16,
        sequence: 0,
        payload: (0..options.payload).map(|byte| byte as u8).collect(),
    };
    let mut asked: Vec<Asked> = Vec::new();
    let mut duplicated = 0;
    let mut round_trips: Vec<u64> = Vec::new();
    let begun = clock::now();
    for number in 0..options.count {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Sixteen bits: of more requests the last 65,536 can be told apart.
        request.sequence = number as u16;
        let Some(frame) = request.frame() else { break };
        let at = clock::now();
        asked.push(Asked { at, is_answered: false });
        station.send(&frame)?;
        let is_last = number + 1 == options.count;
        let end = if is_last {
            at.saturating_add(options.patience)
        } else {
            let past = options.interval.as_nanos().saturating_mul(number + 1);
            begun.saturating_add(Duration::from_nanos(past))
        };
        loop {
            // Short enough that an interruption is noticed.
            let until = end.min(clock::now().saturating_add(LOOK_INTERVAL));
            station.listen(until, |heard, arrival| {
                let Heard::Echo(reply) = heard else { return ControlFlow::Continue(()) };
                if reply.identifier != request.identifier || reply.source != options.target {
                    return ControlFlow::Continue(());
                }
                let behind = u64::from((number as u16).wrapping_sub(reply.sequence));
                let Some(sequence) = number.checked_sub(behind) else {
                    return ControlFlow::Continue(());
                };
                let asked = &mut asked[sequence as usize];
                if asked.is_answered {
                    duplicated += 1;
                    return ControlFlow::Continue(());
                }
                asked.is_answered = true;
                let round_trip_ns = arrival.saturating_since(asked.at).as_nanos();
                round_trips.push(round_trip_ns);
                show(&PingReply {
                    sequence,
                    hop_limit: reply.hop_limit,
                    round_trip_ns,
                    intact: reply.payload == request.payload,
                });
                // Nothing is left to wait for.
                if is_last && round_trips.len() as u64 == options.count {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            let is_complete = is_last && round_trips.len() as u64 == options.count;
            if is_complete || stop.load(Ordering::Relaxed) || clock::now() >= end {
                break;
            }
        }
    }
    let sum: u64 = round_trips.iter().sum();
    let count = round_trips.len() as u64;
    Ok(PingReport {
        schema: SCHEMA,
        target: options.target.to_string(),
        source: source.to_string(),
        next_hop: next_hop.to_string(),
        sent: asked.len() as u64,
        received: count,
        duplicated,
        min_ns: round_trips.iter().min().copied(),
        mean_ns: (count > 0).then(|| sum as f64 / count as f64),
        max_ns: round_trips.iter().max().copied(),
    })
}

struct Asked {
    at: Instant,
    is_answered: bool,
}
