//! Emulated servers with wrk and a browser, and both sides through a load balancer.

use std::process::{Command, Output};

use wirestorm_e2e::{Outcome, Running, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab, LabOptions, RouterLab};

use super::tls::certificate;
use super::{curl, emulate, host, plan, serve, stop, stop_with_failures};

/// Runs a tool at an end with a timeout.
fn tool(end: &End, seconds: u32, line: &str) -> Output {
    let mut command = end.command("timeout");
    command.arg(seconds.to_string()).args(line.split(' '));
    command.output().unwrap()
}

/// Serves a template at 198.51.100.77 while `ask` runs at the other end, then calls `stop`.
fn served(
    scratch: &Scratch,
    template: &str,
    stop: fn(Running) -> Outcome,
    ask: impl FnOnce(&Lab),
) -> Outcome {
    let lab = Lab::new().unwrap();
    host(&lab.b);
    let text = format!(
        "ports: [{{name: servers, addresses: 198.51.100.77/24}}]\ntemplates:\n  - name: t\n{template}"
    );
    let server = serve(&lab, scratch, &text);
    ask(&lab);
    stop(server)
}

#[test]
fn wrk_is_served_over_persistent_connections() {
    if !can_run(&["wrk", "curl"]) {
        return;
    }
    let template = "    http: {requests: 2, response: {body: 32000}}\n    server: {tx: servers}\n";
    let mut requests = 0;
    // At its end wrk resets its connections.
    let outcome = served(&Scratch::new().unwrap(), template, stop_with_failures, |lab| {
        assert_eq!(curl(&lab.b, "198.51.100.77", 1).len(), 32_000);
        let output = tool(&lab.b, 20, "wrk -t1 -c20 -d2s http://198.51.100.77/page");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{text}");
        let number = text.split_whitespace().zip(text.split_whitespace().skip(1));
        let number = number.filter(|(_, word)| *word == "requests").map(|(number, _)| number);
        requests = number.flat_map(str::parse).next().unwrap();
    });
    assert!(requests > 1_000, "{requests} requests");
    let number = |name: &str| outcome.number(&format!("/ports/0/{name}"));
    // One connection is from curl, one is wrk's test connection.
    assert_eq!(number("connections/tcp/accepts"), 2 + 20, "wrk keeps its connections: {outcome}");
    // At its end wrk aborts some responses.
    let reset = number("connections/flows/reset") + number("connections/flows/reset_after_close");
    assert_eq!(number("connections/flows/failed"), reset, "{outcome}");
    assert!(reset <= 20 && number("connections/flows/no_template") == 0, "{outcome}");
    assert!(number("connections/tcp/sndbyte_ok") > requests * 32_000, "{requests}: {outcome}");
}

/// A server of a page with two images. After loading, the page writes the sizes of its images and
/// the protocol of each part into itself.
const PAGE_WITH_IMAGES: &str = r#"      program:
        - label: next
        - receive: {message: http}
        - jump: {to: wide, received: {pattern: "^GET /wide.svg "}}
        - jump: {to: high, received: {pattern: "^GET /high.svg "}}
        - jump: {to: page, received: {pattern: "^GET / "}}
        - send: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        - jump: next
        - label: page
        - set: {page: {text: "<!doctype html><body><img src=wide.svg><img src=high.svg><script>onload=()=>document.body.append('sizes '+[...document.images].map(it=>it.naturalWidth+'x'+it.naturalHeight),' by '+performance.getEntries().map(it=>it.nextHopProtocol).filter(it=>it))</script>"}}
        - send: "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${page.length}\r\n\r\n${page}"
        - jump: next
        - label: wide
        - set: {image: {text: "<svg xmlns='http://www.w3.org/2000/svg' width='70' height='5'/>"}}
        - jump: image
        - label: high
        - set: {image: {text: "<svg xmlns='http://www.w3.org/2000/svg' width='6' height='80'/>"}}
        - label: image
        - send: "HTTP/1.1 200 OK\r\nContent-Type: image/svg+xml\r\nContent-Length: ${image.length}\r\n\r\n${image}"
        - jump: next
"#;

