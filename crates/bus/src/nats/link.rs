//! One connection to a server, from the handshake to its loss.
//!
//! A connection that was lost is never used again: its queue may hold commands that would arrive
//! late after a reconnection of the client library. So each connection is a client of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{AuthError, Client, Event, HeaderMap, ServerError, ServerInfo};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::NatsOptions;
use crate::BusError;

/// Time for a connection to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time without any message after which the client asks the server for a sign of life. It counts
/// the connection as lost after two pings without an answer.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// Number of messages that wait to be sent.
const SEND_QUEUE: usize = 2048;
/// Number of messages of a subscription between the event loop and its queue.
const RECEIVE_QUEUE: usize = 8192;
/// Number of refused messages that are kept for the next flush.
const REFUSED_MAX: usize = 16;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    /// Prefix of the answers to requests of this connection.
    inbox: String,
    next_token: AtomicU64,
    calls: Arc<Calls>,
    /// The task that receives the answers. It holds a part of the client, so it must end with it.
    answers: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// Requests in flight, and what the server refused. The client's tasks share it.
#[derive(Debug, Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    lost: Notify,
    /// Messages that the client library dropped.
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<u64, Call>,
    /// Reason of the loss, once the connection is lost.
    lost: Option<String>,
    /// Last error that the server sent; often the reason of a loss that follows.
    last_error: Option<String>,
    /// Subjects of messages that the server refused, for the next flush.
    refused: Vec<String>,
}

#[derive(Debug)]
struct Call {
    subject: String,
    /// Pattern of a subscription that the call waits for.
    pattern: Option<String>,
    answer: SyncSender<Answer>,
}

#[derive(Debug)]
enum Answer {
    Reply(Box<async_nats::Message>),
    Denied(String),
    Lost(String),
}

/// An answer to a request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) payload: Bytes,
    pub(super) headers: HeaderMap,
    /// Status, such as 404 of JetStream; `None` for a usual message.
    pub(super) status: Option<u16>,
}

