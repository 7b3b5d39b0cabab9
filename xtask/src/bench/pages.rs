//! What serving and fetching pages costs: emulated clients beside wrk with nginx at the other end,
//! and emulated servers beside nginx with wrk at the other end.

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

/// Bytes of a page, nginx's own header not counted.
const PAGE: usize = 32_000;
/// Connections at once.
const AT_ONCE: u32 = 64;
/// Requests by which CPU time is divided.
const REQUESTS: f64 = 100_000.0;

/// What a port's program at the ingress took, in seconds.
const INGRESS: &str = "/ports/0/ingress_cpu_s";

/// Who fetches as many pages as a server can give has time: the fewer wake-ups, the less it costs.
const COALESCE: &str = "400us";

/// Where wrk is, and nginx and emulated servers. Emulated clients have an address of their own: at
/// nginx the connections of wrk's are in TIME-WAIT for a minute, and their ports with them.
const WRK: &str = "198.51.100.1";
const SERVER: &str = "198.51.100.2";
const CLIENT: &str = "198.51.100.3";

/// Each side has a CPU to itself: two on one would take turns, and pay for it. What arrives at Linux's
/// is handed to it too, as the interrupts of a card would be: on a virtual cable the sender does
/// otherwise what is the receiver's to do. Our port has a program there instead, which does its work
/// where the sender is; the kernel measures it, and its time is ours.
const CLIENT_CPU: usize = 0;
const SERVER_CPU: usize = 1;

/// wrk makes more connections in a run than there are ports by default, and would look for free
/// ones for the rest of it: all may be used, and again after a second.
const WRK_PORTS: [(&str, &str); 2] =
    [("net/ipv4/ip_local_port_range", "'1024 65535'"), ("net/ipv4/tcp_tw_reuse", "1")];

/// A connection for each request, answered with a page of 32,000 bytes.
pub(super) fn run(settings: &Settings) -> Fallible<Vec<Row>> {
    // As the kernel makes a cable: with long frames, for all of them.
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
            "CPU seconds for 100,000 requests, all that its CPU did and ours at the other's, \
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

/// CPU seconds for 100,000 requests at each end.
struct Costs {
    client: f64,
    server: f64,
}

impl Bench<'_> {
    /// Linux at both ends.
    fn wrk_and_nginx(&self) -> Fallible<Costs> {
        let _client = Linux::new(self.lab, Side::Client)?;
        let _server = Linux::new(self.lab, Side::Server)?;
        let _nginx = self.nginx()?;
        self.wrk()
    }

    /// Emulated clients fetch from nginx; what they cost.
    fn clients(&self) -> Fallible<f64> {
        let _server = Linux::new(self.lab, Side::Server)?;
        let _nginx = self.nginx()?;
        let plan = self.plan("clients", &format!(
            "ports: [{{name: p, addresses: {CLIENT}/24}}]\n\
             templates:\n  - name: page\n    client:\n      tx: p\n      servers: {SERVER}\n      \
             load: {{hold: {AT_ONCE}}}\n      program:\n        \
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
            return Err(
                format!("{closed} connections, but only {answered} pages of nginx's").into()
            );
        }
        Ok(cpu / closed * REQUESTS)
    }

    /// wrk fetches from emulated servers, which close as nginx does; what those cost.
    fn servers(&self) -> Fallible<f64> {
        let _client = Linux::new(self.lab, Side::Client)?;
        let header = format!(
            "HTTP/1.1 200 OK\\r\\nContent-Length: {PAGE}\\r\\nConnection: close\\r\\n\\r\\n"
        );
        // What is written as an escape is one byte.
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
        // Until it is told to stop: wrk decides how long it takes.
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

    /// Starts nginx with the page; one process serves.
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

    /// Lets wrk fetch the page, from whoever serves it. Returns what both cost.
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
                return Err(format!("nobody serves http://{SERVER}/").into());
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

/// Linux's own network stack at one end, for as long as this lives: it has an address, and a CPU that
/// receives.
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
        // The namespace goes at the end in any case.
        let _ = self.change("delete", 0);
    }
}

/// The kernel measures what programs in it take, for as long as this lives.
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
        // It costs others 20 ns a run where it stays on.
        let _ = fs::write(Self::SWITCH, &self.before);
    }
}

/// A server that is ended with this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Fallible<Self> {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// Ends it as Ctrl-C does, and waits until it has written what it has to say.
    fn interrupt(mut self) -> Fallible<()> {
        output(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long a CPU has done anything since the machine began: what programs have it do, and what the
/// kernel does there when frames arrive, whoever runs at that time.
fn busy_seconds(cpu: usize) -> Fallible<f64> {
    /// `sysconf(_SC_CLK_TCK)` on every Linux of today.
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
