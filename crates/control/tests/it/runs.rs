//! Several runs of one host: on separate interfaces, on shared interfaces, and many in sequence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::pace::Pace;
use wirestorm_base::rate::{Decimal, Rate};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_control::backend::{AF_PACKET, AF_XDP, Backend, XDP};
use wirestorm_control::emulation::{EmulationOptions, WatchOptions};
use wirestorm_control::host::Access;
use wirestorm_control::impair::ImpairOptions;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::edit::EditOptions;
use wirestorm_control::plan::emulation::EmulationPlan;
use wirestorm_control::plan::replay::{Limits, ReceivePlan, ReplayPlan, SideAssignment, Target};
use wirestorm_control::plan::traffic::TrafficPlan;
use wirestorm_control::replay::Callbacks;
use wirestorm_control::result::{Outcome, RunResult};
use wirestorm_control::run::{Options, Plan, Prepared, Run};
use wirestorm_control::traffic::{Elsewhere, SegmentOptions, SeriesOptions, StreamOptions};
use wirestorm_control::{Command, FlowCommand, Host, LoadFactor, RunHandle, RunState, StartAt};
use wirestorm_model::impairment::Impairment;
use wirestorm_model::stream::Speed;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions};
use wirestorm_testkit::pcap::{Packet, Resolution};
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::sample::write_file;

/// Timeout of the tests; longer than any operation.
const PATIENCE: StdDuration = StdDuration::from_secs(60);

/// Number of frames of the counted flow.
pub(crate) const FRAMES: u64 = 1_000;
/// UDP port from which it leaves.
pub(crate) const COUNTED_PORT: u16 = 1_000;

/// Returns a rate of `units` per second.
fn per_second(units: u64) -> Rate {
    Rate::new(units, Duration::from_secs(1)).unwrap()
}

fn capture(scratch: &Scratch) -> PathBuf {
    let path = scratch.file("frames.pcap");
    let frame = |number: u8| {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 8]);
        // Local experimental EtherType (IEEE 802), which no host answers.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[14] = number;
        frame
    };
    let packets =
        (0..10_u8).map(|number| Packet { time: u64::from(number) * 1_000, frame: frame(number) });
    write_file(packets, Resolution::Nanoseconds, &path).unwrap();
    path
}

