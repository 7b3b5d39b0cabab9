//! Flows that a device did not report as they were sent.

use std::net::SocketAddr;

use wirestorm_flowexport::flow_table::{Comparison, Difference};
use wirestorm_method::trial::FlowDifference;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

/// Most flows of a trial that are listed.
pub(super) const DIFFERENCES_MAX: usize = 10;

/// Lists differences without the flow `filler`.
pub(super) fn list(comparison: &Comparison, filler: FlowKey) -> Vec<FlowDifference> {
    let listed = comparison.examples.iter().filter(|it| it.key != filler);
    listed.take(DIFFERENCES_MAX).map(difference).collect()
}

fn difference(found: &Difference) -> FlowDifference {
    FlowDifference {
        flow: flow_text(found.key),
        packets_sent: found.sent.map(|sent| sent.packets),
        packets_reported: found.reported.map(|sums| sums.packets),
        bytes_sent: found.sent.map(|sent| sent.bytes),
        bytes_reported: found.reported.map(|sums| sums.bytes),
    }
}

/// Returns the fields of a key: `192.0.2.1:4000 > 198.51.100.1:53 UDP`.
fn flow_text(key: FlowKey) -> String {
    let (source, destination) = (key.source(), key.destination());
    let (first, second) = (key.source_port(), key.destination_port());
    let name = match key.protocol() {
        protocol::ICMP | protocol::ICMPV6 => {
            let version = if key.version() == 6 { "v6" } else { "" };
            return format!("{source} > {destination} ICMP{version} type {first} code {second}");
        }
        protocol::TCP => "TCP",
        protocol::UDP => "UDP",
        protocol::SCTP => "SCTP",
        number => return format!("{source} > {destination} protocol {number}"),
    };
    let (source, destination) =
        (SocketAddr::new(source, first), SocketAddr::new(destination, second));
    format!("{source} > {destination} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_show_their_key() {
        let ipv4 = |protocol| FlowKey::ipv4([192, 0, 2, 1], [198, 51, 100, 1], protocol);
        let ipv6 = |protocol| FlowKey::ipv6([1; 16], [2; 16], protocol);
        for (key, expected) in [
            (ipv4(17).with_ports(4000, 53), "192.0.2.1:4000 > 198.51.100.1:53 UDP"),
            (ipv4(1).with_ports(3, 1), "192.0.2.1 > 198.51.100.1 ICMP type 3 code 1"),
            (ipv4(2), "192.0.2.1 > 198.51.100.1 protocol 2"),
            (
                ipv6(6).with_ports(80, 5000),
                "[101:101:101:101:101:101:101:101]:80 > [202:202:202:202:202:202:202:202]:5000 TCP",
            ),
        ] {
            assert_eq!(flow_text(key), expected);
        }
    }
}
