//! Paths that carry less than the interfaces at their ends.

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{LabOptions, RouterLab};

use super::{emulate, plan, run_command};

/// Pages of 20,000 bytes, through routers at these addresses.
fn pages(lab: &RouterLab, is_ipv6: bool) -> String {
    let address = |end: &wirestorm_testkit::net::End| match is_ipv6 {
        true => end.ipv6().to_string(),
        false => end.ipv4().to_string(),
    };
    let [router_a, router_b] = [&lab.router_a, &lab.router_b].map(address);
    // Neighbours of the routers that Linux does not have.
    let length = if is_ipv6 { 64 } else { 24 };
    let beside = |router: &str| {
        let cut = router.rfind(['.', ':']).unwrap() + 1;
        format!("{}77", &router[..cut])
    };
    let (client, server) = (beside(&router_a), beside(&router_b));
    format!(
        r#"
ports:
  - {{name: clients, addresses: "{client}/{length}", gateway: "{router_a}"}}
  - {{name: servers, addresses: "{server}/{length}", gateway: "{router_b}"}}
templates:
  - name: page
    client:
      tx: clients
      servers: "{server}"
      load: {{hold: 5}}
      limit: 50
      program: [{{send: {{size: 5000}}}}, {{receive: 20000}}]
    server:
      tx: servers
      port: 80
      program: [{{receive: 5000}}, {{send: {{size: 20000}}}}]
    tcp: {{time_wait: 1ms}}
"#
    )
}

/// RFC 4861 section 6.1.2: "Routers must use their link-local address as the source for Router
/// Advertisement", so it is all that hosts know of them.
#[test]
fn routers_may_be_known_by_their_link_local_addresses() {
    if !can_run(&[]) {
        return;
    }
    let options = LabOptions { ipv6: true, ..LabOptions::default() };
    let (lab, scratch) = (RouterLab::with(&options).unwrap(), Scratch::new().unwrap());
    let mut text = pages(&lab, true);
    for router in [&lab.router_a, &lab.router_b] {
        let address = format!("address add fe80::1/64 dev {} nodad", router.interface());
        router.namespace().ip(&[&address]).unwrap();
        let gateway = format!("gateway: \"{}\"", router.ipv6());
        assert!(text.contains(&gateway));
        text = text.replace(&gateway, "gateway: \"fe80::1\"");
    }
    let outcome = run_pages(&lab, &plan(&scratch, &text));
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 50, "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/tcp/rcvbyte"), 50 * 20_000, "{outcome}");
}

/// Runs it at the ends of a lab.
fn run_pages(lab: &RouterLab, plan: &std::path::Path) -> Outcome {
    let mut command = emulate(plan);
    // Linux at the ends has a default route there.
    command.arg("--force-interface");
    command.args(["--port", &format!("clients={}", lab.a.port())]);
    command.args(["--port", &format!("servers={}", lab.b.port())]);
    run_command(&mut command).expect(0)
}

/// RFC 1191 and RFC 8201, with Linux as the router.
#[test]
fn segments_become_as_short_as_a_router_wants_them() {
    if !can_run(&[]) {
        return;
    }
    let options = LabOptions { ipv6: true, ..LabOptions::default() };
    let (lab, scratch) = (RouterLab::with(&options).unwrap(), Scratch::new().unwrap());
    // As if the next link was shorter: the interfaces of a veth pair have to agree.
    let interface = lab.router_a.interface();
    let routes = [
        format!("route change 10.77.0.0/24 dev {interface} mtu lock 1300"),
        format!("route replace fd77::/64 dev {interface} metric 100 mtu 1300"),
    ];
    lab.router_a.namespace().ip(&routes.each_ref().map(String::as_str)).unwrap();
    for is_ipv6 in [false, true] {
        let plan = plan(&scratch, &pages(&lab, is_ipv6));
        let outcome = run_pages(&lab, &plan);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 50, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/tcp/rcvbyte"), 50 * 20_000, "{outcome}");
        // The first connections find out; those after them know.
        let found_out = outcome.number("/ports/1/connections/tcp/mturesent");
        assert!((1..=5).contains(&found_out), "{outcome}");
        // No timer was needed, and nothing said of the way to the servers.
        assert_eq!(outcome.number("/ports/1/connections/tcp/rexmttimeo"), 0, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/tcp/mturesent"), 0, "{outcome}");
    }
}
