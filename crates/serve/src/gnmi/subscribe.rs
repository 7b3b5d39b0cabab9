//! The RPC Subscribe.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tonic::{Status, Streaming};
use wirestorm_gnmi::gnmi::subscribe_request::Request;
use wirestorm_gnmi::gnmi::subscribe_response::Response;
use wirestorm_gnmi::gnmi::subscription_list::Mode;
use wirestorm_gnmi::gnmi::{
    Path, SubscribeRequest, SubscribeResponse, Subscription, SubscriptionList, SubscriptionMode,
};

use super::change::changes;
use super::selection::Selection;
use super::service::{PATHS_MAX, Source, check_extensions, echo, form, select};
use super::tree::Tree;
use super::value::Form;

/// Interval of samples without one in the request.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval of samples and heartbeats.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Longest interval; longer ones count as this one.
const INTERVAL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Interval at which changes are looked for.
const CHANGE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of different schedules of an RPC. Each keeps the values of its last time.
const SCHEDULES_MAX: usize = 16;

/// Why an RPC ends: with an error, or without because the client is gone.
type End = Option<Status>;

/// Executes an RPC until its end.
///
/// # Errors
/// A request is not valid, or the client is gone.
pub(super) async fn run(
    mut requests: Streaming<SubscribeRequest>,
    source: &Source,
    sender: &Sender<Result<SubscribeResponse, Status>>,
) -> Result<(), End> {
    let sink = Sink { source, sender };
    let Some(first) = sink.next(&mut requests).await? else {
        return Err(Some(Status::invalid_argument("found no request, expected `subscribe`")));
    };
    let list = match first {
        Request::Subscribe(list) => list,
        Request::Poll(_) => {
            let message = "found `poll` as the first request, expected `subscribe`";
            return Err(Some(Status::invalid_argument(message)));
        }
    };
    let list = List::new(&list)?;
    match list.mode {
        Mode::Once => sink.once(&list).await,
        Mode::Poll => {
            sink.once(&list).await?;
            while let Some(request) = sink.next(&mut requests).await? {
                if !matches!(request, Request::Poll(_)) {
                    return Err(Some(Status::invalid_argument("expected `poll`")));
                }
                sink.all(&list).await?;
            }
            Ok(())
        }
        Mode::Stream => sink.stream(list, requests).await,
    }
}

/// A valid list of subscriptions.
pub(super) struct List {
    mode: Mode,
    pub(super) prefix: Option<Path>,
    pub(super) form: Form,
    updates_only: bool,
    /// Paths by schedule.
    pub(super) schedules: Vec<(Schedule, Vec<Selection>)>,
}

/// When values are sent in the mode STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    interval: Duration,
    /// Whether to send values that have changed, and no others.
    only_changes: bool,
    /// Interval at which all values are sent although they have not changed.
    heartbeat: Option<Duration>,
}

impl List {
    pub(super) fn new(list: &SubscriptionList) -> Result<Self, Status> {
        let invalid = |message: String| Status::invalid_argument(message);
        let mode = Mode::try_from(list.mode)
            .map_err(|_| invalid(format!("mode: found {}, expected 0 to 2", list.mode)))?;
        let count = list.subscription.len();
        if count == 0 || count > PATHS_MAX {
            let message = format!("subscription: found {count}, expected 1 to {PATHS_MAX}");
            return Err(invalid(message));
        }
        let form = form(list.encoding)?;
        let mut schedules: Vec<(Schedule, Vec<Selection>)> = Vec::new();
        for subscription in &list.subscription {
            let schedule = match mode {
                Mode::Stream => Schedule::new(subscription)?,
                Mode::Once | Mode::Poll => Schedule::SINGLE,
            };
            let path = subscription.path.as_ref();
            let selection = select(list.prefix.as_ref(), path, &list.use_models)?;
            match schedules.iter_mut().find(|it| it.0 == schedule) {
                Some((_, selections)) => selections.push(selection),
                None => schedules.push((schedule, vec![selection])),
            }
        }
        if schedules.len() > SCHEDULES_MAX {
            let found = schedules.len();
            return Err(Status::resource_exhausted(format!(
                "subscription: found {found} different intervals and modes, expected at most \
                 {SCHEDULES_MAX}: use several RPCs"
            )));
        }
        let updates_only = list.updates_only;
        Ok(Self { mode, prefix: echo(list.prefix.as_ref()), form, updates_only, schedules })
    }

