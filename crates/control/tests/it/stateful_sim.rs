//! Plans of clients and servers in virtual time: programs, loads, addresses and reports.

use std::path::Path;

use wirestorm_base::time::Duration;
use wirestorm_control::emulation::{FlowChoice, Part, SimulationOptions, WatchOptions, simulate};
use wirestorm_control::files::HostFiles;
use wirestorm_control::result::{FlowSeries, RunResult};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::load;
use wirestorm_plan::trex::stateful::{self, StatefulOptions};
use wirestorm_testkit::Scratch;
use wirestorm_wire::capture::Records;
use wirestorm_wire::conversation::{Action, Conversation, Side};

use super::simulation;

fn options(output: &Path) -> SimulationOptions {
    SimulationOptions { output: Some(output.to_owned()), ..simulation::options() }
}

/// Simulates a plan. Returns the result and the conversations of the clients' capture.
fn run(plan: &EmulationPlan, part: Part) -> (RunResult, Vec<Conversation>) {
    let options = SimulationOptions { part, ..simulation::options() };
    let (result, capture) = simulation::captured(plan, options);
    (result, simulation::conversations(&capture))
}

/// Returns all payload of one side.
fn payload(conversation: &Conversation, side: Side) -> Vec<u8> {
    let of_side = conversation.turns.iter().filter(|turn| turn.side == side);
    let bytes = of_side.filter_map(|turn| match &turn.act {
        Action::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

const PLAN: &str = r#"
ports: [{name: left}, {name: right}]
templates:
  - name: rounds
    client:
      tx: left
      addresses: 10.0.0.1-10.0.0.4
      servers: 10.0.1.1-10.0.1.2
      load: {rate: 20}
      program:
        - set: {n: 3}
        - label: again
        - send: ask
        - receive: 5
        - count: {A: 1}
        - decrement_and_jump: {variable: n, to: again}
        - jump: {to: end, variable: n, equal: 0}
        - send: never
        - label: end
        - send: bye
    server:
      tx: right
      port: 80
      program:
        - save_time: begin
        - label: again
        - receive: 3
        - send: {size: 5, fill: x}
        - jump: {to: again, within: 1ms, since: begin}
        - jump: again
  - name: names
    transport: udp
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.1.1
      server_port: 80
      load: {rate: 10}
      program: [{send_datagram: who}, {receive_datagrams: 2}]
    server:
      tx: right
      port: 80
      program: [{receive_datagrams: 1}, {send_datagram: me}, {send_datagram: and me}]
"#;

#[test]
fn both_sides_execute_their_programs() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let (result, flows) = run(&plan, Part::Full);
    let (tcp, udp): (Vec<_>, Vec<_>) = flows
        .iter()
        .partition(|flow| flow.transport == wirestorm_wire::conversation::Transport::Tcp);
    assert_eq!((tcp.len(), udp.len()), (20, 10));
    for flow in &tcp {
        assert_eq!(payload(flow, Side::Client), b"askaskaskbye");
        assert_eq!(payload(flow, Side::Server), b"xxxxxxxxxxxxxxxxxxxx");
    }
    for flow in &udp {
        assert_eq!(payload(flow, Side::Client), b"who");
        assert_eq!(payload(flow, Side::Server), b"meand me");
    }
    let [left, right] = result.ports.as_slice() else { panic!("two ports") };
    assert_eq!(
        (
            left.connections.as_ref().unwrap().flows.failed,
            right.connections.as_ref().unwrap().flows.failed
        ),
        (0, 0)
    );
    assert_eq!(
        (
            left.connections.as_ref().unwrap().counters["A"],
            right.connections.as_ref().unwrap().counters["A"]
        ),
        (60, 0)
    );
    assert_eq!(
        (
            left.connections.as_ref().unwrap().udp["rcvpkt"],
            right.connections.as_ref().unwrap().udp["rcvpkt"]
        ),
        (20, 10)
    );
    // The connect time is the round-trip time of the wire.
    assert!(
        left.connections
            .as_ref()
            .unwrap()
            .times
            .connect
            .p50_ns
            .is_some_and(|it| (1_990_000..2_010_000).contains(&it)),
        "{:?}",
        left.connections.as_ref().unwrap().times.connect
    );
}

#[test]
fn flow_series_count_by_interval() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let run = |interval| {
        let watch = WatchOptions { interval, flows: FlowChoice::default() };
        let options = SimulationOptions { watch, ..simulation::options() };
        simulate(&plan, &options).unwrap().0
    };
    // 20/s of one template and 10/s of the other; the first flow of each starts at once.
    let result = run(Duration::from_millis(250));
    let [left, right] = result.ports.as_slice() else { panic!("two ports") };
    let [rounds, names] = left.templates.as_slice() else { panic!("two templates") };
    assert_eq!(rounds.series.interval_s, 0.25);
    assert_eq!(rounds.series.opened[..4], [5, 5, 5, 5]);
    assert_eq!(names.series.opened[..4], [3, 2, 3, 2]);
    assert_eq!(left.connections.as_ref().unwrap().series.opened[..4], [8, 7, 8, 7]);
    // Payload of the first 250 ms: its last flow started 50 ms before the end.
    assert_eq!(rounds.series.sent_bytes[..2], [5 * 12, 5 * 12]);
    assert_eq!(rounds.series.received_bytes[0], 5 * 20);
    assert_eq!(rounds.series.goodput_bps[0], 5.0 * 20.0 * 8.0 * 4.0);
    assert_eq!((rounds.series.concurrent[0], names.series.concurrent[0]), (0, 0));
    let servers = &right.templates[0].series;
    assert_eq!((servers.opened[0], servers.received_bytes[0]), (5, 5 * 12));
    for port in &result.ports {
        let FlowSeries { interval_s, last_interval_s: last_s, opened, closed, failed, .. } =
            &port.connections.as_ref().unwrap().series;
        assert_eq!(opened.iter().sum::<u64>(), 30);
        assert_eq!(closed.iter().sum::<u64>(), 30);
        assert_eq!(failed.iter().sum::<u64>(), 0);
        let reported = (opened.len() - 1) as f64 * interval_s + last_s;
        assert!(
            (reported - result.times.elapsed_s).abs() < 1e-6,
            "{reported} of {}",
            result.times.elapsed_s
        );
    }
    assert!(result.notes.is_empty(), "{:?}", result.notes);

    // Intervals double until they fit into the limit.
    let result = run(Duration::from_micros(500));
    let series = &result.ports[0].connections.as_ref().unwrap().series;
    let merged = series.interval_s / 0.000_5;
    assert!(merged > 1.0 && merged.log2().fract() == 0.0, "{}", series.interval_s);
    assert!((256..=513).contains(&series.opened.len()), "{}", series.opened.len());
    assert_eq!(series.opened.iter().sum::<u64>(), 30);
    // Merged intervals equal intervals of that length from the start.
    let coarse = run(Duration::from_nanos((series.interval_s * 1e9).round() as u64));
    assert_eq!(coarse.ports[0].connections.as_ref().unwrap().series, *series);
    assert!(coarse.notes.is_empty(), "{:?}", coarse.notes);
    assert_eq!(result.notes.len(), 1);
    assert!(result.notes[0].contains("instead of 0.0005 s"), "{:?}", result.notes);
}

#[test]
fn at_most_counts_skipped_flows() {
    // Each flow takes slightly more than 100 ms, so 20/s needs two concurrent flows.
    for load in ["{rate: 20, concurrent_max: 1}", "{poisson: 20, concurrent_max: 1}"] {
        let text = PLAN
            .replace("load: {rate: 20}", &format!("load: {load}"))
            .replace("- send: bye", "- delay: 100ms\n        - send: bye");
        let (result, _) = run(&EmulationPlan::parse(&text).unwrap(), Part::Full);
        let [left, _] = result.ports.as_slice() else { panic!("{result:?}") };
        let flows = &left.templates[0].flows;
        let [offered, started, most] = ["offered", "started", "active_max"].map(|name| flows[name]);
        assert_eq!(offered, started + flows["skipped"], "{load}: {flows:?}");
        assert_eq!(left.connections.as_ref().unwrap().flows.skipped, flows["skipped"]);
        assert!((5..=10).contains(&started) && (10..=30).contains(&offered), "{load}: {flows:?}");
        // Other flows may be in TIME-WAIT at the same time.
        assert!(most <= 10 && flows["closed"] == started, "{load}: {flows:?}");
    }
}

#[test]
fn sampled_flows_are_replaced_when_they_end() {
    let text = PLAN
        .replace("load: {rate: 20}", "load: {concurrent: 3}")
        .replace("        - send: bye", "        - delay: 300ms\n        - send: bye");
    let plan = EmulationPlan::parse(&text).unwrap();
    let follow = |choice: FlowChoice| {
        let watch = WatchOptions { interval: Duration::from_millis(100), flows: choice };
        let options = SimulationOptions { watch, ..simulation::options() };
        simulate(&plan, &options).unwrap().0
    };
    let choice = FlowChoice { count: 2, template: Some("rounds".into()), ..Default::default() };
    let result = follow(choice.clone());
    let [left, right] = result.ports.as_slice() else { panic!("two ports") };
    assert_eq!(
        (
            left.connections.as_ref().unwrap().sampled_flows.len(),
            right.connections.as_ref().unwrap().sampled_flows.len()
        ),
        (2, 2)
    );
    for flow in &left.connections.as_ref().unwrap().sampled_flows {
        assert_eq!((&*flow.side, &*flow.transport, flow.ended), ("client", "tcp", true));
        // The flows sampled first have ended, and these replaced them.
        assert!(flow.start_s > 0.3, "{flow:?}");
        let [first, sample, .., last] = &flow.samples[..] else { panic!("{flow:?}") };
        assert_eq!((&*first.state, first.acknowledged_bytes), ("SYN-SENT", 0), "{flow:?}");
        assert_eq!((first.at_s, first.rtt_us), (flow.start_s, None), "{flow:?}");
        assert!(["TIME-WAIT", "CLOSED"].contains(&&*last.state), "{flow:?}");
        assert_eq!((last.acknowledged_bytes, last.received_bytes), (9 + 3, 15 + 5), "{flow:?}");
        assert!((0.3..0.32).contains(&(last.at_s - first.at_s)), "{flow:?}");
        // Three exchanges of 2 ms each, then the delay.
        assert_eq!((&*sample.state, sample.bytes_in_flight), ("ESTABLISHED", 0), "{flow:?}");
        assert_eq!((sample.acknowledged_bytes, sample.received_bytes), (9, 15));
        assert_eq!((sample.ssthresh, sample.retransmitted), (None, 0));
        assert!((1_900..=2_100).contains(&sample.rtt_us.unwrap()), "{sample:?}");
        assert!(flow.samples.is_sorted_by_key(|it| it.at_s), "{flow:?}");
        assert!((4..=6).contains(&flow.samples.len()), "{flow:?}");
    }
    let address = Some("10.0.0.3".parse().unwrap());
    let result = follow(FlowChoice { address, ..choice.clone() });
    let followed = &result.ports[0].connections.as_ref().unwrap().sampled_flows;
    assert!(!followed.is_empty());
    assert!(followed.iter().all(|flow| flow.local.starts_with("10.0.0.3:")), "{followed:?}");
    let result = follow(FlowChoice { port: Some(81), ..choice });
    assert!(
        result.ports.iter().all(|port| port.connections.as_ref().unwrap().sampled_flows.is_empty())
    );
    let result = follow(FlowChoice::default());
    assert!(
        result.ports.iter().all(|port| port.connections.as_ref().unwrap().sampled_flows.is_empty())
    );
}

#[test]
fn samples_count_all_retransmissions() {
    let plan = r#"
ports: [{name: left}, {name: right, impair: {loss: 5%}}]
templates:
  - name: file
    client:
      tx: left
      addresses: 10.0.0.1
      servers: 10.0.0.2
      load: {concurrent: 1}
      limit: 1
      program: [{receive: 20000000}]
    server: {tx: right, port: 80, program: [{send: {size: 20000000}}, wait_for_close]}
"#;
    let plan = EmulationPlan::parse(plan).unwrap();
    let flows = FlowChoice { count: 1, ..Default::default() };
    // Longer than the transfer, so that all counts are within one interval.
    let watch = WatchOptions { interval: Duration::from_secs(600), flows };
    let duration = Duration::from_secs(600);
    let options = SimulationOptions { watch, duration, ..simulation::options() };
    let (result, _) = simulate(&plan, &options).unwrap();
    for (port, sent) in result.ports.iter().zip([0, 20_000_000]) {
        let last = port.connections.as_ref().unwrap().sampled_flows[0].samples.last().unwrap();
        assert_eq!(
            last.retransmitted,
            port.connections.as_ref().unwrap().tcp["sndrexmitpack"],
            "{last:?}"
        );
        assert_eq!(
            last.out_of_order,
            port.connections.as_ref().unwrap().tcp["rcvoopack"],
            "{last:?}"
        );
        assert_eq!((last.acknowledged_bytes, last.received_bytes), (sent, 20_000_000 - sent));
    }
    let sent_again = result.ports[1].connections.as_ref().unwrap().tcp["sndrexmitpack"];
    assert!(
        sent_again > 256 && result.ports[0].connections.as_ref().unwrap().tcp["rcvoopack"] > 256,
        "{sent_again}"
    );
}

#[test]
fn short_flows_are_sampled_at_start_and_end() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let flows = FlowChoice { count: 3, ..Default::default() };
    let watch = WatchOptions { interval: Duration::from_secs(10), flows };
    let options = SimulationOptions { watch, ..simulation::options() };
    let (result, _) = simulate(&plan, &options).unwrap();
    for port in &result.ports {
        assert_eq!(
            port.connections.as_ref().unwrap().sampled_flows.len(),
            3,
            "{:?}",
            port.connections.as_ref().unwrap().sampled_flows
        );
        for flow in port
            .connections
            .as_ref()
            .unwrap()
            .sampled_flows
            .iter()
            .filter(|it| it.transport == "tcp")
        {
            let [first, last] = &flow.samples[..] else { panic!("{flow:?}") };
            let begins = if flow.side == "client" { "SYN-SENT" } else { "SYN-RECEIVED" };
            assert_eq!((flow.ended, &*first.state, first.rtt_us), (true, begins, None), "{flow:?}");
            assert!(["TIME-WAIT", "CLOSED"].contains(&&*last.state), "{flow:?}");
            assert!(last.rtt_us.is_some_and(|it| it >= 2_000), "{flow:?}");
            assert!(last.cwnd >= 10 * 1_448 && last.acknowledged_bytes > 0, "{flow:?}");
            assert!(last.received_bytes > 0 && last.at_s < first.at_s + 0.1, "{flow:?}");
        }
        assert!(
            port.connections.as_ref().unwrap().sampled_flows.iter().all(|it| it.ended),
            "{:?}",
            port.connections.as_ref().unwrap().sampled_flows
        );
        // Also flows that started late are sampled, because ended ones free their places.
        assert!(
            port.connections.as_ref().unwrap().sampled_flows.iter().any(|it| it.start_s > 0.8),
            "{:?}",
            port.connections.as_ref().unwrap().sampled_flows
        );
    }
}

