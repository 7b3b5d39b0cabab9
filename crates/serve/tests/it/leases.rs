//! Leases of ports by users and sessions.

use wirestorm_api::error::ErrorCode;
use wirestorm_api::event::Event;
use wirestorm_api::lease::LeaseRequest;
use wirestorm_api::run::{RunState, WhenLeaseEnds};
use wirestorm_testkit::require::require_root;

use crate::service::{TestServer, code, request, wait_for};

const PLAIN: LeaseRequest = LeaseRequest { force: false, ttl_s: None };
const FORCE: LeaseRequest = LeaseRequest { force: true, ttl_s: None };

#[test]
fn leased_port_is_refused_to_other_sessions_until_its_release() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let (ada, other, bob) =
        (server.client("ada", "1"), server.client("ada", "2"), server.client("bob", ""));
    let lease = ada.lease("left", &PLAIN).unwrap();
    assert_eq!((lease.user.as_str(), lease.session.as_str()), ("ada", "1"));
    ada.lease("left", &PLAIN).expect("the owner renews it");
    for client in [&other, &bob] {
        assert_eq!(code(client.lease("left", &PLAIN)), Some(ErrorCode::Conflict));
        assert_eq!(code(client.create_run(&request("1kpps", "1s"))), Some(ErrorCode::Conflict));
    }
    let ports = bob.ports().unwrap();
    assert_eq!(ports[0].lease.as_ref().map(|lease| lease.user.as_str()), Some("ada"));
    assert_eq!(ports[1].lease, None);
    let id = ada.create_run(&request("1kpps", "100ms")).unwrap().id;
    wait_for(&ada, &id, RunState::is_over);
    ada.release("left").unwrap();
    assert_eq!(code(ada.release("left")), Some(ErrorCode::Conflict), "nobody leases it");
    bob.lease("left", &PLAIN).unwrap();
}

#[test]
fn force_takes_a_port_and_stops_the_runs_of_its_owner() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let (ada, bob) = (server.client("ada", ""), server.client("bob", ""));
    ada.lease("left", &PLAIN).unwrap();
    let id = ada.create_run(&request("1kpps", "60s")).unwrap().id;
    wait_for(&ada, &id, |state| state == RunState::Running);
    let lease = bob.lease("left", &FORCE).unwrap();
    assert_eq!(lease.user, "bob");
    let run = wait_for(&ada, &id, RunState::is_over);
    assert_eq!(run.state, RunState::Interrupted);
    assert_eq!(run.message.as_deref(), Some("bob took port left"));
    let id = bob.create_run(&request("1kpps", "100ms")).unwrap().id;
    wait_for(&bob, &id, RunState::is_over);
}

#[test]
fn run_of_one_user_keeps_others_off_its_ports_without_a_lease() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let (ada, bob) = (server.client("ada", ""), server.client("bob", ""));
    let mut shared = request("1kpps", "60s");
    shared.shared = true;
    let id = ada.create_run(&shared).unwrap().id;
    for answer in [bob.create_run(&shared), bob.create_run(&request("1kpps", "1s"))] {
        assert_eq!(code(answer), Some(ErrorCode::Conflict));
    }
    assert_eq!(code(bob.lease("right", &PLAIN)), Some(ErrorCode::Conflict));
    let second = ada.create_run(&shared).expect("shared runs of one user").id;
    for id in [id, second] {
        ada.command(&id, &wirestorm_api::run::CommandRequest::Stop).unwrap();
        wait_for(&ada, &id, RunState::is_over);
    }
    bob.lease("right", &PLAIN).unwrap();
}

#[test]
fn expired_lease_stops_the_runs_that_ask_for_it() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let ada = server.client("ada", "");
    let lease = |seconds| LeaseRequest { force: false, ttl_s: Some(seconds) };
    for wrong in [0.0, -1.0, f64::MAX] {
        assert_eq!(code(ada.lease("left", &lease(wrong))), Some(ErrorCode::Invalid), "{wrong}");
    }
    ada.lease("left", &lease(0.5)).unwrap();
    let mut ends = request("1kpps", "60s");
    ends.when_lease_ends = WhenLeaseEnds::Stop;
    ends.shared = true;
    let ends = ada.create_run(&ends).unwrap().id;
    let mut lasts = request("1kpps", "60s");
    lasts.shared = true;
    let lasts = ada.create_run(&lasts).unwrap().id;
    // Renewed until here; then nobody does.
    ada.lease("left", &lease(1.0)).unwrap();
    let run = wait_for(&ada, &ends, RunState::is_over);
    assert_eq!(run.state, RunState::Interrupted);
    assert!(run.message.as_ref().is_some_and(|it| it.contains("expired")), "{run:?}");
    assert_eq!(ada.run(&lasts).unwrap().state, RunState::Running);
    let is_free =
        |event: Event| matches!(event, Event::Ports { ports } if ports[0].lease.is_none());
    assert!(ada.events().unwrap().any(|event| is_free(event.unwrap())), "the events ended");
    ada.command(&lasts, &wirestorm_api::run::CommandRequest::Stop).unwrap();
    wait_for(&ada, &lasts, RunState::is_over);
}