/// Returns the page as a browser renders it, with more flags.
fn browse(end: &End, scratch: &Scratch, flags: &str, url: &str) -> String {
    let line = format!(
        "chromium-headless-shell --no-sandbox --disable-gpu --user-data-dir={} {flags}--dump-dom \
         {url}",
        scratch.file("profile").display()
    );
    let output = tool(end, 40, &line);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn browser_renders_a_page_with_images() {
    if !can_run(&["chromium-headless-shell", "curl"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let template = format!("    server:\n      tx: servers\n      port: 80\n{PAGE_WITH_IMAGES}");
    let outcome = served(&scratch, &template, stop, |lab| {
        assert!(curl(&lab.b, "198.51.100.77", 1).starts_with(b"<!doctype html>"));
        let page = browse(&lab.b, &scratch, "", "http://198.51.100.77/");
        assert!(page.contains("sizes 70x5,6x80 by http/1.1,http/1.1,http/1.1"), "{page}");
    });
    assert_eq!(outcome.number("/ports/0/connections/flows/program_failed"), 0, "{outcome}");
}

/// Public key hash of a certificate in the format of browsers: SHA-256 of its DER in base64.
fn key_hash(scratch: &Scratch, name: &str) -> String {
    let line = "openssl x509 -in $0 -pubkey -noout | openssl pkey -pubin -outform der | \
                openssl dgst -sha256 -binary | openssl enc -base64";
    let mut command = Command::new("sh");
    let output = command.args(["-c", line]).arg(scratch.file(name)).output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 40, "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn browser_renders_a_page_over_one_http_2_connection() {
    if !can_run(&["chromium-headless-shell", "curl", "openssl"]) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    certificate(&scratch, "pages");
    let template = format!(
        "    http2: true\n    tls: {{certificate: pages.pem, key: pages.key}}\n    \
         server:\n      tx: servers\n      port: 443\n{PAGE_WITH_IMAGES}"
    );
    let outcome = served(&scratch, &template, stop, |lab| {
        // The first attempts may find no server yet; curl retries.
        let line = "curl --insecure --silent --show-error --max-time 5 --retry 5 --retry-delay 1 \
                    --retry-all-errors https://198.51.100.77/";
        let output = tool(&lab.b, 30, line);
        assert!(output.stdout.starts_with(b"<!doctype html>"), "{output:?}");
        // The browser accepts this self-signed certificate and no other.
        let hash = key_hash(&scratch, "pages.pem");
        let flags = format!("--ignore-certificate-errors-spki-list={hash} ");
        let page = browse(&lab.b, &scratch, &flags, "https://198.51.100.77/");
        assert!(page.contains("sizes 70x5,6x80 by h2,h2,h2"), "{page}");
    });
    let number = |name: &str| outcome.number(&format!("/ports/0/{name}"));
    // One connection is from curl.
    assert_eq!(
        (number("connections/http2/requests"), number("connections/http2/responses/2xx")),
        (4, 4),
        "{outcome}"
    );
    assert_eq!(
        (number("connections/tcp/accepts"), number("connections/tls/full_handshakes")),
        (2, 2),
        "{outcome}"
    );
    assert_eq!(
        number("connections/flows/program_failed") + number("connections/flows/session_failed"),
        0,
        "{outcome}"
    );
}

/// Number of flows that a load balancer sent to each server, by its nftables counters.
fn balanced(router: &End, servers: usize) -> Vec<u64> {
    let count = |server: usize| {
        let line = format!("nft -j list counter ip balancer server{server}");
        let output = tool(router, 10, &line);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = document["nftables"].as_array().unwrap().iter();
        found.filter_map(|it| it["counter"]["packets"].as_u64()).next().unwrap()
    };
    (0..servers).map(count).collect()
}

#[test]
fn load_balancer_between_clients_and_servers() {
    if !can_run(&["nft"]) {
        return;
    }
    // Round robin with masqueraded client addresses, then by client address.
    for (choice, masquerade) in [("numgen inc mod 3", true), ("jhash ip saddr mod 3", false)] {
        let lab = RouterLab::with(&LabOptions::default()).unwrap();
        let scratch = Scratch::new().unwrap();
        let router = lab.router_a.namespace();
        router
            .ip(&["addr add 198.51.100.1/24 dev veth1", "addr add 203.0.113.1/24 dev veth2"])
            .unwrap();
        let nft = |line: &str| {
            let output = lab.router_a.command("nft").args(line.split(' ')).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
        };
        nft("add table ip balancer");
        nft("add chain ip balancer before { type nat hook prerouting priority -100 ; }");
        nft("add chain ip balancer behind { type nat hook postrouting priority 100 ; }");
        let map = "map { 0 : 203.0.113.10, 1 : 203.0.113.11, 2 : 203.0.113.12 }";
        nft(&format!("add rule ip balancer before ip daddr 198.51.100.100 dnat to {choice} {map}"));
        for server in 0..3 {
            nft(&format!("add counter ip balancer server{server}"));
            let counter = format!("ip daddr 203.0.113.1{server} counter name server{server}");
            nft(&format!("add rule ip balancer behind {counter}"));
        }
        if masquerade {
            nft("add rule ip balancer behind oifname veth2 masquerade");
        }
        // It answers ARP for the address that clients connect to.
        router.ip(&["addr add 198.51.100.100/32 dev veth1"]).unwrap();
        let text = r#"
ports:
  - {name: clients, addresses: 198.51.100.7/24, gateway: 198.51.100.1}
  - {name: servers, addresses: 203.0.113.9/24, gateway: 203.0.113.1}
templates:
  - name: page
    http: {requests: 2, response: {body: 20000}}
    client:
      tx: clients
      addresses: 198.51.100.20-198.51.100.79
      servers: 198.51.100.100
      load: {rate: 300}
      limit: 300
    server: {tx: servers, addresses: 203.0.113.10-203.0.113.12}
"#;
        let plan = plan(&scratch, text);
        let ports = [format!("clients={}", lab.a.port()), format!("servers={}", lab.b.port())];
        let mut command = emulate(&plan);
        command.args(["--force-interface", "--port", &ports[0], "--port", &ports[1]]);
        let outcome = run_command(&mut command).expect(0);
        for port in [0, 1] {
            let number = |name: &str| outcome.number(&format!("/ports/{port}/{name}"));
            assert_eq!(number("connections/flows/closed"), 300, "{choice}: {outcome}");
            assert_eq!(number("connections/flows/failed"), 0, "{choice}: {outcome}");
        }
        assert!(outcome.number("/ports/0/connections/tcp/rcvbyte") > 300 * 2 * 20_000, "{outcome}");
        let balanced = balanced(&lab.router_a, 3);
        assert_eq!(balanced.iter().sum::<u64>(), 300, "{choice}: {balanced:?}");
        if masquerade {
            assert_eq!(balanced, [100; 3]);
        } else {
            // Each client uses one server, and makes five flows like any other.
            assert!(balanced.iter().all(|flows| flows % 5 == 0 && *flows > 0), "{balanced:?}");
        }
    }
}
