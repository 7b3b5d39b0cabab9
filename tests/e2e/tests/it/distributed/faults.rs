//! A part of a test is killed, stopped, or cut off: sending ends within the lease, and what was measured
//! is there.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::require::skip;

use super::{Cluster, FLOW, assert_complete, one_way};

/// Lease of the agents: sending ends within this time.
const LEASE: Duration = Duration::from_secs(2);
/// Time that the check of counters takes.
const CHECK: Duration = Duration::from_millis(250);
/// Frames of a checkpoint interval, and of the time until the log has a checkpoint.
const CHECKPOINT: u64 = 1_500;

/// Frames that a sender still sends when it continues after SIGSTOP: it hands frames to the kernel some
/// milliseconds before their departure.
const AFTER_STOP: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Sender,
    Receiver,
    Director,
    Bus,
}

/// What happens to the part: SIGKILL and a new start, or SIGSTOP and SIGCONT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    Stopped,
}

/// Phases of a test, as its messages name them.
const PHASES: [&str; 4] = ["clocks", "prepare", "run", "results"];

/// Lets a part fail in a phase of a test, and checks that the others stop, and what is known then.
fn check(part: Part, fault: Fault, phase: &str) {
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    let is_running = phase == "run";
    // A test that ends by itself, for the last phase.
    let test = cluster.nodes.test(if phase == "results" { 1 } else { 60 }, "");
    let director = cluster.test(&test, &[]);
    let id = director.wait_for_message("Test ");
    let id = id.split(';').next().unwrap().to_owned();
    director.wait_for_message(phase);
    if is_running {
        cluster.nodes.wait_for_frames(2 * CHECKPOINT);
    }
    let arrived = || cluster.nodes.lab.b.counters().unwrap().rx_packets;
    let before = arrived();
    let pid = match part {
        Part::Sender => cluster.agents[0].pid(),
        Part::Receiver => cluster.agents[1].pid(),
        Part::Director => director.pid(),
        Part::Bus => Pid::from_raw(cluster.server.pid().unwrap() as i32).unwrap(),
    };
    let signal = if fault == Fault::Killed { Signal::KILL } else { Signal::STOP };
    kill_process(pid, signal).unwrap();
    let silence = cluster.nodes.wait_for_silence(Instant::now());
    // Before the start and after the end, no frame may follow.
    assert!(silence <= LEASE + CHECK, "{part:?} {fault:?} {phase}: {silence:?}");
    let at_silence = arrived();
    if fault == Fault::Stopped {
        // By its own clock, the part knows that its lease is over.
        std::thread::sleep(LEASE);
        kill_process(pid, Signal::CONT).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let more = arrived() - at_silence;
        let allowed = if part == Part::Sender { AFTER_STOP } else { 0 };
        assert!(more <= allowed, "{part:?} {fault:?} {phase}: {more} frames after the lease");
    } else {
        match part {
            Part::Sender => cluster.start_agent("tx", &[]),
            Part::Receiver => cluster.start_agent("rx", &[]),
            Part::Bus => cluster.server.start().unwrap(),
            Part::Director => {}
        }
    }
    let outcome = director.wait();
    let outcome = match (part, fault) {
        (Part::Director, Fault::Killed) => cluster.test(&test, &["--recover", &id]).wait(),
        _ => outcome,
    };
    outcome.assert_no_panic();
    if is_running {
        assert_measured(&outcome, part, fault, before, at_silence);
    }
    cluster.assert_works();
}

/// Checks what the result of an interrupted run has.
fn assert_measured(outcome: &Outcome, part: Part, fault: Fault, before: u64, at_silence: u64) {
    let result = "/iterations/0/runs/0/result";
    let verdict = outcome.text(&format!("{result}/verdict/outcome"));
    let packets = outcome.number(&format!("{FLOW}/packets"));
    let received = outcome.number(&format!("{FLOW}/measured/0/received"));
    let delays = outcome.number(&format!("{FLOW}/measured/0/one_way/delay/count"));
    assert_eq!(received, delays, "{outcome}");
    let errors = outcome.lines(&format!("{result}/errors"));
    let is_lost = |name: &str| errors.contains(&format!("{name}: incomplete: the agent was lost"));
    match (part, fault) {
        (Part::Sender, Fault::Killed) => {
            assert!(is_lost("tx") && !is_lost("rx"), "{outcome}");
            assert!(received >= at_silence && packets + CHECKPOINT >= before, "{outcome}");
            assert_eq!(verdict, "failed", "{outcome}");
        }
        (Part::Receiver, Fault::Killed) => {
            assert!(is_lost("rx") && !is_lost("tx"), "{outcome}");
            assert!(packets >= at_silence && received + CHECKPOINT >= before, "{outcome}");
            assert_eq!(verdict, "failed", "{outcome}");
        }
        (Part::Sender, Fault::Stopped) => {
            assert_eq!(errors, "", "{outcome}");
            assert!(received >= at_silence && packets >= received, "{outcome}");
            assert!(packets <= received + AFTER_STOP, "{outcome}");
        }
        _ => {
            assert_eq!(errors, "", "{outcome}");
            assert!(packets >= at_silence, "{outcome}");
            assert_eq!((received, verdict), (packets, "interrupted"), "{outcome}");
        }
    }
    assert!(one_way(outcome, "delay/p50_ns") < 20e6, "{outcome}");
}

macro_rules! faults_of_runs {
    ($($name:ident: $part:ident $fault:ident;)*) => {
        $(
            #[test]
            fn $name() {
                if can_run(&[]) {
                    check(Part::$part, Fault::$fault, "run");
                }
            }
        )*
    };
}

faults_of_runs! {
    sender_is_killed: Sender Killed;
    sender_is_stopped: Sender Stopped;
    receiver_is_killed: Receiver Killed;
    receiver_is_stopped: Receiver Stopped;
    director_is_killed: Director Killed;
    director_is_stopped: Director Stopped;
    bus_is_killed: Bus Killed;
    bus_is_stopped: Bus Stopped;
}

#[test]
fn every_part_may_fail_in_every_phase() {
    if !can_run(&[]) {
        return;
    }
    if std::env::var_os("WIRESTORM_LONG").is_none() {
        return skip("faults in all phases take 8 minutes; ./test --long has them");
    }
    for phase in PHASES.into_iter().filter(|phase| *phase != "run") {
        for part in [Part::Sender, Part::Receiver, Part::Director, Part::Bus] {
            for fault in [Fault::Killed, Fault::Stopped] {
                eprintln!("{part:?} {fault:?} {phase}");
                check(part, fault, phase);
            }
        }
    }
}

#[test]
fn link_to_the_bus_goes_down() {
    if !can_run(&[]) {
        return;
    }
    let bus = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    // All members reach the server over this link.
    let namespace = File::open(format!("/run/netns/{}", bus.a.namespace().name())).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    let address = bus.b.ipv4().into();
    let server = Some(bus.b.namespace().name());
    let Some(cluster) = Cluster::start_at(address, server, &[]) else { return };
    let test = cluster.nodes.test(60, "");
    let director = cluster.test(&test, &[]);
    cluster.nodes.wait_for_frames(1_000);
    bus.a.set_up(false).unwrap();
    let silence = cluster.nodes.wait_for_silence(Instant::now());
    assert!(silence <= LEASE + CHECK, "{silence:?}");
    bus.a.set_up(true).unwrap();
    let outcome = director.wait();
    outcome.assert_no_panic();
    let packets = outcome.number(&format!("{FLOW}/packets"));
    assert!(packets >= 1_000, "{outcome}");
    assert_complete(&outcome, packets);
    cluster.assert_works();
}
