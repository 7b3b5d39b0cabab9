//! Programs that insert variables into sent data and check received data, in virtual time.

use std::path::Path;

use wirestorm_control::emulation::SimulationOptions;
use wirestorm_control::result::{RunResult, TemplateReport};
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_wire::conversation::{Action, Conversation, Side};

use super::simulation;

/// Simulates a plan. Returns the result and the conversations of the clients' capture, in the order
/// of their first packets.
fn run(text: &str, seed: u64) -> (RunResult, Vec<Conversation>) {
    let plan = EmulationPlan::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    let options = SimulationOptions { seed, ..simulation::options() };
    let (result, capture) = simulation::captured(&plan, options);
    (result, simulation::conversations(&capture))
}

/// Returns all payload of one side.
fn said(conversation: &Conversation, side: Side) -> String {
    let of_side = conversation.turns.iter().filter(|turn| turn.side == side);
    let bytes = of_side.filter_map(|turn| match &turn.act {
        Action::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>().concat()).into_owned()
}

/// Builds a plan with programs for both sides, one step for each line.
fn plan(more: &str, client: &str, server: &str) -> String {
    let steps = |steps: &str| {
        let lines = steps.lines().map(|line| format!("        - {}\n", line.trim()));
        lines.collect::<String>()
    };
    format!(
        "ports: [{{name: c}}, {{name: s}}]\ntemplates:\n  - name: t\n    {more}\n    client:\n      \
         tx: c\n      addresses: 10.0.0.1-10.0.0.2\n      servers: 10.0.1.1\n      server_port: 80\n      \
         load: {{rate: 10}}\n      limit: 3\n      program:\n{}    server:\n      tx: s\n      port: \
         80\n      program:\n{}",
        steps(client),
        steps(server)
    )
}

fn templates(result: &RunResult) -> [&TemplateReport; 2] {
    [&result.ports[0].templates[0], &result.ports[1].templates[0]]
}

/// Asserts that all flows of both sides closed and none failed.
#[track_caller]
fn assert_closed(result: &RunResult, flows: u64) {
    for report in templates(result) {
        let found: Vec<_> = report.failures.iter().collect();
        assert_eq!(report.flows["closed"], flows, "{}: {found:?}", report.side);
        assert!(report.failures.is_empty(), "{}: {found:?}", report.side);
    }
}

#[test]
fn variables_have_values_for_each_flow() {
    let text = plan(
        "",
        "set: {n: {counter: {start: 5, step: 10, max: 20}}}
         set: {key: {random_text: 8}}
         set: {pin: {random: {min: 1000, max: 9999}}}
         send: \"${flow} ${n} ${n:04} ${client} ${server}:${server_port} ${key} ${pin} $${no}\\n\"
         send: {hex: 'aa bb cc dd', fields: [{offset: 1, width: 2, value: n}]}
         receive: {until: \"\\n\"}
         expect: \"seen ${key:hex}\\n\"",
        "receive: {until: \"\\n\"}
         extract: {key: {pattern: ' (\\w{8}) '}}
         receive: 4
         send: \"seen ${key:hex}\\n\"",
    );
    let (result, flows) = run(&text, 1);
    assert_closed(&result, 3);
    let mut keys = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let said = said(flow, Side::Client);
        let words: Vec<_> = said.split([' ', '\n']).collect();
        let n = [5, 15, 5][number];
        let client = ["10.0.0.1", "10.0.0.2"][number % 2];
        let expected = format!("{} {n} {n:04} {client} 10.0.1.1:80", number + 1);
        assert_eq!(words[..5].join(" "), expected);
        assert!((1_000..=9_999).contains(&words[6].parse::<u32>().unwrap()));
        assert_eq!(words[7], "${no}");
        keys.push(words[5].to_owned());
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3, "each has its own");
    let again = run(&text, 1).1;
    assert_eq!(said(&again[2], Side::Client), said(&flows[2], Side::Client));
    let others = run(&text, 2).1;
    assert_ne!(said(&others[2], Side::Client), said(&flows[2], Side::Client));
}

#[test]
fn login_example_completes_all_flows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/login.yaml");
    let (result, flows) = run(&std::fs::read_to_string(file).unwrap(), 1);
    assert_closed(&result, 200);
    let [client, server] = templates(&result);
    assert!(server.transactions.is_empty());
    assert_eq!(client.transactions.len(), 2);
    for (name, transaction) in ["login", "item"].into_iter().zip(&client.transactions) {
        assert_eq!(transaction.name, name);
        assert_eq!((transaction.started, transaction.time.count), (200, 200));
        // One round trip each. The first transaction also includes the handshake.
        let least = if name == "login" { 4 } else { 2 };
        let expected = least * 1_000_000..=(least * 1_000_000 + 1_500_000);
        for nanoseconds in [transaction.min_ns, transaction.mean_ns, transaction.time.max_ns] {
            assert!(
                nanoseconds.is_some_and(|it| expected.contains(&it)),
                "{name}: {nanoseconds:?}"
            );
        }
    }
    let last = said(&flows[199], Side::Client);
    assert!(last.contains("user=user00200&"), "{last}");
    assert!(last.contains("GET /item/1199 "), "{last}");
}

