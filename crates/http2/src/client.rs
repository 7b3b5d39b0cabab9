//! Client side of an HTTP/2 session: sends requests.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use http::uri::Scheme;
use http::{Method, Request};
use wirestorm_stack::content::MessageCounters;

use crate::cause::Cause;
use crate::head;
use crate::incoming::IncomingMessage;
use crate::outgoing::{MessageWriter, Step};
use crate::pipe::{Pipe, WakeFlag};
use crate::session::End;
use crate::settings::Http2Settings;

/// HTTP/2 connection of one client.
#[derive(Debug)]
pub(crate) struct Client {
    /// `None` after the connection has ended.
    connection: Option<Connection<Pipe, Bytes>>,
    /// `None` after the program has closed: no more requests.
    requests: Option<SendRequest<Bytes>>,
    woken: WakeFlag,
    scheme: Scheme,
    streams_max: usize,
    speaker: MessageWriter,
    /// Request that waits for a free stream, and whether it has a body.
    waiting: Option<(Request<()>, bool)>,
    /// Responses in the order of their requests.
    responses: VecDeque<IncomingMessage>,
    counters: MessageCounters,
}

impl Client {
    /// Sends the waiting request if a stream is free.
    fn open(&mut self) -> Result<(), Cause> {
        let Some(requests) = &mut self.requests else { return Ok(()) };
        if self.waiting.is_none() || self.responses.len() >= self.streams_max {
            return Ok(());
        }
        match requests.poll_ready(&mut self.woken.context()) {
            Poll::Pending => return Ok(()),
            Poll::Ready(Err(_)) => return Err(Cause::GOING_AWAY),
            Poll::Ready(Ok(())) => {}
        }
        let Some((request, has_body)) = self.waiting.take() else { return Ok(()) };
        let is_head = request.method() == Method::HEAD;
        let sent = requests.send_request(request, !has_body);
        let (answer, stream) = sent.map_err(|error| match error.is_remote() {
            true => Cause::GOING_AWAY,
            false => Cause::NO_REQUEST,
        })?;
        self.counters.requests += 1;
        self.responses.push_back(IncomingMessage::answer(answer, is_head));
        self.speaker.begin_body(has_body.then_some(stream));
        // Until it is polled, the library does not know whether another stream is free.
        self.advance()
    }

    /// Polls the library once: it reads and writes what it can.
    fn advance(&mut self) -> Result<(), Cause> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        match Pin::new(connection).poll(&mut self.woken.context()) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                self.connection = None;
                Ok(())
            }
            Poll::Ready(Err(error)) => {
                self.connection = None;
                Err(Cause::of(&error))
            }
        }
    }

    fn receive(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        for answer in &mut self.responses {
            match answer.poll(&mut self.woken.context()) {
                Ok(None) => {}
                Ok(Some(status)) => self.counters.count_response(status.as_u16()),
                Err(error) => {
                    self.counters.resets += u64::from(error.is_reset());
                    return Err(Cause::of(&error));
                }
            }
        }
        while let Some(first) = self.responses.front_mut() {
            if !first.deliver(plaintext) {
                break;
            }
            self.responses.pop_front();
        }
        Ok(())
    }
}

impl End for Client {
    fn begin(pipe: Pipe, settings: Http2Settings, scheme: Scheme) -> Result<Self, Cause> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            // Servers refuse streams beyond their limit: further requests wait for their SETTINGS.
            .initial_max_send_streams(1)
            .initial_window_size(settings.window)
            .initial_connection_window_size(settings.connection_window())
            .max_header_list_size(Http2Settings::HEADER_LIST_MAX);
        let woken = WakeFlag::default();
        // The handshake only writes to memory, so one poll completes it.
        let begun = pin!(builder.handshake(pipe)).poll(&mut woken.context());
        let Poll::Ready(Ok((requests, connection))) = begun else { return Err(Cause::INTERNAL) };
        let mut client = Self {
            connection: Some(connection),
            requests: Some(requests),
            woken,
            scheme,
            streams_max: settings.streams as usize,
            speaker: MessageWriter::default(),
            waiting: None,
            responses: VecDeque::new(),
            counters: MessageCounters::default(),
        };
        client.advance()?;
        Ok(client)
    }

    fn receive_data(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        loop {
            self.woken.take();
            let advanced = self.advance();
            // Deliver the data that arrived before an error or the end first.
            let received = Client::receive(self, plaintext);
            advanced.and(received)?;
            self.open()?;
            if !self.woken.take() {
                return Ok(());
            }
        }
    }

    fn send_data(&mut self, bytes: &[u8]) -> Result<usize, Cause> {
        let mut done = 0;
        while done < bytes.len() && self.waiting.is_none() {
            match self.speaker.step(&bytes[done..], &mut self.woken.context())? {
                Step::Took(length) => done += length,
                Step::Blocked => break,
                Step::Head { length, head, has_body } => {
                    done += length;
                    let request = head::request(&head, self.scheme.clone())?;
                    self.waiting = Some((request, has_body));
                    self.open()?;
                }
            }
        }
        self.advance()?;
        Ok(done)
    }

    fn close(&mut self) {
        self.speaker.close();
        // Flush before dropping the streams: dropping resets those that are not complete.
        let _ = self.advance();
        self.waiting = None;
        self.requests = None;
        self.responses.clear();
        // The library sends GOAWAY with the last stream, which may need another poll.
        while self.connection.is_some() && self.advance().is_ok() && self.woken.take() {}
    }

    fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    fn take_counters(&mut self) -> MessageCounters {
        std::mem::take(&mut self.counters)
    }
}
