//! An interface whose kernel lives in two VLANs.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Puts what the kernel sends into VLAN 7 of the service VLAN 5 until the interface is gone, and
/// takes what arrives out of it.
pub(super) fn join(namespace: &Namespace, interface: &str) -> Result<(), NetError> {
    let scratch = Scratch::new()?;
    let (source, object) = (scratch.file("two_vlans.c"), scratch.file("two_vlans.o"));
    std::fs::write(&source, include_str!("two_vlans.bpf.c"))?;
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf"]);
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
