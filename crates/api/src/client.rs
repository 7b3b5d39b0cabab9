//! A blocking client of the API.

mod cluster;

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body, RequestBuilder, SendBody, http};
use wirestorm_control::result::RunResult;

use crate::capture::Capture;
use crate::error::{ErrorCode, ErrorDocument};
use crate::event::Event;
use crate::lease::{Lease, LeaseRequest};
use crate::plan::{FlowFrames, PlanSummary, StoredPlan};
use crate::port::Port;
use crate::progress::Progress;
use crate::run::{CommandRequest, RunList, RunOrigin, RunRequest, RunSummary};
use crate::session::{NewUser, SESSION_HEADER, Session, USER_HEADER, User, UserRequest};
use crate::{BASE, PORT};

/// Time for a connection to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the head of a response. The preparation of a run takes up to 10 s.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Most runs of a page.
const RUNS_PAGE_MAX: usize = 1_000;
/// Longest JSON document that the client reads, in bytes: results with many flows are long.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// Address of a server and how to connect to it.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// `HOST`, `HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`. Without a scheme: HTTP to
    /// loopback, HTTPS to other hosts.
    pub server: String,
    /// Token of the user.
    pub token: Option<String>,
    /// Name of the user, for a server without users.
    pub user: Option<String>,
    /// File with the certificate of the server or its authority, in PEM; `None` for the public
    /// authorities.
    pub authority: Option<PathBuf>,
    /// Files with the client certificate and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Name of the session; empty for the default session.
    pub session: String,
}

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address of the server is not valid.
    #[error("server {0:?}: expected HOST, HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// A file with a certificate or a key cannot be used.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("server {server}: {reason}")]
    Connection {
        /// Base URL of the server.
        server: String,
        /// Reason, and what to do.
        reason: String,
    },
    /// The server refused the request.
    #[error("{0}")]
    Refused(ErrorDocument),
    /// The response is not one of this API.
    #[error("server {server}: {reason}; is it `wirestorm serve` of the same version?")]
    Response {
        /// Base URL of the server.
        server: String,
        /// What was found.
        reason: String,
    },
}

impl ClientError {
    /// Returns the kind of the error if the server reported it.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(document) => Some(document.code),
            _ => None,
        }
    }

    /// Returns the message, with the name of the plan's file at each error of the plan.
    pub fn in_plan(&self, file: &Path) -> String {
        let name = file.display();
        match self {
            Self::Refused(ErrorDocument { code: ErrorCode::Plan, errors, .. })
                if !errors.is_empty() =>
            {
                let lines = errors.iter().map(|error| match error.path.as_str() {
                    "" => format!("{name}: {}", error.message),
                    path => format!("{name}: {path}: {}", error.message),
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            error => error.to_string(),
        }
    }
}

/// A client of a server. Each call is a request; clones share the connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    server: String,
    authorization: Option<String>,
    user: Option<String>,
    session: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is secret.
        f.debug_struct("Client").field("server", &self.server).finish_non_exhaustive()
    }
}

type Result<T> = std::result::Result<T, ClientError>;

