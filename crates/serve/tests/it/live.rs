//! What clients see of runs that others command: pauses, loads, delays, plans, pages of the history.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use wirestorm_api::client::Client;
use wirestorm_api::delays::FlowDelays;
use wirestorm_api::error::ErrorCode;
use wirestorm_api::event::Event;
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{CommandRequest, PlanSource, RunRequest, RunState, WhenLeaseEnds};
use wirestorm_testkit::require::require_root;

use crate::service::{PATIENCE, TestServer, code, plan, request, wait_for};

/// Follows a run until its counters fit.
#[track_caller]
fn wait_for_counters(client: &Client, id: &str, fits: impl Fn(&Progress) -> bool) -> Progress {
    let deadline = Instant::now() + PATIENCE;
    for progress in client.follow_delays(id, Duration::from_millis(100), 1).unwrap() {
        let progress = progress.unwrap();
        if fits(&progress) {
            return progress;
        }
        assert!(Instant::now() < deadline, "the counters do not fit: {progress:?}");
    }
    panic!("run {id} ended");
}

/// Returns the frames of the first flow in a second or more.
fn rate(client: &Client, id: &str) -> f64 {
    let first = client.progress(id).unwrap();
    let second = 1_000_000_000;
    let last = wait_for_counters(client, id, |it| it.elapsed_ns > first.elapsed_ns + second);
    let frames = last.flows[0].tx_frames - first.flows[0].tx_frames;
    frames as f64 / ((last.elapsed_ns - first.elapsed_ns) as f64 / 1e9)
}

fn flows(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn pause_is_seen_by_clients_that_come_later_and_ends_with_resume() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let id = client.create_run(&request("1kpps", "60s")).unwrap().id;
    wait_for_counters(&client, &id, |it| it.flows.first().is_some_and(|it| it.tx_frames > 0));
    assert!(!client.run(&id).unwrap().is_paused);
    let mut events = server.client("bob", "").events().unwrap();
    assert!(client.command(&id, &CommandRequest::Pause { flows: None }).unwrap().is_paused);
    let is_pause = |event: Event| matches!(event, Event::Run { run } if run.is_paused);
    assert!(events.any(|event| is_pause(event.unwrap())), "no event for the pause");
    let late = server.client("cy", "");
    assert!(late.run(&id).unwrap().is_paused && late.progress(&id).unwrap().is_paused);
    assert!(late.runs(1).unwrap().runs[0].is_paused);
    client.command(&id, &CommandRequest::Resume { flows: None }).unwrap();
    assert!(!late.run(&id).unwrap().is_paused && !late.progress(&id).unwrap().is_paused);

    // A flow on its own.
    client.command(&id, &CommandRequest::Pause { flows: flows(&["voice"]) }).unwrap();
    let paused = wait_for_counters(&late, &id, |it| it.flows[0].is_paused);
    assert!(!paused.is_paused, "the run is not paused, its flow is");
    client.command(&id, &CommandRequest::Resume { flows: flows(&["voice"]) }).unwrap();
    wait_for_counters(&late, &id, |it| !it.flows[0].is_paused);
    client.command(&id, &CommandRequest::Pause { flows: None }).unwrap();
    client.command(&id, &CommandRequest::Pause { flows: flows(&["voice"]) }).unwrap();
    client.command(&id, &CommandRequest::Stop).unwrap();
    let run = wait_for(&client, &id, RunState::is_over);
    assert!(!run.is_paused && run.state == RunState::Interrupted, "{run:?}");
    assert!(!run.has_paused_flows, "{run:?}");
}

