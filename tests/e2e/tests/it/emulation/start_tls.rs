//! TLS started within a connection: mail with STARTTLS (RFC 3207) and files with AUTH TLS (RFC
//! 4217), with curl, OpenSSL's client, vsftpd and aiosmtpd.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::tls::certificate;
use super::{KilledOnDrop, both_ports, emulate, host, plan, serve, stop};

/// A counter of a template at the only port.
#[track_caller]
fn number(outcome: &Outcome, name: &str, pointer: &str) -> u64 {
    let templates = outcome.result()["ports"][0]["templates"].as_array().unwrap();
    let found = templates.iter().find(|it| it["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no template {name}: {outcome}"));
    found.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {found}"))
}

/// Checks that all flows of a template used TLS and closed.
#[track_caller]
fn assert_protected(outcome: &Outcome, name: &str, flows: u64) {
    let number = |pointer| number(outcome, name, pointer);
    assert_eq!(number("/flows/closed"), flows, "{name}: {outcome}");
    assert_eq!(
        number("/tls/full_handshakes") + number("/tls/resumed_handshakes"),
        flows,
        "{name}: {outcome}"
    );
    assert_eq!(number("/flows/program_failed"), 0, "{name}: {outcome}");
}

const SERVERS: &str = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: mail
    smtp: {start_tls: true}
    tls: &tls {certificate: pages.pem, key: pages.key}
    server: {tx: servers}
  - name: files
    ftp: {files: [{name: report.bin, size: 300000}], upload: [{name: new.bin, size: 40000}]}
    tls: *tls
    server: {tx: servers}
    tcp: {time_wait: 1ms}
"#;

fn curl(end: &End, scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = end.command("curl");
    command.args(["--silent", "--show-error", "--max-time", "9", "--cacert"]);
    command.arg(scratch.file("pages.pem"));
    command.args(["--retry", "5", "--retry-delay", "1", "--retry-connrefused"]);
    for port in ["21", "25"] {
        command.args(["--resolve", &format!("pages.test:{port}:198.51.100.77")]);
    }
    command.args(arguments).output().unwrap()
}