    /// Returns whether a path selects tagged metrics.
    fn has_tagged(&self) -> bool {
        self.schedules.iter().flat_map(|it| &it.1).any(Selection::has_tagged)
    }
}

impl Schedule {
    const SINGLE: Self = Self { interval: Duration::ZERO, only_changes: false, heartbeat: None };

    fn new(subscription: &Subscription) -> Result<Self, Status> {
        let interval = |name: &str, ns: u64| {
            let interval = Duration::from_nanos(ns);
            if interval < INTERVAL_MIN {
                let min = INTERVAL_MIN.as_nanos();
                let message = format!("{name}: found {ns} ns, expected at least {min} ns");
                return Err(Status::invalid_argument(message));
            }
            Ok(interval.min(INTERVAL_MAX))
        };
        let heartbeat = match subscription.heartbeat_interval {
            0 => None,
            ns => Some(interval("heartbeat_interval", ns)?),
        };
        let mode = SubscriptionMode::try_from(subscription.mode).map_err(|_| {
            let found = subscription.mode;
            Status::invalid_argument(format!("subscription.mode: found {found}, expected 0 to 2"))
        })?;
        Ok(match mode {
            SubscriptionMode::TargetDefined | SubscriptionMode::OnChange => {
                Self { interval: CHANGE_INTERVAL, only_changes: true, heartbeat }
            }
            SubscriptionMode::Sample => {
                let only_changes = subscription.suppress_redundant;
                let interval = match subscription.sample_interval {
                    0 => SAMPLE_INTERVAL,
                    ns => interval("sample_interval", ns)?,
                };
                let heartbeat = heartbeat.filter(|_| only_changes);
                Self { interval, only_changes, heartbeat }
            }
        })
    }
}

/// Paths with the same schedule.
struct Group {
    schedule: Schedule,
    selections: Vec<Selection>,
    /// Values of the last time.
    last: Arc<Tree>,
    next: Instant,
    next_heartbeat: Option<Instant>,
}

impl Group {
    fn due(&self) -> Instant {
        self.next_heartbeat.map_or(self.next, |heartbeat| heartbeat.min(self.next))
    }

    /// Returns whether all values are due, and not only those that have changed; plans the next
    /// time. Times that a slow client made impossible are left out.
    fn advance(&mut self, now: Instant) -> bool {
        let after = |due: Instant, interval: Duration| {
            let next = due + interval;
            if next > now { next } else { now + interval }
        };
        let mut is_all = false;
        if self.next <= now {
            self.next = after(self.next, self.schedule.interval);
            is_all = !self.schedule.only_changes;
        }
        if let (Some(due), Some(interval)) = (self.next_heartbeat, self.schedule.heartbeat)
            && due <= now
        {
            self.next_heartbeat = Some(after(due, interval));
            is_all = true;
        }
        is_all
    }
}

/// Sends the responses of an RPC. Each method ends when the client is gone.
struct Sink<'a> {
    source: &'a Source,
    sender: &'a Sender<Result<SubscribeResponse, Status>>,
}

