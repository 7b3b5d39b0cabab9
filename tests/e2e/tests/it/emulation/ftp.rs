//! File transfer by FTP: between both ends, with vsftpd, and with curl.

use std::fs;
use std::process::Output;

use serde_json::Value;
use wirestorm_e2e::{Outcome, can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};
use wirestorm_testkit::tshark;

use super::dialogues::captured;
use super::{KilledOnDrop, emulate, host, plan, serve, stop_with_failures};

/// Counters of a template's flows at a port: closed flows, flows with a failed program, and
/// received bytes.
#[track_caller]
fn template(outcome: &Outcome, port: usize, name: &str) -> (u64, u64, u64) {
    let templates = outcome.result()["ports"][port]["templates"].as_array().unwrap();
    let found = templates.iter().find(|it| it["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no template {name}: {outcome}"));
    let number = |pointer: &str| found.pointer(pointer).and_then(Value::as_u64).unwrap();
    (number("/flows/closed"), number("/flows/program_failed"), number("/tcp/rcvbyte"))
}

/// First failure of a template's flows.
#[track_caller]
fn failure(outcome: &Outcome, name: &str) -> (String, String, String) {
    let templates = outcome.result()["ports"][0]["templates"].as_array().unwrap();
    let found = templates.iter().find(|it| it["name"] == name).unwrap();
    let failure = &found["failures"][0];
    let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
    (text("step"), text("cause"), text("found"))
}

