//! Messages that stay encoded.

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, encode_key, encode_varint};

/// A message in its protobuf encoding.
///
/// Packet headers have 783 message types, and protocols that Wirestorm does not speak have 400 more.
/// Types for all of them are 70,000 lines that compile to 112 MB. The crate reads such messages by
/// the schema instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EncodedMessage {
    bytes: Vec<u8>,
}

impl EncodedMessage {
    /// Creates a message from its encoding.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Returns the encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl prost::Message for EncodedMessage {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.bytes);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let wrong = || prost::encoding::skip_field(WireType::EndGroup, tag, &mut &[][..], context);
        encode_key(tag, wire_type, &mut self.bytes);
        let length = match wire_type {
            WireType::Varint => {
                encode_varint(prost::encoding::decode_varint(buffer)?, &mut self.bytes);
                return Ok(());
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                let length = prost::encoding::decode_varint(buffer)?;
                encode_varint(length, &mut self.bytes);
                length
            }
            WireType::StartGroup | WireType::EndGroup => return wrong(),
        };
        match usize::try_from(length) {
            Ok(length) if length <= buffer.remaining() => {
                self.bytes.put(buffer.take(length));
                Ok(())
            }
            _ => wrong(),
        }
    }

    fn encoded_len(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn an_encoded_message_keeps_its_bytes() {
        let bytes = [8, 0xac, 2, 18, 2, 1, 2, 29, 1, 2, 3, 4, 33, 1, 2, 3, 4, 5, 6, 7, 8];
        let message = EncodedMessage::decode(&bytes[..]).unwrap();
        assert_eq!(message.as_bytes(), bytes);
        assert_eq!(message.encode_to_vec(), bytes);
    }

    #[test]
    fn malformed_fields_are_errors() {
        for bytes in [&[8][..], &[18, 2, 1], &[29, 1], &[11], &[12]] {
            assert!(EncodedMessage::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
