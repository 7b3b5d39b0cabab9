//! `wirestorm bench flow-exporter` with captures and real exporters.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use wirestorm_e2e::{can_run, run_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

/// Flows of the capture.
const FLOWS: u64 = 98;

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn capture(scratch: &Scratch) -> PathBuf {
    let options = TrafficOptions {
        conversations: 50,
        vlan_share: 0.0,
        ipv6_share: 0.0,
        ..TrafficOptions::default()
    };
    let path = scratch.file("traffic.pcap");
    write_file(Traffic::new(options), Resolution::Microseconds, &path).unwrap();
    path
}

/// Returns the command; its collector is in the namespace of the device.
fn command(lab: &Lab, scratch: &Scratch, rates: &str, trial: &str) -> Command {
    let device = lab.b.port();
    let namespace = device.rsplit_once(':').expect("netns/NAME:INTERFACE").0;
    let mut command = Command::new(wirestorm());
    command.args(["bench", "flow-exporter", "--tx", &lab.a.port(), "--json", "-", "--settle=0"]);
    command.args(["--cache-size=100000", "--idle-timeout=1s", "--force-interface"]);
    command.arg(format!("--collector={namespace}:127.0.0.1:2055"));
    command.arg(format!("--flows-per-second={rates}")).arg(format!("--trial={trial}"));
    command.arg("--capture").arg(capture(scratch)).arg("--runs-dir").arg(scratch.file("runs"));
    command
}

fn start(device: &End, program: &str, arguments: &[&str]) -> Program {
    device.namespace().ip(&["link set lo up"]).unwrap();
    let mut command = device.command(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    Program(command.spawn().unwrap())
}

/// Starts softflowd with short timeouts. `filter` selects packets.
fn softflowd(device: &End, filter: &[&str]) -> Program {
    let timeouts = ["udp", "tcp", "tcp.rst", "tcp.fin", "icmp", "general", "expint"];
    let timeouts: Vec<String> = timeouts.map(|name| format!("-t{name}=1s")).into();
    let mut arguments = vec!["-i", device.interface(), "-n", "127.0.0.1:2055", "-v", "10", "-d"];
    arguments.extend(["-c", "none", "-m", "100000"]);
    arguments.extend(timeouts.iter().map(String::as_str));
    arguments.extend(filter);
    start(device, "softflowd", &arguments)
}

#[test]
fn softflowd_reports_all_flows_of_a_capture_with_new_addresses_in_each_pass() {
    if !can_run(&["softflowd"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _exporter = softflowd(&lab.b, &[]);
    let outcome = run_command(&mut command(&lab, &scratch, "200,400", "2s")).expect(0);
    let points = outcome.result()["findings"]["points"].as_array().expect("a list");
    assert_eq!(points.len(), 2, "{outcome}");
    for (point, passes) in points.iter().zip([4, 8]) {
        let export = &point["export"];
        assert_eq!(export["sent"]["flows"], passes * FLOWS, "{outcome}");
        assert_eq!(export["captured"], export["sent"], "{outcome}");
        assert_eq!(export["unexpected"]["flows"], 0, "{outcome}");
        for name in ["missing_flows", "bytes_differ", "packets_differ", "sequence_lost"] {
            assert_eq!(export[name], 0, "{name}: {outcome}");
        }
    }
    assert_eq!(outcome.result()["findings"]["limit"], Value::Null, "{outcome}");
}

#[test]
fn flows_that_softflowd_filters_out_are_listed() {
    if !can_run(&["softflowd"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _exporter = softflowd(&lab.b, &["tcp"]);
    let outcome = run_command(&mut command(&lab, &scratch, "200", "2s")).expect(0);
    let export = &outcome.result()["findings"]["points"][0]["export"];
    let missing = export["missing_flows"].as_u64().expect("a number");
    assert!(missing > 0 && missing < 4 * FLOWS, "{outcome}");
    let differences = export["differences"].as_array().expect("a list");
    assert_eq!(differences.len(), 10, "{outcome}");
    for difference in differences {
        let flow = difference["flow"].as_str().expect("a text");
        assert!(flow.ends_with(" UDP"), "{flow}: {outcome}");
        assert!(difference["packets_sent"].as_u64() > Some(0), "{outcome}");
        assert_eq!(difference["packets_reported"], Value::Null, "{outcome}");
    }
}

#[test]
fn pmacctd_reports_all_flows_of_a_capture() {
    if !can_run(&["pmacctd"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let configuration = format!(
        "daemonize: false\npcap_interface: {}\nplugins: nfprobe\nnfprobe_version: 9\n\
         nfprobe_receiver: 127.0.0.1:2055\naggregate: src_host,dst_host,src_port,dst_port,proto\n\
         nfprobe_timeouts: tcp=1:tcp.rst=1:tcp.fin=1:udp=1:icmp=1:general=1:maxlife=60:expint=1\n\
         plugin_buffer_size: 102400\nplugin_pipe_size: 10240000\n",
        lab.b.interface()
    );
    let file = scratch.file("pmacctd.conf");
    std::fs::write(&file, configuration).unwrap();
    let _exporter = start(&lab.b, "pmacctd", &["-f", &file.to_string_lossy()]);
    let outcome = run_command(&mut command(&lab, &scratch, "200", "2s")).expect(0);
    let export = &outcome.result()["findings"]["points"][0]["export"];
    assert_eq!(export["protocol"], "NetFlow v9", "{outcome}");
    assert_eq!(export["sent"]["flows"], 4 * FLOWS, "{outcome}");
    assert_eq!(export["captured"], export["sent"], "{outcome}");
}

#[test]
fn capture_with_frames_that_the_interface_cannot_send_is_an_error() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    lab.a.set_mtu(600).unwrap();
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    let mut command = command(&lab, &scratch, "200", "500ms");
    command.arg("--quiet-time=100ms");
    run_command(&mut command).expect_error(1, &["cannot send the whole capture", "its MTU"]);
}
