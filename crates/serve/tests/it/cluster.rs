//! A director and its agents in one process, on a bus that repeats, delays and loses.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wirestorm_api::session::Limits;
use wirestorm_bus::local::LocalBus;
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::testing::{Faults, FaultyBus};
use wirestorm_bus::{Bus, Bytes};
use wirestorm_control::files::HostFiles;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::plan::test_plan::TestPlan;
use wirestorm_control::sync::StampReflector;
use wirestorm_serve::cluster::{
    Agent, AgentOptions, Director, DirectorOptions, TestError, TestOutcome,
};
use wirestorm_serve::{Server, ServerOptions};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

/// A bus in this process, and a veth pair between the nodes `tx` and `rx`.
pub(crate) struct Machines {
    pub(crate) bus: LocalBus,
    key: Key,
    pub(crate) lab: Lab,
    pub(crate) scratch: Scratch,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Machines {
    pub(crate) fn new() -> Self {
        Self {
            bus: LocalBus::new(),
            key: Key::generate(),
            lab: Lab::new().unwrap(),
            scratch: Scratch::new().unwrap(),
            lines: Arc::default(),
        }
    }

    pub(crate) fn site() -> Site {
        Site::new("here").unwrap()
    }

    pub(crate) fn agent(&self, name: &str, bus: Arc<dyn Bus>) -> Agent {
        let folder = self.scratch.file(name);
        let server = Server::open(ServerOptions {
            ports: Vec::new(),
            directory: folder.join("server"),
            runs_directory: folder.join("runs"),
            captures_bytes_max: 1_000_000,
            director: None,
        });
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let reflector = StampReflector::start(&Namespace::Current, any).unwrap();
        let lines = Arc::clone(&self.lines);
        let agent = Agent::start(AgentOptions {
            name: name.to_owned(),
            site: Self::site(),
            bus,
            server: server.unwrap(),
            trusted: vec![self.key.public()],
            limits: Limits::default(),
            destinations: Vec::new(),
            reflector_addresses: vec![reflector.address()],
            reflector: Some(reflector),
            references: None,
            ptp: None,
            orders_file: Some(folder.join("orders.json")),
            contents_directory: Some(folder.join("contents")),
            log: Box::new(move |line| lines.lock().unwrap().push(line.to_owned())),
        });
        agent.unwrap()
    }

    /// Runs a test of 1,000 frames to its end.
    fn test(&self, id: &str, bus: Arc<dyn Bus>) -> TestOutcome {
        let text = format!(
            "nodes: [tx, rx]
ports:
  - {{name: left, node: tx, interface: '{}'}}
  - {{name: right, node: rx, interface: '{}'}}
runs:
  - name: flows
    streams:
      flows:
        - name: forward
          tx: left
          rx: right
          size: 128
          rate: 2kpps
          duration: {{fixed_packets: 1000}}
          metrics: {{enable: true}}
          packet: [ethernet: {{}}, ipv4: {{src: 10.0.0.1, dst: 10.0.0.2}}, udp: {{}}]
duration: 5s
",
            self.lab.a.port(),
            self.lab.b.port()
        );
        let director = self.director(id, bus, &text, PathBuf::new());
        director.unwrap().run(&AtomicBool::new(false), &mut |_| ()).unwrap()
    }

    /// Returns the director of a test whose file is in a folder.
    pub(crate) fn director(
        &self,
        id: &str,
        bus: Arc<dyn Bus>,
        text: &str,
        folder: PathBuf,
    ) -> Result<Director, TestError> {
        Director::new(DirectorOptions {
            name: "desk".to_owned(),
            site: Self::site(),
            bus,
            key: self.key.clone(),
            test: TestPlan::parse(text).unwrap(),
            folder,
            files: Arc::new(HostFiles),
            id: id.to_owned(),
            lease: Duration::from_secs(10),
            wait: Duration::ZERO,
            one_clock: false,
        })
    }

    pub(crate) fn arrived(&self) -> u64 {
        self.lab.b.counters().unwrap().rx_packets
    }

    pub(crate) fn noted(&self, text: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.contains(text)).count()
    }
}

#[track_caller]
fn assert_complete(outcome: &TestOutcome) {
    let iteration = &outcome.iterations[0];
    assert_eq!((&iteration.lost[..], &iteration.unreadable[..]), (&[][..], &[][..]));
    let flow = &iteration.runs[0].result.as_ref().unwrap().flows[0];
    assert_eq!((flow.packets, flow.lost), (1_000, Some(0)));
    let one_way = flow.measured[0].one_way.as_ref().unwrap();
    assert_eq!((one_way.delay.count, &*one_way.assumption), (1_000, "symmetric path"));
}

#[test]
fn test_is_exact_on_a_bus_that_repeats_delays_and_loses_answers() {
    if !require_root() {
        return;
    }
    for seed in [1, 20, 300] {
        let site = Machines::new();
        let faulty = |seed: u64| -> Arc<dyn Bus> {
            let faults = Faults {
                seed,
                repeated: 300,
                delayed: 300,
                delay_max: Duration::from_millis(80),
                lost_answers: 50,
            };
            Arc::new(FaultyBus::new(Arc::new(site.bus.clone()), faults))
        };
        let _agents = [site.agent("tx", faulty(seed)), site.agent("rx", faulty(seed + 1))];
        let outcome = site.test("t1", faulty(seed + 2));
        assert_complete(&outcome);
        assert_eq!(site.arrived(), 1_000, "seed {seed}");
        assert_eq!(site.noted("refused"), 0, "seed {seed}: {:?}", site.lines);
    }
}

#[test]
fn copies_of_orders_send_nothing() {
    if !require_root() {
        return;
    }
    let site = Machines::new();
    let bus: Arc<dyn Bus> = Arc::new(site.bus.clone());
    let subject = Machines::site().agent_rpc("tx").unwrap();
    let tap = bus.subscribe(&subject, 10_000).unwrap();
    let sender = site.agent("tx", Arc::clone(&bus));
    let _receiver = site.agent("rx", Arc::clone(&bus));
    assert_complete(&site.test("t1", Arc::clone(&bus)));
    let orders: Vec<Bytes> =
        std::iter::from_fn(|| Some(tap.recv(Duration::ZERO).ok()?.payload)).collect();
    assert!(orders.len() > 5, "{} orders", orders.len());
    drop(tap);
    let again = || {
        let answer = |order: &Bytes| bus.request(&subject, order, Duration::from_secs(5)).unwrap();
        orders.iter().filter(|order| answer(order).starts_with(b"{\"refused\"")).count()
    };
    // The test is the agent's last one: a copy of an order gets the answer of the first one.
    again();
    assert_eq!(
        (site.arrived(), site.noted("refused")),
        (1_000, site.noted("copy of an old order"))
    );
    assert_complete(&site.test("t2", Arc::clone(&bus)));
    assert_eq!(again(), orders.len());
    assert_eq!(site.noted("a later lease of this agent belongs to director desk"), orders.len());
    // An agent that was started again knows no test, but the orders that it had.
    drop(sender);
    let _sender = site.agent("tx", Arc::clone(&bus));
    bus.create("leases", "tx", b"t1").unwrap();
    assert_eq!(again(), orders.len());
    assert!(site.noted("copy of an old order") >= orders.len());
    assert_eq!(site.arrived(), 2_000);
}
