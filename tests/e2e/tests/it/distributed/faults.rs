//! A part of a test is killed, stopped, or cut off: sending ends within the lease, and what was measured
//! is there.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirestorm_e2e::{Outcome, Running, can_run};
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::require::skip;

use super::{Cluster, FLOW, LEASE, TwoNodes, assert_complete, one_way};

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

/// What the test does when a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The director takes the leases of the agents.
    Agents,
    Clocks,
    Prepare,
    /// All agents know the start, which is half a second away.
    Armed,
    Run,
    /// All frames are sent.
    Drain,
    Results,
}

impl Phase {
    /// Frames of a test that ends by itself.
    const FRAMES: u64 = 1_000;

    /// Whether the test goes on until the fault ends it.
    fn is_endless(self) -> bool {
        matches!(self, Self::Armed | Self::Run)
    }

    /// Waits until a test is in this phase.
    fn wait(self, nodes: &TwoNodes, director: &Running) {
        director.wait_for_message(match self {
            Self::Agents => "agents",
            Self::Clocks => "clocks",
            Self::Prepare => "prepare",
            Self::Armed | Self::Run | Self::Drain => "run",
            Self::Results => "results",
        });
        match self {
            Self::Run => nodes.wait_for_frames(2 * CHECKPOINT),
            Self::Drain => nodes.wait_for_frames(Self::FRAMES),
            _ => {}
        }
    }
}

/// Lets a part fail in a phase of a test, and checks that the others stop, and what is known then.
fn check(part: Part, fault: Fault, phase: Phase) {
    let Some(mut cluster) = Cluster::start(&[]) else { return };
    let what = format!("{part:?} {fault:?} {phase:?}");
    let test = cluster.nodes.test(if phase.is_endless() { 60 } else { 1 }, "");
    let director = cluster.test(&test, &[]);
    let id = director.wait_for_message("Test ");
    let id = id.split(';').next().unwrap().to_owned();
    phase.wait(&cluster.nodes, &director);
    let arrived = |cluster: &Cluster| cluster.nodes.lab.b.counters().unwrap().rx_packets;
    let before = arrived(&cluster);
    let pid = match part {
        Part::Sender => cluster.agents[0].pid(),
        Part::Receiver => cluster.agents[1].pid(),
        Part::Director => director.pid(),
        Part::Bus => Pid::from_raw(cluster.server.pid().unwrap() as i32).unwrap(),
    };
    let signal = if fault == Fault::Killed { Signal::KILL } else { Signal::STOP };
    kill_process(pid, signal).unwrap();
    // Whatever the test has sent until then: within the lease, sending ends.
    let silence = cluster.nodes.last_frame(2 * LEASE);
    eprintln!("{what}: the last frame arrived after {silence:?}");
    assert!(silence <= LEASE + CHECK, "{what}: {silence:?}");
    let at_silence = arrived(&cluster);
    if fault == Fault::Stopped {
        // By its own clock, the part knows that its lease is over.
        kill_process(pid, Signal::CONT).unwrap();
        if phase.is_endless() {
            std::thread::sleep(Duration::from_millis(500));
            let more = arrived(&cluster) - at_silence;
            let allowed = if part == Part::Sender { AFTER_STOP } else { 0 };
            assert!(more <= allowed, "{what}: {more} frames after the lease");
        }
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
    if phase == Phase::Run {
        assert_measured(&outcome, part, fault, before, at_silence);
    } else {
        assert_nothing_lost(&outcome, (part, fault), arrived(&cluster), &what);
    }
    cluster.assert_works();
}

/// Checks that all that arrived is in the result, but for what a killed agent had not yet written.
fn assert_nothing_lost(outcome: &Outcome, failed: (Part, Fault), arrived: u64, what: &str) {
    if arrived == 0 {
        // The test ended before its start, or has a result without frames.
        return;
    }
    let number = |place: &str| {
        let place = format!("{FLOW}/{place}");
        outcome.result().pointer(&place).and_then(|it| it.as_u64()).unwrap_or(0)
    };
    let (packets, received) = (number("packets"), number("measured/0/received"));
    let errors = outcome.lines("/iterations/0/runs/0/result/errors");
    let is_late = errors.contains("rx: the run was stopped before it started");
    if failed == (Part::Receiver, Fault::Stopped) && is_late {
        // Its lease was over when it continued, before it had begun to measure.
        return assert_eq!((packets, received), (arrived, 0), "{what}\n{outcome}");
    }
    let more = if failed == (Part::Sender, Fault::Stopped) { AFTER_STOP } else { 0 };
    if failed == (Part::Sender, Fault::Killed) {
        assert!(packets + CHECKPOINT >= arrived, "{what}: {packets} of {arrived}\n{outcome}");
    } else {
        let range = arrived..=arrived + more;
        assert!(range.contains(&packets), "{what}: {packets} of {arrived}\n{outcome}");
    }
    if failed == (Part::Receiver, Fault::Killed) {
        assert!(received + CHECKPOINT >= arrived, "{what}: {received} of {arrived}\n{outcome}");
    } else {
        assert_eq!(received, arrived, "{what}\n{outcome}");
    }
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
                    check(Part::$part, Fault::$fault, Phase::Run);
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

/// Lets each part fail in a phase, in a long test.
fn check_all(phase: Phase) {
    if !can_run(&[]) {
        return;
    }
    if std::env::var_os("WIRESTORM_LONG").is_none() {
        return skip("faults in all phases take 10 minutes; ./test --long has them");
    }
    for part in [Part::Sender, Part::Receiver, Part::Director, Part::Bus] {
        for fault in [Fault::Killed, Fault::Stopped] {
            check(part, fault, phase);
        }
    }
}

macro_rules! faults_of_phases {
    ($($name:ident: $phase:ident;)*) => {
        $(
            #[test]
            fn $name() {
                check_all(Phase::$phase);
            }
        )*
    };
}

faults_of_phases! {
    every_part_may_fail_while_agents_are_taken: Agents;
    every_part_may_fail_while_clocks_are_compared: Clocks;
    every_part_may_fail_while_agents_prepare: Prepare;
    every_part_may_fail_before_the_start: Armed;
    every_part_may_fail_after_the_last_frame: Drain;
    every_part_may_fail_while_results_are_read: Results;
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
    let silence = cluster.nodes.last_frame(2 * LEASE);
    assert!(silence <= LEASE + CHECK, "{silence:?}");
    bus.a.set_up(true).unwrap();
    let outcome = director.wait();
    outcome.assert_no_panic();
    let packets = outcome.number(&format!("{FLOW}/packets"));
    assert!(packets >= 1_000, "{outcome}");
    assert_complete(&outcome, packets);
    cluster.assert_works();
}
