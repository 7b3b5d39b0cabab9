//! TRex's own console, unmodified, in tmux: a whole session against `wirestorm serve --trex`. It
//! needs a checkout of TRex.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use wirestorm_e2e::can_run;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use crate::trex_clients::{Server, serve, tree};

/// Longest wait for a text on the screen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between two looks at the screen.
const POLL: Duration = Duration::from_millis(50);
/// Size of the terminal, in which the tables of the console have room.
const SIZE: [&str; 4] = ["-x", "170", "-y", "70"];
/// Lines of the history that belong to the screen.
const HISTORY: &str = "-500";

/// The console in a terminal of tmux. Dropping it ends the terminal.
struct Console {
    socket: PathBuf,
}

impl Console {
    fn start(tree: &Path, server: &Server, scratch: &Scratch) -> Self {
        let console = Self { socket: scratch.file("tmux") };
        let mut command = console.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d"]).args(SIZE);
        command.arg("./trex-console").args(["-s", "127.0.0.1"]);
        command.args(["-p", port(&server.requests), "--async_port", port(&server.events)]);
        command.current_dir(tree.join("scripts"));
        command.env("HOME", scratch.file(".")).env("TERM", "xterm");
        // The checkout stays as it is.
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONWARNINGS", "ignore");
        assert!(command.status().unwrap().success(), "tmux does not start");
        console
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket);
        command
    }

    fn screen(&self) -> String {
        let mut command = self.tmux();
        let found = command.args(["capture-pane", "-p", "-S", HISTORY]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).into_owned()
    }

    /// Waits for a text behind the last command; returns the text from the command on.
    #[track_caller]
    fn wait_for(&self, command: &str, expected: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            let begin = screen.rfind(command).unwrap_or(screen.len());
            let answer = &screen[begin..];
            // In the order of the texts.
            let mut rest = answer;
            let is_complete = expected.iter().all(|text| match rest.find(text) {
                Some(at) => {
                    rest = &rest[at + text.len()..];
                    true
                }
                None => false,
            });
            if is_complete {
                return answer.to_owned();
            }
            assert!(Instant::now() < deadline, "{command}: expected {expected:?}:\n{screen}");
            std::thread::sleep(POLL);
        }
    }

    fn keys(&self, arguments: &[&str]) {
        let mut command = self.tmux();
        assert!(command.arg("send-keys").args(arguments).status().unwrap().success());
    }

    /// Types a command, and waits for the texts of its answer and the next prompt.
    #[track_caller]
    fn run(&self, command: &str, expected: &[&str]) -> String {
        self.keys(&["-l", command]);
        self.keys(&["Enter"]);
        let expected = [expected, &[">"]].concat();
        self.wait_for(command, &expected)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // Fails if the console has ended, and its terminal with it.
        let _ = self.tmux().arg("kill-server").output();
    }
}

/// Returns the port of an address.
fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