#[test]
fn conversations_at_one_address_and_port_use_the_right_server() {
    let template = |number: usize| {
        format!(
            "  - name: page{number}\n    http: {{path: /{number}, response: {{body: {}}}}}\n    \
             client: {{tx: left, addresses: 10.0.0.1, servers: 10.0.1.{number}, load: {{concurrent: 1}}, \
             limit: 1}}\n    server: {{tx: right, addresses: 10.0.1.{number}}}\n",
            number * 1_000
        )
    };
    let templates: String = (1..=3).map(template).collect();
    let ports = "ports: [{name: left}, {name: right}]\ntemplates:\n";
    let plan = EmulationPlan::parse(&format!("{ports}{templates}")).unwrap();
    let scratch = Scratch::new().unwrap();
    let (_, files) = simulate(&plan, &options(&scratch.file("three.pcap"))).unwrap();
    let text = format!(
        "{ports}  - name: all\n    conversation: {{file: {:?}, timing: drop}}\n    client: {{tx: left, addresses: \
         10.0.0.1, servers: 10.0.1.1, load: {{rate: 30}}, limit: 30}}\n    server: {{tx: right}}\n",
        files[0]
    );
    let plan = load::emulation(&text, Path::new(""), &HostFiles).unwrap();
    let (result, flows) = run(&plan, Part::Full);
    assert_eq!(
        (
            result.ports[0].connections.as_ref().unwrap().flows.closed,
            result.ports[0].connections.as_ref().unwrap().flows.failed
        ),
        (30, 0)
    );
    assert_eq!(flows.len(), 30);
    for flow in &flows {
        let request = payload(flow, Side::Client);
        let number = usize::from(request[5] - b'0');
        let answer = payload(flow, Side::Server);
        assert!((number * 1_000..number * 1_000 + 200).contains(&answer.len()), "{request:?}");
    }
}

