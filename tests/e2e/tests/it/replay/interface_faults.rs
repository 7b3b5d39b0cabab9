//! Interface faults before and during a run.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wirestorm_e2e::{
    can_run, replay, run_command, start_replay, traffic, wirestorm, write_capture,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions, RouterLab};

/// Waits until frames arrive at an end.
fn wait_for_frames(end: &End, more_than: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while end.counters().unwrap().rx_packets <= more_than {
        assert!(Instant::now() < deadline, "no frame arrives");
        std::thread::yield_now();
    }
}

/// Command that brings the sending interface up.
fn up_command(lab: &Lab) -> String {
    format!("ip -n {} link set veth0 up", lab.a.namespace().name())
}

const BACKENDS: [&str; 3] = ["af_packet", "af_xdp", "xdp"];

#[test]
fn interface_that_is_down_is_rejected_with_the_command_to_bring_it_up() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(1, 1));
    let lab = Lab::new().unwrap();
    lab.a.set_up(false).unwrap();
    let outcome = replay(["-i", &lab.a.port(), path.to_str().unwrap()]);
    outcome.expect_error(2, &["veth0", "down", &up_command(&lab)]);
}

#[test]
fn missing_carrier_is_reported() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(1, 1));
    for backend in ["auto", "af_packet"] {
        let lab = Lab::new().unwrap();
        lab.b.set_up(false).unwrap();
        let port = lab.a.port();
        let outcome = replay(["-t", "--backend", backend, "-i", &port, path.to_str().unwrap()]);
        outcome.assert_no_panic();
        assert_ne!(outcome.status.code(), Some(0), "{outcome}");
        assert!(outcome.lines("/notes").contains("veth0 had no carrier"), "{outcome}");
    }
}

/// Breaks the interface during an endless run, which must end with status 1 and a result.
fn check_fault(fault: fn(&Lab), words: fn(&Lab) -> String) {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(5, 1));
    for backend in BACKENDS {
        let lab = Lab::new().unwrap();
        let _polling = lab.b.polling_sink().unwrap();
        let path = path.to_str().unwrap();
        let pace = ["--pps", "2000", "--loop", "0"];
        let port = lab.a.port();
        let arguments = pace.into_iter().chain(["--backend", backend, "-i", &port, path]);
        let running = start_replay(arguments);
        wait_for_frames(&lab.b, 10);
        fault(&lab);
        let outcome = running.wait();
        outcome.assert_no_panic();
        let outcome = outcome.expect(1);
        assert!(outcome.number("/achieved/packets") > 10, "{backend}: {outcome}");
        let taken = outcome.number("/achieved/flows/flow_packets")
            + outcome.number("/achieved/flows/non_flow_packets");
        let sum: u64 = ["/achieved/packets", "/achieved/failed", "/achieved/unsent"]
            .iter()
            .map(|what| outcome.number(what))
            .sum();
        assert_eq!(sum, taken, "{backend}: every frame is counted\n{outcome}");
        let errors = outcome.lines("/errors");
        assert!(errors.contains(&words(&lab)), "{backend}: {outcome}");
    }
}

#[test]
fn interface_down_ends_the_run_with_a_result() {
    check_fault(
        |lab| lab.a.set_up(false).unwrap(),
        |lab| format!("{} went down; bring it up with: {}", lab.a.port(), up_command(lab)),
    );
}

#[test]
fn removed_interface_ends_the_run_with_a_result() {
    check_fault(|lab| lab.a.delete_interface().unwrap(), |lab| format!("{} is gone", lab.a.port()));
}

#[test]
fn af_xdp_run_blocks_a_second_run_on_its_interface() {
    if !can_run(&["clang"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(5, 1));
    let path = path.to_str().unwrap();
    let lab = Lab::new().unwrap();
    let port = lab.a.port();
    let pace = ["--pps", "2000", "--loop", "0", "--backend", "af_xdp"];
    let first = start_replay(pace.into_iter().chain(["-i", &port, path]));
    wait_for_frames(&lab.b, 10);
    for backend in ["af_xdp", "af_packet"] {
        let second = replay(["-t", "--backend", backend, "-i", &port, path]);
        second.expect_error(2, &["veth0", "another"]);
    }
    wait_for_frames(&lab.b, lab.b.counters().unwrap().rx_packets);
    first.signal(rustix::process::Signal::INT);
    let outcome = first.wait().expect(130);
    assert_eq!(outcome.result()["interrupted"], true);
    replay(["-t", "-i", &port, path]).expect(0);
}

#[test]
fn two_af_packet_runs_share_an_interface() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(5, 1));
    let path = path.to_str().unwrap();
    let lab = Lab::new().unwrap();
    let port = lab.a.port();
    let pace = ["--pps", "2000", "--loop", "0", "--backend", "af_packet"];
    let first = start_replay(pace.into_iter().chain(["-i", &port, path]));
    wait_for_frames(&lab.b, 10);
    let second = replay(["-t", "--backend", "af_packet", "-i", &port, path]).expect(0);
    first.signal(rustix::process::Signal::INT);
    let first = first.wait().expect(130);
    let sent = first.number("/achieved/packets") + second.number("/achieved/packets");
    assert_eq!(lab.b.counters().unwrap().rx_packets, sent);
}

#[test]
fn interface_with_the_default_route_is_rejected_without_force() {
    if !can_run(&[]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(1, 1));
    let path = path.to_str().unwrap();
    let lab = RouterLab::with(&LabOptions::default()).unwrap();
    let port = lab.a.port();
    replay(["-t", "-i", &port, path]).expect_error(2, &["default route", "--force-interface"]);
    assert_eq!(lab.router_a.counters().unwrap().rx_packets, 0);
    replay(["-t", "--force-interface", "-i", &port, path]).expect(0);
}

#[test]
fn missing_privilege_is_reported() {
    check_without_privilege(&[("af_packet", &["CAP_NET_RAW"]), ("auto", &["CAP_NET_RAW"])]);
}

#[test]
fn missing_bpf_capabilities_are_listed() {
    check_without_privilege(&[
        ("af_xdp", &["CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_BPF"]),
        ("xdp", &["CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON"]),
    ]);
}

/// Backends, and the capabilities that each error must list.
fn check_without_privilege(cases: &[(&str, &[&str])]) {
    if !can_run(&["setpriv"]) {
        return;
    }
    let lab = Lab::new().unwrap();
    // A folder that an unprivileged user can read, unlike perhaps the build folder.
    let scratch = Scratch::new().unwrap();
    let path = write_capture(&scratch, "a.pcap", &traffic(1, 1));
    let binary = scratch.file("wirestorm");
    std::fs::copy(wirestorm(), &binary).unwrap();
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(scratch.path()));
    for (backend, capabilities) in cases {
        let mut command = lab.a.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        command.args(["replay", "--json", "-", "-t", "--backend", backend, "-i", "veth0"]);
        let outcome = run_command(command.arg(&path).stdin(Stdio::null()));
        outcome.expect_error(2, &[&["veth0", "root", "setcap"], *capabilities].concat());
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
