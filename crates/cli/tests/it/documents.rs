//! Runs the commands and plans of the documentation.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::{require_root, skip};
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

const WIRESTORM: &str = env!("CARGO_BIN_EXE_wirestorm");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// One stream in the JSON format of TRex's clients.
const STREAMS: &str = r#"[{"enabled": true, "self_start": true, "isg": 0.0, "flags": 3, "action_count": 0,
    "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1000}},
    "packet": {"binary": "AgAAAAACAgAAAAABCABFAAAcAAEAAEARZs4KAAABCgAAAgQABwAACAAA", "meta": ""},
    "vm": {"instructions": []}, "next_stream_id": -1, "flow_stats": {"enabled": false}}]"#;

/// Scripts at the root of the repository, which `./test` runs as separate steps.
const SCRIPTS: [&str; 3] = ["./demo", "./test", "./bench"];

/// Returns README.md and all pages below docs/.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![Path::new(ROOT).join("README.md")];
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the fenced blocks of a document in a language.
fn blocks(document: &Path, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(document).expect("a document");
    let fence = format!("```{language}\n");
    let (mut blocks, mut rest) = (Vec::new(), text.as_str());
    while let Some((_, behind)) = rest.split_once(&fence) {
        let (block, behind) = behind.split_once("\n```").expect("a block's end");
        blocks.push(block.to_owned());
        rest = behind;
    }
    blocks
}

/// Returns the commands in the fenced `sh` blocks of a document, one a line, without comments.
///
/// A `\` at the end of a line continues the command.
fn commands(document: &Path) -> Vec<String> {
    let mut commands = Vec::new();
    for block in blocks(document, "sh") {
        for line in block.replace("\\\n", "").lines() {
            let command = line.split(" # ").next().unwrap_or_default().trim();
            commands.extend((!command.is_empty()).then(|| command.to_owned()));
        }
    }
    commands
}

/// Keys of a template that generate the programs of both sides.
const TRAFFIC: [&str; 8] = ["conversation", "http", "smtp", "ftp", "rtsp", "sip", "rtp", "dns"];

/// Completes a part of a plan, as shown in a document, to a plan.
fn complete_plan(part: Value) -> Value {
    let mut plan = json!({});
    let is_stateless = part.get("flows").is_some() || part.get("packet").is_some();
    plan["ports"] = match is_stateless {
        true => json!([{"name": "left"}, {"name": "right"}]),
        false => json!([
            {"name": "clients", "addresses": "10.0.0.1/16"},
            {"name": "servers", "addresses": "10.0.1.1/16"},
        ]),
    };
    let mut template = json!({"name": "part"});
    for (name, value) in part.as_object().expect("fields") {
        match name.as_str() {
            "packet" => plan["flows"] = json!([{"name": "part", "tx": "left", "packet": value}]),
            "program" => template["client"] = json!({"program": value}),
            "ports" => put_ports(&mut plan["ports"], value),
            "flows" | "templates" | "latency" => plan[name] = value.clone(),
            _ => template[name] = value.clone(),
        }
    }
    if !is_stateless && plan.get("templates").is_none() {
        let has_programs = template["client"].get("program").is_some();
        if !has_programs && !TRAFFIC.iter().any(|key| template.get(key).is_some()) {
            template["http"] = json!({});
        }
        let client = json!({"tx": "clients", "servers": "10.0.1.1", "load": {"rate": 100}});
        for (name, value) in client.as_object().expect("fields") {
            if template["client"].get(name).is_none() {
                template["client"][name] = value.clone();
            }
        }
        template["server"]["tx"] = json!("servers");
        if has_programs {
            template["server"]["port"] = json!(80);
        }
        if has_programs && template["server"].get("program").is_none() {
            template["server"]["program"] = json!([{"receive": 1}]);
        }
        plan["templates"] = json!([template]);
    }
    plan
}

/// Replaces the ports that a document names, and keeps the others.
fn put_ports(ports: &mut Value, documented: &Value) {
    let documented = documented.as_array().expect("ports");
    let is_documented = |port: &Value| documented.iter().any(|it| it["name"] == port["name"]);
    let others =
        ports.as_array().into_iter().flatten().filter(|port| !is_documented(port)).cloned();
    *ports = documented.iter().cloned().chain(others).collect();
}

