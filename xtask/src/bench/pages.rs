//! Benchmarks of web pages: emulated clients against wrk, both with nginx as the server, and
//! emulated servers against nginx, both with wrk as the client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::Fallible;

/// Size of a page in bytes, without nginx's header.
const PAGE: usize = 32_000;
/// Number of concurrent connections.
const AT_ONCE: u32 = 64;
/// Number of requests that CPU times refer to.
const REQUESTS: f64 = 100_000.0;

/// JSON pointer of the CPU time of a port's ingress program, in seconds.
const INGRESS: &str = "/ports/0/ingress_cpu_s";

/// Coalescing time: with fewer wake-ups, a client at full load needs less CPU time.
const COALESCE: &str = "400us";

/// Addresses of wrk, of nginx and emulated servers, and of emulated clients. The clients need their
/// own address: nginx keeps wrk's connections in TIME-WAIT for a minute.
const WRK: &str = "198.51.100.1";
const SERVER: &str = "198.51.100.2";
const CLIENT: &str = "198.51.100.3";

/// Each side has its own CPU, to avoid context switches. Received frames of Linux's stack are
/// steered to that CPU, as a card's interrupts would be; on a veth they would otherwise be
/// processed on the sender's CPU. Our port has an ingress program instead, which runs on the
/// sender's CPU. The kernel measures its time, which is added to ours.
const CLIENT_CPU: usize = 0;
const SERVER_CPU: usize = 1;

/// Settings that give wrk enough ports: a run makes more connections than the default range has.
/// All ports may be used, and reused after a second.
const WRK_PORTS: [(&str, &str); 2] =
    [("net/ipv4/ip_local_port_range", "'1024 65535'"), ("net/ipv4/tcp_tw_reuse", "1")];

/// One connection for each request, with a response of 32,000 bytes.
pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    // The kernel enables offloads on a veth by default; all contenders use them.
    let lab = Lab::with(&LabOptions { offloads: true, ..LabOptions::default() })?;
    let scratch = Scratch::new()?;
    for (key, value) in WRK_PORTS {
        lab.a.namespace().sysctl(key, value)?;
    }
    let _measured = Measured::new()?;
    let bench = Bench { settings, lab: &lab, scratch: &scratch };
    let mut figures = [const { Figures::new() }; 4];
    let [clients, wrk, servers, nginx] = &mut figures;
    for _ in 0..settings.rounds {
        let both = bench.wrk_and_nginx()?;
        wrk.push(both.client);
        nginx.push(both.server);
        clients.push(bench.clients()?);
        servers.push(bench.servers()?);
    }
    let [clients, wrk, servers, nginx] = figures;
    let row = |name, wirestorm, peer, against| Row {
        name,
        unit: "CPU s/100k",
        wirestorm,
        peer: Some(peer),
        target: Target::AtMostPeer(0.2),
        notes: vec![format!(
            "CPU seconds for 100,000 requests, with our ingress program on the peer's CPU, \
             --rx-coalesce {COALESCE}, peer: {against}, over veth"
        )],
    };
    Ok(vec![
        row("page clients", clients, wrk, "wrk, both with nginx"),
        row("page servers", servers, nginx, "nginx, both with wrk"),
    ])
}

struct Bench<'a> {
    settings: &'a Settings,
    lab: &'a Lab,
    scratch: &'a Scratch,
}

/// CPU seconds for 100,000 requests, of each end.
struct Costs {
    client: f64,
    server: f64,
}

