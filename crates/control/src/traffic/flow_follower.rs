//! Executes the commands to flows in a worker.

use wirestorm_base::time::Instant;
use wirestorm_engine::stream::Generator;

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

    /// Executes the due commands. `flows_of(i)` are the flows of generator `i`, in the order of its
    /// streams.
    #[inline]
    pub(super) fn follow<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        flows_of: impl Fn(usize) -> &'b [usize],
    ) {
        if self.control.count() != self.done {
            self.carry_out(now, generators, flows_of);
        }
    }

    #[cold]
    fn carry_out<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        flows_of: impl Fn(usize) -> &'b [usize],
    ) {
        for PendingCommand { at, flows, command } in self.control.after(self.worker, self.done) {
            let at = at.max(self.start);
            if now < at {
                self.due = Some(at);
                return;
            }
            self.done += 1;
            for (index, generator) in generators.iter_mut().enumerate() {
                for (stream, flow) in flows_of(index).iter().enumerate() {
                    if flows.contains(flow) {
                        carry_out(generator, stream, command, at);
                    }
                }
            }
        }
        self.due = None;
    }
}

fn carry_out(generator: &mut Generator, stream: usize, command: FlowCommand, at: Instant) {
    match command {
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
    }
}