/// Output of OpenSSL's client that starts TLS and sends these lines.
fn s_client(end: &End, scratch: &Scratch, protocol: &str, port: &str, lines: &str) -> String {
    let mut command = end.command("timeout");
    command.args(["20", "openssl", "s_client", "-starttls", protocol, "-CAfile"]);
    command.arg(scratch.file("pages.pem"));
    command.args(["-verify_return_error", "-servername", "pages.test", "-crlf", "-ign_eof"]);
    command.args(["-connect", &format!("198.51.100.77:{port}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap();
    client.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = client.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn curl_and_openssl_start_tls_with_emulated_servers() {
    if !can_run(&["curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    certificate(&scratch, "pages");
    let server = serve(&lab, &scratch, SERVERS);
    let curl = |arguments: &[&str]| curl(&lab.b, &scratch, arguments);
    let message = scratch.file("message");
    fs::write(&message, "Subject: Hello\r\n\r\nHello\r\n.hidden\r\n").unwrap();
    let (text, new) = (message.display().to_string(), scratch.file("new.bin"));
    fs::write(&new, vec![1; 40_000]).unwrap();
    let mail = ["--mail-from", "a@example.net", "--mail-rcpt", "b@example.net"];
    let submit = [&mail[..], &["--upload-file", &text, "smtp://pages.test"]].concat();
    let protect = "--ssl-reqd";
    let output = curl(&[&[protect][..], &submit].concat());
    assert!(output.status.success(), "{output:?}");
    // Clients without TLS are rejected: the sender, and the user.
    assert_eq!(curl(&submit).status.code(), Some(55));
    assert_eq!(curl(&["ftp://pages.test/report.bin"]).status.code(), Some(67));

    let expected: Vec<u8> = (0..300_000).map(|byte| byte as u8).collect();
    for (version, more) in [("--tlsv1.3", "--ipv4"), ("--tlsv1.2", "--disable-epsv")] {
        // Two files over one control connection.
        let url = "ftp://pages.test/report.bin";
        let most = if version == "--tlsv1.2" { "1.2" } else { "1.3" };
        let output = curl(&[protect, version, "--tls-max", most, more, url, url]);
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout == [&expected[..], &expected].concat(), "{version}");
        let list = curl(&[protect, version, "--tls-max", most, "--list-only", "ftp://pages.test/"]);
        assert_eq!(String::from_utf8_lossy(&list.stdout), "report.bin\n", "{list:?}");
        let upload = ["--upload-file", &new.display().to_string(), "ftp://pages.test/new.bin"];
        let output = curl(&[&[protect, version, "--tls-max", most][..], &upload].concat());
        assert!(output.status.success(), "{output:?}");
    }
    // Unprotected data connections are rejected.
    let clear = curl(&["--ftp-ssl-control", "ftp://pages.test/report.bin"]);
    assert!(!clear.status.success() && clear.stdout.is_empty(), "{:?}", clear.status);

    for (protocol, port, lines, answer) in [
        ("smtp", "25", "MAIL FROM:<a@example.net>\nQUIT\n", "221 mail.example.net closes"),
        ("ftp", "21", "USER a\nQUIT\n", "221 Goodbye"),
    ] {
        let output = s_client(&lab.b, &scratch, protocol, port, lines);
        for expected in ["Verification: OK", answer] {
            assert!(output.contains(expected), "no {expected:?} in {output}");
        }
    }
    let outcome = stop(server);
    let handshakes = |name| {
        let of = |kind: &str| number(&outcome, name, &format!("/tls/{kind}"));
        (of("full_handshakes") + of("resumed_handshakes"), of("resumed_handshakes"))
    };
    assert_eq!(handshakes("mail").0, 2, "{outcome}");
    assert_eq!(handshakes("files").0, 2 * 3 + 1 + 1, "{outcome}");
    // curl's data connections resume the session of its control connection, at least with TLS 1.3.
    let (all, resumed) = handshakes("files.retr.report.bin");
    assert!(all == 4 && resumed >= 2, "{resumed} of {all}: {outcome}");
    assert_protected(&outcome, "files.stor.new.bin", 2);
    assert_protected(&outcome, "files.nlst", 2);
}

/// Data pipelined after STARTTLS must not be treated as protected, as in servers with
/// CVE-2011-0411.
#[test]
fn commands_pipelined_after_starttls_are_rejected() {
    if !can_run(&["openssl", "python3"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    certificate(&scratch, "pages");
    let server = serve(&lab, &scratch, SERVERS);
    let script = r#"
import socket, ssl, time
for _ in range(100):
    try:
        raw = socket.create_connection(("198.51.100.77", 25), 5)
        break
    except OSError:
        time.sleep(0.1)
raw.recv(1000)
raw.sendall(b"EHLO a\r\n")
raw.recv(1000)
raw.sendall(b"STARTTLS\r\nRSET\r\n")
assert raw.recv(1000).startswith(b"220 ")
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
    context.wrap_socket(raw).recv(1000)
    print("protected")
except (ssl.SSLError, OSError) as error:
    print("refused")
"#;
    let output = lab.b.command("python3").args(["-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "refused\n", "{output:?}");
    let outcome = stop_with_failures(server);
    let cause = "/tls/failures/peer's message is not TLS";
    assert_eq!(number(&outcome, "mail", cause), 1, "{outcome}");
    assert_eq!(number(&outcome, "mail", "/flows/closed"), 0, "{outcome}");
}

/// Ends servers with failed flows.
#[track_caller]
fn stop_with_failures(servers: wirestorm_e2e::Running) -> Outcome {
    servers.signal(rustix::process::Signal::INT);
    servers.wait()
}

/// vsftpd that requires TLS, and session reuse of data connections if `reuse` is set.
fn vsftpd(end: &End, scratch: &Scratch, reuse: &str) -> KilledOnDrop {
    end.namespace().ip(&["link set lo up"]).unwrap();
    let folder = scratch.path().display();
    for name in ["files", "empty"] {
        fs::create_dir(scratch.file(name)).unwrap();
    }
    let configuration = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nwrite_enable=YES\n\
         anon_upload_enable=YES\nanon_other_write_enable=YES\nallow_writeable_chroot=YES\n\
         anon_root={folder}/files\nsecure_chroot_dir={folder}/empty\nrun_as_launching_user=YES\n\
         seccomp_sandbox=NO\nisolate_network=NO\nisolate=NO\nxferlog_enable=NO\nssl_enable=YES\n\
         allow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\n\
         ssl_ciphers=HIGH\nrequire_ssl_reuse={reuse}\nrsa_cert_file={folder}/pages.pem\n\
         rsa_private_key_file={folder}/pages.key\n"
    );
    let file = scratch.file("vsftpd.conf");
    fs::write(&file, configuration).unwrap();
    let server = KilledOnDrop(end.command("vsftpd").arg(&file).spawn().unwrap());
    // Wait until it answers.
    let output = curl(end, scratch, &["--ssl-reqd", "--insecure", "ftp://127.0.0.1/"]);
    assert!(output.status.success(), "{output:?}");
    server
}

/// A plan of clients for other servers.
fn clients(template: &str, limit: u32) -> String {
    format!(
        r#"
ports: [{{name: clients, addresses: 198.51.100.77/24}}]
templates:
  - name: t
    {template}
    client: {{tx: clients, servers: 198.51.100.2, load: {{concurrent: 2}}, limit: {limit}}}
"#
    )
}

#[test]
fn vsftpd_serves_emulated_clients_over_tls() {
    if !can_run(&["vsftpd", "curl", "openssl"]) {
        return;
    }
    for reuse in ["NO", "YES"] {
        let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
        host(&lab.b);
        certificate(&scratch, "pages");
        let _server = vsftpd(&lab.b, &scratch, reuse);
        let file = |name: &str| scratch.file("files").join(name);
        fs::write(file("report.bin"), vec![7; 300_000]).unwrap();
        let template = "ftp: {files: [report.bin], upload: [{name: new.bin, size: 40000}], \
                        list: [LIST]}\n    tls: {ca: pages.pem, sni: pages.test}";
        let plan = plan(&scratch, &clients(template, 6));
        let port = format!("clients={}", lab.a.port());
        let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
        for name in ["t", "t.retr.report.bin", "t.stor.new.bin", "t.list"] {
            assert_protected(&outcome, name, 6);
        }
        assert_eq!(
            number(&outcome, "t.retr.report.bin", "/tls/resumed_handshakes"),
            6,
            "{outcome}"
        );
        let expected: Vec<u8> = (0..40_000).map(|byte| byte as u8).collect();
        assert_eq!(fs::read(file("new.bin")).unwrap(), expected, "{reuse}");
    }
}

#[test]
fn aiosmtpd_accepts_mail_of_emulated_clients_over_tls() {
    if !can_run(&["aiosmtpd", "curl", "openssl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    lab.b.namespace().ip(&["link set lo up"]).unwrap();
    certificate(&scratch, "pages");
    let mut command = lab.b.command("aiosmtpd");
    command.args(["--nosetuid", "--listen", "198.51.100.2:25", "--tlscert"]);
    command.arg(scratch.file("pages.pem")).arg("--tlskey").arg(scratch.file("pages.key"));
    command.args(["--class", "aiosmtpd.handlers.Mailbox"]).arg(scratch.file("mails"));
    let _server = KilledOnDrop(command.spawn().unwrap());
    // Wait until it answers.
    let output = curl(&lab.b, &scratch, &["--ssl-reqd", "--insecure", "smtp://198.51.100.2"]);
    assert!(output.status.success(), "{output:?}");

    let template = "smtp: {start_tls: true, messages: 2, message: \"Subject: a\\n\\n.b\\n\"}\n    \
                    tls: {ca: pages.pem, sni: pages.test}";
    let plan = plan(&scratch, &clients(template, 4));
    let port = format!("clients={}", lab.a.port());
    let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
    assert_protected(&outcome, "t", 4);
    let mails = fs::read_dir(scratch.file("mails").join("new")).unwrap();
    let mails: Vec<_> = mails.map(|it| fs::read_to_string(it.unwrap().path()).unwrap()).collect();
    assert_eq!(mails.len(), 8, "{mails:?}");
    assert!(mails.iter().all(|it| it.contains("Subject: a") && it.contains("\n.b\n")), "{mails:?}");
}

#[test]
fn missing_starttls_is_reported_as_the_cause() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: t
    smtp: {start_tls: true}
    tls: true
    client: {tx: clients, servers: 10.0.1.1, load: {concurrent: 1}, limit: 1}
  - {name: plain, smtp: {}, server: {tx: servers}}
"#;
    let outcome = both_ports(&mut emulate(&plan(&scratch, text)), &lab).expect(3);
    let failure = &outcome.result()["ports"][0]["templates"][0]["failures"][0];
    assert_eq!(failure["cause"], "not what was expected", "{outcome}");
    let expected = failure["expected"].as_str().unwrap();
    assert!(expected.contains("STARTTLS"), "{expected}");
    assert!(failure["found"].as_str().unwrap().starts_with("250-mail.example.net"), "{failure}");
}