#[test]
fn resume_without_names_continues_the_flows_that_commands_paused() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "60s");
    let voice = plan("1kpps");
    let (head, flow) = voice.split_once("  - name: voice\n").unwrap();
    let other = |name: &str, more: &str| format!("  - name: {name}\n{more}{flow}");
    let waiting = other("waiting", "    start: paused\n");
    let text = format!("{head}{}{}{waiting}", other("voice", ""), other("video", ""));
    wanted.plan = PlanSource::Text(text);
    let id = client.create_run(&wanted).unwrap().id;
    let is_paused = |progress: &Progress| -> Vec<bool> {
        progress.flows.iter().map(|flow| flow.is_paused).collect()
    };
    wait_for_counters(&client, &id, |it| is_paused(it) == [false, false, true]);
    assert!(!client.run(&id).unwrap().has_paused_flows, "the plan has paused it");
    let mut events = server.client("bob", "").events().unwrap();
    let mut next_with = |has_paused_flows: bool| {
        let mut found = events.by_ref().map(Result::unwrap);
        let is_it = |event: &Event| matches!(event, Event::Run { run } if run.has_paused_flows == has_paused_flows);
        assert!(found.any(|event| is_it(&event)), "no event with {has_paused_flows}");
    };
    next_with(false);
    let pause = |flows| client.command(&id, &CommandRequest::Pause { flows }).unwrap();
    let resume = |flows| client.command(&id, &CommandRequest::Resume { flows }).unwrap();
    assert!(pause(flows(&["video"])).has_paused_flows);
    next_with(true);
    wait_for_counters(&client, &id, |it| is_paused(it) == [false, true, true]);
    // With a pause of the whole run on top.
    assert!(pause(None).is_paused);
    let resumed = resume(None);
    assert!(!resumed.is_paused && !resumed.has_paused_flows, "{resumed:?}");
    next_with(false);
    let before = wait_for_counters(&client, &id, |it| is_paused(it) == [false, false, true]);
    let frames = |progress: &Progress, flow: usize| progress.flows[flow].tx_frames;
    wait_for_counters(&client, &id, |it| frames(it, 1) > frames(&before, 1) + 100);
    resume(flows(&["waiting"]));
    wait_for_counters(&client, &id, |it| is_paused(it) == [false; 3] && frames(it, 2) > 0);
}

#[test]
fn flow_that_starts_paused_is_reported_as_paused() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "60s");
    let text = plan("1kpps").replace("    tx: a\n", "    tx: a\n    start: paused\n");
    wanted.plan = PlanSource::Text(text);
    let id = client.create_run(&wanted).unwrap().id;
    let paused =
        wait_for_counters(&client, &id, |it| it.flows.first().is_some_and(|f| f.is_paused));
    assert_eq!(paused.flows[0].tx_frames, 0);
    client.command(&id, &CommandRequest::Resume { flows: flows(&["voice"]) }).unwrap();
    wait_for_counters(&client, &id, |it| !it.flows[0].is_paused && it.flows[0].tx_frames > 0);
}

#[test]
fn load_takes_units_other_than_those_of_the_start() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut wanted = request("1kpps", "60s");
    wanted.options.multiplier = Some("500pps".to_owned());
    let id = client.create_run(&wanted).unwrap().id;
    wait_for_counters(&client, &id, |it| it.flows.first().is_some_and(|it| it.tx_frames > 0));
    let load = |load: &str| {
        client.command(&id, &CommandRequest::Load { load: load.to_owned(), flows: None })
    };
    // Frames of 128 bytes take 1,184 bits at layer 1, and the line has 10 Gbit/s.
    for (text, expected) in [("2", 2_000.0), ("0.01%", 844.6), ("1.184mbpsl1", 1_000.0)] {
        load(text).unwrap();
        let rate = rate(&client, &id);
        assert!((rate / expected - 1.0).abs() < 0.25, "{text}: {rate} frames/s");
    }
    let wrong = load("quick").unwrap_err().to_string();
    assert!(wrong.contains("load: found \"quick\"") && wrong.contains("50%"), "{wrong}");
    let unknown = CommandRequest::Load { load: "2".to_owned(), flows: flows(&["video"]) };
    assert_eq!(code(client.command(&id, &unknown)), Some(ErrorCode::Invalid));
}

