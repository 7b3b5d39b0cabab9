//! Converts HTTP/1 message heads of programs (RFC 9112) to HTTP/2 heads.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use wirestorm_stack::http1::{self, StartLine};

use crate::cause::Cause;

/// Parses the head of a request.
pub(crate) fn request(head: &[u8], scheme: Scheme) -> Result<Request<()>, Cause> {
    let wrong = || Cause::NO_REQUEST;
    let mut lines = http1::lines(head);
    let Some(StartLine::Request { method, target }) = lines.next().and_then(http1::start_line)
    else {
        return Err(wrong());
    };
    let (headers, host) = fields(lines)?;
    let method = Method::from_bytes(method).map_err(|_| wrong())?;
    let mut uri = http::uri::Parts::default();
    // RFC 9113 section 8.3.1: `:authority` replaces Host.
    let host = host.ok_or_else(wrong)?;
    uri.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| wrong())?);
    // RFC 9113 section 8.5: CONNECT has only an authority.
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
    Ok(request)
}

/// Parses the head of a response.
pub(crate) fn response(head: &[u8]) -> Result<Response<()>, Cause> {
    let mut lines = http1::lines(head);
    let Some(StartLine::Response { status }) = lines.next().and_then(http1::start_line) else {
        return Err(Cause::NO_RESPONSE);
    };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).map_err(|_| Cause::NO_RESPONSE)?;
    (*response.headers_mut(), _) = fields(lines)?;
    Ok(response)
}

/// Returns the fields that HTTP/2 carries, in their order, and the Host field.
fn fields<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
) -> Result<(HeaderMap, Option<HeaderValue>), Cause> {
    /// RFC 9113 section 8.2.2: HTTP/2 does not carry connection-specific fields.
    const CONNECTION_FIELDS: [HeaderName; 5] = [
        header::CONNECTION,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    let wrong = || Cause::NO_MESSAGE;
    let (mut headers, mut host) = (HeaderMap::new(), None);
    let mut is_encoded = false;
    for line in lines {
        let (name, value) = http1::field(line).ok_or_else(wrong)?;
        let name = HeaderName::from_bytes(name).map_err(|_| wrong())?;
        let value = HeaderValue::from_bytes(value).map_err(|_| wrong())?;
        is_encoded |= name == header::TRANSFER_ENCODING;
        if name == header::HOST {
            host.get_or_insert(value);
        } else if !CONNECTION_FIELDS.contains(&name) {
            headers.try_append(name, value).map_err(|_| wrong())?;
        }
    }
    // RFC 9112 section 6.3: Transfer-Encoding overrides Content-Length.
    if is_encoded {
        headers.remove(header::CONTENT_LENGTH);
    }
    Ok((headers, host))
}
