//! Edits of IP header fields other than lengths and addresses.

use wirestorm_wire::packet::{ipv4, ipv6};

use super::frame::{Frame, Kind};
use wirestorm_model::edit::{EditOptions, TimeToLiveEdit};

/// New values of IP header fields.
#[derive(Clone, Debug)]
pub(super) struct NetworkEdits {
    type_of_service: Option<u8>,
    traffic_class: Option<u8>,
    flow_label: Option<u32>,
    time_to_live: Option<TimeToLiveEdit>,
}

const FLOW_LABEL: u32 = 0x000f_ffff;
const TRAFFIC_CLASS: u32 = 0x0ff0_0000;
const TRAFFIC_CLASS_SHIFT: u32 = 20;

impl NetworkEdits {
    pub(super) fn new(options: &EditOptions) -> Self {
        Self {
            type_of_service: options.type_of_service,
            traffic_class: options.traffic_class,
            flow_label: options.flow_label,
            time_to_live: options.time_to_live,
        }
    }

    #[inline]
    pub(super) fn edit(&self, frame: &mut Frame) {
        match frame.kind {
            Kind::Ipv4 => self.edit_ipv4(frame),
            Kind::Ipv6 => self.edit_ipv6(frame),
            Kind::Arp | Kind::Other => {}
        }
    }

    fn edit_ipv4(&self, frame: &mut Frame) {
        // Each field shares a checksum word with a neighbour.
        const VERSION: usize = ipv4::field::VERSION_LENGTH.start;
        const TIME_TO_LIVE: usize = ipv4::field::TIME_TO_LIVE.start;
        if let Some(type_of_service) = self.type_of_service
            && let Some([version, _]) = frame.bytes_at(frame.network + VERSION)
        {
            frame.set_header_word(VERSION, u16::from_be_bytes([version, type_of_service]));
        }
        if let Some(edit) = self.time_to_live
            && let Some([old, protocol]) = frame.bytes_at(frame.network + TIME_TO_LIVE)
        {
            let new = u16::from_be_bytes([edited(edit, old), protocol]);
            frame.set_header_word(TIME_TO_LIVE, new);
        }
    }

    /// Edits the IPv6 header. No checksum covers these fields.
    fn edit_ipv6(&self, frame: &mut Frame) {
        if let Some(edit) = self.time_to_live {
            let at = frame.network + ipv6::field::HOP_LIMIT.start;
            if let Some([old]) = frame.bytes_at(at) {
                frame.write(at, &[edited(edit, old)]);
            }
        }
        if self.traffic_class.is_none() && self.flow_label.is_none() {
            return;
        }
        let at = frame.network + ipv6::field::VERSION_CLASS_LABEL.start;
        let Some(mut word) = frame.bytes_at(at).map(u32::from_be_bytes) else { return };
        if let Some(class) = self.traffic_class {
            word = word & !TRAFFIC_CLASS | u32::from(class) << TRAFFIC_CLASS_SHIFT;
        }
        if let Some(label) = self.flow_label {
            word = word & !FLOW_LABEL | label & FLOW_LABEL;
        }
        frame.write(at, &word.to_be_bytes());
    }
}

const fn edited(edit: TimeToLiveEdit, old: u8) -> u8 {
    match edit {
        TimeToLiveEdit::Set(new) => new,
        TimeToLiveEdit::Add(more) => old.saturating_add(more),
        // A packet must not be sent with a time to live of zero (RFC 1122 section 3.2.1.7).
        TimeToLiveEdit::Subtract(less) => match old.saturating_sub(less) {
            0 => 1,
            new => new,
        },
    }
}
