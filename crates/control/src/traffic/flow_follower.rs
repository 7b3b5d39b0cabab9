//! Executes the commands to flows in a worker.

use wirestorm_base::time::Instant;
use wirestorm_engine::stream::Generator;
use wirestorm_model::stream::Stream;

use super::next_hop::ResolvedAddresses;
use super::workload::PortWorkload;
use crate::lifecycle::{FlowCommand, FlowControl, PendingCommand};

/// View of one worker on the commands.
pub(super) struct FlowFollower<'a> {
    control: &'a FlowControl,
    /// Index of the worker.
    worker: usize,
    /// Number of commands executed.
    done: usize,
    /// Time of the next command, if one is pending.
    due: Option<Instant>,
    /// Start of sending. Earlier commands take effect at this time.
    start: Instant,
}

impl<'a> FlowFollower<'a> {
    pub(super) fn new(control: &'a FlowControl, worker: usize, start: Instant) -> Self {
        Self { control, worker, done: 0, due: None, start }
    }

    /// Returns the time of the next command, if one is pending.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether [`FlowFollower::follow`] has something to do.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.control.count() != self.done && self.due.is_none_or(|due| now >= due)
    }

    /// Executes the due commands. The generators are those of the workloads; their ports must not send
    /// streams by themselves.
    #[cold]
    pub(super) fn follow(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        workloads: &[PortWorkload],
        resolved: &ResolvedAddresses,
    ) {
        for PendingCommand { at, flows, command } in self.control.after(self.worker, self.done) {
            let at = at.max(self.start);
            if now < at {
                self.due = Some(at);
                return;
            }
            self.done += 1;
            for (generator, workload) in generators.iter_mut().zip(workloads) {
                for (stream, flow) in workload.flows.iter().enumerate() {
                    let complete = |template: &mut [u8]| {
                        resolved.write(*flow, template);
                        workload.write_mark(stream, template);
                    };
                    if flows.contains(flow) {
                        carry_out(generator, stream, &command, at, complete);
                    }
                }
            }
        }
        self.due = None;
    }
}

/// Executes a command to a stream. `complete` writes what only the run knows into a template.
fn carry_out(
    generator: &mut Generator,
    stream: usize,
    command: &FlowCommand,
    at: Instant,
    complete: impl FnOnce(&mut [u8]),
) {
    match *command {
        FlowCommand::Pause => generator.pause(stream, at),
        FlowCommand::Resume => generator.resume(stream, at),
        FlowCommand::Start => generator.start(stream, at),
        FlowCommand::Stop => generator.stop(stream),
        FlowCommand::SetMembers(active) => generator.set_members(stream, active),
        FlowCommand::SetSpeed(speed) => generator.set_speed(stream, speed, at),
        FlowCommand::Scale { numerator, denominator } => {
            // If the product is out of range, the speed keeps its value.
            let _ = generator.scale_speed(stream, numerator, denominator, at);
        }
        FlowCommand::SetFrames(ref frames) => {
            let mut frames = Stream::clone(frames);
            complete(&mut frames.template);
            generator.set_frames(stream, &frames, at);
        }
    }
}
