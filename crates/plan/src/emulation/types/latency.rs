//! Probes that measure latency beside the load.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;

/// Questions from a port, beside what its clients and servers do: how long answers take.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyProbe {
    /// The port whose own address asks, by its place in the plan.
    pub from: usize,
    /// Who is asked.
    pub to: IpAddr,
    /// By what.
    pub protocol: ProbeProtocol,
    /// Weight.
    pub rate: Rate,
    /// Where it stands in the plan.
    pub path: String,
}

/// What a probe asks by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeProtocol {
    /// Echo requests of ICMP or ICMPv6, which every host answers.
    Icmp,
    /// Datagrams to a port, sent back by another port of the plan, or by a host's echo service.
    Udp {
        /// The port, 7 where nothing is said (RFC 862).
        port: u16,
    },
}
