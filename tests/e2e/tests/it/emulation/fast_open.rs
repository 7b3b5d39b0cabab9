//! TCP Fast Open between Wirestorm and Linux.

use std::fs;

use wirestorm_e2e::{can_run, run_command};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{End, Lab};

use super::{KilledOnDrop, curl, emulate, host, plan, retransmitted, serve, stop};

const PAGE: usize = 32_000;

/// Enables TCP Fast Open of Linux as client and server.
fn allow(end: &End) {
    let output = end.command("sysctl").args(["-w", "net.ipv4.tcp_fastopen=3"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A TCP counter of Linux in a namespace, by name.
fn counted(end: &End, name: &str) -> u64 {
    let output = end.command("cat").arg("/proc/net/netstat").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let [names, values] = [lines.next().unwrap(), lines.next().unwrap()];
    let mut both = names.split(' ').zip(values.split(' '));
    both.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
}

#[test]
fn nginx_accepts_data_in_syn() {
    if !can_run(&["nginx", "curl", "sysctl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    allow(&lab.b);
    fs::write(scratch.file("index.html"), vec![b'x'; PAGE]).unwrap();
    let folder = scratch.path().display();
    let configuration = format!(
        "daemon off; user root; pid {folder}/pid; error_log {folder}/errors; events {{}}\n\
         http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 80 fastopen=64; root {folder}; }} }}"
    );
    let file = scratch.file("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let _nginx = KilledOnDrop(lab.b.command("nginx").arg("-c").arg(&file).spawn().unwrap());
    assert_eq!(curl(&lab.b, "198.51.100.2", 1).len(), PAGE);

    let text = r#"
ports: [{name: clients, addresses: 198.51.100.77/24}]
templates:
  - name: page
    http: {host: page}
    tcp: {fast_open: true}
    client: {tx: clients, servers: 198.51.100.2, load: {concurrent: 1}, limit: 10}
"#;
    let plan = plan(&scratch, text);
    let port = format!("clients={}", lab.a.port());
    let outcome = run_command(emulate(&plan).args(["--port", &port])).expect(0);
    let tcp = |name: &str| outcome.number(&format!("/ports/0/connections/tcp/{name}"));
    assert_eq!(outcome.number("/ports/0/connections/flows/closed"), 10, "{outcome}");
    // The first connection requests the cookie.
    assert_eq!((tcp("fast_open_sent"), tcp("fast_open_acked")), (9, 9), "{outcome}");
    assert_eq!(counted(&lab.b, "TCPFastOpenPassive"), 9);
    assert!(tcp("rcvbyte") > 10 * PAGE as u64, "{outcome}");
    assert_eq!(retransmitted(&outcome, 0), 0, "{outcome}");
}

#[test]
fn curl_gets_a_response_to_data_in_syn() {
    if !can_run(&["curl", "sysctl"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    host(&lab.b);
    allow(&lab.b);
    let server = serve(
        &lab,
        &scratch,
        "ports: [{name: servers, addresses: 198.51.100.77/24}]\n\
         templates:\n  - name: t\n    http: {response: {body: 32000}}\n    \
         tcp: {fast_open: true}\n    server: {tx: servers}\n",
    );
    // The first attempts may find no server yet; they also request the cookie.
    assert_eq!(curl(&lab.b, "198.51.100.77", 1).len(), PAGE);
    for _ in 0..3 {
        let mut command = lab.b.command("curl");
        command.args(["--silent", "--show-error", "--max-time", "5", "--tcp-fastopen"]);
        let output = command.arg("http://198.51.100.77/").output().unwrap();
        assert_eq!(output.stdout.len(), PAGE, "{output:?}");
    }
    let outcome = stop(server);
    let tcp = |name: &str| outcome.number(&format!("/ports/0/connections/tcp/{name}"));
    // Linux's first connection with the option requests the cookie.
    assert_eq!(tcp("fast_open_accepted"), 2, "{outcome}");
    assert_eq!(counted(&lab.b, "TCPFastOpenActive"), 2);
    assert_eq!((tcp("accepts"), retransmitted(&outcome, 0)), (4, 0), "{outcome}");
    assert_eq!(outcome.number("/ports/0/connections/flows/failed"), 0, "{outcome}");
}