#[test]
fn only_unexpected_resets_are_failures() {
    let template = |name: &str, port, program: &str, target: u16, answers: &str| {
        format!(
            "  - name: {name}\n    client:\n      {{tx: left, addresses: 10.0.0.1, servers: \
             10.0.1.1, server_port: {target}, load: {{rate: 10}}, limit: 5, program: {program}}}\n    \
             server: {{tx: right, port: {port}, program: {answers}}}\n"
        )
    };
    let (fetch, stay) =
        ("[{send: ask}, {receive: 5}]", "[{receive: 3}, {send: abcde}, wait_for_close]");
    let text = [
        "ports: [{name: left}, {name: right}]\ntemplates:\n".to_owned(),
        template("means it", 80, "[{send: ask}, {receive: 5}, reset]", 80, stay),
        // Connects to the server of another template, which resets.
        template("does not", 81, fetch, 82, stay),
        template("resets", 82, fetch, 81, "[{receive: 3}, reset]"),
        template("at once", 83, "[connect, reset]", 83, "[wait_for_close]"),
    ]
    .concat();
    let (result, _) = run(&EmulationPlan::parse(&text).unwrap(), Part::Full);
    let flows = |port: usize, template: usize| {
        let flows = &result.ports[port].templates[template].flows;
        ["closed", "aborted", "expected_resets", "reset"].map(|name| flows[name])
    };
    assert_eq!((flows(0, 0), flows(1, 0)), ([0, 5, 0, 0], [0, 0, 5, 0]));
    assert_eq!((flows(0, 1), flows(1, 2)), ([0, 0, 0, 5], [0, 5, 0, 0]));
    assert_eq!((flows(0, 2), flows(1, 1)), ([5, 0, 0, 0], [5, 0, 0, 0]));
    assert_eq!((flows(0, 3), flows(1, 3)), ([0, 5, 0, 0], [0, 0, 5, 0]));
    let [left, right] = result.ports.as_slice() else { panic!("two ports") };
    assert_eq!(
        (
            left.connections.as_ref().unwrap().flows.failed,
            left.connections.as_ref().unwrap().flows.reset,
            left.connections.as_ref().unwrap().flows.aborted
        ),
        (5, 5, 10)
    );
    assert_eq!(
        (
            right.connections.as_ref().unwrap().flows.failed,
            right.connections.as_ref().unwrap().flows.expected_resets,
            right.connections.as_ref().unwrap().flows.aborted
        ),
        (0, 10, 5)
    );
    assert_eq!(left.templates[0].series.closed.iter().sum::<u64>(), 5);
}

