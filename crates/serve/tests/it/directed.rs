//! Tests across machines over the API: on the ports of the server, and on agents of a bus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestorm_api::agent::{Agent as AgentDocument, AgentState};
use wirestorm_api::client::{Client, ClientError, ClientOptions};
use wirestorm_api::error::ErrorCode;
use wirestorm_api::lease::LeaseRequest;
use wirestorm_api::port::LinkState;
use wirestorm_api::run::PlanSource;
use wirestorm_api::session::{Limits, Role, UserRequest};
use wirestorm_api::test::{TestRequest, TestSource, TestState, TestStatus};
use wirestorm_bus::Bus;
use wirestorm_bus::local::LocalBus;
use wirestorm_bus::nats::{Key, NatsBus, NatsOptions};
use wirestorm_bus::subject::Site;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::sync::StampReflector;
use wirestorm_serve::cluster::{Agent, AgentOptions};
use wirestorm_serve::{DirectorMember, ListenOption, Server, ServerOptions, Service, Users};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::{NatsServer, require_nats_server};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use crate::service::{PATIENCE, TestServer, code, loopback, options, request};

/// A test that sends from node `tx` to node `rx`.
fn text(interfaces: [&str; 2], duration: &str) -> String {
    let [tx, rx] = interfaces;
    format!(
        "name: two\nnodes: [tx, rx]\nports:\n  - {{name: a, node: tx, interface: '{tx}'}}\n  \
         - {{name: b, node: rx, interface: '{rx}'}}\nruns:\n  - name: flows\n    \
         options: {{backend: af_packet, tolerance: 50}}\n    streams:\n      flows:\n        \
         - name: voice\n          tx: a\n          rx: b\n          size: 128\n          \
         rate: 1kpps\n          metrics: {{enable: true}}\n          \
         packet: [ethernet: {{}}, ipv4: {{src: 10.0.0.1, dst: 10.0.0.2}}, udp: {{}}]\n\
         duration: {duration}\n"
    )
}

fn test(text: String) -> TestRequest {
    let test = TestSource::Text(text);
    TestRequest { test, name: None, ports: Default::default(), lease: None }
}