impl Client {
    /// Creates a client; connects with the first request.
    ///
    /// # Errors
    /// The address is not valid, or a file cannot be read.
    pub fn new(options: &ClientOptions) -> Result<Self> {
        let server = base_url(&options.server)
            .ok_or_else(|| ClientError::Address(options.server.clone()))?;
        let mut tls = TlsConfig::builder();
        if let Some(path) = &options.authority {
            let certificates = certificates(path)?;
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        if let Some((certificate, key)) = &options.certificate {
            let chain = certificates(certificate)?;
            let pem = read(key)?;
            let private = PrivateKey::from_pem(&pem)
                .map_err(|error| unusable(key, format!("no private key in PEM: {error}")))?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, private)));
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("wirestorm/", env!("CARGO_PKG_VERSION")))
            .build();
        let authorization = options.token.as_ref().map(|token| format!("Bearer {token}"));
        let session = options.session.clone();
        let user = options.user.clone();
        Ok(Self { agent: agent.new_agent(), server, authorization, user, session })
    }

    /// Returns the base URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the user and its rights.
    ///
    /// # Errors
    /// See [`ClientError`], as for all requests.
    pub fn session(&self) -> Result<Session> {
        self.get("/session")
    }

    /// Returns the user and its rights, or an error after `timeout`: a check of the connection.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn session_within(&self, timeout: Duration) -> Result<Session> {
        let request = self.agent.get(self.url("/session")).config();
        let request = request.timeout_global(Some(timeout)).build();
        self.document(self.checked(self.request(request).call())?)
    }

    /// Returns the users of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn users(&self) -> Result<Vec<User>> {
        self.get("/users")
    }

    /// Adds a user, or replaces one. Returns the user and its new token.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn put_user(&self, name: &str, user: &UserRequest) -> Result<NewUser> {
        let path = format!("/users/{}", encoded(name));
        self.document(self.send(self.agent.put(self.url(&path)), user)?)
    }

    /// Removes a user.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn delete_user(&self, name: &str) -> Result<()> {
        self.delete(&format!("/users/{}", encoded(name)))
    }

    /// Returns a port by its name or its interface.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn port(&self, name: &str) -> Result<Port> {
        self.get(&format!("/ports/{}", encoded(name)))
    }

    /// Returns the ports of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn ports(&self) -> Result<Vec<Port>> {
        self.get("/ports")
    }

    /// Leases a port, or renews the lease.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn lease(&self, port: &str, request: &LeaseRequest) -> Result<Lease> {
        let path = format!("/ports/{}/lease", encoded(port));
        self.document(self.send(self.agent.put(self.url(&path)), request)?)
    }

    /// Ends the lease of a port.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn release(&self, port: &str) -> Result<()> {
        self.delete(&format!("/ports/{}/lease", encoded(port)))
    }

    /// Captures frames of a port as pcapng, until the reader is dropped or a limit is reached.
    /// `query`: names and values of the parameters.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn capture(&self, port: &str, query: &[(&str, String)]) -> Result<impl Read + use<>> {
        let path = format!("/ports/{}/capture", encoded(port));
        let request = self.agent.get(self.url(&path)).query_pairs(query.iter().cloned());
        Ok(self.checked(self.request(request).call())?.into_reader())
    }

    /// Checks a plan, without running it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn check_plan(&self, text: &str) -> Result<PlanSummary> {
        let request = self.request(self.agent.post(self.url("/plans/check")));
        self.document(self.checked(request.content_type("text/plain").send(text))?)
    }

    /// Returns the first frames of each flow of a plan, `count` of each.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn frames(&self, text: &str, count: u64) -> Result<Vec<FlowFrames>> {
        let url = self.url(&format!("/plans/frames?count={count}"));
        let request = self.request(self.agent.post(url));
        self.document(self.checked(request.content_type("text/plain").send(text))?)
    }

    /// Returns the stored plans.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn plans(&self) -> Result<Vec<StoredPlan>> {
        self.get("/plans")
    }

    /// Returns the text of a stored plan.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn plan(&self, name: &str) -> Result<String> {
        self.text(&format!("{BASE}/plans/{}", encoded(name)))
    }

    /// Stores a plan, or replaces it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn store_plan(&self, name: &str, text: &str) -> Result<StoredPlan> {
        let request = self.agent.put(self.url(&format!("/plans/{}", encoded(name))));
        let request = self.request(request).content_type("text/plain");
        self.document(self.checked(request.send(text))?)
    }

    /// Deletes a stored plan.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn delete_plan(&self, name: &str) -> Result<()> {
        self.delete(&format!("/plans/{}", encoded(name)))
    }

    /// Returns the uploaded captures.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn captures(&self) -> Result<Vec<Capture>> {
        self.get("/captures")
    }

    /// Uploads a capture, or another file that plans name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn upload(&self, name: &str, mut content: impl Read) -> Result<Capture> {
        let request = self.agent.put(self.url(&format!("/captures/{}", encoded(name))));
        let request = self.request(request).content_type("application/octet-stream");
        self.document(self.checked(request.send(SendBody::from_reader(&mut content)))?)
    }

    /// Downloads a capture.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download(&self, name: &str) -> Result<impl Read + use<>> {
        let request = self.agent.get(self.url(&format!("/captures/{}", encoded(name))));
        Ok(self.checked(self.request(request).call())?.into_reader())
    }

    /// Deletes a capture.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn delete_capture(&self, name: &str) -> Result<()> {
        self.delete(&format!("/captures/{}", encoded(name)))
    }

    /// Creates a run.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn create_run(&self, request: &RunRequest) -> Result<RunSummary> {
        self.document(self.send(self.agent.post(self.url("/runs")), request)?)
    }

    /// Returns the newest runs, at most `limit`, in as many requests as the server needs.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn runs(&self, limit: usize) -> Result<RunList> {
        let mut list = self.runs_after(None, limit.clamp(1, RUNS_PAGE_MAX))?;
        while let Some(next) = list.next.take_if(|_| list.runs.len() < limit) {
            let left = limit - list.runs.len();
            let page = self.runs_after(Some(&next), left.min(RUNS_PAGE_MAX))?;
            list.runs.extend(page.runs);
            list.next = page.next;
        }
        list.runs.truncate(limit);
        Ok(list)
    }

    /// Returns a page of the runs, the newest first. `after`: `next` of the page before; `None` for
    /// the newest runs. `limit`: 1 to 1,000.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn runs_after(&self, after: Option<&str>, limit: usize) -> Result<RunList> {
        let after = after.map_or_else(String::new, |after| format!("&after={}", encoded(after)));
        self.get(&format!("/runs?limit={limit}{after}"))
    }

    /// Returns the active runs, the newest first: at most 1,000, of whatever age.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn active_runs(&self) -> Result<Vec<RunSummary>> {
        self.get::<RunList>("/runs?active=true").map(|list| list.runs)
    }

    /// Returns how a run was started: its plan and its options.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn origin(&self, id: &str) -> Result<RunOrigin> {
        self.get(&format!("/runs/{}/plan", encoded(id)))
    }

    /// Returns a run. `id`: its ID, its name, the beginning of its ID, or `latest`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn run(&self, id: &str) -> Result<RunSummary> {
        self.get(&format!("/runs/{}", encoded(id)))
    }

    /// Sends a command to a run.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn command(&self, id: &str, command: &CommandRequest) -> Result<RunSummary> {
        let path = format!("/runs/{}/commands", encoded(id));
        self.document(self.send(self.agent.post(self.url(&path)), command)?)
    }

    /// Returns the result of a run.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn result(&self, id: &str) -> Result<RunResult> {
        self.get(&format!("/runs/{}/result", encoded(id)))
    }

    /// Returns the result of a run as a JSON document: that of a run, or of a benchmark.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn result_document(&self, id: &str) -> Result<serde_json::Value> {
        self.get(&format!("/runs/{}/result", encoded(id)))
    }

    /// Returns the report on a run. `format`: `html`, `markdown`, `junit` or `json`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn report(&self, id: &str, format: &str) -> Result<String> {
        self.text(&format!("{BASE}/runs/{}/report?format={}", encoded(id), encoded(format)))
    }

    /// Deletes a run from the history.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn delete_run(&self, id: &str) -> Result<()> {
        self.delete(&format!("/runs/{}", encoded(id)))
    }

    /// Returns a JSON Schema: `plan`, `emulation-plan` or `result`; `openapi` for the OpenAPI
    /// document of the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn schema(&self, name: &str) -> Result<String> {
        match name {
            "openapi" => self.text(&format!("{BASE}/openapi.json")),
            name => self.text(&format!("{BASE}/schemas/{}", encoded(name))),
        }
    }

    /// Returns the live metrics of all runs in the text format of Prometheus.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn metrics(&self) -> Result<String> {
        self.text("/metrics")
    }

    /// Returns the live counters of a run.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn progress(&self, id: &str) -> Result<Progress> {
        self.get(&format!("/runs/{}/progress", encoded(id)))
    }

    /// Follows the live counters of a run, until it is over.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn follow(&self, id: &str, interval: Duration) -> Result<Stream<Progress>> {
        self.follow_delays(id, interval, 0)
    }

    /// Follows the live counters of a run with the delays of the first measured flows, `count` of
    /// at most [`FlowDelays::FLOWS_MAX`](crate::delays::FlowDelays::FLOWS_MAX).
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn follow_delays(
        &self,
        id: &str,
        interval: Duration,
        count: usize,
    ) -> Result<Stream<Progress>> {
        let (id, interval) = (encoded(id), interval.as_millis());
        self.stream(&format!("/runs/{id}/events?interval_ms={interval}&delays={count}"))
    }

    /// Follows the changes on the server.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn events(&self) -> Result<Stream<Event>> {
        self.stream("/events")
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.document(self.checked(self.request(self.agent.get(self.url(path))).call())?)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.checked(self.request(self.agent.delete(self.url(path))).call()).map(drop)
    }

    /// Returns the text at a path of the server.
    fn text(&self, path: &str) -> Result<String> {
        let request = self.request(self.agent.get(format!("{}{path}", self.server)));
        let mut body = self.checked(request.call())?;
        let text = body.with_config().limit(DOCUMENT_BYTES_MAX).read_to_string();
        text.map_err(|error| self.connection(&error))
    }

    fn stream<T: DeserializeOwned>(&self, path: &str) -> Result<Stream<T>> {
        let request = self.request(self.agent.get(self.url(path)));
        let body = self.checked(request.header("accept", "text/event-stream").call())?;
        let lines = BufReader::new(Box::new(body.into_reader()) as Box<dyn Read + Send>);
        Ok(Stream { lines, server: self.server.clone(), item: std::marker::PhantomData })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{BASE}{path}", self.server)
    }

    /// Adds the headers of all requests.
    fn request<B>(&self, mut request: RequestBuilder<B>) -> RequestBuilder<B> {
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(user) = &self.user {
            request = request.header(USER_HEADER, user);
        }
        if !self.session.is_empty() {
            request = request.header(SESSION_HEADER, &self.session);
        }
        request
    }

    fn send(
        &self,
        request: RequestBuilder<ureq::typestate::WithBody>,
        document: &impl Serialize,
    ) -> Result<Body> {
        self.checked(self.request(request).send_json(document))
    }

    /// Returns the body of a successful response.
    fn checked(
        &self,
        response: std::result::Result<http::Response<Body>, ureq::Error>,
    ) -> Result<Body> {
        let response = response.map_err(|error| self.connection(&error))?;
        let status = response.status();
        let mut body = response.into_body();
        if status.is_success() {
            return Ok(body);
        }
        let text = body.read_to_string().unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(document) => Err(ClientError::Refused(document)),
            Err(_) => Err(self.foreign(format!("found status {status}"))),
        }
    }

    fn document<T: DeserializeOwned>(&self, mut body: Body) -> Result<T> {
        let reader = body.with_config().limit(DOCUMENT_BYTES_MAX).reader();
        serde_json::from_reader(BufReader::new(reader)).map_err(|error| match error.is_io() {
            true => {
                ClientError::Connection { server: self.server.clone(), reason: error.to_string() }
            }
            false => self.foreign(format!("found a response that does not fit: {error}")),
        })
    }

    fn connection(&self, error: &ureq::Error) -> ClientError {
        let reason = match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "nothing listens there; start it with `wirestorm serve`".to_owned()
            }
            error => error.to_string(),
        };
        ClientError::Connection { server: self.server.clone(), reason }
    }

    fn foreign(&self, reason: String) -> ClientError {
        ClientError::Response { server: self.server.clone(), reason }
    }
}

