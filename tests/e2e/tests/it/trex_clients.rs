//! TRex's own clients, unmodified, against `wirestorm serve --trex`. They need a checkout of TRex.

use std::path::PathBuf;
use std::process::Command;

use wirestorm_e2e::{Running, can_run, run_command, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

/// Environment variable with the path of a checkout of TRex.
const TREE: &str = "WIRESTORM_TREX_TREE";

/// Returns the checkout; prints why the test skips without one.
pub(crate) fn tree() -> Option<PathBuf> {
    let tree = std::env::var_os(TREE).map(PathBuf::from);
    if tree.is_none() {
        println!("skipped: {TREE} does not name a checkout of TRex");
    }
    tree
}

/// A server for TRex's clients, which runs until it is dropped.
pub(crate) struct Server {
    _process: Running,
    /// Addresses of the requests and of the events.
    pub(crate) requests: String,
    pub(crate) events: String,
}

pub(crate) fn serve(lab: &Lab, scratch: &Scratch, mode: &str) -> Server {
    let mut command = Command::new(wirestorm());
    command.args(["serve", "--listen", "127.0.0.1:0", "--trex", mode]);
    command.args(["--trex-port", "0", "--trex-async-port", "0"]);
    command.args(["--port", &lab.a.port(), "--port", &lab.b.port(), "--state-dir"]);
    command.arg(scratch.file("server")).arg("--runs-dir").arg(scratch.file("runs"));
    let server = start_command(&mut command);
    let line = server.wait_for_message("serving TRex's clients at 127.0.0.1:");
    let (requests, events) = line.split_once(", events at 127.0.0.1:").unwrap();
    Server { _process: server, requests: requests.to_owned(), events: events.to_owned() }
}

/// Runs a script with TRex's client; `PORTS` are the ports of the server.
fn run(tree: &std::path::Path, server: &Server, script: &str) {
    let mut command = Command::new("python3");
    let library = tree.join("scripts/automation/trex_control_plane/interactive");
    command.env("PYTHONPATH", library).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("REQUESTS", &server.requests).env("EVENTS", &server.events);
    command.args(["-W", "ignore", "-c", script]);
    run_command(&mut command).expect(0);
}

#[test]
fn stateless_client_sends_a_burst() {
    if !can_run(&["python3"]) {
        return;
    }
    let Some(tree) = tree() else { return };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = serve(&lab, &scratch, "stl");
    let script = r#"
import os
from trex.stl.api import *
client = STLClient(sync_port=int(os.environ["REQUESTS"]), async_port=int(os.environ["EVENTS"]))
client.connect()
client.reset(ports=[0, 1])
packet = STLPktBuilder(pkt=Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / ("x" * 40))
burst = STLStream(packet=packet, mode=STLTXSingleBurst(total_pkts=200, pps=2000),
                  flow_stats=STLFlowLatencyStats(pg_id=5))
client.add_streams(burst, ports=[0])
client.clear_stats()
client.start(ports=[0])
client.wait_on_traffic(ports=[0, 1])
stats = client.get_stats()
assert stats[0]["opackets"] == 200, stats[0]
assert stats[1]["ipackets"] == 200, stats[1]
groups = client.get_pgid_stats([5])
assert groups["flow_stats"][5]["rx_pkts"][1] == 200, groups
assert groups["latency"][5]["err_cntrs"]["dropped"] == 0, groups
client.disconnect()
"#;
    run(&tree, &server, script);
}

#[test]
fn stateful_client_runs_a_profile() {
    if !can_run(&["python3"]) {
        return;
    }
    let Some(tree) = tree() else { return };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = serve(&lab, &scratch, "astf");
    let script = r#"
import os
from trex.astf.api import *
client = ASTFClient(sync_port=int(os.environ["REQUESTS"]), async_port=int(os.environ["EVENTS"]))
client.connect()
client.reset()
tree = os.environ["PYTHONPATH"].split("/automation/")[0]
client.load_profile(os.path.join(tree, "astf/http_simple.py"))
client.start(mult=10, duration=2)
client.wait_on_traffic()
stats = client.get_stats()["traffic"]
assert stats["client"]["tcps_connects"] > 10, stats
assert stats["client"]["tcps_closed"] == stats["client"]["tcps_connects"], stats
assert stats["client"]["tcps_sndbyte"] == stats["server"]["tcps_rcvbyte"], stats
client.disconnect()
"#;
    run(&tree, &server, script);
}

#[test]
fn examples_of_tagged_packet_groups_pass() {
    if !can_run(&["python3"]) {
        return;
    }
    let Some(tree) = tree() else { return };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = serve(&lab, &scratch, "stl");
    // The examples connect to the default ports.
    let script = r#"
import contextlib, functools, io, os, runpy, sys
from trex.stl.api import STLClient
ports = {"sync_port": int(os.environ["REQUESTS"]), "async_port": int(os.environ["EVENTS"])}
STLClient.__init__ = functools.partialmethod(STLClient.__init__, **ports)
tagged = ["--qinq", "--vlans", "20", "--pps", "100", "--burst-size", "50", "--verbose"]
for name, arguments in (("stl_tpg_stats", tagged), ("tpg_tag_update_example", [])):
    sys.argv = [name, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as found:
        runpy.run_module(f"trex.examples.stl.{name}", run_name="__main__")
    assert "Test passed" in found.getvalue(), found.getvalue()
"#;
    run(&tree, &server, script);
}
