//! Builds the frame of a record: converts the link-layer header to Ethernet, changes addresses by
//! pass and applies edits.

use wirestorm_base::port::Capabilities;
use wirestorm_base::resident::Moving;
use wirestorm_wire::capture::RECORD_LENGTH_MAX;
use wirestorm_wire::checksum;
use wirestorm_wire::packet::ethernet;

use crate::edit::{EditOptions, EditResult, Editor, FrameFacts};

use super::chunk::{Chunk, Record, RecordFlags};
use super::unique::{Unique, UniqueFields, addresses_in_iteration, port_in_iteration};

/// Options of a renderer.
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// Edits of every frame.
    pub edits: EditOptions,
    /// Destination and source address by side, for records without an Ethernet header. A source
    /// address in the record takes precedence.
    pub link_addresses: [[u8; 12]; 2],
    /// Address changes by pass.
    pub unique: Option<Unique>,
    /// Whether to pad frames with zeros to their length on the wire.
    pub original_length: bool,
}

/// Builds frames from records.
#[derive(Clone, Debug)]
pub struct Renderer {
    options: RenderOptions,
    editor: Editor,
    /// Iteration of the addresses in this pass.
    iteration: u64,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Renderer {
    /// Creates a renderer for the first pass.
    pub fn new(options: RenderOptions) -> Self {
        let editor = Editor::new(&options.edits);
        Self { options, editor, iteration: 0 }
    }

    /// Starts pass `pass`, counted from 0; returns whether its flows are new.
    pub fn start_pass(&mut self, pass: u64) -> bool {
        let Some(unique) = self.options.unique else { return false };
        let before = self.iteration;
        self.iteration = unique.iteration(pass);
        self.iteration != before
    }

    /// Returns the length of a record's frame before edits, in bytes without FCS. Schedules by bit
    /// rate use it.
    #[inline]
    pub fn frame_length(&self, record: &Record) -> usize {
        let length = record.frame_length();
        if self.options.original_length {
            let cut = record.original_length.saturating_sub(record.captured_length);
            length + cut as usize
        } else {
            length
        }
    }

    /// Returns whether all Ethernet records of this pass are sent as captured.
    pub const fn is_plain(&self) -> bool {
        self.editor.is_identity() && self.iteration == 0 && !self.options.original_length
    }

    /// Returns whether a record's frame equals the captured bytes.
    #[inline]
    pub fn is_verbatim(&self, record: &Record) -> bool {
        self.may_be_verbatim()
            && record.ethertype == 0
            && (self.iteration == 0 || !record.flags.contains(RecordFlags::FLOW))
            && self.frame_length(record) == record.captured_length as usize
    }

    /// Returns whether [`Renderer::is_verbatim`] can hold for any record in any pass.
    pub const fn may_be_verbatim(&self) -> bool {
        self.editor.is_identity()
    }

    /// Returns whether a frame may become shorter than [`Renderer::room`].
    #[inline]
    pub const fn may_shorten(&self) -> bool {
        !self.editor.is_identity()
    }

    /// Returns the buffer length that [`Renderer::render`] needs for a record.
    #[inline]
    pub fn room(&self, record: &Record) -> usize {
        let length = self.frame_length(record);
        if self.editor.is_identity() {
            return length;
        }
        let length = if self.editor.restores_original_length() {
            length.max(self.original_frame_length(record))
        } else {
            length
        };
        length + self.editor.frame_length_max_growth()
    }

    /// Returns whether a record needs more room than any buffer has: its frame is too long. An edit may
    /// cut a frame to the port's limit, so allow more room, but at most the longest record of a
    /// capture. The length that a record claims is not trusted.
    #[inline]
    pub(super) fn exceeds(&self, room: usize, capabilities: &Capabilities) -> bool {
        let room_max = if self.may_shorten() {
            RECORD_LENGTH_MAX as usize
        } else {
            capabilities.frame_length_max
        };
        room > room_max
    }

    /// Returns the length of the frame on the wire.
    #[inline]
    fn original_frame_length(&self, record: &Record) -> usize {
        let cut = record.original_length.saturating_sub(record.captured_length);
        record.frame_length() + cut as usize
    }

    /// Returns whether a frame of `length` bytes is shorter than the record was on the wire.
    #[inline]
    pub fn is_truncated(&self, record: &Record, length: usize) -> bool {
        length < self.original_frame_length(record)
    }

    /// Writes the frame of a record of `chunk` to the start of `buffer`. Returns its length, or
    /// `None` if an edit drops the frame. `number` is the packet's number in its file.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than [`Renderer::room`].
    #[inline]
    pub fn render(
        &self,
        chunk: &Chunk,
        record: &Record,
        number: u64,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let length = self.frame_length(record);
        let data = chunk.data(record);
        let shift = record.new_header_length();
        if shift > 0 {
            buffer[..shift].copy_from_slice(&self.header(chunk, record));
        }
        buffer[shift..][..data.len()].copy_from_slice(data);
        if length > record.frame_length() {
            buffer[record.frame_length()..length].fill(0);
        }
        if self.iteration > 0 && record.flags.contains(RecordFlags::FLOW) {
            self.move_addresses(record, shift, &mut buffer[..length]);
        }
        if self.editor.is_identity() {
            return Some(length);
        }
        let original_length = self.original_frame_length(record);
        match self.editor.apply(buffer, length, original_length, facts(record, shift, number)) {
            EditResult::Length(length) => Some(length),
            EditResult::Drop => None,
        }
    }

    /// Returns the Ethernet header for a record without one.
    fn header(&self, chunk: &Chunk, record: &Record) -> [u8; ethernet::HEADER_LENGTH] {
        let side = usize::from(record.flags.contains(RecordFlags::SECONDARY));
        let mut header = [0; ethernet::HEADER_LENGTH];
        header[..12].copy_from_slice(&self.options.link_addresses[side]);
        if let Some(source) = chunk.source(record) {
            header[6..12].copy_from_slice(source);
        }
        header[12..].copy_from_slice(&record.ethertype.to_be_bytes());
        header
    }

    /// Returns the number of passes with the same addresses, in thousandths; `None`: they stay.
    pub(super) fn passes_milli(&self) -> Option<u64> {
        self.options.unique.map(|unique| unique.passes_milli)
    }

    /// Returns what [`Renderer::render`] changes with the pass in a record's frame; `None` if a port
    /// cannot do the same. `frame`: of the first pass.
    pub(super) fn moving(&self, record: &Record, frame: &[u8]) -> Option<Moving> {
        let Some(unique) = self.options.unique else { return Some(Moving::default()) };
        if !self.editor.is_identity() {
            // An edit may depend on the addresses.
            return None;
        }
        if !record.flags.contains(RecordFlags::FLOW) {
            return Some(Moving::default());
        }
        let shift = record.new_header_length();
        let (source, destination) = address_offsets(record, shift);
        if read_u32(frame, source).is_none() || read_u32(frame, destination).is_none() {
            return Some(Moving::default());
        }
        let mut moving = Moving {
            addresses: Some([u16::try_from(source).ok()?, u16::try_from(destination).ok()?]),
            ..Moving::default()
        };
        let transport = usize::from(record.transport_offset) + shift;
        if unique.what == UniqueFields::AddressesAndPorts
            && let Some(checksum) = checksum_offset(record.protocol, transport)
            && read_u32(frame, transport).is_some()
        {
            let is_udp = record.protocol == UDP;
            moving.ports = Some(u16::try_from(transport).ok()?);
            let sum = read_u16(frame, checksum).filter(|sum| !is_udp || *sum != 0);
            if sum.is_some() {
                moving.checksum = Some((u16::try_from(checksum).ok()?, is_udp));
            }
        }
        Some(moving)
    }

    fn move_addresses(&self, record: &Record, shift: usize, frame: &mut [u8]) {
        let Some(unique) = self.options.unique else { return };
        let transport = usize::from(record.transport_offset) + shift;
        let (source, destination) = address_offsets(record, shift);
        let (Some(source_address), Some(destination_address)) =
            (read_u32(frame, source), read_u32(frame, destination))
        else {
            return;
        };
        let (source_address, destination_address) =
            addresses_in_iteration(source_address, destination_address, self.iteration as u32);
        frame[source..source + 4].copy_from_slice(&source_address.to_be_bytes());
        frame[destination..destination + 4].copy_from_slice(&destination_address.to_be_bytes());
        if unique.what == UniqueFields::AddressesAndPorts {
            move_port(frame, transport, record.protocol, self.iteration);
        }
    }
}

fn facts(record: &Record, shift: usize, number: u64) -> FrameFacts {
    FrameFacts {
        network_offset: record.network_offset.saturating_add(shift as u16),
        transport_offset: record.transport_offset.saturating_add(shift as u16),
        protocol: record.protocol,
        is_ip: record.flags.contains(RecordFlags::FLOW),
        is_ipv6: record.flags.contains(RecordFlags::IPV6),
        secondary: record.flags.contains(RecordFlags::SECONDARY),
        number,
    }
}

/// Returns the offsets of the low 32 bits of both addresses (RFC 791 section 3.1, RFC 8200 section
/// 3).
fn address_offsets(record: &Record, shift: usize) -> (usize, usize) {
    let network = usize::from(record.network_offset) + shift;
    match record.flags.contains(RecordFlags::IPV6) {
        true => (network + 20, network + 36),
        false => (network + 12, network + 16),
    }
}

/// Returns the offset of the checksum of a TCP or UDP packet.
fn checksum_offset(protocol: u8, transport: usize) -> Option<usize> {
    match protocol {
        TCP => Some(transport + 16),
        UDP => Some(transport + 6),
        _ => None,
    }
}

/// Changes the larger of the two ports of a TCP or UDP packet and updates the checksum.
fn move_port(frame: &mut [u8], transport: usize, protocol: u8, n: u64) {
    let Some(checksum_offset) = checksum_offset(protocol, transport) else { return };
    let (Some(source), Some(destination)) =
        (read_u16(frame, transport), read_u16(frame, transport + 2))
    else {
        return;
    };
    let (offset, old) =
        if source >= destination { (transport, source) } else { (transport + 2, destination) };
    let new = port_in_iteration(old, n);
    frame[offset..offset + 2].copy_from_slice(&new.to_be_bytes());
    let Some(sum) = read_u16(frame, checksum_offset) else { return };
    // A UDP checksum of zero means no checksum (RFC 768).
    if protocol == UDP && sum == 0 {
        return;
    }
    let sum = checksum::update16(sum, old, new);
    let sum = if protocol == UDP && sum == 0 { 0xffff } else { sum };
    frame[checksum_offset..checksum_offset + 2].copy_from_slice(&sum.to_be_bytes());
}

#[inline]
fn read_u32(frame: &[u8], offset: usize) -> Option<u32> {
    let bytes = frame.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[inline]
fn read_u16(frame: &[u8], offset: usize) -> Option<u16> {
    let bytes = frame.get(offset..offset.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}
