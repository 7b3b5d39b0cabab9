//! Lists the interfaces of this machine, the backends they support and what is missing.
//!
//! The JSON forms are `wirestorm.ports/1` and `wirestorm.doctor/1`. By default the facts come from
//! the kernel, without side effects. A [`OpenTest`] also opens a port with each backend and closes it
//! unused.

use std::fs;

use serde::Serialize;
use wirestorm_io::link::{self, Link, LinkError, LinkKind};
use wirestorm_io::lock::{Access, InterfaceLock};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError, Namespace};
use wirestorm_io::privilege::{self, Capabilities, Capability};
use wirestorm_wire::packet::MacAddress;

use crate::backend::{
    AF_PACKET, BACKENDS, Candidate, Conditions, Descriptor, KernelVersion, LatencyProbe,
    XDP_KERNEL, candidates, try_open,
};
pub use crate::backend::{Grade, OpenTest};

/// Minimum locked-memory limit for AF_XDP frame memory, in bytes.
const LOCKED_MEMORY_SUFFICIENT: u64 = 64 << 20;

/// Facts about an interface, and the backend that `auto` chooses for it.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceFacts {
    /// Interface name with its namespace, as `--intf1` takes it.
    pub interface: String,
    /// Interface name within its namespace.
    pub name: String,
    /// `up`, `no carrier` or `down`.
    pub state: &'static str,
    /// `physical`, `loopback`, `veth`, `bridge` and so on.
    pub kind: String,
    /// Driver; empty if there is none.
    pub driver: String,
    /// Driver version; empty if there is none.
    pub driver_version: String,
    /// Firmware version; empty if the driver reports none.
    pub firmware: String,
    /// Bus address, such as `0000:01:00.0`; empty for virtual devices.
    pub bus: String,
    /// Ethernet address; `None` if the interface has none.
    pub mac: Option<String>,
    /// Longest network-layer packet in bytes.
    pub mtu: u32,
    /// Transmit queues in use.
    pub transmit_queues: u32,
    /// Receive queues in use.
    pub receive_queues: u32,
    /// Link speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
    /// Whether the interface carries a default route.
    pub default_route: bool,
    /// Backend that `auto` chooses; `None` if no backend can send.
    pub auto: Option<&'static str>,
    /// Reason for the choice.
    pub why: String,
}

/// Interfaces of one network namespace.
#[derive(Clone, Debug, Serialize)]
pub struct NamespaceFacts {
    /// Name of the namespace; `None` for the namespace of this process.
    pub namespace: Option<String>,
    /// Interfaces, ordered by index.
    pub interfaces: Vec<InterfaceFacts>,
    /// Error that prevented the listing.
    pub error: Option<String>,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Subject of the check: a backend, or a part of the machine.
    pub subject: &'static str,
    /// Severity.
    pub grade: Grade,
    /// Text of the finding.
    pub found: String,
    /// Command that fixes it.
    pub repair: Option<String>,
}

/// An interface and the findings about each backend.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceDiagnosis {
    /// Facts about the interface.
    #[serde(flatten)]
    pub facts: InterfaceFacts,
    /// One finding for each backend.
    pub backends: Vec<Finding>,
    /// Other findings about the interface.
    pub remarks: Vec<Finding>,
}

/// Why an interface could not be examined.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The interface or its namespace does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl Finding {
    fn new(subject: &'static str, grade: Grade, found: impl Into<String>) -> Self {
        Self { subject, grade, found: found.into(), repair: None }
    }

    fn with_repair(self, command: impl Into<String>) -> Self {
        Self { repair: Some(command.into()), ..self }
    }
}

impl InterfaceDiagnosis {
    /// Returns whether a backend can send on the interface; `auto` can if any backend can.
    pub fn can_send(&self, backend: &str) -> bool {
        let works = |it: &Finding| it.grade != Grade::Missing;
        match backend {
            "auto" => self.facts.auto.is_some(),
            name => self.backends.iter().any(|it| it.subject == name && works(it)),
        }
    }
}

/// Returns whether an XDP program is attached to an interface. It may take frames before packet
/// sockets see them. `false` if the interface does not exist.
pub fn has_xdp_program(interface: &str) -> bool {
    let link = interface.parse().ok().and_then(|name: InterfaceName| Link::open_basic(&name).ok());
    link.is_some_and(|link| link.xdp_program.is_some())
}

/// Lists the interfaces of a namespace. An error is part of the returned value.
pub fn interfaces(namespace: &Namespace) -> NamespaceFacts {
    let named = match namespace {
        Namespace::Current => None,
        other => Some(other.to_string()),
    };
    match link::list(namespace) {
        Ok(links) => {
            let interfaces = links.iter().map(|link| facts(namespace, link)).collect();
            NamespaceFacts { namespace: named, interfaces, error: None }
        }
        Err(error) => NamespaceFacts {
            namespace: named,
            interfaces: Vec::new(),
            error: Some(error.to_string()),
        },
    }
}

