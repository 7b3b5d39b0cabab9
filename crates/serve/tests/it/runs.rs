//! Runs over the API: life cycle, commands, files, history, slow and vanishing clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wirestorm_api::error::{ErrorAt, ErrorCode};
use wirestorm_api::event::Event;
use wirestorm_api::run::{CommandRequest, PlanSource, ReplayRequest, RunState, StartRequest};
use wirestorm_serve::Service;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::require::require_root;
use wirestorm_testkit::sample::{Traffic, TrafficOptions, write_file};

use crate::service::{TestServer, code, loopback, options, plan, request, wait_for};

#[test]
fn run_is_followed_to_its_end_and_is_in_the_history_of_the_next_server() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "300ms");
    wanted.name = Some("first".to_owned());
    let run = client.create_run(&wanted).unwrap();
    assert_eq!(run.user.as_deref(), Some("ada"));
    let progress: Vec<_> =
        client.follow(&run.id, Duration::from_millis(100)).unwrap().map(Result::unwrap).collect();
    let last = progress.last().unwrap();
    assert_eq!((last.state, last.flows[0].tx_frames), (RunState::Finished, 300));
    assert!(progress.windows(2).all(|two| two[0].elapsed_ns <= two[1].elapsed_ns));
    let result = client.result(&run.id).unwrap();
    assert_eq!(result.ports[0].tx.as_ref().unwrap().packets, 300);
    let TestServer { service, lab, scratch } = server;
    assert!(service.stop().is_empty());
    let service = Service::start(options(&scratch, &lab), &[loopback()], None).unwrap();
    let server = TestServer { service, lab, scratch };
    let client = server.client("bob", "");
    let found = client.run("first").unwrap();
    assert_eq!((found.id.as_str(), found.state), (run.id.as_str(), RunState::Finished));
    assert_eq!((found.user.as_deref(), found.outcome.as_deref()), (Some("ada"), Some("met")));
    assert_eq!(client.result("first").unwrap().ports[0].tx.as_ref().unwrap().packets, 300);
    assert_eq!(client.runs(10).unwrap().total, 1);
}

#[test]
fn errors_of_a_plan_are_in_the_answer_and_leave_no_run() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("fast", "1s");
    let refused = client.create_run(&wanted).unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Plan));
    assert!(refused.to_string().contains("flows[0].rate"), "{refused}");
    wanted = request("1kpps", "1s");
    wanted.ports.insert("a".to_owned(), "nowhere".to_owned());
    assert_eq!(code(client.create_run(&wanted)), Some(ErrorCode::NotFound));
    wanted = request("1kpps", "1s");
    wanted.options.seed = Some(1);
    assert_eq!(code(client.create_run(&wanted)), Some(ErrorCode::Invalid));
    // The interface refuses frames of this length when it opens.
    wanted = request("1kpps", "1s");
    wanted.plan = PlanSource::Text(plan("1kpps").replace("size: 128", "size: 9000"));
    let refused = client.create_run(&wanted).unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Plan), "{refused}");
    assert!(client.runs(10).unwrap().runs.is_empty());
    let summary = client.check_plan(&plan("fast")).unwrap();
    assert_eq!(summary.errors[0].path, "flows[0].rate");
    assert_eq!(client.check_plan(&plan("1kpps")).unwrap().flows, ["voice"]);
}