#[test]
fn console_runs_a_whole_session() {
    if !can_run(&["python3", "tmux"]) {
        return;
    }
    let Some(tree) = tree() else { return };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = serve(&lab, &scratch, "stl");
    let console = Console::start(&tree, &server, &scratch);
    console.wait_for("Connecting", &["[SUCCESS]", "Server mode:      Stateless", "trex>"]);
    console.run("portattr -p 0", &["net_af_packet", "link status", "UP", "layer mode", "Ethernet"]);

    // A host behind port 1, which port 0 resolves and pings.
    console.run("service -p 0 1", &["Enabling service mode on port(s): [0, 1]", "[SUCCESS]"]);
    let host = "l3 -p 1 --src 192.0.2.2 --dst 192.0.2.1";
    console.run(host, &["Setting port 1 in L3 mode:", "[SUCCESS]", "Could not resolve", "[1]"]);
    let reply = "Recieved ARP reply from: 192.0.2.2";
    console.run("l3 -p 0 --src 192.0.2.1 --dst 192.0.2.2", &["[SUCCESS]", reply]);
    console.run("arp -p 0", &["Resolving destination on port(s) [0]:", "[SUCCESS]", reply]);
    let pong = "Reply from 192.0.2.2: bytes=64";
    console.run("ping -p 0 -d 192.0.2.2 -n 2", &[pong, pong]);

    // A capture of a pushed packet.
    let started = console.run("capture record start --rx 1 -f udp", &["Capturing ID is set to"]);
    let number = started.split("set to '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let sent = "pkt -p 0 -s Ether()/IP(src='16.0.0.1')/UDP()";
    console.run(sent, &["Pushing 1 packets on port(s) [0]:", "[SUCCESS]"]);
    console.run("capture show", &["ACTIVE", "[1/1000]"]);
    let file = scratch.file("captured.pcap");
    let stop = format!("capture record stop -i {number} -o {}", file.display());
    console.run(&stop, &["[SUCCESS]"]);
    assert!(std::fs::metadata(&file).unwrap().len() > 24 + 16 + 42);
    console.run("service -p 0 1 --off", &["Disabling service mode", "[SUCCESS]"]);

    // Traffic.
    let start = "start -f stl/imix.py -m 10kpps -p 0";
    console.run(start, &["Attaching 3 streams", "[SUCCESS]", "Starting traffic", "[SUCCESS]"]);
    console.run("stats", &["Global Statistics", "Port Statistics", "TRANSMITTING", "opackets"]);
    console.run("streams", &["Ethernet:IP:UDP", "Continuous"]);
    console.run("pause -p 0", &["Pausing traffic", "[SUCCESS]"]);
    console.run("resume -p 0", &["Resume traffic", "[SUCCESS]"]);
    console.run("update -p 0 -m 5kpps", &["Updating traffic", "[SUCCESS]"]);
    console.keys(&["-l", "tui"]);
    console.keys(&["Enter"]);
    console.wait_for("Global Statistics", &["TRANSMITTING", "Press 'ESC'", "tui>"]);
    console.keys(&["-l", "quit"]);
    console.keys(&["Enter"]);
    console.wait_for("Exiting TUI", &["trex>"]);
    console.run("stop -p 0", &["Stopping traffic", "[SUCCESS]"]);
    console.run("stats -p", &["opackets"]);
    console.run("release", &["Releasing ports [0, 1]:", "[SUCCESS]", "trex(read-only)"]);
    console.keys(&["-l", "quit"]);
    console.keys(&["Enter"]);
    let deadline = Instant::now() + PATIENCE;
    while console.tmux().arg("has-session").output().unwrap().status.success() {
        assert!(Instant::now() < deadline, "the console does not end:\n{}", console.screen());
        std::thread::sleep(POLL);
    }
}

#[test]
fn console_counts_tagged_packet_groups() {
    if !can_run(&["python3", "tmux"]) {
        return;
    }
    let Some(tree) = tree() else { return };
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let server = serve(&lab, &scratch, "stl");
    let console = Console::start(&tree, &server, &scratch);
    console.wait_for("Connecting", &["[SUCCESS]", "Server mode:      Stateless", "trex>"]);
    console.run("tpg_status", &["Tagged Packet Group is disabled"]);
    // Tags 0 to 8 are VLANs 1 to 9.
    let enable = "tpg_enable -p 1 --num-tpgids 10 --tags stl/tpg_tags_conf.py -t --max-vlan 9";
    console.run(enable, &["Enabling Tagged Packet Group", "[SUCCESS]"]);
    console.run("tpg_status", &["Tagged Packet Group is enabled", "[0, 1]", "[1]"]);
    console.run("tpg_tags", &["Dot1Q(1)", "Dot1Q(9)"]);
    let start = "start -f stl/tpg_1tag_stream.py -p 0 -t --pps 100 --burst-size 25 --vlans 10";
    console.run(start, &["Attaching 10 streams", "[SUCCESS]", "Starting traffic", "[SUCCESS]"]);
    let deadline = Instant::now() + PATIENCE;
    // Group 3 is VLAN 4: packets of 74 bytes, counted with FCS.
    while !console.run("tpg_tx_stats -p 0 --tpgid 3", &["Tpgid 3"]).contains("1950") {
        assert!(Instant::now() < deadline, "the burst does not end:\n{}", console.screen());
    }
    let counters = ["0-2", "0", "3", "25", "1950", "4-8"];
    console.run("tpg_stats -p 1 --tpgid 3 --max-tag 9", &counters);
    // Group 9 is VLAN 10, which has no number.
    let unknown = "tpg_stats -p 1 --tpgid 9 --max-tag 9 --unknown --untagged";
    console.run(unknown, &["0-8", "unknown", "25", "untagged"]);
    console.run("tpg_show_unknown_tags -p 1", &["Port 1 Unknown Tags", "Dot1Q(10)"]);
    console.run("tpg_clear_unknown_tags -p 1", &["Clearing TPG unknown tags", "[SUCCESS]"]);
    console.run("tpg_show_unknown_tags -p 1", &["No unknown tags found in port 1."]);
    let update = "tpg_update --type QinQ --value 5 6 --tag_id 3 --clear";
    console.run(update, &["Updating Tagged Packet Group Tags", "[SUCCESS]"]);
    console.run("tpg_tags --min-tag 3 --max-tag 4", &["QinQ(5, 6)"]);
    console.run("tpg_stats -p 1 --tpgid 3 --max-tag 9", &["0-8"]);
    let clear = "tpg_clear_stats -p 1 --tpgid 2 --tag-list 2";
    console.run(clear, &["Clearing TPG stats", "[SUCCESS]"]);
    console.run("tpg_clear_tx_stats -p 0 --tpgid 3", &["Clearing TPG Tx stats", "[SUCCESS]"]);
    console.run("tpg_disable", &["Disabling Tagged Packet Group", "[SUCCESS]"]);
    console.run("tpg_status", &["Tagged Packet Group is disabled"]);
    console.keys(&["-l", "quit"]);
    console.keys(&["Enter"]);
}
