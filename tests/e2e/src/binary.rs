//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Environment variable with the path of another binary to test, such as an installed one.
const BINARY: &str = "WIRESTORM_BINARY";

/// Path of the `wirestorm` binary.
///
/// Cargo reports the path of a binary only to tests of the same package. So each test process runs
/// `cargo build` once with its own profile, and reads the path from Cargo's messages. If the binary
/// is up to date, this takes a fraction of a second. `WIRESTORM_BINARY` selects another binary
/// instead.
///
/// # Panics
/// Panics if the build fails.
pub fn wirestorm() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::var_os(BINARY).map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["build", "--quiet", "--package", "wirestorm", "--message-format=json"]);
    command.args(["--profile", &profile()]).stderr(Stdio::inherit());
    let output = command.output().expect("cargo can be run");
    assert!(output.status.success(), "the binary does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    executable.expect("cargo names the executable that it has built")
}

/// Profile of this process, from its folder: `target/debug/deps/replay-...`.
fn profile() -> String {
    let executable = std::env::current_exe().expect("a process knows its executable");
    let folder = executable.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
    match folder.to_string_lossy().as_ref() {
        "debug" => "dev".into(),
        name => name.into(),
    }
}
