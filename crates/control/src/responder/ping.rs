//! Ping from a host on an interface.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_stack::{EchoRequest, HostEvent};

use super::packet_socket_host::{HostError, PacketSocketHost};

/// Name and version of the document format.
const SCHEMA: &str = "wirestorm.ping/1";

/// Interval at which the loop checks for a stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Options of a ping.
#[derive(Clone, Debug)]
pub struct PingOptions {
    /// Destination address.
    pub target: IpAddr,
    /// Number of requests.
    pub count: u64,
    /// Time between requests.
    pub interval: Duration,
    /// Time to wait for the last reply.
    pub patience: Duration,
    /// Payload length in bytes.
    pub payload: u16,
}

/// An echo reply.
#[derive(Clone, Debug, Serialize)]
pub struct PingReply {
    /// Sequence number of the request, from 0.
    pub sequence: u64,
    /// Time to live or hop limit of the received reply.
    pub hop_limit: u8,
    /// Round-trip time in nanoseconds.
    pub round_trip_ns: u64,
    /// Whether the reply carries the payload of the request.
    pub intact: bool,
}

/// Result of a ping.
#[derive(Clone, Debug, Serialize)]
pub struct PingReport {
    /// Name and version of the document format.
    pub schema: &'static str,
    /// Destination address.
    pub target: String,
    /// Source address of the requests.
    pub source: String,
    /// Ethernet address of the next hop.
    pub next_hop: String,
    /// Requests sent.
    pub sent: u64,
    /// Requests answered.
    pub received: u64,
    /// Duplicate replies.
    pub duplicated: u64,
    /// Minimum round-trip time in nanoseconds.
    pub min_ns: Option<u64>,
    /// Mean round-trip time in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Maximum round-trip time in nanoseconds.
    pub max_ns: Option<u64>,
}

/// Sends echo requests and calls `show` for each reply.
///
/// # Errors
/// Fails if the next hop is not found, or the interface fails.
pub fn ping(
    host: &mut PacketSocketHost,
    options: &PingOptions,
    stop: &AtomicBool,
    mut show: impl FnMut(&PingReply),
) -> Result<PingReport, HostError> {
    let (source, next_hop) = host.resolve(options.target)?;
    let mut request = EchoRequest {
        macs: (host.host().mac, next_hop),
        source,
        destination: options.target,
        identifier: std::process::id() as u16,
        sequence: 0,
        payload: (0..options.payload).map(|byte| byte as u8).collect(),
    };
    let mut requests: Vec<SentRequest> = Vec::new();
    let mut duplicated = 0;
    let mut round_trips: Vec<u64> = Vec::new();
    let begun = clock::now();
    for number in 0..options.count {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // The field has 16 bits, so only the last 65,536 requests are distinguishable.
        request.sequence = number as u16;
        let Some(frame) = request.frame() else { break };
        let at = clock::now();
        requests.push(SentRequest { at, is_answered: false });
        host.send(&frame)?;
        let is_last = number + 1 == options.count;
        let end = if is_last {
            at.saturating_add(options.patience)
        } else {
            let past = options.interval.as_nanos().saturating_mul(number + 1);
            begun.saturating_add(Duration::from_nanos(past))
        };
        loop {
            // Wait in short steps, so that a stop takes effect soon.
            let until = end.min(clock::now().saturating_add(LOOK_INTERVAL));
            host.listen(until, |event, arrival| {
                let HostEvent::EchoReply(reply) = event else { return ControlFlow::Continue(()) };
                if reply.identifier != request.identifier || reply.source != options.target {
                    return ControlFlow::Continue(());
                }
                let behind = u64::from((number as u16).wrapping_sub(reply.sequence));
                let Some(sequence) = number.checked_sub(behind) else {
                    return ControlFlow::Continue(());
                };
                let sent = &mut requests[sequence as usize];
                if sent.is_answered {
                    duplicated += 1;
                    return ControlFlow::Continue(());
                }
                sent.is_answered = true;
                let round_trip_ns = arrival.saturating_since(sent.at).as_nanos();
                round_trips.push(round_trip_ns);
                show(&PingReply {
                    sequence,
                    hop_limit: reply.hop_limit,
                    round_trip_ns,
                    intact: reply.payload == request.payload,
                });
                // All replies have arrived.
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
        sent: requests.len() as u64,
        received: count,
        duplicated,
        min_ns: round_trips.iter().min().copied(),
        mean_ns: (count > 0).then(|| sum as f64 / count as f64),
        max_ns: round_trips.iter().max().copied(),
    })
}

struct SentRequest {
    at: Instant,
    is_answered: bool,
}
