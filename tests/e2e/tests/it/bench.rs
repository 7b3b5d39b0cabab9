//! `wirestorm bench` with real devices: a Linux bridge and router, nftables, tbf, softflowd.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

/// A device between two ends.
struct Bench {
    lab: RouterLab,
    history: Scratch,
}

impl Bench {
    /// Creates a router. The ends use addresses of their own, beside those of the kernel.
    fn router() -> Self {
        let options = LabOptions { gro: [true; 2], ipv6: true, ..LabOptions::default() };
        Self { lab: RouterLab::with(&options).unwrap(), history: Scratch::new().unwrap() }
    }

    /// Creates a bridge.
    fn bridge() -> Self {
        let bench = Self::router();
        let RouterLab { router_a, router_b, .. } = &bench.lab;
        let master = |end: &End| format!("link set {} master br0", end.interface());
        router_a
            .namespace()
            .ip(&["link add br0 type bridge", "link set br0 up", &master(router_a)])
            .unwrap();
        router_b.namespace().ip(&[&master(router_b)]).unwrap();
        bench
    }

    /// Returns the `--address` flags of both ends, for IPv4 and IPv6.
    fn addresses(&self) -> Vec<String> {
        let RouterLab { a, router_a, router_b, b } = &self.lab;
        let mut flags = Vec::new();
        for (end, router) in [(a, router_a), (b, router_b)] {
            let [x, y, z, _] = end.ipv4().octets();
            let port = end.port();
            flags.push(format!("--address={port}={x}.{y}.{z}.77/24,{}", router.ipv4()));
            let mut segments = end.ipv6().segments();
            segments[7] = 0x77;
            let address = std::net::Ipv6Addr::from(segments);
            flags.push(format!("--address={port}={address}/64,{}", router.ipv6()));
        }
        flags
    }

    fn command(&self, method: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(wirestorm());
        command.args(["bench", method, "--tx", &self.lab.a.port(), "--rx", &self.lab.b.port()]);
        command.args(["--json", "-", "--learning-wait", "0"]);
        if !arguments.iter().any(|argument| argument.starts_with("--settle")) {
            command.args(["--settle", "0"]);
        }
        // The ends have default routes through the router.
        command.arg("--force-interface");
        command.arg("--runs-dir").arg(self.history.path()).args(arguments);
        command
    }

    fn run(&self, method: &str, arguments: &[&str]) -> Outcome {
        run_command(&mut self.command(method, arguments)).expect(0)
    }

    /// Runs a method through the router.
    fn run_routed(&self, method: &str, arguments: &[&str]) -> Outcome {
        run_command(self.command(method, arguments).args(self.addresses())).expect(0)
    }

    /// Runs a program in the namespace of the device.
    fn on_device(&self, program: &str, arguments: &[&str]) {
        let output = self.lab.router_a.command(program).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {message}");
    }
}

fn rows<'a>(outcome: &'a Outcome, pointer: &str) -> &'a Vec<Value> {
    let rows = outcome.result().pointer(pointer).and_then(Value::as_array);
    rows.unwrap_or_else(|| panic!("no list at {pointer}\n{outcome}"))
}

fn number(row: &Value, pointer: &str) -> f64 {
    row.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {row}"))
}

#[test]
fn bridge_forwards_the_maximum_load_in_both_directions() {
    if !can_run(&[]) {
        return;
    }
    let bench = Bench::bridge();
    let outcome = bench.run(
        "rfc2544",
        &[
            "--bidirectional",
            "--max-load=10kpps",
            "--frame-sizes=64,1518",
            "--tests=throughput,latency,frame-loss",
            "--trial=500ms",
            "--confirm=2",
            "--latency-repetitions=2",
            "--latency-stream=400ms",
        ],
    );
    let throughput = rows(&outcome, "/findings/throughput");
    assert_eq!(throughput.len(), 2, "{outcome}");
    for row in throughput {
        assert_eq!((&row["load"], &row["upper"]), (&10_000.into(), &Value::Null), "{outcome}");
        assert_eq!(row["confirmed"], 2, "{outcome}");
    }
    for row in rows(&outcome, "/findings/latency") {
        let [typical, worst] =
            ["typical", "worst_case"].map(|name| number(row, &format!("/{name}/median_ns")));
        assert!(typical > 0.0 && worst >= typical, "{row}");
        // Two streams of 200 ms after the warm-up, in two directions.
        assert_eq!(row["delay"]["count"], 8_000, "{row}");
    }
    for row in rows(&outcome, "/findings/frame_loss") {
        assert_eq!(row["points"].as_array().map(Vec::len), Some(2), "{outcome}");
    }
}

