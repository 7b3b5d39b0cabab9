//! Which ways lead through a program, and which of them lead nowhere.

use std::collections::BTreeMap;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{Label, Step, When};

use super::types::Template;
use crate::document::error::PlanError;

/// Whether the programs of a template can be followed: each flow that one asks for is of a group,
/// and none is followed for ever without a step that waits.
pub(super) fn check(template: &Template) -> Result<(), PlanError> {
    let client = template.client.as_ref().map(|it| ("client", &it.program));
    let server = template.server.as_ref().map(|it| ("server", &it.program));
    for (side, steps) in client.into_iter().chain(server) {
        let ways = Ways::of(steps);
        let Some((place, message)) = ways.without_group().or_else(|| ways.endless()) else {
            continue;
        };
        let path = format!("{}.{side}.program{}", template.path, ways.path(place));
        return Err(PlanError { path, message });
    }
    Ok(())
}

/// The steps of a program one behind the other, a loop behind those that are within it.
#[derive(Default)]
struct Ways<'a> {
    places: Vec<Place<'a>>,
    labels: BTreeMap<Label, usize>,
    /// The paths of lists of steps.
    lists: Vec<String>,
}

struct Place<'a> {
    step: &'a Step,
    /// Where it stands: in which list, and there.
    list: usize,
    index: usize,
    /// Where a loop begins.
    begin: usize,
}

impl<'a> Ways<'a> {
    fn of(steps: &'a [Step]) -> Self {
        let mut ways = Self::default();
        ways.add(steps, String::new());
        ways
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
            self.places.push(Place { step, list, index, begin });
        }
    }

    fn path(&self, place: usize) -> String {
        let Place { list, index, .. } = self.places[place];
        format!("{}[{index}]", self.lists[list])
    }

    /// What may come behind a place; beyond the last one is the end.
    fn next(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let Place { step, begin, .. } = &self.places[place];
        let there = |label| self.labels.get(label).copied();
        let (leap, goes_on) = match step {
            Step::Jump { to, when: When::Always } => (there(to), false),
            Step::Jump { to, .. }
            | Step::DecrementAndJump { to, .. }
            | Step::Expect { otherwise: Some(to), .. } => (there(to), true),
            Step::Repeat { times: None, .. } => (Some(*begin), false),
            Step::Repeat { times: Some(2..), .. } => (Some(*begin), true),
            Step::Reset => (Some(self.places.len()), false),
            _ => (None, true),
        };
        leap.into_iter().chain(goes_on.then_some(place + 1))
    }

    /// Which places may be come to, not counting ways through steps that are so.
    fn reached(&self, stops: impl Fn(&Step) -> bool) -> Vec<bool> {
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

    /// The first place that is so.
    fn first(&self, is_so: impl Fn(usize, &Step) -> bool) -> Option<usize> {
        (0..self.places.len()).find(|place| is_so(*place, self.places[*place].step))
    }

    /// A flow without a group would be one of the same template, which does the same.
    fn without_group(&self) -> Option<(usize, String)> {
        let asks = |step: &Step| matches!(step, Step::RunFlow | Step::StartFlow { .. });
        let unnamed = self.reached(|step| matches!(step, Step::SelectGroup(_)));
        if let Some(place) = self.first(|place, step| asks(step) && unnamed[place]) {
            let message = "found a flow of no group, expected a step `select_group` on every way to \
                           it";
            return Some((place, message.to_owned()));
        }
        let starts = self.first(|_, step| matches!(step, Step::StartFlow { .. })).is_some();
        let place = self.first(|_, step| *step == Step::WaitFlow && !starts)?;
        let message = "found wait_flow, expected a step `start_flow` before it".to_owned();
        Some((place, message))
    }

    /// Steps that are done again and again as fast as possible, and nothing else any more.
    fn endless(&self) -> Option<(usize, String)> {
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
        let reached = self.reached(|_| false);
        let goes_back = |step: &Step| matches!(step, Step::Jump { .. } | Step::Repeat { .. });
        let place = self.first(|it, step| reached[it] && !ends[it] && goes_back(step))?;
        let message = "found a loop without an end in which nothing waits, expected a step in it \
                       that waits each time, such as delay or receive";
        Some((place, message.to_owned()))
    }
}

/// Whether a step waits each time that it is done, or ends the program some time.
fn waits(step: &Step) -> bool {
    match step {
        Step::Delay { max, .. } => *max > Duration::ZERO,
        Step::DelayAbout { mean, deviation } => {
            *mean > Duration::ZERO || deviation.is_some_and(|it| it > Duration::ZERO)
        }
        Step::Send { .. }
        | Step::SendOwn(_)
        | Step::SendDatagram { .. }
        | Step::SendOwnDatagram(_)
        | Step::Receive(_)
        | Step::Need(_)
        | Step::ReceiveWhole(_)
        | Step::NeedWhole(_)
        | Step::ReceiveDatagrams { clear: true, .. }
        | Step::Expect { otherwise: None, .. }
        | Step::Extract { .. }
        | Step::RunFlow
        | Step::StartFlow { .. }
        | Step::WaitFlow
        | Step::Listen { .. }
        | Step::AcceptFlow
        | Step::DelaySinceReceived { .. }
        | Step::StartTls => true,
        // What has come once is there for good: an end, a connection, bytes in all.
        _ => false,
    }
}
