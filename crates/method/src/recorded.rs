//! Recorded trials: a method continues where it was interrupted.

use std::collections::VecDeque;

use crate::trial::{Trial, TrialError, TrialInput, TrialOutput};

/// Answers from a record first, then from another source of trials.
///
/// A method asks for the same trials again when it runs again with the same parameters, because it
/// depends only on their outputs.
#[derive(Debug)]
pub struct Recorded<T> {
    records: VecDeque<(TrialInput, TrialOutput)>,
    replayed: usize,
    rest: T,
}

impl<T> Recorded<T> {
    /// Creates a source that returns `records` in order, then asks `rest`.
    pub fn new(records: impl IntoIterator<Item = (TrialInput, TrialOutput)>, rest: T) -> Self {
        Self { records: records.into_iter().collect(), replayed: 0, rest }
    }

    /// Returns the other source.
    pub fn into_rest(self) -> T {
        self.rest
    }
}

impl<T: Trial> Trial for Recorded<T> {
    /// # Errors
    /// Fails if the method asks for another trial than the recorded one: its parameters, or the
    /// program, changed.
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let Some((recorded, output)) = self.records.pop_front() else {
            return self.rest.run(input);
        };
        self.replayed += 1;
        if recorded == *input {
            return Ok(output);
        }
        Err(TrialError::Failed(format!(
            "recorded trial {} is a trial of {:?}, but the method asks for one of {:?}: the \
             parameters or the version of the program differ; start a new run",
            self.replayed, recorded.test, input.test
        )))
    }
}
