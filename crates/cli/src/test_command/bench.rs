//! A benchmark method of a test: its trials, its table, and its record in the run history.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use wirestorm_control::bench::TrialLog;
use wirestorm_control::method::method::Method;
use wirestorm_control::result::Outcome;
use wirestorm_serve::cluster::{BenchOutcome, TestOutcome, TestProgress};
use wirestorm_store::record::RecordKind;

use super::{TestFlags, write_json};
use crate::bench::{Progress, Table};
use crate::save::{Draft, Recording};
use crate::status;

/// Shows and saves the trials of a method.
pub(super) struct BenchView<'a> {
    flags: &'a TestFlags,
    /// Interfaces of this machine; empty if others have them.
    interfaces: Vec<String>,
    /// Ends the test if a trial cannot be saved.
    stop: &'a AtomicBool,
    /// The method once it has begun.
    begun: Option<Begun>,
}

struct Begun {
    progress: Progress,
    recording: Option<Recording>,
    /// Why a trial or the run itself is not saved.
    error: Option<String>,
}

impl<'a> BenchView<'a> {
    pub(super) const fn new(
        flags: &'a TestFlags,
        interfaces: Vec<String>,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { flags, interfaces, stop, begun: None }
    }

    /// Shows the progress of a method; returns whether it was one.
    pub(super) fn show(&mut self, progress: &TestProgress<'_>) -> bool {
        if let TestProgress::Method { method, .. } = progress {
            self.begin(method);
        }
        let Some(begun) = &mut self.begun else { return false };
        match progress {
            TestProgress::TrialStarted { number, input, remaining_s } => {
                begun.progress.started(*number, input, *remaining_s);
            }
            TestProgress::Trial(trial) => {
                let saved = begun.recording.as_mut().map_or(Ok(()), |it| it.trial(trial));
                let shown = saved.and_then(|()| begun.progress.completed(trial));
                if let Err(error) = shown {
                    begun.error.get_or_insert(error);
                    self.stop.store(true, Ordering::Release);
                }
            }
            TestProgress::Running { elapsed, .. } => begun.progress.running(*elapsed),
            TestProgress::Lost { agent, reason } => {
                begun.progress.line(&format!("wirestorm: agent {agent} is lost: {reason}"));
            }
            TestProgress::Method { .. } | TestProgress::Phase(_) | TestProgress::Iteration(..) => {}
        }
        true
    }

    fn begin(&mut self, method: &Method) {
        let draft = || {
            let mut draft = Draft::new(RecordKind::Bench, &self.interfaces);
            draft.method = Some(method.clone());
            draft.file(&self.flags.test)
        };
        let (recording, error) = match self.flags.save.start(draft) {
            Ok(recording) => (Some(recording), None),
            Err(error) => {
                self.stop.store(true, Ordering::Release);
                (None, Some(error))
            }
        };
        self.begun = Some(Begun { progress: Progress::new(self.flags.quiet), recording, error });
    }

    /// Prints and saves the outcome; returns the exit status.
    pub(super) fn report(self, name: &str, outcome: &TestOutcome, bench: &BenchOutcome) -> u8 {
        let result = &bench.result;
        let is_json = self.flags.json.as_deref() == Some(Path::new("-"));
        let mut saved = Ok(());
        if let Some(Begun { progress, recording, error }) = self.begun {
            progress.finish();
            saved = recording.map_or(Ok(()), |it| it.finish_bench(result));
            saved = error.map_or(saved, Err);
        }
        if !is_json {
            print!("{}", Table(result));
        } else if result.verdict.outcome == Outcome::Failed {
            result.verdict.reasons.iter().for_each(|reason| eprintln!("wirestorm: {reason}"));
        }
        let exit = crate::save::status(saved, result.verdict.outcome.exit_status());
        let exit = exit.max(super::judge(&bench.limits));
        match write_json(self.flags, name, outcome) {
            Ok(()) => exit,
            Err(message) => {
                eprintln!("wirestorm: {message}");
                exit.max(status::FAILED)
            }
        }
    }
}
