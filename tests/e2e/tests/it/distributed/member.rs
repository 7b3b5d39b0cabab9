//! A member of the bus that uses its credentials for more than Wirestorm does: a NATS client of its own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, Event, Subscriber};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(10);

/// A connection with the credentials of an agent or a director.
pub(super) struct Member {
    runtime: Runtime,
    client: Client,
    /// Errors that the server sent.
    errors: Arc<Mutex<Vec<String>>>,
}

impl Member {
    pub(super) fn connect(credentials: PathBuf) -> Self {
        let text = std::fs::read_to_string(&credentials).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let field = |name: &str| file[name].as_str().unwrap().to_owned();
        let authority = credentials.with_extension("pem");
        std::fs::write(&authority, field("authority")).unwrap();
        let errors = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&errors);
        let inbox = format!("_INBOX.ws.{}.{}.{}", field("site"), field("role"), field("name"));
        let options = ConnectOptions::with_nkey(field("seed"))
            .add_root_certificates(authority)
            .custom_inbox_prefix(inbox)
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    noted.lock().unwrap().push(error.to_string());
                }
                async {}
            });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(options.connect(field("url"))).unwrap();
        Self { runtime, client, errors }
    }

    /// Publishes a message.
    pub(super) fn publish(&self, subject: &str, payload: &[u8]) {
        let payload = payload.to_vec().into();
        self.runtime.block_on(async {
            self.client.publish(subject.to_owned(), payload).await.unwrap();
            self.client.flush().await.unwrap();
        });
    }

    /// Publishes a message, and waits until the server refuses it.
    #[track_caller]
    pub(super) fn publish_refused(&self, subject: &str, payload: &[u8]) {
        self.publish(subject, payload);
        let began = Instant::now();
        let is_refused = |error: &String| {
            error.to_lowercase().contains("permissions violation") && error.contains(subject)
        };
        while !self.errors.lock().unwrap().iter().any(is_refused) {
            assert!(began.elapsed() < SOON, "{subject} is not refused: {:?}", self.errors);
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(10)).await });
        }
    }

    pub(super) fn request(&self, subject: &str, payload: &[u8]) -> Value {
        let payload = payload.to_vec().into();
        let answer = self.runtime.block_on(async {
            let request = self.client.request(subject.to_owned(), payload);
            tokio::time::timeout(SOON, request).await.unwrap().unwrap()
        });
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// Subscribes; the server has the subscription when this returns.
    pub(super) fn subscribe(&self, subject: &str) -> Subscriber {
        self.runtime.block_on(async {
            let subscriber = self.client.subscribe(subject.to_owned()).await.unwrap();
            self.client.flush().await.unwrap();
            // The server answers in order, so it has read the subscription.
            let _ = self.client.request("ws.default.nobody", "".into()).await;
            subscriber
        })
    }

    /// Returns all messages until none follows for some time.
    pub(super) fn drain(&self, subscriber: &mut Subscriber) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        self.runtime.block_on(async {
            let pause = Duration::from_millis(300);
            while let Ok(Some(message)) = tokio::time::timeout(pause, subscriber.next()).await {
                messages.push(message.payload.to_vec());
            }
        });
        messages
    }
}