#[test]
fn commands_start_pause_scale_and_stop_a_run() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "60s");
    wanted.start = StartRequest::OnCommand;
    let id = client.create_run(&wanted).unwrap().id;
    wait_for(&client, &id, |state| state == RunState::Prepared);
    let sent = || client.progress(&id).unwrap().ports.first().map_or(0, |port| port.tx_frames);
    assert_eq!(sent(), 0);
    client.command(&id, &CommandRequest::Start { at_unix_ns: None }).unwrap();
    wait_for(&client, &id, |state| state == RunState::Running);
    let flows = Some(vec!["voice".to_owned()]);
    let unknown = CommandRequest::Pause { flows: Some(vec!["video".to_owned()]) };
    assert_eq!(code(client.command(&id, &unknown)), Some(ErrorCode::Invalid));
    let zero = CommandRequest::Scale { factor: "0".to_owned(), flows: None };
    assert_eq!(code(client.command(&id, &zero)), Some(ErrorCode::Invalid));
    client.command(&id, &CommandRequest::Pause { flows: None }).unwrap();
    // Frames that were queued before the pause have left after two equal counts.
    let mut before = u64::MAX;
    for progress in client.follow(&id, Duration::from_millis(300)).unwrap() {
        // The first counters come with the first snapshot.
        let Some(now) = progress.unwrap().ports.first().map(|port| port.tx_frames) else {
            continue;
        };
        if now == before {
            break;
        }
        before = now;
    }
    client.command(&id, &CommandRequest::Resume { flows: None }).unwrap();
    let rate = CommandRequest::Rate { rate: "2kpps".to_owned(), flows };
    client.command(&id, &rate).unwrap();
    let mut progress = client.follow(&id, Duration::from_millis(100)).unwrap();
    assert!(progress.any(|it| it.unwrap().ports[0].tx_frames > before), "it sends again");
    client.command(&id, &CommandRequest::Stop).unwrap();
    let run = wait_for(&client, &id, RunState::is_over);
    assert_eq!(run.state, RunState::Interrupted);
    assert_eq!(code(client.command(&id, &CommandRequest::Stop)), Some(ErrorCode::Conflict));
    client.result(&id).unwrap();
}

#[test]
fn replay_needs_its_captures_uploaded() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let capture = server.scratch.file("local.pcap");
    let traffic = Traffic::new(TrafficOptions { conversations: 5, ..TrafficOptions::default() });
    write_file(traffic, Resolution::Nanoseconds, &capture).unwrap();
    let mut wanted = request("1kpps", "20s");
    wanted.plan = PlanSource::Replay(Box::new(ReplayRequest {
        captures: vec!["traffic.pcap".to_owned()],
        port: "left".to_owned(),
        rate: Some("max".to_owned()),
        edits: serde_json::json!({"ttl": "9"}),
        ..ReplayRequest::default()
    }));
    match client.create_run(&wanted).unwrap_err() {
        wirestorm_api::client::ClientError::Refused(document) => {
            assert_eq!(document.code, ErrorCode::MissingFile, "{document}");
            let missing = ErrorAt {
                path: "traffic.pcap".to_owned(),
                message: "upload it as a capture".to_owned(),
            };
            assert_eq!(document.errors, [missing]);
        }
        error => panic!("{error}"),
    }
    let content = std::fs::read(&capture).unwrap();
    let uploaded = client.upload("traffic.pcap", &*content).unwrap();
    assert_eq!(uploaded.bytes, content.len() as u64);
    let id = client.create_run(&wanted).unwrap().id;
    let run = wait_for(&client, &id, RunState::is_over);
    assert_eq!(run.state, RunState::Finished, "{run:?}");
    assert!(client.result(&id).unwrap().ports[0].tx.as_ref().unwrap().packets > 0);
    // More than the server has room for.
    let too_much = std::io::repeat(0).take(2_000_000);
    assert_eq!(code(client.upload("big.pcap", too_much)), Some(ErrorCode::Storage));
    assert_eq!(client.captures().unwrap().len(), 1);
}

#[test]
fn events_begin_with_the_state_and_report_each_change() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut events = client.events().unwrap();
    let Event::Ports { ports } = events.next().unwrap().unwrap() else { panic!("no ports") };
    assert_eq!(ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["left", "right"]);
    let id = client.create_run(&request("1kpps", "200ms")).unwrap().id;
    let mut states = Vec::new();
    while states.last().is_none_or(|state: &RunState| !state.is_over()) {
        if let Event::Run { run } = events.next().unwrap().unwrap() {
            assert_eq!(run.id, id);
            states.push(run.state);
        }
    }
    assert_eq!(states.last(), Some(&RunState::Finished));
}

