//! Messages and requests within one process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::bus::Source;
use crate::queue::Queue;
use crate::subject::{INBOX, matches};
use crate::{BusError, Message, RecvError};

/// The subscriptions of a bus.
#[derive(Debug, Default)]
pub(super) struct Messages {
    list: Arc<Mutex<Subscriptions>>,
    requests: AtomicU64,
}

type Queues = BTreeMap<u64, (String, Arc<Queue<Message>>)>;

#[derive(Debug, Default)]
struct Subscriptions {
    queues: Queues,
    next: u64,
}

impl Drop for Messages {
    fn drop(&mut self) {
        lock(&self.list).queues.values().for_each(|(_, queue)| queue.close());
    }
}

impl Messages {
    /// Sends a message; returns the number of subscriptions that it fits.
    pub(super) fn send(&self, subject: &str, payload: &[u8], reply: Option<&str>) -> usize {
        let payload = Bytes::copy_from_slice(payload);
        let list = lock(&self.list);
        let receivers = list.queues.values().filter(|(pattern, _)| matches(pattern, subject));
        receivers
            .map(|(_, queue)| {
                queue.push(Message {
                    subject: subject.into(),
                    payload: payload.clone(),
                    reply: reply.map(str::to_owned),
                });
            })
            .count()
    }

    pub(super) fn request(
        &self,
        subject: &str,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, BusError> {
        let inbox = format!("{INBOX}.{}", self.requests.fetch_add(1, Ordering::Relaxed));
        let answers = self.subscribe(&inbox, 1);
        if self.send(subject, payload, Some(&inbox)) == 0 {
            return Err(BusError::NoResponder { subject: subject.into() });
        }
        match answers.recv(timeout) {
            Ok(answer) => Ok(answer.payload),
            Err(_) => Err(BusError::Timeout { what: subject.into(), after: timeout }),
        }
    }

    pub(super) fn subscribe(&self, pattern: &str, capacity: usize) -> LocalSource {
        let queue = Arc::new(Queue::new(capacity));
        let mut list = lock(&self.list);
        let id = list.next;
        list.next += 1;
        list.queues.insert(id, (pattern.into(), Arc::clone(&queue)));
        LocalSource { list: Arc::clone(&self.list), id, queue }
    }
}

fn lock(list: &Mutex<Subscriptions>) -> MutexGuard<'_, Subscriptions> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The messages of one subscription.
#[derive(Debug)]
pub(super) struct LocalSource {
    list: Arc<Mutex<Subscriptions>>,
    id: u64,
    queue: Arc<Queue<Message>>,
}

impl Source<Message> for LocalSource {
    fn recv(&self, timeout: Duration) -> Result<Message, RecvError> {
        self.queue.pop(timeout)
    }

    fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for LocalSource {
    fn drop(&mut self) {
        lock(&self.list).queues.remove(&self.id);
    }
}
