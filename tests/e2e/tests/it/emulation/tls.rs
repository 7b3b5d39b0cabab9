//! TLS of emulated clients and servers, with OpenSSL's client, curl and nginx.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use wirestorm_e2e::{can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::{KilledOnDrop, PAGE, emulate, host, plan, serve, stop, stop_with_failures};

/// Creates a self-signed certificate for `NAME.test`: `NAME.pem` and `NAME.key`.
pub(super) fn certificate(scratch: &Scratch, name: &str) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}.test")]);
    command.args(["-addext", &format!("subjectAltName=DNS:{name}.test")]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(scratch.file(&format!("{name}.key")));
    let output = command.arg("-out").arg(scratch.file(&format!("{name}.pem"))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server of pages at port 443, and one at port 444 that closes after each page, with more fields
/// of `tls`.
fn server(tls: &str) -> String {
    format!(
        r#"
ports: [{{name: servers, addresses: 198.51.100.77/24}}]
templates:
  - name: page
    server:
      tx: servers
      port: 443
      program:
        - repeat:
            steps:
              - receive: 1
              - send: {{text: "HTTP/1.1 200 OK\r\nContent-Length: 19958\r\n\r\n", size: 20000, fill: "wire"}}
    tls: {{alpn: [http/1.1], {tls}}}
  - name: once
    server:
      tx: servers
      port: 444
      program:
        - receive: 1
        - send: {{size: 20000}}
    tls: {{alpn: [http/1.1], {tls}}}
"#
    )
}

/// Output of OpenSSL's client with one request.
fn s_client(end: &End, arguments: &[&str]) -> String {
    let mut command = end.command("timeout");
    command.args(["20", "openssl", "s_client", "-connect", "198.51.100.77:444"]);
    command.args(["-servername", "pages.test", "-alpn", "h2,http/1.1", "-ign_eof"]);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap();
    client.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let output = client.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn openssl_and_curl_use_an_emulated_server() {
    if !can_run(&["openssl", "curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    certificate(&scratch, "pages");
    // File names are relative to the plan.
    let emulated = serve(&lab, &scratch, &server("certificate: pages.pem, key: pages.key"));
    let authority = scratch.file("pages.pem");
    let authority = authority.to_str().unwrap();
    let mut pages = 0;
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        // The first attempts may find no server yet; curl retries.
        let curl_version = if name == "TLSv1.2" { ["--tls-max", "1.2"] } else { ["--tlsv1.3", ""] };
        let mut command = lab.b.command("curl");
        command.args(["--insecure", "--silent", "--show-error", "--max-time", "5"]);
        command.args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
        command.args(curl_version.iter().filter(|word| !word.is_empty()));
        command.args(["--write-out", "%{http_version}"]);
        let output = command.args(["https://198.51.100.77/"; 3]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.len(), 3 * (19_958 + "1.1".len()));
        assert!(output.stdout.starts_with(b"wirewire"));
        pages += 3;

        let session = scratch.file(name);
        let session = session.to_str().unwrap();
        let trusted = ["-CAfile", authority, "-verify_return_error", version];
        let first = s_client(&lab.b, &[&trusted[..], &["-sess_out", session]].concat());
        for expected in [name, "Verification: OK", "ALPN protocol: http/1.1", "New, "] {
            assert!(first.contains(expected), "no {expected:?} in {first}");
        }
        let again = s_client(&lab.b, &[&trusted[..], &["-sess_in", session]].concat());
        assert!(again.contains("Reused, "), "{again}");
        pages += 2;
    }
    let outcome = stop(emulated);
    let tls = |name: &str| outcome.number(&format!("/ports/0/connections/tls/{name}"));
    // Each curl fetches all its pages over one connection.
    assert_eq!(tls("full_handshakes") + tls("resumed_handshakes"), 6, "{outcome}");
    assert_eq!(tls("resumed_handshakes"), 2, "{outcome}");
    assert_eq!(tls("handshake/count"), 6, "{outcome}");
    assert!(outcome.number("/ports/0/connections/tcp/sndbyte_ok") > pages * PAGE, "{outcome}");
}

/// nginx with a page over TLS; it logs to `log` whether each session was resumed.
fn nginx(lab: &Lab, scratch: &Scratch, protocols: &str) -> KilledOnDrop {
    host(&lab.b);
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    certificate(scratch, "pages");
    let page: Vec<u8> = (0..PAGE).map(|byte| byte as u8).collect();
    fs::write(scratch.file("index.html"), page).unwrap();
    let folder = scratch.path().display();
    let configuration = format!(
        "daemon off; user root; pid {folder}/pid; error_log {folder}/errors; events {{}}\n\
         http {{ log_format tls '$ssl_protocol $ssl_session_reused $ssl_server_name'; \
         access_log {folder}/log tls; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 443 ssl; root {folder}; ssl_certificate {folder}/pages.pem; \
         ssl_certificate_key {folder}/pages.key; ssl_protocols {protocols}; }} }}"
    );
    start_nginx(lab, scratch, &configuration)
}

/// Starts nginx at the other end; returns once it serves TLS, with an empty log.
pub(super) fn start_nginx(lab: &Lab, scratch: &Scratch, configuration: &str) -> KilledOnDrop {
    let file = scratch.file("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let nginx = KilledOnDrop(lab.b.command("nginx").arg("-c").arg(&file).spawn().unwrap());
    // It is ready once a client gets a page.
    let mut command = lab.b.command("curl");
    command.args(["--insecure", "--silent", "--show-error", "--max-time", "5"]);
    command.args(["--retry", "5", "--retry-delay", "1", "--retry-all-errors"]);
    let output = command.arg("https://198.51.100.2/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(scratch.file("log"), "").unwrap();
    nginx
}

/// A hundred clients of nginx, ten at a time.
fn clients(tls: &str) -> String {
    format!(
        r#"
ports: [{{name: clients, addresses: 198.51.100.77/24}}]
templates:
  - name: page
    client:
      tx: clients
      addresses: 198.51.100.77-198.51.100.96
      servers: 198.51.100.2
      server_port: 443
      load: {{concurrent: 10}}
      limit: 100
      program:
        - send: "GET / HTTP/1.1\r\nHost: pages.test\r\nConnection: close\r\n\r\n"
        - wait_for_close
    tls: {{sni: pages.test, {tls}}}
"#
    )
}

#[test]
fn nginx_serves_emulated_clients_over_tls() {
    if !can_run(&["nginx", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _nginx = nginx(&lab, &scratch, "TLSv1.2 TLSv1.3");
    let port = format!("clients={}", lab.a.port());
    for (version, resume) in [("1.2", true), ("1.3", true), ("1.3", false)] {
        let tls = format!("versions: [{version}], resume: {resume}, ca: pages.pem");
        let plan = plan(&scratch, &clients(&tls));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 100, "{outcome}");
        let tls = |name: &str| outcome.number(&format!("/ports/0/connections/tls/{name}"));
        assert_eq!(tls("full_handshakes") + tls("resumed_handshakes"), 100, "{outcome}");
        assert_eq!((tls("truncated"), tls("handshake/count")), (0, 100), "{outcome}");
        let received = outcome.number("/ports/0/connections/tcp/rcvbyte");
        assert!(received > 100 * PAGE, "{outcome}");
        let log = fs::read_to_string(scratch.file("log")).unwrap();
        fs::write(scratch.file("log"), "").unwrap();
        let lines = |what: &str| log.lines().filter(|line| **line == *what).count() as u64;
        let reused = lines(&format!("TLSv{version} r pages.test"));
        let new = lines(&format!("TLSv{version} . pages.test"));
        assert_eq!(
            (new, reused),
            (tls("full_handshakes"), tls("resumed_handshakes")),
            "{outcome}\n{log}"
        );
        match resume {
            // The first ten start together and have no session yet.
            true => assert!((50..=90).contains(&reused), "{reused}"),
            false => assert_eq!(reused, 0),
        }
    }
}

#[test]
fn servers_can_require_client_certificates() {
    if !can_run(&["nginx", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    certificate(&scratch, "own");
    certificate(&scratch, "other");
    let directives = format!(
        "ssl_client_certificate {}; ssl_verify_client on",
        scratch.file("own.pem").display()
    );
    let _nginx = nginx(&lab, &scratch, &format!("TLSv1.2 TLSv1.3; {directives}"));
    let port = format!("clients={}", lab.a.port());
    let received = |name: &str| {
        let fields = format!("client_certificate: {name}.pem, client_key: {name}.key");
        let fields = if name.is_empty() { String::new() } else { fields };
        let plan = plan(&scratch, &clients(&fields));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 100, "{outcome}");
        outcome.number("/ports/0/connections/tcp/rcvbyte")
    };
    // nginx rejects unknown clients with an HTTP error.
    assert!(received("own") > 100 * PAGE);
    assert!(received("other") < 50 * PAGE);
    assert!(received("") < 50 * PAGE);

    // The reverse direction. The first attempts may find no server yet.
    let text =
        server("client_ca: own.pem").replace("    tls:", "    tcp: {time_wait: 60s}\n    tls:");
    let emulated = serve(&lab, &scratch, &text);
    let curl = |credentials: &[&str]| {
        let mut command = lab.b.command("curl");
        command.args(["--insecure", "--silent", "--show-error", "--max-time", "5"]);
        command.args(credentials).arg("https://198.51.100.77/").current_dir(scratch.path());
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let again = ["--retry", "5", "--retry-delay", "1", "--retry-all-errors"];
    let credentials = ["--cert", "own.pem", "--key", "own.key"];
    assert_eq!(curl(&[&credentials[..], &again].concat()), (true, String::new()));
    let (succeeded, output) = curl(&[]);
    assert!(!succeeded && output.contains("certificate required"), "{output}");
    let (succeeded, output) = curl(&["--cert", "other.pem", "--key", "other.key"]);
    assert!(!succeeded && output.contains("unknown ca"), "{output}");
    let outcome = stop_with_failures(emulated);
    for cause in ["peer has no certificate", "certificate of an unknown issuer"] {
        assert_eq!(
            outcome.number(&format!("/ports/0/connections/tls/failures/{cause}")),
            1,
            "{outcome}"
        );
    }
}

#[test]
fn openssl_sends_a_client_certificate_to_an_emulated_server() {
    if !can_run(&["openssl", "curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    for name in ["own", "other"] {
        certificate(&scratch, name);
    }
    let emulated = serve(&lab, &scratch, &server("client_ca: own.pem"));
    let show = |version: &str, name: &str| {
        let files = [".pem", ".key"].map(|end| scratch.file(&format!("{name}{end}")));
        let [certificate, key] = files.each_ref().map(|file| file.to_str().unwrap());
        let credentials = ["-cert", certificate, "-key", key];
        s_client(
            &lab.b,
            &[&[version][..], if name.is_empty() { &[] } else { &credentials }].concat(),
        )
    };
    // The first attempts may find no server yet.
    let mut command = lab.b.command("curl");
    command.args(["--insecure", "--silent", "--max-time", "5", "--retry", "5", "--retry-delay"]);
    command.args(["1", "--retry-connrefused", "https://198.51.100.77/"]);
    command.args(["--cert", "own.pem", "--key", "own.key"]).current_dir(scratch.path());
    assert!(command.output().unwrap().status.success());
    for version in ["-tls1_2", "-tls1_3"] {
        let output = show(version, "own");
        assert!(
            output.contains("ALPN protocol: http/1.1") && output.contains("closed"),
            "{output}"
        );
        assert!(!output.contains("alert"), "{output}");
        let output = show(version, "");
        assert!(output.contains("alert certificate required"), "{version}: {output}");
        let output = show(version, "other");
        assert!(output.contains("alert unknown ca"), "{version}: {output}");
    }
    let outcome = stop_with_failures(emulated);
    let number = |name: &str| outcome.number(&format!("/ports/0/{name}"));
    // The rejected connections with their causes; one of the others is from curl.
    assert_eq!(number("connections/tls/failures/peer has no certificate"), 2, "{outcome}");
    assert_eq!(number("connections/tls/failures/certificate of an unknown issuer"), 2, "{outcome}");
    assert_eq!(number("connections/tls/full_handshakes"), 3, "{outcome}");
}

#[test]
fn tls_failures_are_counted_by_cause() {
    if !can_run(&["nginx", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let _nginx = nginx(&lab, &scratch, "TLSv1.3");
    certificate(&scratch, "other");
    let port = format!("clients={}", lab.a.port());
    for (tls, cause) in [
        ("versions: [1.2]", "received alert protocol_version"),
        ("ca: other.pem", "certificate of an unknown issuer"),
    ] {
        let plan = plan(&scratch, &clients(tls));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(3);
        assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 100, "{outcome}");
        assert_eq!(outcome.number("/ports/0/connections/flows/session_failed"), 100, "{outcome}");
        assert_eq!(
            outcome.number(&format!("/ports/0/connections/tls/failures/{cause}")),
            100,
            "{outcome}"
        );
    }
}

#[test]
fn invalid_certificate_files_are_named() {
    if !can_run(&["openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    certificate(&scratch, "pages");
    let port = format!("servers={}", lab.a.port());
    for (tls, expected) in [
        ("certificate: none.pem, key: pages.key", "none.pem: No such file or directory"),
        ("certificate: pages.pem, key: pages.pem", "templates[0].tls.key: no private key found"),
        ("certificate: pages.key, key: pages.key", "tls.certificate: no certificate found"),
        ("ciphers: [TLS_NULL]", "templates[0].tls: found the cipher suite \"TLS_NULL\", expected"),
    ] {
        let plan = plan(&scratch, &server(tls));
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(2);
        assert!(outcome.messages.contains(expected), "{tls}: {outcome}");
    }
}
