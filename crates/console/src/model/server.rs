//! What happens on the server: lists, changes, and counters of runs.

use std::collections::BTreeSet;

use wirestorm_api::event::Event;
use wirestorm_api::run::{RunList, RunSummary};

use super::{Connection, Effect, FOLLOWED_MAX, Model, RUNS_MAX, ServerUpdate};
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
            ServerUpdate::Runs(list) => {
                (self.runs, self.runs_total, self.runs_next) = (list.runs, list.total, list.next);
                self.runs_reading = None;
                for run in self.runs.iter().filter(|run| run.state.is_over()) {
                    self.traffic.end(&run.id, run.state);
                    self.followed.remove(&run.id);
                }
                let active: BTreeSet<String> = self.active().map(|run| run.id.clone()).collect();
                self.traffic.retain_active(|run| active.contains(run));
                self.update_names();
                self.follow_active()
            }
            ServerUpdate::MoreRuns(after, list) => {
                self.add_runs(&after, list);
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
                self.runs.retain(|run| run.id != id);
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
                self.runs.insert(at, run);
                self.runs.truncate(RUNS_MAX);
                // An active run may be older than the pages that were read.
                self.runs_total += usize::from(at == 0);
            }
        }
        self.update_names();
    }

    /// Adds the runs after the oldest known one.
    fn add_runs(&mut self, after: &str, list: RunList) {
        let is_next = self.runs_reading.take().is_some_and(|reading| reading == after);
        if !is_next {
            return;
        }
        let known: BTreeSet<&str> = self.runs.iter().map(|run| run.id.as_str()).collect();
        let new = list.runs.into_iter().filter(|run| !known.contains(run.id.as_str()));
        let new: Vec<RunSummary> = new.collect();
        self.runs.extend(new);
        // A run that was active may have been added before its page.
        self.runs.sort_by(|a, b| (b.created_unix_ns, &b.id).cmp(&(a.created_unix_ns, &a.id)));
        self.runs.truncate(RUNS_MAX);
        (self.runs_total, self.runs_next) = (list.total, list.next);
        self.update_names();
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