fn replay(capture: &Path, interface: &str, packets: u64) -> Plan {
    let plan = ReplayPlan {
        captures: vec![capture.to_owned()],
        target: Target::Interfaces { primary: interface.to_owned(), secondary: None },
        sides: SideAssignment::Single,
        edits: EditOptions::default(),
        show: None,
        one_at_a_time: false,
        pace: Pace::Packets { rate: per_second(1_000), group: 1 },
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
    Plan::Replay {
        plan: Box::new(plan),
        backend: Backend::One(&AF_PACKET),
        hooks: Callbacks::default(),
    }
}

/// A measured flow from one interface to the other, and an endless flow.
pub(crate) fn streams([from, to]: [&str; 2], backend: Backend) -> Plan {
    let flow = |name: &str, port: u16, rest: &str| {
        format!(
            "  - name: {name}\n    tx: left\n    rx: [right]\n    packet:\n      - ethernet: {{src: \
             '02:00:00:00:00:01', dst: '02:00:00:00:00:02'}}\n      - ipv4: {{src: 198.51.100.1, \
             dst: 198.51.100.2}}\n      - udp: {{src_port: {port}, dst_port: 7}}\n    size: 128\n    \
             rate: 1kpps\n    metrics: {{enable: true}}\n{rest}"
        )
    };
    let text = format!(
        "ports: [{{name: left, location: '{from}'}}, {{name: right, location: '{to}'}}]\nflows:\n{}{}",
        flow("counted", COUNTED_PORT, &format!("    duration: {{fixed_packets: {FRAMES}}}\n")),
        flow("endless", 2_000, ""),
    );
    let plan = TrafficPlan::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let options = StreamOptions {
        elsewhere: None,
        interfaces: vec![None, None],
        backend,
        workers: 1,
        policy: DeparturePolicy::default(),
        duration: Duration::MAX,
        multiplier: Multiplier::ONE,
        force_interface: false,
        is_visible: false,
        per_vlan: false,
        survives_outages: false,
        tolerance_ppm: 200_000.0,
        series: SeriesOptions::default(),
    };
    Plan::Streams { plan: Arc::new(plan), options }
}

/// Clients on one interface and servers on the other, with `connections` connections in total.
fn emulation([clients, servers]: [&str; 2], connections: u64, backend: Backend) -> Plan {
    let text = format!(
        "ports:\n  - {{name: clients, location: '{clients}', addresses: 192.0.2.1/24}}\n  - {{name: \
         servers, location: '{servers}', addresses: 192.0.2.2/24}}\ntemplates:\n  - name: page\n    \
         http: {{}}\n    client: {{tx: clients, servers: 192.0.2.2, load: {{rate: 100}}, limit: \
         {connections}}}\n    server: {{tx: servers}}\n"
    );
    let plan = EmulationPlan::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let options = EmulationOptions {
        interfaces: vec![None, None],
        folder: PathBuf::new(),
        backend,
        duration: Duration::MAX,
        drain_timeout: Duration::from_secs(1),
        drain_timeout_flag: None,
        link_down_timeout: EmulationOptions::LINK_DOWN_TIMEOUT,
        watch: WatchOptions::default(),
        rx_coalesce: Duration::ZERO,
        flows_max: 1_000,
        seed: EmulationOptions::random_seed(),
        force_interface: false,
        verify_checksums: false,
        is_visible: false,
    };
    Plan::Emulation { plan: Arc::new(plan), options }
}

fn impairment(interfaces: [&str; 2]) -> Plan {
    Plan::Impair(ImpairOptions {
        interfaces: interfaces.map(str::to_owned),
        impairments: [Impairment::default(), Impairment::default()],
        backend: Backend::One(&AF_PACKET),
        duration: Duration::MAX,
        seed: 1,
        buffer_frames: 1_000,
        force_interface: false,
    })
}

pub(crate) fn prepare(plan: Plan, host: &Host, access: Access) -> Prepared {
    let options = Options { access, owner: "test".into(), ..Options::default() };
    Run::prepare(plan, options, host).unwrap_or_else(|error| panic!("{error}"))
}

fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let end = StdInstant::now() + PATIENCE;
    while !is_met() {
        assert!(StdInstant::now() < end, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(StdDuration::from_millis(5));
    }
}

fn sent(run: &RunHandle) -> u64 {
    run.latest().map_or(0, |snapshot| snapshot.transmitted.sent)
}

/// Returns where the threads of this process wait in the kernel.
fn kernel_stacks() -> String {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let read = |path: &Path, name: &str| std::fs::read_to_string(path.join(name));
    let thread = |path: &Path| {
        let name = read(path, "comm").unwrap_or_default();
        format!("{name}{}", read(path, "stack").unwrap_or_else(|error| error.to_string()))
    };
    threads.map(|entry| thread(&entry.path())).collect::<Vec<_>>().join("\n")
}

pub(crate) fn result(run: &RunHandle) -> Arc<RunResult> {
    assert!(run.wait_over(Some(PATIENCE)), "{run:?} goes on:\n{}", kernel_stacks());
    run.wait().unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts that the counted flow and the connections are complete, independent of other runs.
fn assert_undisturbed(streams: &RunResult, emulation: &RunResult, connections: u64) {
    let counted = &streams.flows[0];
    assert_eq!(counted.packets, FRAMES, "{streams:?}");
    let measured = &counted.measured[0];
    assert_eq!((measured.received, measured.missing, measured.duplicated), (FRAMES, 0, 0));
    assert!(streams.errors.is_empty(), "{:?}", streams.errors);
    for port in &emulation.ports {
        let flows = &port.connections.as_ref().unwrap().flows;
        assert_eq!((flows.closed, flows.failed), (connections, 0), "{flows:?}");
    }
    assert_eq!(emulation.verdict.outcome, Outcome::Met, "{:?}", emulation.verdict);
}

#[test]
fn runs_continue_when_another_run_loses_its_interface() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let labs: Vec<Lab> = (0..5).map(|_| Lab::new().unwrap()).collect();
    let ports = |lab: usize| [labs[lab].a.port(), labs[lab].b.port()];
    let pair = |lab: usize| ports(lab);
    let host = Host::new();
    let [replay_from, _] = pair(0);
    let [left, right] = pair(1);
    let [clients, servers] = pair(2);
    let plans = [
        replay(&capture(&scratch), &replay_from, 1_500),
        streams([&left, &right], Backend::Auto),
        emulation([&clients, &servers], 200, Backend::Auto),
        impairment([&labs[3].b.port(), &labs[4].a.port()]),
    ];
    let prepared = plans.map(|plan| prepare(plan, &host, Access::ByBackend));
    assert_eq!(host.runs().len(), 4);
    assert!(host.runs().iter().all(|run| run.state == RunState::Prepared));
    assert_eq!(labs[0].b.counters().unwrap().rx_packets, 0, "nothing leaves before the start");
    let [replayed, streamed, emulated, impaired] =
        prepared.map(|prepared| prepared.start(StartAt::Now));
    for run in [&replayed, &streamed, &emulated, &impaired] {
        assert!(run.wait_running(Some(PATIENCE)));
    }
    // Each command changes a single run.
    until("frames of the replay", || labs[0].b.counters().unwrap().rx_packets > 0);
    replayed.command(Command::Pause).unwrap();
    let mut before = None;
    until("the replay is paused", || {
        std::thread::sleep(StdDuration::from_millis(100));
        let now = labs[0].b.counters().unwrap().rx_packets;
        before.replace(now) == Some(now)
    });
    streamed
        .command(Command::Flows {
            flows: vec![1],
            command: FlowCommand::SetSpeed(Speed::Frames(per_second(2_000))),
        })
        .unwrap();
    let double = LoadFactor::new(Decimal { digits: 2, denominator: 1 }).unwrap();
    emulated.command(Command::ScaleLoad(double)).unwrap();
    until("frames of the streams", || sent(&streamed) > 300);
    // One run loses its interface.
    labs[3].b.delete_interface().unwrap();
    let impaired = result(&impaired);
    assert_eq!(impaired.verdict.outcome, Outcome::Failed, "{:?}", impaired.verdict);
    let paused_at = sent(&replayed);
    assert!(paused_at < 1_500);
    replayed.command(Command::Resume).unwrap();
    until("the counted flow", || sent(&streamed) > 3 * FRAMES);
    let emulated = result(&emulated);
    streamed.stop();
    let (replayed, streamed) = (result(&replayed), result(&streamed));
    assert_undisturbed(&streamed, &emulated, 200);
    assert_eq!(replayed.achieved.tx.packets, 1_500, "{replayed:?}");
    assert!(replayed.times.paused_s > 0.0);
    assert_eq!(replayed.verdict.outcome, Outcome::Met, "{:?}", replayed.verdict);
    assert_eq!(labs[0].b.counters().unwrap().rx_packets, 1_500);
    assert_eq!(streamed.verdict.outcome, Outcome::Interrupted, "{:?}", streamed.verdict);
    assert!(host.runs().iter().all(|run| run.state.is_over()));
    assert!(host.holders(&left).is_empty());
}

#[test]
fn four_runs_of_one_host_share_interfaces() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let (lab, far) = (Lab::new().unwrap(), Lab::new().unwrap());
    let (a, b) = (lab.a.port(), lab.b.port());
    let host = Host::new();
    let shared = || Options { access: Access::Shared, ..Options::default() };
    // A measured run that starts first may consume all frames. Later runs are rejected then.
    let first = prepare(streams([&a, &b], Backend::Auto), &host, Access::Shared);
    let error = Run::prepare(emulation([&a, &b], 1, Backend::Auto), shared(), &host).unwrap_err();
    assert!(error.to_string().contains("start that run after this one"), "{error}");
    drop(first);
    until("the leases end", || host.holders(&a).is_empty());
    let plans = [
        emulation([&a, &b], 200, Backend::Auto),
        // Also forwards the frames that arrive at one end of the pair to another pair.
        impairment([&b, &far.a.port()]),
        replay(&capture(&scratch), &a, 1_500),
        streams([&a, &b], Backend::Auto),
    ];
    let prepared = plans.map(|plan| prepare(plan, &host, Access::Shared));
    assert_eq!(host.holders(&a).len(), 3);
    let runs = prepared.map(|prepared| prepared.start(StartAt::Now));
    let [emulated, impaired, replayed, streamed] = &runs;
    until("frames of the streams", || sent(streamed) > 300);
    // A run with exclusive access is rejected, and the error names the holder.
    let alone = Options { owner: "other".into(), ..Options::default() };
    let error = Run::prepare(emulation([&a, &b], 1, Backend::Auto), alone, &host).unwrap_err();
    assert!(error.to_string().contains("of test"), "{error}");
    // Backends that consume frames are rejected too.
    for plan in [emulation([&a, &b], 1, Backend::One(&AF_XDP)), {
        let Plan::Impair(options) = impairment([&a, &far.b.port()]) else { unreachable!() };
        Plan::Impair(ImpairOptions { backend: Backend::One(&AF_XDP), ..options })
    }] {
        let error = Run::prepare(plan, shared(), &host).unwrap_err();
        assert!(error.to_string().contains("found backend af_xdp"), "{error}");
    }
    impaired.stop();
    let impaired = result(impaired);
    assert_eq!(impaired.verdict.outcome, Outcome::Interrupted, "{:?}", impaired.verdict);
    until("the counted flow", || sent(streamed) > 2 * FRAMES);
    let emulated = result(emulated);
    streamed.stop();
    let (replayed, streamed) = (result(replayed), result(streamed));
    assert_undisturbed(&streamed, &emulated, 200);
    assert_eq!(replayed.achieved.tx.packets, 1_500);
    assert!(host.holders(&a).is_empty());
}