#[test]
fn part_one_runs_one_flow_of_each_template() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let (result, flows) = run(&plan, Part::One);
    assert_eq!(flows.len(), 2);
    assert!(result.times.elapsed_s < 1.0, "{}", result.times.elapsed_s);
}

#[test]
fn frames_depend_on_the_seed_only() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let scratch = Scratch::new().unwrap();
    let frames = |name: &str, seed| {
        let options = SimulationOptions { seed, ..options(&scratch.file(name)) };
        let (_, files) = simulate(&plan, &options).unwrap();
        files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>()
    };
    let first = frames("a.pcap", 1);
    assert!(first == frames("b.pcap", 1));
    assert!(first != frames("c.pcap", 2));
    // Both sides captured the same frames at different times.
    assert_eq!(first[0].len(), first[1].len());
    assert!(first[0] != first[1]);
}

#[test]
fn ports_impair_what_they_send() {
    let plan = "
ports:
  - {name: left, impair: {loss: 5%, delay: 5ms}}
  - {name: right, impair: {loss: 5%, corrupt: 1%, delay: 10ms}}
templates:
  - name: page
    http: {response: {body: 30000}}
    client: {tx: left, addresses: 10.0.0.1, servers: 10.0.1.1, load: {rate: 20}, limit: 20}
    server: {tx: right}
";
    let plan = EmulationPlan::parse(plan).unwrap();
    let scratch = Scratch::new().unwrap();
    let simulated = |name: &str, seed| {
        let drain_timeout = Duration::from_secs(60);
        let options = SimulationOptions { seed, drain_timeout, ..options(&scratch.file(name)) };
        let (result, files) = simulate(&plan, &options).unwrap();
        (result, files.iter().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>())
    };
    let (result, frames) = simulated("a.pcap", 1);
    assert_eq!(result.notes, [""; 0]);
    let [clients, servers] = &result.ports[..] else { panic!("{result:?}") };
    assert_eq!(
        (
            clients.connections.as_ref().unwrap().flows.closed,
            clients.connections.as_ref().unwrap().flows.failed
        ),
        (20, 0),
        "{:?}",
        clients.connections.as_ref().unwrap().flows
    );
    for (port, other, round_trip_ms) in [(clients, servers, 15), (servers, clients, 15)] {
        let impairment = port.impairment.as_ref().unwrap();
        assert!(impairment.lost > 0 && impairment.in_flight == 0, "{impairment:?}");
        assert_eq!(impairment.entered, impairment.lost + impairment.delivered);
        assert_eq!(
            (port.tx.as_ref().unwrap().packets, other.rx.as_ref().unwrap().packets),
            (impairment.delivered, impairment.delivered)
        );
        assert!(
            port.connections.as_ref().unwrap().times.round_trip.p50_ns
                >= Some(round_trip_ms * 1_000_000),
            "{:?}",
            port.connections.as_ref().unwrap().times
        );
    }
    // A page needs more than one window of 10 segments, and some segments are lost.
    assert!(servers.connections.as_ref().unwrap().tcp["sndrexmitpack"] > 0);
    assert_eq!(
        clients.connections.as_ref().unwrap().flows.malformed,
        servers.impairment.as_ref().unwrap().corrupted
    );
    // Impairments are random, but reproducible with the same seed.
    let (again, same) = simulated("b.pcap", 1);
    assert!(
        frames == same
            && again.ports[1].connections.as_ref().unwrap().tcp
                == servers.connections.as_ref().unwrap().tcp
    );
    assert!(frames != simulated("c.pcap", 2).1);
}