/// Returns one interface in the form of [`interfaces`].
///
/// # Errors
/// Fails if the interface or its namespace does not exist.
pub fn interface(name: &str) -> Result<NamespaceFacts, InventoryError> {
    let InterfaceName { namespace, .. } = &name.parse()?;
    let link = Link::open(&name.parse()?)?;
    let named = match namespace {
        Namespace::Current => None,
        other => Some(other.to_string()),
    };
    let interfaces = vec![facts(namespace, &link)];
    Ok(NamespaceFacts { namespace: named, interfaces, error: None })
}

/// Checks each backend on an interface.
///
/// # Errors
/// Fails if the interface or its namespace does not exist.
pub fn examine(interface: &str, trial: OpenTest) -> Result<InterfaceDiagnosis, InventoryError> {
    let interface: InterfaceName = interface.parse()?;
    let link = Link::open(&interface)?;
    let capabilities = Capabilities::effective();
    let mut facts = facts(&interface.namespace, &link);
    let mut remarks = remarks(&interface, &link);
    let lock = InterfaceLock::acquire(&interface, Access::Exclusive);
    let trial = match (&lock, trial) {
        (Err(error), _) => {
            remarks.push(Finding::new("in use", Grade::Remark, error.to_string()));
            OpenTest::None
        }
        (Ok(_), OpenTest::Open) if link.default_route => {
            let found = "not done on an interface with the default route: it may reset queues";
            remarks.push(Finding::new("trial", Grade::Remark, found));
            OpenTest::None
        }
        (Ok(_), trial) => trial,
    };
    let backends: Vec<Finding> = BACKENDS
        .iter()
        .filter(|backend| backend.has_interface)
        .map(|backend| check_backend(backend, &interface, &link, capabilities, trial))
        .collect();
    if trial == OpenTest::Open {
        apply_open_test(&mut facts, &link, &backends);
    }
    Ok(InterfaceDiagnosis { facts, backends, remarks })
}

/// Replaces the choice of `auto` by one that considers the results of the trial.
fn apply_open_test(facts: &mut InterfaceFacts, link: &Link, backends: &[Finding]) {
    let finding = |backend: &Descriptor| backends.iter().find(|it| it.subject == backend.name);
    (facts.auto, facts.why) = first_usable(link, |candidate| match finding(candidate.backend) {
        Some(finding) if finding.grade == Grade::Missing => Err(finding.found.clone()),
        _ => Ok(()),
    });
}

/// Returns the first candidate without an obstacle and the reason for it, or `None` and the reasons
/// against each candidate.
fn first_usable(
    link: &Link,
    obstacle: impl Fn(&Candidate) -> Result<(), String>,
) -> (Option<&'static str>, String) {
    let mut refused = Vec::new();
    for candidate in candidates(link, &Conditions::of_one_port()) {
        let why = match &candidate.probe {
            LatencyProbe::Bad(reason) => Err(reason.clone()),
            LatencyProbe::Good(why) => Ok((*why).to_owned()),
            LatencyProbe::Fallback | LatencyProbe::NotConsidered => Ok(refused.join("; ")),
        };
        let backend = candidate.backend.name;
        match why.and_then(|why| obstacle(&candidate).map(|()| why)) {
            Ok(why) => return (Some(backend), why),
            Err(reason) => refused.push(format!("not {backend}: {reason}")),
        }
    }
    (None, refused.join("; "))
}

/// Checks the machine and the process: kernel, privileges, CPUs, BPF JIT and memory limits.
pub fn machine() -> Vec<Finding> {
    vec![
        kernel(),
        privileges(Capabilities::effective()),
        cpus(),
        jit(),
        locked_memory(),
        Finding::new(
            "huge pages",
            Grade::Good,
            format!("{} reserved; no backend needs any", read_number("/proc/sys/vm/nr_hugepages")),
        ),
        Finding::new("clang", Grade::Good, "not needed: the BPF programs are built in"),
    ]
}

fn facts(namespace: &Namespace, link: &Link) -> InterfaceFacts {
    let interface = match namespace {
        Namespace::Current => link.name.clone(),
        other => format!("netns/{other}:{}", link.name),
    };
    let (auto, why) = choice(namespace, link);
    let driver = link.driver.clone().unwrap_or_default();
    InterfaceFacts {
        interface,
        name: link.name.clone(),
        state: match (link.up, link.running) {
            (false, _) => "down",
            (true, false) => "no carrier",
            (true, true) => "up",
        },
        kind: match &link.kind {
            LinkKind::Physical => "physical".into(),
            LinkKind::Loopback => "loopback".into(),
            LinkKind::Veth => "veth".into(),
            LinkKind::Other(kind) => kind.clone(),
        },
        driver: driver.name,
        driver_version: driver.version,
        firmware: driver.firmware,
        bus: driver.bus,
        mac: link.mac.map(|mac| MacAddress(mac).to_string()),
        mtu: link.mtu,
        transmit_queues: link.queues.transmit,
        receive_queues: link.queues.receive,
        speed_bps: link.speed.map(|rate| rate.per_second() as u64),
        default_route: link.default_route,
        auto,
        why,
    }
}

