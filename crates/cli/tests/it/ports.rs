//! Tests of `wirestorm ports` and `wirestorm doctor` on veth pairs.

use std::process::{Command, Output};

use serde_json::Value;
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::require::require_root;

fn wirestorm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wirestorm"))
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Creates a lab with GRO switched while the interfaces are up. The kernel reports it only then.
fn lab(gro: [bool; 2]) -> Lab {
    let lab = Lab::with(&LabOptions::default()).expect("a lab");
    for (end, on) in [(&lab.a, gro[0]), (&lab.b, gro[1])] {
        end.set_gro(on).expect("the offload can be switched");
    }
    lab
}

fn finding<'a>(document: &'a Value, subject: &str) -> &'a Value {
    let backends = document["interfaces"][0]["backends"].as_array().expect("a list");
    backends.iter().find(|it| it["subject"] == subject).expect("a finding for each backend")
}

#[test]
fn ports_and_doctor_follow_the_gro_setting_of_the_peer() {
    if !require_root() {
        return;
    }
    for (gro, xdp) in [([false, true], true), ([true, false], false)] {
        let lab = lab(gro);
        let (namespace, interface) = (lab.a.namespace().name(), lab.a.port());
        let ports = json(&wirestorm(&["ports", "--namespace", namespace, "--json"]));
        let listed = ports["namespaces"][0]["interfaces"].as_array().expect("a list");
        let port = listed.iter().find(|it| it["interface"] == interface.as_str());
        let port = port.unwrap_or_else(|| panic!("{interface} is not in {ports:#}"));
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        let expected = if xdp && allowed > 1 { "xdp" } else { "af_packet" };
        assert_eq!(port["auto"], expected, "{port:#}");

        let output = wirestorm(&["doctor", "--open", &interface, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        let doctor = json(&output);
        assert_eq!(doctor["interfaces"][0]["auto"], expected, "{doctor:#}");
        assert_eq!(finding(&doctor, "af_packet")["grade"], "good");
        if !xdp {
            let missing = finding(&doctor, "xdp");
            assert_eq!(missing["grade"], "missing", "{missing:#}");
            let peer = format!("ethtool -K {} gro on", lab.b.interface());
            let repair = missing["repair"].as_str().unwrap_or_default();
            assert!(repair.ends_with(&peer), "{repair}");
            let output = wirestorm(&["doctor", &interface, "--backend", "xdp"]);
            assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
        }
    }
}

#[test]
fn printed_repair_command_repairs() {
    if !require_root() {
        return;
    }
    // The kernel does not apply GRO that is switched on before the interface is up.
    let early = Lab::with(&LabOptions { gro: [false, true], ..LabOptions::default() });
    for lab in [lab([false, false]), early.expect("a lab")] {
        let interface = lab.a.port();
        let before = json(&wirestorm(&["doctor", &interface, "--json"]));
        let Some(repair) = finding(&before, "xdp")["repair"].as_str() else { continue };
        assert!(repair.contains(lab.b.namespace().name()), "{repair}");
        let status = Command::new("sh").args(["-c", repair]).status().expect("a shell");
        assert!(status.success(), "{repair}");
        let after = json(&wirestorm(&["doctor", "--open", &interface, "--json"]));
        assert!(finding(&after, "xdp")["repair"].is_null(), "{after:#}");
    }
}

#[test]
fn missing_interfaces_and_namespaces_are_usage_errors() {
    for arguments in [
        &["doctor", "no-such-if"][..],
        &["doctor", "netns/no-such-namespace:veth0"],
        &["ports", "--namespace", "no-such-namespace"],
    ] {
        let output = wirestorm(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("no-such-"), "{}", text(&output.stderr));
    }
}

#[test]
fn tables_are_at_most_80_columns_wide() {
    for arguments in [&["ports", "--all"][..], &["doctor"]] {
        let output = text(&wirestorm(arguments).stdout);
        for line in output.lines().filter(|line| !line.contains("repair: ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn ports_lists_only_the_named_interfaces() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().expect("a lab");
    let (first, second) = (lab.a.port(), lab.b.port());
    let ports = json(&wirestorm(&["ports", &first, &second, "--json"]));
    let found = ports["namespaces"].as_array().expect("a list").iter();
    let names: Vec<_> = found.map(|it| it["interfaces"][0]["interface"].as_str()).collect();
    assert_eq!(names, [Some(first.as_str()), Some(second.as_str())]);
    let missing = wirestorm(&["ports", &first.replace("veth", "nowhere")]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stdout));
    assert!(text(&missing.stderr).contains("nowhere"), "{}", text(&missing.stderr));
}

#[test]
fn pktgen_sends_on_interfaces_of_other_namespaces() {
    if !require_root() {
        return;
    }
    let scratch = wirestorm_testkit::Scratch::new().expect("a folder");
    let lab = Lab::new().expect("a lab");
    let device = format!("{}@0", lab.a.port());
    let settings = |look: &str| {
        format!(
            "echo rem_device_all > /proc/net/pktgen/kpktgend_0\n\
         echo add_device {device} > /proc/net/pktgen/kpktgend_0\n\
         {look}\
         echo count 7 > /proc/net/pktgen/{device}\n\
         echo dst_mac 02:00:00:00:00:02 > /proc/net/pktgen/{device}\n\
         echo start > /proc/net/pktgen/pgctrl\n"
        )
    };
    // Read by the command itself, and by a shell that finds the files in /proc.
    let look = format!("test \"$(ls /proc/net/pktgen/netns)\" = {}\n", &device["netns/".len()..]);
    let program = format!("#!/bin/sh\nset -e\n{}", settings(&look));
    for (number, lines) in [settings(""), program].iter().enumerate() {
        let script = scratch.file(&format!("script{number}"));
        std::fs::write(&script, lines).expect("a file");
        let script = script.to_str().expect("a name");
        let output = wirestorm(&["pktgen", "--json", "-", "--quiet", script]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        let result = json(&output);
        assert_eq!(result["device_runs"][0]["devices"][0]["packets"], 7, "{result:#}");
    }
}

#[test]
fn unknown_flag_suggests_all_likely_flags() {
    for (arguments, names) in [
        (&["replay", "--intf3", "x"][..], &["--intf1", "--intf2"][..]),
        (&["replay", "--intf", "x"], &["--intf1", "--intf2"]),
        (&["run", "--durration", "5s"], &["--duration"]),
    ] {
        let output = wirestorm(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let messages = text(&output.stderr);
        assert!(names.iter().all(|name| messages.contains(name)), "{messages}");
    }
    let far = text(&wirestorm(&["replay", "--nothing-like-it"]).stderr);
    assert!(!far.contains("similar"), "{far}");
}
