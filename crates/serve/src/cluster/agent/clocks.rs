//! How an agent compares its clock: STAMP sessions of a test, and the PTP session of the agent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wirestorm_control::base::time::Duration;
use wirestorm_control::clock;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::sync::estimate::{Estimate, Timeline};
use wirestorm_control::sync::timestamp::Timestamp;
use wirestorm_control::sync::{PtpMonitor, STAMP_ERROR_NS, SessionOptions, StampSession};

use super::super::protocol::{EXCHANGES_MIN, OffsetReport, Peer, PeerReport, PtpReport};

/// Latest exchanges from which the present offset is computed.
const RECENT_EXCHANGES: usize = 1_000;

/// Sessions with the reflector of another agent, one for each of its addresses.
#[derive(Debug)]
pub(super) struct PeerSessions(pub(super) Vec<PeerSession>);

#[derive(Debug)]
pub(super) struct PeerSession {
    pub(super) address: SocketAddr,
    pub(super) session: StampSession,
    /// Request of the last exchange that is in the log or on its way.
    pub(super) logged_until: Timestamp,
}

impl PeerSessions {
    /// Starts to exchange time stamps with a peer. `number`: of the peer.
    ///
    /// # Errors
    /// A socket does not open.
    pub(super) fn start(number: usize, peer: &Peer) -> Result<Self, String> {
        let start = |address: &SocketAddr| {
            let any: IpAddr = match address.is_ipv4() {
                true => Ipv4Addr::UNSPECIFIED.into(),
                false => Ipv6Addr::UNSPECIFIED.into(),
            };
            let options = SessionOptions {
                namespace: Namespace::Current,
                source: SocketAddr::new(any, 0),
                target: *address,
                interval: Duration::from_nanos(peer.interval_ns),
                quick: EXCHANGES_MIN as u64,
                count: None,
                session: number as u16 | 1,
            };
            let session = StampSession::start(options).map_err(|error| error.to_string())?;
            let logged_until = Timestamp::from_nanos(i64::MIN);
            Ok(PeerSession { address: *address, session, logged_until })
        };
        Ok(Self(peer.addresses.iter().map(start).collect::<Result<_, String>>()?))
    }

    /// Returns the session whose path has the shortest round trip.
    fn best(&self) -> Option<&PeerSession> {
        let round_trip = |it: &&PeerSession| it.session.round_trip_min().unwrap_or(i64::MAX);
        self.0.iter().min_by_key(round_trip)
    }

    /// Reports the exchanges, and the offset on request: it takes some time to compute.
    pub(super) fn report(&self, with_offset: bool) -> Option<PeerReport> {
        let PeerSession { address, session, .. } = self.best()?;
        let timeline = match with_offset {
            true => Timeline::new(&session.latest(RECENT_EXCHANGES)),
            false => Timeline::default(),
        };
        let offset = timeline.at(now()).map(|mut estimate| {
            estimate.half_width_ns += STAMP_ERROR_NS;
            OffsetReport::from(estimate)
        });
        Some(PeerReport { address: *address, exchanges: session.count(), offset })
    }
}

/// Reports the PTP session of the agent, and the offset on request: it takes some time to compute.
pub(super) fn ptp_report(monitor: &PtpMonitor, with_offset: bool) -> PtpReport {
    let state = monitor.state(with_offset);
    PtpReport {
        session: monitor.options().to_string(),
        is_master: monitor.is_master(),
        source: state.source,
        problem: state.problem,
        exchanges: state.exchanges,
        offset: state.offset.map(OffsetReport::from),
    }
}

impl From<Estimate> for OffsetReport {
    fn from(estimate: Estimate) -> Self {
        Self {
            offset_ns: estimate.offset_ns,
            half_width_ns: estimate.half_width_ns,
            bound_ns: estimate.bound_ns(),
            drift_ppm: estimate.drift_ppm,
        }
    }
}

/// Returns the present time by the agent's clock.
pub(super) fn now() -> Timestamp {
    clock::node_time(clock::now())
}
