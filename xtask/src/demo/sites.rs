//! Tests between two machines, which are network namespaces with clocks that differ:
//!
//! ```text
//! same-host      left ── right                        one clock, no bus
//! two-hosts      left ── Linux router ── right        clocks compared on the management network
//! distant-sites  left ── 25 ms and bursts ── right    clocks compared on the path of the test
//!                  └────── management ──────┘         agents, bus and director
//! ```
//!
//! All namespaces have the clock of this machine, and the agents know how far theirs are from it. So the
//! result has the true delays beside the measured ones.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::require_nats_server;
use wirestorm_testkit::net::{End, Lab, LabOptions, Namespace, RouterLab, run_foreground};

use crate::setup::Purpose;
use crate::{Fallible, setup, workspace};

/// Address of the bus in the management network.
const BUS: &str = "10.255.0.1";
const BUS_PORT: u16 = 4222;
/// Last byte of the address that frames of the test go to. No kernel has it, so none answers.
const NOBODY: u8 = 77;
/// Clocks of the agents.
const CLOCKS: [&str; 2] = ["offset=1us", "offset=2s,drift=50ppm,wander=20ppb,seed=7"];

/// Where the two machines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    SameHost,
    TwoHosts,
    DistantSites,
}

/// What both machines send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Frames per second in each direction.
    pub(super) pps: u32,
    /// Frame size in bytes, with FCS.
    pub(super) size: u32,
    pub(super) seconds: u32,
}

impl Site {
    pub(super) fn parse(name: &str) -> Fallible<Self> {
        match name {
            "same-host" => Ok(Self::SameHost),
            "two-hosts" => Ok(Self::TwoHosts),
            "distant-sites" => Ok(Self::DistantSites),
            _ => {
                Err(format!("demo: found {name:?}, expected same-host, two-hosts or distant-sites")
                    .into())
            }
        }
    }
}

