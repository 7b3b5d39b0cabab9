//! Templates whose programs come from captures.

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::load::Load;
use wirestorm_model::program::Step;
use wirestorm_plan::emulation::{self, EmulationPlan};
use wirestorm_wire::conversation::{
    Action, Conversation, ConversationError, Imported, Side, Transport, Turn,
};

const MS: u64 = 1_000;

fn turn(side: Side, gap_us: u64, act: Action) -> Turn {
    Turn { side, gap: Duration::from_micros(gap_us), act }
}

fn send_turn(side: Side, gap_us: u64, bytes: &[u8]) -> Turn {
    turn(side, gap_us, Action::Send(bytes.to_vec()))
}

fn conversation(port: u16, turns: Vec<Turn>) -> Conversation {
    Conversation {
        transport: Transport::Tcp,
        client: "192.0.2.1:5000".parse().unwrap(),
        server: format!("192.0.2.2:{port}").parse().unwrap(),
        packet: 1,
        has_beginning: true,
        turns,
    }
}

/// A conversation: greeting of the server, request in two parts, answer; the server closes.
fn mail(port: u16) -> Conversation {
    let (client, server) = (Side::Client, Side::Server);
    conversation(
        port,
        vec![
            send_turn(server, 300, b"hello"),
            send_turn(client, 2 * MS + 400, b"list"),
            send_turn(client, 9 * MS, b" all\xff"),
            send_turn(server, 30 * MS, b"none"),
            turn(server, 20, Action::Close),
            turn(client, 5 * MS, Action::Close),
        ],
    )
}

/// Reads a plan with a template whose `conversation` is `setting`; the capture has these flows.
fn read(
    setting: &str,
    load: &str,
    flows: &[Result<Conversation, ConversationError>],
) -> Result<EmulationPlan, String> {
    let text = format!(
        "ports: [{{name: c, addresses: 10.0.0.1/24}}, {{name: s}}]\n\
         templates:\n\
         \x20 - name: mail\n\
         \x20   conversation: {setting}\n\
         \x20   client: {{tx: c, servers: 10.0.1.1, load: {load}}}\n\
         \x20   server: {{tx: s}}\n"
    );
    let load = |file: &str| match file {
        "mail.pcap" => Ok(Imported { flows: flows.to_vec(), others: 0 }),
        other => Err(format!("{other}: no such file")),
    };
    EmulationPlan::parse_with(&text, load).map_err(|errors| errors.to_string())
}

fn programs(plan: &EmulationPlan, template: usize) -> (Vec<Step>, Vec<Step>) {
    let template = &plan.templates[template];
    let (client, server) = (template.client.as_ref().unwrap(), template.server.as_ref().unwrap());
    assert_eq!(Some(client.server_port), server.listen);
    (client.program.clone(), server.program.clone())
}

fn send(text: &[u8]) -> Step {
    Step::Send { text: text.to_vec(), size: text.len() as u32, fill: Vec::new() }
}

/// A delay in milliseconds, half a millisecond shorter: the next timer tick ends it on time.
fn delay(ms: u64) -> Step {
    let nearly = Duration::from_micros(ms * 1_000 - 500);
    Step::Delay { min: nearly, max: nearly }
}

#[test]
fn each_side_waits_for_the_other_and_keeps_delays() {
    let plan = read("mail.pcap", "{rate: 10}", &[Ok(mail(110))]).unwrap();
    let (client, server) = programs(&plan, 0);
    let expected = [
        // Without blocking, a delay starts when the send starts, not when it is acknowledged.
        Step::SetBlocking(false),
        Step::Receive(5),
        delay(2),
        send(b"list"),
        delay(9),
        send(b" all\xff"),
        Step::Receive(4),
        Step::WaitForClose,
        delay(5),
    ];
    assert_eq!(client, expected);
    assert_eq!(server, [send(b"hello"), Step::Receive(9), delay(30), send(b"none")]);
    assert_eq!((plan.templates[0].name.as_str(), plan.notes.len()), ("mail", 0));
    assert_eq!(plan.templates[0].server.as_ref().unwrap().listen, Some(110));
}