#[test]
fn transactions_work_without_per_flow_payload() {
    let text = plan(
        "",
        "transaction: {start: all}
         repeat: {times: 4, steps: [{transaction: {start: one}}, {send: ask}, {receive: 2}, {transaction: {end: one}}]}
         transaction: {end: all}
         transaction: {start: lost}",
        "repeat: {times: 4, steps: [{receive: 3}, {send: it}]}",
    );
    let (result, _) = run(&text, 1);
    assert_closed(&result, 3);
    let [client, _] = templates(&result);
    let counts = client.transactions.iter().map(|it| (it.name.as_str(), it.started, it.time.count));
    assert_eq!(counts.collect::<Vec<_>>(), [("all", 3, 3), ("one", 12, 12), ("lost", 3, 0)]);
    let [all, one, lost] = client.transactions.as_slice() else { panic!("three") };
    assert_eq!((lost.min_ns, lost.mean_ns), (None, None));
    assert_eq!((lost.time.p50_ns, lost.time.max_ns), (None, None), "of nothing");
    let [all_ns, one_ns] = [all.mean_ns, one.mean_ns].map(Option::unwrap);
    assert!((3 * one_ns..=5 * one_ns).contains(&all_ns), "{all:?} {one:?}");
}

#[test]
fn failures_report_expected_and_received_data() {
    for (client, server, step, cause, offset, expected, found) in [
        (
            "send: ask\nreceive: {until: \"\\n\"}\nexpect: \"200 fine\\n\"",
            "receive: 3\nsend: \"200 fin.\\n\"",
            "program[2].expect",
            "not what was expected",
            Some(7),
            Some(r"200 fine\n"),
            r"200 fin.\n",
        ),
        (
            "send: ask\nreceive: {message: http}\nexpect: {pattern: '^HTTP/1.1 200 '}",
            "receive: 3\nsend: \"HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\n\\r\\n\"",
            "program[2].expect",
            "not what was expected",
            None,
            Some("^HTTP/1.1 200 "),
            r"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "repeat: {times: 2, steps: [{send: ask}, {receive: 2}, {extract: {a: {between: [x, y]}}}]}",
            "receive: 3\nsend: xz",
            "program[0].repeat.steps[2].extract",
            "not found",
            None,
            None,
            "xz",
        ),
        (
            "send: ask\nreceive: {message: http}",
            "receive: 3\nsend: \"SSH-2.0\\r\\n\"",
            "program[1].receive",
            "not an HTTP/1 message",
            None,
            None,
            "SSH-2.0\\r\\n",
        ),
        (
            "send: ask\nreceive: {message: http}",
            "receive: 3\nsend: \"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nhalf\"",
            "program[1].receive",
            "closed before all data arrived",
            None,
            None,
            r"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        ),
        (
            "send: ask\nreceive: 5\nexpect: hello",
            "receive: 3",
            "program[1].receive",
            "closed before all data arrived",
            None,
            None,
            "",
        ),
        (
            "set: {a: {random_text: 9000}}\nset: {b: {text: '${a}${a}'}}\nsend: ask",
            "wait_for_close",
            "program[1].set",
            "too long",
            None,
            None,
            "",
        ),
        (
            "send: ask\nreceive: {until: x}",
            "receive: 3\nsend: {size: 2000000, fill: y}",
            "program[1].receive",
            "closed before the delimiter arrived",
            None,
            None,
            &"y".repeat(200),
        ),
        (
            "send: ask\ndelay: 500ms\nreceive: {until: x}",
            "receive: 3\nsend: {size: 2000000, fill: y}",
            "program[1]",
            "receive buffer full",
            None,
            None,
            "",
        ),
    ] {
        let (result, _) = run(&plan("", client, server), 1);
        let [report, _] = templates(&result);
        assert_eq!(report.flows["program_failed"], 3, "{client}");
        assert_eq!(result.ports[0].connections.as_ref().unwrap().flows.program_failed, 3);
        assert_eq!(result.ports[0].connections.as_ref().unwrap().flows.failed, 3);
        let [failure] = report.failures.as_slice() else { panic!("{:?}", report.failures) };
        assert_eq!((failure.step.as_str(), &*failure.cause, failure.flows), (step, cause, 3));
        assert_eq!((failure.offset, failure.expected.as_deref()), (offset, expected), "{client}");
        assert_eq!(failure.found, found, "{client}");
    }
}

#[test]
fn close_between_messages_is_no_failure() {
    let text = plan(
        "",
        "repeat: {times: 2, steps: [{send: \"GET / HTTP/1.1\\r\\n\\r\\n\"}, {receive: {message: http}}]}",
        "repeat: {steps: [{receive: {message: http}}, {send: \"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n\"}]}",
    );
    let (result, _) = run(&text, 1);
    assert_closed(&result, 3);
    // The same if the server also checks each message.
    let looks = text.replacen(
        "{receive: {message: http}}, {send: \"HTTP",
        "{receive: {message: http}}, {expect: {contains: GET}}, {send: \"HTTP",
        1,
    );
    assert_ne!(looks, text);
    assert_closed(&run(&looks, 1).0, 3);
    // A response without a length ends with the connection.
    let text = plan(
        "",
        "send: \"GET / HTTP/1.0\\r\\n\\r\\n\"
         receive: {message: http}
         expect: {contains: all of it}",
        "receive: {message: http}
         send: \"HTTP/1.0 200 OK\\r\\n\\r\\nthis is all of it\"",
    );
    let (result, _) = run(&text, 1);
    assert_closed(&result, 3);
}

#[test]
fn data_received_together_is_consumed_step_by_step() {
    let text = plan(
        "",
        "send: ask
         receive: {until: ;}
         expect: one;
         receive: 4
         expect: {hex: '0001 02ff'}
         receive: {until: ;}
         expect: {contains: hre}
         receive: 100000
         expect: {pattern: ^abab}
         receive: 1",
        "receive: 3
         send: {hex: '6f6e653b 000102ff 74687265653b'}
         send: {size: 100000, fill: ab}
         send: e",
    );
    let (result, _) = run(&text, 1);
    assert_closed(&result, 3);
}

#[test]
fn variables_and_checks_work_inside_tls() {
    let text = plan(
        "tls: true",
        "send: {text: \"I am ${client}\\n\", size: 70000, fill: .}
         receive: {until: \"\\n\"}
         expect: \"you are ${client}\\n\"",
        "receive: 70000
         extract: {who: {between: [\"am \", \"\\n\"]}}
         send: \"you are ${who}\\n\"",
    );
    let (result, _) = run(&text, 1);
    assert_closed(&result, 3);
    assert_eq!(result.ports[0].connections.as_ref().unwrap().tls.as_ref().unwrap().truncated, 0);
}

#[test]
fn variables_and_checks_work_in_datagrams() {
    let text = plan(
        "transport: udp",
        "set: {id: {random: {max: 65535}}}
         send_datagram: {hex: '0000 01', fields: [{offset: 0, width: 2, value: id}]}
         receive_datagrams: 2
         expect: \"${id:u16} second\"
         receive_datagrams: 1
         expect: third",
        "receive_datagrams: 1
         extract: {id: {offset: 0, length: 2}}
         send_datagram: first
         send_datagram: \"${id} second\"
         send_datagram: third",
    );
    let (result, flows) = run(&text, 1);
    assert_closed(&result, 3);
    assert_ne!(said(&flows[0], Side::Client), said(&flows[1], Side::Client));
    let (result, _) = run(&text.replace("expect: third", "expect: other"), 1);
    let [client, _] = templates(&result);
    assert_eq!((client.flows["program_failed"], client.flows["closed"]), (3, 0));
    assert_eq!(client.failures[0].found, "third");
}