/// Returns the backend that `auto` chooses by the facts and the reason, or `None` and the obstacle.
fn choice(namespace: &Namespace, link: &Link) -> (Option<&'static str>, String) {
    if !link.up {
        let command = namespace.command(&format!("ip link set {} up", link.name));
        return (None, format!("it is down; bring it up with: {command}"));
    }
    // If AF_PACKET cannot work, no other backend can.
    if let Some(found) = AF_PACKET.link_layer_obstacle(link) {
        return (None, found);
    }
    let capabilities = Capabilities::effective();
    if let Some(missing) = missing_privilege(capabilities, &AF_PACKET) {
        return (None, missing);
    }
    first_usable(link, |candidate| match missing_privilege(capabilities, candidate.backend) {
        Some(missing) => Err(missing),
        None => Ok(()),
    })
}

/// Checks one backend on an interface.
fn check_backend(
    backend: &'static Descriptor,
    interface: &InterfaceName,
    link: &Link,
    capabilities: Capabilities,
    trial: OpenTest,
) -> Finding {
    let subject = backend.name;
    let missing = |found: String| Finding::new(subject, Grade::Missing, found);
    if !link.up {
        return missing("the interface is down".into()).with_repair(interface.up_command());
    }
    if let Some(found) = backend.link_layer_obstacle(link) {
        return missing(found);
    }
    if let Some(found) = missing_privilege(capabilities, backend) {
        return missing(found).with_repair(privilege::setcap_command(privilege::ALL));
    }
    if let LatencyProbe::Bad(found) = (backend.probe)(link, &Conditions::of_one_port()) {
        let finding = missing(found);
        return match (backend.repair)(interface, link) {
            Some(repair) => finding.with_repair(repair),
            None => finding,
        };
    }
    if trial == OpenTest::Open
        && let Err(reason) = try_open(backend, interface, link)
    {
        return missing(reason);
    }
    let (grade, found) = (backend.finding)(link, trial);
    let tried = if trial == OpenTest::Open { "tried: " } else { "" };
    Finding::new(subject, grade, format!("{tried}{found}"))
}

/// Returns findings about an interface that concern no single backend.
fn remarks(interface: &InterfaceName, link: &Link) -> Vec<Finding> {
    let mut remarks = Vec::new();
    if link.up && !link.running {
        let found = if link.kind == LinkKind::Veth {
            "the peer is down: sent frames are lost"
        } else {
            "no carrier: sent frames are lost"
        };
        let mut finding = Finding::new("carrier", Grade::Remark, found);
        let peer = link::find_peer(&interface.namespace, link, &Namespace::all());
        if let Some((namespace, peer)) = peer {
            let command = format!("ip link set {} up", peer.name);
            finding = finding.with_repair(namespace.command(&command));
        }
        remarks.push(finding);
    }
    if link.default_route {
        remarks.push(Finding::new(
            "route",
            Grade::Remark,
            "the interface carries the default route: sending needs --force-interface",
        ));
    }
    if let Some(program) = link.xdp_program {
        let finding = Finding::new(
            "program",
            Grade::Remark,
            format!("XDP program {program} is attached: --rx cannot use xdp or af_xdp"),
        );
        let command = format!("ip link set {} xdp off", link.name);
        remarks.push(finding.with_repair(interface.namespace.command(&command)));
    }
    if link.queues.transmit < link.queues.transmit_max {
        let finding = Finding::new(
            "queues",
            Grade::Remark,
            format!(
                "{} of {} transmit queues in use; --workers N needs N",
                link.queues.transmit, link.queues.transmit_max
            ),
        );
        let command = format!("ethtool -L {} tx {}", link.name, link.queues.transmit_max);
        remarks.push(finding.with_repair(interface.namespace.command(&command)));
    }
    remarks
}

/// Describes the privileges that a backend needs and `capabilities` lacks, if any.
fn missing_privilege(capabilities: Capabilities, backend: &Descriptor) -> Option<String> {
    let lacking = capabilities.missing(backend.privileges);
    (!lacking.is_empty()).then(|| format!("no privilege: it needs {}", privilege::names(&lacking)))
}

