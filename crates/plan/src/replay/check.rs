//! Consistency checks of a replay plan.

use std::path::Path;

use super::{ReplayPlan, SideAssignment, Target};

/// Conflicting parts of a replay. Messages name options as on the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanConflict {
    /// Sides that have no effect.
    #[error(
        "{option} separates two sides, but there is one output: add --intf2 for the second side, \
         or edits that differ by side, such as --enet-dmac MAC,MAC"
    )]
    UnusedSides {
        /// The option that separates the sides.
        option: &'static str,
    },
    /// Edits that depend on the side, while packets have none.
    #[error(
        "these edits differ by side, but no option separates the sides: add --cachefile FILE or \
         --split auto"
    )]
    MissingSides,
    /// A second output that no packet uses.
    #[error(
        "--intf2 sends the second side, but no option separates the sides: add --cachefile FILE, \
         --dualfile or --split auto"
    )]
    UnusedOutput,
    /// An odd number of captures, while they come in pairs.
    #[error("--dualfile takes captures in pairs, but there are {captures}")]
    OddCaptures {
        /// Number of captures.
        captures: usize,
    },
    /// Several workers, while all packets must keep their order.
    #[error("--workers {workers}: {option} keeps the order of all packets, which takes one worker")]
    Workers {
        /// Requested number of workers.
        workers: u16,
        /// The option that requires one worker.
        option: &'static str,
    },
    /// A receiver, while nothing is sent on an interface.
    #[error("--rx {interface}: nothing arrives there, because {option} sends on no interface")]
    ReceiverWithoutInterface {
        /// The receiving interface.
        interface: String,
        /// The option that sends on no interface.
        option: &'static str,
    },
    /// Two readers of standard input.
    #[error("standard input (-) is {first} and {second}: it can be one of them only")]
    SharedStandardInput {
        /// First reader.
        first: &'static str,
        /// Second reader.
        second: &'static str,
    },
}

impl ReplayPlan {
    /// Checks that the parts of the plan are consistent.
    ///
    /// # Errors
    /// Returns an error if two parts conflict, or one has no effect without another.
    pub fn check(&self) -> Result<(), PlanConflict> {
        let sides = match self.sides {
            SideAssignment::Single => None,
            SideAssignment::Cache(_) => Some("--cachefile"),
            SideAssignment::Pairs => Some("--dualfile"),
            SideAssignment::Rules(_) => Some("--split"),
        };
        match (sides, self.target.outputs()) {
            (None, _) if self.edits.needs_sides() => return Err(PlanConflict::MissingSides),
            (None, 2) => return Err(PlanConflict::UnusedOutput),
            (Some(option), 1) if !self.edits.needs_sides() => {
                return Err(PlanConflict::UnusedSides { option });
            }
            _ => {}
        }
        let one_worker = match &self.target {
            Target::File(_) => Some("--write"),
            _ => self.one_at_a_time.then_some("--oneatatime"),
        };
        if let Some(option) = one_worker.filter(|_| self.workers > 1) {
            return Err(PlanConflict::Workers { workers: self.workers, option });
        }
        let nowhere = match &self.target {
            Target::Interfaces { .. } => None,
            Target::File(_) => Some("--write"),
            Target::Memory { .. } => Some("--backend memory"),
        };
        if let (Some(receive), Some(option)) = (&self.receive, nowhere) {
            let interface = receive.interface.clone();
            return Err(PlanConflict::ReceiverWithoutInterface { interface, option });
        }
        self.check_standard_input()
    }

