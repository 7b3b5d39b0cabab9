//! From a record to the frame that is sent: another link layer's header becomes Ethernet,
//! addresses move with the pass.

use super::chunk::{Record, RecordFlags};
use super::unique::{Unique, UniqueAddresses, moved_addresses, moved_port};

/// How frames are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderOptions {
    /// Destination and source address for records that bring no Ethernet header, by side.
    pub link_addresses: [[u8; 12]; 2],
    /// Other addresses in every pass.
    pub unique: Option<Unique>,
    /// Frames are sent as long as they were on the wire; what the capture lacks is zero.
    pub original_length: bool,
}

/// Makes frames from records.
#[derive(Clone, Copy, Debug)]
pub struct Renderer {
    options: RenderOptions,
    /// The n of the addresses in this pass.
    iteration: u64,
}

const ETHERNET_HEADER_BYTES: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl Renderer {
    /// A renderer for the first pass.
    pub fn new(options: RenderOptions) -> Self {
        Self { options, iteration: 0 }
    }

    /// Begins pass `pass`, counted from 0; tells whether its flows are new ones.
    pub fn start_pass(&mut self, pass: u64) -> bool {
        let Some(unique) = self.options.unique else { return false };
        let before = self.iteration;
        self.iteration = unique.iteration(pass);
        self.iteration != before
    }

    /// The length of the frame that [`Renderer::render`] will make, in bytes without FCS.
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

    /// Whether a frame of `length` bytes is shorter than the record was on the wire.
    #[inline]
    pub fn is_truncated(&self, record: &Record, length: usize) -> bool {
        let on_the_wire = (record.original_length as usize).saturating_sub(
            (record.captured_length as usize).saturating_sub(record.frame_length()),
        );
        length < on_the_wire
    }

    /// Writes the frame of a record with the captured bytes `data` to the start of `buffer`;
    /// returns its length.
    ///
    /// # Panics
    /// Where the buffer is shorter than [`Renderer::frame_length`].
    #[inline]
    pub fn render(&self, data: &[u8], record: &Record, buffer: &mut [u8]) -> usize {
        let length = self.frame_length(record);
        let shift = if record.ethertype == 0 {
            buffer[..data.len()].copy_from_slice(data);
            0
        } else {
            self.convert(data, record, buffer)
        };
        if length > record.frame_length() {
            buffer[record.frame_length()..length].fill(0);
        }
        if self.iteration > 0 && record.flags.contains(RecordFlags::FLOW) {
            self.move_addresses(record, shift, &mut buffer[..length]);
        }
        length
    }

    /// Puts an Ethernet header in the place of another one; returns by how much what follows
    /// has moved.
    fn convert(&self, data: &[u8], record: &Record, buffer: &mut [u8]) -> isize {
        let strip = usize::from(record.strip).min(data.len());
        let payload = &data[strip..];
        let side = usize::from(record.flags.contains(RecordFlags::SECONDARY));
        buffer[..12].copy_from_slice(&self.options.link_addresses[side]);
        buffer[12..14].copy_from_slice(&record.ethertype.to_be_bytes());
        buffer[ETHERNET_HEADER_BYTES..][..payload.len()].copy_from_slice(payload);
        ETHERNET_HEADER_BYTES as isize - strip as isize
    }

    fn move_addresses(&self, record: &Record, shift: isize, frame: &mut [u8]) {
        let Some(unique) = self.options.unique else { return };
        let network = usize::from(record.network_offset).wrapping_add_signed(shift);
        let transport = usize::from(record.transport_offset).wrapping_add_signed(shift);
        // The low 32 bits of the two addresses: RFC 791 section 3.1, RFC 8200 section 3.
        let (source, destination) = if record.flags.contains(RecordFlags::IPV6) {
            (network + 20, network + 36)
        } else {
            (network + 12, network + 16)
        };
        let (Some(source_address), Some(destination_address)) =
            (read_u32(frame, source), read_u32(frame, destination))
        else {
            return;
        };
        // With ports moving too, the addresses only move once the ports have come around.
        let (n, port_n) = match unique.what {
            UniqueAddresses::Addresses => (self.iteration, 0),
            UniqueAddresses::AddressesAndPorts => (self.iteration, self.iteration),
        };
        let (source_address, destination_address) =
            moved_addresses(source_address, destination_address, n as u32);
        frame[source..source + 4].copy_from_slice(&source_address.to_be_bytes());
        frame[destination..destination + 4].copy_from_slice(&destination_address.to_be_bytes());
        if port_n > 0 {
            move_port(frame, transport, record.protocol, port_n);
        }
    }
}

/// Moves the larger of a TCP or UDP packet's ports and repairs its checksum.
fn move_port(frame: &mut [u8], transport: usize, protocol: u8, n: u64) {
    let checksum_offset = match protocol {
        TCP => transport + 16,
        UDP => transport + 6,
        _ => return,
    };
    let (Some(source), Some(destination)) =
        (read_u16(frame, transport), read_u16(frame, transport + 2))
    else {
        return;
    };
    let (offset, old) =
        if source >= destination { (transport, source) } else { (transport + 2, destination) };
    let new = moved_port(old, n);
    frame[offset..offset + 2].copy_from_slice(&new.to_be_bytes());
    let Some(sum) = read_u16(frame, checksum_offset) else { return };
    // A UDP checksum of zero says that there is none (RFC 768).
    if protocol == UDP && sum == 0 {
        return;
    }
    let sum = update_checksum(sum, old, new);
    let sum = if protocol == UDP && sum == 0 { 0xffff } else { sum };
    frame[checksum_offset..checksum_offset + 2].copy_from_slice(&sum.to_be_bytes());
}

/// RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
fn update_checksum(sum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!sum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
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
