//! The state of a bus: its connection, its subscriptions, and who follows its state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_nats::{ServerInfo, Subscriber};
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::link::{Calls, Link};
use super::{NatsOptions, runtime};
use crate::bus::{STATE_CHANGES_MAX, Source, StateChanges};
use crate::queue::Queue;
use crate::subject::Site;
use crate::{BusError, ConnectionState, Message, RecvError, Server};

/// First and longest time between two attempts to connect again.
const RETRY_TIMES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Most subscriptions of a bus.
const SUBSCRIPTIONS_MAX: usize = 1024;

/// The state of a bus.
pub(super) struct Shared {
    options: NatsOptions,
    event_loop: &'static Handle,
    state: Mutex<State>,
    /// Number of connections so far. It grows with each loss of messages on a reconnection.
    connections: AtomicU64,
    /// Messages that the client library dropped on lost connections.
    dropped: AtomicU64,
}

struct State {
    link: Option<Arc<Link>>,
    connection: ConnectionState,
    followers: Vec<Weak<Queue<ConnectionState>>>,
    subscriptions: BTreeMap<u64, Entry>,
    next_subscription: u64,
    supervisor: Option<AbortHandle>,
}

/// A subscription, and the task that fills its queue on the present connection.
struct Entry {
    pattern: String,
    queue: Arc<Queue<Message>>,
    with_headers: bool,
    task: Option<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(supervisor) = &state.supervisor {
            supervisor.abort();
        }
        for entry in state.subscriptions.values() {
            entry.stop();
            entry.queue.close();
        }
        for follower in state.followers.iter().filter_map(Weak::upgrade) {
            follower.close();
        }
    }
}

impl Entry {
    fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }

    /// Fills the queue from a subscription of the present connection.
    fn fill(&mut self, event_loop: &Handle, mut subscriber: Subscriber) {
        let (queue, with_headers) = (Arc::clone(&self.queue), self.with_headers);
        let task = event_loop.spawn(async move {
            while let Some(message) = subscriber.next().await {
                // A bus sends no headers. What has headers is an answer of the server, which
                // somebody directed to this subject to get around the permissions.
                if with_headers || message.headers.is_none() && message.status.is_none() {
                    queue.push(Message {
                        subject: message.subject.to_string(),
                        payload: message.payload,
                        reply: message.reply.map(|reply| reply.to_string()),
                    });
                }
            }
        });
        self.stop();
        self.task = Some(task.abort_handle());
    }
}

impl Shared {
    pub(super) fn connect(options: NatsOptions) -> Result<Arc<Self>, BusError> {
        let event_loop = runtime::handle()?;
        let (sender, receiver) = sync_channel(1);
        let first = options.clone();
        event_loop.spawn(async move {
            let _ = sender.send(open(&first).await);
        });
        let ended = |_| BusError::server("event loop of the bus", "it has ended");
        let (link, calls, server) = receiver.recv().map_err(ended)??;
        let state = State {
            link: Some(Arc::new(link)),
            connection: ConnectionState::Connected(Arc::new(server)),
            followers: Vec::new(),
            subscriptions: BTreeMap::new(),
            next_subscription: 0,
            supervisor: None,
        };
        let shared = Arc::new(Self {
            options,
            event_loop,
            state: Mutex::new(state),
            connections: AtomicU64::new(1),
            dropped: AtomicU64::new(0),
        });
        let supervisor = event_loop.spawn(supervise(Arc::downgrade(&shared), calls));
        shared.lock().supervisor = Some(supervisor.abort_handle());
        Ok(shared)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn site(&self) -> &Site {
        &self.options.site
    }

    /// Returns the connection for an operation.
    pub(super) fn link(&self, what: &str) -> Result<Arc<Link>, BusError> {
        self.lock().link(what)
    }

    pub(super) fn state(&self) -> ConnectionState {
        self.lock().connection.clone()
    }

    pub(super) fn state_changes(&self) -> StateChanges {
        let queue = Arc::new(Queue::new(STATE_CHANGES_MAX));
        let mut state = self.lock();
        queue.push(state.connection.clone());
        state.followers.push(Arc::downgrade(&queue));
        StateChanges { queue }
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self) -> u64 {
        let now = self.lock().link.as_ref().map_or(0, |link| link.dropped());
        self.dropped.load(Ordering::Relaxed) + now
    }

    /// Subscribes, and waits until the server knows it. Without `with_headers`, messages with
    /// headers are ignored.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        pattern: &str,
        capacity: usize,
        with_headers: bool,
        timeout: Duration,
    ) -> Result<NatsSource, BusError> {
        let queue = Arc::new(Queue::new(capacity));
        let mut entry =
            Entry { pattern: pattern.into(), queue: Arc::clone(&queue), with_headers, task: None };
        let mut state = self.lock();
        let link = state.link(pattern)?;
        let pending = link.begin_sync(Some(pattern));
        if state.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let reason = format!("more than {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(BusError::full(pattern, reason));
        }
        // If the connection changes from here on, the next one subscribes too.
        entry.fill(self.event_loop, link.subscribe(pattern)?);
        let id = state.next_subscription;
        state.next_subscription += 1;
        state.subscriptions.insert(id, entry);
        drop(state);
        let source = NatsSource { shared: Arc::downgrade(self), id, queue };
        pending.synced(timeout)?;
        Ok(source)
    }