#[test]
fn throughput_of_a_router_is_confirmed_over_ipv4_and_ipv6() {
    if !can_run(&[]) {
        return;
    }
    let bench = Bench::router();
    let outcome = bench.run_routed(
        "rfc2544",
        &[
            "--bidirectional",
            "--traffic=ipv4,ipv6",
            "--tests=throughput",
            "--frame-sizes=128",
            "--max-load=5kpps",
            "--trial=500ms",
            "--confirm=2",
        ],
    );
    let rows = rows(&outcome, "/findings/throughput");
    let traffic: Vec<_> = rows.iter().filter_map(|row| row["traffic"].as_str()).collect();
    assert_eq!(traffic, ["ipv4", "ipv6"], "{outcome}");
    for row in rows {
        assert_eq!((&row["load"], &row["upper"]), (&5_000.into(), &Value::Null), "{outcome}");
        assert_eq!((&row["confirmed"], &row["confirmations"]), (&2.into(), &2.into()), "{outcome}");
    }
}

#[test]
fn pairs_of_ports_share_a_device() {
    if !can_run(&["nft"]) {
        return;
    }
    let bench = Bench::bridge();
    // A second pair of veth ends in the namespaces of the first, on the same bridge.
    let RouterLab { a, router_a, b, .. } = &bench.lab;
    let port = router_a.port();
    let device = port.split(['/', ':']).nth(1).expect("netns/NAME:INTERFACE");
    for (end, [own, peer]) in [(a, ["two-a", "two-da"]), (b, ["two-b", "two-db"])] {
        let add = format!("link add {own} type veth peer name {peer} netns {device}");
        end.namespace().ip(&[&add, &format!("link set {own} up")]).unwrap();
        let up = format!("link set {peer} master br0 up");
        router_a.namespace().ip(&[&up]).unwrap();
    }
    bench.on_device("nft", &["add table bridge drops"]);
    bench.on_device(
        "nft",
        &["add chain bridge drops forward { type filter hook forward priority 0 ; }"],
    );
    let rule = "add rule bridge drops forward iifname two-da udp dport 7 drop";
    bench.on_device("nft", &[rule]);
    let second = |end: &End, name: &str| {
        let port = end.port();
        format!("{}:{name}", port.split(':').next().expect("netns/NAME:INTERFACE"))
    };
    let outcome = bench.run(
        "rfc2544",
        &[
            "--tx",
            &second(a, "two-a"),
            "--rx",
            &second(b, "two-b"),
            "--bidirectional",
            "--tests=frame-loss",
            "--frame-sizes=128",
            "--max-load=2kpps",
            "--trial=500ms",
            "--resolution=50",
        ],
    );
    // One of four directions drops all frames.
    let point = &rows(&outcome, "/findings/frame_loss/0/points")[0];
    assert_eq!(number(point, "/offered"), 4.0 * 1_000.0, "{outcome}");
    assert_eq!(number(point, "/received"), 3.0 * 1_000.0, "{outcome}");
}

#[test]
fn router_recovers_from_an_overload_and_from_an_interruption() {
    if !can_run(&["tc", "nft"]) {
        return;
    }
    let bench = Bench::router();
    let out = bench.lab.router_b.interface().to_owned();
    let shape = format!("qdisc add dev {out} root tbf rate 8mbit burst 10000 limit 20000");
    bench.on_device("tc", &shape.split(' ').collect::<Vec<_>>());
    // The device drops all frames for 300 ms.
    let port = bench.lab.router_a.port();
    let device = port.split(['/', ':']).nth(1).expect("netns/NAME:INTERFACE");
    let scratch = Scratch::new().unwrap();
    let reset = scratch.file("reset.sh");
    let commands = "nft add table ip outage
nft 'add chain ip outage forward { type filter hook forward priority 0; }'
nft add rule ip outage forward drop
sleep 0.3
nft delete table ip outage
";
    std::fs::write(&reset, commands).unwrap();
    let reset = format!("--reset-command=ip netns exec {device} sh -e {}", reset.display());
    let outcome = bench.run_routed(
        "rfc2544",
        &[
            "--tests=recovery,reset",
            "--frame-sizes=512",
            "--max-load=10kpps",
            "--trial=500ms",
            "--resolution=20",
            "--recovery-overload=1s",
            "--recovery-repetitions=2",
            "--reset-before=500ms",
            "--reset-after=2s",
            &reset,
        ],
    );
    let recovery = &rows(&outcome, "/findings/recovery")[0];
    assert_eq!(recovery["is_overloaded"], true, "{outcome}");
    // Half of the load is below the rate of the shaper, whose queue lasts for 20 ms.
    for time in recovery["recovery_s"].as_array().unwrap() {
        assert!(time.as_f64().is_some_and(|time| time < 0.1), "{outcome}");
    }
    let reset = &rows(&outcome, "/findings/reset")[0];
    // A busy machine takes its time to start the commands.
    for name in ["/by_loss_s", "/by_timestamps_s"] {
        assert!((0.3..1.0).contains(&number(reset, name)), "{name}: {outcome}");
    }
    let by_loss = number(reset, "/lost") / number(reset, "/load");
    assert!((number(reset, "/by_loss_s") - by_loss).abs() < 0.001, "{outcome}");
}

