//! HTTP/2 of emulated clients and servers, with curl, nghttp, h2load and nginx.

use std::fs;
use std::time::{Duration, Instant};

use wirestorm_e2e::{Outcome, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

use super::tls::{certificate, start_nginx};
use super::{KilledOnDrop, PAGE, emulate, host, plan, serve, stop};

/// Servers of pages at port 443, and without TLS at 80; one at 444 that echoes the request, and one
/// at 81 that delays its response.
const SERVERS: &str = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: pages
    http: {version: 2, requests: 1000, response: {body: {size: 20000, fill: wire}, headers: {X-Own: 1}}}
    tls: true
    server: {tx: servers, port: 443}
  - name: plain
    http: {version: 2, requests: 1000, response: {status: 404, body: 20000}}
    server: {tx: servers, port: 80}
  - name: slow
    http: {version: 2, requests: 1000, response: {body: 100, delay: 200ms}}
    server: {tx: servers, port: 81}
  - name: echo
    http2: true
    tls: true
    server:
      tx: servers
      port: 444
      program:
        - repeat:
            steps:
              - receive: {message: http}
              - extract: {first: {pattern: "^(\\S+ \\S+) "}}
              - extract: {host: {pattern: "\r\nhost: (\\S+)"}}
              - extract: {end: {pattern: "(.{9})$"}}
              - set: {all: {text: "${first} ${host} ${end}"}}
              - send: "HTTP/1.1 201 Created\r\nContent-Length: ${all.length}\r\n\r\n${all}"
"#;

fn number(outcome: &Outcome, name: &str) -> u64 {
    outcome.number(&format!("/ports/0/{name}"))
}

#[test]
fn curl_nghttp_and_h2load_use_an_emulated_server() {
    if !can_run(&["curl", "nghttp", "h2load"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let emulated = serve(&lab, &scratch, SERVERS);
    let run = |tool: &str, arguments: &[&str]| {
        let output = lab.b.command("timeout").args(["30", tool]).args(arguments).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool}: {stdout} {complained}");
        stdout
    };
    // The first attempts may find no server yet; curl retries.
    let curl = |arguments: &[&str]| {
        let usual = ["--insecure", "--silent", "--show-error", "--http2", "--max-time", "10"];
        let tries = ["--retry", "5", "--retry-delay", "1", "--retry-all-errors"];
        run("curl", &[&usual[..], &tries, arguments].concat())
    };
    let write_out = ["--write-out", " %{http_version} %{response_code} %header{x-own}\n"];
    let page = "wire".repeat(5_000);
    let pages = curl(&[&write_out[..], &["https://198.51.100.77/"; 3]].concat());
    assert_eq!(pages, format!("{page} 2 200 1\n").repeat(3));
    // Concurrent streams.
    let parallel = [&["--parallel"][..], &["https://198.51.100.77/a"; 8]].concat();
    assert_eq!(curl(&parallel), page.repeat(8));

    let body = scratch.file("body");
    fs::write(&body, format!("{}a nice end", "x".repeat(600_000))).unwrap();
    let upload = ["--data-binary", &format!("@{}", body.display())];
    let echo = "https://198.51.100.77:444/upload?a=1";
    let echoed = curl(&[&upload[..], &["--write-out", " %{response_code}", echo]].concat());
    // The server examines only the first 64 KiB.
    assert_eq!(echoed, "POST /upload?a=1 198.51.100.77:444 xxxxxxxxx 201");

    let plain = curl(&["--http2-prior-knowledge", "--head", "http://198.51.100.77/"]);
    assert!(plain.starts_with("HTTP/2 404") && plain.contains("content-length: 20000"), "{plain}");
    let verbose = run("nghttp", &["--null-out", "--verbose", "http://198.51.100.77/"]);
    assert!(verbose.contains("END_STREAM") && verbose.contains(":status: 404"), "{verbose}");

    // 400 requests over 4 connections, with 10 concurrent streams on each.
    let load = run("h2load", &["-n", "400", "-c", "4", "-m", "10", "https://198.51.100.77/"]);
    let expected = "400 total, 400 started, 400 done, 400 succeeded, 0 failed, 0 errored";
    assert!(load.contains(expected) && load.contains("Application protocol: h2"), "{load}");
    // Concurrent requests do not wait for each other; sequentially they would take 8 s.
    let began = Instant::now();
    let load = run("h2load", &["-n", "40", "-c", "1", "-m", "20", "http://198.51.100.77:81/"]);
    assert!(load.contains("40 succeeded, 0 failed"), "{load}");
    let took = began.elapsed();
    assert!((Duration::from_millis(390)..Duration::from_secs(4)).contains(&took), "{load}");

    let outcome = stop(emulated);
    assert_eq!(
        number(&outcome, "connections/http2/requests"),
        3 + 8 + 1 + 1 + 1 + 400 + 40,
        "{outcome}"
    );
    assert_eq!(
        number(&outcome, "connections/http2/responses/2xx"),
        3 + 8 + 1 + 400 + 40,
        "{outcome}"
    );
    assert_eq!(number(&outcome, "connections/http2/responses/4xx"), 2, "{outcome}");
    assert_eq!(number(&outcome, "connections/flows/failed"), 0, "{outcome}");
}

/// nginx with HTTP/2 at port 443, and without at port 444; it logs requests to `log`.
fn nginx(lab: &Lab, scratch: &Scratch) -> KilledOnDrop {
    host(&lab.b);
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    certificate(scratch, "pages");
    for (name, size) in [("index.html", PAGE), ("big", 50 * PAGE)] {
        let page: Vec<u8> = (0..size).map(|at| b'a' + (at % 26) as u8).collect();
        fs::write(scratch.file(name), page).unwrap();
    }
    let folder = scratch.path().display();
    let server = |listen: &str| {
        format!(
            "server {{ listen {listen}; root {folder}; ssl_certificate {folder}/pages.pem; \
             ssl_certificate_key {folder}/pages.key; client_max_body_size 9m; \
             location /upload {{ proxy_pass http://127.0.0.1:8080; }} }}\n"
        )
    };
    let configuration = format!(
        "daemon off; user root; pid {folder}/pid; error_log {folder}/errors; events {{}}\n\
         http {{ log_format asked '$server_protocol $connection $request_method $uri \
         $content_length $status $http_x_own $host'; access_log {folder}/log asked; \
         client_body_temp_path {folder}; proxy_temp_path {folder}; keepalive_requests 50; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         {}{}server {{ listen 127.0.0.1:8080; access_log off; return 202 \"taken\\n\"; }} }}",
        server("443 ssl http2"),
        server("444 ssl"),
    );
    start_nginx(lab, scratch, &configuration)
}

/// Clients of nginx, ten at a time and `limit` in total, with fields of their template.
fn clients(limit: u64, port: u16, fields: &str, client: &str) -> String {
    format!(
        r#"
ports: [{{name: clients, addresses: 198.51.100.77/24}}]
templates:
  - name: page
    {fields}
    client:
      tx: clients
      addresses: 198.51.100.77-198.51.100.96
      servers: 198.51.100.2
      server_port: {port}
      load: {{concurrent: 10}}
      limit: {limit}
{client}
"#
    )
}

#[test]
fn nginx_serves_emulated_clients_over_http_2() {
    if !can_run(&["nginx", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _nginx = nginx(&lab, &scratch);
    let port = format!("clients={}", lab.a.port());
    let run = |limit, fields: &str, client: &str| {
        let plan = plan(&scratch, &clients(limit, 443, fields, client));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        assert_eq!(number(&outcome, "connections/flows/closed"), limit, "{outcome}");
        let log = fs::read_to_string(scratch.file("log")).unwrap();
        fs::write(scratch.file("log"), "").unwrap();
        (outcome, log)
    };
    // Whole pages, several at a time, over one connection for each client.
    let http =
        "http: {version: 2, host: pages.test, requests: 12, pipeline: 4, headers: {X-Own: a}}";
    let (outcome, log) = run(50, &format!("{http}\n    tls: {{sni: pages.test}}"), "");
    assert_eq!(number(&outcome, "connections/http2/requests"), 600, "{outcome}");
    assert_eq!(number(&outcome, "connections/http2/responses/2xx"), 600, "{outcome}");
    let received = number(&outcome, "connections/tcp/rcvbyte");
    assert!((600 * PAGE..660 * PAGE).contains(&received), "{outcome}");
    let lines = |end: &str| log.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!(lines("GET /index.html - 200 a pages.test"), 600, "{log}");
    assert!(log.lines().all(|line| line.starts_with("HTTP/2.0 ")), "{log}");
    let mut connections: Vec<_> = log.lines().flat_map(|line| line.split(' ').nth(1)).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), 50);

    // Different requests over both versions.
    for (version, prefix) in [("2", "HTTP/2.0"), ("1.1", "HTTP/1.1")] {
        let http = format!(
            "http: {{version: {version}, set: {{n: {{counter: 1}}}}, path: \"/index.html?${{n}}\", \
             requests: 4, pipeline: 2, headers: {{X-Own: \"${{n:03}}-${{client_port}}\"}}}}"
        );
        let (outcome, log) = run(15, &format!("{http}\n    tls: true"), "");
        assert_eq!(number(&outcome, "connections/flows/failed"), 0, "{outcome}");
        assert!(log.lines().all(|line| line.starts_with(prefix)), "{log}");
        let ids = log.lines().filter_map(|line| line.split(' ').nth(6)?.split('-').next());
        let mut ids: Vec<_> = ids.map(str::to_owned).collect();
        ids.sort_unstable();
        assert_eq!(ids, (1..=60).map(|n| format!("{n:03}")).collect::<Vec<_>>(), "{log}");
    }

    // nginx sends the second response long before the first one; the program receives them in
    // request order.
    let program = r#"
      program:
        - send: "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n"
        - receive: {message: http}
        - expect: {pattern: "^HTTP/1.1 200 OK\r\n(?s).*content-length: 1000000\r\n"}
        - receive: {message: http}
        - expect: {pattern: "^HTTP/1.1 404 Not Found\r\n"}
        - send: {text: "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", size: 1000060}
        - receive: {message: http}
        - expect: {pattern: "^HTTP/1.1 202 Accepted\r\n(?s).*\r\n\r\ntaken\n$"}
"#;
    for (http2, limit) in
        [("true", 20), ("{max_concurrent_streams: 1, initial_window_size: 65535}", 10)]
    {
        let (outcome, log) = run(limit, &format!("http2: {http2}\n    tls: true"), program);
        assert_eq!(number(&outcome, "connections/http2/responses/2xx"), 2 * limit, "{outcome}");
        assert_eq!(number(&outcome, "connections/http2/responses/4xx"), limit, "{outcome}");
        let uploads = log.lines().filter(|line| line.ends_with("POST /upload 1000000 202 - a"));
        assert_eq!(uploads.count() as u64, limit, "{log}");
    }
}

#[test]
fn http_2_failures_are_counted_by_cause() {
    if !can_run(&["nginx", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _nginx = nginx(&lab, &scratch);
    let port = format!("clients={}", lab.a.port());
    let alpn = "http: {version: 2}\n    tls: {alpn: [h2, http/1.1]}";
    let plain = "http: {version: 2}";
    for (server_port, fields, cause) in [
        (
            444,
            "http: {version: 2}\n    tls: true",
            "connections/tls/failures/received alert no_application_protocol",
        ),
        (444, alpn, "connections/http2/failures/peer does not agree on h2 (ALPN)"),
        (443, plain, "connections/http2/failures/peer misbehaved: FRAME_SIZE_ERROR"),
    ] {
        let plan = plan(&scratch, &clients(20, server_port, fields, ""));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(3);
        assert_eq!(number(&outcome, "connections/flows/session_failed"), 20, "{cause}: {outcome}");
        assert_eq!(number(&outcome, cause), 20, "{cause}: {outcome}");
    }
    // nginx sends GOAWAY after 50 requests: the others use a new connection.
    let again = "http: {version: 2, requests: 60}\n    tls: true";
    let plan = plan(&scratch, &clients(20, 443, again, ""));
    let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
    assert_eq!(number(&outcome, "connections/flows/reconnected"), 20, "{outcome}");
    assert_eq!(number(&outcome, "connections/http2/responses/2xx"), 20 * 60, "{outcome}");
}
