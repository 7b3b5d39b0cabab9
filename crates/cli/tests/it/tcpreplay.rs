//! Tests of the tcpreplay mode against the installed tcpreplay.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::{find_tool, require_root, require_tool};
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

const WIRESTORM: &str = env!("CARGO_BIN_EXE_wirestorm");

/// Returns a folder with a small capture, and with the program under its three names in `bin`.
fn scratch() -> Scratch {
    let scratch = Scratch::new().expect("a folder");
    let traffic = Traffic::new(TrafficOptions { conversations: 20, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Microseconds, &scratch.file("traffic.pcap"))
        .expect("a capture");
    let bin = scratch.file("bin");
    std::fs::create_dir(&bin).expect("a folder");
    for name in ["wirestorm", "tcpreplay", "tcpreplay-edit"] {
        symlink(WIRESTORM, bin.join(name)).expect("a link");
    }
    scratch
}

fn run(lab: &Lab, scratch: &Scratch, program: &Path, arguments: &str) -> Output {
    lab.a
        .command(program)
        .args(arguments.split_whitespace())
        .current_dir(scratch.path())
        .output()
        .expect("the program runs")
}

/// Returns the lines of a text, with each number replaced by `N` and each decimal by `d`.
fn shape(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(line_shape).collect()
}

fn line_shape(line: &str) -> String {
    // The number of decimals in dates depends on tcpreplay's version.
    if let Some((what, _)) = line.split_once(": 20").filter(|_| line.starts_with("Test ")) {
        return what.to_owned();
    }
    // Below 1 Mb/s and below one second, the number of decimals varies.
    let is_varying = line.starts_with("Actual: ") || line.starts_with("Rated: ");
    let mut shape = String::new();
    for character in line.chars() {
        if !character.is_ascii_digit() {
            shape.push(character);
        } else if shape.ends_with("N.") || (shape.ends_with('d') && !is_varying) {
            shape.push('d');
        } else if !shape.ends_with(['N', 'd']) {
            shape.push('N');
        }
    }
    shape
}

#[test]
fn shape_masks_numbers_and_keeps_words() {
    assert_eq!(line_shape("\tFailed packets:            12"), "\tFailed packets:            N");
    assert_eq!(line_shape("Rated: 15.9 Bps, 0.122 Mbps"), "Rated: N.d Bps, N.d Mbps");
    assert_ne!(line_shape("Flows: 2 flows, 1.00 fps"), line_shape("Flows: 2 flows, 1.0 fps"));
}

#[test]
fn output_and_exit_status_match_tcpreplay() {
    if !require_root() || !require_tool("tcpreplay") {
        return;
    }
    let theirs = find_tool("tcpreplay").expect("it was found before");
    let scratch = scratch();
    let ours = scratch.file("bin/tcpreplay");
    let lab = Lab::new().expect("a lab");
    for arguments in [
        "-i veth0 -t traffic.pcap",
        "-i veth0 -t --loop 2 traffic.pcap",
        "-i veth0 --mbps=80 traffic.pcap",
        "-i veth0 -p 20000 traffic.pcap",
        "-i veth0 -x 1000 -K traffic.pcap",
        "-i veth0 -tq -l 3 --unique-ip traffic.pcap",
        "-i veth0 --tops --flow-expiry=2 traffic.pcap",
        "-i veth0 -t --no-flow-stats traffic.pcap",
        "-i veth0 -t --stats=5 traffic.pcap",
        "-i veth0 -t --stats=0 traffic.pcap",
        "-i veth0 -t --stats=0 --loop 4 traffic.pcap",
        "-i veth0 -p 20000 --stats=0 --loop 3 -K traffic.pcap",
        "-i veth0 -t -L 10 traffic.pcap traffic.pcap",
    ] {
        let expected = run(&lab, &scratch, &theirs, arguments);
        let found = run(&lab, &scratch, &ours, arguments);
        let errors = String::from_utf8_lossy(&found.stderr);
        assert_eq!(shape(&found.stdout), shape(&expected.stdout), "{arguments}: {errors}");
        assert_eq!(found.status.code(), expected.status.code(), "{arguments}: {errors}");
    }
    for arguments in [
        "-i veth0 -t -p 5 traffic.pcap",
        "-i veth0 -t",
        "-i veth0 --no-such-option traffic.pcap",
        "-t traffic.pcap",
        "-i nowhere0 -t traffic.pcap",
        "-i veth0 -t missing.pcap",
        "-V",
        "-h",
    ] {
        let expected = run(&lab, &scratch, &theirs, arguments);
        let found = run(&lab, &scratch, &ours, arguments);
        assert_eq!(found.status.code(), expected.status.code(), "{arguments}");
        assert!(found.stdout.is_empty() && expected.stdout.is_empty(), "{arguments}");
        assert!(!found.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn two_interfaces_have_separate_statistics_and_flows() {
    if !require_root() || !require_tool("tcpreplay") || !require_tool("tcpprep") {
        return;
    }
    let find = |tool| find_tool(tool).expect("it was found before");
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    let split = run(&lab, &scratch, &find("tcpprep"), "-a first -i traffic.pcap -o sides");
    assert!(split.status.success(), "{}", String::from_utf8_lossy(&split.stderr));
    let arguments = "-i veth0 -I lo -c sides -t traffic.pcap";
    let expected = run(&lab, &scratch, &find("tcpreplay"), arguments);
    let found = run(&lab, &scratch, &scratch.file("bin/tcpreplay"), arguments);
    assert_eq!(shape(&found.stdout), shape(&expected.stdout));
    let counts = |output: &Output| -> Vec<String> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter(|line| line.starts_with('\t'));
        // The definition of a flow depends on tcpreplay's version.
        lines.filter(|line| !line.to_lowercase().contains("flow")).map(str::to_owned).collect()
    };
    assert_eq!(counts(&found).len(), 2 * 5);
    assert_eq!(counts(&found), counts(&expected));
    let text = String::from_utf8_lossy(&found.stdout);
    let numbers = |name: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter_map(|number| number.trim().parse().ok()).collect()
    };
    for (sent, flow) in numbers("\tSuccessful packets:").iter().zip(numbers("\tFlow packets:")) {
        assert!(flow > 0 && flow <= *sent, "{text}");
    }
    let flows = numbers("\tFlows total:");
    let sum = format!("Flows: {} flows", flows[0] + flows[1]);
    assert!(flows.len() == 2 && flows[0] != flows[1] && text.contains(&sum), "{text}");
}

#[test]
fn failed_packets_count_at_their_interface() {
    if !require_root() || !require_tool("tcpreplay") || !require_tool("tcpprep") {
        return;
    }
    let find = |tool| find_tool(tool).expect("it was found before");
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    // The loopback's MTU rejects some frames of the side that `first` calls the client.
    let mut link = lab.a.command("ip");
    let shortened = link.args(["link", "set", "lo", "mtu", "700"]).status().expect("ip runs");
    assert!(shortened.success());
    let split = run(&lab, &scratch, &find("tcpprep"), "-a first -i traffic.pcap -o sides");
    assert!(split.status.success(), "{}", String::from_utf8_lossy(&split.stderr));
    let arguments = "-i veth0 -I lo -c sides -t traffic.pcap";
    let failed = |program: &Path| -> Vec<String> {
        let text = run(&lab, &scratch, program, arguments).stdout;
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().filter(|line| line.contains("Failed packets")).map(str::to_owned).collect()
    };
    let expected = failed(&find("tcpreplay"));
    assert!(!expected[1].ends_with(" 0"), "{expected:?}");
    assert_eq!(failed(&scratch.file("bin/tcpreplay")), expected);
}

#[test]
fn totals_follow_each_pass() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    // The in-kernel sender requires a peer with NAPI polling.
    lab.b.set_gro(true).expect("the offload can be switched");
    let ours = scratch.file("bin/tcpreplay");
    for backend in ["af_packet", "af_xdp", "xdp"] {
        let arguments = format!("-i veth0 -t --stats=0 -l 5 --backend {backend} traffic.pcap");
        let output = run(&lab, &scratch, &ours, &arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let packets: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("Actual: ")?.split(' ').next()?.parse().ok())
            .collect();
        let expected: Vec<u64> = (1..=5).map(|pass| pass * packets[0]).collect();
        assert_eq!(packets, expected, "{backend}: {text}");
    }
}

#[test]
fn saved_options_replay_alike() {
    if !require_root() {
        return;
    }
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    let ours = scratch.file("bin/tcpreplay-edit");
    let saved =
        run(&lab, &scratch, &ours, "-i veth0 -t -l 2 --ttl=-1 --save-opts=o.rc traffic.pcap");
    assert!(saved.status.success() && saved.stdout.is_empty());
    let direct = run(&lab, &scratch, &ours, "-i veth0 -t -l 2 --ttl=-1 traffic.pcap");
    let loaded = run(&lab, &scratch, &ours, "--load-opts o.rc traffic.pcap");
    assert_eq!(shape(&loaded.stdout), shape(&direct.stdout));
    let actual = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split(" sent").next().map(str::to_owned)
    };
    assert_eq!(actual(&loaded), actual(&direct));
}

#[test]
fn packet_and_byte_counts_match_tcpreplay() {
    if !require_root() || !require_tool("tcpreplay") {
        return;
    }
    let theirs = find_tool("tcpreplay").expect("it was found before");
    let scratch = scratch();
    let lab = Lab::new().expect("a lab");
    let arguments = "-i veth0 -t traffic.pcap";
    let words = |output: Output, line: &str, ends: &str| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|it| it.starts_with(line)).expect("the line").to_owned();
        line.split(ends).next().expect("a part").to_owned()
    };
    let count = |program: &Path, line: &str, ends: &str| {
        words(run(&lab, &scratch, program, arguments), line, ends)
    };
    let ours = scratch.file("bin/tcpreplay");
    for (line, ends) in [("Actual:", " sent"), ("\tSuccessful", "none"), ("\tFailed", "none")] {
        assert_eq!(count(&ours, line, ends), count(&theirs, line, ends));
    }
}