impl Bench<'_> {
    /// Measures wrk and nginx.
    fn wrk_and_nginx(&self) -> Fallible<Costs> {
        let _client = Linux::new(self.lab, Side::Client)?;
        let _server = Linux::new(self.lab, Side::Server)?;
        let _nginx = self.nginx()?;
        self.wrk()
    }

    /// Measures emulated clients with nginx as the server.
    fn clients(&self) -> Fallible<f64> {
        let _server = Linux::new(self.lab, Side::Server)?;
        let _nginx = self.nginx()?;
        let plan = self.plan("clients", &format!(
            "ports: [{{name: p, addresses: {CLIENT}/24}}]\n\
             templates:\n  - name: page\n    client:\n      tx: p\n      servers: {SERVER}\n      \
             load: {{concurrent: {AT_ONCE}}}\n      program:\n        \
             - send: \"GET / HTTP/1.1\\r\\nHost: {SERVER}\\r\\nConnection: close\\r\\n\\r\\n\"\n        \
             - wait_for_close\n    tcp: {{time_wait: 1ms}}\n"
        ))?;
        let before = busy_seconds(CLIENT_CPU)?;
        let printed =
            output(self.emulate(CLIENT_CPU, &plan, &self.lab.a.port()).args(["--json", "-"]))?;
        let cpu = busy_seconds(CLIENT_CPU)? - before;
        let result: Value = serde_json::from_str(&printed)?;
        let cpu = cpu + number(&result, INGRESS)?;
        let answered = number(&result, "/ports/0/connections/tcp/rcvbyte")? / PAGE as f64;
        let closed = number(&result, "/ports/0/connections/flows/closed")?;
        if answered < closed {
            return Err(format!("{closed} connections, but only {answered} pages of nginx").into());
        }
        Ok(cpu / closed * REQUESTS)
    }

    /// Measures emulated servers with wrk as the client. They close connections like nginx.
    fn servers(&self) -> Fallible<f64> {
        let _client = Linux::new(self.lab, Side::Client)?;
        let header = format!(
            "HTTP/1.1 200 OK\\r\\nContent-Length: {PAGE}\\r\\nConnection: close\\r\\n\\r\\n"
        );
        // Each escape sequence in the plan is one byte.
        let size = PAGE + header.len() - header.matches("\\").count();
        let plan = self.plan(
            "servers",
            &format!(
                "ports: [{{name: p, addresses: {SERVER}/24}}]\n\
             templates:\n  - name: page\n    server:\n      tx: p\n      port: 80\n      \
             program:\n        - receive: 1\n        - blocking: false\n        - send: {{text: \"{header}\", size: {size}}}\n"
            ),
        )?;
        let mut command = self.emulate(SERVER_CPU, &plan, &self.lab.b.port());
        let file = self.scratch.file("servers.json");
        // The server runs until it is interrupted: wrk determines the duration.
        let server = Running::start(command.args(["--drain-timeout", "0s", "--json"]).arg(&file))?;
        let costs = self.wrk()?;
        server.interrupt()?;
        let result: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let closed = number(&result, "/ports/0/connections/flows/closed")?;
        Ok(costs.server + number(&result, INGRESS)? / closed * REQUESTS)
    }

    fn plan(&self, name: &str, text: &str) -> Fallible<PathBuf> {
        let path = self.scratch.file(&format!("{name}.yaml"));
        fs::write(&path, text)?;
        Ok(path)
    }

    fn emulate(&self, cpu: usize, plan: &Path, port: &str) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string()]).arg(&self.settings.wirestorm);
        command.arg("emulate").arg(plan).args(["--quiet", "--rx-coalesce", COALESCE]);
        command.args(["--port", &format!("p={port}")]);
        command.args(["--duration", &format!("{}s", self.settings.seconds)]);
        command
    }

    /// Starts nginx with the page, as a single process.
    fn nginx(&self) -> Fallible<Running> {
        fs::write(self.scratch.file("index.html"), vec![b'w'; PAGE])?;
        let folder = self.scratch.path().display();
        let file = self.scratch.file("nginx.conf");
        let configuration = format!(
            "daemon off; master_process off; user root; pid {folder}/pid; error_log {folder}/errors;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; sendfile on; open_file_cache max=8; \
             client_body_temp_path {folder}; proxy_temp_path {folder}; \
             fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
             server {{ listen 80 backlog=4096; root {folder}; }} }}"
        );
        fs::write(&file, configuration)?;
        let mut command = self.lab.b.command("taskset");
        let cpu = SERVER_CPU.to_string();
        Running::start(command.args(["-c", &cpu, "nginx", "-c"]).arg(&file))
    }

    /// Runs wrk against the current server. Returns the CPU time of both.
    fn wrk(&self) -> Fallible<Costs> {
        self.wait_for_server()?;
        let before = [busy_seconds(CLIENT_CPU)?, busy_seconds(SERVER_CPU)?];
        let mut command = self.lab.a.command("taskset");
        command.args(["-c", &CLIENT_CPU.to_string(), "wrk"]);
        command.args(["--threads", "1", "--connections", &AT_ONCE.to_string()]);
        command.args(["--duration", &format!("{}s", self.settings.seconds)]);
        command.args(["--header", "Connection: close", &format!("http://{SERVER}/")]);
        let printed = output(&mut command)?;
        let after = [busy_seconds(CLIENT_CPU)?, busy_seconds(SERVER_CPU)?];
        if let Some(errors) = printed.lines().find(|line| line.contains("Socket errors")) {
            return Err(format!("wrk had {}", errors.trim()).into());
        }
        let line = printed.lines().find(|line| line.contains(" requests in "));
        let requests = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        match requests {
            Some(requests) if requests > 0.0 => Ok(Costs {
                client: (after[0] - before[0]) / requests * REQUESTS,
                server: (after[1] - before[1]) / requests * REQUESTS,
            }),
            _ => Err(format!("wrk counted no requests: {printed}").into()),
        }
    }

    fn wait_for_server(&self) -> Fallible<()> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let since = Instant::now();
        loop {
            let mut curl = self.lab.a.command("curl");
            curl.args(["--silent", "--max-time", "1", "--output", "/dev/null"]);
            if curl.arg(format!("http://{SERVER}/")).status()?.success() {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("no server at http://{SERVER}/").into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

/// Linux's network stack at one end, until the value is dropped: an address, and a CPU that
/// processes received frames.
struct Linux<'a> {
    lab: &'a Lab,
    side: Side,
}

impl<'a> Linux<'a> {
    fn new(lab: &'a Lab, side: Side) -> Fallible<Self> {
        let linux = Self { lab, side };
        let cpu = match side {
            Side::Client => CLIENT_CPU,
            Side::Server => SERVER_CPU,
        };
        linux.change("replace", 1 << cpu)?;
        Ok(linux)
    }

    fn change(&self, verb: &str, cpus: u32) -> Fallible<()> {
        let (end, address) = match self.side {
            Side::Client => (&self.lab.a, WRK),
            Side::Server => (&self.lab.b, SERVER),
        };
        let interface = end.interface();
        let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        output(end.command("sh").args(["-c", &format!("echo {cpus:x} > {file}")]))?;
        Ok(end.namespace().ip(&[&format!("address {verb} {address}/24 dev {interface}")])?)
    }
}

impl Drop for Linux<'_> {
    fn drop(&mut self) {
        // Ignore errors: the namespace is removed at the end.
        let _ = self.change("delete", 0);
    }
}