    /// Makes a new connection the present one.
    fn set_link(&self, link: Link, server: Server) {
        let link = Arc::new(link);
        let mut state = self.lock();
        for entry in state.subscriptions.values_mut() {
            // An error means that the new connection is lost already; the next one subscribes.
            if let Ok(subscriber) = link.subscribe(&entry.pattern) {
                entry.fill(self.event_loop, subscriber);
            }
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        state.link = Some(link);
        state.tell(ConnectionState::Connected(Arc::new(server)));
    }

    fn set_lost(&self, since: Instant, reason: String) {
        let mut state = self.lock();
        if let Some(link) = state.link.take() {
            self.dropped.fetch_add(link.dropped(), Ordering::Relaxed);
        }
        let new = ConnectionState::Disconnected { since, reason };
        if state.connection != new {
            state.tell(new);
        }
    }
}

impl State {
    fn link(&self, what: &str) -> Result<Arc<Link>, BusError> {
        let reason = match (&self.link, &self.connection) {
            (Some(link), _) => return Ok(Arc::clone(link)),
            (None, ConnectionState::Disconnected { reason, .. }) => reason.clone(),
            (None, ConnectionState::Connected(_)) => "the connection was lost".into(),
        };
        Err(BusError::Disconnected { what: what.into(), reason })
    }

    fn tell(&mut self, connection: ConnectionState) {
        self.connection = connection.clone();
        self.followers.retain(|follower| match follower.upgrade() {
            Some(queue) => {
                queue.push(connection.clone());
                true
            }
            None => false,
        });
    }
}

/// Connects to the first address that answers.
async fn open(options: &NatsOptions) -> Result<(Link, Arc<Calls>, Server), BusError> {
    let mut first_error = None;
    for address in &options.addresses {
        match Link::open(options, address).await {
            Ok((link, calls, info)) => return Ok((link, calls, server(address, &info))),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| BusError::invalid("addresses of the bus", "there is none")))
}

fn server(address: &str, info: &ServerInfo) -> Server {
    Server {
        address: address.into(),
        version: info.version.clone(),
        advisories: super::advisories::of_version(&info.version),
    }
}

/// Connects again after each loss, until the bus is dropped.
async fn supervise(shared: Weak<Shared>, mut calls: Arc<Calls>) {
    loop {
        let mut reason = calls.lost().await;
        let since = Instant::now();
        let mut pause = RETRY_TIMES.0;
        loop {
            let Some(options) = shared.upgrade().map(|shared| {
                shared.set_lost(since, reason.clone());
                shared.options.clone()
            }) else {
                return;
            };
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_TIMES.1);
            match open(&options).await {
                Ok((link, new, server)) => {
                    let Some(shared) = shared.upgrade() else { return };
                    shared.set_link(link, server);
                    calls = new;
                    break;
                }
                Err(BusError::Denied { reason: new, .. })
                | Err(BusError::Disconnected { reason: new, .. }) => reason = new,
                Err(error) => reason = error.to_string(),
            }
        }
    }
}

/// The messages of one subscription.
#[derive(Debug)]
pub(super) struct NatsSource {
    shared: Weak<Shared>,
    id: u64,
    queue: Arc<Queue<Message>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Source<Message> for NatsSource {
    fn recv(&self, timeout: Duration) -> Result<Message, RecvError> {
        self.queue.pop(timeout)
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for NatsSource {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let entry = shared.lock().subscriptions.remove(&self.id);
        if let Some(entry) = entry {
            entry.stop();
        }
    }
}