/// Waits until a value fits.
fn wait<T>(what: &str, read: impl Fn() -> T, fits: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let value = read();
        if fits(&value) {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wait_over(client: &Client, id: &str) -> TestStatus {
    wait("the test ends", || client.test(id).unwrap(), |it| it.test.state.is_over())
}

fn wait_sending(client: &Client, id: &str) -> TestStatus {
    let fits = |it: &TestStatus| {
        assert!(!it.test.state.is_over(), "{it:?}");
        it.received > 0
    };
    wait("frames arrive", || client.test(id).unwrap(), fits)
}

/// Returns the places of the errors of a refused request.
fn places<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (ErrorCode, Vec<String>) {
    match answer.unwrap_err() {
        ClientError::Refused(document) => {
            (document.code, document.errors.into_iter().map(|error| error.path).collect())
        }
        error => panic!("{error}"),
    }
}

#[test]
fn test_on_the_ports_of_the_server_has_results_and_is_in_the_history() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let agents = client.agents().unwrap();
    assert!(agents.agents.is_empty() && agents.site.is_none());
    assert!(agents.reason.is_some_and(|it| it.contains("--bus-credentials")));
    let wanted =
        TestRequest { name: Some("night".into()), ..test(text(["left", "right"], "300ms")) };
    let created = client.create_test(&wanted).unwrap();
    assert_eq!((created.name.as_str(), created.user.as_str()), ("night", "ada"));
    assert_eq!((created.on_bus, &created.agents[..]), (false, &["tx".to_owned(), "rx".into()][..]));
    let status = wait_over(&client, &created.id);
    assert_eq!(status.test.state, TestState::Finished, "{status:?}");
    let lines: Vec<&str> = status.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["agents", "prepare", "run", "results"]);
    let [iteration] = &status.results[..] else { panic!("{status:?}") };
    let [run] = &iteration.runs[..] else { panic!("{iteration:?}") };
    assert_eq!(run.outcome.as_deref(), Some("met"), "{run:?}");
    let [flow] = &run.flows[..] else { panic!("{run:?}") };
    assert_eq!((flow.sent, flow.received, flow.loss_percent), (300, Some(300), Some(0.0)));
    let delay = flow.delay.as_ref().unwrap();
    assert!(delay.min_ns.is_some_and(|min| min >= 0) && delay.min_ns < delay.max_ns, "{delay:?}");
    assert_eq!(delay.assumption.as_deref(), Some("one clock"));
    assert!(iteration.start_skew_ns.is_some());
    // The same result in the history, in its report, and as a document.
    let saved = client.run(run.run.as_deref().unwrap()).unwrap();
    assert_eq!((saved.name.as_deref(), saved.user.as_deref()), (Some("night/flows"), Some("ada")));
    assert!(client.report(&saved.id, "markdown").unwrap().contains("voice"));
    assert_eq!(client.result(&saved.id).unwrap().flows[0].packets, 300);
    let document = client.test_result(&created.id).unwrap();
    assert_eq!(
        (&document["schema"], &document["test"]),
        (&"wirestorm.test/1".into(), &"night".into())
    );
    assert_eq!(document["iterations"][0]["runs"][0]["result"]["flows"][0]["packets"], 300);
    // Each node has a run of its own, with the test and the node in its name.
    let runs = client.runs(10).unwrap().runs;
    let mut names: Vec<String> = runs.into_iter().filter_map(|run| run.name).collect();
    names.sort();
    let id = &created.id;
    assert_eq!(
        names,
        ["night/flows".to_owned(), format!("{id}/flows@rx"), format!("{id}/flows@tx")]
    );
    assert_eq!(client.tests().unwrap(), [status.test]);
    assert_eq!(code(client.test("other")), Some(ErrorCode::NotFound));
}

/// A test with a method from node `tx` to node `rx`.
fn bench(interfaces: [&str; 2], method: &str) -> TestRequest {
    let [tx, rx] = interfaces;
    test(format!(
        "name: two\nnodes: [tx, rx]\nports:\n  - {{name: a, node: tx, interface: '{tx}'}}\n  \
         - {{name: b, node: rx, interface: '{rx}'}}\nruns:\n  - name: link\n    \
         options: {{backend: af_packet}}\n    bench: {{tx: a, rx: b, settle: 0s, \
         learning_wait: 0s, frame_sizes: 128, max_load: 1kpps, {method}}}\n"
    ))
}

#[test]
fn benchmark_method_has_its_trials_and_findings() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let wanted = bench(["left", "right"], "method: rfc2544, tests: throughput, trial: 200ms");
    let id = client.create_test(&wanted).unwrap().id;
    let status = wait_over(&client, &id);
    assert_eq!(status.test.state, TestState::Finished, "{status:?}");
    let lines: Vec<&str> = status.lines.iter().map(|line| line.text.as_str()).collect();
    let trial = "trial 1: throughput ipv4, 128 bytes, 1000 frames/s, 0.2 s: sent 200, lost 0";
    assert_eq!(lines, ["agents", "prepare", "run", trial]);
    let [iteration] = &status.results[..] else { panic!("{status:?}") };
    let [run] = &iteration.runs[..] else { panic!("{iteration:?}") };
    assert_eq!((run.name.as_str(), run.outcome.as_deref()), ("link", Some("met")));
    let saved = client.run(run.run.as_deref().unwrap()).unwrap();
    assert_eq!((saved.name.as_deref(), saved.user.as_deref()), (Some("two/link"), Some("ada")));
    assert!(client.report(&saved.id, "markdown").unwrap().contains("Throughput"));
    let document = client.test_result(&id).unwrap();
    let findings = &document["bench"]["result"]["findings"];
    assert_eq!(findings["throughput"][0]["load"], 1_000, "{document}");

    // A wrong method is refused, and a stopped one has a result.
    let wrong = bench(["left", "right"], "method: rfc9411");
    let ClientError::Refused(refused) = client.create_test(&wrong).unwrap_err() else { panic!() };
    assert!(refused.message.contains("bench.method: found rfc9411"), "{refused:?}");
    let long = bench(["left", "right"], "method: ndr, first_run: 60s");
    let id = client.create_test(&long).unwrap().id;
    wait_sending(&client, &id);
    client.stop_test(&id).unwrap();
    let status = wait_over(&client, &id);
    assert_eq!(status.test.state, TestState::Interrupted, "{status:?}");
    let run = &status.results[0].runs[0];
    assert_eq!(run.outcome.as_deref(), Some("interrupted"), "{status:?}");
}

