//! Orders that agents refuse, and members that the bus refuses.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirestorm_e2e::{Outcome, can_run, run_command};

use super::member::Member;
use super::{Cluster, FLOW, LEASE};

impl Cluster {
    /// Connects as a member, with a client of its own.
    fn member(&self, name: &str) -> Member {
        Member::connect(self.credentials.join(format!("{name}.json")))
    }

    fn arrived(&self) -> u64 {
        self.nodes.lab.b.counters().unwrap().rx_packets
    }

    /// Runs `wirestorm cluster` for this cluster.
    fn change(&self, words: &[&str]) {
        let dir = self.credentials.parent().unwrap();
        let mut command = self.nodes.command(&["cluster"]);
        let outcome = run_command(command.args(words).arg("--dir").arg(dir));
        assert!(outcome.status.success(), "{outcome}");
    }

    /// Starts an agent with these credentials, which has to end by itself.
    fn refused_agent(&self, credentials: &str) -> Outcome {
        let arguments = ["agent", "--no-reflector", "--bus-credentials", credentials];
        run_command(&mut self.nodes.command(&arguments))
    }
}

#[test]
fn plan_beyond_the_limits_of_an_agent_is_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    let destination = ["found destination 198.18.0.2", "expected one within 192.0.2.0/24"];
    let limits: [(&[&str], &[&str]); 4] = [
        (&["--destination", "192.0.2.0/24"], &destination),
        (&["--max-rate", "500"], &["1000 frames/s", "the limit of director is 500"]),
        (&["--max-bits", "500000"], &["1000 frames/s", "the limit of director is 500000 bit/s"]),
        (&["--interface", "lent0"], &["the limits of director allow only lent0"]),
    ];
    for (flags, words) in limits {
        drop(cluster.agents.drain(..));
        cluster.start_agent("rx", &[]);
        cluster.start_agent("tx", flags);
        let test = cluster.nodes.test(1, "");
        let outcome = cluster.test(&test, &[]).wait();
        outcome.expect_error(1, &[&["agent tx, prepare", "run flows"], words].concat());
        let reason = cluster.agents[1].wait_for_message("refused an order: run flows: ");
        assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
    }
    assert_eq!(cluster.arrived(), 0);
}

#[test]
fn director_without_trust_is_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    // The server knows the new director, but the agents do not.
    cluster.change(&["add-director", "eve"]);
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
    assert_eq!(cluster.arrived(), 0);
}

#[test]
fn credentials_of_another_cluster_are_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let read = |path: &std::path::Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let own = read(&cluster.credentials.join("tx.json"));
    let listen = own["url"].as_str().unwrap().strip_prefix("tls://").unwrap();
    let other = cluster.nodes.scratch.file("other").display().to_string();
    let init = ["cluster", "init", "--listen", listen, "--agents", "tx,rx", "--dir", &other];
    assert!(run_command(&mut cluster.nodes.command(&init)).status.success());
    let others = std::path::PathBuf::from(other).join("credentials");

    // Its agent refuses the server, whose certificate is of another authority.
    let path = others.join("tx.json").display().to_string();
    cluster.refused_agent(&path).expect_error(2, &["certificate"]);
    // The server refuses its keys.
    for name in ["tx", "director"] {
        let path = others.join(format!("{name}.json"));
        let mut forged = read(&path);
        forged["authority"] = own["authority"].clone();
        std::fs::write(&path, forged.to_string()).unwrap();
    }
    cluster.refused_agent(&path).expect_error(2, &["the server does not know this key"]);
    let mut command = cluster.nodes.command(&["test", &cluster.nodes.test(1, "")]);
    let command = command.arg("--bus-credentials").arg(others.join("director.json"));
    run_command(command).expect_error(2, &["the server does not know this key"]);
    cluster.assert_works();
}

