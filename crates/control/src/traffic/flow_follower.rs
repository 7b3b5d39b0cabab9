//! How a worker carries out the commands that flows are given.

use wirestorm_base::time::Instant;
use wirestorm_engine::stream::Generator;

use crate::lifecycle::{FlowCommand, FlowControl, GivenCommand};

/// One worker's view of the commands.
pub(super) struct FlowFollower<'a> {
    control: &'a FlowControl,
    /// Commands that were carried out.
    done: usize,
    /// When the next one is to be.
    due: Option<Instant>,
    /// When sending begins: commands that were given before take effect then.
    start: Instant,
}

impl<'a> FlowFollower<'a> {
    pub(super) fn new(control: &'a FlowControl, start: Instant) -> Self {
        Self { control, done: 0, due: None, start }
    }

    /// When the next command is due, as far as one is known.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Carries out what is due; `lanes` are the flows of each generator, in its streams' order.
    #[inline]
    pub(super) fn follow<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        lanes: impl Fn(usize) -> &'b [usize],
    ) {
        if self.control.count() != self.done {
            self.carry_out(now, generators, lanes);
        }
    }

    #[cold]
    fn carry_out<'b>(
        &mut self,
        now: Instant,
        generators: &mut [Generator],
        lanes: impl Fn(usize) -> &'b [usize],
    ) {
        for GivenCommand { at, flows, command } in self.control.after(self.done) {
            let at = at.max(self.start);
            if now < at {
                self.due = Some(at);
                return;
            }
            self.done += 1;
            for (index, generator) in generators.iter_mut().enumerate() {
                for (stream, flow) in lanes(index).iter().enumerate() {
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
        FlowCommand::SetSpeed(speed) => generator.set_speed(stream, speed, at),
        FlowCommand::Scale { numerator, denominator } => {
            // A product beyond what a rate can be leaves the speed as it is.
            let _ = generator.scale_speed(stream, numerator, denominator, at);
        }
    }
}
