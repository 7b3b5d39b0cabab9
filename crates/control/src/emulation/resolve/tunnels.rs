//! Tunnels of a port: encapsulation table, endpoints and report.

use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_engine::tunnel::{TunnelCounters, TunnelTable};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::traffic::Port;

use crate::result::TunnelsReport;

/// Sums the tunnel counters of a port's transmit and receive side; `None` without tunnels.
pub(in crate::emulation) fn report(ends: [Option<TunnelCounters>; 2]) -> Option<TunnelsReport> {
    let [Some(mut all), Some(arrived)] = ends else { return None };
    all.merge(&arrived);
    Some(TunnelsReport {
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
        truncated: all.truncated,
        inner_not_ip: all.inner_not_ip,
        not_ecn_capable: all.not_ecn_capable,
    })
}

/// Returns the encapsulation table of a port; `None` without tunnels.
pub(in crate::emulation) fn table(port: &Port) -> Option<Arc<TunnelTable>> {
    port.tunnels.as_ref().map(|tunnels| Arc::new(tunnels.iter().collect()))
}

/// Returns the destination of encapsulated frames: the far end of the first tunnel. The far ends of
/// all tunnels are expected behind the same next hop.
pub(in crate::emulation) fn far_end(port: &Port) -> Option<IpAddr> {
    port.tunnels.as_ref()?.first().map(|tunnels| tunnels.to)
}

/// Returns the tunnel endpoints at a port: `src` if the port has clients, `dst` otherwise.
pub(in crate::emulation) fn local_endpoints(
    plan: &EmulationPlan,
    index: usize,
    port: &Port,
) -> Vec<IpAddr> {
    let clients = plan.templates.iter().filter_map(|it| it.client.as_ref());
    let has_clients = clients.into_iter().any(|client| client.transmit == index);
    let tunnels = port.tunnels.iter().flatten();
    let mut ends: Vec<_> =
        tunnels.map(|tunnels| if has_clients { tunnels.from } else { tunnels.to }).collect();
    ends.dedup();
    ends
}