#[test]
fn delays_are_sent_on_request_alone_and_stay_after_the_end() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let id = client.create_run(&request("1kpps", "1s")).unwrap().id;
    let live = wait_for_counters(&client, &id, |it| {
        it.flows.first().is_some_and(|flow| {
            flow.delays.as_ref().is_some_and(|delays| !delays.histogram.is_empty())
        })
    });
    let (flow, received) = (&live.flows[0], live.flows[0].received.unwrap());
    assert!(received.jitter_ns.is_some(), "{received:?}");
    let delays = flow.delays.as_ref().unwrap();
    let frames: u64 = delays.histogram.iter().map(|(_, count)| count).sum();
    // The receiver counts on while the other counters are a tenth of a second old.
    assert!((1..=1_000).contains(&frames), "{frames} of 1,000 frames");
    assert!(delays.p50_ns <= delays.p99_ns && delays.p50_ns > Some(0), "{delays:?}");
    assert!(delays.histogram.is_sorted(), "{delays:?}");
    assert_eq!(client.progress(&id).unwrap().flows[0].delays, None, "nobody asked for them");
    wait_for(&client, &id, RunState::is_over);

    let last = client.follow_delays(&id, Duration::from_millis(100), 1).unwrap().last();
    let last = last.unwrap().unwrap();
    let histogram = &last.flows[0].delays.as_ref().unwrap().histogram;
    let frames: u64 = histogram.iter().map(|(_, count)| count).sum();
    assert_eq!(frames, last.flows[0].received.unwrap().frames);
    let too_many = FlowDelays::FLOWS_MAX + 1;
    let refused = client.follow_delays(&id, Duration::from_millis(100), too_many);
    assert_eq!(code(refused), Some(ErrorCode::Invalid));
}

#[test]
fn counters_with_delays_have_a_bounded_length_with_many_flows() {
    if !require_root() {
        return;
    }
    const FLOWS: usize = 1_000;
    let server = TestServer::start();
    let client = server.client("ada", "");
    let text = plan("20pps");
    let (head, flow) = text.split_at(text.find("  - name").unwrap());
    let flow = |number| flow.replace("voice", &format!("flow {number}"));
    let mut wanted = request("1kpps", "60s");
    let all: String = (0..FLOWS).map(flow).collect();
    wanted.plan = PlanSource::Text(format!("{head}{all}"));
    let id = client.create_run(&wanted).unwrap().id;
    let count = FlowDelays::FLOWS_MAX;
    let mut stream = client.follow_delays(&id, Duration::from_millis(500), count).unwrap();
    let counters = stream.find_map(|progress| {
        let progress = progress.unwrap();
        let is_full = |it: &FlowDelays| !it.histogram.is_empty();
        let full =
            progress.flows.iter().filter_map(|it| it.delays.as_ref()).filter(|it| is_full(it));
        (full.count() == count).then_some(progress)
    });
    let counters = counters.expect("the run ended");
    assert_eq!(counters.flows.len(), FLOWS);
    let mut bare = counters.clone();
    bare.flows.iter_mut().for_each(|flow| flow.delays = None);
    let length = |progress: &Progress| serde_json::to_string(progress).unwrap().len();
    let added = length(&counters) - length(&bare);
    assert!(added < 1_500 * count, "{added} bytes of delays");
}

#[test]
fn plan_of_a_run_stays_as_it_was_sent() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    client.store_plan("voice.yaml", &plan("1kpps")).unwrap();
    let mut wanted = request("1kpps", "200ms");
    wanted.plan = PlanSource::Stored("voice.yaml".to_owned());
    wanted.ports = BTreeMap::from([("b".to_owned(), "right".to_owned())]);
    wanted.options.multiplier = Some("2".to_owned());
    wanted.when_lease_ends = WhenLeaseEnds::Stop;
    let id = client.create_run(&wanted).unwrap().id;
    client.store_plan("voice.yaml", &plan("7kpps")).unwrap();
    wait_for(&client, &id, RunState::is_over);
    let origin = client.origin(&id).unwrap();
    let Some(PlanSource::Text(text)) = &origin.plan else { panic!("{origin:?}") };
    assert_eq!(*text, plan("1kpps"));
    assert_eq!(origin.plan_name.as_deref(), Some("voice.yaml"));
    assert_eq!(origin.ports, wanted.ports);
    assert_eq!(origin.options.multiplier.as_deref(), Some("2"));
    assert_eq!(origin.options.duration.as_deref(), Some("200ms"));
    assert_eq!(origin.when_lease_ends, WhenLeaseEnds::Stop);
    assert_eq!(code(client.origin("nothing")), Some(ErrorCode::NotFound));
}