#[test]
fn run_continues_when_its_client_vanishes_and_slow_readers_delay_nobody() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let id = client.create_run(&request("5kpps", "2s")).unwrap().id;
    // Readers that never read, connections that never send, and garbage.
    let mut idle: Vec<TcpStream> =
        (0..500).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for (index, stream) in idle.iter_mut().enumerate() {
        let text = match index % 3 {
            0 => format!(
                "GET /api/v1/runs/{id}/events?interval_ms=100 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ),
            1 => "\0\u{1}garbage\r\n\r\n".to_owned(),
            _ => String::new(),
        };
        stream.write_all(text.as_bytes()).unwrap();
    }
    let vanishing = client.follow(&id, Duration::from_millis(100)).unwrap();
    drop(vanishing);
    let run = wait_for(&client, &id, RunState::is_over);
    assert_eq!(run.state, RunState::Finished);
    assert_eq!(client.result(&id).unwrap().ports[0].tx.as_ref().unwrap().packets, 10_000);
}

#[test]
fn request_that_is_not_read_to_its_end_says_that_the_connection_closes() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let answer_of = |head: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(format!("{head}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let length = stream.read(&mut buffer).unwrap();
            assert_ne!(length, 0, "the connection ended before the head of the answer");
            answer.extend_from_slice(&buffer[..length]);
        }
        String::from_utf8_lossy(&answer).to_lowercase()
    };
    let json = "Content-Type: application/json";
    let unread = answer_of("POST /api/v1/nowhere HTTP/1.1\r\nContent-Length: 1000", b"x");
    assert!(unread.starts_with("http/1.1 404") && unread.contains("connection: close"), "{unread}");
    for (head, body) in [
        ("POST /api/v1/runs HTTP/1.1\r\nContent-Length: 1", "x"),
        ("GET /api/v1/runs HTTP/1.1", ""),
    ] {
        let kept = answer_of(&format!("{head}\r\n{json}"), body.as_bytes());
        assert!(!kept.contains("connection: close"), "{kept}");
    }
}

#[test]
fn lost_result_is_kept_and_saved_when_the_disk_has_room_again() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "60s");
    wanted.start = StartRequest::Now;
    let id = client.create_run(&wanted).unwrap().id;
    wait_for(&client, &id, |state| state == RunState::Running);
    // A file in the place of the directory fails each write, as a full disk does.
    let directory = server.scratch.file("runs").join(&id);
    let aside = server.scratch.file("aside");
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::write(&directory, "no directory").unwrap();
    client.command(&id, &CommandRequest::Stop).unwrap();
    let run = wait_for(&client, &id, RunState::is_over);
    assert!(!run.is_saved, "{run:?}");
    assert!(run.message.unwrap().contains("not saved"));
    client.result(&id).unwrap();
    let mut events = client.events().unwrap();
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    let is_saved =
        |event: Event| matches!(event, Event::Run { run } if run.id == id && run.is_saved);
    assert!(events.any(|event| is_saved(event.unwrap())), "the stream of events ended");
    assert!(directory.join("result.json").exists());
}

#[test]
fn end_of_the_server_stops_its_runs_and_saves_their_results() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let id = client.create_run(&request("1kpps", "60s")).unwrap().id;
    wait_for(&client, &id, |state| state == RunState::Running);
    let follow = client.follow(&id, Duration::from_millis(100)).unwrap();
    let TestServer { service, lab, scratch } = server;
    let follower = std::thread::spawn(move || {
        let states = follow.map_while(Result::ok).map(|progress| progress.state);
        states.last()
    });
    assert!(service.stop().is_empty());
    assert_eq!(follower.join().unwrap(), Some(RunState::Interrupted));
    assert!(scratch.file("runs").join(&id).join("result.json").exists());
    // The ports are free.
    let service = Service::start(options(&scratch, &lab), &[loopback()], None).unwrap();
    let server = TestServer { service, lab, scratch };
    let ports = server.client("ada", "").ports().unwrap();
    assert!(ports.iter().all(|port| port.runs.is_empty() && port.lease.is_none()));
    let found = server.client("ada", "").run(&id).unwrap();
    assert_eq!(found.message.as_deref(), Some("the server ended"));
    let mut text = String::new();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let report = format!(
        "GET /api/v1/runs/{id}/report HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(report.as_bytes()).unwrap();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("<html"), "{}", &text[..200]);
    // Lab is dropped after its server.
    let _: &Lab = &server.lab;
}
