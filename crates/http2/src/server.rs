//! Server side of an HTTP/2 session: responds to requests in their order.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, StreamId};
use http::Method;
use http::uri::Scheme;
use wirestorm_stack::content::MessageCounters;

use crate::cause::Cause;
use crate::head;
use crate::incoming::IncomingMessage;
use crate::outgoing::{MessageWriter, Step};
use crate::pipe::{Pipe, WakeFlag};
use crate::session::End;
use crate::settings::Http2Settings;

/// HTTP/2 connection of one server.
#[derive(Debug)]
pub(crate) struct Server {
    stage: Stage,
    woken: WakeFlag,
    unanswered_max: usize,
    speaker: MessageWriter,
    /// Requests that the program has not received completely, in the order of arrival.
    requests: VecDeque<IncomingMessage>,
    /// Requests without a response, in the order of arrival.
    unanswered: VecDeque<Unanswered>,
    counters: MessageCounters,
}

#[derive(Debug)]
enum Stage {
    /// Waits for the client's connection preface.
    Beginning(Handshake<Pipe, Bytes>),
    Connected(Connection<Pipe, Bytes>),
    Over,
}

#[derive(Debug)]
struct Unanswered {
    id: StreamId,
    respond: SendResponse<Bytes>,
    is_of_head: bool,
}

impl Server {
    /// Polls the library once and accepts new requests.
    fn advance(&mut self) -> Result<(), Cause> {
        if let Stage::Beginning(handshake) = &mut self.stage {
            match Pin::new(handshake).poll(&mut self.woken.context()) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(connection)) => self.stage = Stage::Connected(connection),
                Poll::Ready(Err(error)) => {
                    self.stage = Stage::Over;
                    return Err(Cause::of(&error));
                }
            }
        }
        while let Stage::Connected(connection) = &mut self.stage {
            match connection.poll_accept(&mut self.woken.context()) {
                Poll::Pending => break,
                Poll::Ready(None) => self.stage = Stage::Over,
                Poll::Ready(Some(Err(error))) => {
                    self.stage = Stage::Over;
                    return Err(Cause::of(&error));
                }
                Poll::Ready(Some(Ok((request, respond)))) => {
                    if self.unanswered.len() >= self.unanswered_max {
                        return Err(Cause::TOO_MANY);
                    }
                    self.counters.requests += 1;
                    let is_of_head = request.method() == Method::HEAD;
                    let id = respond.stream_id();
                    self.unanswered.push_back(Unanswered { id, respond, is_of_head });
                    self.requests.push_back(IncomingMessage::request(request));
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        let mut failed = None;
        let (woken, unanswered, counters) = (&self.woken, &mut self.unanswered, &mut self.counters);
        self.requests.retain_mut(|request| {
            let Err(error) = request.poll(&mut woken.context()) else { return true };
            // A client may cancel. Drop requests of which the program has received nothing.
            counters.resets += u64::from(error.is_reset());
            if request.is_begun {
                failed = Some(if error.is_reset() && error.is_remote() {
                    Cause::CANCELLED
                } else {
                    Cause::of(&error)
                });
            }
            unanswered.retain(|it| Some(it.id) != request.id);
            false
        });
        if let Some(cause) = failed {
            return Err(cause);
        }
        while let Some(first) = self.requests.front_mut() {
            if !first.deliver(plaintext) {
                break;
            }
            self.requests.pop_front();
        }
        Ok(())
    }

    /// Sends a response with this head to the oldest request.
    fn answer(&mut self, head: &[u8], has_body: bool) -> Result<(), Cause> {
        let Some(oldest) = self.unanswered.front_mut() else {
            return Err(Cause::NO_PENDING_REQUEST);
        };
        let response = head::response(head)?;
        let status = response.status();
        if status.is_informational() {
            // Ignore errors: the client may have cancelled. The final response follows.
            let _ = oldest.respond.send_informational(response);
            self.speaker.begin_body(None);
            return Ok(());
        }
        let has_content = has_body && !oldest.is_of_head;
        let sent = oldest.respond.send_response(response, !has_content);
        if sent.is_ok() {
            self.counters.count_response(status.as_u16());
        }
        if has_body && oldest.is_of_head {
            self.speaker.skip_body();
        } else {
            self.speaker.begin_body(sent.ok().filter(|_| has_content));
        }
        self.unanswered.pop_front();
        Ok(())
    }
}

impl End for Server {
    fn begin(pipe: Pipe, settings: Http2Settings, _: Scheme) -> Result<Self, Cause> {
        /// Limit on unanswered requests, in multiples of `streams`: the program also responds to
        /// cancelled requests.
        const UNANSWERED: usize = 4;
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(settings.streams)
            .initial_window_size(settings.window)
            .initial_connection_window_size(settings.connection_window())
            .max_header_list_size(Http2Settings::HEADER_LIST_MAX);
        let mut server = Self {
            stage: Stage::Beginning(builder.handshake(pipe)),
            woken: WakeFlag::default(),
            unanswered_max: settings.streams as usize * UNANSWERED,
            speaker: MessageWriter::default(),
            requests: VecDeque::new(),
            unanswered: VecDeque::new(),
            counters: MessageCounters::default(),
        };
        server.advance()?;
        Ok(server)
    }

    fn receive_data(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        loop {
            self.woken.take();
            let advanced = self.advance();
            let received = Server::receive(self, plaintext);
            advanced.and(received)?;
            if !self.woken.take() {
                return Ok(());
            }
        }
    }

    fn send_data(&mut self, bytes: &[u8]) -> Result<usize, Cause> {
        let mut done = 0;
        while done < bytes.len() {
            match self.speaker.step(&bytes[done..], &mut self.woken.context())? {
                Step::Took(length) => done += length,
                Step::Blocked => break,
                Step::Head { length, head, has_body } => {
                    done += length;
                    self.answer(&head, has_body)?;
                }
            }
        }
        self.advance()?;
        Ok(done)
    }

    fn close(&mut self) {
        self.speaker.close();
        // Flush all pending data before GOAWAY.
        let _ = self.advance();
        if let Stage::Connected(connection) = &mut self.stage {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        let _ = self.advance();
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn take_counters(&mut self) -> MessageCounters {
        std::mem::take(&mut self.counters)
    }
}
