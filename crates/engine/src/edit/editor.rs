//! Editor that applies all configured edits to a frame.

use super::address::AddressEdits;
use super::frame::{Frame, FrameFacts};
use super::fuzz::damage;
use super::link::LinkEdits;
use super::network::NetworkEdits;
use super::transport::TransportEdits;
use super::vlan::edit_vlan;
use wirestorm_model::edit::{EditOptions, Fuzz, TruncatedFrameAction, VlanEdit};

/// Result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditResult {
    /// New length of the frame in bytes without FCS.
    Length(usize),
    /// The frame must not be sent.
    Drop,
}

/// Edits frames. Clones are cheap because they share tables.
#[derive(Clone, Debug)]
pub struct Editor {
    is_identity: bool,
    /// Whether an option edits anything behind the Ethernet header and VLAN tags.
    edits_packet: bool,
    remove_fcs: bool,
    link: LinkEdits,
    vlan: Option<VlanEdit>,
    network: NetworkEdits,
    transport: TransportEdits,
    fuzz: Option<Fuzz>,
    captured_short: Option<TruncatedFrameAction>,
    mtu_truncate: Option<u32>,
    addresses: AddressEdits,
    fix_header_length: bool,
    fix_checksums: bool,
}

const FCS_LENGTH: usize = 4;

impl Editor {
    /// Creates an editor. Values that are too wide for their field lose their upper bits.
    pub fn new(options: &EditOptions) -> Self {
        Self {
            is_identity: *options == EditOptions::default(),
            edits_packet: looks_inside(options),
            remove_fcs: options.remove_fcs,
            link: LinkEdits::new(options),
            vlan: options.vlan,
            network: NetworkEdits::new(options),
            transport: TransportEdits::new(options),
            fuzz: options.fuzz,
            captured_short: options.truncated_frames,
            mtu_truncate: options.mtu_truncate,
            addresses: AddressEdits::new(options),
            fix_header_length: options.fix_header_length,
            fix_checksums: options.fix_checksums,
        }
    }

    /// Returns whether the editor changes no frame.
    pub const fn is_identity(&self) -> bool {
        self.is_identity
    }

    /// Returns by how many bytes a frame may grow, not counting [`TruncatedFrameAction::Pad`]. A buffer
    /// needs this much room behind the frame.
    pub const fn frame_length_max_growth(&self) -> usize {
        match self.vlan {
            Some(VlanEdit::Add(_)) => 4,
            _ => 0,
        }
    }

    /// Returns whether truncated frames are padded to their length on the wire.
    pub const fn restores_original_length(&self) -> bool {
        matches!(self.captured_short, Some(TruncatedFrameAction::Pad))
    }

    /// Edits the frame in the first `length` bytes of `buffer`. `original_length` is its length on
    /// the wire.
    ///
    /// If the buffer is too short, a VLAN tag is not added and padding is cut.
    #[inline]
    pub fn apply(
        &self,
        buffer: &mut [u8],
        length: usize,
        original_length: usize,
        facts: FrameFacts,
    ) -> EditResult {
        if self.is_identity {
            return EditResult::Length(length);
        }
        self.edit(buffer, length, original_length, facts)
    }

    #[inline(never)]
    fn edit(
        &self,
        buffer: &mut [u8],
        length: usize,
        original_length: usize,
        facts: FrameFacts,
    ) -> EditResult {
        let mut length = length.min(buffer.len());
        let mut original_length = original_length.max(length);
        if self.remove_fcs {
            original_length = original_length.saturating_sub(FCS_LENGTH);
            length = length.min(original_length);
        }
        let is_short = length < original_length;
        if is_short && self.captured_short == Some(TruncatedFrameAction::Delete) {
            return EditResult::Drop;
        }
        let mut frame = Frame::new(buffer, length, original_length, facts.secondary);
        if !frame.locate(facts, self.edits_packet) {
            if is_short && self.restores_original_length() {
                frame.pad();
            }
            return EditResult::Length(frame.length());
        }
        self.link.edit(&mut frame);
        if let Some(vlan) = &self.vlan {
            edit_vlan(vlan, &mut frame);
        }
        self.network.edit(&mut frame);
        self.transport.edit(&mut frame);
        if let Some(fuzz) = self.fuzz
            && !damage(fuzz, facts.number, &mut frame)
        {
            return EditResult::Drop;
        }
        self.edit_lengths(&mut frame);
        self.addresses.edit(&mut frame);
        if self.fix_header_length {
            frame.shorten_packet_to_frame();
            frame.extend_packet_to_frame();
        }
        frame.finish(self.fix_checksums);
        EditResult::Length(frame.length())
    }

    fn edit_lengths(&self, frame: &mut Frame) {
        if frame.length() < frame.original_length() {
            match self.captured_short {
                Some(TruncatedFrameAction::Pad) => frame.pad(),
                Some(TruncatedFrameAction::Truncate) => frame.shorten_packet_to_frame(),
                Some(TruncatedFrameAction::Delete) | None => {}
            }
        }
        if let Some(mtu) = self.mtu_truncate {
            frame.cut_to_mtu(mtu as usize);
        }
    }
}

/// Returns whether an option edits anything behind the Ethernet header and VLAN tags.
fn looks_inside(options: &EditOptions) -> bool {
    let link_alone = EditOptions {
        remove_fcs: options.remove_fcs,
        destination_mac: options.destination_mac,
        source_mac: options.source_mac,
        substituted_macs: options.substituted_macs.clone(),
        mac_seed: options.mac_seed,
        keep_group_macs: options.keep_group_macs,
        vlan: options.vlan,
        ..EditOptions::default()
    };
    *options != link_alone
}
