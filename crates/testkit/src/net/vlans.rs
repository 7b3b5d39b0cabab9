//! An interface whose kernel lives in VLANs.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Puts what the kernel sends into a VLAN, of a service VLAN where there is one, until the interface is
/// gone, and takes what arrives out of it.
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
    // Debian keeps headers in a folder for each architecture.
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
