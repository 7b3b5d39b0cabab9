//! What a peer says on one stream, as a message of HTTP/1 for the program.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, StreamId};
use http::header::{self, HeaderMap};
use http::{Request, Response, StatusCode};

/// The message of one stream.
#[derive(Debug)]
pub(crate) struct Heard {
    /// That of a request.
    pub(crate) id: Option<StreamId>,
    head: Option<ResponseFuture>,
    body: Option<RecvStream>,
    /// What the program was not given yet. The peer's window bounds it: that of a stream opens only
    /// as its bytes are handed on.
    text: Vec<u8>,
    /// Bytes of the window that are in the text.
    held: usize,
    is_chunked: bool,
    /// Whether it is the answer to HEAD.
    is_of_head: bool,
    /// Whether all of it has come.
    is_whole: bool,
    /// Whether some of it was handed on.
    pub(crate) is_begun: bool,
}

impl Heard {
    /// The answer to a request that was sent.
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
            is_whole: false,
            is_begun: false,
        }
    }

    /// A request that has come.
    pub(crate) fn request(request: Request<RecvStream>) -> Self {
        let (parts, body) = request.into_parts();
        let is_empty = body.is_end_stream();
        let mut heard = Self::new(Some(body));
        let authority = parts.uri.authority();
        let target = match (parts.uri.path_and_query(), authority) {
            (Some(path), _) => path.as_str(),
            // CONNECT.
            (None, Some(authority)) => authority.as_str(),
            (None, None) => "/",
        };
        let first = format!("{} {target} HTTP/1.1\r\n", parts.method);
        heard.text.extend_from_slice(first.as_bytes());
        let mut headers = parts.headers;
        if let Some(authority) = authority {
            // RFC 9113 section 8.3.1: it is in place of Host.
            headers.remove(header::HOST);
            heard.field(b"host", authority.as_str().as_bytes());
        }
        heard.begin(&headers, is_empty, false);
        heard
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
            // Programs take a body of so many bytes, whatever they have asked for.
            headers.remove(header::CONTENT_LENGTH);
        }
        self.begin(&headers, is_empty || self.is_of_head, !has_none);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, b": ", value, b"\r\n"] {
            self.text.extend_from_slice(part);
        }
    }

    /// Fields and the empty line. `says_empty`: of a body that is empty that has to be said.
    fn begin(&mut self, headers: &HeaderMap, is_empty: bool, says_empty: bool) {
        let mut cookies = headers.get_all(header::COOKIE).iter();
        for (name, value) in headers {
            if name != header::COOKIE {
                self.field(name.as_str().as_bytes(), value.as_bytes());
            }
        }
        // RFC 9113 section 8.2.3: they are one field where HTTP/1 has them.
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
            } else if says_empty {
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

    /// Trailers, if any, end it.
    fn end(&mut self, trailers: Option<&HeaderMap>) {
        self.is_whole = true;
        if self.is_chunked {
            self.text.extend_from_slice(b"0\r\n");
            for (name, value) in trailers.into_iter().flatten() {
                self.field(name.as_str().as_bytes(), value.as_bytes());
            }
            self.text.extend_from_slice(b"\r\n");
        }
    }

    /// Takes what has come. Returns the status of a response whose head is there now.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Option<StatusCode>, h2::Error> {
        let mut status = None;
        if let Some(future) = &mut self.head {
            // Interim responses are passed over, as programs would.
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
        while !self.is_whole {
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

    /// Hands on what is there; the peer may send as much again. Returns whether that was all.
    pub(crate) fn hand_on(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> bool {
        if !self.text.is_empty() {
            self.is_begun = true;
            plaintext(&self.text);
            self.text.clear();
        }
        let held = std::mem::take(&mut self.held);
        if held > 0
            && let Some(body) = &mut self.body
        {
            // It fails where more is released than was received, which is not so.
            let _ = body.flow_control().release_capacity(held);
        }
        self.is_whole
    }
}
