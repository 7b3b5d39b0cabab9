//! Repeats trials that the tester spoiled.

use crate::trial::{Trial, TrialError, TrialInput, TrialOutput};

/// Repeats a trial in which the device lost nothing, but the generator did not send a small part of
/// the load, or the receiver of the tester dropped frames. Such a trial says nothing about the
/// device: another process took the CPU, for example.
pub(crate) struct Repeating<'a> {
    trial: &'a mut dyn Trial,
}

/// Largest number of repetitions of one trial.
const REPETITIONS_MAX: u32 = 2;
/// Largest part of the load that the tester may miss for a repetition. A generator that misses more
/// is too slow for the load.
const MISSED_MAX: f64 = 0.2;

impl<'a> Repeating<'a> {
    pub(crate) fn new(trial: &'a mut dyn Trial) -> Self {
        Self { trial }
    }

    /// Returns the trials without repetitions.
    pub(crate) fn once(&mut self) -> &mut dyn Trial {
        self.trial
    }
}

impl Trial for Repeating<'_> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let mut output = self.trial.run(input)?;
        for _ in 0..REPETITIONS_MAX {
            if !is_spoiled(&output) {
                break;
            }
            output = self.trial.run(input)?;
        }
        Ok(output)
    }
}

fn is_spoiled(output: &TrialOutput) -> bool {
    let totals: Vec<_> = output.offers.iter().map(|offer| offer.total()).collect();
    let lost: u64 = totals.iter().map(|total| total.lost()).sum();
    let unsent: u64 = totals.iter().map(|total| total.unsent()).sum();
    let intended: u64 = totals.iter().map(|total| total.intended).sum();
    let by_receiver = output.receiver_dropped.min(lost);
    let missed = (unsent + by_receiver) as f64 / intended.max(1) as f64;
    lost == by_receiver && missed > 0.0 && missed <= MISSED_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Length, OfferOutput, StepOutput, Traffic};

    /// Returns one output after the other: units sent and received of 1,000.
    struct Outputs(Vec<(u64, u64)>);

    impl Trial for Outputs {
        fn run(&mut self, _: &TrialInput) -> Result<TrialOutput, TrialError> {
            let (offered, received) = self.0.remove(0);
            let step = StepOutput {
                intended: 1_000,
                offered,
                received,
                seconds: 1.0,
                ..StepOutput::default()
            };
            let offer = OfferOutput { steps: vec![step], ..OfferOutput::default() };
            Ok(TrialOutput { offers: vec![offer], ..TrialOutput::default() })
        }
    }

    /// Returns the number of outputs that a trial used.
    fn used(outputs: &[(u64, u64)]) -> usize {
        let mut source = Outputs(outputs.to_vec());
        let traffic = Traffic { name: "ipv4".into(), frame_size: None };
        let input = TrialInput::constant("test", &traffic, 1_000, Length::Units(1_000));
        Repeating::new(&mut source).run(&input).unwrap();
        outputs.len() - source.0.len()
    }

    #[test]
    fn only_a_trial_that_the_tester_spoiled_is_repeated() {
        assert_eq!(used(&[(1_000, 1_000), (0, 0)]), 1);
        // The device lost frames.
        assert_eq!(used(&[(1_000, 999), (0, 0)]), 1);
        assert_eq!(used(&[(900, 899), (0, 0)]), 1);
        // The generator is too slow.
        assert_eq!(used(&[(500, 500), (0, 0)]), 1);
        assert_eq!(used(&[(900, 900), (1_000, 1_000), (0, 0)]), 2);
        assert_eq!(used(&[(900, 900), (900, 900), (900, 900), (0, 0)]), 3);
    }
}
