//! VLANs for the traffic of an interface's kernel.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Adds a VLAN tag, and a service VLAN tag if `outer` is set, to frames that the kernel sends, and
/// removes them from received frames. Lasts until the interface is removed.
pub(super) fn join(
    namespace: &Namespace,
    interface: &str,
    (outer, inner): (Option<u16>, u16),
) -> Result<(), NetError> {
    let scratch = Scratch::new()?;
    let (source, object) = (scratch.file("vlans.c"), scratch.file("vlans.o"));
    std::fs::write(&source, include_str!("vlans.bpf.c"))?;
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf"]);
    clang.arg(format!("-DOUTER={}", outer.unwrap_or(0))).arg(format!("-DINNER={inner}"));
    // Debian keeps some headers in a folder for each architecture.
    clang.arg("-idirafter").arg(format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    run(clang.arg("-c").arg(source).arg("-o").arg(&object))?;
    let tc = |line: &str| run(namespace.command("tc").args(line.split(' ')));
    tc(&format!("qdisc add dev {interface} clsact"))?;
    for (direction, section) in [("egress", "push"), ("ingress", "pop")] {
        let object = object.display();
        tc(&format!(
            "filter add dev {interface} {direction} bpf da obj {object} sec tc/{section}"
        ))?;
    }
    Ok(())
}