#[test]
fn history_has_pages_that_join_and_skip_deleted_runs() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut ids = Vec::new();
    for _ in 0..5 {
        let id = client.create_run(&request("1kpps", "50ms")).unwrap().id;
        wait_for(&client, &id, RunState::is_over);
        ids.insert(0, id);
    }
    let first = client.runs_after(None, 2).unwrap();
    let listed = |runs: &[wirestorm_api::run::RunSummary]| {
        runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!((listed(&first.runs), first.total), (ids[..2].to_vec(), 5));
    let next = first.next.unwrap();
    // The last run of a page may go before the next page is read.
    client.delete_run(&ids[1]).unwrap();
    let second = client.runs_after(Some(&next), 2).unwrap();
    assert_eq!((listed(&second.runs), second.total), (ids[2..4].to_vec(), 4));
    let third = client.runs_after(second.next.as_deref(), 2).unwrap();
    assert_eq!((listed(&third.runs), third.next), (ids[4..].to_vec(), None));
    assert_eq!(client.runs(3).unwrap().runs.len(), 3);
    for limit in [0, 1_001] {
        assert_eq!(code(client.runs_after(None, limit)), Some(ErrorCode::Invalid), "{limit}");
    }
    assert_eq!(code(client.runs_after(Some("yesterday"), 2)), Some(ErrorCode::Invalid));
}

#[test]
fn active_runs_are_listed_whatever_their_age() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    assert_eq!(client.active_runs().unwrap(), []);
    let shared = |duration: &str| RunRequest { shared: true, ..request("1kpps", duration) };
    let old = client.create_run(&shared("60s")).unwrap().id;
    for _ in 0..3 {
        let id = client.create_run(&shared("50ms")).unwrap().id;
        wait_for(&client, &id, RunState::is_over);
    }
    let newest = client.create_run(&shared("60s")).unwrap().id;
    let newest_page = client.runs_after(None, 2).unwrap();
    assert!(newest_page.runs.iter().all(|run| run.id != old), "{newest_page:?}");
    let active = |client: &Client| {
        let runs = client.active_runs().unwrap().into_iter();
        runs.map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(active(&client), [newest.clone(), old.clone()]);
    client.command(&newest, &CommandRequest::Stop).unwrap();
    wait_for(&client, &newest, RunState::is_over);
    assert_eq!(active(&client), [old]);

    let get = |query: &str| {
        let url = format!("http://{}/api/v1/runs?{query}", server.address());
        let mut response = ureq::get(url).config().http_status_as_error(false).build().call();
        let response = response.as_mut().unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str::<serde_json::Value>(&text).unwrap())
    };
    let (status, list) = get("active=true&limit=1");
    assert_eq!((status, &list["total"], &list["next"]), (200, &1.into(), &().into()), "{list}");
    assert_eq!(get("active=false").1["total"], 5, "all runs");
    let (status, error) = get("active=true&after=1.x");
    assert!(status == 400 && error.to_string().contains("one page"), "{error}");
}

#[test]
fn changes_of_plans_and_captures_are_events() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let client = server.client("ada", "");
    let mut events = server.client("bob", "").events().unwrap();
    let mut next = || events.next().unwrap().unwrap();
    assert!(matches!(next(), Event::Ports { .. }));
    let plan = client.store_plan("voice", &plan("1kpps")).unwrap();
    assert_eq!(next(), Event::PlanStored { plan });
    client.delete_plan("voice").unwrap();
    assert_eq!(next(), Event::PlanDeleted { name: "voice".to_owned() });
    let capture = client.upload("a.bin", &b"123"[..]).unwrap();
    assert_eq!(next(), Event::CaptureUploaded { capture });
    client.delete_capture("a.bin").unwrap();
    assert_eq!(next(), Event::CaptureDeleted { name: "a.bin".to_owned() });
    assert_eq!(code(client.delete_capture("a.bin")), Some(ErrorCode::NotFound));

    // Captures of frames are a property of their port.
    let limit = [("duration", "300ms".to_owned())];
    let mut frames = client.capture("left", &limit).unwrap();
    let capturing = |event| match event {
        Event::Ports { ports } => ports[0].capturing.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(capturing(next()), ["ada"]);
    assert_eq!(client.port("left").unwrap().capturing, ["ada"]);
    std::io::copy(&mut frames.by_ref(), &mut std::io::sink()).unwrap();
    assert_eq!(capturing(next()), [""; 0]);
}