#[test]
fn no_delay_is_the_default() {
    let no_delay_of = |setting: &str, fields: &str| {
        let plan = read(setting, &format!("{{concurrent: 1}}{fields}"), &[Ok(mail(110))]).unwrap();
        let template = &plan.templates[0];
        let sides =
            [&template.client.as_ref().unwrap().tcp, &template.server.as_ref().unwrap().tcp];
        sides.map(|tcp| tcp.no_delay)
    };
    let no_delay = |fields: &str| no_delay_of("mail.pcap", fields);
    assert_eq!(no_delay(""), [Some(true); 2]);
    assert_eq!(no_delay(", tcp: {mss: 1000}"), [Some(true); 2]);
    assert_eq!(no_delay(", tcp: {no_delay: false}"), [Some(false), Some(true)]);
    let setting = "mail.pcap\n    tcp: {no_delay: false}";
    assert_eq!(no_delay_of(setting, ""), [Some(false); 2]);
}

#[test]
fn timing_drop_removes_all_but_the_server_delay() {
    let flows = [Ok(mail(110))];
    for (setting, wait) in [("timing: drop", None), ("server_delay: 1500us", Some(1_500))] {
        let setting = format!("{{file: mail.pcap, {setting}}}");
        let (client, server) = programs(&read(&setting, "{concurrent: 1}", &flows).unwrap(), 0);
        let expected =
            [Step::Receive(5), send(b"list all\xff"), Step::Receive(4), Step::WaitForClose];
        assert_eq!(client, expected);
        let mut expected = vec![send(b"hello"), Step::Receive(9)];
        let wait = wait.map(Duration::from_micros);
        expected.extend(wait.map(|wait| Step::Delay { min: wait, max: wait }));
        expected.push(send(b"none"));
        assert_eq!(server, expected);
    }
}

#[test]
fn server_delay_can_be_random() {
    let [ms, s] = [Duration::from_millis, Duration::from_secs];
    for (setting, expected) in [
        ("{min: 1ms, max: 3ms}", Step::Delay { min: ms(1), max: ms(3) }),
        ("{mean: 2ms}", Step::RandomDelay { mean: ms(2), stddev: None }),
        ("{mean: 2s, stddev: 1ms}", Step::RandomDelay { mean: s(2), stddev: Some(ms(1)) }),
    ] {
        let setting = format!("{{file: mail.pcap, server_delay: {setting}}}");
        let (_, server) =
            programs(&read(&setting, "{concurrent: 1}", &[Ok(mail(110))]).unwrap(), 0);
        assert_eq!(server, [send(b"hello"), Step::Receive(9), expected, send(b"none")]);
    }
    // The idle timeout of UDP flows allows for the delay.
    let turns = vec![send_turn(Side::Client, 0, b"one"), send_turn(Side::Server, MS, b"two")];
    let flow = Conversation { transport: Transport::Udp, ..conversation(53, turns) };
    for (setting, idle) in [("2s", 4), ("{min: 1ms, max: 3s}", 6), ("{mean: 1s}", 40)] {
        let setting = format!("{{file: mail.pcap, server_delay: {setting}}}");
        let (client, server) =
            programs(&read(&setting, "{concurrent: 1}", &[Ok(flow.clone())]).unwrap(), 0);
        let idle = Step::SetIdleTimeout { time: s(idle), receive_only: false };
        assert_eq!((&client[0], &server[0]), (&idle, &idle));
    }
}