/// Enables the kernel's run time statistics of BPF programs, until the value is dropped.
struct Measured {
    before: String,
}

impl Measured {
    const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

    fn new() -> Fallible<Self> {
        let before = fs::read_to_string(Self::SWITCH)?;
        fs::write(Self::SWITCH, "1")?;
        Ok(Self { before })
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        // Statistics cost 20 ns for each run of every BPF program, so switch them off.
        let _ = fs::write(Self::SWITCH, &self.before);
    }
}

/// A server process that is killed when the value is dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Fallible<Self> {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// Interrupts it like Ctrl-C, and waits until it has written its result.
    fn interrupt(mut self) -> Fallible<()> {
        output(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ignore errors: the process may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Busy time of a CPU since boot in seconds: programs, and the kernel's interrupt work in any
/// context.
fn busy_seconds(cpu: usize) -> Fallible<f64> {
    /// `sysconf(_SC_CLK_TCK)` on all current Linux systems.
    const TICKS_PER_SECOND: f64 = 100.0;
    const PATH: &str = "/proc/stat";
    let text = fs::read_to_string(PATH).map_err(|error| format!("{PATH}: {error}"))?;
    let name = format!("cpu{cpu} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    let fields: Vec<f64> =
        line.unwrap_or_default().split(' ').flat_map(|field| field.parse()).collect();
    // `proc_stat(5)`: user, nice, system, idle, iowait, irq, softirq.
    let &[user, nice, system, _, _, interrupts, deferred, ..] = fields.as_slice() else {
        return Err(format!("{PATH}: no times of CPU {cpu}").into());
    };
    Ok((user + nice + system + interrupts + deferred) / TICKS_PER_SECOND)
}