#[test]
fn limit_bounds_the_flows_of_each_template() {
    let plan = EmulationPlan::parse(PLAN).unwrap();
    let made = |limit, flows_max| {
        let scratch = Scratch::new().unwrap();
        let options = SimulationOptions { limit, flows_max, ..options(&scratch.file("out.pcap")) };
        let (result, _) = simulate(&plan, &options).unwrap();
        let clients = &result.ports[0];
        let made = clients.templates.iter().map(|it| it.tcp["connects"]).collect::<Vec<_>>();
        (made, clients.connections.as_ref().unwrap().flows.flow_table_full)
    };
    let (all, overflow) = made(None, 1_000);
    assert_eq!(overflow, 0);
    assert_eq!(made(Some(7), 1_000), (all.iter().map(|made| 7.min(*made)).collect(), 0));
    let (fewer, overflow) = made(None, 1);
    assert!(overflow > 0 && fewer.iter().sum::<u64>() < all.iter().sum(), "{fewer:?} of {all:?}");
}

#[test]
fn simulation_requires_both_sides() {
    let mut plan = EmulationPlan::parse(PLAN).unwrap();
    plan.templates[1].server = None;
    let scratch = Scratch::new().unwrap();
    let error = simulate(&plan, &options(&scratch.file("out.pcap"))).unwrap_err();
    let expected = "templates[1]: a simulation needs the servers too";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// TRex profile with two servers at one port, selected by the first bytes. One of them resets.
const PROFILE: &str = r#"{
  "buf_list": ["b25l", "dHdv", {"base": "", "size": 3000, "fill": "eg=="}],
  "ip_gen_dist_list": [
    {"ip_start": "16.0.0.0", "ip_end": "16.0.0.9", "ip_offset": "1.0.0.0", "dir": "c", "distribution": "seq"},
    {"ip_start": "17.0.0.0", "ip_end": "17.0.0.9", "ip_offset": "1.0.0.0", "dir": "c", "distribution": "seq"},
    {"ip_start": "48.0.0.0", "ip_end": "48.0.0.9", "ip_offset": "1.0.0.0", "dir": "s", "distribution": "seq"}],
  "program_list": [
    {"commands": [{"name": "connect"}, {"name": "tx", "buf_index": 0}, {"name": "rx", "min_bytes": 3000}]},
    {"commands": [{"name": "rx", "min_bytes": 3}, {"name": "delay", "usec": 30000}, {"name": "tx", "buf_index": 2}, {"name": "nc"}]},
    {"commands": [{"name": "tx", "buf_index": 1}, {"name": "rx", "min_bytes": 3000}]},
    {"commands": [{"name": "rx", "min_bytes": 3}, {"name": "reset"}]}],
  "c_glob_info": {"tcp": {"mss": 1000, "do_rfc1323": 0}},
  "templates": [
    {"client_template": {"program_index": 0, "port": 80, "cps": 4, "limit": 3,
       "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 2}}},
     "server_template": {"program_index": 1, "assoc": [{"port": 80, "l7_map": {"offset": [0, 1, 2]}}]}},
    {"client_template": {"program_index": 2, "port": 80, "cps": 2,
       "ip_gen": {"dist_client": {"index": 1}, "dist_server": {"index": 2}}},
     "server_template": {"program_index": 3, "assoc": [{"port": 80, "l7_map": {"offset": [0]}}]}}],
  "tg_names": []}"#;

#[test]
fn trex_profile_determines_flows_turns_and_ends() {
    let mut plan = stateful::read(PROFILE, &StatefulOptions::default()).unwrap();
    plan.multiply(wirestorm_base::rate::Decimal::parse("2").unwrap()).unwrap();
    let (result, flows) = run(&plan, Part::Full);
    let (first, second): (Vec<_>, Vec<_>) =
        flows.iter().partition(|flow| payload(flow, Side::Client) == b"one");
    assert_eq!((first.len(), second.len()), (3, 4));
    let clients: Vec<_> = first.iter().map(|flow| flow.client.ip().to_string()).collect();
    assert_eq!(clients, ["16.0.0.0", "16.0.0.1", "16.0.0.2"]);
    for flow in first {
        assert_eq!(payload(flow, Side::Server), [b'z'; 3_000]);
        let answer = flow.turns.iter().find(|turn| turn.side == Side::Server).unwrap();
        let delay = answer.gap.as_nanos() / 1_000_000;
        assert!((30..=33).contains(&delay), "{delay} ms");
        let ends: Vec<_> = flow.turns.iter().filter(|turn| turn.act == Action::Close).collect();
        assert_eq!([ends[0].side, ends[1].side], [Side::Client, Side::Server]);
    }
    for flow in second {
        assert_eq!(flow.turns.last().map(|turn| &turn.act), Some(&Action::Reset));
    }
    assert_eq!(result.ports[0].connections.as_ref().unwrap().flows.closed, 3);
}

/// Fields of an IPv4/TCP frame: first byte of the source, TTL and type of service, flags, window,
/// options without timestamp values, payload length.
type Shown = (u8, [u8; 2], u8, u16, Vec<u8>, usize);

fn shown(frame: &[u8]) -> Shown {
    let (ip, tcp) = (&frame[14..34], &frame[34..]);
    let (header, total) =
        (usize::from(tcp[12] >> 4) * 4, usize::from(ip[2]) << 8 | usize::from(ip[3]));
    let mut options = tcp[20..header].to_vec();
    if let Some(at) = options.windows(2).position(|it| it == [8, 10]) {
        options[at + 2..at + 10].fill(0);
    }
    let window = u16::from_be_bytes([tcp[14], tcp[15]]);
    (ip[12], [ip[8], ip[1]], tcp[13], window, options, total - 20 - header)
}

#[test]
fn trex_profile_tunables_show_in_frames() {
    let mut profile = PROFILE.replace(
        r#""c_glob_info": {"tcp": {"mss": 1000, "do_rfc1323": 0}}"#,
        r#""c_glob_info": {"tcp": {"mss": 1000, "rxbufsize": 8192}, "ip": {"ttl": 33, "tos": 8}},
           "s_glob_info": {"tcp": {"mss": 700, "do_rfc1323": 0, "initwnd": 2}, "ip": {"ttl": 99}}"#,
    );
    let second = profile.find(",\n    {\"client_template\": {\"program_index\": 2").unwrap();
    let behind = profile.find("],\n  \"tg_names\"").unwrap();
    profile.replace_range(second..behind, "");
    let plan = stateful::read(&profile, &StatefulOptions::default()).unwrap();
    let scratch = Scratch::new().unwrap();
    let (_, files) = simulate(&plan, &options(&scratch.file("out.pcap"))).unwrap();
    let capture = std::fs::read(&files[0]).unwrap();
    let frames = Records::new(&capture).map(|it| shown(it.unwrap().1)).take(6);
    let (client, server) = ([33, 8], [99, 0]);
    let offered = [
        &[2, 4, 3, 232, 4, 2, 8, 10][..],
        &[0; 8],
        // Window scaling is on with a shift of 0.
        &[1, 3, 3, 0],
    ];
    assert_eq!(
        frames.collect::<Vec<_>>(),
        [
            (16, client, 2, 8_192, offered.concat(), 0),
            (48, server, 18, 32_768, vec![2, 4, 2, 188, 1, 1, 4, 2], 0),
            (16, client, 24, 8_192, vec![], 3),
            // Segments with the server's MSS, and no more at once than its initial window.
            (48, server, 16, 32_768, vec![], 700),
            (48, server, 16, 32_768, vec![], 700),
            (16, client, 16, 8_192, vec![], 0),
        ]
    );
}

#[test]
fn programs_start_child_flows_of_groups_and_wait() {
    let plan = EmulationPlan::parse(
        r#"
ports: [{name: left}, {name: right}]
templates:
  - name: browser
    client:
      tx: left
      addresses: 10.0.0.7
      servers: 10.0.1.1
      load: {rate: 1}
      program: [{send: hello}, {select_group: parts}, run_flow, run_flow, {send: bye}]
    server: {tx: right, port: 80, program: [{receive: 8}]}
  - name: part
    group: parts
    client:
      tx: left
      addresses: 10.0.0.1-10.0.0.9
      servers: 10.0.1.2
      server_port: 81
      load: on_demand
      program: [{send: get}, {receive: 4}]
    server: {tx: right, port: 81, program: [{receive: 3}, {delay: 10ms}, {send: part}]}
"#,
    )
    .unwrap();
    let (result, flows) = run(&plan, Part::One);
    let payload: Vec<_> = flows.iter().map(|flow| payload(flow, Side::Client)).collect();
    assert_eq!(payload, [&b"hellobye"[..], b"get", b"get"]);
    // All flows come from the same client, one after the other.
    assert!(flows.iter().all(|flow| flow.client.ip().to_string() == "10.0.0.7"));
    let browser = &result.ports[0].templates[0];
    assert_eq!((browser.flows["flows_total"], browser.flows["flows_other"]), (2, 2));
    let bye = flows[0].turns.iter().filter(|turn| turn.side == Side::Client).nth(1).unwrap();
    assert!(bye.gap.as_nanos() >= 20_000_000, "{:?}", bye.gap);
}

#[test]
fn simulation_does_not_resolve_next_hops() {
    let devices = "devices: [{clients: 10.0.0.1-10.0.0.4, next_hop: 10.9.0.1}]";
    let text = PLAN.replace("load: {rate: 20}", &format!("load: {{rate: 20}}\n      {devices}"));
    let (result, flows) = run(&EmulationPlan::parse(&text).unwrap(), Part::Full);
    assert_eq!((flows.len(), result.ports[0].connections.as_ref().unwrap().flows.failed), (30, 0));
    let note = "a simulation does not resolve next hops: frames go straight to the other side";
    assert_eq!(result.notes, [note]);
}

#[test]
fn clients_use_the_vlan_and_next_hop_of_devices() {
    let text = PLAN.replace(
        "      load: {rate: 20}",
        "      load: {rate: 20}
      devices:
        - {clients: 10.0.0.1-10.0.0.3, stride: 2, count: 2, vlan: 7, dst: \"02:00:00:00:09:ff\"}
        - {clients: 10.0.0.1-10.0.0.3, vlan: 8}",
    );
    let plan = EmulationPlan::parse(&text).unwrap();
    let scratch = Scratch::new().unwrap();
    let (result, files) = simulate(&plan, &options(&scratch.file("out.pcap"))).unwrap();
    assert_eq!(
        (
            result.ports[0].connections.as_ref().unwrap().flows.closed,
            result.ports[0].connections.as_ref().unwrap().flows.failed
        ),
        (30, 0)
    );
    let capture = std::fs::read(&files[0]).unwrap();
    let mut links = std::collections::BTreeSet::new();
    for record in Records::new(&capture) {
        let (_, frame) = record.unwrap();
        let ip = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
        let is_tcp = frame[ip + 9] == 6;
        if is_tcp && frame[ip + 12..ip + 15] == [10, 0, 0] {
            links.insert((frame[ip + 15], frame[..6].to_vec(), frame[12..ip - 2].to_vec()));
        }
    }
    let device = |last: [u8; 2]| vec![2, 0, 0, 0, last[0], last[1]];
    let tag = vec![0x81, 0, 0, 7];
    let expected = [
        (1, device([9, 0xff]), tag.clone()),
        // Without `dst`, frames go to the other side's port.
        (2, vec![2, 0, 0, 0, 0, 2], vec![0x81, 0, 0, 8]),
        (3, device([10, 0]), tag),
        (4, vec![2, 0, 0, 0, 0, 2], Vec::new()),
    ];
    assert_eq!(links.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn page_does_not_wait_for_delayed_acknowledgements() {
    let plan = "
ports: [{name: left}, {name: right}]
templates:
  - name: page
    http: {response: {body: 1000}}
    client: {tx: left, addresses: 10.0.0.1, servers: 10.0.1.1, load: {rate: 20}}
    server: {tx: right}
";
    let (result, flows) = run(&EmulationPlan::parse(plan).unwrap(), Part::Full);
    assert_eq!((flows.len(), result.ports[0].connections.as_ref().unwrap().flows.failed), (20, 0));
    // Round trips of 2 ms: handshake, page with the server's FIN, client's FIN.
    let duration = &result.ports[0].connections.as_ref().unwrap().times.duration;
    assert!(duration.max_ns.is_some_and(|it| it < 8_000_000), "{duration:?}");
}

#[test]
fn group_times_merge_those_of_their_templates() {
    let template = |name: &str, delay: &str, rate: u32| {
        format!(
            "  - name: {name}\n    group: pages\n    http: {{response: {{body: 1000, delay: {delay}}}}}\n    \
             client: {{tx: left, addresses: 10.0.0.1, servers: 10.0.1.1, server_port: {rate}, load: {{rate: {rate}}}}}\n    \
             server: {{tx: right, port: {rate}}}\n"
        )
    };
    let head = "ports: [{name: left}, {name: right}]\ntemplates:\n";
    let plan = [head, &template("fast", "10ms", 30), &template("slow", "50ms", 10)].concat();
    let (result, _) = run(&EmulationPlan::parse(&plan).unwrap(), Part::Full);
    let [fast, slow] = &result.ports[0].templates[..] else { panic!("{:?}", result.ports[0]) };
    let [group, servers] = &result.groups[..] else { panic!("{:?}", result.groups) };
    assert_eq!(group.templates, 2);
    let [group, servers] = [group, servers].map(|it| &it.sum);
    assert_eq!((group.name.as_str(), &*group.side), ("pages", "client"));

    // A page takes one round trip of 2 ms and the delay, which is exact to 1 ms.
    let [of_fast, of_slow, of_all] =
        [&fast.transactions, &slow.transactions, &group.transactions].map(|it| &it[0]);
    assert_eq!((of_fast.name.as_str(), of_fast.started, of_fast.time.count), ("http", 30, 30));
    assert!(of_fast.min_ns.is_some_and(|it| (11_000_000..13_000_000).contains(&it)), "{of_fast:?}");
    assert!(
        of_slow.time.max_ns.is_some_and(|it| (51_000_000..53_000_000).contains(&it)),
        "{of_slow:?}"
    );
    assert_eq!((of_all.name.as_str(), of_all.started, of_all.time.count), ("http", 40, 40));
    assert_eq!((of_all.min_ns, of_all.time.max_ns), (of_fast.min_ns, of_slow.time.max_ns));
    let [fast_ns, slow_ns] = [of_fast.mean_ns, of_slow.mean_ns].map(Option::unwrap);
    assert_eq!(of_all.mean_ns, Some((30 * fast_ns + 10 * slow_ns) / 40));
    assert_eq!(of_all.time.p50_ns, of_fast.time.p50_ns);
    assert!(of_all.time.p90_ns >= Some(50_000_000), "{of_all:?}");
    let buckets = [&of_fast.time, &of_slow.time].map(|it| it.buckets.clone()).concat();
    assert_eq!(of_all.time.buckets, buckets);

    assert_eq!(group.times.connect.count, 40);
    assert_eq!(group.times.duration.max_ns, slow.times.duration.max_ns);
    assert_eq!(group.times.time_to_first_byte.p50_ns, fast.times.time_to_first_byte.p50_ns);
    assert!(servers.transactions.is_empty(), "{servers:?}");
    assert_eq!(servers.times.connect.count, 40);
}

/// TRex's `udp_latency.py`, twice in a group, with 10 ms between its four datagrams and 3 ms before
/// the answer.
const LATENCY: &str = r#"{
  "buf_list": ["cXVlc3Rpb24=", "YW5zd2Vy"],
  "ip_gen_dist_list": [
    {"ip_start": "16.0.0.0", "ip_end": "16.0.0.255", "ip_offset": "1.0.0.0", "dir": "c", "distribution": "seq"},
    {"ip_start": "48.0.0.0", "ip_end": "48.0.255.255", "ip_offset": "1.0.0.0", "dir": "s", "distribution": "seq"}],
  "program_list": [
    {"stream": false, "addon": "latency", "commands": [{"name": "set_var", "id": 0, "val": 4}, {"name": "tx_msg", "buf_index": 0},
      {"name": "delay", "usec": 10000}, {"name": "jmp_nz", "id": 0, "offset": -2}]},
    {"stream": false, "addon": "latency", "commands": [{"name": "rx_msg", "min_pkts": 1}, {"name": "delay", "usec": 3000},
      {"name": "tx_msg", "buf_index": 1}, {"name": "rx_msg", "min_pkts": 4}]}],
  "templates": [
    {"client_template": {"program_index": 0, "port": 80, "cps": 5,
       "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}},
     "server_template": {"program_index": 1, "assoc": [{"port": 80}]}, "tg_id": 1},
    {"client_template": {"program_index": 0, "port": 80, "cps": 5,
       "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}}},
     "server_template": {"program_index": 1, "assoc": [{"port": 80}]}, "tg_id": 1}],
  "tg_names": ["latency"]}"#;

#[test]
fn latency_add_on_measures_datagram_latency() {
    let plan = stateful::read(LATENCY, &StatefulOptions::default()).unwrap();
    assert_eq!(plan.notes, [""; 0]);
    let (result, flows) = run(&plan, Part::Full);
    assert_eq!(flows.len(), 10);
    let mut sources: Vec<_> = flows.iter().map(|it| payload(it, Side::Client)[11]).collect();
    sources.sort_unstable();
    assert_eq!(sources, [[0x78; 5], [0x79; 5]].concat());
    for flow in &flows {
        let [request, answered] = [Side::Client, Side::Server].map(|side| payload(flow, side));
        assert_eq!((request.len(), answered.len()), (4 * (12 + 8), 12 + 6));
        for (sequence, datagram) in (0..).zip(request.chunks(20)) {
            assert_eq!(datagram[..4], [0, 0, 0, sequence]);
            assert_eq!(datagram[8..11], [0x12, 0x34, 0x56]);
            assert_eq!(datagram[12..], *b"question");
        }
        // The answer carries the timestamp of the last request, the only one received by then.
        assert_eq!((&answered[..12], &answered[12..]), (&request[..12], &b"answer"[..]));
    }
    // A round trip of 2 ms, and the delay before the answer, which is exact to 1 ms.
    for (port, count, least, most) in [(0, 5, 5_000, 6_200), (1, 20, 1_000, 1_100)] {
        for template in &result.ports[port].templates {
            let stamped = template.datagram_latency.as_ref().unwrap();
            assert_eq!((stamped.datagrams, stamped.times.count), (count, count));
            let (min, max) = (stamped.min_us.unwrap(), stamped.max_us.unwrap());
            assert!(least <= min && min <= max && max <= most, "{stamped:?}");
            assert!((count * min..=count * max).contains(&stamped.total_us), "{stamped:?}");
        }
        let [first, second] = &result.ports[port].templates[..] else { panic!("two templates") };
        let [first, second] = [first, second].map(|it| it.datagram_latency.clone().unwrap());
        let group = result.groups[port].sum.datagram_latency.as_ref().unwrap();
        assert_eq!((group.datagrams, group.times.count), (2 * count, 2 * count));
        assert_eq!(group.total_us, first.total_us + second.total_us);
        assert_eq!(group.min_us, first.min_us.min(second.min_us));
        assert_eq!(group.max_us, first.max_us.max(second.max_us));
    }
}
