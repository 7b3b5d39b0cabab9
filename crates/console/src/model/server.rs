//! What happens on the server: lists, changes, and counters of runs.

use std::collections::BTreeSet;

use wirestorm_api::event::Event;
use wirestorm_api::run::{RunList, RunSummary};

use super::{Connection, Effect, FOLLOWED_MAX, Model, RUNS_MAX, ServerUpdate, View};
use crate::completion::Names;

/// Runs below the selected one at which the next page is read.
const READ_AHEAD: usize = 20;

impl Model {
    pub(super) fn server(&mut self, update: ServerUpdate) -> Vec<Effect> {
        match update {
            ServerUpdate::Up(identity) => {
                if matches!(self.connection, Connection::Lost { .. }) {
                    self.log("the server answers again", false);
                }
                self.connection = Connection::Up;
                self.identity = Some(identity);
                Vec::new()
            }
            ServerUpdate::Lost(reason) => {
                if !matches!(self.connection, Connection::Lost { .. }) {
                    self.log(&reason, true);
                    self.connection = Connection::Lost { since: self.now, reason };
                }
                Vec::new()
            }
            ServerUpdate::Runs { newest, active } => {
                self.change_runs(|model| model.replace_runs(newest, active));
                for run in self.runs.iter().filter(|run| run.state.is_over()) {
                    self.traffic.end(&run.id, run.state);
                    self.followed.remove(&run.id);
                }
                let active: BTreeSet<String> = self.active().map(|run| run.id.clone()).collect();
                self.traffic.retain_active(|run| active.contains(run));
                self.update_names();
                self.follow_active()
            }
            ServerUpdate::MoreRuns(after, read) => {
                self.change_runs(|model| model.add_runs(after, read));
                Vec::new()
            }
            ServerUpdate::Names { plans, captures } => {
                (self.plans, self.captures) = (plans, captures);
                self.update_names();
                Vec::new()
            }
            ServerUpdate::Event(event) => self.event(event),
            ServerUpdate::Progress(run, progress) => {
                let is_new = !self.traffic.cpu().iter().any(|line| line.run == run);
                self.traffic.add(&run, progress);
                if is_new {
                    self.update_names();
                }
                Vec::new()
            }
            ServerUpdate::Unfollowed(run) => {
                self.followed.remove(&run);
                self.follow_active()
            }
        }
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Ports { ports } => {
                self.ports = ports;
                self.update_names();
                Vec::new()
            }
            Event::Run { run } => {
                self.run_changed(*run);
                self.follow_active()
            }
            Event::RunDeleted { id } => {
                self.change_runs(|model| model.runs.retain(|run| run.id != id));
                self.runs_total = self.runs_total.saturating_sub(1);
                self.update_names();
                Vec::new()
            }
            Event::PlanStored { plan } => {
                note(&mut self.plans, &plan.name, true);
                self.update_names();
                Vec::new()
            }
            Event::PlanDeleted { name } => {
                note(&mut self.plans, &name, false);
                self.update_names();
                Vec::new()
            }
            Event::CaptureUploaded { capture } => {
                note(&mut self.captures, &capture.name, true);
                self.update_names();
                Vec::new()
            }
            Event::CaptureDeleted { name } => {
                note(&mut self.captures, &name, false);
                self.update_names();
                Vec::new()
            }
            Event::Missed { .. } => vec![Effect::ReadLists],
        }
    }

    fn run_changed(&mut self, run: RunSummary) {
        for port in &mut self.ports {
            port.runs.retain(|id| *id != run.id);
            if !run.state.is_over() && run.interfaces.contains(&port.interface) {
                port.runs.push(run.id.clone());
            }
        }
        let before = self.runs.iter().position(|known| known.id == run.id);
        let was_over = before.is_some_and(|at| self.runs[at].state.is_over());
        if run.state.is_over() && !was_over {
            self.log_once(&crate::command::ended(&run));
            self.traffic.end(&run.id, run.state);
            self.followed.remove(&run.id);
        }
        match before {
            Some(at) => self.runs[at] = run,
            None => {
                let at = self.runs.partition_point(|it| it.created_unix_ns > run.created_unix_ns);
                self.change_runs(|model| {
                    model.runs.insert(at, run);
                    model.runs.truncate(RUNS_MAX);
                });
                // An active run may be older than the pages that were read.
                self.runs_total += usize::from(at == 0);
            }
        }
        self.update_names();
    }

    /// Changes the list of runs. The selected run stays selected; if it is gone, the one at its
    /// place is.
    fn change_runs(&mut self, change: impl FnOnce(&mut Self)) {
        let selected = self.selected_run().map(|run| run.id.clone());
        change(self);
        if self.view == View::Runs {
            let is_selected = |run: &RunSummary| Some(&run.id) == selected.as_ref();
            let at = self.runs.iter().position(is_selected).unwrap_or(self.offset);
            self.offset = at.min(self.runs.len().saturating_sub(1));
        }
    }

    /// Replaces the runs by the newest ones and the active ones.
    fn replace_runs(&mut self, newest: RunList, active: Vec<RunSummary>) {
        // The selected run may be older than those.
        let selected =
            self.selected_run().filter(|run| run.state.is_over() && newest.next.is_some());
        let selected = selected.cloned();
        self.runs = newest.runs;
        (self.runs_total, self.runs_next, self.runs_reading) = (newest.total, newest.next, None);
        self.merge_runs(active.into_iter().chain(selected));
    }

    /// Adds the runs after the oldest known one.
    fn add_runs(&mut self, after: String, read: Result<RunList, String>) {
        let is_next = self.runs_reading.take().is_some_and(|reading| reading == after);
        if !is_next {
            return;
        }
        match read {
            Ok(list) => {
                (self.runs_total, self.runs_next) = (list.total, list.next);
                self.merge_runs(list.runs.into_iter());
                self.update_names();
            }
            Err(reason) => {
                let text = format!(
                    "cannot read runs older than the {} in the list: {reason}; scroll down to try \
                     again",
                    self.runs.len()
                );
                self.log(&text, true);
                self.runs_next = Some(after);
            }
        }
    }

    /// Adds runs that are not in the list yet.
    fn merge_runs(&mut self, runs: impl Iterator<Item = RunSummary>) {
        let mut known: BTreeSet<String> = self.runs.iter().map(|run| run.id.clone()).collect();
        self.runs.extend(runs.filter(|run| known.insert(run.id.clone())));
        // An active run can be older than the page that was read, and is in its own page too.
        self.runs.sort_by(|a, b| (b.created_unix_ns, &b.id).cmp(&(a.created_unix_ns, &a.id)));
        self.runs.truncate(RUNS_MAX);
    }

    /// Returns the effect that reads older runs if the end of the list is near.
    pub(super) fn read_more_runs(&mut self) -> Vec<Effect> {
        let is_near = self.offset + READ_AHEAD >= self.runs.len() && self.runs.len() < RUNS_MAX;
        let Some(after) = self.runs_next.take_if(|_| is_near) else { return Vec::new() };
        self.runs_reading = Some(after.clone());
        vec![Effect::ReadRuns(after)]
    }

    /// Follows active runs that are not followed yet.
    fn follow_active(&mut self) -> Vec<Effect> {
        let active: Vec<String> = self
            .active()
            .map(|run| run.id.clone())
            .filter(|id| !self.followed.contains(id))
            .collect();
        let room = FOLLOWED_MAX.saturating_sub(self.followed.len());
        let followed: Vec<String> = active.into_iter().take(room).collect();
        self.followed.extend(followed.iter().cloned());
        followed.into_iter().map(Effect::Follow).collect()
    }

    pub(super) fn update_names(&mut self) {
        let names = self.runs.iter().filter_map(|run| run.name.clone());
        let runs: Vec<String> = names.chain(self.runs.iter().map(|run| run.id.clone())).collect();
        self.names = Names {
            ports: self.ports.iter().map(|port| port.name.clone()).collect(),
            runs,
            flows: self.traffic.flow_names(),
            plans: self.plans.clone(),
            captures: self.captures.clone(),
        };
    }
}

/// Adds a name to a sorted list, or removes it.
fn note(names: &mut Vec<String>, name: &str, exists: bool) {
    match (names.binary_search_by(|it| it.as_str().cmp(name)), exists) {
        (Err(at), true) => names.insert(at, name.to_owned()),
        (Ok(at), false) => drop(names.remove(at)),
        _ => {}
    }
}
