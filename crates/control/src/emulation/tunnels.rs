//! Tunnels of ports: what they are made of, and what became of frames.

use std::net::IpAddr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_engine::tunnel::{TunnelCounters, TunnelTable};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::traffic::Port;

/// What became of frames in tunnels of GTP-U, where a port has any.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TunnelsReport {
    /// Frames that were put into a tunnel.
    pub encapsulated: u64,
    /// Frames that were taken out of one.
    pub decapsulated: u64,
    /// Frames that were not sent or taken; the sum of the eleven that follow.
    pub dropped: u64,
    /// Frames that were not sent, for neither sender nor receiver has a tunnel.
    pub no_tunnel: u64,
    /// Frames that were not sent, for they are too long with a tunnel's headers.
    pub too_long: u64,
    /// Frames that arrived with a damaged IP header.
    pub bad_ip: u64,
    /// Datagrams around a packet whose checksum is wrong.
    pub bad_checksum: u64,
    /// Fragments of what is around a packet.
    pub fragments: u64,
    /// Frames of TCP that arrived in no tunnel.
    pub not_udp: u64,
    /// Datagrams that arrived in no tunnel: at another port than 2152.
    pub other_port: u64,
    /// Messages of GTP of other versions or types than users' packets.
    pub other_message: u64,
    /// Frames that end before what is in them, as they say.
    pub cut_short: u64,
    /// Tunnels with anything but a packet of IP in them.
    pub bad_inner: u64,
    /// Packets that met congestion in a tunnel, and cannot be told so.
    pub not_ecn_capable: u64,
}

impl TunnelsReport {
    /// Of both ends of a port, the one where frames leave and the one where they arrive.
    pub(super) fn of(ends: [Option<TunnelCounters>; 2]) -> Option<Self> {
        let [Some(mut all), Some(arrived)] = ends else { return None };
        all.merge(&arrived);
        Some(Self {
            encapsulated: all.encapsulated,
            decapsulated: all.decapsulated,
            dropped: all.dropped(),
            no_tunnel: all.no_tunnel,
            too_long: all.too_long,
            bad_ip: all.bad_ip,
            bad_checksum: all.bad_checksum,
            fragments: all.fragments,
            not_udp: all.not_udp,
            other_port: all.other_port,
            other_message: all.other_message,
            cut_short: all.cut_short,
            bad_inner: all.bad_inner,
            not_ecn_capable: all.not_ecn_capable,
        })
    }
}

/// The tunnels of a port, where it has any.
pub(super) fn table(port: &Port) -> Option<Arc<TunnelTable>> {
    port.tunnels.as_ref().map(|tunnels| Arc::new(tunnels.iter().collect()))
}

/// Whom frames of a port's clients go to, instead of their servers: the end of the first tunnel.
/// Others are thought to be behind the same neighbour.
pub(super) fn far_end(port: &Port) -> Option<IpAddr> {
    port.tunnels.as_ref()?.first().map(|tunnels| tunnels.to)
}

/// The ends of tunnels that are at a port: at its clients, or at its servers.
pub(super) fn own_ends(plan: &EmulationPlan, index: usize, port: &Port) -> Vec<IpAddr> {
    let clients = plan.templates.iter().filter_map(|it| it.client.as_ref());
    let has_clients = clients.into_iter().any(|client| client.transmit == index);
    let tunnels = port.tunnels.iter().flatten();
    let mut ends: Vec<_> =
        tunnels.map(|tunnels| if has_clients { tunnels.from } else { tunnels.to }).collect();
    ends.dedup();
    ends
}
