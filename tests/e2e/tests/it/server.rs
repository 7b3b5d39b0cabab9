//! A server: commands with `--server`, clients beside a run, crashes, full disks, privileges.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{Lab, LabOptions};

/// Timeout of a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the ports `left` and `right`.
struct Server {
    process: Running,
    api: Api,
    runs: PathBuf,
}

/// The HTTP API of a server.
struct Api {
    address: String,
}

impl Server {
    fn start(lab: &Lab, directory: &Path) -> Self {
        Self::start_with(lab, directory, directory.join("runs"))
    }

    fn start_with(lab: &Lab, directory: &Path, runs: PathBuf) -> Self {
        let mut command = Command::new(wirestorm());
        command.args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]);
        command.arg(directory.join("state")).arg("--runs-dir").arg(&runs);
        command.args(["--port", &format!("left={}", lab.a.port())]);
        command.args(["--port", &format!("right={}", lab.b.port())]);
        let process = start_command(&mut command);
        let address = process.wait_for_message("serving at http://");
        Self { process, api: Api { address }, runs }
    }
}

impl Api {
    /// Runs the command with `--server`.
    fn command(&self, arguments: &[&str]) -> Outcome {
        run_command(Command::new(wirestorm()).args(arguments).args(["--server", &self.address]))
    }

    /// Sends a request to the API; returns the status and the document.
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let address = &self.address;
        write!(
            stream,
            "{method} /api/v1{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        // An answer without a length is sent in chunks.
        let document = body.find(['{', '[']).map(|start| &body[start..]).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(document).into_iter();
        (status, values.next().and_then(Result::ok).unwrap_or_default())
    }

    fn run(&self, id: &str) -> Value {
        self.call("GET", &format!("/runs/{id}"), None).1
    }

    /// Starts a run of a plan; returns its ID.
    fn start_run(&self, plan: &Value, name: &str) -> String {
        let request = json!({
            "plan": {"document": plan}, "name": name, "ports": {"left": "left", "right": "right"},
        });
        let (status, run) = self.call("POST", "/runs", Some(&request));
        assert!((200..300).contains(&status), "{status}: {run}");
        run["id"].as_str().unwrap().to_owned()
    }
}

/// Returns a plan with one measured flow; without a number of frames it does not end.
fn plan(rate: &str, frames: Option<u64>) -> Value {
    let duration = frames.map_or(json!("continuous"), |frames| json!({"fixed_packets": frames}));
    json!({
        "ports": [{"name": "left"}, {"name": "right"}],
        "flows": [{
            "name": "f", "tx": "left", "rx": "right", "rate": rate, "duration": duration,
            "size": 128, "metrics": {"enable": true}, "packet": [{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}],
        }],
    })
}

#[track_caller]
fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn commands_work_on_a_server() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = Server::start(&lab, scratch.path());
    let api = &server.api;
    let file = scratch.file("plan.json");
    std::fs::write(&file, plan("2kpps", Some(200)).to_string()).unwrap();
    let file = file.to_str().unwrap();
    let ports = ["--port", "left=left", "--port", "right=right"];
    let outcome = api.command(&[&["run", file, "--json", "-"], &ports[..]].concat()).expect(0);
    assert_eq!(outcome.number("/flows/0/packets"), 200);
    assert_eq!(outcome.number("/flows/0/measured/0/received"), 200);
    assert!(outcome.messages.contains(&format!("saved on http://{}", api.address)), "{outcome}");

    // A wrong plan names the file and the place.
    let wrong = scratch.file("wrong.json");
    std::fs::write(&wrong, plan("fast", None).to_string()).unwrap();
    let wrong = wrong.to_str().unwrap();
    let refused = api.command(&[&["run", wrong], &ports[..]].concat());
    refused.expect_error(2, &["wrong.json: flows[0].rate", "fast"]);

    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/pages.yaml");
    let ports = ["--port", "clients=left", "--port", "servers=right"];
    let emulate = ["emulate", pages, "--duration", "500ms", "--json", "-"];
    let outcome = api.command(&[&emulate[..], &ports[..]].concat()).expect(0);
    assert_eq!(outcome.text("/kind"), "emulation");

    let captured = scratch.file("captured.pcapng");
    let mut capture = Command::new(wirestorm());
    capture.args(["capture", "right", "--packets", "50", "--write"]).arg(&captured);
    let capturing = start_command(capture.args(["--server", &api.address]));
    // Lines of the packet sockets follow the first one.
    let sockets = || run_command(lab.b.command("cat").arg("/proc/net/packet")).expect(0).output;
    until("the capture begins", || (sockets().lines().count() > 1).then_some(()));
    let id = api.start_run(&plan("500pps", None), "captured");
    capturing.wait().expect(0);
    let (status, _) =
        api.call("POST", &format!("/runs/{id}/commands"), Some(&json!({"command": "stop"})));
    assert_eq!(status, 200);
    let mut tshark = Command::new("tshark");
    let frames = run_command(tshark.args(["-r"]).arg(&captured)).expect(0).output;
    assert_eq!(frames.lines().count(), 50, "{frames}");
}

#[test]
fn fifty_clients_do_not_disturb_a_run() {
    const CLIENTS: usize = 50;
    const REQUESTS: usize = 40;
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = Server::start(&lab, scratch.path());
    let id = server.api.start_run(&plan("20kpps", Some(60_000)), "watched");
    let api = &server.api;
    let client = |number: usize| {
        let paths = ["/ports", "/runs", "/session", "/runs/watched/progress", "/runs/watched"];
        for request in 0..REQUESTS {
            let path = paths[(number + request) % paths.len()];
            let (status, document) = api.call("GET", path, None);
            assert_eq!(status, 200, "{path}: {document}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || client(number));
        }
    });
    until("the run ends", || (server.api.run(&id)["state"] == "finished").then_some(()));
    let (_, result) = server.api.call("GET", &format!("/runs/{id}/result"), None);
    assert_eq!(result["verdict"]["outcome"], "met", "{}", result["verdict"]);
    assert_eq!(result["flows"][0]["measured"][0]["received"], 60_000);
}