#[test]
fn router_with_nat_forwards_ipv4_and_ipv6() {
    if !can_run(&["nft"]) {
        return;
    }
    let bench = Bench::router();
    bench.on_device("nft", &["add table ip nat"]);
    bench.on_device("nft", &["add chain ip nat out { type nat hook postrouting priority 100 ; }"]);
    let out = bench.lab.router_b.interface().to_owned();
    bench.on_device("nft", &[&format!("add rule ip nat out oifname {out} masquerade")]);
    let outcome = bench.run_routed(
        "mlrsearch",
        &["--goal=final=500ms", "--max-load=10kpps", "--frame-sizes=64,512", "--traffic=ipv4,ipv6"],
    );
    let searches = rows(&outcome, "/findings/searches");
    let sizes: Vec<_> =
        searches.iter().map(|row| (row["traffic"].as_str(), row["frame_size"].as_u64())).collect();
    let expected = [("ipv4", 64), ("ipv4", 512), ("ipv6", 84), ("ipv6", 512)];
    assert_eq!(sizes, expected.map(|(name, size)| (Some(name), Some(size))), "{outcome}");
    for row in searches {
        let result = &row["results"][0];
        // The device forwards Max Load: an irregular result.
        assert_eq!((&result["lower"], &result["is_regular"]), (&10_000.into(), &false.into()));
    }
}

#[test]
fn device_that_drops_each_thousandth_frame_loses_exactly_that() {
    if !can_run(&["nft"]) {
        return;
    }
    let bench = Bench::router();
    bench.on_device("nft", &["add table ip drops"]);
    bench.on_device(
        "nft",
        &["add chain ip drops forward { type filter hook forward priority 0 ; }"],
    );
    let rule = "add rule ip drops forward udp dport 7 numgen inc mod 1000 == 0 drop";
    bench.on_device("nft", &[rule]);
    let outcome = bench.run_routed(
        "rfc2544",
        &[
            "--tests=frame-loss",
            "--frame-sizes=128",
            "--max-load=10kpps",
            "--trial=1s",
            // One trial of the search finds the loss; it ends soon at this resolution.
            "--resolution=50",
        ],
    );
    let points = rows(&outcome, "/findings/frame_loss/0/points");
    assert_eq!(points.len(), 10, "{outcome}");
    for point in points {
        let lost = number(point, "/offered") - number(point, "/received");
        let expected = number(point, "/offered") / 1_000.0;
        assert!((lost - expected).abs() <= 1.0, "lost {lost}, expected {expected}: {outcome}");
    }
}

#[test]
fn rate_of_a_shaped_link_is_found_within_one_percent() {
    if !can_run(&["tc"]) {
        return;
    }
    let bench = Bench::router();
    let out = bench.lab.router_b.interface().to_owned();
    // A queue for 30 ms absorbs the pauses of a busy machine.
    let shape = format!("qdisc add dev {out} root tbf rate 20mbit burst 15140 limit 75700");
    bench.on_device("tc", &shape.split(' ').collect::<Vec<_>>());
    let outcome = bench.run_routed(
        "mlrsearch",
        &["--goal=final=4s,width=0.4%", "--max-load=3kpps", "--frame-sizes=1518"],
    );
    // tbf counts the frame without FCS.
    let expected = 20e6 / 8.0 / 1_514.0;
    let result = &rows(&outcome, "/findings/searches")[0]["results"][0];
    assert_eq!(result["is_regular"], true, "{outcome}");
    let found = number(result, "/lower");
    assert!((found / expected - 1.0).abs() < 0.01, "found {found}, expected {expected}: {outcome}");
}