#[test]
fn errors_of_a_test_are_in_the_answer_with_their_places() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let good = || text(["left", "right"], "100ms");
    let with = |from: &str, to: &str| {
        let changed = good().replace(from, to);
        assert_ne!(changed, good(), "{from}");
        places(client.create_test(&test(changed)))
    };
    let at = |path: &str| vec![path.to_owned()];
    assert_eq!(with("node: rx", "node: ry"), (ErrorCode::Plan, at("ports[1].node")));
    assert_eq!(with("'right'", "nowhere"), (ErrorCode::NotFound, at("ports[1].interface")));
    assert_eq!(with("duration", "iterations: 1001\nduration"), (ErrorCode::Plan, at("iterations")));
    let refused = client.create_test(&test(good().replace("1kpps", "fast"))).unwrap_err();
    assert!(refused.to_string().contains("run flows") && refused.to_string().contains("rate"));
    let bad = |change: fn(&mut TestRequest)| {
        let mut wanted = test(good());
        change(&mut wanted);
        places(client.create_test(&wanted))
    };
    let unknown = |it: &mut TestRequest| drop(it.ports.insert("c".into(), "left".into()));
    assert_eq!(bad(unknown), (ErrorCode::Invalid, at("ports.c")));
    let short = |it: &mut TestRequest| it.lease = Some("1ms".into());
    assert_eq!(bad(short), (ErrorCode::Invalid, at("lease")));
    let latest = |it: &mut TestRequest| it.name = Some("latest".into());
    assert_eq!(bad(latest), (ErrorCode::Invalid, at("name")));
    let long = |it: &mut TestRequest| it.test = TestSource::Text(" ".repeat(9 << 20));
    assert_eq!(bad(long).0, ErrorCode::TooLarge);
    assert!(client.tests().unwrap().is_empty() && client.runs(10).unwrap().runs.is_empty());
    // A plan in a file must have been uploaded; files of the machine are out of reach.
    let document: serde_json::Value = serde_json::json!({
        "nodes": ["tx", "rx"],
        "ports": [{"name": "a", "node": "tx", "interface": "nowhere"},
            {"name": "b", "node": "rx", "interface": "right"}],
        "runs": [{"streams": "plan.yaml"}],
        "duration": "100ms",
    });
    let mut wanted = test(String::new());
    wanted.test = TestSource::Document(document);
    wanted.ports.insert("a".into(), "left".into());
    assert_eq!(places(client.create_test(&wanted)), (ErrorCode::MissingFile, at("plan.yaml")));
    let plan = crate::service::plan("1kpps");
    client.upload("plan.yaml", plan.as_bytes()).unwrap();
    let created = client.create_test(&wanted).unwrap();
    let status = wait_over(&client, &created.id);
    assert_eq!((status.test.name.as_str(), status.test.state), ("test", TestState::Finished));
    assert!(status.results[0].runs[0].flows[0].sent > 0, "{status:?}");
}

