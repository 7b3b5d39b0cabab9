//! A hundred agents in this process, on a NATS server, and a director process.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroI32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirestorm_api::session::Limits;
use wirestorm_bus::Bus;
use wirestorm_bus::cluster::{Certificates, Cluster, Credentials, Paths, Role};
use wirestorm_bus::nats::NatsBus;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::sync::StampReflector;
use wirestorm_e2e::{start_command, wirestorm};
use wirestorm_serve::cluster::{Agent, AgentOptions};
use wirestorm_serve::{Server, ServerOptions};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::{NatsServer, free_port, require_nats_server};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

/// Pairs of agents: one sends to the other.
const PAIRS: usize = 50;
/// Frames of each sender.
const FRAMES: u64 = 200;
/// Time from the last order to the start: a hundred agents share the CPUs of this machine.
const LEAD: Duration = Duration::from_secs(2);
/// Most time from the first order to the last one on a machine with other work, and most memory of the
/// director in kB.
const ORDERS_MAX: Duration = Duration::from_secs(6);
const MEMORY_MAX: u64 = 100_000;

/// Starts a server with TLS for agents `a0`, `a1`, and so on, and a director; returns its site and
/// their credentials too.
fn bus(program: &Path, scratch: &Scratch) -> (NatsServer, Vec<Credentials>) {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let (mut cluster, certificates) = Cluster::new("hundred", listen, &[]).unwrap();
    let mut members = vec![cluster.add(Role::Director, "desk").unwrap()];
    for number in 0..2 * PAIRS {
        members.push(cluster.add(Role::Agent, &format!("a{number}")).unwrap());
    }
    let Certificates { server, server_key, .. } = certificates;
    let paths = Paths {
        certificate: scratch.file("server.pem"),
        key: scratch.file("server-key.pem"),
        store: scratch.file("jetstream"),
        process_id: scratch.file("nats-server.pid"),
    };
    std::fs::write(&paths.certificate, server).unwrap();
    std::fs::write(&paths.key, server_key).unwrap();
    let limits = wirestorm_bus::cluster::Limits { store_bytes: 2 << 30 };
    let config = scratch.file("nats-server.conf");
    std::fs::write(&config, cluster.configuration(&paths, limits).unwrap()).unwrap();
    (NatsServer::with_config(program, &config, listen, None).unwrap(), members)
}

fn agent(credentials: &Credentials, folder: PathBuf) -> Agent {
    let bus: Arc<dyn Bus> = Arc::new(NatsBus::connect(credentials.options(None).unwrap()).unwrap());
    let server = Server::open(ServerOptions {
        ports: Vec::new(),
        directory: folder.join("server"),
        runs_directory: folder.join("runs"),
        captures_bytes_max: 1_000_000,
        director: None,
    });
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let reflector = StampReflector::start(&Namespace::Current, any).unwrap();
    let agent = Agent::start(AgentOptions {
        name: credentials.name.clone(),
        site: credentials.site().unwrap(),
        bus,
        server: server.unwrap(),
        trusted: credentials.directors.clone(),
        limits: Limits::default(),
        destinations: Vec::new(),
        reflector_addresses: vec![reflector.address()],
        reflector: Some(reflector),
        references: None,
        ptp: None,
        orders_file: Some(folder.join("orders.json")),
        contents_directory: Some(folder.join("contents")),
        log: Box::new(|line| println!("{line}")),
    });
    agent.unwrap()
}

/// Joins the interfaces of each pair, and returns the text of the test.
fn test(lab: &Lab) -> String {
    let (mut nodes, mut ports, mut flows) = (Vec::new(), String::new(), String::new());
    let mut lines = Vec::new();
    for pair in 0..PAIRS {
        let (tx, rx) = (2 * pair, 2 * pair + 1);
        lines.push(format!("link add v{tx} type veth peer name v{rx}"));
        for number in [tx, rx] {
            lines.push(format!("link set v{number} up"));
            nodes.push(format!("a{number}"));
            let interface = format!("netns/{}:v{number}", lab.a.namespace().name());
            let port = format!("{{name: p{number}, node: a{number}, interface: '{interface}'}}");
            let _ = writeln!(ports, "  - {port}");
        }
        let _ = write!(
            flows,
            "
        - name: pair-{pair}
          tx: p{tx}
          rx: p{rx}
          size: 128
          rate: 100pps
          duration: {{fixed_packets: {FRAMES}}}
          metrics: {{enable: true}}
          packet: [ethernet: {{}}, ipv4: {{src: 10.0.0.1, dst: 10.0.0.2}}, udp: {{}}]"
        );
    }
    lab.a.namespace().ip(&lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    format!(
        "nodes: [{}]
ports:
{ports}runs:
  - name: all
    options: {{backend: af_packet}}
    streams:
      flows:{flows}
duration: 10s
clock: {{lead: {}s}}
",
        nodes.join(", "),
        LEAD.as_secs()
    )
}

/// Returns the most memory of a process in kB, once it has ended.
fn memory_of(pid: NonZeroI32) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let path = format!("/proc/{pid}/status");
        let mut most = 0;
        // A process that has ended has no line of this kind.
        while let Ok(text) = std::fs::read_to_string(&path)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            most = line.trim().trim_end_matches(" kB").parse().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    })
}

#[test]
fn a_hundred_agents_run_a_test() {
    let Some(program) = require_nats_server().filter(|_| require_root()) else { return };
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let (_server, members) = bus(&program, &scratch);
    let agents: Vec<Agent> = members[1..]
        .iter()
        .map(|credentials| agent(credentials, scratch.file(&credentials.name)))
        .collect();
    let (file, credentials) = (scratch.file("test.yaml"), scratch.file("desk.json"));
    std::fs::write(&file, test(&lab)).unwrap();
    std::fs::write(&credentials, members[0].to_json().unwrap()).unwrap();

    let mut command = Command::new(wirestorm());
    command.env("XDG_STATE_HOME", scratch.file("state")).arg("test").arg(&file);
    command.args(["--json", "-", "--bus-credentials"]).arg(&credentials);
    let director = start_command(&mut command);
    let memory = memory_of(director.pid().as_raw_nonzero());
    director.wait_for_message("agents");
    let began = Instant::now();
    while lab.a.namespace().counters("v1").unwrap().rx_packets == 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "no frame arrives");
        // Each look starts two processes, which take the CPUs from the agents.
        std::thread::sleep(Duration::from_millis(50));
    }
    let orders = began.elapsed().saturating_sub(LEAD);
    let outcome = director.wait().expect(0);
    let memory = memory.join().unwrap();
    let skew = outcome.decimal("/iterations/0/start_skew_ns");
    println!("{} agents: orders in {orders:?}, skew {skew} ns, {memory} kB", agents.len());
    for flow in 0..PAIRS {
        let number = |field: &str| {
            outcome.number(&format!("/iterations/0/runs/0/result/flows/{flow}/{field}"))
        };
        assert_eq!((number("packets"), number("lost")), (FRAMES, 0), "flow {flow}\n{outcome}");
        assert_eq!(number("measured/0/one_way/delay/count"), FRAMES, "flow {flow}\n{outcome}");
    }
    assert!(orders <= ORDERS_MAX, "{orders:?}");
    assert!((1..MEMORY_MAX).contains(&memory), "{memory} kB");
}