#[test]
fn revoked_agent_stops_within_the_lease_and_cannot_come_back() {
    if !can_run(&[]) {
        return;
    }
    let Some(cluster) = Cluster::start(&[]) else { return };
    let copy = cluster.nodes.scratch.file("copy.json");
    std::fs::copy(cluster.credentials.join("tx.json"), &copy).unwrap();
    let director = cluster.test(&cluster.nodes.test(60, ""), &[]);
    cluster.nodes.wait_for_frames(2_000);
    cluster.change(&["revoke", "tx"]);
    let silence = cluster.nodes.last_frame(2 * LEASE);
    eprintln!("the last frame arrived after {silence:?}");
    assert!(silence <= LEASE, "{silence:?}");
    let reason = cluster.agents[0].wait_for_message("stopped test ");
    assert!(reason.contains("revoked"), "{reason}");
    let outcome = director.wait();
    outcome.assert_no_panic();
    assert!(outcome.messages.contains("agent tx is lost"), "{outcome}");
    // The director stops the receiver after two thirds of the lease; the sender has a third more.
    let received = outcome.number(&format!("{FLOW}/measured/0/received"));
    let arrived = cluster.arrived();
    assert!((arrived - 700..=arrived).contains(&received), "{received} of {arrived}\n{outcome}");
    let credentials = copy.display().to_string();
    cluster.refused_agent(&credentials).expect_error(2, &["it was revoked"]);
}

/// Presence of an agent whose reflector is at a wrong address.
fn presence(agent: &str) -> Vec<u8> {
    let document = json!({
        "agent": agent, "version": "0", "host": "elsewhere", "reflector": ["127.0.0.1:9"],
        "interfaces": [], "test": null,
    });
    document.to_string().into_bytes()
}

#[test]
fn agent_cannot_speak_for_another_one() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    let attacker = cluster.member("tx");
    for subject in ["agent.rx.status", "agent.rx.event", "agent.rx.rpc", "agent.tx.rpc"] {
        attacker.publish_refused(&format!("ws.default.{subject}"), &presence("rx"));
    }
    // On its own subject it may publish anything; its word does not count for another agent.
    drop(cluster.agents.remove(1));
    let director = cluster.test(&cluster.nodes.test(1, ""), &["--wait", "2s"]);
    director.wait_for_message("agents");
    for _ in 0..10 {
        attacker.publish("ws.default.agent.tx.status", &presence("rx"));
        std::thread::sleep(Duration::from_millis(100));
    }
    director.wait().expect_error(1, &["agent rx, presence: it does not report"]);
    assert_eq!(cluster.arrived(), 0);
    cluster.start_agent("rx", &[]);
    cluster.assert_works();
}

#[test]
fn copies_of_signed_orders_are_refused() {
    if !can_run(&[]) {
        return;
    }
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    // Whoever may send orders, and read them, has no key that signs them.
    let attacker = cluster.member("director");
    let (tx, rx) = ("ws.default.agent.tx.rpc", "ws.default.agent.rx.rpc");
    let mut tap = attacker.subscribe(tx);
    cluster.assert_works();
    let orders = attacker.drain(&mut tap);
    let of = |order: &[u8]| serde_json::from_slice::<Value>(order).unwrap();
    let is_start = |order: &&Vec<u8>| of(order)["order"].as_str().unwrap().contains("\"arm\"");
    assert!(orders.len() > 5 && orders.iter().any(|it| is_start(&it)), "{}", orders.len());
    cluster.assert_works();
    let arrived = cluster.arrived();
    let refused = |subject: &str, order: &[u8], reason: &str| {
        let answer = attacker.request(subject, order);
        let found = answer.pointer("/refused/reason").and_then(Value::as_str);
        assert!(found.is_some_and(|found| found.contains(reason)), "{reason}: {answer}");
    };
    for order in &orders {
        refused(tx, order, "a later lease of this agent belongs to director");
        refused(rx, order, "the order is for agent tx, not rx");
        let mut changed = of(order);
        let text = changed["order"].as_str().unwrap().replace("\"fence\":", "\"fence\":1");
        changed["order"] = text.into();
        refused(tx, changed.to_string().as_bytes(), "the signature does not fit the order");
    }
    let logged = cluster.agents[0].wait_for_message("refused an order: ");
    assert!(logged.contains("a later lease"), "{logged}");
    // After a restart, the agent knows no lease, but the time of the last order.
    drop(cluster.agents.remove(0));
    cluster.start_agent("tx", &[]);
    for order in &orders {
        refused(tx, order, "has no lease of this agent");
    }
    assert_eq!(cluster.arrived(), arrived);
    cluster.assert_works();
}
