//! Changes on the server as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;
use wirestorm_api::event::Event;

use super::answer::{Answer, blocking};
use crate::server::Server;

/// Changes on the server as server-sent events
///
/// The data of each event is an `Event` document. The stream begins with the ports and the active
/// runs. A reader that is too slow gets `missed` with the number of events that it missed.
#[utoipa::path(get, path = "/events", tag = "events",
    responses((status = 200, content_type = "text/event-stream", body = Event)))]
pub(super) async fn events(
    State(server): State<Arc<Server>>,
) -> Answer<Sse<impl Stream<Item = Result<Sent, Infallible>>>> {
    // Subscribed first: nothing is lost between the lists and the changes.
    let changes = server.subscribe();
    let first = blocking(move || {
        let ports = Event::Ports { ports: server.ports() };
        let runs = server.active_runs().into_iter().map(|run| Event::Run { run: Box::new(run) });
        Ok(std::iter::once(ports).chain(runs).map(Arc::new).collect::<VecDeque<_>>())
    })
    .await?;
    let events = stream::unfold((first, changes), |(mut first, mut changes)| async move {
        let event = match first.pop_front() {
            Some(event) => event,
            None => match changes.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(events)) => Arc::new(Event::Missed { events }),
                Err(RecvError::Closed) => return None,
            },
        };
        let sent = Sent::default().json_data(&*event).ok()?;
        Some((Ok(sent), (first, changes)))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}