#[test]
fn keeps_the_end_of_a_connection() {
    let (client, server) = (Side::Client, Side::Server);
    let end = |turns: Vec<Turn>| {
        let question = [send_turn(client, 0, b"all?")];
        let flow = conversation(80, question.into_iter().chain(turns).collect());
        programs(&read("mail.pcap", "{concurrent: 1}", &[Ok(flow)]).unwrap(), 0)
    };
    // The client closes its direction before the answer.
    let half = [
        turn(client, 0, Action::Close),
        send_turn(server, 0, b"yes"),
        turn(server, 0, Action::Close),
    ];
    let expected = (vec![send(b"all?")], vec![Step::Receive(4), Step::WaitForClose, send(b"yes")]);
    assert_eq!(end(half.to_vec()), expected);
    let reset = [send_turn(server, 0, b"no"), turn(client, 3 * MS, Action::Reset)];
    let expected = (
        vec![send(b"all?"), Step::Receive(2), delay(3), Step::Reset],
        vec![Step::Receive(4), send(b"no"), Step::WaitForClose],
    );
    assert_eq!(end(reset.to_vec()), expected);
    // Wait for the acknowledgement of the last data before a reset, or the reset discards it.
    let pauses = [send_turn(client, 3 * MS, b"!"), turn(client, 3 * MS, Action::Reset)];
    let expected = vec![
        Step::SetBlocking(false),
        send(b"all?"),
        delay(3),
        Step::SetBlocking(true),
        send(b"!"),
        delay(3),
        Step::Reset,
    ];
    assert_eq!(end(pauses.to_vec()).0, expected);
    // If the capture ends before the close, the client closes after it has received all.
    let open = [send_turn(server, 0, b"no")];
    let expected = (
        vec![send(b"all?"), Step::Receive(2)],
        vec![Step::Receive(4), send(b"no"), Step::WaitForClose],
    );
    assert_eq!(end(open.to_vec()), expected);
}

#[test]
fn flows_of_a_capture_share_the_load() {
    let nothing = conversation(5, vec![turn(Side::Client, 0, Action::Reset)]);
    let late = Conversation { has_beginning: false, ..mail(25) };
    let flows = [Ok(mail(110)), Ok(nothing), Ok(late), Ok(mail(143))];
    let plan = read("mail.pcap", "{rate: 10}, limit: 8", &flows).unwrap();
    let names: Vec<_> = plan.templates.iter().map(|template| template.name.as_str()).collect();
    assert_eq!(names, ["mail.1", "mail.3", "mail.4"]);
    let third = Rate::new(10, Duration::from_secs(3)).unwrap();
    let clients = plan.templates.iter().map(|template| template.client.as_ref().unwrap());
    let loads: Vec<_> = clients.map(|it| (it.load, it.limit, it.server_port)).collect();
    let expected = [(3, 110), (3, 25), (2, 143)];
    assert_eq!(
        loads,
        expected.map(|(limit, port)| (
            Load::Rate { rate: third, concurrent_max: None },
            Some(limit),
            port
        ))
    );
    let note = "templates[0]: flow 3 of the capture has no SYN: 192.0.2.1:5000, which sends \
                first, is the client";
    assert_eq!(plan.notes, [note]);

    let plan = read("{file: mail.pcap, flow: [4, 1]}", "{concurrent: 3}", &flows).unwrap();
    let loads: Vec<_> = plan.templates.iter().map(|it| it.client.as_ref().unwrap().load).collect();
    assert_eq!(loads, [Load::Concurrent(2), Load::Concurrent(1)]);
    let flow = [Ok(mail(110)), Ok(mail(111))];
    let plan = read("mail.pcap", "{poisson: 10, concurrent_max: 3}", &flow).unwrap();
    let loads: Vec<_> = plan.templates.iter().map(|it| it.client.as_ref().unwrap().load).collect();
    let rate = Rate::new(5, Duration::from_secs(1)).unwrap();
    assert_eq!(loads, [Some(2), Some(1)].map(|most| Load::Poisson { rate, concurrent_max: most }));
    let error = read("mail.pcap", "{rate: 10, concurrent_max: 1}", &flow).unwrap_err().to_string();
    assert!(
        error.contains("client.load.concurrent_max is too small for the 2 conversations"),
        "{error}"
    );
}

