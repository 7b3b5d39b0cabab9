//! Live metrics: what Prometheus reads from runs of each kind, and what the dashboard shows of it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use wirestorm_e2e::{
    Outcome, Running, can_run, run_command, start_command, traffic, wirestorm, write_capture,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

const DASHBOARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/wirestorm.json");

/// Timeout of a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Replacements for the variables of the dashboard.
const VARIABLES: [(&str, &str); 3] =
    [("$__rate_interval", "3s"), ("$instance", ".*"), ("$run", ".*")];

/// Waits until a condition holds.
#[track_caller]
fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run with live metrics.
struct Watched {
    run: Running,
    /// URL of the metrics.
    url: String,
}

impl Watched {
    fn start(arguments: &[&str]) -> Self {
        let (command, rest) = arguments.split_first().unwrap();
        let mut wirestorm = Command::new(wirestorm());
        // Before the other arguments: those after a pktgen script belong to the script.
        wirestorm.args([command, "--metrics", "127.0.0.1:0", "--json", "-"]).args(rest);
        let run = start_command(wirestorm.stdin(Stdio::null()));
        let url = run.wait_for_message("metrics at ");
        Self { run, url }
    }

    /// Address and port, which Prometheus uses as label `instance`.
    fn instance(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/metrics")
    }

    fn scrape(&self) -> String {
        let outcome = get(&self.url, &[]);
        outcome.expect(0).output
    }

    /// Sum of a metric's samples that have all these labels; `None` if there is none.
    fn sum(&self, name: &str, labels: &[&str]) -> Option<f64> {
        sum(&self.scrape(), name, labels)
    }

    /// Waits until a metric reaches a value.
    #[track_caller]
    fn reaches(&self, name: &str, labels: &[&str], least: f64) {
        until(name, || self.sum(name, labels).filter(|value| *value >= least));
    }

    fn stop(self) -> Outcome {
        self.run.signal(Signal::INT);
        let url = self.url;
        let outcome = self.run.wait();
        // curl exits with status 7 if nothing listens.
        get(&url, &[]).expect(7);
        outcome
    }
}

/// Sum of a metric's samples in a text that have all these labels.
fn sum(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let values = samples.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (found, given) = series.split_once('{')?;
        let fits = found == name && labels.iter().all(|label| given.contains(label));
        fits.then(|| value.parse::<f64>().unwrap())
    });
    values.reduce(|sum, value| sum + value)
}

/// Fetches a URL with curl.
fn get(url: &str, options: &[&str]) -> Outcome {
    run_command(Command::new("curl").args(["-sS", "--max-time", "20"]).args(options).arg(url))
}

/// Checks a text with promtool.
#[track_caller]
fn assert_valid(text: &str) {
    let scratch = Scratch::new().unwrap();
    let file = scratch.file("metrics");
    std::fs::write(&file, text).unwrap();
    let input = std::fs::File::open(&file).unwrap();
    let mut promtool = Command::new("promtool");
    let outcome = run_command(promtool.args(["check", "metrics"]).stdin(input)).expect(0);
    assert_eq!(outcome.output + &outcome.messages, "", "{text}");
}

/// A real Prometheus server. Dropping it kills the process.
struct Prometheus {
    _process: Running,
    url: String,
    _data: Scratch,
}

impl Prometheus {
    /// Starts a server that scrapes these instances five times a second.
    fn start(instances: &[&str]) -> Self {
        let data = Scratch::new().unwrap();
        let configuration = data.file("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nscrape_configs: [{{\
             job_name: wirestorm, static_configs: [{{targets: {instances:?}}}]}}]\n"
        );
        std::fs::write(&configuration, text).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", configuration.display()));
        command.arg(format!("--storage.tsdb.path={}", data.file("data").display()));
        command.args(["--web.listen-address=127.0.0.1:0", "--log.format=logfmt"]);
        let process = start_command(&mut command);
        let line = process.wait_for_message("msg=\"Listening on\" address=");
        let url = format!("http://{}", line.trim());
        let ready = format!("{url}/-/ready");
        until("Prometheus is ready", || {
            let outcome = get(&ready, &["--fail"]);
            outcome.status.success().then_some(())
        });
        Self { _process: process, url, _data: data }
    }

