//! Iterator over the records of a capture in memory.

use super::{CaptureError, Decoder, RecordHeader, Step};

/// Iterates over the records of a complete capture in memory; ends after the first error.
///
/// ```
/// # use wirestorm_wire::capture::{LinkType, PcapWriter, Records};
/// let mut file = Vec::new();
/// let writer = PcapWriter::new(LinkType::EN10MB);
/// writer.push_header(&mut file);
/// writer.push_record(&mut file, Default::default(), 60, &[0; 60])?;
/// for record in Records::new(&file) {
///     let (header, data) = record?;
///     assert_eq!((header.original_length, data.len()), (60, 60));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Records<'a> {
    decoder: Decoder,
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Records<'a> {
    /// Creates an iterator over the records of `file` in any supported format.
    pub const fn new(file: &'a [u8]) -> Self {
        Self { decoder: Decoder::new(), rest: file, failed: false }
    }

    /// Returns the decoder, for its position and interfaces.
    pub const fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(RecordHeader, &'a [u8]), CaptureError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.decoder.step(self.rest, true) {
                Ok(Step::Record { record, data, consumed }) => {
                    let bytes = self.rest.get(data).unwrap_or_default();
                    self.rest = self.rest.get(consumed..).unwrap_or_default();
                    return Some(Ok((record, bytes)));
                }
                Ok(Step::Skipped { consumed }) => {
                    self.rest = self.rest.get(consumed..).unwrap_or_default();
                }
                Ok(Step::NeedMore { .. } | Step::End) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
