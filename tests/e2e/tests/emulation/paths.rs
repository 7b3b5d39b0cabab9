//! Paths that carry less than the interfaces at their ends.

use wirestorm_e2e::can_run;
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
        let mut command = emulate(&plan);
        // Linux at the ends has a default route there.
        command.arg("--force-interface");
        command.args(["--port", &format!("clients={}", lab.a.port())]);
        command.args(["--port", &format!("servers={}", lab.b.port())]);
        let outcome = run_command(&mut command).expect(0);
        assert_eq!(outcome.number("/ports/0/flows/closed"), 50, "{outcome}");
        assert_eq!(outcome.number("/ports/0/tcp/rcvbyte"), 50 * 20_000, "{outcome}");
        // The first connections find out; those after them know.
        let found_out = outcome.number("/ports/1/tcp/mturesent");
        assert!((1..=5).contains(&found_out), "{outcome}");
        // No timer was needed, and nothing said of the way to the servers.
        assert_eq!(outcome.number("/ports/1/tcp/rexmttimeo"), 0, "{outcome}");
        assert_eq!(outcome.number("/ports/0/tcp/mturesent"), 0, "{outcome}");
    }
}