    /// Calls the API with a parameter; returns `data`.
    #[track_caller]
    fn call(&self, path: &str, parameter: &str) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let outcome = get(&url, &["--get", "--data-urlencode", parameter]);
        let answer = outcome.result();
        assert_eq!(answer["status"], "success", "{parameter}: {outcome}");
        answer["data"].clone()
    }

    /// Evaluates a query; returns the samples with their labels.
    #[track_caller]
    fn query(&self, query: &str) -> Vec<Value> {
        let data = self.call("query", &format!("query={query}"));
        assert_eq!(data["resultType"], "vector", "{query}");
        data["result"].as_array().unwrap().clone()
    }

    /// Waits for the first sample of a query and returns its value.
    #[track_caller]
    fn value(&self, query: &str) -> f64 {
        let first = |samples: Vec<Value>| Some(samples.first()?["value"][1].as_str()?.to_owned());
        until(query, || first(self.query(query))).parse().unwrap()
    }
}

/// Replaces the variables in a query of the dashboard.
fn without_variables(query: &str) -> String {
    let replace = |query: String, (name, value): &(&str, &str)| query.replace(name, value);
    let query = VARIABLES.iter().fold(query.to_owned(), replace);
    assert!(!query.contains('$'), "{query}: unknown variable");
    query
}

/// Queries of all panels of the dashboard, with the title of the panel.
fn panel_queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{panel}");
            let title = panel["title"].as_str().unwrap().to_owned();
            queries.push((title, target["expr"].as_str().unwrap().to_owned()));
        }
    }
    queries
}

fn dashboard() -> Value {
    serde_json::from_str(&std::fs::read_to_string(DASHBOARD).unwrap()).unwrap()
}

/// Clients and servers with a lossy link in front of the servers.
const PAGES: &str = "
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16, impair: {loss: 1%, delay: 1ms}}
templates:
  - name: page
    http: {}
    client: {tx: clients, servers: 10.0.1.1, load: {rate: 50}}
    server: {tx: servers}
";