    fn check_standard_input(&self) -> Result<(), PlanConflict> {
        const CAPTURE: &str = "a capture";
        let captures = self.captures.iter().filter(|path| *path == Path::new("-")).count();
        let second = match captures {
            0 => return Ok(()),
            1 if self.one_at_a_time => "the answers to --oneatatime",
            1 => return Ok(()),
            _ => "another one",
        };
        Err(PlanConflict::SharedStandardInput { first: CAPTURE, second })
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_base::departure::DeparturePolicy;
    use wirestorm_base::pace::Pace;
    use wirestorm_base::time::Duration;

    use super::*;
    use crate::edit::{EditArguments, EditOptions};
    use crate::replay::{Limits, ReceivePlan};

    fn plan() -> ReplayPlan {
        ReplayPlan {
            captures: vec!["a.pcap".into()],
            target: Target::Memory { by_side: false },
            sides: SideAssignment::Single,
            edits: EditOptions::default(),
            show: None,
            one_at_a_time: false,
            pace: Pace::TopSpeed,
            policy: DeparturePolicy::default(),
            limits: Limits { passes: 1, packets: u64::MAX, duration: Duration::MAX },
            pass_delay: Duration::ZERO,
            preload: false,
            flows: None,
            unique: None,
            include: None,
            exclude: Vec::new(),
            original_length: false,
            receive: None,
            workers: 1,
            tolerance_ppm: 0,
            force_interface: false,
        }
    }

    fn by_side() -> EditOptions {
        let two = Some("02:00:00:00:00:01,02:00:00:00:00:02".to_owned());
        EditArguments { enet_dmac: two, ..EditArguments::default() }.parse().unwrap()
    }

    fn outputs(count: usize) -> [Target; 2] {
        let interfaces =
            Target::Interfaces { primary: "a".into(), secondary: (count == 2).then(|| "b".into()) };
        [interfaces, Target::Memory { by_side: count == 2 }]
    }

    #[test]
    fn sides_need_a_second_output_or_edits_that_differ_by_side() {
        for target in outputs(1).into_iter().chain(outputs(2)) {
            let is_single = target.outputs() == 1;
            for sides in [SideAssignment::Pairs, SideAssignment::Cache("sides".into())] {
                let plan = ReplayPlan { target: target.clone(), sides, ..plan() };
                let outcome = plan.check();
                let is_refused = matches!(outcome, Err(PlanConflict::UnusedSides { .. }));
                assert_eq!(is_refused, is_single, "{plan:?}: {outcome:?}");
                let with_edits = ReplayPlan { edits: by_side(), ..plan };
                assert_eq!(with_edits.check(), Ok(()), "{with_edits:?}");
            }
        }
        let file = Target::File("out.pcap".into());
        let sides = SideAssignment::Pairs;
        let refused = ReplayPlan { target: file, sides, ..plan() }.check();
        assert_eq!(refused, Err(PlanConflict::UnusedSides { option: "--dualfile" }));
    }

    #[test]
    fn outputs_and_edits_by_side_need_sides() {
        let edited = ReplayPlan { edits: by_side(), ..plan() };
        assert_eq!(edited.check(), Err(PlanConflict::MissingSides));
        for target in outputs(2) {
            assert_eq!(ReplayPlan { target, ..plan() }.check(), Err(PlanConflict::UnusedOutput));
        }
        for target in outputs(1) {
            assert_eq!(ReplayPlan { target, ..plan() }.check(), Ok(()));
        }
    }

    #[test]
    fn a_total_packet_order_needs_one_worker() {
        let workers = |plan| ReplayPlan { workers: 2, ..plan }.check();
        let file = ReplayPlan { target: Target::File("out.pcap".into()), ..plan() };
        assert!(matches!(workers(file), Err(PlanConflict::Workers { option: "--write", .. })));
        let asks = ReplayPlan { one_at_a_time: true, ..plan() };
        assert!(matches!(workers(asks), Err(PlanConflict::Workers { .. })));
        assert_eq!(workers(plan()), Ok(()));
    }

    #[test]
    fn a_receiver_needs_an_interface_target() {
        let receive = || Some(ReceivePlan { interface: "b".into(), verify: false });
        for target in [Target::File("out.pcap".into()), Target::Memory { by_side: false }] {
            let outcome = ReplayPlan { target, receive: receive(), ..plan() }.check();
            assert!(
                matches!(outcome, Err(PlanConflict::ReceiverWithoutInterface { .. })),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn standard_input_has_one_reader() {
        let twice = ReplayPlan { captures: vec!["-".into(), "-".into()], ..plan() };
        let answers = ReplayPlan { captures: vec!["-".into()], one_at_a_time: true, ..plan() };
        for plan in [twice, answers] {
            let outcome = plan.check();
            assert!(
                matches!(outcome, Err(PlanConflict::SharedStandardInput { .. })),
                "{outcome:?}"
            );
        }
        assert_eq!(ReplayPlan { captures: vec!["-".into()], ..plan() }.check(), Ok(()));
    }
}
