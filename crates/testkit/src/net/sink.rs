//! The cheapest receivers: XDP programs that drop or pass all frames.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Drops all frames that arrive at an interface, until the value is dropped.
#[derive(Debug)]
pub struct DropSink {
    _program: Program,
}

impl DropSink {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        Ok(Self { _program: Program::attach(namespace, interface, XDP_DROP)? })
    }
}

/// Enables NAPI polling of an interface without GRO, until the value is dropped. Frames that its
/// peer redirects arrive one by one and in order.
#[derive(Debug)]
pub struct PollingSink {
    _program: Program,
}

impl PollingSink {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        let program = Program::attach(namespace, interface, XDP_PASS)?;
        // A veth enables GRO with an XDP program, and keeps polling after GRO is switched off.
        namespace.set_features(interface, &[("gro", false)])?;
        Ok(Self { _program: program })
    }
}

/// XDP return codes (linux/bpf.h).
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

/// An XDP program that returns the same code for all frames.
#[derive(Debug)]
struct Program {
    namespace: Namespace,
    interface: String,
}

impl Program {
    fn attach(namespace: &Namespace, interface: &str, verdict: u32) -> Result<Self, NetError> {
        let scratch = Scratch::new()?;
        let (source, object) = (scratch.file("verdict.c"), scratch.file("verdict.o"));
        // The source includes no headers, so that it needs only clang.
        let text = format!(
            "__attribute__((section(\"xdp\"), used)) int all(void *c) {{ return {verdict}; }}\n\
             char declared[] __attribute__((section(\"license\"), used)) = \"GPL\";\n"
        );
        std::fs::write(&source, text)?;
        let mut clang = Command::new("clang");
        run(clang.args(["-O2", "-g", "-target", "bpf", "-c"]).arg(source).arg("-o").arg(&object))?;
        let object = object.display();
        namespace.ip(&[&format!("link set dev {interface} xdp obj {object} sec xdp")])?;
        Ok(Self { namespace: namespace.clone(), interface: interface.to_owned() })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if the interface no longer exists; then the program is gone too.
        drop(self.namespace.ip(&[&format!("link set dev {} xdp off", self.interface)]));
    }
}