/// Loses the connection when the client's tasks end, even if the event of that was dropped.
struct LoseOnDrop(Arc<Calls>);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose("the connection ended");
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the connection is lost; returns the reason.
    pub(super) async fn lost(&self) -> String {
        loop {
            let notified = self.lost.notified();
            if let Some(reason) = self.lock().lost.clone() {
                return reason;
            }
            notified.await;
        }
    }

    fn lose(&self, reason: &str) {
        let mut state = self.lock();
        if state.lost.is_some() {
            return;
        }
        let reason = state.last_error.clone().unwrap_or_else(|| reason.to_owned());
        for (_, call) in state.calls.drain() {
            let _ = call.answer.try_send(Answer::Lost(reason.clone()));
        }
        state.lost = Some(reason);
        drop(state);
        self.lost.notify_waiters();
    }

    fn handle(&self, event: Event) {
        match event {
            Event::Disconnected | Event::Closed => self.lose("the connection was lost"),
            Event::ServerError(ServerError::Other(text)) => self.server_error(&text),
            Event::ServerError(error) => self.lock().last_error = Some(error.to_string()),
            Event::SlowConsumer(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Handles an error of the server, such as `Permissions Violation for Publish to "a.b"`.
    fn server_error(&self, text: &str) {
        let mut state = self.lock();
        let Some(subject) = text.split('"').nth(1).filter(|_| text.contains("ermissions")) else {
            state.last_error = Some(text.to_owned());
            return;
        };
        let is_subscription = text.contains("Subscription");
        let concerns = |call: &Call| match is_subscription {
            true => call.pattern.as_deref() == Some(subject),
            false => call.subject == subject,
        };
        let denied: Vec<u64> = state
            .calls
            .iter()
            .filter_map(|(token, call)| concerns(call).then_some(*token))
            .collect();
        if denied.is_empty() && !is_subscription && state.refused.len() < REFUSED_MAX {
            state.refused.push(subject.to_owned());
        }
        for token in denied {
            if let Some(call) = state.calls.remove(&token) {
                let _ = call.answer.try_send(Answer::Denied(text.to_owned()));
            }
        }
    }

    fn answer(&self, token: u64, message: async_nats::Message) {
        let call = self.lock().calls.remove(&token);
        if let Some(call) = call {
            let _ = call.answer.try_send(Answer::Reply(Box::new(message)));
        }
    }
}

impl Link {
    /// Connects to a server.
    pub(super) async fn open(
        options: &NatsOptions,
        address: &str,
    ) -> Result<(Self, Arc<Calls>, ServerInfo), BusError> {
        let calls = Arc::new(Calls::default());
        let on_event = LoseOnDrop(Arc::clone(&calls));
        let key = options.key.clone();
        let is_used = Arc::new(AtomicBool::new(false));
        let mut connect = async_nats::ConnectOptions::with_auth_callback(move |nonce| {
            let key = key.clone();
            let is_used = is_used.swap(true, Ordering::Relaxed);
            async move {
                let mut auth = async_nats::Auth::new();
                // Ends the client's attempt to connect again; see the top of this file.
                if is_used {
                    return Err(AuthError::new("a connection is used once"));
                }
                if let Some(key) = key {
                    auth.signature = Some(key.sign(&nonce).map_err(AuthError::new)?);
                    auth.nkey = Some(key.public());
                }
                Ok(auth)
            }
        })
        .name(&options.name)
        .custom_inbox_prefix(&options.inbox)
        .max_reconnects(1)
        .ignore_discovered_servers()
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .client_capacity(SEND_QUEUE)
        .subscription_capacity(RECEIVE_QUEUE)
        .event_callback(move |event| {
            on_event.0.handle(event);
            std::future::ready(())
        });
        if let Some(config) = &options.tls {
            connect = connect.tls_client_config(config.clone()).require_tls(true);
        }
        let client = connect.connect(address).await.map_err(|error| refused(address, &error))?;
        let info = client.server_info();
        let inbox = client.new_inbox();
        let mut answers = client
            .subscribe(format!("{inbox}.*"))
            .await
            .map_err(|error| BusError::server(address, error.to_string()))?;
        let answer_to = Arc::clone(&calls);
        let answers = tokio::spawn(async move {
            while let Some(message) = answers.next().await {
                if message.status.is_some() {
                    // A refusal that came before it is with another task, which runs first now.
                    tokio::task::yield_now().await;
                }
                let token = message.subject.rsplit('.').next().and_then(|it| it.parse().ok());
                if let Some(token) = token {
                    answer_to.answer(token, message);
                }
            }
        });
        let link = Self {
            client,
            inbox,
            next_token: AtomicU64::new(0),
            calls: Arc::clone(&calls),
            answers: answers.abort_handle(),
        };
        Ok((link, calls, info))
    }

    /// Puts a message into the send queue; never waits.
    pub(super) fn send(
        &self,
        subject: &str,
        reply: Option<String>,
        headers: Option<HeaderMap>,
        payload: &[u8],
    ) -> Result<(), BusError> {
        if let Some(reason) = self.calls.lock().lost.clone() {
            return Err(BusError::Disconnected { what: subject.into(), reason });
        }
        let payload = Bytes::copy_from_slice(payload);
        let subject_owned = subject.to_owned();
        let client = &self.client;
        let sent = match (reply, headers) {
            (None, None) => client.publish(subject_owned, payload).now_or_never(),
            (None, Some(headers)) => {
                client.publish_with_headers(subject_owned, headers, payload).now_or_never()
            }
            (Some(reply), None) => {
                client.publish_with_reply(subject_owned, reply, payload).now_or_never()
            }
            (Some(reply), Some(headers)) => client
                .publish_with_reply_and_headers(subject_owned, reply, headers, payload)
                .now_or_never(),
        };
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                use async_nats::client::PublishErrorKind;
                let reason = error.to_string();
                match error.kind() {
                    PublishErrorKind::Send => {
                        Err(BusError::Disconnected { what: subject.into(), reason })
                    }
                    _ => Err(BusError::invalid(subject, reason)),
                }
            }
            None => Err(BusError::full(
                subject,
                format!("{SEND_QUEUE} messages wait to be sent; the connection is too slow"),
            )),
        }
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn call(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<Reply, BusError> {
        self.begin(subject, None).finish(headers, payload, timeout)
    }

    /// Registers a request before it is sent. `pattern` is a subscription whose refusal is the
    /// answer too.
    fn begin(&self, subject: &str, pattern: Option<&str>) -> Pending<'_> {
        let token = self.next_token.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = sync_channel(1);
        let call =
            Call { subject: subject.into(), pattern: pattern.map(Into::into), answer: sender };
        self.calls.lock().calls.insert(token, call);
        let what = pattern.unwrap_or(subject).to_owned();
        Pending { link: self, token, subject: subject.into(), what, receiver }
    }

    /// Waits until the server has handled all that was sent before.
    ///
    /// It sends a request to a subject without subscribers; the server answers in order.
    pub(super) fn sync(&self, timeout: Duration) -> Result<(), BusError> {
        self.begin_sync(None).synced(timeout)
    }

    /// Begins [`Self::sync`] for a subscription that is sent afterwards.
    pub(super) fn begin_sync(&self, pattern: Option<&str>) -> Pending<'_> {
        self.begin(&format!("{}.nobody.sync", self.inbox), pattern)
    }

    /// Returns the subjects of messages that the server refused since the last call.
    pub(super) fn take_refused(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().refused)
    }

    /// Subscribes without waiting for the server.
    pub(super) fn subscribe(&self, pattern: &str) -> Result<async_nats::Subscriber, BusError> {
        match self.client.subscribe(pattern.to_owned()).now_or_never() {
            Some(Ok(subscriber)) => Ok(subscriber),
            Some(Err(error)) => {
                Err(BusError::Disconnected { what: pattern.into(), reason: error.to_string() })
            }
            None => Err(BusError::full(
                pattern,
                format!("{SEND_QUEUE} messages wait to be sent; the connection is too slow"),
            )),
        }
    }

    /// Returns the number of messages that the client library dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.calls.dropped.load(Ordering::Relaxed)
    }
}