#[test]
fn after_a_crash_nothing_is_sent_and_results_are_kept() {
    if !can_run(&[]) {
        return;
    }
    let rounds = if std::env::var_os("WIRESTORM_LONG").is_some() { 100 } else { 5 };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let mut random = 1_u64;
    let mut finished = Vec::new();
    for round in 0..rounds {
        let server = Server::start(&lab, scratch.path());
        let first = format!("first-{round}");
        let id = server.api.start_run(&plan("5kpps", Some(100)), &first);
        until("the first run ends", || (server.api.run(&id)["state"] == "finished").then_some(()));
        finished.push(first);
        server.api.start_run(&plan("5kpps", None), &format!("second-{round}"));
        // Xorshift: moments from the start of the run to well after it.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_micros(random % 300_000));
        server.process.signal(Signal::KILL);
        let runs = server.runs.clone();
        drop(server.process.wait());
        let sent = lab.a.counters().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(lab.a.counters().unwrap(), sent, "round {round}: frames after the crash");
        let mut list = Command::new(wirestorm());
        list.args(["runs", "list", "--json", "--runs-dir"]).arg(&runs);
        let list = run_command(&mut list).expect(0);
        let state = |name: &str| {
            let runs = list.result()["runs"].as_array().unwrap();
            let run = runs.iter().find(|run| run["name"] == name);
            run.map(|run| run["state"].as_str().unwrap().to_owned())
        };
        for name in &finished {
            assert_eq!(state(name).as_deref(), Some("finished"), "{name}\n{list}");
        }
        let second = state(&format!("second-{round}"));
        assert_eq!(second.as_deref(), Some("died"), "round {round}\n{list}");
    }
}

#[test]
fn results_survive_a_full_disk() {
    if !can_run(&["mount", "umount"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let disk = Disk::mount(&scratch.file("disk"));
    let server = Server::start_with(&lab, scratch.path(), disk.0.join("runs"));
    let id = server.api.start_run(&plan("5kpps", Some(2_000)), "full");
    let filler = disk.0.join("filler");
    // An error means that the disk is full.
    let _ = std::io::copy(
        &mut std::io::repeat(1).take(1 << 30),
        &mut std::fs::File::create(&filler).unwrap(),
    );
    let run = until("the run ends", || {
        let run = server.api.run(&id);
        (run["state"] == "finished").then_some(run)
    });
    assert_eq!(run["is_saved"], false, "{run}");
    assert!(run["message"].as_str().unwrap().contains("not saved"), "{run}");
    let (status, result) = server.api.call("GET", &format!("/runs/{id}/result"), None);
    assert_eq!((status, &result["flows"][0]["packets"]), (200, &json!(2_000)), "kept in memory");
    std::fs::remove_file(filler).unwrap();
    until("the result is saved", || (server.api.run(&id)["is_saved"] == true).then_some(()));
    let mut show = Command::new(wirestorm());
    show.args(["runs", "show", "full", "--json", "--runs-dir"]).arg(disk.0.join("runs"));
    run_command(&mut show).expect(0);
}

/// A small file system. Dropping it unmounts it.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path) -> Self {
        std::fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2M", "tmpfs"]).arg(path);
        run_command(&mut mount).expect(0);
        Self(path.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Processes of a failed test may still use it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn the_capabilities_of_the_unit_suffice_for_every_backend() {
    if !can_run(&["setpriv"]) {
        return;
    }
    let unit = run_command(Command::new(wirestorm()).args(["serve", "unit"])).expect(0).output;
    let line = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).unwrap();
    let names = line.split(' ').map(|it| it.strip_prefix("CAP_").unwrap().to_lowercase());
    let all: Vec<String> = names.map(|name| format!("+{name}")).collect();
    let set = |flag: &str| format!("{flag}=-all,{}", all.join(","));

    // The in-kernel sender needs GRO on the other side of a veth pair.
    let lab = Lab::with(&LabOptions { gro: [true; 2], ..LabOptions::default() }).unwrap();
    let scratch = Scratch::new().unwrap();
    let directory = scratch.path();
    // Another user must reach the program and its directories.
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = scratch.file("wirestorm");
    std::fs::copy(wirestorm(), &program).unwrap();
    let mut command = lab.a.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args([set("--inh-caps"), set("--ambient-caps"), set("--bounding-set")]).arg(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--port", lab.a.interface()]);
    command.arg("--state-dir").arg(directory.join("s")).arg("--runs-dir").arg(directory.join("r"));
    let server = start_command(&mut command);
    let address = server.wait_for_message("serving at http://");
    let file = scratch.file("plan.json");
    let mut plan = plan("2kpps", Some(100));
    plan["flows"][0]["metrics"] = json!({"enable": false});
    plan["flows"][0].as_object_mut().unwrap().remove("rx");
    plan["ports"] = json!([{"name": "left"}]);
    std::fs::write(&file, plan.to_string()).unwrap();
    for backend in ["xdp", "af_xdp", "af_packet"] {
        let mut run = lab.a.command(wirestorm());
        run.arg("run").arg(&file).args(["--server", &address, "--backend", backend]);
        run.args(["--port", &format!("left={}", lab.a.interface()), "--json", "-"]);
        let outcome = run_command(&mut run).expect(0);
        assert_eq!(outcome.number("/flows/0/packets"), 100, "{backend}");
    }
}
