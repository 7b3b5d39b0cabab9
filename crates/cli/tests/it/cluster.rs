//! Tests of `wirestorm cluster` with a real nats-server.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::{NatsServer, free_port, require_nats_server};

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(20);

fn command(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirestorm"));
    command.arg("cluster").args(arguments).env("XDG_STATE_HOME", scratch.path());
    command
}

fn run(scratch: &Scratch, arguments: &[&str]) -> Output {
    command(scratch, arguments).output().expect("the program runs")
}

fn text(output: &Output) -> String {
    let (out, messages) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{messages}")
}

fn succeed(scratch: &Scratch, arguments: &[&str]) -> String {
    let output = run(scratch, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn directory(scratch: &Scratch) -> PathBuf {
    scratch.file("wirestorm/cluster")
}

fn credentials(scratch: &Scratch, name: &str) -> String {
    directory(scratch).join(format!("credentials/{name}.json")).display().to_string()
}

fn check(scratch: &Scratch, name: &str) -> Output {
    run(scratch, &["check", "--bus-credentials", &credentials(scratch, name)])
}

/// Ends a process with SIGINT; kills it on drop.
struct Foreground(Child);

impl Foreground {
    fn interrupt(&mut self) -> i32 {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let asked = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code().expect("an exit status");
            }
            assert!(asked.elapsed() < SOON, "the program does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // Ends its nats-server too, unlike a kill.
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let asked = Instant::now();
        while self.0.try_wait().is_ok_and(|status| status.is_none()) && asked.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server_id(directory: &Path) -> Option<String> {
    let id = std::fs::read_to_string(directory.join("nats-server.pid")).ok()?;
    Path::new("/proc").join(id.trim()).exists().then_some(id)
}

#[test]
fn init_writes_files_whose_secrets_are_private() {
    let scratch = Scratch::new().unwrap();
    let init = ["init", "--listen", "127.0.0.1:4222", "--agents", "tx,rx"];
    let printed = succeed(&scratch, &init);
    for part in ["site default at tls://127.0.0.1:4222", "nats-server", "director.json"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let directory = directory(&scratch);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for name in ["server-key.pem", "credentials/tx.json", "credentials/director.json"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
    let seed = std::fs::read_to_string(credentials(&scratch, "tx")).unwrap();
    let seed: serde_json::Value = serde_json::from_str(&seed).unwrap();
    let seed = seed["seed"].as_str().unwrap();
    let shown = succeed(&scratch, &["show", "--json"]) + &succeed(&scratch, &["show"]);
    assert!(shown.contains("rx") && shown.contains("does not run"), "{shown}");
    assert!(!shown.contains(seed) && !printed.contains(seed));

    // A second one would make all credentials useless.
    let again = run(&scratch, &init);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(text(&again).contains("add-agent"), "{}", text(&again));
}

#[test]
fn wrong_input_changes_nothing() {
    let scratch = Scratch::new().unwrap();
    for (arguments, expected) in [
        (&["init", "--listen", "0.0.0.0:4222"][..], "host name"),
        (&["init", "--listen", "127.0.0.1:4222", "--agents", "a.b"], "letters, digits"),
        (&["init", "--listen", "127.0.0.1:4222", "--agents", "a,a"], "already"),
        (&["init", "--listen", "127.0.0.1:4222", "--site", "a b"], "letters, digits"),
        (&["show"], "wirestorm cluster init"),
        (&["revoke", "a"], "wirestorm cluster init"),
        (&["check"], "--bus-credentials"),
    ] {
        let output = run(&scratch, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    assert!(!directory(&scratch).join("cluster.json").exists());
}

#[test]
fn agents_connect_are_added_and_revoked() {
    let Some(program) = require_nats_server() else { return };
    let scratch = Scratch::new().unwrap();
    let listen = format!("127.0.0.1:{}", free_port().unwrap());
    let program = program.display().to_string();
    let init = ["init", "--listen", &listen, "--agents", "tx", "--start"];
    let mut init = command(&scratch, &[&init[..], &["--server-command", &program]].concat());
    let started = init.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut server = Foreground(started);
    let started = Instant::now();
    while !check(&scratch, "tx").status.success() {
        assert!(started.elapsed() < SOON, "{}", text(&check(&scratch, "tx")));
    }
    let checked = text(&check(&scratch, "director"));
    assert!(checked.contains(&format!("tls://{listen}: nats-server")), "{checked}");
    let is_old = checked.contains("nats-server 2.9.");
    assert_eq!(checked.contains("CVE-2026-33222"), is_old, "{checked}");
    assert!(succeed(&scratch, &["show"]).contains("runs as process"));

    let added = succeed(&scratch, &["add-agent", "rx", "rx2"]);
    assert!(added.contains("reads the change now"), "{added}");
    let added = Instant::now();
    while !check(&scratch, "rx").status.success() {
        assert!(added.elapsed() < SOON, "{}", text(&check(&scratch, "rx")));
    }

    let copy = scratch.file("copy.json").display().to_string();
    std::fs::copy(credentials(&scratch, "rx"), &copy).unwrap();
    succeed(&scratch, &["revoke", "rx"]);
    assert!(!Path::new(&credentials(&scratch, "rx")).exists());
    let revoked = Instant::now();
    let refused = loop {
        let output = run(&scratch, &["check", "--bus-credentials", &copy]);
        if !output.status.success() {
            break output;
        }
        assert!(revoked.elapsed() < SOON, "the key is not revoked");
    };
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("revoked"), "{}", text(&refused));
    assert!(check(&scratch, "rx2").status.success());

    // A second server is refused; the first one comes back after a crash, and ends with Ctrl-C.
    let second = run(&scratch, &["start"]);
    assert!(text(&second).contains("runs already"), "{}", text(&second));
    let id = server_id(&directory(&scratch)).unwrap();
    // An end within 1 s of the start would count as a wrong configuration.
    std::thread::sleep(Duration::from_secs(2).saturating_sub(started.elapsed()));
    assert!(Command::new("kill").args(["-KILL", id.trim()]).status().unwrap().success());
    let killed = Instant::now();
    while server_id(&directory(&scratch)).is_none_or(|new| new == id)
        || !check(&scratch, "tx").status.success()
    {
        assert!(killed.elapsed() < SOON, "the server does not come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.interrupt(), 0);
    assert!(server_id(&directory(&scratch)).is_none(), "nats-server still runs");
}

#[test]
fn a_server_without_keys_needs_no_credentials() {
    let Some(program) = require_nats_server() else { return };
    let scratch = Scratch::new().unwrap();
    let server = NatsServer::open(&program).unwrap();
    let url = format!("nats://127.0.0.1:{}", server.port());
    assert!(succeed(&scratch, &["check", "--bus", &url]).contains("answers in"));
    let output = run(&scratch, &["check", "--bus", "http://127.0.0.1"]);
    assert!(text(&output).contains("nats://HOST:PORT"), "{}", text(&output));
}
