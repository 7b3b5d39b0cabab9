//! A server for tests, with a veth pair whose ends are its ports `left` and `right`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use wirestorm_api::client::{Client, ClientError, ClientOptions};
use wirestorm_api::error::ErrorCode;
use wirestorm_api::run::{PlanSource, RunOptions, RunRequest, RunState, RunSummary};
use wirestorm_serve::{ListenOption, PortOption, ServerOptions, Service};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

/// Timeout of a condition.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server, its directory and its ports. Dropped in this order.
pub(crate) struct TestServer {
    pub(crate) service: Service,
    pub(crate) lab: Lab,
    pub(crate) scratch: Scratch,
}

impl TestServer {
    /// Starts a server on loopback.
    pub(crate) fn start() -> Self {
        Self::with_listen(&[loopback()])
    }

    pub(crate) fn with_listen(listen: &[ListenOption]) -> Self {
        let scratch = Scratch::new().unwrap();
        let lab = Lab::new().unwrap();
        let service = Service::start(options(&scratch, &lab), listen, None).unwrap();
        Self { service, lab, scratch }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.service.addresses()[0]
    }

    /// A client of a session of a user.
    pub(crate) fn client(&self, user: &str, session: &str) -> Client {
        let options = ClientOptions {
            server: format!("http://{}", self.address()),
            user: Some(user.to_owned()),
            session: session.to_owned(),
            ..ClientOptions::default()
        };
        Client::new(&options).unwrap()
    }
}

pub(crate) fn loopback() -> ListenOption {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    ListenOption { address, tls: None, needs_user: false, owner: None }
}

pub(crate) fn options(scratch: &Scratch, lab: &Lab) -> ServerOptions {
    let port = |name: &str, interface: String| PortOption { name: name.to_owned(), interface };
    ServerOptions {
        ports: vec![port("left", lab.a.port()), port("right", lab.b.port())],
        directory: scratch.file("state"),
        runs_directory: scratch.file("runs"),
        captures_bytes_max: 1_000_000,
        director: None,
    }
}

/// A plan that sends from `left` to `right` at a rate, measured.
pub(crate) fn plan(rate: &str) -> String {
    format!(
        "ports: [{{name: a, location: left}}, {{name: b, location: right}}]\n\
         flows:\n  - name: voice\n    tx: a\n    rx: b\n    size: 128\n    rate: {rate}\n    \
         packet: [ethernet: {{}}, ipv4: {{src: 10.0.0.1, dst: 10.0.0.2}}, udp: {{}}]\n    \
         metrics: {{enable: true}}\n"
    )
}

/// A request to send at a rate for a time.
pub(crate) fn request(rate: &str, duration: &str) -> RunRequest {
    RunRequest {
        plan: PlanSource::Text(plan(rate)),
        name: None,
        ports: Default::default(),
        options: RunOptions {
            duration: Some(duration.to_owned()),
            backend: Some("af_packet".to_owned()),
            tolerance: Some(50.0),
            ..RunOptions::default()
        },
        files: Default::default(),
        start: Default::default(),
        when_lease_ends: Default::default(),
        shared: false,
        command: Vec::new(),
    }
}

/// Follows a run until it is in a state that fits.
pub(crate) fn wait_for(client: &Client, id: &str, fits: impl Fn(RunState) -> bool) -> RunSummary {
    let deadline = Instant::now() + PATIENCE;
    // The stream ends with the run.
    for progress in client.follow(id, Duration::from_millis(100)).unwrap() {
        if fits(progress.unwrap().state) {
            break;
        }
        assert!(Instant::now() < deadline, "run {id} is not in the state");
    }
    client.run(id).unwrap()
}

/// Returns the kind of an error of the server.
pub(crate) fn code<T>(answer: Result<T, ClientError>) -> Option<ErrorCode> {
    match answer {
        Ok(_) => None,
        Err(error) => Some(error.code().unwrap_or_else(|| panic!("{error}"))),
    }
}