/// Runs a test, and a ping on the same path. `json`: file for the result.
pub(super) fn run(site: Site, traffic: Traffic, json: Option<&Path>) -> Fallible<ExitCode> {
    setup::ensure_root("the demo")?;
    setup::ensure(&[Purpose::Build, Purpose::Lab])?;
    let wirestorm = workspace::build_wirestorm()?;
    let scratch = Scratch::new()?;
    let network = Network::new(site)?;
    let file = scratch.file(&format!("{site:?}.yaml"));
    std::fs::write(&file, network.test(traffic))?;
    let relay = network.start_relay(&wirestorm)?;
    let mut arguments = vec![file.as_os_str()];
    if let Some(json) = json {
        arguments.extend([OsStr::new("--json"), json.as_os_str()]);
    }
    let is_passed = match site {
        Site::SameHost => show(Command::new(&wirestorm).arg("test").args(&arguments))?,
        Site::TwoHosts | Site::DistantSites => {
            let Some(program) = require_nats_server() else { return Ok(ExitCode::FAILURE) };
            Management::new(&wirestorm, &network)?.test(&program, &scratch, &arguments)?
        }
    };
    let milliseconds = network.ping()?;
    println!("\nping on the same path: half of the round trip {:.3} ms", milliseconds / 2.0);
    drop((relay, network, scratch));
    Ok(if is_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs `wirestorm test` in the foreground; returns whether it succeeded.
fn show(command: &mut Command) -> Fallible<bool> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let from = words.iter().position(|word| word == "test").unwrap_or(0);
    println!("$ wirestorm {}\n", words.get(from..).unwrap_or_default().join(" "));
    Ok(run_foreground(command)?.success())
}

/// A program that ends with this value.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Fallible<Self> {
        Ok(Self(command.stdout(Stdio::null()).stdin(Stdio::null()).spawn()?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The test network: two machines, and what is between them.
enum Network {
    Direct(Lab),
    Routed(RouterLab),
    Relayed(Lab, Lab),
}

impl Network {
    fn new(site: Site) -> Fallible<Self> {
        let options = LabOptions { addresses: true, ..LabOptions::default() };
        Ok(match site {
            Site::SameHost => Self::Direct(Lab::with(&options)?),
            Site::TwoHosts => {
                let lab = RouterLab::with(&options)?;
                for (router, host) in [(&lab.router_a, &lab.a), (&lab.router_b, &lab.b)] {
                    neighbour(router, nobody(host), host.mac())?;
                }
                Self::Routed(lab)
            }
            Site::DistantSites => {
                let lab = || Lab::with(&LabOptions::default());
                let (one, other) = (lab()?, lab()?);
                let interface = other.a.interface();
                // All labs have the same MAC addresses.
                other
                    .a
                    .namespace()
                    .ip(&[&format!("link set {interface} address {}", mac(FAR_MAC))])?;
                let network = Self::Relayed(one, other);
                let [(a, near, near_mac), (b, far, far_mac)] = network.hosts();
                for (host, own, peer, peer_mac) in
                    [(a, near, far, far_mac), (b, far, near, near_mac)]
                {
                    let interface = host.interface();
                    host.namespace().ip(&[&format!("addr add {own}/24 dev {interface}")])?;
                    neighbour(host, peer, peer_mac)?;
                }
                network
            }
        })
    }

    /// Returns both machines with their addresses.
    fn hosts(&self) -> [(&End, std::net::Ipv4Addr, [u8; 6]); 2] {
        match self {
            Self::Direct(Lab { a, b }) | Self::Routed(RouterLab { a, b, .. }) => {
                [a, b].map(|end| (end, end.ipv4(), end.mac()))
            }
            Self::Relayed(one, other) => [
                (&one.a, [198, 51, 100, 1].into(), one.a.mac()),
                (&other.a, [198, 51, 100, 2].into(), FAR_MAC),
            ],
        }
    }

    /// Starts what delays frames between distant sites: 27 ms and 23 ms, with bursts.
    fn start_relay(&self, wirestorm: &Path) -> Fallible<Option<Process>> {
        let Self::Relayed(one, other) = self else { return Ok(None) };
        let mut command = Command::new(wirestorm);
        command.arg("impair").args([one.b.port(), other.b.port()]).arg("--quiet");
        command.args(["--delay", "27ms", "--jitter", "1ms/normal", "--b-to-a", "delay=23ms"]);
        Process::start(&mut command).map(Some)
    }

    /// Returns the test: a flow in each direction.
    fn test(&self, traffic: Traffic) -> String {
        let Traffic { pps, size, seconds } = traffic;
        let [(a, a_ip, a_mac), (b, b_ip, b_mac)] = self.hosts();
        let next_hops = match self {
            Self::Routed(lab) => [lab.router_a.mac(), lab.router_b.mac()],
            Self::Direct(_) | Self::Relayed(..) => [b_mac, a_mac],
        };
        let flow =
            |name: &str, ports: [&str; 2], macs: [[u8; 6]; 2], from, to: std::net::Ipv4Addr| {
                format!(
                    "        - name: {name}
          tx: {}
          rx: {}
          size: {size}
          rate: {pps}pps
          metrics: {{enable: true}}
          packet:
            - ethernet: {{src: '{}', dst: '{}'}}
            - ipv4: {{src: {from}, dst: {to}}}
            - udp: {{src_port: 1024, dst_port: 7}}
",
                    ports[0],
                    ports[1],
                    mac(macs[0]),
                    mac(macs[1])
                )
            };
        let forward = flow(
            "forward",
            ["left", "right"],
            [a_mac, next_hops[0]],
            a_ip,
            with_last(b_ip, NOBODY),
        );
        let backward = flow(
            "backward",
            ["right", "left"],
            [b_mac, next_hops[1]],
            b_ip,
            with_last(a_ip, NOBODY),
        );
        format!(
            "nodes: [tx, rx]
ports:
  - {{name: left, node: tx, interface: '{}'}}
  - {{name: right, node: rx, interface: '{}'}}
runs:
  - name: flows
    options: {{force_interface: true}}
    streams:
      flows:
{forward}{backward}duration: {seconds}s
",
            self.interface(a),
            self.interface(b)
        )
    }

    /// Returns the name of a machine's interface for the test: agents are in its namespace.
    fn interface(&self, end: &End) -> String {
        match self {
            Self::Direct(_) => end.port(),
            Self::Routed(_) | Self::Relayed(..) => end.interface().to_owned(),
        }
    }

    /// Returns the median round trip of 20 pings in ms.
    fn ping(&self) -> Fallible<f64> {
        let [(a, ..), (_, to, _)] = self.hosts();
        let mut ping = a.command("ping");
        let output = ping.args(["-n", "-c", "20", "-i", "0.05"]).arg(to.to_string()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
        let mut times: Vec<f64> = text.lines().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().ok_or_else(|| format!("ping {to}: no answer").into())
    }
}

/// MAC address of the second of two distant sites.
const FAR_MAC: [u8; 6] = [2, 0x57, 0x53, 0, 0, 11];

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn with_last(address: std::net::Ipv4Addr, last: u8) -> std::net::Ipv4Addr {
    let [a, b, c, _] = address.octets();
    [a, b, c, last].into()
}

/// Returns the address in the network of a machine that no kernel has.
fn nobody(host: &End) -> std::net::Ipv4Addr {
    with_last(host.ipv4(), NOBODY)
}

fn neighbour(end: &End, address: std::net::Ipv4Addr, of: [u8; 6]) -> Fallible<()> {
    let (interface, of) = (end.interface(), mac(of));
    let neighbour = format!("neigh replace {address} lladdr {of} dev {interface} nud permanent");
    Ok(end.namespace().ip(&[&neighbour])?)
}

/// The management network: the bus and the director, with a link to each machine.
struct Management<'n> {
    wirestorm: PathBuf,
    network: &'n Network,
    namespace: Namespace,
}

impl<'n> Management<'n> {
    fn new(wirestorm: &Path, network: &'n Network) -> Fallible<Self> {
        let hosts = network.hosts();
        let name = format!("{}-m", hosts[0].0.namespace().name());
        let namespace = Namespace::create(name, false)?;
        namespace.ip(&[&format!("addr add {BUS}/32 dev lo")])?;
        namespace.sysctl("net/ipv4/ip_forward", "1")?;
        for (number, (host, ..)) in hosts.iter().enumerate() {
            let (number, to) = (number + 1, host.namespace().name());
            namespace.ip(&[
                &format!("link add m{number} type veth peer name mgmt netns {to}"),
                &format!("addr add 10.255.{number}.1/24 dev m{number}"),
                &format!("link set m{number} up"),
            ])?;
            host.namespace().ip(&[
                &format!("addr add 10.255.{number}.2/24 dev mgmt"),
                "link set mgmt up",
                &format!("route add 10.255.0.0/16 via 10.255.{number}.1"),
            ])?;
        }
        Ok(Self { wirestorm: wirestorm.to_owned(), network, namespace })
    }

    /// Builds a command in a namespace that ends with this program.
    fn command(&self, namespace: &Namespace, program: &Path, scratch: &Scratch) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace.name(), "setpriv", "--pdeathsig", "KILL"]);
        command.arg(program).env("XDG_STATE_HOME", scratch.file("state"));
        command
    }

    /// Starts the bus and the agents, and runs a test on them; returns whether it succeeded.
    fn test(&self, server: &Path, scratch: &Scratch, arguments: &[&OsStr]) -> Fallible<bool> {
        let directory = scratch.file("cluster");
        let credentials = |name: &str| directory.join("credentials").join(format!("{name}.json"));
        let listen = format!("{BUS}:{BUS_PORT}");
        let mut init = self.command(&self.namespace, &self.wirestorm, scratch);
        init.args(["cluster", "init", "--listen", &listen, "--agents", "tx,rx", "--dir"]);
        let output = init.arg(&directory).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let mut bus = self.command(&self.namespace, server, scratch);
        bus.arg("-c").arg(directory.join("nats-server.conf")).stderr(Stdio::null());
        let mut processes = vec![Process::start(&mut bus)?];
        for ((name, clock), (host, address, _)) in
            ["tx", "rx"].iter().zip(CLOCKS).zip(self.network.hosts())
        {
            let mut agent = self.command(host.namespace(), &self.wirestorm, scratch);
            agent.args(["agent", "--wait", "20s", "--virtual-clock", clock, "--bus-credentials"]);
            agent.arg(credentials(name)).arg("--runs-dir").arg(scratch.file(name));
            if let Network::Relayed(..) = self.network {
                agent.args(["--reflector-address", &format!("{address}:862")]);
            }
            processes.push(Process::start(agent.stderr(Stdio::null()))?);
        }
        let mut test = self.command(&self.namespace, &self.wirestorm, scratch);
        test.args(["test", "--wait", "20s", "--bus-credentials"]).arg(credentials("director"));
        show(test.args(arguments))
    }
}