#[test]
fn test_keeps_its_ports_until_it_is_stopped() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let (ada, bob) = (server.client("ada", ""), server.client("bob", ""));
    // The lease of the user does not hold up its own test.
    ada.lease("left", &LeaseRequest::default()).unwrap();
    let taken = || bob.create_test(&test(text(["left", "right"], "60s")));
    assert_eq!(places(taken()), (ErrorCode::Conflict, vec!["ports[0].interface".into()]));
    let id = ada.create_test(&test(text(["left", "right"], "60s"))).unwrap().id;
    wait_sending(&ada, &id);
    assert_eq!(code(bob.lease("right", &LeaseRequest::default())), Some(ErrorCode::Conflict));
    assert_eq!(code(bob.create_run(&request("1kpps", "1s"))), Some(ErrorCode::Conflict));
    assert_eq!(code(ada.test_result(&id)), Some(ErrorCode::Conflict), "it has not ended");
    assert!(ada.stop_test(&id).unwrap().is_stopping);
    let status = wait_over(&ada, &id);
    assert_eq!(status.test.state, TestState::Interrupted);
    assert_eq!(status.test.message.as_deref(), Some("ada stopped the test"));
    let run = &status.results[0].runs[0];
    assert!(run.flows[0].received.is_some_and(|it| it > 0) && run.run.is_some(), "{run:?}");
    ada.test_result(&id).unwrap();
    assert_eq!(code(ada.stop_test(&id)), Some(ErrorCode::Conflict), "it has ended");
    bob.lease("right", &LeaseRequest::default()).unwrap();
    bob.release("right").unwrap();
    // A port that is taken by force ends the test.
    let id = ada.create_test(&test(text(["left", "right"], "60s"))).unwrap().id;
    wait_sending(&ada, &id);
    bob.lease("left", &LeaseRequest { force: true, ..LeaseRequest::default() }).unwrap();
    let status = wait_over(&ada, &id);
    assert_eq!(status.test.message.as_deref(), Some("bob took port left"));
}

