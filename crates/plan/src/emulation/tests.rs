use super::*;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;

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
    server:
      tx: s
      port: 80
      program:
        - receive: 18
        - delay: {min: 1ms, max: 2ms}
        - send: {text: "HTTP/1.1 200 OK\r\n\r\n", size: 32000, fill: ab}
    tcp: {mss: 1460, congestion: new_reno, delayed_ack: 40ms, sack: false}
"#;

#[test]
fn a_template_has_two_ends() {
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
    assert_eq!(client.load, Load::Rate(Rate::parse_per_second("5000", 1).unwrap()));
    assert_eq!(client.program[1..], [Step::Receive(32_000), Step::WaitForClose]);
    let delay = Step::Delay { min: Duration::from_millis(1), max: Duration::from_millis(2) };
    let text = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let send = Step::Send { text, size: 32_000, fill: b"ab".to_vec() };
    assert_eq!(server.program, [Step::Receive(18), delay, send]);
    let tcp = Tcp {
        mss: Some(1_460),
        congestion: Some(Congestion::NewReno),
        delayed_ack_ms: Some(40),
        sack: Some(false),
        ..Tcp::default()
    };
    assert_eq!(template.tcp, tcp);
}

/// What is said where a part of the plan above is another one.
fn error(part: &str, other: &str) -> String {
    assert!(PAGE.contains(part), "{part}");
    EmulationPlan::parse(&PAGE.replace(part, other)).unwrap_err().to_string()
}

#[test]
fn every_error_has_its_path() {
    for (part, other, expected) in [
        (
            "tx: c",
            "tx: d",
            "templates[0].client.tx: found \"d\", expected one of the plan's ports: c, s",
        ),
        (
            "port: 80",
            "port: 0",
            "templates[0].server.port: found 0, expected a whole number from 1 to 65535",
        ),
        (
            "10.0.1.1-10.0.1.255",
            "10.0.1.9-10.0.1.1",
            "templates[0].client.servers: found \"10.0.1.9-10.0.1.1\", expected an address, or two",
        ),
        (
            "10.0.1.1-10.0.1.255",
            "2001:db8::1",
            "templates[0].client.servers: found \"2001:db8::1\", expected addresses of the clients' family",
        ),
        (
            "{name: c, addresses: 10.0.0.1/24}",
            "{name: c}",
            "templates[0].client: the clients have no addresses",
        ),
        (
            "{rate: 5k}",
            "{rate: fast}",
            "templates[0].client.load.rate: found \"fast\", expected connections a second",
        ),
        ("{rate: 5k}", "{rate: 1, hold: 2}", "templates[0].client.load: found both"),
        (
            "- receive: 18",
            "- recieve: 18",
            "templates[0].server.program[0].recieve: found an unknown field, expected receive?",
        ),
        (
            "- receive: 18",
            "- reset",
            "templates[0].server.program[0]: found a step behind which nothing is done",
        ),
        (
            "size: 32000",
            "size: 3",
            "templates[0].server.program[2].send.size: found 3, expected a whole number from 19 to 1073741824",
        ),
        (
            "max: 2ms",
            "max: 2us",
            "templates[0].server.program[1].delay.max: found \"2us\", expected at least as much as min",
        ),
        (
            "delayed_ack: 40ms",
            "delayed_ack: 40us",
            "templates[0].tcp.delayed_ack: found \"40us\", expected whole milliseconds",
        ),
        ("mss: 1460", "mss: 1", "templates[0].tcp.mss: found 1, expected a whole number from 88"),
        ("name: page", "name: page, nam: 1", "plan: found no YAML"),
    ] {
        let found = error(part, other);
        assert!(found.starts_with(expected), "{other}: {found}");
    }
    let twice = PAGE.to_owned() + PAGE.split("templates:").nth(1).unwrap();
    let found = EmulationPlan::parse(&twice).unwrap_err().to_string();
    let expected = "templates[1]: found a second template \"page\", expected a name of its own\n\
                    templates[1]: another template has a server at port 80 of \"s\" already";
    assert_eq!(found, expected);
}

#[test]
fn loops_lie_within_each_other_up_to_a_depth() {
    let nested = |depth: usize| {
        let mut steps = "[{receive: 1}]".to_owned();
        for _ in 0..depth {
            steps = format!("[{{repeat: {{steps: {steps}}}}}]");
        }
        EmulationPlan::parse(&format!(
            "{{\"ports\": [{{\"name\": \"s\"}}], \"templates\": [{{\"name\": \"t\", \"server\": \
             {{\"tx\": \"s\", \"port\": 1, \"program\": {}}}}}]}}",
            steps
                .replace("repeat", "\"repeat\"")
                .replace("steps", "\"steps\"")
                .replace("receive", "\"receive\"")
        ))
    };
    assert!(nested(program::DEPTH_MAX).is_ok());
    let error = nested(program::DEPTH_MAX + 1).unwrap_err().to_string();
    assert!(error.ends_with("repeat: loops within each other are at most 8"), "{error}");
}
