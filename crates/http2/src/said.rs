//! What a program says: messages of HTTP/1 (RFC 9112), understood as far as HTTP/2 needs it.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};

use crate::cause::Cause;

/// Where in a message a program is.
#[derive(Debug, Default)]
pub(crate) struct Said {
    part: Part,
    /// A head or a line that has not ended yet.
    begun: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// So many bytes of a body, at least one.
    Body(u64),
    BodyUntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

/// What comes next of what was said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// Nothing, until more is said.
    Nothing,
    /// A head, with the empty line at its end.
    Head(Vec<u8>),
    /// Bytes of a body, of which as many go on as [`Said::advance`] is told.
    Body(&'a [u8]),
    /// The end of a body in chunks.
    End,
}

/// Where the body behind a head ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// There is none.
    Nothing,
    /// Behind so many bytes, at least one.
    Bytes(u64),
    /// Behind its last chunk.
    Chunks,
    /// Where the program closes.
    UntilClose,
}

/// Bytes of a head, or of a line, at most.
const HEAD_MAX: usize = 64 << 10;
/// Fields of a head, at most.
const FIELDS_MAX: usize = 128;

impl Said {
    /// Whether the body ends where the program closes.
    pub(crate) const fn ends_with_program(&self) -> bool {
        matches!(self.part, Part::BodyUntilClose)
    }

    /// What bytes that are said begin with, and how many of them are done with.
    pub(crate) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Next<'a>), Cause> {
        match self.part {
            Part::Body(left) | Part::Chunk(left) => {
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                Ok((0, Next::Body(&bytes[..length])))
            }
            Part::BodyUntilClose => Ok((0, Next::Body(bytes))),
            Part::Head | Part::ChunkSize | Part::ChunkEnd | Part::Trailer => self.line(bytes),
        }
    }

    /// So many bytes of the body went on; returns whether the message ends there.
    pub(crate) const fn advance(&mut self, length: u64) -> bool {
        match self.part {
            Part::Body(left) if left <= length => {
                self.part = Part::Head;
                true
            }
            Part::Body(left) => {
                self.part = Part::Body(left - length);
                false
            }
            Part::Chunk(left) if left <= length => {
                self.part = Part::ChunkEnd;
                false
            }
            Part::Chunk(left) => {
                self.part = Part::Chunk(left - length);
                false
            }
            _ => false,
        }
    }

    /// How the body behind a head is said.
    pub(crate) const fn begin_body(&mut self, length: Length) {
        self.part = match length {
            Length::Nothing => Part::Head,
            Length::Bytes(bytes) => Part::Body(bytes),
            Length::Chunks => Part::ChunkSize,
            Length::UntilClose => Part::BodyUntilClose,
        };
    }

    /// Takes bytes up to the end of a line.
    fn line<'a>(&mut self, bytes: &[u8]) -> Result<(usize, Next<'a>), Cause> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        self.begun.extend_from_slice(&bytes[..length]);
        if self.begun.len() > HEAD_MAX {
            return Err(Cause::NO_MESSAGE);
        }
        if end.is_none() {
            return Ok((length, Next::Nothing));
        }
        let is_empty = matches!(self.begun.as_slice(), b"\r\n" | b"\n");
        if self.part == Part::Head {
            if is_empty {
                // RFC 9112 section 2.2: empty lines before a message are passed over.
                self.begun.clear();
            }
            let is_whole = self.begun.ends_with(b"\n\r\n") || self.begun.ends_with(b"\n\n");
            let head = is_whole.then(|| std::mem::take(&mut self.begun));
            return Ok((length, head.map_or(Next::Nothing, Next::Head)));
        }
        let line = std::mem::take(&mut self.begun);
        self.part = match self.part {
            Part::ChunkSize => match httparse::parse_chunk_size(&line) {
                Ok(httparse::Status::Complete((_, 0))) => Part::Trailer,
                Ok(httparse::Status::Complete((_, size))) => Part::Chunk(size),
                _ => return Err(Cause::NO_MESSAGE),
            },
            Part::ChunkEnd if is_empty => Part::ChunkSize,
            // Trailers are left out: programs have no use for them.
            Part::Trailer if !is_empty => Part::Trailer,
            Part::Trailer => {
                self.part = Part::Head;
                return Ok((length, Next::End));
            }
            _ => return Err(Cause::NO_MESSAGE),
        };
        Ok((length, Next::Nothing))
    }
}

/// A request whose head a program said, and where its body ends.
pub(crate) fn request(head: &[u8], scheme: Scheme) -> Result<(Request<()>, Length), Cause> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(_)) = parsed.parse(head) else {
        return Err(Cause::NO_MESSAGE);
    };
    let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
        return Err(Cause::NO_MESSAGE);
    };
    let (headers, length) = fields_of(parsed.headers)?;
    let host = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"));
    let wrong = || Cause::NO_REQUEST;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
    let mut uri = http::uri::Parts::default();
    let authority = host.ok_or_else(wrong)?.value.trim_ascii();
    uri.authority = Some(Authority::try_from(authority).map_err(|_| wrong())?);
    // RFC 9113 section 8.5: CONNECT has an authority alone.
    if method != Method::CONNECT {
        uri.scheme = Some(scheme);
        uri.path_and_query = Some(PathAndQuery::try_from(target).map_err(|_| wrong())?);
    }
    let uri = Uri::from_parts(uri).map_err(|_| wrong())?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = headers;
    Ok((request, length.unwrap_or(Length::Nothing)))
}

/// A response whose head a program said, and where its body ends. `is_of_head`: the answer to HEAD.
pub(crate) fn response(head: &[u8], is_of_head: bool) -> Result<(Response<()>, Length), Cause> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(_)) = parsed.parse(head) else {
        return Err(Cause::NO_MESSAGE);
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Cause::NO_RESPONSE)?;
    let (headers, length) = fields_of(parsed.headers)?;
    // RFC 9112 section 6.3.
    let length = match status.as_u16() {
        100..=199 | 204 | 304 => Length::Nothing,
        _ if is_of_head => Length::Nothing,
        _ => length.unwrap_or(Length::UntilClose),
    };
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok((response, length))
}

/// Fields as HTTP/2 has them, and what they say of a body.
fn fields_of(fields: &[httparse::Header<'_>]) -> Result<(HeaderMap, Option<Length>), Cause> {
    /// RFC 9113 sections 8.2.2 and 8.3.1: what is of a connection is said otherwise, or not at all.
    const LEFT_OUT: [HeaderName; 6] = [
        header::CONNECTION,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::HOST,
    ];
    let mut headers = HeaderMap::with_capacity(fields.len());
    let mut length = None;
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Cause::NO_MESSAGE)?;
        if name == header::TRANSFER_ENCODING {
            let coding = field.value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                length = Some(Length::Chunks);
            }
        } else if name == header::CONTENT_LENGTH && length != Some(Length::Chunks) {
            let bytes = std::str::from_utf8(field.value).ok().and_then(|it| it.trim().parse().ok());
            length = Some(match bytes.ok_or(Cause::NO_MESSAGE)? {
                0 => Length::Nothing,
                bytes => Length::Bytes(bytes),
            });
        }
        if !LEFT_OUT.contains(&name) {
            headers
                .append(name, HeaderValue::from_bytes(field.value).map_err(|_| Cause::NO_MESSAGE)?);
        }
    }
    if length == Some(Length::Chunks) {
        headers.remove(header::CONTENT_LENGTH);
    }
    Ok((headers, length))
}
