//! The metrics server: several runs, its end, and clients that do not behave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration as StdDuration, Instant};

use wirestorm_control::backend::Backend;
use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::pace::Pace;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::base::time::Duration;
use wirestorm_control::plan::edit::EditOptions;
use wirestorm_control::plan::replay::{Limits, ReplayPlan, SideAssignment, Target};
use wirestorm_control::replay::Callbacks;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{Host, RunHandle, StartAt};
use wirestorm_serve::{ListenError, MetricsServer};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

/// Timeout of a condition.
const PATIENCE: StdDuration = StdDuration::from_secs(60);

fn server(host: &Host) -> MetricsServer {
    MetricsServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), host).unwrap()
}

/// Starts to replay a small capture to memory, until `packets` have left.
fn replay(scratch: &Scratch, host: &Host, packets: u64) -> RunHandle {
    let capture = scratch.file("traffic.pcap");
    let options = TrafficOptions { conversations: 5, ..TrafficOptions::default() };
    write_file(Traffic::new(options), Resolution::Nanoseconds, &capture).unwrap();
    let plan = ReplayPlan {
        captures: vec![capture],
        target: Target::Memory { by_side: false },
        sides: SideAssignment::Single,
        edits: EditOptions::default(),
        show: None,
        one_at_a_time: false,
        pace: Pace::Packets { rate: Rate::new(1_000, Duration::from_secs(1)).unwrap(), group: 1 },
        policy: DeparturePolicy::default(),
        limits: Limits { passes: u64::MAX, packets, duration: Duration::MAX },
        pass_delay: Duration::ZERO,
        preload: true,
        flows: None,
        unique: None,
        include: None,
        exclude: Vec::new(),
        original_length: false,
        receive: None,
        workers: 1,
        tolerance_ppm: 200_000,
        force_interface: false,
    };
    let (plan, hooks) = (Box::new(plan), Callbacks::default());
    let plan = Plan::Replay { plan, backend: Backend::Auto, hooks };
    let prepared = Run::prepare(plan, Options::default(), host).unwrap();
    prepared.start(StartAt::Now)
}

/// Fetches a page; returns the response with its headers.
fn get(server: &MetricsServer, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut response = String::new();
    // The server closes the connection after each response.
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn several_runs_have_metrics_also_after_their_end() {
    let (scratch, host) = (Scratch::new().unwrap(), Host::new());
    let server = server(&host);
    assert!(!get(&server, "/metrics").contains("run=\""), "no run is watched");
    let ended = replay(&scratch, &host, 100);
    let going_on = replay(&scratch, &host, u64::MAX);
    for run in [&ended, &going_on, &going_on] {
        server.watch(run);
    }
    let labels = |run: &RunHandle| format!("{{run=\"{}\",kind=\"replay\"", run.id());
    let state =
        |run: &RunHandle, name| format!("wirestorm_run_state{},state=\"{name}\"}} 1", labels(run));
    assert!(going_on.wait_running(Some(PATIENCE)) && ended.wait_over(Some(PATIENCE)));
    let text = get(&server, "/metrics");
    let has = |text: &str, line: &str| text.lines().any(|found| found.starts_with(line));
    for line in [state(&going_on, "running"), state(&ended, "finished")] {
        assert!(has(&text, &line), "{line} is not in\n{text}");
    }
    let sent = format!("wirestorm_port_sent_frames_total{}", labels(&ended));
    let sent = text.lines().find(|line| line.starts_with(&sent)).unwrap();
    assert!(sent.ends_with(" 100"), "{sent}");
    let elapsed = format!("wirestorm_run_elapsed_seconds{}", labels(&going_on));
    assert_eq!(text.matches(&elapsed).count(), 1, "a run that is watched twice appears once");
    going_on.stop();
    assert!(going_on.wait_over(Some(PATIENCE)));
    let text = get(&server, "/metrics");
    assert!(has(&text, &state(&going_on, "interrupted")), "{text}");
}

#[test]
fn runs_beyond_the_limit_replace_ended_ones() {
    let (scratch, host) = (Scratch::new().unwrap(), Host::new());
    let server = server(&host);
    let going_on = replay(&scratch, &host, u64::MAX);
    server.watch(&going_on);
    let mut last = None;
    for _ in 0..wirestorm_serve::metrics::RUNS_MAX {
        let run = replay(&scratch, &host, 1);
        run.wait().unwrap();
        server.watch(&run);
        last = Some(run.id());
    }
    let text = get(&server, "/metrics");
    let has = |run| text.contains(&format!("run_elapsed_seconds{{run=\"{run}\","));
    assert!(has(going_on.id()) && last.is_some_and(has), "{text}");
    assert!(!has(wirestorm_control::RunId(2)), "{text}");
    assert!(text.contains("wirestorm_runs_omitted_total 0\n"), "{text}");
    going_on.stop();
}

#[test]
fn only_two_pages_exist() {
    let server = server(&Host::new());
    let index = get(&server, "/");
    assert!(index.starts_with("HTTP/1.1 200 OK\r\n") && index.contains("/metrics"), "{index}");
    for path in ["/metrics/", "/api", "/../etc/passwd"] {
        let response = get(&server, path);
        assert!(response.starts_with("HTTP/1.1 404 Not Found\r\n"), "{response}");
    }
}

#[test]
fn end_of_the_server_closes_the_port_despite_idle_clients() {
    let server = server(&Host::new());
    let address = server.address();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let started = Instant::now();
    // A response shows that the server has accepted the connection before.
    get(&server, "/");
    drop(server);
    assert!(started.elapsed() < StdDuration::from_secs(5), "{:?}", started.elapsed());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn connections_are_bounded_and_end_in_time() {
    let server = server(&Host::new());
    let open = |_| TcpStream::connect(server.address()).unwrap();
    // More than the server accepts at a time; they send nothing.
    let idle: Vec<TcpStream> = (0..100).map(open).collect();
    let started = Instant::now();
    assert!(get(&server, "/").contains("200 OK"));
    assert!(started.elapsed() > StdDuration::from_secs(5), "the others were accepted first");
    drop(idle);
}

#[test]
fn port_in_use_is_an_error_that_says_what_to_do() {
    let host = Host::new();
    let first = server(&host);
    let error = MetricsServer::start(first.address(), &host).unwrap_err();
    assert!(matches!(error, ListenError::Listen { .. }));
    let (text, address) = (error.to_string(), first.address().to_string());
    for part in [address.as_str(), "Address already in use", "port 0 for any free port"] {
        assert!(text.contains(part), "{text}");
    }
}