/// A stream of server-sent events, as an iterator that ends with the stream.
pub struct Stream<T> {
    lines: BufReader<Box<dyn Read + Send>>,
    server: String,
    item: std::marker::PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("server", &self.server).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> Iterator for Stream<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let (mut data, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            match self.lines.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    let (server, reason) = (self.server.clone(), error.to_string());
                    return Some(Err(ClientError::Connection { server, reason }));
                }
            }
            let line = line.trim_end_matches(['\n', '\r']);
            if let Some(part) = line.strip_prefix("data:") {
                data.push_str(part.strip_prefix(' ').unwrap_or(part));
            } else if line.is_empty() && !data.is_empty() {
                return Some(serde_json::from_str(&data).map_err(|error| {
                    let reason = format!("found an event that does not fit: {error}");
                    ClientError::Response { server: self.server.clone(), reason }
                }));
            }
        }
    }
}

/// Returns `scheme://host:port`; `None` if the text is no address.
fn base_url(server: &str) -> Option<String> {
    let (scheme, rest) = match server.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
        Some(_) => return None,
        None => (None, server),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
        return None;
    }
    // An IPv6 address has colons, and is in brackets if a port follows.
    let is_bare_ipv6 = authority.parse::<std::net::Ipv6Addr>().is_ok();
    let bracketed = if is_bare_ipv6 { format!("[{authority}]") } else { authority.to_owned() };
    let end_of_host = bracketed.rfind(']').map_or(0, |at| at + 1);
    let has_port = bracketed[end_of_host..].contains(':');
    let host = match bracketed[end_of_host..].find(':') {
        Some(colon) => &bracketed[..end_of_host + colon],
        None => bracketed.as_str(),
    };
    let scheme = scheme.unwrap_or(if is_loopback(host) { "http" } else { "https" });
    match has_port {
        true => Some(format!("{scheme}://{bracketed}")),
        false => Some(format!("{scheme}://{bracketed}:{PORT}")),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// Encodes a path segment (RFC 3986 section 2.1).
fn encoded(segment: &str) -> String {
    use fmt::Write;
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            // Writing to a string cannot fail.
            byte => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| unusable(path, error.to_string()))
}