impl Sink<'_> {
    /// Returns the next request; `None` after the last one.
    async fn next(
        &self,
        requests: &mut Streaming<SubscribeRequest>,
    ) -> Result<Option<Request>, End> {
        let message = tokio::select! {
            message = requests.next() => message,
            () = self.sender.closed() => return Err(None),
        };
        let Some(message) = message else { return Ok(None) };
        let message = message.map_err(Some)?;
        check_extensions(&message.extension)?;
        let request = message.request.ok_or_else(|| {
            Some(Status::invalid_argument("request: found nothing, expected `subscribe` or `poll`"))
        })?;
        Ok(Some(request))
    }

    /// Reads the values, with tagged metrics if wanted.
    async fn read(&self, with_tags: bool) -> Result<Arc<Tree>, End> {
        tokio::select! {
            tree = self.source.read(with_tags, Arc::new) => Ok(tree?),
            () = self.sender.closed() => Err(None),
        }
    }

    async fn send(&self, response: Response) -> Result<(), End> {
        let response = SubscribeResponse { response: Some(response), ..Default::default() };
        self.sender.send(Ok(response)).await.map_err(|_| None)
    }

    async fn sync(&self) -> Result<(), End> {
        self.send(Response::SyncResponse(true)).await
    }

    /// Sends all values once, unless the client wants updates only.
    async fn once(&self, list: &List) -> Result<(), End> {
        match list.updates_only {
            true => self.sync().await,
            false => self.all(list).await,
        }
    }

    async fn all(&self, list: &List) -> Result<(), End> {
        let tree = self.read(list.has_tagged()).await?;
        for selection in list.schedules.iter().flat_map(|it| &it.1) {
            self.changes(list, selection, None, &tree, true).await?;
        }
        self.sync().await
    }

    async fn stream(
        &self,
        mut list: List,
        mut requests: Streaming<SubscribeRequest>,
    ) -> Result<(), End> {
        let with_tags = list.has_tagged();
        let start = self.read(with_tags).await?;
        let now = Instant::now();
        let schedules = std::mem::take(&mut list.schedules);
        let mut groups = Vec::with_capacity(schedules.len());
        for (schedule, selections) in schedules {
            if !list.updates_only {
                for selection in &selections {
                    self.changes(&list, selection, None, &start, true).await?;
                }
            }
            groups.push(Group {
                last: Arc::clone(&start),
                next: now + schedule.interval,
                next_heartbeat: schedule.heartbeat.map(|interval| now + interval),
                schedule,
                selections,
            });
        }
        self.sync().await?;
        drop(start);
        let mut may_request = true;
        loop {
            let Some(due) = groups.iter().map(Group::due).min() else { return Ok(()) };
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                request = self.next(&mut requests), if may_request => match request? {
                    Some(_) => {
                        let message = "found another request, expected none in the mode STREAM";
                        return Err(Some(Status::invalid_argument(message)));
                    }
                    // The client has no more requests, and still receives.
                    None => {
                        may_request = false;
                        continue;
                    }
                },
                () = self.sender.closed() => return Err(None),
            }
            let tree = self.read(with_tags).await?;
            let now = Instant::now();
            for group in groups.iter_mut().filter(|it| it.due() <= now) {
                let is_all = group.advance(now);
                for selection in &group.selections {
                    self.changes(&list, selection, Some(&group.last), &tree, is_all).await?;
                }
                group.last = Arc::clone(&tree);
            }
        }
    }

    /// Sends the selected values that have changed since the last tree, or all of them.
    async fn changes(
        &self,
        list: &List,
        selection: &Selection,
        last: Option<&Tree>,
        tree: &Tree,
        is_all: bool,
    ) -> Result<(), End> {
        for change in changes(list, selection, last, tree, is_all) {
            // Without changes nothing else gives way to other tasks.
            tokio::task::consume_budget().await;
            if let Some(notification) = change {
                self.send(Response::Update(notification)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(mode: SubscriptionMode) -> Subscription {
        Subscription { mode: mode.into(), ..Subscription::default() }
    }

    fn subscribed(subscriptions: Vec<Subscription>) -> Result<List, Status> {
        List::new(&SubscriptionList { subscription: subscriptions, ..Default::default() })
    }

    #[test]
    fn intervals_are_checked() {
        let sample =
            |ns| Subscription { sample_interval: ns, ..subscription(SubscriptionMode::Sample) };
        let list = subscribed(vec![sample(0)]).unwrap();
        assert_eq!(list.schedules[0].0.interval, Duration::from_secs(1));
        let error = subscribed(vec![sample(9_999_999)]).err().unwrap();
        assert_eq!(
            error.message(),
            "sample_interval: found 9999999 ns, expected at least 10000000 ns"
        );
        assert!(subscribed(vec![sample(u64::MAX)]).is_ok());
        let many = |count: u64| (0..count).map(|it| sample(10_000_000 + it)).collect();
        assert!(subscribed(many(16)).is_ok());
        assert!(subscribed(many(17)).is_err());
        assert_eq!(subscribed(vec![sample(0); 1_000]).unwrap().schedules.len(), 1);
        assert!(subscribed(vec![sample(0); 1_001]).is_err());
        assert!(subscribed(Vec::new()).is_err());
    }

    #[test]
    fn a_late_time_is_not_made_up_for() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let heartbeat = Some(start + 3 * second);
        let schedule =
            Schedule { interval: second, only_changes: true, heartbeat: Some(3 * second) };
        let mut group = Group {
            schedule,
            selections: Vec::new(),
            last: Arc::default(),
            next: start + second,
            next_heartbeat: heartbeat,
        };
        assert!(!group.advance(start + second));
        assert_eq!(group.due(), start + 2 * second);
        assert!(group.advance(start + 10 * second), "the heartbeat is due");
        assert_eq!(group.due(), start + 11 * second);
        assert_eq!(group.next_heartbeat, Some(start + 13 * second));
    }
}