#[test]
fn iterations_replay_uploaded_captures_and_keep_their_ports_between_them() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let capture = server.scratch.file("local.pcap");
    let traffic = Traffic::new(TrafficOptions { conversations: 5, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Nanoseconds, &capture).unwrap();
    client.upload("traffic.pcap", &*std::fs::read(&capture).unwrap()).unwrap();
    let with_replay = text(["left", "right"], "10s").replace(
        "duration",
        "  - name: captured\n    options: {backend: af_packet}\n    \
         replay: {captures: [traffic.pcap], port: b, rate: max}\niterations: 2\npause: 2s\nduration",
    );
    // The flow would go on; the replay alone ends by itself.
    let wanted =
        with_replay.replace("rate: 1kpps", "rate: 1kpps\n          duration: {fixed_packets: 100}");
    let id = client.create_test(&test(wanted)).unwrap().id;
    let first = |it: &TestStatus| {
        assert!(!it.test.state.is_over(), "{it:?}");
        it.results.len() == 1
    };
    wait("the first iteration is over", || client.test(&id).unwrap(), first);
    let refused = server.client("bob", "").lease("left", &LeaseRequest::default());
    assert_eq!(code(refused), Some(ErrorCode::Conflict), "the pause belongs to the test");
    let status = wait_over(&client, &id);
    assert_eq!(status.test.state, TestState::Finished, "{status:?}");
    assert_eq!((status.test.iteration, status.results.len()), (2, 2));
    let ids = status.results.iter().flat_map(|it| &it.runs).filter_map(|run| run.run.clone());
    let found = ids.map(|id| client.run(&id).unwrap()).map(|run| (run.name.unwrap(), run.kind));
    let expected_names = ["two/flows/1", "two/captured/1", "two/flows/2", "two/captured/2"];
    let kinds = ["streams", "replay", "streams", "replay"];
    let expected =
        expected_names.into_iter().zip(kinds).map(|(name, kind)| (name.into(), kind.into()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<(String, String)>>());
    let plan = |run: usize| match client.origin(expected_names[run]).unwrap().plan {
        Some(PlanSource::Text(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(plan(0).contains("voice") && !plan(0).contains("captured"), "the plan");
    assert!(plan(1).contains("captured"), "the test, since a replay has no plan");
    let document = client.test_result(&id).unwrap();
    let packets = &document["iterations"][1]["runs"][1]["result"]["achieved"]["packets"];
    assert!(packets.as_u64().is_some_and(|packets| packets > 0), "{packets}");
}

#[test]
fn end_of_the_server_stops_its_tests_and_the_next_one_knows_them() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let id = client.create_test(&test(text(["left", "right"], "60s"))).unwrap().id;
    wait_sending(&client, &id);
    let TestServer { service, lab, scratch } = server;
    assert!(service.stop().is_empty());
    let service = Service::start(options(&scratch, &lab), &[loopback()], None).unwrap();
    let server = TestServer { service, lab, scratch };
    let client = server.client("bob", "");
    let status = client.test(&id).unwrap();
    assert_eq!(status.test.state, TestState::Interrupted);
    assert_eq!(status.test.message.as_deref(), Some("the server ended"));
    let document = client.test_result(&id).unwrap();
    assert!(document["iterations"][0]["runs"][0]["result"]["flows"].is_array(), "{document}");
    assert!(client.run("two/flows").is_ok());
}

#[test]
fn only_its_user_and_administrators_stop_a_test() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let server = options(&scratch, &lab);
    let users = Users::open(&server.directory).unwrap();
    let add = |name: &str, role, limits| {
        users.put(name, UserRequest { role, limits, certificate: None }).unwrap().token
    };
    let none = Limits::default;
    let tokens = [
        add("ada", Role::Operate, none()),
        add("bob", Role::Operate, Limits { pps_max: Some(10), ..none() }),
        add("eve", Role::Observe, none()),
        add("root", Role::Administer, none()),
    ];
    let service =
        Service::start(server, &[ListenOption { needs_user: true, ..loopback() }], None).unwrap();
    let [ada, bob, eve, root] = tokens.map(|token| {
        let server = format!("http://{}", service.addresses()[0]);
        let token = Some(token);
        Client::new(&ClientOptions { server, token, ..ClientOptions::default() }).unwrap()
    });
    let wanted = || test(text(["left", "right"], "60s"));
    assert_eq!(code(eve.create_test(&wanted())), Some(ErrorCode::Forbidden));
    // The limits of the user hold for its tests.
    let id = bob.create_test(&wanted()).unwrap().id;
    let status = wait_over(&bob, &id);
    assert_eq!(status.test.state, TestState::Failed);
    assert!(status.test.message.as_ref().is_some_and(|it| it.contains("limit")), "{status:?}");
    let id = ada.create_test(&wanted()).unwrap().id;
    wait_sending(&eve, &id);
    assert_eq!(code(eve.stop_test(&id)), Some(ErrorCode::Forbidden));
    assert_eq!(code(bob.stop_test(&id)), Some(ErrorCode::Forbidden));
    root.stop_test(&id).unwrap();
    assert_eq!(wait_over(&ada, &id).test.message.as_deref(), Some("root stopped the test"));
}

/// A server that is director on a bus, and two agents at the ends of a link.
struct Cluster {
    service: Service,
    agents: Vec<Agent>,
    lab: Lab,
    scratch: Scratch,
}

impl Cluster {
    /// Starts agents and a server. `bus`: returns the bus of a member by its role and name.
    fn start(bus: impl Fn(&str, &str) -> Arc<dyn Bus>, listen: ListenOption) -> Self {
        let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
        let (site, key) = (Site::new("default").unwrap(), Key::generate());
        let agent = |(name, interface): (&str, String)| {
            let server = Server::open(ServerOptions {
                ports: Vec::new(),
                directory: scratch.file(&format!("{name}-state")),
                runs_directory: scratch.file(&format!("{name}-runs")),
                captures_bytes_max: 1_000_000,
                director: None,
            });
            let reflector =
                StampReflector::start(&Namespace::Current, "127.0.0.1:0".parse().unwrap());
            let reflector = reflector.unwrap();
            let options = AgentOptions {
                name: name.to_owned(),
                site: site.clone(),
                bus: bus("agent", name),
                server: server.unwrap(),
                trusted: vec![key.public()],
                limits: Limits { ports: Some(vec![interface]), ..Limits::default() },
                destinations: Vec::new(),
                reflector_addresses: vec![reflector.address()],
                reflector: Some(reflector),
                references: None,
                ptp: None,
                orders_file: None,
                contents_directory: None,
                log: Box::new(|_| ()),
            };
            Agent::start(options).unwrap()
        };
        let agents = [("tx", lab.a.port()), ("rx", lab.b.port())].map(agent);
        let bus = bus("director", "desk");
        let director = DirectorMember { bus, site, name: "desk".to_owned(), key };
        let options = ServerOptions { director: Some(director), ..options(&scratch, &lab) };
        let service = Service::start(options, &[listen], None).unwrap();
        Self { service, agents: agents.into(), lab, scratch }
    }

    fn client(&self, token: Option<String>) -> Client {
        let server = format!("http://{}", self.service.addresses()[0]);
        Client::new(&ClientOptions { server, token, ..ClientOptions::default() }).unwrap()
    }

    fn test(&self, duration: &str) -> TestRequest {
        test(text([&self.lab.a.port(), &self.lab.b.port()], duration))
    }
}

fn idle(agents: &[AgentDocument]) -> bool {
    agents.len() == 2 && agents.iter().all(|agent| agent.state == AgentState::Idle)
}

/// A whole session with agents of a bus.
fn session_on(cluster: Cluster) {
    let client = cluster.client(None);
    let agents = || client.agents().unwrap().agents;
    let found = wait("both agents are idle", agents, |it| idle(it));
    let names: Vec<&str> = found.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["rx", "tx"]);
    let [interface] = &found[1].interfaces[..] else { panic!("{found:?}") };
    assert_eq!((&interface.interface, interface.link), (&cluster.lab.a.port(), LinkState::Up));
    assert_eq!((found[1].reflector.len(), found[1].test.as_deref()), (1, None));
    assert!(found[1].seen_s < 5.0 && !found[1].version.is_empty() && !found[1].host.is_empty());
    assert_eq!(client.agents().unwrap().site.as_deref(), Some("default"));

    let created = client.create_test(&cluster.test("2s")).unwrap();
    assert!(created.on_bus);
    wait_sending(&client, &created.id);
    let busy = agents();
    let uses = |agent: &AgentDocument| agent.test.as_deref() == Some(&*created.id);
    assert!(busy.iter().all(|it| it.state == AgentState::Busy && uses(it)), "{busy:?}");
    // The agents belong to this test.
    let second = client.create_test(&cluster.test("2s")).unwrap();
    let refused = wait_over(&client, &second.id).test;
    assert_eq!(refused.state, TestState::Failed);
    assert!(refused.message.as_ref().is_some_and(|it| it.contains(&created.id)), "{refused:?}");
    assert_eq!(code(client.test_result(&second.id)), Some(ErrorCode::Conflict));

    let status = wait_over(&client, &created.id);
    assert_eq!(status.test.state, TestState::Finished, "{status:?}");
    let run = &status.results[0].runs[0];
    let flow = &run.flows[0];
    assert_eq!((flow.sent, flow.received), (2_000, Some(2_000)), "{run:?}");
    let delay = flow.delay.as_ref().unwrap();
    assert_eq!(delay.assumption.as_deref(), Some("symmetric path"));
    assert!(delay.method.as_ref().is_some_and(|it| it.starts_with("STAMP to 127.0.0.1:")));
    assert!(delay.half_width_ns < delay.bound_ns && delay.half_width_ns > Some(0.0), "{delay:?}");
    let saved = client.run(run.run.as_deref().unwrap()).unwrap();
    assert_eq!(saved.name.as_deref(), Some("two/flows"));
    assert_eq!(saved.interfaces, [cluster.lab.a.port(), cluster.lab.b.port()]);
    wait("both agents are idle again", agents, |it| idle(it));

    // The server ends during a test: the agents stop.
    let id = client.create_test(&cluster.test("60s")).unwrap().id;
    wait_sending(&client, &id);
    let Cluster { service, agents, lab, scratch } = cluster;
    assert!(service.stop().is_empty());
    let service = Service::start(options(&scratch, &lab), &[loopback()], None).unwrap();
    let next = TestServer { service, lab, scratch };
    let status = next.client("ada", "").test(&id).unwrap();
    assert_eq!(status.test.message.as_deref(), Some("the server ended"));
    assert!(status.results[0].lost.is_empty(), "{status:?}");
    assert!(status.results[0].runs[0].flows[0].received > Some(0), "{status:?}");
    drop(agents);
}

#[test]
fn test_on_agents_of_a_bus_in_this_process() {
    if !require_root() {
        return;
    }
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    session_on(Cluster::start(|_, _| Arc::clone(&bus), loopback()));
}

#[test]
fn test_on_agents_of_a_nats_server() {
    if !require_root() {
        return;
    }
    let Some(program) = require_nats_server() else { return };
    let nats = NatsServer::open(&program).unwrap();
    let url = format!("nats://127.0.0.1:{}", nats.port());
    let bus = |role: &str, name: &str| -> Arc<dyn Bus> {
        let site = Site::new("default").unwrap();
        let options = NatsOptions::new(&url, &site, role, name).unwrap();
        Arc::new(NatsBus::connect(options).unwrap())
    };
    session_on(Cluster::start(bus, loopback()));
}

#[test]
fn agents_that_end_are_shown_as_lost_and_tests_need_them() {
    if !require_root() {
        return;
    }
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let mut cluster = Cluster::start(|_, _| Arc::clone(&bus), loopback());
    let client = cluster.client(None);
    let agents = || client.agents().unwrap().agents;
    wait("both agents are idle", agents, |it| idle(it));
    let id = client.create_test(&cluster.test("60s")).unwrap().id;
    wait_sending(&client, &id);
    // Dropped last to first: `rx` ends.
    drop(cluster.agents.pop());
    let status = wait_over(&client, &id);
    assert_eq!(status.test.state, TestState::Failed, "{status:?}");
    assert_eq!(status.results[0].lost[0].agent, "rx");
    assert!(status.lines.iter().any(|it| it.text.starts_with("agent rx is lost: ")), "{status:?}");
    let is_lost = |it: &Vec<AgentDocument>| it[0].name == "rx" && it[0].state == AgentState::Lost;
    wait("agent rx is lost", agents, is_lost);
    let id = client.create_test(&cluster.test("60s")).unwrap().id;
    let status = wait_over(&client, &id);
    assert_eq!(status.test.state, TestState::Failed);
    let message = status.test.message.unwrap();
    assert!(message.contains("rx") && message.contains("start `wirestorm agent`"), "{message}");
}

#[test]
fn users_with_limits_start_no_tests_on_agents() {
    if !require_root() {
        return;
    }
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let owner = wirestorm_serve::Owner::new("root").unwrap();
    let token = owner.token().to_owned();
    let listen = ListenOption { needs_user: true, owner: Some(owner), ..loopback() };
    let cluster = Cluster::start(|_, _| Arc::clone(&bus), listen);
    let limits = Limits { pps_max: Some(1_000_000), ..Limits::default() };
    let ada = UserRequest { role: Role::Operate, limits, certificate: None };
    let ada = cluster.client(Some(token)).put_user("ada", &ada).unwrap().token;
    let refused = cluster.client(Some(ada)).create_test(&cluster.test("1s")).unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Forbidden));
    assert!(refused.to_string().contains("ask an administrator"), "{refused}");
}
