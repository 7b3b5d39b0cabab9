//! The end of a client: it asks.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use http::uri::Scheme;
use http::{Method, Request};
use wirestorm_stack::content::MessageCounters;

use crate::Http2Settings;
use crate::cause::Cause;
use crate::head;
use crate::heard::Heard;
use crate::pipe::{Pipe, Woken};
use crate::session::End;
use crate::speaker::{Speaker, Step};

/// One client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// `None`: it is over.
    connection: Option<Connection<Pipe, Bytes>>,
    /// `None`: it asks for nothing more.
    requests: Option<SendRequest<Bytes>>,
    woken: Woken,
    scheme: Scheme,
    streams_max: usize,
    speaker: Speaker,
    /// A request that waits until there are fewer streams, and whether it has a body.
    waiting: Option<(Request<()>, bool)>,
    /// The answers, in the order in which they were asked for.
    answers: VecDeque<Heard>,
    counters: MessageCounters,
}

impl Client {
    /// Opens what waits, if it can be.
    fn open(&mut self) -> Result<(), Cause> {
        let Some(requests) = &mut self.requests else { return Ok(()) };
        if self.waiting.is_none() || self.answers.len() >= self.streams_max {
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
        self.answers.push_back(Heard::answer(answer, is_head));
        self.speaker.begin_body(has_body.then_some(stream));
        // Only then the library knows whether there may be another one.
        self.advance()
    }

    /// Lets the library go on with what it has.
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

    fn hear(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        for answer in &mut self.answers {
            match answer.poll(&mut self.woken.context()) {
                Ok(None) => {}
                Ok(Some(status)) => self.counters.count_response(status.as_u16()),
                Err(error) => {
                    self.counters.resets += u64::from(error.is_reset());
                    return Err(Cause::of(&error));
                }
            }
        }
        while let Some(first) = self.answers.front_mut() {
            if !first.hand_on(plaintext) {
                break;
            }
            self.answers.pop_front();
        }
        Ok(())
    }
}

impl End for Client {
    fn begin(pipe: Pipe, settings: Http2Settings, scheme: Scheme) -> Result<Self, Cause> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            // More than a server takes at once are refused: the others wait for its settings.
            .initial_max_send_streams(1)
            .initial_window_size(settings.window)
            .initial_connection_window_size(settings.connection_window())
            .max_header_list_size(Http2Settings::HEADER_LIST_MAX);
        let woken = Woken::default();
        // It writes to memory and waits for nothing.
        let begun = pin!(builder.handshake(pipe)).poll(&mut woken.context());
        let Poll::Ready(Ok((requests, connection))) = begun else { return Err(Cause::INTERNAL) };
        let mut client = Self {
            connection: Some(connection),
            requests: Some(requests),
            woken,
            scheme,
            streams_max: settings.streams as usize,
            speaker: Speaker::default(),
            waiting: None,
            answers: VecDeque::new(),
            counters: MessageCounters::default(),
        };
        client.advance()?;
        Ok(client)
    }

    fn hear(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause> {
        loop {
            self.woken.take();
            let advanced = self.advance();
            // What came before an end was said before it.
            let heard = Client::hear(self, plaintext);
            advanced.and(heard)?;
            self.open()?;
            if !self.woken.take() {
                return Ok(());
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) -> Result<usize, Cause> {
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
        // Flushed before streams are let go, which resets those that are not over.
        let _ = self.advance();
        self.waiting = None;
        self.requests = None;
        self.answers.clear();
        // With the last stream GOAWAY leaves, which may take another turn.
        while self.connection.is_some() && self.advance().is_ok() && self.woken.take() {}
    }

    fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    fn take_counters(&mut self) -> MessageCounters {
        std::mem::take(&mut self.counters)
    }
}