#[test]
fn files_are_transferred_both_ways_over_data_connections() {
    if !can_run(&["tshark"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let text = r#"
ports:
  - {name: clients, addresses: 10.0.0.1/16}
  - {name: servers, addresses: 10.0.1.1/16}
templates:
  - name: t
    ftp:
      files: [{name: a, size: 200000}]
      upload: [{name: b, size: 50000}]
      list: [LIST, NLST]
      rounds: 2
      data_ports: 50000-50003
    client: {tx: clients, addresses: 10.0.0.1-10.0.0.3, servers: 10.0.1.1-10.0.1.2, load: {concurrent: 3}, limit: 6}
    server: {tx: servers}
"#;
    let (outcome, capture) = captured(&lab, &scratch, text);
    for (name, [at_client, at_server]) in
        [("t.retr.a", [200_000, 0]), ("t.stor.b", [0, 50_000]), ("t.nlst", [3, 0])]
    {
        assert_eq!(template(&outcome, 0, name), (12, 0, 12 * at_client), "{name}: {outcome}");
        assert_eq!(template(&outcome, 1, name), (12, 0, 12 * at_server), "{name}: {outcome}");
    }
    assert_eq!(template(&outcome, 0, "t.list").0, 12, "{outcome}");
    assert_eq!(template(&outcome, 1, "t").0, 6, "{outcome}");
    for (filter, expected) in [
        ("_ws.malformed || _ws.expert.severity == error", 0),
        ("ftp.request.command == RETR", 12),
        ("ftp.response.code == 229 && ftp.epsv.port >= 50000 && ftp.epsv.port <= 50003", 48),
        ("ftp.response.code == 226", 48),
        ("ftp.response.code == 221", 6),
        (
            "tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.dstport >= 50000 && tcp.dstport <= 50003",
            48,
        ),
    ] {
        assert_eq!(tshark::count(&capture, filter).unwrap(), expected, "{filter}");
    }
}

/// vsftpd in the namespace of an end, with an anonymous folder.
fn vsftpd(end: &End, scratch: &Scratch, more: &str) -> KilledOnDrop {
    end.namespace().ip(&["link set lo up"]).unwrap();
    let (folder, empty) = (scratch.file("files"), scratch.file("empty"));
    for folder in [&folder, &empty] {
        fs::create_dir(folder).unwrap();
    }
    let configuration = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nwrite_enable=YES\n\
         anon_upload_enable=YES\nanon_other_write_enable=YES\nallow_writeable_chroot=YES\n\
         anon_root={}\nsecure_chroot_dir={}\nrun_as_launching_user=YES\nseccomp_sandbox=NO\n\
         isolate_network=NO\nisolate=NO\nuse_localtime=NO\nxferlog_enable=NO\n{more}\n",
        folder.display(),
        empty.display(),
    );
    let file = scratch.file("vsftpd.conf");
    fs::write(&file, configuration).unwrap();
    let server = KilledOnDrop(end.command("vsftpd").arg(&file).spawn().unwrap());
    // Wait until it answers.
    let output = curl(end, &["ftp://127.0.0.1/"]);
    assert!(output.status.success(), "{output:?}");
    server
}

fn curl(end: &End, arguments: &[&str]) -> Output {
    let mut command = end.command("curl");
    command.args(["--silent", "--show-error", "--max-time", "9"]);
    command.args(["--retry", "5", "--retry-delay", "1", "--retry-connrefused"]);
    command.args(arguments).output().unwrap()
}

/// A plan of clients for other servers.
fn clients(ftp: &str, limit: u32) -> String {
    format!(
        r#"
ports: [{{name: clients, addresses: 198.51.100.77/24}}]
templates:
  - name: t
    ftp: {{{ftp}}}
    client: {{tx: clients, servers: 198.51.100.2, load: {{concurrent: 2}}, limit: {limit}}}
"#
    )
}

#[test]
fn vsftpd_serves_emulated_clients() {
    if !can_run(&["vsftpd", "curl"]) {
        return;
    }
    // With and without support for EPSV.
    for (more, code) in [("", "229"), ("cmds_denied=EPSV", "227")] {
        let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
        host(&lab.b);
        let _server = vsftpd(&lab.b, &scratch, more);
        let file = |name: &str| scratch.file("files").join(name);
        fs::write(file("report.bin"), vec![7; 300_000]).unwrap();
        let run = |ftp: &str, limit| {
            let plan = plan(&scratch, &clients(ftp, limit));
            let port = format!("clients={}", lab.a.port());
            run_command(emulate(&plan).args(["--port", &port]))
        };
        let all = "files: [report.bin], upload: [{name: new.bin, size: 40000}], list: [LIST, NLST]";
        let outcome = run(all, 6).expect(0);
        assert_eq!(template(&outcome, 0, "t.retr.report.bin"), (6, 0, 6 * 300_000), "{outcome}");
        assert_eq!(template(&outcome, 0, "t.stor.new.bin"), (6, 0, 0), "{outcome}");
        assert_eq!(template(&outcome, 0, "t").0, 6, "{outcome}");
        assert!(template(&outcome, 0, "t.list").2 > 6 * 50, "{outcome}");
        let expected: Vec<u8> = (0..40_000).map(|byte| byte as u8).collect();
        assert_eq!(fs::read(file("new.bin")).unwrap(), expected, "{code}");

        let outcome = run("files: [none.bin]", 1).expect(3);
        let (step, _, found) = failure(&outcome, "t");
        assert!(step.starts_with("program["), "{step}");
        assert!(found.starts_with("550 "), "{found}");
        let outcome = run("files: [{name: report.bin, size: 300001}]", 1).expect(3);
        let closed = "closed before all data arrived".to_owned();
        let expected = ("program[0].receive".to_owned(), closed, String::new());
        assert_eq!(failure(&outcome, "t.retr.report.bin"), expected, "{outcome}");
        let (step, cause, _) = failure(&outcome, "t");
        assert!(step.starts_with("program["), "{step}");
        assert_eq!(cause, "a child flow failed");
    }
}

#[test]
fn refused_data_connections_are_reported_as_the_cause() {
    if !can_run(&["vsftpd", "curl", "nft"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let _server = vsftpd(&lab.b, &scratch, "pasv_min_port=50000\npasv_max_port=50100");
    for line in [
        "add table ip refusing",
        "add chain ip refusing input { type filter hook input priority 0; }",
        "add rule ip refusing input tcp dport 50000-50100 reject with tcp reset",
    ] {
        let output = lab.b.command("nft").args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let plan = plan(&scratch, &clients("files: [report.bin]", 1));
    let port = format!("clients={}", lab.a.port());
    let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(3);
    let templates = outcome.result()["ports"][0]["templates"].as_array().unwrap();
    let data = templates.iter().find(|it| it["name"] == "t.retr.report.bin").unwrap();
    assert_eq!(data["flows"]["refused"], 1, "{outcome}");
    assert_eq!(failure(&outcome, "t").1, "a child flow failed", "{outcome}");
}

#[test]
fn curl_downloads_lists_and_uploads() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates:
  - name: t
    ftp: {files: [{name: report.bin, size: 300000}, readme.txt], upload: [{name: new.bin, size: 40000}]}
    server: {tx: servers}
    tcp: {time_wait: 1ms}
"#;
    let server = serve(&lab, &scratch, text);
    let url = |name: &str| format!("ftp://198.51.100.77/{name}");
    let expected: Vec<u8> = (0..300_000).map(|byte| byte as u8).collect();
    // Two files over one control connection; the second variant uses PASV.
    for more in [&["--ipv4"][..], &["--disable-epsv"]] {
        let (first, second) = (url("report.bin"), url("folder/readme.txt"));
        let output = curl(&lab.b, &[more, &[first.as_str(), second.as_str()]].concat());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout.len(), 300_000 + 1_024);
        assert!(output.stdout[..300_000] == expected, "the first file");
    }
    let output = curl(&lab.b, &[&url(""), "--list-only"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "report.bin\nreadme.txt\n");
    let output = curl(&lab.b, &[&url("")]);
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(listed.contains("      300000 Jan 01  2024 report.bin\n"), "{listed}");

    let output = curl(&lab.b, &[&url("none.bin")]);
    let found = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(found.0, Some(78), "curl says that there is no such file: {}", found.1);

    let store = |name: &str, bytes: usize| {
        let file = scratch.file("stored");
        fs::write(&file, vec![1; bytes]).unwrap();
        curl(&lab.b, &["--upload-file", &file.display().to_string(), &url(name)])
    };
    for (name, bytes) in [("new.bin", 40_000), ("other.bin", 1_000_000), ("empty.bin", 0)] {
        let output = store(name, bytes);
        assert!(output.status.success(), "{name}: {output:?}");
    }
    // The upload is too short, so the server does not report completion.
    let output = store("new.bin", 39_999);
    assert!(!output.status.success(), "{output:?}");

    let outcome = stop_with_failures(server);
    assert_eq!(template(&outcome, 0, "t.stor.new.bin"), (1, 1, 79_999), "{outcome}");
    assert_eq!(template(&outcome, 0, "t.stor"), (2, 0, 1_000_000), "{outcome}");
    assert_eq!(template(&outcome, 0, "t.retr.report.bin").0, 2, "{outcome}");
    assert_eq!(failure(&outcome, "t").1, "a child flow failed", "{outcome}");
    assert_eq!(failure(&outcome, "t.stor.new.bin").1, "closed before all data arrived");
}

/// The client requests a data port and never connects; the server detects it when the client
/// disconnects.
#[test]
fn unused_data_port_is_reported_as_the_cause() {
    if !can_run(&["curl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    let text = r#"
ports: [{name: servers, addresses: 198.51.100.77/24}]
templates: [{name: t, ftp: {}, server: {tx: servers}}]
"#;
    let server = serve(&lab, &scratch, text);
    assert!(curl(&lab.b, &["ftp://198.51.100.77/"]).status.success());
    // curl takes the reply to RETR as that of its command, requests another port, and gives up.
    let line = "-sS -m 2 -Q EPSV -Q RETR_readme.txt ftp://198.51.100.77/readme.txt -o /dev/null";
    let words = line.split(' ').map(|word| word.replace('_', " "));
    let output = lab.b.command("curl").args(words).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let outcome = stop_with_failures(server);
    let (step, cause, _) = failure(&outcome, "t");
    assert!(step.starts_with("program["), "{step}");
    assert_eq!(cause, "closed before all data arrived", "{outcome}");
    assert_eq!(template(&outcome, 0, "t.retr.readme.txt"), (0, 0, 0), "{outcome}");
}
