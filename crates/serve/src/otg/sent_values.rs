//! Frames that a stream has sent, by the values of its tags: the program of the stream defines them.

use std::collections::BTreeMap;
use std::ops::Range;

use wirestorm_control::model::stream::{Advance, FrameBits, Program, Step, Stream, Write};

/// Maximum number of frames after which the values repeat.
const PERIOD_MAX: u64 = 4_096;

/// Values of the tags of all frames of a stream.
#[derive(Clone, Debug)]
pub(super) struct SentValues {
    /// Values in hexadecimal, each combination once.
    combinations: Vec<Vec<String>>,
    /// Index of the combination of each frame, until they repeat.
    period: Vec<usize>,
    /// Bytes of a frame without FCS; `None` if frames differ in length.
    length: Option<u64>,
}

/// Frames that were sent with the same values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SentCount {
    pub(super) frames: u64,
    /// Bytes without FCS, if known.
    pub(super) bytes: Option<u64>,
    /// Share of all frames, in the long run.
    pub(super) share: f64,
}

impl SentValues {
    /// Returns the values of bits of a stream's frames; `None` if they do not repeat soon, are not
    /// those of fields, or other ports send some of the frames.
    pub(super) fn of(stream: &Stream, bits: &[FrameBits]) -> Option<Self> {
        if stream.member.is_some() || bits.is_empty() {
            return None;
        }
        let Program { variables, steps } = &stream.program;
        let (mut repeats, mut writes) = (1, Vec::new());
        for step in steps.iter().filter(|step| overlaps(&step.target(), bits)) {
            let Step::Write(write) = step else { return None };
            let variable = variables.get(write.variable)?;
            let cycle = match variable.restart_after {
                Some(after) => after.get(),
                None => variable.values.cycle()?,
            };
            repeats = least_common_multiple(repeats, cycle)?;
            if variable.advance != Advance::EveryFrame || repeats > PERIOD_MAX {
                return None;
            }
            writes.push((write, variable));
        }
        let mut frame = stream.template.clone();
        let mut known = BTreeMap::new();
        let (mut combinations, mut period) = (Vec::new(), Vec::new());
        for number in 0..repeats {
            for (write, variable) in &writes {
                Write::apply(write, variable.value(number, variables), &mut frame);
            }
            let values: Option<Vec<String>> =
                bits.iter().map(|bits| Some(format!("{:#x}", bits.read(&frame)?))).collect();
            let values = values?;
            let index = *known.entry(values.clone()).or_insert(combinations.len());
            if index == combinations.len() {
                combinations.push(values);
            }
            period.push(index);
        }
        let varies = steps.iter().any(|step| matches!(step, Step::Length { .. }));
        let length = (!varies).then_some(stream.template.len() as u64);
        Some(Self { combinations, period, length })
    }

    /// Frames of several lengths: their bytes are unknown from now on.
    pub(super) fn forget_length(&mut self) {
        self.length = None;
    }

    /// Returns the counts after `frames` frames by values.
    pub(super) fn counts(&self, frames: u64) -> BTreeMap<&[String], SentCount> {
        let length = self.period.len().max(1) as u64;
        let (rounds, rest) = (frames / length, (frames % length) as usize);
        let mut counts = vec![(0, 0); self.combinations.len()];
        for (number, combination) in self.period.iter().enumerate() {
            counts[*combination].0 += rounds + u64::from(number < rest);
            counts[*combination].1 += 1;
        }
        let mut found = BTreeMap::new();
        for (values, (frames, of_period)) in self.combinations.iter().zip(counts) {
            let bytes = self.length.map(|length| length * frames);
            let share = of_period as f64 / length as f64;
            found.insert(values.as_slice(), SentCount { frames, bytes, share });
        }
        found
    }
}

fn overlaps(target: &Range<usize>, bits: &[FrameBits]) -> bool {
    let bytes = |bits: &FrameBits| {
        bits.bit_offset / 8..bits.bit_offset.saturating_add(bits.bit_length).div_ceil(8)
    };
    bits.iter().map(bytes).any(|key| key.start < target.end && target.start < key.end)
}

fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.checked_div(divisor)?.checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_control::base::rate::Rate;
    use wirestorm_control::base::time::Duration;
    use wirestorm_control::model::stream::{ByteOrder, Speed, Transmission, Values, Variable};

    /// Returns a stream whose bytes 0 and 1 have these values.
    fn stream(values: [Values; 2]) -> Stream {
        let write = |variable| {
            Step::Write(Write {
                variable,
                offset: variable,
                width: 1,
                add: 0,
                shift: 0,
                mask: 0xff,
                order: ByteOrder::Network,
            })
        };
        let speed = Speed::Frames(Rate::new(1, Duration::from_secs(1)).unwrap());
        Stream {
            name: String::new(),
            template: vec![0; 60],
            program: Program {
                variables: values.into_iter().map(Variable::new).collect(),
                steps: vec![write(0), write(1)],
            },
            transmission: Transmission::continuous(speed),
            is_measured: true,
            trailer: 0,
            is_marked: false,
            member: None,
        }
    }

    const BYTES: [FrameBits; 2] =
        [FrameBits { bit_offset: 0, bit_length: 8 }, FrameBits { bit_offset: 8, bit_length: 8 }];

    #[test]
    fn frames_are_counted_by_the_values_that_the_program_gives_them() {
        let stream = stream([Values::List(vec![1, 2]), Values::List(vec![7, 7, 9])]);
        let sent = SentValues::of(&stream, &BYTES).unwrap();
        let frames: Vec<(String, u64)> =
            sent.counts(8).iter().map(|(values, it)| (values.join(" "), it.frames)).collect();
        let expected = [("0x1 0x7", 3), ("0x1 0x9", 1), ("0x2 0x7", 3), ("0x2 0x9", 1)];
        assert_eq!(frames, expected.map(|(values, frames)| (values.to_owned(), frames)));
        let first = SentValues::of(&stream, &BYTES[..1]).unwrap();
        let half = SentCount { frames: 4, bytes: Some(240), share: 0.5 };
        assert_eq!(first.counts(8).into_values().collect::<Vec<_>>(), [half, half]);
    }

    #[test]
    fn values_that_do_not_repeat_soon_are_not_counted() {
        let random = Values::Random { min: 0, max: 255, seed: 1 };
        let stream = stream([Values::List(vec![1, 2]), random]);
        assert!(SentValues::of(&stream, &BYTES).is_none());
        assert!(SentValues::of(&stream, &BYTES[..1]).is_some(), "the other field repeats");
    }
}
