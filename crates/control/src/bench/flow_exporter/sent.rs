//! Flows that a trial sent.

use std::net::Ipv4Addr;

use wirestorm_engine::replay::Unique;
use wirestorm_flowexport::flow_table::SentFlow;
use wirestorm_method::trial::FlowAmount;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

/// Flows of a trial.
pub(super) enum SentFlows {
    /// Packets with consecutive source addresses.
    Generated {
        /// Key of the flows, with the first source address.
        first_source: Ipv4Addr,
        destination: Ipv4Addr,
        ports: (u16, u16),
        /// Number of source addresses before they repeat.
        sources: u32,
        packets: u64,
        /// Bytes of the IP packet.
        bytes: u64,
    },
    /// Passes of a capture.
    Passes {
        /// Flows of one pass.
        flows: Vec<SentFlow>,
        unique: Unique,
        passes: u64,
    },
}

impl SentFlows {
    /// Returns the sums of all flows.
    pub(super) fn amount(&self) -> FlowAmount {
        match self {
            Self::Generated { sources, packets, bytes, .. } => FlowAmount {
                flows: (*packets).min(u64::from(*sources)),
                packets: *packets,
                bytes: packets * bytes,
            },
            Self::Passes { flows, passes, .. } => FlowAmount {
                flows: flows.len() as u64 * passes,
                packets: flows.iter().map(|flow| flow.packets).sum::<u64>() * passes,
                bytes: flows.iter().map(|flow| flow.bytes).sum::<u64>() * passes,
            },
        }
    }

    /// Iterates over all flows.
    pub(super) fn flows(&self) -> Box<dyn Iterator<Item = SentFlow> + '_> {
        match self {
            &Self::Generated { first_source, destination, ports, sources, packets, bytes } => {
                let (all, sources) = (packets, u64::from(sources));
                let flow = move |number: u64| {
                    let source = first_source.to_bits().wrapping_add(number as u32);
                    let source = Ipv4Addr::from_bits(source).octets();
                    let key = FlowKey::ipv4(source, destination.octets(), protocol::UDP);
                    // The first addresses repeat once more than the others.
                    let packets = all / sources + u64::from(number < all % sources);
                    let key = key.with_ports(ports.0, ports.1);
                    SentFlow { key, packets, bytes: packets * bytes }
                };
                Box::new((0..all.min(sources)).map(flow))
            }
            Self::Passes { flows, unique, passes } => {
                Box::new((0..*passes).flat_map(move |pass| {
                    let iteration = unique.iteration(pass);
                    flows.iter().map(move |flow| SentFlow {
                        key: unique.key_in_iteration(flow.key, iteration),
                        ..*flow
                    })
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_flows_repeat_after_the_last_source() {
        let sent = SentFlows::Generated {
            first_source: [10, 0, 0, 1].into(),
            destination: [198, 19, 0, 1].into(),
            ports: (49_184, 7),
            sources: 3,
            packets: 7,
            bytes: 46,
        };
        assert_eq!(sent.amount(), FlowAmount { flows: 3, packets: 7, bytes: 322 });
        let flows: Vec<_> = sent.flows().collect();
        let packets: Vec<_> = flows.iter().map(|flow| (flow.packets, flow.bytes)).collect();
        assert_eq!(packets, [(3, 138), (2, 92), (2, 92)]);
        assert_eq!(flows[2].key.source(), Ipv4Addr::new(10, 0, 0, 3));
    }
}