#[test]
fn back_to_back_burst_is_the_known_queue() {
    if !can_run(&["tc"]) {
        return;
    }
    let bench = Bench::router();
    let out = bench.lab.router_b.interface().to_owned();
    // One frame passes by the bucket, 20 wait.
    let shape = format!("qdisc add dev {out} root tbf rate 4mbit burst 1600 limit 30280");
    bench.on_device("tc", &shape.split(' ').collect::<Vec<_>>());
    let outcome = bench.run_routed(
        "rfc2544",
        &[
            "--tests=back-to-back",
            "--frame-sizes=1518",
            "--max-load=20kpps",
            "--trial=500ms",
            "--resolution=20",
            "--burst-repetitions=3",
            "--burst-max=5ms",
            "--settle=200ms",
        ],
    );
    let row = &rows(&outcome, "/findings/back_to_back")[0];
    assert_eq!(row["bursts"].as_array().map(Vec::len), Some(3), "{outcome}");
    let average = number(row, "/average");
    assert!((20.0..=23.0).contains(&average), "{average}: {outcome}");
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn records_of_softflowd_agree_with_the_flows_that_were_sent() {
    if !can_run(&["softflowd"]) {
        return;
    }
    for (version, protocol) in [("5", "NetFlow v5"), ("9", "NetFlow v9"), ("10", "IPFIX")] {
        let bench = Bench::router();
        let device = &bench.lab.router_a;
        device.namespace().ip(&["link set lo up"]).unwrap();
        let mut exporter = device.command("softflowd");
        exporter.args(["-i", device.interface(), "-n", "127.0.0.1:2055", "-v", version, "-d"]);
        exporter.args(["-c", "none", "-t", "udp=1s", "-t", "expint=1s", "-m", "100000"]);
        exporter.stdout(Stdio::null()).stderr(Stdio::null());
        let _exporter = Program(exporter.spawn().unwrap());
        let namespace = device.port();
        let namespace = namespace.rsplit_once(':').expect("netns/NAME:INTERFACE").0;
        let mut command = Command::new(wirestorm());
        command.args(["bench", "flow-exporter", "--tx", &bench.lab.a.port(), "--json", "-"]);
        command.arg("--runs-dir").arg(bench.history.path());
        command.args([
            "--flows-per-second=1k,2k",
            "--trial=2s",
            "--idle-timeout=1s",
            "--cache-size=100000",
            "--dmac=02:00:00:00:00:07",
            "--force-interface",
            &format!("--collector={namespace}:127.0.0.1:2055"),
        ]);
        let outcome = run_command(&mut command).expect(0);
        let points = rows(&outcome, "/findings/points");
        assert_eq!(points.len(), 2, "{outcome}");
        for (point, flows) in points.iter().zip([2_000, 4_000]) {
            let export = &point["export"];
            let amount = serde_json::json!({"flows": flows, "packets": flows, "bytes": flows * 46});
            assert_eq!(export["sent"], amount, "{outcome}");
            assert_eq!(export["captured"], amount, "{outcome}");
            assert_eq!(export["unexpected"]["flows"], 0, "{outcome}");
            assert_eq!(export["protocol"], protocol, "{outcome}");
            for name in ["bytes_differ", "packets_differ", "sequence_lost", "malformed"] {
                assert_eq!(export[name], 0, "{name}: {outcome}");
            }
            assert_eq!(export["checked_records"], flows, "{outcome}");
            assert_eq!(export["accurate_records"], flows, "{outcome}");
            let sources = &export["fields"][0];
            assert_eq!(sources["name"], "source address", "{outcome}");
            assert_eq!(sources["values_found"], flows, "{outcome}");
            assert_eq!(sources["least"], "10.0.0.1", "{outcome}");
        }
    }
}

#[test]
fn method_that_is_killed_continues_after_its_last_trial() {
    if !can_run(&[]) {
        return;
    }
    let bench = Bench::bridge();
    let sizes = "--frame-sizes=64,128,256,512,1024";
    let arguments = ["--goal=final=300ms", "--max-load=1kpps", sizes, "--name=killed"];
    let running = start_command(&mut bench.command("mlrsearch", &arguments));
    running.wait_for_message("    2  search");
    running.signal(Signal::KILL);
    running.wait();
    let resume = |history: &Path| {
        let mut command = Command::new(wirestorm());
        command.args(["bench", "resume", "killed", "--runs-dir"]).arg(history);
        run_command(&mut command)
    };
    let outcome = resume(bench.history.path()).expect(0);
    assert!(!outcome.messages.contains("    2  search"), "{outcome}");
    assert!(outcome.messages.contains("    5  search"), "{outcome}");
    let result: Value = serde_json::from_str(&outcome.output).expect("the result");
    assert_eq!((&result["trials"], &result["verdict"]["outcome"]), (&5.into(), &"met".into()));
    resume(bench.history.path()).expect_error(2, &["is finished"]);
}
