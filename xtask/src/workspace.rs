//! Where the project lies, and cargo run in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fallible;

/// Environment variable that names a command `wirestorm` to use instead of building one.
pub(crate) const BINARY: &str = "WIRESTORM_BINARY";

/// The root of the checkout.
pub(crate) fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// The cargo that runs this, in the root of the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The cargo of a toolchain with this name, in the root of the checkout.
pub(crate) fn cargo_of(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]).current_dir(root());
    // What this process was started with belongs to another toolchain.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command
}

/// What cargo knows of the workspace's own packages.
pub(crate) fn metadata() -> Fallible<serde_json::Value> {
    let output = cargo().args(["metadata", "--format-version", "1", "--no-deps"]).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Builds the command `wirestorm` for speed, unless [`BINARY`] names one; returns where it is.
pub(crate) fn build_wirestorm() -> Fallible<PathBuf> {
    if let Some(binary) = std::env::var_os(BINARY) {
        return Ok(binary.into());
    }
    build("wirestorm", &["--package", "wirestorm"], "release/wirestorm")
}

/// Builds a package's example for speed; returns where it is.
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

/// A place in the folder that cargo builds into.
pub(crate) fn in_target(place: &str) -> Fallible<PathBuf> {
    let metadata = metadata()?;
    let target = metadata.get("target_directory").and_then(|it| it.as_str());
    let target = target.ok_or("cargo metadata names no target_directory")?;
    Ok(Path::new(target).join(place))
}
