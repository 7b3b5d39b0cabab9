//! Converts the peer's messages on HTTP/2 streams to HTTP/1 messages for the program.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, StreamId};
use http::header::{self, HeaderMap};
use http::{Request, Response, StatusCode};

/// Message that the peer sends on one stream.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    /// Stream of a request; `None` for a response.
    pub(crate) id: Option<StreamId>,
    head: Option<ResponseFuture>,
    body: Option<RecvStream>,
    /// HTTP/1 text that the program has not received yet. The flow-control window of the stream
    /// bounds it: the window opens only as the program receives the bytes.
    text: Vec<u8>,
    /// Bytes of `text` that count against the flow-control window.
    held: usize,
    is_chunked: bool,
    /// Whether this is the response to a HEAD request.
    is_of_head: bool,
    /// Whether the message is complete.
    is_complete: bool,
    /// Whether the program has received a part of it.
    pub(crate) is_begun: bool,
}

impl IncomingMessage {
    /// Awaits the response to a request.
    pub(crate) fn answer(future: ResponseFuture, is_of_head: bool) -> Self {
        Self { head: Some(future), is_of_head, ..Self::new(None) }
    }

    fn new(body: Option<RecvStream>) -> Self {
        Self {
            id: body.as_ref().map(RecvStream::stream_id),
            head: None,
            body,
            text: Vec::new(),
            held: 0,
            is_chunked: false,
            is_of_head: false,
            is_complete: false,
            is_begun: false,
        }
    }

    /// Starts from a received request head.
    pub(crate) fn request(request: Request<RecvStream>) -> Self {
        let (parts, body) = request.into_parts();
        let is_empty = body.is_end_stream();
        let mut message = Self::new(Some(body));
        let authority = parts.uri.authority();
        let target = match (parts.uri.path_and_query(), authority) {
            (Some(path), _) => path.as_str(),
            // CONNECT.
            (None, Some(authority)) => authority.as_str(),
            (None, None) => "/",
        };
        let first = format!("{} {target} HTTP/1.1\r\n", parts.method);
        message.text.extend_from_slice(first.as_bytes());
        let mut headers = parts.headers;
        if let Some(authority) = authority {
            // RFC 9113 section 8.3.1: `:authority` replaces Host.
            headers.remove(header::HOST);
            message.field(b"host", authority.as_str().as_bytes());
        }
        message.begin(&headers, is_empty, false);
        message
    }

    fn response(&mut self, response: Response<RecvStream>) {
        let (parts, body) = response.into_parts();
        let is_empty = body.is_end_stream();
        self.body = Some(body);
        let reason = parts.status.canonical_reason().unwrap_or_default();
        let first = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_str());
        self.text.extend_from_slice(first.as_bytes());
        let has_none = matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let mut headers = parts.headers;
        if self.is_of_head {
            // A program that does not track methods would wait for a body of this length.
            headers.remove(header::CONTENT_LENGTH);
        }
        self.begin(&headers, is_empty || self.is_of_head, !has_none);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            self.text.extend_from_slice(part);
        }
    }

    /// Appends the fields and the empty line. `adds_length`: add `content-length: 0` if the body is
    /// empty.
    fn begin(&mut self, headers: &HeaderMap, is_empty: bool, adds_length: bool) {
        let mut cookies = headers.get_all(header::COOKIE).iter();
        for (name, value) in headers {
            if name != header::COOKIE {
                self.field(name.as_str().as_bytes(), value.as_bytes());
            }
        }
        // RFC 9113 section 8.2.3: HTTP/1 carries all cookies in one field.
        if let Some(first) = cookies.next() {
            let mut all = first.as_bytes().to_vec();
            for cookie in cookies {
                all.extend_from_slice(b"; ");
                all.extend_from_slice(cookie.as_bytes());
            }
            self.field(b"cookie", &all);
        }
        if !headers.contains_key(header::CONTENT_LENGTH) {
            self.is_chunked = !is_empty;
            if self.is_chunked {
                self.field(b"transfer-encoding", b"chunked");
            } else if adds_length {
                self.field(b"content-length", b"0");
            }
        }
        self.text.extend_from_slice(b"\r\n");
    }

    fn data(&mut self, bytes: &Bytes) {
        self.held += bytes.len();
        if !self.is_chunked {
            self.text.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.text.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.text.extend_from_slice(bytes);
            self.text.extend_from_slice(b"\r\n");
        }
    }

    /// Completes the message, with trailers if there are any.
    fn end(&mut self, trailers: Option<&HeaderMap>) {
        self.is_complete = true;
        if self.is_chunked {
            self.text.extend_from_slice(b"0\r\n");
            for (name, value) in trailers.into_iter().flatten() {
                self.field(name.as_str().as_bytes(), value.as_bytes());
            }
            self.text.extend_from_slice(b"\r\n");
        }
    }

    /// Reads what has arrived. Returns the status once the head of a response is complete.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Option<StatusCode>, h2::Error> {
        let mut status = None;
        if let Some(future) = &mut self.head {
            // Skip interim responses, as HTTP/1 programs do.
            while let Poll::Ready(Some(interim)) = future.poll_informational(context) {
                interim?;
            }
            let Poll::Ready(response) = Pin::new(future).poll(context) else { return Ok(None) };
            self.head = None;
            let response = response?;
            status = Some(response.status());
            self.response(response);
        }
        let Some(mut body) = self.body.take() else { return Ok(status) };
        while !self.is_complete {
            match body.poll_data(context) {
                Poll::Pending => break,
                Poll::Ready(Some(bytes)) => self.data(&bytes?),
                Poll::Ready(None) => match body.poll_trailers(context) {
                    Poll::Pending => break,
                    Poll::Ready(trailers) => self.end(trailers?.as_ref()),
                },
            }
        }
        self.body = Some(body);
        Ok(status)
    }

    /// Passes the pending text to the program and reopens the window by its bytes. Returns whether
    /// the message is complete.
    pub(crate) fn deliver(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> bool {
        if !self.text.is_empty() {
            self.is_begun = true;
            plaintext(&self.text);
            self.text.clear();
        }
        let held = std::mem::take(&mut self.held);
        if held > 0
            && let Some(body) = &mut self.body
        {
            // This fails only if more is released than was received, which cannot happen.
            let _ = body.flow_control().release_capacity(held);
        }
        self.is_complete
    }
}