/// Writes the captures that plans in the documents use.
fn write_captures(scratch: &Scratch) {
    let udp = json!({"ports": [{"name": "left"}], "flows": [{"name": "dns", "tx": "left", "packet":
        [{"ethernet": {}}, {"ipv4": {}}, {"udp": {"dst_port": 53}}], "size": 80, "rate": "1kpps"}]});
    std::fs::write(scratch.file("dns.json"), udp.to_string()).expect("a file");
    let mut command = Command::new(WIRESTORM);
    command.args(["sim", "dns.json", "--output", "dns.pcap", "--packets", "10"]);
    let output = command.current_dir(scratch.path()).output().expect("a run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    symlink(scratch.file("examples/web-and-mail.pcap"), scratch.file("web-and-mail.pcap"))
        .expect("a link");
}

#[test]
fn all_plans_in_the_documents_simulate() {
    let scratch = scratch();
    write_captures(&scratch);
    let mut count = 0;
    for document in documents() {
        for block in blocks(&document, "yaml") {
            let part = serde_saphyr::from_str(&block).expect("YAML");
            std::fs::write(scratch.file("plan.json"), complete_plan(part).to_string())
                .expect("a file");
            let mut command = Command::new(WIRESTORM);
            command.args(["sim", "plan.json", "--duration", "50ms", "--output", "out.pcap"]);
            let output = command.current_dir(scratch.path()).output().expect("a run");
            let stderr = String::from_utf8_lossy(&output.stderr);
            // Status 3: a flow failed, because the document does not show its other side.
            let is_fine = matches!(output.status.code(), Some(0 | 3));
            assert!(is_fine, "{}: {block}\n{stderr}", document.display());
            count += 1;
        }
    }
    assert!(count >= 13, "only {count} plans were found in the documents");
}

/// Returns a folder with the files that the documents' commands use.
fn scratch() -> Scratch {
    let scratch = Scratch::new().expect("a folder");
    let traffic = |seed| {
        let options = TrafficOptions { conversations: 20, seed, ..TrafficOptions::default() };
        Traffic::new(options)
    };
    let capture = scratch.file("traffic.pcap");
    write_file(traffic(1), Resolution::Microseconds, &capture).expect("a capture");
    symlink(Path::new(ROOT).join("examples"), scratch.file("examples")).expect("a link");
    std::fs::write(scratch.file("streams.json"), STREAMS).expect("a file");
    let profile = Path::new(ROOT).join("python/trex/tests/profiles/udp_sizes.py");
    symlink(profile, scratch.file("profile.py")).expect("a link");
    let bin = scratch.file("bin");
    std::fs::create_dir(&bin).expect("a folder");
    for name in ["wirestorm", "tcpreplay", "tcpreplay-edit"] {
        symlink(WIRESTORM, bin.join(name)).expect("a link");
    }
    scratch
}

/// Returns whether a command runs a TRex profile, which requires Python with wirestorm-trex.
fn needs_python(command: &str) -> bool {
    command.contains(".py ")
}

#[test]
fn all_commands_in_the_documents_run() {
    if require_root() {
        let count = run_commands(|command| !needs_python(command));
        assert!(count >= 25, "only {count} commands were found in the documents");
    }
}

#[test]
fn all_commands_with_a_trex_profile_run() {
    if std::env::var_os("WIRESTORM_PYTHON").is_none() {
        skip("WIRESTORM_PYTHON names no Python with the package wirestorm-trex");
    } else if require_root() {
        let count = run_commands(needs_python);
        assert!(count >= 3, "only {count} commands were found in the documents");
    }
}

/// Runs the selected commands of the documents. Returns their number.
fn run_commands(is_wanted: impl Fn(&str) -> bool) -> usize {
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    // `impair` bridges two cables; on a single cable, frames would loop.
    let cable = Lab::new().expect("a lab");
    // The address of the device under test in the documents.
    let address = format!("addr add 198.18.0.1/24 dev {}", lab.b.interface());
    lab.b.namespace().ip(&[&address]).expect("an address");
    let path =
        format!("{}:{}", scratch.file("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for document in documents() {
        // Servers of a document run until its end.
        let mut servers = Vec::new();
        for command in commands(&document) {
            let is_script = SCRIPTS.iter().any(|script| command.split(' ').next() == Some(script));
            if is_script || !is_wanted(&command) {
                continue;
            }
            count += 1;
            // Replaces names with a namespace first, because they contain the shorter names.
            let here = if command.contains("netns/") {
                let here = command.replace("netns/a:veth0", &lab.a.port());
                here.replace("netns/b:veth1", &lab.b.port())
            } else {
                let is_link = command.starts_with("wirestorm impair ");
                let eth2 = if is_link { cable.a.port() } else { lab.b.port() };
                command.replace("eth1", lab.a.interface()).replace("eth2", &eth2)
            };
            let mut shell = lab.a.command("sh");
            shell.env("PATH", &path).current_dir(scratch.path());
            shell.env("WIRESTORM_RUNS", scratch.file("runs"));
            shell.env("XDG_STATE_HOME", scratch.file("state"));
            if command.starts_with("wirestorm serve ") && !command.contains(" serve user ") {
                // The next server of the document may use the same address.
                servers.clear();
                servers.push(Server::start(shell.args(["-c", &format!("exec {here}")])));
                continue;
            }
            let output = shell.args(["-c", &here]).output().expect("a shell");
            // Status 3 is fine: a busy machine can miss the target rate.
            let is_fine = matches!(output.status.code(), Some(0 | 3));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(is_fine, "{}: {command}: {stderr}", document.display());
        }
    }
    count
}

/// A server that a document starts; dropping it ends the server.
struct Server(Child);

impl Server {
    /// Starts a server and waits until it listens.
    fn start(command: &mut Command) -> Self {
        let mut server = command.stderr(Stdio::piped()).spawn().expect("a server");
        let lines = BufReader::new(server.stderr.take().expect("a pipe")).lines();
        let mut lines = lines.map_while(Result::ok).inspect(|line| println!("{line}"));
        assert!(lines.any(|line| line.contains("serving at")), "{command:?}");
        Self(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has no runs that matter any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