/// Compares the ports of the last snapshot with those of the result, by name.
fn assert_same_ports(run: &RunHandle, result: &RunResult) {
    let snapshot = run.latest().unwrap();
    let names: Vec<&str> = snapshot.ports.iter().map(|port| port.name.as_str()).collect();
    let expected: Vec<&str> = result.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, expected);
    for (port, report) in snapshot.ports.iter().zip(&result.ports) {
        assert_eq!(port.interface, report.interface);
        let (tx, rx) = (report.tx.clone().unwrap_or_default(), report.rx.clone());
        assert_eq!(port.transmitted.sent, tx.packets, "{port:?} {report:?}");
        assert_eq!(port.transmitted.sent_bytes, tx.bytes, "{port:?} {report:?}");
        // The last frames may arrive after the last snapshot.
        let arrived = rx.unwrap_or_default().packets;
        let missing = arrived - port.received.received;
        assert!(missing <= arrived / 10, "{port:?} {report:?}");
        let lost = report.impairment.as_ref().map(|it| (it.entered, it.delivered));
        assert_eq!(port.impairment.map(|it| (it.entered, it.delivered)), lost);
    }
    assert!(snapshot.worker_time > Duration::ZERO);
}

#[test]
fn last_snapshots_have_the_counters_of_the_results() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let labs: Vec<Lab> = (0..4).map(|_| Lab::new().unwrap()).collect();
    let ports = |lab: usize| [labs[lab].a.port(), labs[lab].b.port()];
    let ([from, near], [far, to]) = (ports(0), ports(1));
    let host = Host::new();
    let start = |plan| prepare(plan, &host, Access::ByBackend).start(StartAt::Now);
    // The replay crosses the impaired link.
    let impaired = start(impairment([&near, &far]));
    let mut replay = replay(&capture(&scratch), &from, 500);
    if let Plan::Replay { plan, .. } = &mut replay {
        plan.receive = Some(ReceivePlan { interface: to, verify: false });
    }
    let replayed = start(replay);
    let [left, right] = ports(2);
    let streamed = start(streams([&left, &right], Backend::Auto));
    let [clients, servers] = ports(3);
    let emulated = start(emulation([&clients, &servers], 50, Backend::Auto));
    for run in [&replayed, &emulated] {
        assert_same_ports(run, &result(run));
    }
    until("the counted flow", || sent(&streamed) > 2 * FRAMES);
    for run in [&streamed, &impaired] {
        run.stop();
        assert_same_ports(run, &result(run));
    }
    let snapshot = streamed.latest().unwrap();
    let flows: Vec<&str> = snapshot.flows.iter().map(|flow| &*flow.name).collect();
    assert_eq!(flows, ["counted", "endless"]);
    assert_eq!(snapshot.flows[0].received.unwrap().frames, FRAMES);
    let through = impaired.latest().unwrap().ports[1].impairment.unwrap();
    assert_eq!(through.delivered, 500);
}

