//! Paths with a smaller MTU than the interfaces at their ends.

use wirestorm_e2e::{Outcome, can_run};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{LabOptions, RouterLab};

use super::{emulate, plan, run_command};

/// A plan with pages of 20,000 bytes, through routers at these addresses.
fn pages(lab: &RouterLab, is_ipv6: bool) -> String {
    let address = |end: &wirestorm_testkit::net::End| match is_ipv6 {
        true => end.ipv6().to_string(),
        false => end.ipv4().to_string(),
    };
    let [router_a, router_b] = [&lab.router_a, &lab.router_b].map(address);
    // Static neighbours of the routers, which Linux lacks.
    let length = if is_ipv6 { 64 } else { 24 };
    let attached = |router: &str| {
        let cut = router.rfind(['.', ':']).unwrap() + 1;
        format!("{}77", &router[..cut])
    };
    let (client, server) = (attached(&router_a), attached(&router_b));
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
      load: {{concurrent: 5}}
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
/// Advertisement", so hosts may know no other address.
#[test]
fn gateway_may_be_a_link_local_address() {
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

/// Runs the plan at the ends of a lab.
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
fn path_mtu_discovery_follows_a_router() {
    if !can_run(&[]) {
        return;
    }
    let options = LabOptions { ipv6: true, ..LabOptions::default() };
    let (lab, scratch) = (RouterLab::with(&options).unwrap(), Scratch::new().unwrap());
    // Simulates a smaller next link: the two interfaces of a veth pair need the same MTU.
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
        // The first connections discover the path MTU; later ones know it.
        let found_out = outcome.number("/ports/1/connections/tcp/mturesent");
        assert!((1..=5).contains(&found_out), "{outcome}");
        // No retransmission timeout was needed, and the path to the servers is unaffected.
        assert_eq!(outcome.number("/ports/1/connections/tcp/rexmttimeo"), 0, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/tcp/mturesent"), 0, "{outcome}");
    }
}
