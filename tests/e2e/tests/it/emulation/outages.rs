//! Interfaces that go down during a run and come up again.

use std::time::Duration;

use wirestorm_e2e::{Outcome, can_run, start_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::reports::wait_for_frames;
use super::{emulate, plan};

/// A plan with sequential requests on each connection, and pages of `page` bytes.
fn text(page: u32) -> String {
    format!(
        "ports: [{{name: clients, addresses: 10.0.0.1/16}}, {{name: servers, addresses: 10.0.1.1/16}}]
templates:
  - name: page
    http: {{requests: 1000000, think_time: 1ms, response: {{body: {page}}}}}
    client: {{tx: clients, addresses: 10.0.0.1-10.0.0.20, servers: 10.0.1.1, load: {{concurrent: 20}}}}
    server: {{tx: servers}}
latency: [{{from: clients, to: servers, rate: 50}}]
"
    )
}

/// Runs with the clients' interface down for one second in between.
fn interrupted_for_a_second(page: u32, backend: &str) -> Outcome {
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let mut command = emulate(&plan(&scratch, &text(page)));
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    command.args(["--port", &format!("servers={}", lab.b.port())]);
    command.args(["--backend", backend, "--duration", "5s", "--interval", "250ms"]);
    let running = start_command(&mut command);
    wait_for_frames(&lab.b, 2_000);
    lab.a.set_up(false).unwrap();
    // The time that the interface is down is exact.
    std::thread::sleep(Duration::from_secs(1));
    lab.a.set_up(true).unwrap();
    running.wait()
}

#[test]
fn run_continues_after_its_interface_is_up_again() {
    if !can_run(&[]) {
        return;
    }
    // Pages of 20,000 bytes use long frames and a different socket.
    for (page, backend) in [(1_000, "af_packet"), (1_000, "af_xdp"), (20_000, "af_packet")] {
        let outcome = interrupted_for_a_second(page, backend).expect(3);
        assert_eq!(outcome.text("/ports/0/backend"), backend);
        assert_eq!(outcome.lines("/errors"), "", "{outcome}");
        let notes = outcome.lines("/notes");
        assert!(notes.contains("clients: ") && notes.contains(" was down for 1."), "{notes}");
        assert!(notes.contains(" frames were not sent"), "{notes}");
        let down = outcome.result()["ports"][0]["down_s"].as_f64().unwrap();
        assert!((0.9..2.0).contains(&down), "{outcome}");
        assert_eq!(outcome.result()["ports"][1]["down_s"], 0.0, "its end lost its carrier alone");
        // Unsent frames are counted, and TCP retransmits them.
        assert!(outcome.number("/ports/0/tx/unsent") > 0, "{outcome}");
        let retransmitted =
            |port| outcome.number(&format!("/ports/{port}/connections/tcp/sndrexmitpack"));
        assert!(retransmitted(0) + retransmitted(1) > 0, "{outcome}");
        for port in [0, 1] {
            assert_eq!(
                outcome.number(&format!("/ports/{port}/connections/flows/failed")),
                0,
                "{outcome}"
            );
            let series =
                &outcome.result()["ports"][port]["connections"]["series"]["received_bytes"];
            let received: Vec<u64> =
                series.as_array().unwrap().iter().flat_map(|it| it.as_u64()).collect();
            // Data arrives before the outage, not during it, and again after it.
            assert!(received[0] > 0, "{backend}: {received:?}");
            assert!(received.contains(&0), "{backend}: {received:?}");
            let silent = received.iter().position(|bytes| *bytes == 0).unwrap();
            let later = received[silent..].iter().filter(|bytes| **bytes > 0).count();
            assert!(later >= 3, "{backend}: {received:?}");
        }
        // Probes continue too; those during the outage are lost or unsent.
        let probes = |name: &str| outcome.number(&format!("/latency/0/{name}"));
        assert!((20..=120).contains(&(probes("lost") + probes("unsent"))), "{outcome}");
        assert!(probes("received") >= 80, "{outcome}");
    }
}

#[test]
fn interface_that_stays_down_ends_the_run() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let mut command = emulate(&plan(&scratch, &text(1_000)));
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    command.args(["--port", &format!("servers={}", lab.b.port())]);
    let running = start_command(command.args(["--link-down-timeout", "300ms"]));
    wait_for_frames(&lab.b, 2_000);
    lab.a.set_up(false).unwrap();
    let outcome = running.wait().expect(1);
    let errors = outcome.lines("/errors");
    assert!(errors.contains("went down; bring it up with: "), "{errors}");
    assert!(errors.ends_with("(it stayed down for 0.3 s)"), "{errors}");
}

#[test]
fn removed_interface_ends_the_run() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let mut command = emulate(&plan(&scratch, &text(1_000)));
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    command.args(["--port", &format!("servers={}", lab.b.port())]);
    let running = start_command(&mut command);
    wait_for_frames(&lab.b, 2_000);
    lab.a.namespace().ip(&["link del veth0"]).unwrap();
    let outcome = running.wait().expect(1);
    let errors = outcome.lines("/errors");
    // The other end of the pair is removed with it.
    for end in [&lab.a, &lab.b] {
        let gone = format!("interface {} is gone: it was removed or moved", end.port());
        assert!(errors.contains(&gone), "{errors}");
    }
}