fn privileges(capabilities: Capabilities) -> Finding {
    let lacking = capabilities.missing(privilege::ALL);
    if lacking.is_empty() {
        return Finding::new("privilege", Grade::Good, "all that every backend needs");
    }
    // Without CAP_NET_RAW no backend can send. The other capabilities serve speed and namespaces.
    let grade = if capabilities.has(Capability::NetRaw) { Grade::Remark } else { Grade::Missing };
    let found = format!("lacking {}; run as root, or", privilege::names(&lacking));
    Finding::new("privilege", grade, found).with_repair(privilege::setcap_command(privilege::ALL))
}

fn kernel() -> Finding {
    match KernelVersion::running() {
        None => Finding::new("kernel", Grade::Remark, "the kernel version is unknown"),
        Some(version) if version < XDP_KERNEL => Finding::new(
            "kernel",
            Grade::Remark,
            format!("Linux {version}; xdp, the in-kernel sender, needs {XDP_KERNEL} or newer"),
        ),
        Some(version) => {
            Finding::new("kernel", Grade::Good, format!("Linux {version}; supports every backend"))
        }
    }
}

fn cpus() -> Finding {
    let allowed = crate::affinity::allowed().len();
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    let isolated = match isolated.trim() {
        "" => "none isolated".to_owned(),
        list => format!("{list} isolated"),
    };
    match allowed {
        1 => Finding::new(
            "CPUs",
            Grade::Remark,
            "1 available; xdp, the in-kernel sender, needs a dedicated CPU",
        ),
        // Other work on the CPU of a sender delays departures.
        _ => Finding::new("CPUs", Grade::Good, format!("{allowed} available, {isolated}")),
    }
}

fn jit() -> Finding {
    // The file also exists in a kernel that always compiles. It is missing without a BPF compiler.
    match fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").as_deref().map(str::trim) {
        Ok("0") => Finding::new(
            "BPF compiler",
            Grade::Remark,
            "off: the in-kernel sender is interpreted and several times slower",
        )
        .with_repair("sysctl -w net.core.bpf_jit_enable=1"),
        Ok(_) => Finding::new("BPF compiler", Grade::Good, "on"),
        Err(_) => Finding::new("BPF compiler", Grade::Remark, "unknown to this process"),
    }
}

fn locked_memory() -> Finding {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|rest| rest.split_whitespace().next());
    let bytes = limit.and_then(|text| text.parse::<u64>().ok());
    let exempt = Capabilities::effective().has(Capability::IpcLock);
    match (limit, bytes) {
        (_, Some(bytes)) if bytes < LOCKED_MEMORY_SUFFICIENT && !exempt => Finding::new(
            "locked memory",
            Grade::Remark,
            format!("at most {} KiB, too little for af_xdp", bytes >> 10),
        )
        .with_repair("ulimit -l unlimited"),
        (_, Some(bytes)) if exempt => Finding::new(
            "locked memory",
            Grade::Good,
            format!("the limit of {} KiB does not apply to this process", bytes >> 10),
        ),
        (Some(limit), _) => Finding::new("locked memory", Grade::Good, limit),
        (None, _) => Finding::new("locked memory", Grade::Remark, "the limit is unknown"),
    }
}

/// Reads a number from a /proc or /sys file; returns 0 if that fails.
fn read_number(path: &str) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{AF_XDP, XDP};

    #[test]
    fn missing_privileges_are_listed_by_backend() {
        let nobody = Capabilities::parse("CapEff:\t0000000000000000\n");
        let text = missing_privilege;
        assert_eq!(
            text(nobody, &AF_XDP).as_deref(),
            Some("no privilege: it needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF")
        );
        let raw = Capabilities::parse("Name:\tx\nCapEff:\t0000000000002000\n");
        assert_eq!(text(raw, &AF_PACKET), None);
        assert_eq!(
            text(raw, &XDP).as_deref(),
            Some("no privilege: it needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON")
        );
        let root = Capabilities::parse("CapEff:\t000001ffffffffff\n");
        assert_eq!(text(root, &XDP), None);
        assert_eq!(privileges(root).grade, Grade::Good);
        assert_eq!(privileges(nobody).grade, Grade::Missing);
        assert_eq!(privileges(raw).grade, Grade::Remark);
    }

    #[test]
    fn loopback_is_listed_and_never_uses_the_in_kernel_sender() {
        let facts = interfaces(&Namespace::Current);
        let loopback = facts.interfaces.iter().find(|it| it.kind == "loopback");
        let loopback = loopback.expect("every namespace has one");
        assert_eq!(loopback.interface, "lo");
        assert!(matches!(loopback.auto, None | Some("af_packet")), "{:?}", loopback.auto);
        assert!(!loopback.why.is_empty());
    }

    #[test]
    fn missing_namespace_is_reported() {
        let facts = interfaces(&Namespace::Named("no-such-namespace".into()));
        assert!(facts.error.is_some_and(|error| error.contains("no-such-namespace")));
    }
}