#[test]
fn final_counters_are_there_once_a_run_says_that_it_has_sent_all() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let host = Host::new();
    let flow = |[tx, rx]: [&str; 2]| {
        format!(
            "  - {{name: to_{rx}, tx: {tx}, rx: [{rx}], size: 128, rate: 4kpps, metrics: {{enable: \
             true}}, duration: {{fixed_packets: {FRAMES}}}, packet: [ethernet: {{src: \
             '02:00:00:00:00:01', dst: '02:00:00:00:00:02'}}]}}\n"
        )
    };
    let text = format!(
        "ports: [{{name: left, location: '{}'}}, {{name: right}}]\nflows:\n{}{}",
        lab.a.port(),
        flow(["left", "right"]),
        flow(["right", "left"])
    );
    let plan = TrafficPlan::parse(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    // One worker lasts until the frames of the other machine have arrived.
    for workers in [1, 2] {
        let Plan::Streams { options, .. } = streams(["", ""], Backend::One(&AF_PACKET)) else {
            unreachable!("a plan of streams");
        };
        let elsewhere = Elsewhere {
            ports: [(1, SegmentOptions::default())].into(),
            first_stream: 0,
            drain: Duration::from_millis(1),
        };
        let options = StreamOptions { elsewhere: Some(elsewhere), workers, ..options };
        let plan = Plan::Streams { plan: Arc::new(plan.clone()), options };
        let run = prepare(plan, &host, Access::ByBackend).start(StartAt::Now);
        // No pause: the counters are read at once.
        let end = StdInstant::now() + PATIENCE;
        while !run.has_sent_all() {
            assert!(StdInstant::now() < end, "{run:?} sends for {PATIENCE:?}");
            std::hint::spin_loop();
        }
        assert_eq!(run.latest().unwrap().flows[0].sent.frames, FRAMES);
        assert_eq!(run.state(), RunState::Running, "{workers} workers");
        run.command(Command::SentElsewhere { frames: vec![0, 0] }).unwrap();
        assert_eq!(result(&run).flows[0].packets, FRAMES);
    }
}

