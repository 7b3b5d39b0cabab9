//! Orders that agents refuse, and members that the bus refuses.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use wirestorm_e2e::{can_run, run_command};

use super::Cluster;

#[test]
fn plan_beyond_the_limits_of_an_agent_is_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    drop(cluster.agents.remove(0));
    cluster.start_agent("tx", &["--max-rate", "500"]);
    let test = cluster.nodes.test(1, "");
    let outcome = cluster.test(&test, &[]).wait();
    outcome
        .expect_error(1, &["agent tx, prepare", "1000 frames/s", "the limit of director is 500"]);
    assert_eq!(cluster.nodes.lab.b.counters().unwrap().rx_packets, 0);
}

#[test]
fn director_without_trust_is_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let dir = cluster.credentials.parent().unwrap().display().to_string();
    // The server knows the new director, but the agents do not.
    let add = ["cluster", "add-director", "eve", "--dir", &dir];
    let outcome = run_command(&mut cluster.nodes.command(&add));
    assert!(outcome.status.success(), "{outcome}");
    if let Some(pid) = cluster.server.pid() {
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        rustix::process::kill_process(pid, Signal::HUP).unwrap();
    }
    let test = cluster.nodes.test(1, "");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut command = cluster.nodes.command(&["test", &test, "--bus-credentials"]);
        command.arg(cluster.credentials.join("eve.json"));
        let outcome = run_command(&mut command);
        outcome.assert_no_panic();
        // The server reads its configuration in the background.
        if outcome.messages.contains("no director that this agent trusts") {
            break;
        }
        assert!(!outcome.status.success() && Instant::now() < deadline, "{outcome}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(cluster.nodes.lab.b.counters().unwrap().rx_packets, 0);
}