/// A request that was not sent yet.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    link: &'a Link,
    token: u64,
    subject: String,
    /// What errors are about.
    what: String,
    receiver: Receiver<Answer>,
}

impl Pending<'_> {
    /// Sends the request, and waits for its answer.
    fn finish(
        &self,
        headers: Option<HeaderMap>,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<Reply, BusError> {
        let what = || self.what.clone();
        let reply = format!("{}.{}", self.link.inbox, self.token);
        self.link.send(&self.subject, Some(reply), headers, payload)?;
        match self.receiver.recv_timeout(timeout) {
            Ok(Answer::Reply(message)) => Ok(Reply {
                payload: message.payload,
                headers: message.headers.unwrap_or_default(),
                status: message.status.map(|status| status.as_u16()),
            }),
            Ok(Answer::Denied(reason)) => Err(BusError::Denied { what: what(), reason }),
            Ok(Answer::Lost(reason)) => Err(BusError::Disconnected { what: what(), reason }),
            Err(_) => Err(BusError::Timeout { what: what(), after: timeout }),
        }
    }

    /// Waits until the server has handled what was sent before; the error is the refusal of the
    /// subscription.
    pub(super) fn synced(&self, timeout: Duration) -> Result<(), BusError> {
        match self.finish(None, b"", timeout) {
            // The refusal of the request itself is an answer too.
            Err(BusError::Denied { reason, .. }) if reason.contains("nobody.sync") => Ok(()),
            other => other.map(drop),
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.link.calls.lock().calls.remove(&self.token);
    }
}

fn refused(address: &str, error: &async_nats::ConnectError) -> BusError {
    use async_nats::ConnectErrorKind as Kind;
    let what = address.to_owned();
    match error.kind() {
        Kind::Authentication | Kind::AuthorizationViolation => BusError::Denied {
            what,
            reason: "the server does not know this key: it is wrong, or it was revoked".into(),
        },
        Kind::ServerParse => BusError::invalid(
            format!("address {what:?}"),
            "expected nats://HOST:PORT or tls://HOST:PORT",
        ),
        _ => BusError::Disconnected { what, reason: error.to_string() },
    }
}