#[test]
fn result_survives_json_round_trip() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let host = Host::new();
    let plan = emulation([&lab.a.port(), &lab.b.port()], 5, Backend::One(&AF_PACKET));
    let run = prepare(plan, &host, Access::ByBackend).start(StartAt::Now);
    let result = result(&run);
    let json = serde_json::to_value(&*result).unwrap();
    let again: RunResult = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), json);
}

#[test]
fn armed_run_starts_on_time_or_stops_before() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let lab = Lab::new().unwrap();
    let host = Host::new();
    let capture = capture(&scratch);
    let start = |at| {
        let plan = replay(&capture, &lab.a.port(), 10);
        prepare(plan, &host, Access::ByBackend).start(at)
    };
    let now = wirestorm_io::clock::now();
    let armed = start(StartAt::Monotonic(now.saturating_add(Duration::from_secs(3_600))));
    until("the run is armed", || armed.state() == RunState::Armed);
    armed.stop();
    assert!(armed.wait_over(Some(PATIENCE)));
    assert!(armed.outcome().is_some_and(|outcome| outcome.is_err()));
    assert_eq!(lab.b.counters().unwrap().rx_packets, 0);
    let at: Instant = wirestorm_io::clock::now().saturating_add(Duration::from_millis(300));
    let result = result(&start(StartAt::Monotonic(at)));
    assert!(wirestorm_io::clock::now() > at);
    assert_eq!(result.achieved.tx.packets, 10);
    // Dropping a prepared run releases its interface.
    drop(prepare(replay(&capture, &lab.a.port(), 10), &host, Access::ByBackend));
    until("the lease ends", || host.holders(&lab.a.port()).is_empty());
    assert_eq!(lab.b.counters().unwrap().rx_packets, 10);
}

