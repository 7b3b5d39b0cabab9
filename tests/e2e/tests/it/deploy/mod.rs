//! What `deploy/` has for orchestrators: their commands, with what they give, run in namespaces.

mod chart;
mod compose;
mod unit;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wirestorm_e2e::{Outcome, Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::require_nats_server;
use wirestorm_testkit::net::{End, LabOptions, RouterLab};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-nodes.yaml");

/// A container or a service, as an orchestrator starts it.
#[derive(Clone, Debug, Default)]
struct Container {
    arguments: Vec<String>,
    /// Capabilities without `CAP_`.
    capabilities: Vec<String>,
    /// Files and folders: their path in the container, and outside.
    mounts: Vec<(String, PathBuf)>,
}

impl Container {
    /// Arguments with the paths outside.
    fn arguments_outside(&self) -> Vec<String> {
        let outside = |argument: &String| {
            let mounts = self.mounts.iter();
            mounts.fold(argument.clone(), |argument, (inside, outside)| {
                argument.replace(inside, &outside.display().to_string())
            })
        };
        self.arguments.iter().map(outside).collect()
    }

    /// Checks that the program knows the command and all of its flags.
    #[track_caller]
    fn assert_is_known(&self) {
        run_command(Command::new(wirestorm()).args(&self.arguments).arg("--help")).expect(0);
    }
}

/// Machines of two agents, `a` and `b`. Their interfaces `test0` are joined; between them and the bus
/// is another network.
struct Site {
    lab: RouterLab,
    scratch: Scratch,
}

impl Site {
    /// Returns `None` if it cannot be had on this machine.
    fn new() -> Option<Self> {
        if !can_run(&["setpriv"]) {
            return None;
        }
        let lab = RouterLab::with(&LabOptions::default()).unwrap();
        let (a, b) = (lab.a.namespace(), lab.b.namespace());
        let pair = format!("link add test0 type veth peer name test0 netns {}", b.name());
        a.ip(&[&pair, "link set test0 up"]).unwrap();
        b.ip(&["link set test0 up"]).unwrap();
        Some(Self { lab, scratch: Scratch::new().unwrap() })
    }

    /// Folder of the cluster, which [`Self::init`] writes.
    fn cluster(&self) -> PathBuf {
        self.scratch.file("cluster")
    }

    fn credentials(&self, name: &str) -> PathBuf {
        self.cluster().join("credentials").join(name)
    }

    /// Address of the bus for both agents.
    fn bus(&self) -> String {
        self.lab.router_a.ipv4().to_string()
    }

    /// Runs `cluster init` for a bus of this name.
    fn init(&self, container: &Container, name: &str) {
        let arguments = container.arguments_outside();
        let is_name = |argument: &String| argument == name;
        assert!(arguments.iter().any(is_name), "{arguments:?} do not name {name}");
        let bus = self.bus();
        let arguments = arguments.iter().map(|it| if is_name(it) { &bus } else { it });
        run_command(Command::new(wirestorm()).args(arguments)).expect(0);
    }

    /// Starts a program of a container.
    fn start(&self, end: &End, program: &Path, container: &Container) -> Running {
        let capabilities = container.capabilities.iter().map(|it| format!(",+{it}"));
        let bounding = format!("-all{}", capabilities.collect::<String>().to_lowercase());
        let mut command = end.command("setpriv");
        command.args(["--bounding-set", &bounding, "--inh-caps=-all", "--no-new-privs", "--"]);
        command.arg(program).args(container.arguments_outside());
        let state = format!("state-{}", container.arguments.join("-").replace('/', "-"));
        command.env("XDG_STATE_HOME", self.scratch.file(&state));
        start_command(command.env_remove("WIRESTORM_RUNS"))
    }

    /// Runs the test of a director on agents. All start without the bus, and wait for it.
    fn run(&self, agents: [&Container; 2], director: &Container, bus: &Container) {
        let Some(server) = require_nats_server() else { return };
        let mut director = director.clone();
        director.arguments.extend(["--json".to_owned(), "-".to_owned()]);
        let director = self.start(&self.lab.router_a, wirestorm(), &director);
        let [tx, rx] = agents;
        let tx = self.start(&self.lab.a, wirestorm(), tx);
        tx.wait_for_message("waiting for the bus");
        director.wait_for_message("waiting for the bus");
        let _bus = self.start(&self.lab.router_b, &server, bus);
        tx.wait_for_message("waits for orders");
        director.wait_for_message("agents ...");
        let _rx = self.start(&self.lab.b, wirestorm(), rx);
        assert_complete(&director.wait().expect(0));
    }
}

/// Checks that the test of [`EXAMPLE`] was measured: 2,000 frames a second for 2 s.
#[track_caller]
fn assert_complete(outcome: &Outcome) {
    const FLOW: &str = "/iterations/0/runs/0/result/flows/0";
    assert_eq!(outcome.number(&format!("{FLOW}/packets")), 4_000, "{outcome}");
    assert_eq!(outcome.number(&format!("{FLOW}/lost")), 0, "{outcome}");
    let delays = outcome.number(&format!("{FLOW}/measured/0/one_way/delay/count"));
    assert_eq!(delays, 4_000, "{outcome}");
}

/// Reads YAML without tags.
#[track_caller]
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the strings of a list; none without the list.
#[track_caller]
fn strings(list: &Value) -> Vec<String> {
    let text = |it: &Value| it.as_str().unwrap_or_else(|| panic!("no text: {it}")).to_owned();
    list.as_array().into_iter().flatten().map(text).collect()
}

/// Capabilities of the unit of the agent, without `CAP_`.
fn capabilities_of_unit() -> Vec<String> {
    let unit = unit::Unit::read();
    let mut capabilities = unit.words("AmbientCapabilities");
    assert_eq!(capabilities, unit.words("CapabilityBoundingSet"));
    capabilities.iter_mut().for_each(|it| *it = it.trim_start_matches("CAP_").to_owned());
    capabilities.sort();
    capabilities
}

#[test]
fn the_image_has_what_the_build_reads() {
    let ignored = std::fs::read_to_string(Path::new(ROOT).join("deploy/Dockerfile.dockerignore"));
    let ignored = ignored.unwrap();
    let is_kept = |path: &str| {
        let top = path.split('/').next().unwrap_or_default();
        ignored.lines().any(|line| line.strip_prefix('!') == Some(top))
    };
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let root = metadata["workspace_root"].as_str().unwrap();
    let mut needed = vec!["Cargo.toml".to_owned(), "Cargo.lock".to_owned(), ".cargo".to_owned()];
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        needed.push(manifest.strip_prefix(root).unwrap().display().to_string());
    }
    assert!(needed.len() > 10, "{needed:?}");
    for path in needed {
        assert!(is_kept(&path), "deploy/Dockerfile.dockerignore leaves out {path}");
    }
}