fn write(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.file(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A run of each kind but pktgen, which has no metrics of its own, between two namespaces each.
struct Runs {
    _scratch: Scratch,
    _labs: Vec<Lab>,
    replay: Watched,
    streams: Watched,
    emulation: Watched,
    impair: Watched,
}

impl Runs {
    fn start() -> Self {
        let scratch = Scratch::new().unwrap();
        let labs: Vec<Lab> = (0..4).map(|_| Lab::new().unwrap()).collect();
        let ports: Vec<[String; 2]> = labs.iter().map(|lab| [lab.a.port(), lab.b.port()]).collect();
        let [near, far] = [&ports[0][1], &ports[1][0]];
        let impair = Watched::start(&["impair", near, far, "--loss", "10%", "--delay", "1ms"]);
        // The replay crosses the impaired link.
        let capture = write_capture(&scratch, "traffic.pcap", &traffic(20, 1));
        let options = ["--pps", "500", "--loop", "0", "--duration", "3600", text(&capture)];
        let interfaces = ["replay", "-i", &ports[0][0], "--rx", &ports[1][1]];
        let replay = Watched::start(&[&interfaces[..], &options].concat());
        let interfaces = ["send", "--tx", &ports[2][0], "--rx", &ports[2][1]];
        let options = ["--udp", "--measure", "--rate", "1kpps"];
        let streams = Watched::start(&[&interfaces[..], &options].concat());
        let plan = write(&scratch, "pages.yaml", PAGES);
        let place = |name: &str, end: usize| format!("{name}={}", ports[3][end]);
        let (clients, servers) = (place("clients", 0), place("servers", 1));
        let options = ["emulate", text(&plan), "--port", &clients, "--port", &servers];
        let emulation = Watched::start(&options);
        Self { _scratch: scratch, _labs: labs, replay, streams, emulation, impair }
    }

    fn all(&self) -> [&Watched; 4] {
        [&self.replay, &self.streams, &self.emulation, &self.impair]
    }
}

#[test]
fn prometheus_evaluates_every_query_of_the_dashboard() {
    if !can_run(&["prometheus", "promtool", "curl"]) {
        return;
    }
    let runs = Runs::start();
    let prometheus = Prometheus::start(&runs.all().map(Watched::instance));
    let dashboard = dashboard();
    let queries = panel_queries(&dashboard);
    assert!(queries.len() > 30, "{queries:?}");
    for (panel, query) in &queries {
        let query = without_variables(query);
        let value = prometheus.value(&query);
        assert!(value.is_finite(), "{panel}: {query}: {value}");
    }
    let sent = r#"wirestorm_port_sent_frames_total{port="tx"}"#;
    let average = format!("{sent} / on(instance, run) wirestorm_run_elapsed_seconds");
    // Machines that are busy send late, never too early.
    until("1,000 frames a second", || Some(prometheus.value(&average)).filter(|it| *it > 900.0));
    assert!(prometheus.value(&average) <= 1_001.0);
    let cpu = prometheus.value("max(rate(wirestorm_run_worker_cpu_seconds_total[3s]))");
    assert!((0.0..1.5).contains(&cpu), "{cpu}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(definition) = variable["definition"].as_str() else { continue };
        let inner = definition.strip_prefix("label_values(").and_then(|it| it.strip_suffix(')'));
        let (series, label) = inner.unwrap().rsplit_once(", ").unwrap();
        let series = format!("match[]={}", without_variables(series));
        let values = prometheus.call(&format!("label/{label}/values"), &series);
        assert!(!values.as_array().unwrap().is_empty(), "{definition}: {values}");
    }
    for run in runs.all() {
        assert_valid(&run.scrape());
    }
    let Runs { replay, streams, emulation, impair, .. } = runs;
    for run in [replay, streams, emulation, impair] {
        let outcome = run.stop();
        assert!(matches!(outcome.status.code(), Some(3 | 130)), "{outcome}");
    }
}

#[test]
fn dashboard_shows_every_metric() {
    let dashboard = dashboard();
    let queries = panel_queries(&dashboard);
    let table = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/metrics.md"
    ));
    let table = table.unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `wirestorm_"));
    let names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(queries.iter().any(|(_, query)| query.contains(name)), "{name}");
    }
}

#[test]
fn counters_equal_those_of_the_result() {
    if !can_run(&["curl", "promtool"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let (a, b) = (Lab::new().unwrap(), Lab::new().unwrap());
    let impair = Watched::start(&["impair", &a.b.port(), &b.a.port(), "--loss", "10%"]);
    impair.reaches("wirestorm_run_state", &["state=\"running\""], 1.0);
    let flow = |name: &str, rest: &str| {
        format!(
            "  - {{name: {name}, tx: a, rx: b, packet: [ethernet: {{}}, ipv4: {{dst: 192.0.2.1}}, \
             udp: {{}}], size: 128, metrics: {{enable: true}}, {rest}}}\n"
        )
    };
    let counted = flow("counted", "rate: 2kpps, duration: {fixed_packets: 1000}");
    let endless = flow("endless", "rate: 1pps");
    let plan = format!("ports: [name: a, name: b]\nflows:\n{counted}{endless}");
    let plan = write(&scratch, "plan.yaml", &plan);
    let (from, to) = (format!("a={}", a.a.port()), format!("b={}", b.b.port()));
    let streams = Watched::start(&["run", text(&plan), "--port", &from, "--port", &to]);
    let flow = ["flow=\"counted\""];
    streams.reaches("wirestorm_flow_sent_frames_total", &flow, 1_000.0);
    let delivered = "wirestorm_impairment_delivered_frames_total";
    until("all frames have left the link", || {
        let text = impair.scrape();
        let count = |name: &str| sum(&text, &format!("wirestorm_impairment_{name}"), &[]);
        let gone = count("delivered_frames_total")? + count("lost_frames_total")?;
        (gone >= 1_000.0 && count("entered_frames_total")? == gone).then_some(())
    });
    until("the receiver has the frames of the link", || {
        let arrived = streams.sum("wirestorm_port_received_frames_total", &["port=\"b\""])?;
        (arrived == impair.sum(delivered, &[])?).then_some(())
    });
    let flows = streams.scrape();
    assert_valid(&flows);
    let outcome = streams.stop();
    let counted = |name: &str| sum(&flows, &format!("wirestorm_flow_{name}"), &flow).unwrap();
    assert_eq!(counted("sent_frames_total"), outcome.number("/flows/0/packets") as f64);
    assert_eq!(counted("sent_bytes_total"), outcome.number("/flows/0/bytes") as f64);
    let measured = |name: &str| outcome.number(&format!("/flows/0/measured/0/{name}")) as f64;
    assert_eq!(counted("received_frames_total"), measured("received"));
    assert!(measured("received") < 1_000.0, "the link loses frames: {outcome}");
    assert_eq!(counted("received_bytes_total"), measured("received_bytes"));
    assert!(counted("delay_mean_seconds") > 0.0);
    let link = impair.scrape();
    assert_valid(&link);
    let outcome = impair.stop();
    let to_b = [&*format!("interface=\"{}\"", b.a.port())];
    for (metric, counter) in [
        ("entered_frames", "entered"),
        ("lost_frames", "lost"),
        ("delivered_frames", "delivered"),
        ("delivered_bytes", "delivered_bytes"),
    ] {
        let metric = sum(&link, &format!("wirestorm_impairment_{metric}_total"), &to_b);
        let counter = outcome.number(&format!("/ports/1/impairment/{counter}"));
        assert_eq!(metric, Some(counter as f64), "{counter}: {outcome}");
    }
}

/// Settings that run a device twice, until a signal ends each run.
const SETTINGS: &str = r#"
PGDEV=/proc/net/pktgen/kpktgend_0
pgset "add_device veth0"
PGDEV=/proc/net/pktgen/veth0
pgset "count 200"
pgset "ratep 1000"
pgset "dst_mac 02:00:00:00:00:02"
PGDEV=/proc/net/pktgen/pgctrl
pgset "start"
PGDEV=/proc/net/pktgen/veth0
pgset "count 0"
PGDEV=/proc/net/pktgen/pgctrl
pgset "start"
"#;

#[test]
fn pktgen_counts_on_over_the_runs_of_a_script() {
    if !can_run(&["curl"]) {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let script = write(&scratch, "settings", SETTINGS);
    let mut command = lab.a.command(wirestorm());
    command.args(["pktgen", "--metrics", "127.0.0.1:0", "--rx", &lab.b.port(), "--json", "-"]);
    let run = start_command(command.arg(script));
    let url = run.wait_for_message("metrics at ");
    let labels = ["kind=\"pktgen\"", "port=\"veth0\""];
    until("frames of the second run", || {
        let scraped = run_command(lab.a.command("curl").args(["-sS", &url])).expect(0);
        let sent = sum(&scraped.output, "wirestorm_port_sent_frames_total", &labels)?;
        let received = "wirestorm_port_received_frames_total";
        let received = sum(&scraped.output, received, &["kind=\"pktgen\""])?;
        (sent > 300.0 && received > 300.0).then_some(())
    });
    run.signal(Signal::INT);
    let outcome = run.wait();
    assert_eq!(outcome.number("/device_runs/0/devices/0/packets"), 200, "{outcome}");
}

#[test]
fn other_pages_name_the_metrics_and_clients_choose_the_format() {
    if !can_run(&["curl"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    let run = Watched::start(&["send", "--tx", &lab.a.port(), "--udp"]);
    let root = run.url.trim_end_matches("metrics");
    let index = get(root, &["--fail"]).expect(0);
    assert!(index.output.contains("/metrics"), "{index}");
    let missing = get(&format!("{root}api"), &["-w", "%{http_code}"]).expect(0);
    assert!(missing.output.ends_with("404"), "{missing}");
    let content_type = |accept: &str| {
        let accept = format!("Accept: {accept}");
        get(&run.url, &["-H", &accept, "-w", "%{content_type}"]).expect(0).output
    };
    let open = content_type("application/openmetrics-text;version=1.0.0,*/*;q=0.1");
    assert!(open.contains("# EOF\napplication/openmetrics-text; version=1.0.0"), "{open}");
    assert!(content_type("*/*").ends_with("text/plain; version=0.0.4; charset=utf-8"));
    run.stop();
}

#[test]
fn wrong_addresses_are_rejected_before_anything_is_sent() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let scratch = Scratch::new().unwrap();
    let capture = write_capture(&scratch, "traffic.pcap", &traffic(1, 1));
    let pages = write(&scratch, "pages.yaml", PAGES);
    let settings = write(&scratch, "settings", "PGDEV=/proc/net/pktgen/pgctrl\npgset \"start\"\n");
    let flow = "{name: f, tx: a, packet: [ethernet: {}]}";
    let plan = format!("ports: [{{name: a, location: lo}}]\nflows: [{flow}]\n");
    let plan = write(&scratch, "plan.yaml", &plan);
    for arguments in [
        &["replay", "-i", "lo", text(&capture)][..],
        &["run", text(&plan)],
        &["send", "--tx", "lo"],
        &["emulate", text(&pages), "--port", "clients=lo", "--port", "servers=lo"],
        &["impair", "lo", "lo"],
        &["pktgen", text(&settings)],
    ] {
        let (command, rest) = arguments.split_first().unwrap();
        let rejects = |address: &str, words: &[&str]| {
            let mut wirestorm = Command::new(wirestorm());
            wirestorm.args([command, "--metrics", address]).args(rest);
            run_command(wirestorm.stdin(Stdio::null())).expect_error(2, words);
        };
        rejects("localhost:9400", &["--metrics", "\"localhost:9400\"", "such as 127.0.0.1:9400"]);
        rejects("127.0.0.1", &["--metrics", "expected an IP address and a port"]);
        rejects(&taken, &["--metrics", &taken, "Address already in use", "port 0"]);
        rejects("192.0.2.1:9400", &["--metrics", "192.0.2.1:9400", "an address of this machine"]);
    }
}
