//! Decodes arbitrary bytes in arbitrary pieces. There must be no panic, progress in every step, and
//! the same records as from one piece.

use wirestorm_wire::capture::{CaptureError, Decoder, RecordHeader, Step};

/// Checks one input.
///
/// The first byte is the number of piece sizes that follow. Then come the sizes and the file.
pub fn run(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let (sizes, file) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let complete = decode(file, &[usize::MAX / 2]);
    let sizes: Vec<usize> = sizes.iter().map(|size| usize::from(*size).max(1)).collect();
    if !sizes.is_empty() {
        assert_eq!(decode(file, &sizes), complete);
    }
}

type Records = Vec<(RecordHeader, Vec<u8>)>;

fn decode(file: &[u8], sizes: &[usize]) -> (Records, Option<CaptureError>, u64) {
    let mut decoder = Decoder::new();
    let (mut start, mut available) = (0, 0);
    let mut sizes = sizes.iter().cycle();
    let mut records = Vec::new();
    let mut fault = None;
    loop {
        let input = &file[start..available];
        let end_of_input = available == file.len();
        match decoder.step(input, end_of_input) {
            Ok(Step::Record { record, data, consumed }) => {
                assert!(data.end <= consumed && consumed <= input.len());
                assert_eq!(data.len(), record.captured_length as usize);
                records.push((record, input[data].to_vec()));
                start += consumed;
            }
            Ok(Step::Skipped { consumed }) => {
                assert!(0 < consumed && consumed <= input.len());
                start += consumed;
            }
            Ok(Step::NeedMore { at_least }) => {
                assert!(!end_of_input && at_least > input.len());
                let size = sizes.next().expect("there is a size");
                available = available.saturating_add(*size).min(file.len());
            }
            Ok(Step::End) => break,
            Err(error) => {
                // An error is final and has a message.
                assert_eq!(decoder.step(input, end_of_input), Err(error));
                assert!(!error.to_string().is_empty());
                fault = Some(error);
                break;
            }
        }
        assert_eq!(decoder.position(), start as u64);
        assert_eq!(decoder.records(), records.len() as u64);
    }
    // After an error, the position depends on the pieces: smaller ones skip more of a truncated
    // block.
    let position = if fault.is_none() { decoder.position() } else { 0 };
    (records, fault, position)
}
