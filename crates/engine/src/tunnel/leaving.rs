//! A port whose frames leave in tunnels.

use alloc::sync::Arc;

use wirestorm_base::port::{Capabilities, FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;

use super::outer::{IPV4_LENGTH, IPV6_LENGTH, Leaving};
use super::{Tunnel, TunnelCounters, TunnelTable};

/// A sending port whose packets of IP leave in the tunnels of clients. Without any it is the port
/// itself.
#[derive(Debug)]
pub struct Tunnelled<Port> {
    port: Port,
    tunnels: Option<Tunnels>,
}

#[derive(Debug)]
struct Tunnels {
    /// The port's, for what is within.
    capabilities: Capabilities,
    table: Arc<TunnelTable>,
    /// Those that were told since, which come first.
    changed: Arc<TunnelTable>,
    counters: TunnelCounters,
}

impl<Port: Transmit> Tunnelled<Port> {
    /// A port with tunnels, or none. Where none of them is known yet, they may be over IPv6.
    pub fn new(port: Port, table: Option<Arc<TunnelTable>>) -> Self {
        let tunnels = table.map(|table| {
            let is_ipv4 = table.ranges() > 0 && !table.has_ipv6();
            let around = if is_ipv4 { IPV4_LENGTH } else { IPV6_LENGTH };
            let all = port.capabilities();
            let capabilities = Capabilities {
                frame_length_max: all.frame_length_max.saturating_sub(around),
                untagged_length_max: all.untagged_length_max.saturating_sub(around),
                ..*all
            };
            let (changed, counters) = Default::default();
            Tunnels { capabilities, table, changed, counters }
        });
        Self { port, tunnels }
    }

    /// Puts tunnels in front of those that it has; in place of those that it was told before.
    pub fn change(&mut self, changed: Arc<TunnelTable>) {
        if let Some(tunnels) = &mut self.tunnels {
            tunnels.changed = changed;
        }
    }

    /// The port itself.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The port itself, past the tunnels.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// What became of frames that were to be put into tunnels, where there are any.
    pub fn counters(&self) -> Option<TunnelCounters> {
        self.tunnels.as_ref().map(|it| it.counters)
    }
}

impl Tunnels {
    fn of(&self, packet: &Leaving) -> Option<Tunnel> {
        let of = |client| self.changed.of(client).or_else(|| self.table.of(client));
        of(packet.source).or_else(|| of(packet.destination).map(Tunnel::reversed))
    }

    /// Makes a frame of so many bytes what is to be sent; returns how many they are then.
    fn put_in(&mut self, buffer: &mut [u8], length: usize, port: &Capabilities) -> Option<usize> {
        let Some(packet) = Leaving::of(buffer.get(..length)?) else { return Some(length) };
        let Some(tunnel) = self.of(&packet) else {
            self.counters.no_tunnel += 1;
            return None;
        };
        let length = packet.put_into(&tunnel, buffer, length);
        let length = length.filter(|length| port.accepts(&buffer[..*length]));
        match length {
            Some(_) => self.counters.encapsulated += 1,
            None => self.counters.too_long += 1,
        }
        length
    }
}

impl<Port: Transmit> wrapper::TransmitWrapper for Tunnelled<Port> {
    type Port = Port;

    #[inline]
    fn inner(&self) -> &Port {
        &self.port
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    #[inline]
    fn capabilities(&self) -> &Capabilities {
        match &self.tunnels {
            None => self.port.capabilities(),
            Some(tunnels) => &tunnels.capabilities,
        }
    }

    /// A frame that has no tunnel, or no room for one, is among the tunnels' counters instead of the
    /// port's.
    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        let length = match &mut self.tunnels {
            None => Some(length),
            Some(tunnels) => {
                tunnels.capabilities.assert_length(length);
                // Of a copy, as the buffer is the port's as well.
                let capabilities = *self.port.capabilities();
                tunnels.put_in(self.port.frame_mut(&frame), length, &capabilities)
            }
        };
        match length {
            Some(length) => self.port.send(frame, length, departure),
            None => self.port.release(frame),
        }
    }

    /// Nothing is cut that is in a tunnel.
    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        match self.tunnels {
            None => self.port.segmented_length_max(),
            Some(_) => None,
        }
    }
}
