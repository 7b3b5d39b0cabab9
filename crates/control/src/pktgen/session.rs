//! pktgen while a script is at work: its files, and the runs that were started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirestorm_plan::pktgen::{
    Action, Counters, Effect, LowerError, LoweredDevice, Pktgen, PktgenError, Script,
};

use super::machine;
use super::report;
use super::run::{self, DeviceError, DeviceOptions, DeviceOutcome, Ran};
use crate::lifecycle::Context;
use crate::result::DeviceRun;

/// What happens while a script is at work.
#[derive(Debug)]
pub enum Event<'a> {
    /// A command was refused, or had no effect; a shell's script goes on.
    Refused(&'a PktgenError),
    /// What one should know of a device that is about to start; once for each.
    Note {
        /// The device.
        device: &'a str,
        /// What.
        text: &'a str,
    },
    /// Devices did not start, or one of them ended early.
    Failed(&'a str),
    /// What a file shows that is to be shown.
    Text(&'a str),
    /// Frames that all devices have sent since they started.
    Progress(u64),
    /// All devices have ended.
    Ended,
    /// What the file of a device shows that has run, where the script has not read it.
    Unread(&'a str),
    /// The script has ended with this exit status, which is not 0.
    ScriptFailed(u8),
}

/// Why devices did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There are none.
    #[error("start: there is no device: add one to a thread first, as in add_device eth0")]
    NoDevices,
    /// A device's settings cannot be followed.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// Nothing could be sent.
    #[error(transparent)]
    Run(#[from] DeviceError),
}

/// Why a file of settings was not followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A command was refused.
    #[error("line {line}: {error}")]
    Refused {
        /// The line, from 1.
        line: usize,
        /// Cause.
        error: PktgenError,
    },
    /// Devices did not start.
    #[error("line {line}: {error}")]
    Start {
        /// The line, from 1.
        line: usize,
        /// Cause.
        error: StartError,
    },
}

/// Callback for the events of a script.
pub type Tell = Box<dyn Fn(&Event<'_>) + Send + Sync>;

/// All of pktgen for one script.
pub(super) struct Session {
    options: DeviceOptions,
    context: Arc<Context>,
    tell: Tell,
    state: Mutex<State>,
}

struct State {
    pktgen: Pktgen,
    is_running: bool,
    /// Whether it was a command that ended the run.
    is_told_to_stop: bool,
    is_interrupted: bool,
    runs: Vec<DeviceRun>,
    /// What the files of devices show that have run, where nobody has read them since. The script
    /// may have removed the devices.
    unread: BTreeMap<String, String>,
    told: BTreeSet<(String, String)>,
    errors: Vec<String>,
    notes: BTreeSet<String>,
}

impl Session {
    /// pktgen as it is before any command.
    ///
    /// # Errors
    /// Where the interfaces cannot be listed.
    pub(super) fn open(
        options: DeviceOptions,
        context: Arc<Context>,
        tell: Tell,
    ) -> Result<Self, String> {
        let links = machine::links().map_err(|error| error.to_string())?;
        let state = State {
            pktgen: Pktgen::new(machine::threads(), links),
            is_running: false,
            is_told_to_stop: false,
            is_interrupted: false,
            runs: Vec::new(),
            unread: BTreeMap::new(),
            told: BTreeSet::new(),
            errors: Vec::new(),
            notes: BTreeSet::new(),
        };
        Ok(Self { options, context, tell, state: Mutex::new(state) })
    }

    /// Does what a file of settings says, up to the first command that is refused. Behind a run
    /// that a signal ended it only shows what is to be shown.
    ///
    /// # Errors
    /// Where a command is refused, or devices do not start.
    pub(super) fn follow(&self, script: &Script) -> Result<(), StepError> {
        for step in &script.steps {
            let line = step.line;
            match &step.action {
                Action::Write { .. } if self.lock().is_interrupted => {}
                Action::Write { file, text } => {
                    let effect = self.write(file, &format!("{text}\n"));
                    match effect.map_err(|error| StepError::Refused { line, error })? {
                        Effect::Start => {
                            self.start().map_err(|error| StepError::Start { line, error })?;
                        }
                        Effect::Set | Effect::Added(_) | Effect::Removed(_) | Effect::Stop => {}
                    }
                }
                Action::Show { file } => {
                    let text = self.show(file);
                    let text = text.map_err(|error| StepError::Refused { line, error })?;
                    (self.tell)(&Event::Text(&text));
                }
            }
        }
        Ok(())
    }

    /// The names of all files.
    pub(super) fn files(&self) -> Vec<String> {
        self.lock().pktgen.files()
    }

    /// What a file shows.
    pub(super) fn show(&self, file: &str) -> Result<String, PktgenError> {
        let mut state = self.lock();
        state.unread.remove(file);
        state.pktgen.show(file)
    }

    /// What was written to a file.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<Effect, PktgenError> {
        let mut state = self.lock();
        if file.starts_with("kpktgend_") {
            // The script may have brought an interface up, or made one.
            if let Ok(mut links) = machine::links() {
                let added = text.trim().strip_prefix("add_device ").map(str::trim_start);
                if let Some(device) = added.filter(|device| device.contains('/')) {
                    links.append(&mut machine::links_beside(device));
                }
                state.pktgen.set_links(links);
            }
        }
        let effect = state.pktgen.write(file, text);
        if matches!(effect, Ok(Effect::Stop | Effect::Removed(_))) && state.is_running {
            state.is_told_to_stop = true;
            self.context.controls().stop.store(true, Ordering::Relaxed);
        }
        effect
    }

    /// Says that a command was refused.
    pub(super) fn refused(&self, error: &PktgenError) {
        (self.tell)(&Event::Refused(error));
    }

    /// Ends the run under way, if there is one: a signal came to the one who started it.
    pub(super) fn interrupt(&self) {
        if self.lock().is_running {
            self.context.controls().stop.store(true, Ordering::Relaxed);
        }
    }

    /// Starts all devices; returns when they have ended. What an earlier interruption ended is
    /// over: this one goes on until there is another.
    ///
    /// # Errors
    /// Where none of them started.
    pub(super) fn start(&self) -> Result<(), StartError> {
        let devices = self.begin()?;
        let ran = run::run(&devices, &self.options, &self.context, |progress| {
            self.note_progress(&devices, progress);
        });
        (self.tell)(&Event::Ended);
        match ran {
            Ok(ran) => self.end(&devices, ran),
            Err(error) => {
                let mut state = self.lock();
                state.is_running = false;
                state.pktgen.abandon();
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<Vec<LoweredDevice>, StartError> {
        let mut state = self.lock();
        let devices = state.pktgen.lower()?;
        if devices.is_empty() {
            return Err(StartError::NoDevices);
        }
        for device in &devices {
            for text in &device.notes {
                if state.told.insert((device.name.clone(), text.clone())) {
                    (self.tell)(&Event::Note { device: &device.name, text });
                }
            }
        }
        state.pktgen.begin();
        state.is_running = true;
        state.is_told_to_stop = false;
        self.context.controls().stop.store(false, Ordering::Relaxed);
        Ok(devices)
    }

    fn note_progress(&self, devices: &[LoweredDevice], progress: &run::Progress) {
        let mut state = self.lock();
        for (device, (frames, errors)) in devices.iter().zip(progress) {
            state.pktgen.progress(&device.name, *frames, *errors);
        }
        drop(state);
        let frames = progress.iter().map(|(frames, _)| frames).sum();
        (self.tell)(&Event::Progress(frames));
    }

    fn end(&self, devices: &[LoweredDevice], ran: Ran) {
        let counters: Vec<Counters> = devices
            .iter()
            .zip(&ran.outcomes)
            .map(|(device, outcome)| counters(device, outcome, &ran))
            .collect();
        let mut state = self.lock();
        state.is_running = false;
        let stopped = self.context.controls().is_stopped();
        state.is_interrupted |= stopped && !state.is_told_to_stop;
        state.notes.extend(ran.notes.iter().cloned());
        let mut run = DeviceRun { stopped, ..DeviceRun::default() };
        let mut errors = Vec::new();
        for ((device, outcome), counters) in devices.iter().zip(&ran.outcomes).zip(&counters) {
            let result = state.pktgen.finish(device, counters);
            if let Ok(text) = state.pktgen.show(&device.name) {
                state.unread.insert(device.name.clone(), text);
            }
            run.devices.push(report::device(device, outcome, counters, result));
            errors.extend(outcome.error.as_ref().map(|it| format!("{}: {it}", device.name)));
        }
        state.runs.push(run);
        drop(state);
        errors.into_iter().for_each(|error| self.failed(error));
    }

    /// Says what went wrong, and keeps it for the result.
    pub(super) fn failed(&self, error: String) {
        (self.tell)(&Event::Failed(&error));
        self.lock().errors.push(error);
    }

    /// What all devices did. What the files of devices show that have run, and that nobody has read
    /// since, is an event.
    pub(super) fn finish(&self) -> SessionOutcome {
        let mut state = self.lock();
        let unread = std::mem::take(&mut state.unread);
        let outcome = SessionOutcome {
            runs: state.runs.clone(),
            interrupted: state.is_interrupted,
            errors: state.errors.clone(),
            notes: state.notes.iter().cloned().collect(),
        };
        drop(state);
        unread.values().for_each(|text| self.tell(&Event::Unread(text)));
        outcome
    }

    pub(super) fn tell(&self, event: &Event<'_>) {
        (self.tell)(event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all devices of a script did.
pub(super) struct SessionOutcome {
    pub(super) runs: Vec<DeviceRun>,
    pub(super) interrupted: bool,
    pub(super) errors: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// What a device's file is told.
fn counters(device: &LoweredDevice, outcome: &DeviceOutcome, ran: &Ran) -> Counters {
    let transmitted = outcome.sent.as_ref().map(|sent| sent.transmitted).unwrap_or_default();
    Counters {
        frames: transmitted.sent,
        bytes: transmitted.sent_bytes,
        errors: transmitted.failed,
        started: ran.start,
        elapsed: outcome.elapsed,
        idle: outcome.idle,
        imix: device.imix_counts(transmitted.sent),
    }
}