#[test]
fn udp_keeps_datagrams_and_survives_long_pauses() {
    let (client, server) = (Side::Client, Side::Server);
    let turns = vec![
        send_turn(client, 0, b"one"),
        send_turn(client, 20 * MS, b"two"),
        send_turn(server, 700 * MS, b"yes"),
        send_turn(server, 0, b""),
    ];
    let flow = Conversation { transport: Transport::Udp, ..conversation(5060, turns) };
    let plan = read("mail.pcap", "{concurrent: 1}", &[Ok(flow)]).unwrap();
    assert_eq!(plan.templates[0].transport, emulation::Transport::Udp);
    let datagram = |text: &[u8]| Step::SendDatagram {
        text: text.to_vec(),
        size: text.len() as u32,
        fill: Vec::new(),
    };
    let two = Step::ReceiveDatagrams { count: 2, clear: true };
    let idle = Step::SetIdleTimeout { time: Duration::from_millis(1_400), receive_only: false };
    let expected = (
        vec![idle.clone(), datagram(b"one"), delay(20), datagram(b"two"), two.clone()],
        vec![idle, two, delay(700), datagram(b"yes"), datagram(b"")],
    );
    assert_eq!(programs(&plan, 0), expected);
}

#[test]
fn conversations_at_one_port_have_separate_servers() {
    let flows = [Ok(mail(110)), Ok(mail(25)), Ok(mail(110)), Ok(mail(110))];
    let error = read("mail.pcap", "{concurrent: 4}", &flows);
    let expected = "templates[0]: client.servers: found 1 addresses, expected at least 3: 3 \
                    conversations use port 110, and the first bytes of their clients do not \
                    distinguish them, so each needs an address of its own";
    assert_eq!(error.unwrap_err(), expected);
    let text = "ports: [{name: c, addresses: 10.0.0.1/24}, {name: s}]\n\
                templates:\n\
                \x20 - name: mail\n\
                \x20   conversation: mail.pcap\n\
                \x20   client: {tx: c, servers: 10.0.1.1-10.0.1.10, load: {concurrent: 4}}\n\
                \x20   server: {tx: s}\n";
    let load = |_: &str| Ok(Imported { flows: flows.to_vec(), others: 0 });
    let plan = EmulationPlan::parse_with(text, load).unwrap();
    let parts: Vec<_> = plan
        .templates
        .iter()
        .map(|template| {
            let servers = template.client.as_ref().unwrap().servers;
            let addresses = template.server.as_ref().unwrap().addresses;
            assert!(addresses.is_none_or(|addresses| addresses == servers));
            (servers.first.to_string(), servers.count, addresses.is_some())
        })
        .collect();
    let expected = [
        ("10.0.1.1", 3, true),
        ("10.0.1.1", 10, false),
        ("10.0.1.4", 3, true),
        ("10.0.1.7", 4, true),
    ];
    assert_eq!(
        parts,
        expected.map(|(first, count, addresses)| (first.to_owned(), count, addresses))
    );
    let alone = "ports: [{name: s}]\n\
                 templates: [{name: mail, conversation: mail.pcap, server: {tx: s}}]";
    let error = EmulationPlan::parse_with(alone, load).unwrap_err().to_string();
    let expected =
        "templates[0]: 3 conversations use port 110, and the first bytes of their clients";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn first_bytes_select_the_conversation_at_one_address() {
    let asks = |text: &[u8]| {
        conversation(80, vec![send_turn(Side::Client, 0, text), send_turn(Side::Server, 0, b"yes")])
    };
    let flows = [Ok(asks(b"GET /a")), Ok(mail(110)), Ok(asks(b"GET /b")), Ok(asks(b"PUT /"))];
    let plan = read("mail.pcap", "{concurrent: 4}", &flows).unwrap();
    let first = |template: &emulation::Template| {
        let server = template.server.as_ref().unwrap();
        assert_eq!((server.addresses, template.client.as_ref().unwrap().servers.count), (None, 1));
        server.first_bytes.as_ref().map(|it| it.0.clone())
    };
    let found: Vec<_> = plan.templates.iter().map(first).collect();
    let expected = [
        Some(vec![(0, 255, b'G'), (5, 255, b'a')]),
        None,
        Some(vec![(0, 255, b'G'), (5, 255, b'b')]),
        Some(vec![(0, 255, b'P')]),
    ];
    assert_eq!(found, expected);
    // Without clients in the plan, servers are selected by first bytes only.
    let alone = "ports: [{name: s}]\n\
                 templates: [{name: mail, conversation: mail.pcap, server: {tx: s}}]";
    let load = |_: &str| Ok(Imported { flows: flows.to_vec(), others: 0 });
    let plan = EmulationPlan::parse_with(alone, load).unwrap();
    assert!(plan.templates[0].server.as_ref().unwrap().first_bytes.is_some());
    // TLS hides the first bytes.
    let error = read("mail.pcap\n    tls: {}", "{concurrent: 4}", &flows).unwrap_err();
    assert!(
        error.contains("3 conversations use port 80") || error.contains("expected at least 3"),
        "{error}"
    );
}

#[test]
fn errors_name_path_file_and_flow() {
    let hole = ConversationError::Truncated { packet: 7, found: 96, expected: 1_500 };
    let quiet = conversation(9, Vec::new());
    let slow = conversation(1, vec![send_turn(Side::Client, 5_000_000 * MS, b"x")]);
    let flows = [Ok(mail(110)), Err(hole), Ok(quiet), Ok(slow)];
    for (setting, load, expected) in [
        ("other.pcap", "{concurrent: 1}", ": other.pcap: no such file"),
        (
            "7",
            "{concurrent: 1}",
            ": found 7, expected the name of a capture file, or the fields file",
        ),
        (
            "{flow: 1}",
            "{concurrent: 1}",
            ".file: found nothing, expected the name of a capture file",
        ),
        (
            "mail.pcap",
            "{concurrent: 1}",
            ": mail.pcap: flow 2: packet 7 was captured with 96 of its 1500 bytes: capture all; \
             or select other flows with `flow`",
        ),
        (
            "{file: mail.pcap, flow: 2}",
            "{concurrent: 1}",
            ".file: mail.pcap: flow 2: packet 7 was captured with 96 of its 1500 bytes: capture all",
        ),
        (
            "{file: mail.pcap, flow: [1, 6]}",
            "{concurrent: 1}",
            ".flow[1]: found 6, expected the number of one of the capture's 4 flows, from 1",
        ),
        (
            "{file: mail.pcap, flow: []}",
            "{concurrent: 1}",
            ".flow: found a list of 0, expected at least one number of a flow",
        ),
        (
            "{file: mail.pcap, flow: 3}",
            "{concurrent: 1}",
            ".file: mail.pcap: flow 3: neither side sends data",
        ),
        (
            "{file: mail.pcap, flow: 4}",
            "{concurrent: 1}",
            ".file: mail.pcap: flow 4: a pause of 5000 s, at most 4294 s: set `timing: drop`",
        ),
        (
            "{file: mail.pcap, timing: fast}",
            "{concurrent: 1}",
            ".timing: found \"fast\", expected keep or drop",
        ),
        (
            "{file: mail.pcap, timing: keep, server_delay: 1ms}",
            "{concurrent: 1}",
            ".timing: found \"keep\", expected drop, because server_delay is set",
        ),
        (
            "{file: mail.pcap, server_delay: 2h}",
            "{concurrent: 1}",
            ".server_delay: found \"2h\", expected at most 4294 s",
        ),
    ] {
        let error = read(setting, load, &flows).unwrap_err();
        let expected = format!("templates[0].conversation{expected}");
        assert!(error.starts_with(&expected), "{setting}: {error}");
    }
    let flows = [Ok(mail(110)), Ok(mail(143))];
    let error = read("mail.pcap", "{concurrent: 1}", &flows).unwrap_err();
    let expected =
        "templates[0]: client.load.concurrent is too small for the 2 conversations that share it";
    assert_eq!(error, expected);
    let error = read("mail.pcap", "{concurrent: 2}, program: []", &flows).unwrap_err();
    let expected =
        "templates[0].client.program: another field defines the dialogue: remove one of them";
    assert_eq!(error, expected);
    let error = EmulationPlan::parse(
        "ports: [{name: s}]\ntemplates: [{name: t, conversation: a, server: {tx: s}}]",
    );
    let expected = "templates[0].conversation: captures are not available here";
    assert_eq!(error.unwrap_err().to_string(), expected);
}
