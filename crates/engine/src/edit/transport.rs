//! Edits of ports and TCP sequence numbers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_wire::packet::{protocol, tcp};

use super::frame::Frame;
use super::random::Random;
use wirestorm_model::edit::EditOptions;

/// New values of transport header fields.
#[derive(Clone, Debug)]
pub(super) struct TransportEdits {
    /// New port for each of the 65,536 ports, so that lookup time is constant.
    ports: Option<Arc<[u16]>>,
    sequence_offset: Option<u32>,
}

impl TransportEdits {
    pub(super) fn new(options: &EditOptions) -> Self {
        let ports = (!options.port_map.is_empty()).then(|| {
            let mut ports: Vec<u16> = (0..=u16::MAX).collect();
            // The first mapping wins, so it is written last.
            for mapping in options.port_map.iter().rev() {
                let range = usize::from(mapping.first)..usize::from(mapping.last) + 1;
                if let Some(range) = ports.get_mut(range) {
                    range.fill(mapping.to);
                }
            }
            ports.into()
        });
        Self { ports, sequence_offset: options.tcp_sequence_seed.map(Random::sequence_offset) }
    }

    #[inline]
    pub(super) fn edit(&self, frame: &mut Frame) {
        let Some(transport) = frame.transport else { return };
        if let Some(ports) = &self.ports
            && matches!(transport.protocol, protocol::TCP | protocol::UDP)
        {
            map_ports(ports, transport.offset, frame);
        }
        if let Some(offset) = self.sequence_offset
            && transport.protocol == protocol::TCP
        {
            shift_sequence(offset, transport.offset, frame);
        }
    }
}

fn map_ports(ports: &[u16], offset: usize, frame: &mut Frame) {
    // Source and destination port are adjacent.
    let Some([a, b, c, d]) = frame.bytes_at(offset) else { return };
    let mapped = |high, low| {
        let port = u16::from_be_bytes([high, low]);
        ports.get(usize::from(port)).copied().unwrap_or(port).to_be_bytes()
    };
    let ([a, b], [c, d]) = (mapped(a, b), mapped(c, d));
    frame.set_transport_bytes(0, [a, b, c, d]);
}

/// Shifts the sequence number, and the acknowledgement number if ACK is set (RFC 9293 section 3.1).
fn shift_sequence(offset: u32, header: usize, frame: &mut Frame) {
    const SEQUENCE: usize = tcp::field::SEQUENCE.start;
    const ACKNOWLEDGEMENT: usize = tcp::field::ACKNOWLEDGEMENT.start;
    let moved = |number: [u8; 4]| u32::from_be_bytes(number).wrapping_add(offset).to_be_bytes();
    let Some([flags]) = frame.bytes_at(header + tcp::field::FLAGS.start) else { return };
    if let Some(sequence) = frame.bytes_at(header + SEQUENCE) {
        frame.set_transport_bytes(SEQUENCE, moved(sequence));
    }
    if tcp::Flags(flags).contains(tcp::Flags::ACK)
        && let Some(acknowledgement) = frame.bytes_at(header + ACKNOWLEDGEMENT)
    {
        frame.set_transport_bytes(ACKNOWLEDGEMENT, moved(acknowledgement));
    }
}
