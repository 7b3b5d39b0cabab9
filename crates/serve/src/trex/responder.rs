//! A port as a host: answers to ARP, neighbour discovery and pings.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use wirestorm_control::af_packet::Direction;
use wirestorm_control::stack::{Host, HostEvent};
use wirestorm_control::wire::packet::MacAddress;
use wirestorm_control::wire::prefix::Prefix;

use super::frame_socket::{Frame, FrameSocket, compiled};
use super::interface::Interface;
use super::packets::PacketSender;
use super::port::Layers;

/// Frames that need an answer, also in VLANs.
const FILTER: &str = "(arp or icmp or icmp6) or (vlan and (arp or icmp or icmp6)) or \
                      (vlan and (arp or icmp or icmp6))";
/// TPIDs of one tag, and of two: IEEE 802.1Q and 802.1ad.
const TPID: u16 = 0x8100;
const OUTER_TPID: u16 = 0x88a8;

/// A thread that answers for a port. Dropping it ends the answers.
pub(super) struct Responder {
    _socket: FrameSocket,
}

impl Responder {
    /// Announces the addresses and starts to answer.
    ///
    /// # Errors
    /// The interface cannot be used.
    pub(super) fn start(interface: &Interface, layers: &Layers) -> Result<Self, String> {
        let host = host(interface.facts().mac, layers);
        let mut sender = PacketSender::new(interface.name.clone());
        let pushed = Arc::clone(&interface.pushed);
        sender.send(&host.announcements(), Duration::ZERO, &pushed)?;
        let handle = move |frame: Frame<'_>| {
            if let HostEvent::Reply(answer) = host.handle_frame(frame.bytes) {
                // A neighbour that gets no answer asks again.
                let _ = sender.send(&[answer], Duration::ZERO, &pushed);
            }
        };
        let filter = compiled(&interface.name, FILTER)?;
        let socket = FrameSocket::open(&interface.name, Direction::Arriving, filter, true, handle)?;
        Ok(Self { _socket: socket })
    }
}

fn host(mac: MacAddress, layers: &Layers) -> Host {
    let mut addresses = Vec::new();
    let mut add = |address: IpAddr, length| {
        addresses.push(Prefix { address, length });
    };
    if let Some((source, _, _)) = layers.ipv4 {
        add(source.into(), 24);
    }
    if let Some(source) = layers.ipv6 {
        add(link_local(mac).into(), 64);
        if let Some(source) = source {
            add(source.into(), 64);
        }
    }
    let tpids: &[u16] = match layers.vlans.len() {
        2 => &[OUTER_TPID, TPID],
        _ => &[TPID],
    };
    let tags = layers.vlans.iter().zip(tpids);
    let tags = tags.flat_map(|(vlan, tpid)| [tpid.to_be_bytes(), vlan.to_be_bytes()].concat());
    Host { mac, addresses, tags: tags.collect(), ..Host::default() }
}

/// Returns the link-local address with a modified EUI-64 identifier (RFC 4291 appendix A).
fn link_local(mac: MacAddress) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0xfe, 0x80]);
    bytes[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_has_the_addresses_and_tags_of_the_port() {
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let layers = Layers {
            ipv4: Some(("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap(), false)),
            ipv6: Some(None),
            vlans: vec![100, 200],
            ..Layers::default()
        };
        let host = host(mac, &layers);
        assert!(host.owns("192.0.2.1".parse().unwrap()));
        assert!(host.owns("fe80::ff:fe00:1".parse().unwrap()));
        assert_eq!(host.tags, [0x88, 0xa8, 0, 100, 0x81, 0, 0, 200]);
    }
}
