//! Port that encapsulates the frames it sends.

use alloc::sync::Arc;

use wirestorm_base::port::{Capabilities, FrameId, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_base::wrapper;

use super::outer::{IPV4_LENGTH, IPV6_LENGTH, OutgoingPacket};
use super::{Tunnel, TunnelCounters, TunnelTable};

/// Sending port that puts IP packets into the tunnels of clients. Without a table, this is the port
/// itself.
#[derive(Debug)]
pub struct EncapsulatingPort<Port> {
    port: Port,
    tunnels: Option<Tunnels>,
}

#[derive(Debug)]
struct Tunnels {
    /// The port's capabilities, reduced by the tunnel headers.
    capabilities: Capabilities,
    table: Arc<TunnelTable>,
    /// Tunnels changed during the run; these take precedence.
    changed: Arc<TunnelTable>,
    counters: TunnelCounters,
}

impl<Port: Transmit> EncapsulatingPort<Port> {
    /// Creates a port with tunnels, or a plain port. An empty table reserves room for IPv6 headers.
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

    /// Replaces the tunnels changed during the run; these take precedence over the initial table.
    pub fn change(&mut self, changed: Arc<TunnelTable>) {
        if let Some(tunnels) = &mut self.tunnels {
            tunnels.changed = changed;
        }
    }

    /// Returns the port below.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Returns the port below the tunnels.
    pub fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// Returns the counters, if there are tunnels.
    pub fn counters(&self) -> Option<TunnelCounters> {
        self.tunnels.as_ref().map(|it| it.counters)
    }
}

impl Tunnels {
    fn of(&self, packet: &OutgoingPacket) -> Option<Tunnel> {
        let of = |client| self.changed.of(client).or_else(|| self.table.of(client));
        of(packet.source).or_else(|| of(packet.destination).map(Tunnel::reversed))
    }

    /// Encapsulates a frame of `length` bytes; returns its new length, or `None` to drop it.
    fn encapsulate(
        &mut self,
        buffer: &mut [u8],
        length: usize,
        port: &Capabilities,
    ) -> Option<usize> {
        let Some(packet) = OutgoingPacket::of(buffer.get(..length)?) else { return Some(length) };
        let Some(tunnel) = self.of(&packet) else {
            self.counters.no_tunnel += 1;
            return None;
        };
        let length = packet.encapsulate(&tunnel, buffer, length);
        let length = length.filter(|length| port.accepts(&buffer[..*length]));
        match length {
            Some(_) => self.counters.encapsulated += 1,
            None => self.counters.too_long += 1,
        }
        length
    }
}

impl<Port: Transmit> wrapper::TransmitWrapper for EncapsulatingPort<Port> {
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

    /// Sends a frame. Frames without a tunnel or too long for one are counted here, not by the
    /// port.
    #[inline]
    fn send(&mut self, frame: FrameId, length: usize, departure: Instant) {
        let length = match &mut self.tunnels {
            None => Some(length),
            Some(tunnels) => {
                tunnels.capabilities.assert_length(length);
                // Copy the capabilities, because the buffer borrows the port.
                let capabilities = *self.port.capabilities();
                tunnels.encapsulate(self.port.frame_mut(&frame), length, &capabilities)
            }
        };
        match length {
            Some(length) => self.port.send(frame, length, departure),
            None => self.port.release(frame),
        }
    }

    /// Returns no segmentation offload with tunnels: the port cannot segment packets inside them.
    #[inline]
    fn segmented_length_max(&self) -> Option<usize> {
        match self.tunnels {
            None => self.port.segmented_length_max(),
            Some(_) => None,
        }
    }
}
