//! Checks of a program's control flow: flows without a group, and endless loops without a wait.

use std::collections::BTreeMap;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{JumpCondition, Label, Step};

use super::types::Template;
use crate::document::error::PlanError;

/// Checks the control flow of a template's programs. On every path, each flow that a step starts
/// has a group, and each endless loop contains a step that waits.
pub(super) fn check(template: &Template) -> Result<(), PlanError> {
    let client = template.client.as_ref().map(|it| ("client", &it.program));
    let server = template.server.as_ref().map(|it| ("server", &it.program));
    for (side, steps) in client.into_iter().chain(server) {
        let graph = ControlFlowGraph::of(steps);
        let Some((place, message)) =
            graph.find_flow_without_group().or_else(|| graph.find_endless_loop())
        else {
            continue;
        };
        let path = format!("{}.{side}.program{}", template.path, graph.path(place));
        return Err(PlanError { path, message });
    }
    Ok(())
}

/// Control-flow graph of a program: its steps in order, each loop after the steps in it.
#[derive(Default)]
struct ControlFlowGraph<'a> {
    places: Vec<Node<'a>>,
    labels: BTreeMap<Label, usize>,
    /// Paths of the lists of steps, by index.
    lists: Vec<String>,
}

struct Node<'a> {
    step: &'a Step,
    /// Index of its list in [`ControlFlowGraph::lists`], and its index in the list.
    list: usize,
    index: usize,
    /// For a loop: the place of its first step.
    begin: usize,
}

impl<'a> ControlFlowGraph<'a> {
    fn of(steps: &'a [Step]) -> Self {
        let mut graph = Self::default();
        graph.add(steps, String::new());
        graph
    }

    fn add(&mut self, steps: &'a [Step], path: String) {
        let list = self.lists.len();
        self.lists.push(path);
        for (index, step) in steps.iter().enumerate() {
            let begin = self.places.len();
            match step {
                Step::Repeat { steps, .. } => {
                    self.add(steps, format!("{}[{index}].repeat.steps", self.lists[list]));
                }
                Step::Label(label) => {
                    self.labels.insert(*label, begin);
                }
                _ => {}
            }
            self.places.push(Node { step, list, index, begin });
        }
    }

    fn path(&self, place: usize) -> String {
        let Node { list, index, .. } = self.places[place];
        format!("{}[{index}]", self.lists[list])
    }

    /// Returns the places that may follow a place; the number of places stands for the end.
    fn next(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let Node { step, begin, .. } = &self.places[place];
        let there = |label| self.labels.get(label).copied();
        let (target, goes_on) = match step {
            Step::Jump { to, when: JumpCondition::Always } => (there(to), false),
            Step::Jump { to, .. }
            | Step::DecrementAndJump { to, .. }
            | Step::Expect { on_failure: Some(to), .. } => (there(to), true),
            Step::Repeat { times: None, .. } => (Some(*begin), false),
            Step::Repeat { times: Some(2..), .. } => (Some(*begin), true),
            Step::Reset => (Some(self.places.len()), false),
            _ => (None, true),
        };
        target.into_iter().chain(goes_on.then_some(place + 1))
    }

    /// Returns whether each place is reachable without passing a step that `stops`.
    fn reachable(&self, stops: impl Fn(&Step) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.places.len()];
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            let Some(is_reached) = reached.get_mut(place) else { continue };
            if !std::mem::replace(is_reached, true) && !stops(self.places[place].step) {
                open.extend(self.next(place));
            }
        }
        reached
    }

    /// Returns the first place that satisfies the predicate.
    fn first(&self, is_so: impl Fn(usize, &Step) -> bool) -> Option<usize> {
        (0..self.places.len()).find(|place| is_so(*place, self.places[*place].step))
    }

    /// Finds a step that starts a flow before `select_group`, or one that waits for a flow although
    /// none starts one. A flow without a group would have the same template, and so start another
    /// flow, without end.
    fn find_flow_without_group(&self) -> Option<(usize, String)> {
        let starts_flow = |step: &Step| matches!(step, Step::RunFlow | Step::StartFlow { .. });
        let reached_without_group = self.reachable(|step| matches!(step, Step::SelectGroup(_)));
        if let Some(place) =
            self.first(|place, step| starts_flow(step) && reached_without_group[place])
        {
            let message = "found a flow without a group, expected a step `select_group` on every \
                           path to it";
            return Some((place, message.to_owned()));
        }
        let starts = self.first(|_, step| matches!(step, Step::StartFlow { .. })).is_some();
        let place = self.first(|_, step| *step == Step::WaitFlow && !starts)?;
        let message = "found wait_flow, expected a step `start_flow` before it".to_owned();
        Some((place, message))
    }

    /// Finds a reachable loop that never ends and has no step that waits.
    fn find_endless_loop(&self) -> Option<(usize, String)> {
        let end = self.places.len();
        let mut ends: Vec<_> = self.places.iter().map(|it| waits(it.step)).collect();
        loop {
            let mut has_changed = false;
            for place in (0..end).rev() {
                if !ends[place] && self.next(place).any(|next| next == end || ends[next]) {
                    ends[place] = true;
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        let reached = self.reachable(|_| false);
        let goes_back = |step: &Step| matches!(step, Step::Jump { .. } | Step::Repeat { .. });
        let place = self.first(|it, step| reached[it] && !ends[it] && goes_back(step))?;
        let message = "found an endless loop without a wait, expected a step in it that waits each \
                       time, such as delay or receive";
        Some((place, message.to_owned()))
    }
}

/// Returns whether each execution of a step waits, or eventually ends the program.
fn waits(step: &Step) -> bool {
    match step {
        Step::Delay { max, .. } => *max > Duration::ZERO,
        Step::RandomDelay { mean, stddev: deviation } => {
            *mean > Duration::ZERO || deviation.is_some_and(|it| it > Duration::ZERO)
        }
        Step::Send { .. }
        | Step::SendComposed(_)
        | Step::SendDatagram { .. }
        | Step::SendComposedDatagram(_)
        | Step::Receive(_)
        | Step::ReceiveOrFail(_)
        | Step::ReceiveMessage(_)
        | Step::ReceiveMessageOrFail(_)
        | Step::ReceiveDatagrams { clear: true, .. }
        | Step::Expect { on_failure: None, .. }
        | Step::Extract { .. }
        | Step::RunFlow
        | Step::StartFlow { .. }
        | Step::WaitFlow
        | Step::Listen { .. }
        | Step::AcceptFlow
        | Step::DelaySinceReceived { .. }
        | Step::StartTls => true,
        // Events that happen once do not wait again: FIN, an open connection, a total of bytes.
        _ => false,
    }
}
