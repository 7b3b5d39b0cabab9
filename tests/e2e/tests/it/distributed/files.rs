//! Captures and plans that only the director has.

use std::fmt::Write;
use std::fs;

use wirestorm_e2e::can_run;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use super::{Cluster, assert_complete};

#[test]
fn replay_of_a_capture_in_the_folder_of_the_test() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let folder = cluster.nodes.scratch.file("director");
    fs::create_dir_all(folder.join("caps")).unwrap();
    // More than one message and more than one piece: several MB.
    let options = TrafficOptions { conversations: 2_000, ..TrafficOptions::default() };
    let capture = folder.join("caps/web.pcap");
    let written = write_file(Traffic::new(options), Resolution::Nanoseconds, &capture).unwrap();
    assert!(written.bytes > 5 << 20, "{written:?}");
    let (left, right) = (cluster.nodes.lab.a.port(), cluster.nodes.lab.b.port());
    let text = format!(
        "nodes: [tx, rx]\nports:\n  - {{name: left, node: tx, interface: '{left}'}}\n  \
         - {{name: right, node: rx, interface: '{right}'}}\nclock: {{path: none}}\nruns:\n  \
         - {{name: web, replay: {{captures: [caps/web.pcap], port: left, rate: max}}}}\n"
    );
    let test = folder.join("test.yaml");
    fs::write(&test, text).unwrap();
    let outcome = cluster.test(&test.display().to_string(), &[]).wait().expect(0);
    let sent = outcome.number("/iterations/0/runs/0/result/achieved/packets");
    let arrived = cluster.nodes.lab.b.counters().unwrap().rx_packets;
    assert_eq!((sent, arrived), (written.packets, written.packets), "{outcome}");
    // Nothing stays with the agents.
    for agent in ["tx", "rx"] {
        let state = cluster.nodes.scratch.file("state/wirestorm/agent").join(agent);
        assert_eq!(fs::read_dir(state.join("contents")).unwrap().count(), 0, "{agent}");
    }
}

#[test]
fn plan_is_longer_than_a_message_of_the_bus() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let flow = |name: &str| {
        format!(
            "  - name: {name}\n    tx: left\n    rx: right\n    size: 128\n    rate: 1kpps\n    \
             metrics: {{enable: true}}\n    packet:\n      \
             - ethernet: {{src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02}}\n      \
             - ipv4: {{src: 198.18.0.1, dst: 198.18.0.2}}\n      - udp: {{}}\n"
        )
    };
    let mut plan = format!("ports: [{{name: left}}, {{name: right}}]\nflows:\n{}", flow("forward"));
    while plan.len() < 3 << 19 {
        writeln!(plan, "# What this flow is for, and who wrote it: line {}", plan.len()).unwrap();
    }
    fs::write(cluster.nodes.scratch.file("long.yaml"), plan).unwrap();
    let (left, right) = (cluster.nodes.lab.a.port(), cluster.nodes.lab.b.port());
    let text = format!(
        "nodes: [tx, rx]\nports:\n  - {{name: left, node: tx, interface: '{left}'}}\n  \
         - {{name: right, node: rx, interface: '{right}'}}\nruns:\n  \
         - {{name: flows, streams: long.yaml}}\nduration: 1s\n"
    );
    let test = cluster.nodes.scratch.file("long-test.yaml");
    fs::write(&test, text).unwrap();
    let outcome = cluster.test(&test.display().to_string(), &[]).wait().expect(0);
    assert_complete(&outcome, 1_000);
}
