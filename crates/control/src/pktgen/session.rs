//! Session of a pktgen script: its files, and the runs that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wirestorm_plan::pktgen::{
    Action, Counters, Effect, LowerError, LoweredDevice, Pktgen, PktgenError, Script,
};

use super::machine;
use super::progress::ScriptProgress;
use super::report;
use super::run::{self, DeviceError, DeviceOptions, DeviceOutcome, DeviceProgress, RunOutcome};
use crate::lifecycle::Context;
use crate::result::DeviceRun;

/// Event during the execution of a script.
#[derive(Debug)]
pub enum Event<'a> {
    /// A command was rejected or had no effect. A shell script continues.
    Refused(&'a PktgenError),
    /// A note about a device that is about to start; each note appears once.
    Note {
        /// Device.
        device: &'a str,
        /// Text of the note.
        text: &'a str,
    },
    /// Devices did not start, or a device ended early.
    Failed(&'a str),
    /// Content of a file that the script shows.
    Text(&'a str),
    /// Frames sent by all devices since the start.
    Progress(u64),
    /// All devices have ended.
    Ended,
    /// Content of a device file after a run, if the script has not read it.
    Unread(&'a str),
    /// The script ended with this exit status, which is not 0.
    ScriptFailed(u8),
}

/// Error of starting devices.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no device.
    #[error("start: no device: add one to a thread first, as in add_device eth0")]
    NoDevices,
    /// The settings of a device are invalid.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The devices could not send.
    #[error(transparent)]
    Run(#[from] DeviceError),
}

/// Error of executing a file of settings.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A command was rejected.
    #[error("line {line}: {error}")]
    Refused {
        /// Line number, from 1.
        line: usize,
        /// Cause.
        error: PktgenError,
    },
    /// Devices did not start.
    #[error("line {line}: {error}")]
    Start {
        /// Line number, from 1.
        line: usize,
        /// Cause.
        error: StartError,
    },
}

/// Callback for the events of a script.
pub type EventCallback = Box<dyn Fn(&Event<'_>) + Send + Sync>;

/// pktgen state of one script.
pub(super) struct Session {
    options: DeviceOptions,
    context: Arc<Context>,
    tell: EventCallback,
    progress: Arc<ScriptProgress>,
    state: Mutex<State>,
}

struct State {
    pktgen: Pktgen,
    is_running: bool,
    /// Whether a command ended the run.
    stopped_by_command: bool,
    is_interrupted: bool,
    runs: Vec<DeviceRun>,
    /// Contents of device files after a run that the script has not read yet. Kept separately,
    /// because the script may remove the devices.
    unread: BTreeMap<String, String>,
    /// Notes already sent as events, by device and text.
    reported_notes: BTreeSet<(String, String)>,
    errors: Vec<String>,
    notes: BTreeSet<String>,
}

impl Session {
    /// Creates the state of pktgen before any command.
    ///
    /// # Errors
    /// Fails if the interfaces cannot be listed.
    pub(super) fn open(
        options: DeviceOptions,
        context: Arc<Context>,
        tell: EventCallback,
        progress: Arc<ScriptProgress>,
    ) -> Result<Self, String> {
        let links = machine::links().map_err(|error| error.to_string())?;
        let state = State {
            pktgen: Pktgen::new(machine::threads(), links),
            is_running: false,
            stopped_by_command: false,
            is_interrupted: false,
            runs: Vec::new(),
            unread: BTreeMap::new(),
            reported_notes: BTreeSet::new(),
            errors: Vec::new(),
            notes: BTreeSet::new(),
        };
        Ok(Self { options, context, tell, progress, state: Mutex::new(state) })
    }

    /// Executes a file of settings up to the first rejected command. After an interrupted run it
    /// skips writes, but still shows files.
    ///
    /// # Errors
    /// Fails if a command is rejected, or devices do not start.
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

    /// Returns the names of all files.
    pub(super) fn files(&self) -> Vec<String> {
        self.lock().pktgen.files()
    }

    /// Returns the content of a file and marks it as read.
    pub(super) fn show(&self, file: &str) -> Result<String, PktgenError> {
        let mut state = self.lock();
        state.unread.remove(file);
        state.pktgen.show(file)
    }

    /// Executes a write to a file.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<Effect, PktgenError> {
        let mut state = self.lock();
        if file.starts_with("kpktgend_") {
            // The script may have set an interface up or created one.
            if let Ok(mut links) = machine::links() {
                let added = text.trim().strip_prefix("add_device ").map(str::trim_start);
                if let Some(device) = added.filter(|device| device.contains('/')) {
                    links.append(&mut machine::links_in_namespace_of(device));
                }
                state.pktgen.set_links(links);
            }
        }
        let effect = state.pktgen.write(file, text);
        if matches!(effect, Ok(Effect::Stop | Effect::Removed(_))) && state.is_running {
            state.stopped_by_command = true;
            self.context.controls().stop.store(true, Ordering::Relaxed);
        }
        effect
    }

    /// Reports a rejected command.
    pub(super) fn refused(&self, error: &PktgenError) {
        (self.tell)(&Event::Refused(error));
    }

    /// Stops the current run, if there is one, because its writer received a signal.
    pub(super) fn interrupt(&self) {
        if self.lock().is_running {
            self.context.controls().stop.store(true, Ordering::Relaxed);
        }
    }

    /// Starts all devices and returns when they have ended. An earlier interruption does not affect
    /// this run.
    ///
    /// # Errors
    /// Fails if no device started.
    pub(super) fn start(&self) -> Result<(), StartError> {
        let devices = self.begin()?;
        let ran = run::run(&devices, &self.options, &self.context, |progress| {
            self.note_progress(&devices, progress);
        });
        self.progress.end_run();
        (self.tell)(&Event::Ended);
        match ran {
            Ok(ran) => self.end(&devices, ran),
            Err(error) => {
                let mut state = self.lock();
                state.is_running = false;
                state.pktgen.mark_not_started();
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
                if state.reported_notes.insert((device.name.clone(), text.clone())) {
                    (self.tell)(&Event::Note { device: &device.name, text });
                }
            }
        }
        state.pktgen.mark_running();
        state.is_running = true;
        state.stopped_by_command = false;
        self.context.controls().stop.store(false, Ordering::Relaxed);
        Ok(devices)
    }

    fn note_progress(&self, devices: &[LoweredDevice], progress: &[DeviceProgress]) {
        let mut state = self.lock();
        for (device, DeviceProgress { transmitted, .. }) in devices.iter().zip(progress) {
            state.pktgen.progress(&device.name, transmitted.sent, transmitted.failed);
        }
        drop(state);
        let frames = progress.iter().map(|progress| progress.transmitted.sent).sum();
        (self.tell)(&Event::Progress(frames));
        let devices = devices.iter().map(|it| (it.name.as_str(), it.interface.as_str()));
        self.progress.publish(&self.context, devices.zip(progress));
    }

    fn end(&self, devices: &[LoweredDevice], ran: RunOutcome) {
        let counters: Vec<Counters> = devices
            .iter()
            .zip(&ran.outcomes)
            .map(|(device, outcome)| counters(device, outcome, &ran))
            .collect();
        let mut state = self.lock();
        state.is_running = false;
        let stopped = self.context.controls().is_stopped();
        state.is_interrupted |= stopped && !state.stopped_by_command;
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

    /// Reports an error and keeps it for the result.
    pub(super) fn failed(&self, error: String) {
        (self.tell)(&Event::Failed(&error));
        self.lock().errors.push(error);
    }

    /// Ends the session and returns the results of all runs. Reports unread device files as events.
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

/// Results of a session.
pub(super) struct SessionOutcome {
    pub(super) runs: Vec<DeviceRun>,
    pub(super) interrupted: bool,
    pub(super) errors: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Returns the counters for a device's file.
fn counters(device: &LoweredDevice, outcome: &DeviceOutcome, ran: &RunOutcome) -> Counters {
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