fn unusable(path: &Path, reason: String) -> ClientError {
    ClientError::File { path: path.to_owned(), reason }
}

/// Reads the certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let pem = read(path)?;
    let items = ureq::tls::parse_pem(&pem).filter_map(|item| match item {
        Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(unusable(path, format!("not PEM: {error}")))),
    });
    let certificates = items.collect::<Result<Vec<_>>>()?;
    match certificates.is_empty() {
        true => Err(unusable(path, "found no certificate in PEM".to_owned())),
        false => Ok(certificates),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_without_scheme_is_http_on_loopback_and_https_elsewhere() {
        for (text, expected) in [
            ("localhost", "http://localhost:9410"),
            ("127.0.0.1:80", "http://127.0.0.1:80"),
            ("::1", "http://[::1]:9410"),
            ("[::1]:80", "http://[::1]:80"),
            ("lab.example", "https://lab.example:9410"),
            ("2001:db8::1", "https://[2001:db8::1]:9410"),
            ("10.0.0.1:8443", "https://10.0.0.1:8443"),
            ("http://lab:80/", "http://lab:80"),
            ("https://lab", "https://lab:9410"),
        ] {
            assert_eq!(base_url(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "ftp://lab", "http://", "lab/path", "user@lab", "a b"] {
            assert_eq!(base_url(text), None, "{text}");
        }
    }

    #[test]
    fn path_segments_are_encoded() {
        assert_eq!(encoded("netns/a:veth0 ü"), "netns%2Fa%3Aveth0%20%C3%BC");
    }

    #[test]
    fn stream_yields_the_data_of_each_event_and_skips_comments() {
        let text = ": ping\n\ndata: 1\n\nevent: x\ndata: 2\r\n\r\ndata: bad\n\ndata: 3";
        let lines = BufReader::new(Box::new(text.as_bytes()) as Box<dyn Read + Send>);
        let stream = Stream::<u32> { lines, server: String::new(), item: std::marker::PhantomData };
        let items: Vec<Option<u32>> = stream.map(|it| it.ok()).collect();
        // The last event has no empty line after it: it was cut off.
        assert_eq!(items, [Some(1), Some(2), None]);
    }
}