/// Maximum memory growth: less than half a page for each of 10,000 cycles.
const LEAK_MAX: u64 = 16 << 20;

/// Resources of the process.
#[derive(Debug)]
struct Held {
    files: usize,
    threads: usize,
    bytes: u64,
}

impl Held {
    fn now() -> Self {
        let entries = |path: &str| std::fs::read_dir(path).unwrap().count();
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            files: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            bytes: resident * 4_096,
        }
    }
}

/// Returns the XDP programs attached to an interface, as `ip` prints them.
fn programs(end: &End) -> BTreeSet<String> {
    let shown = end.command("ip").args(["-d", "link", "show"]).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    text.split("prog/xdp").skip(1).map(|it| it.chars().take(8).collect()).collect()
}

/// Prepares, starts and stops `cycles` runs of alternating kinds and backends.
fn cycle(lab: &Lab, far: &Lab, capture: &Path, host: &Host, cycles: u32) {
    let (a, b) = (lab.a.port(), lab.b.port());
    for number in 0..cycles {
        let backend = Backend::One([&AF_PACKET, &AF_XDP, &XDP][number as usize % 3]);
        let plan = match number % 4 {
            0 => replay(capture, &a, u64::MAX),
            1 => streams([&a, &b], backend),
            2 if backend != Backend::One(&XDP) => emulation([&a, &b], 1, backend),
            _ => impairment([&b, &far.a.port()]),
        };
        let run = prepare(plan, host, Access::ByBackend).start(StartAt::Now);
        assert!(run.wait_running(Some(PATIENCE)), "{number}");
        run.stop();
        assert!(run.wait_over(Some(PATIENCE)), "{number}");
    }
}

#[test]
#[ignore = "runs in a child process of cycles_of_runs_leak_nothing"]
fn cycles_in_a_separate_process() {
    let cycles: u32 = std::env::var("WIRESTORM_CYCLES").unwrap().parse().unwrap();
    let scratch = Scratch::new().unwrap();
    let options = LabOptions { gro: [true, true], ..LabOptions::default() };
    let (lab, far) = (Lab::with(&options).unwrap(), Lab::with(&options).unwrap());
    let capture = capture(&scratch);
    let host = Host::new();
    // Warm up: the registry keeps the last runs, and the allocator keeps freed memory.
    cycle(&lab, &far, &capture, &host, 2 * Host::ENDED_RUNS_MAX as u32);
    let before = Held::now();
    cycle(&lab, &far, &capture, &host, cycles);
    // The thread of the last run may still be ending.
    until("files and threads are given back", || {
        let now = Held::now();
        now.files <= before.files && now.threads <= before.threads
    });
    let after = Held::now();
    let grown = after.bytes.saturating_sub(before.bytes);
    assert!(grown < LEAK_MAX, "{grown} bytes more: {before:?}, {after:?}");
    for end in [&lab.a, &lab.b, &far.a] {
        assert_eq!(programs(end), BTreeSet::new());
    }
    assert!(host.holders(&lab.a.port()).is_empty());
    println!("cycles without a leak: {cycles}, {grown} bytes more");
}

#[test]
fn cycles_of_runs_leak_nothing() {
    if !require_root() {
        return;
    }
    // 10,000 with `./test --long`.
    let cycles = if std::env::var_os("WIRESTORM_LONG").is_some() { 10_000 } else { 200 };
    let output = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs::cycles_in_a_separate_process", "--ignored", "--nocapture"])
        .env("WIRESTORM_CYCLES", cycles.to_string())
        // With several arenas, each keeps its freed memory.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = format!("cycles without a leak: {cycles}");
    assert!(output.status.success() && text.contains(&expected), "{text}{error}");
}
