mod loads;
mod ports;
mod programs;
mod refused;
mod settings;
mod tls;

use std::net::IpAddr;
use std::num::NonZeroU16;

use super::*;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::impairment::{Loss, Probability, Queue};
use wirestorm_model::ip::{FlowLabel, Identification};
use wirestorm_model::load::ThinkTime;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::{
    Comparison, Composition, Condition, CountAmount, Delimiter, Field, JumpCondition, Label,
    MessageFraming, MessagePart, Number, Piece, TextVariable, TimeVariable, UserCounter, Value,
    ValueFormat, Variable,
};
use wirestorm_model::tcp::{Algorithm, EcnMode};
use wirestorm_model::tunnel::ClientTunnels;
use wirestorm_wire::conversation::{self, Action, Conversation, Turn};

const PAGE: &str = r#"
ports:
  - {name: c, addresses: 10.0.0.1/24}
  - {name: s}
templates:
  - name: page
    client:
      tx: c
      servers: 10.0.1.1-10.0.1.255
      load: {rate: 5k}
      limit: 100
      program:
        - send: "GET / HTTP/1.1\r\n\r\n"
        - receive: 32000
        - wait_for_close
      ip: {ttl: 9}
    server:
      tx: s
      tcp: {mss: 900}
      port: 80
      program:
        - receive: 18
        - delay: {min: 1ms, max: 2ms}
        - send: {text: "HTTP/1.1 200 OK\r\n\r\n", size: 32000, fill: ab}
    tcp: {mss: 1460, congestion: new_reno, delayed_ack: 40ms, sack: false}
    ip: {tos: 4}
"#;

#[test]
fn template_has_a_client_and_a_server() {
    let plan = EmulationPlan::parse(PAGE).unwrap();
    let [template] = plan.templates.as_slice() else { panic!("{plan:?}") };
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!((client.transmit, server.transmit), (0, 1));
    assert_eq!(client.addresses, None);
    assert_eq!(client.servers.count, 255);
    assert_eq!(
        (client.server_port, client.ports.clone(), client.limit),
        (80, 1_024..=65_535, Some(100))
    );
    assert_eq!(
        client.load,
        Load::Rate { rate: Rate::parse_per_second("5000", 1).unwrap(), concurrent_max: None }
    );
    assert_eq!(client.program[1..], [Step::Receive(32_000), Step::WaitForClose]);
    let delay = Step::Delay { min: Duration::from_millis(1), max: Duration::from_millis(2) };
    let text = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let send = Step::Send { text, size: 32_000, fill: b"ab".to_vec() };
    assert_eq!(server.program, [Step::Receive(18), delay, send]);
    let tcp = Tcp {
        mss: Some(1_460),
        congestion: Some(Algorithm::NewReno),
        delayed_ack_ms: Some(40),
        sack: Some(false),
        ..Tcp::default()
    };
    assert_eq!((client.tcp, server.tcp), (tcp, Tcp { mss: Some(900), ..tcp }));
    assert_eq!(client.ip, Ip { ttl: Some(9), tos: Some(4), ..Ip::default() });
    assert_eq!(server.ip, Ip { ttl: None, tos: Some(4), ..Ip::default() });
}

#[test]
fn server_addresses_without_a_client_are_noted() {
    let with = |addresses: &str| {
        let server = format!("tx: s\n      addresses: \"{addresses}\"");
        EmulationPlan::parse(&PAGE.replace("tx: s", &server)).unwrap().notes
    };
    assert_eq!(with("10.0.1.200-10.0.2.9"), [""; 0]);
    for addresses in ["10.0.2.1-10.0.2.9", "2001:db8::1"] {
        let notes = with(addresses);
        let expected = "templates[0].server.addresses: no client of the plan connects to any of";
        assert!(notes.len() == 1 && notes[0].starts_with(expected), "{notes:?}");
    }
}

/// Returns the error of [`PAGE`] with `part` replaced by `other`.
fn error(part: &str, other: &str) -> String {
    assert!(PAGE.contains(part), "{part}");
    EmulationPlan::parse(&PAGE.replace(part, other)).unwrap_err().to_string()
}

/// Returns the steps of a client's program, or the error. Each line of `list` is a step.
fn steps(list: &str) -> Result<Vec<Step>, String> {
    let lines = list.lines().map(|line| format!("        - {}\n", line.trim()));
    let plan = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}]\ntemplates:\n  - name: a\n    client:\n      \
         tx: c\n      servers: 10.0.1.1\n      load: {{concurrent: 1}}\n      program:\n{}",
        lines.collect::<String>()
    );
    let plan = EmulationPlan::parse(&plan).map_err(|errors| errors.to_string())?;
    Ok(plan.templates[0].client.clone().unwrap().program)
}
