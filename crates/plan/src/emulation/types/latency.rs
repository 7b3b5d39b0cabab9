//! Latency probes, sent in addition to the load.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;

/// A latency probe: a port sends requests and measures the time to each response.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyProbe {
    /// Index of the sending port in [`EmulationPlan::ports`]. Requests come from its first address.
    ///
    /// [`EmulationPlan::ports`]: super::EmulationPlan::ports
    pub from: usize,
    /// Destination address.
    pub to: IpAddr,
    /// Protocol of the requests.
    pub protocol: ProbeProtocol,
    /// Requests per second.
    pub rate: Rate,
    /// Path of the probe in the plan, for messages.
    pub path: String,
}

/// Protocol of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeProtocol {
    /// ICMP or ICMPv6 echo requests, which every host answers.
    Icmp,
    /// UDP datagrams. Another port of the plan or a host's echo service sends them back.
    Udp {
        /// Destination port. Default 7 (RFC 862).
        port: u16,
    },
}
