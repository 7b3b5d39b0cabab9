//! Paths of the project, and cargo commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fallible;

/// Environment variable with the path of a `wirestorm` binary to use instead of a build.
pub(crate) const BINARY: &str = "WIRESTORM_BINARY";

/// Root of the checkout.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Returns a command for the cargo that runs this program, in the root of the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns a command for the cargo of a toolchain, in the root of the checkout.
pub(crate) fn cargo_of(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]).current_dir(root());
    // Remove variables that select the toolchain of this process.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command
}

/// Runs `cargo metadata` for the packages of the workspace.
pub(crate) fn metadata() -> Fallible<serde_json::Value> {
    let output = cargo().args(["metadata", "--format-version", "1", "--no-deps"]).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Makes a release build of `wirestorm`, unless [`BINARY`] is set; returns its path.
pub(crate) fn build_wirestorm() -> Fallible<PathBuf> {
    if let Some(binary) = std::env::var_os(BINARY) {
        return Ok(binary.into());
    }
    build("wirestorm", &["--package", "wirestorm"], "release/wirestorm")
}

/// Makes a release build of an example; returns its path.
pub(crate) fn build_example(package: &str, example: &str) -> Fallible<PathBuf> {
    let which = ["--package", package, "--example", example];
    build(example, &which, &format!("release/examples/{example}"))
}

fn build(name: &str, which: &[&str], place: &str) -> Fallible<PathBuf> {
    eprintln!("building {name}");
    if !cargo().args(["build", "--release", "--quiet"]).args(which).status()?.success() {
        return Err(format!("{name} does not build; see above").into());
    }
    in_target(place)
}

/// Returns a path in cargo's target directory.
pub(crate) fn in_target(place: &str) -> Fallible<PathBuf> {
    let metadata = metadata()?;
    let target = metadata.get("target_directory").and_then(|it| it.as_str());
    let target = target.ok_or("cargo metadata names no target_directory")?;
    Ok(Path::new(target).join(place))
}
