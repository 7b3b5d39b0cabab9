//! The cheapest receivers: an XDP program that drops every frame, and one that lets all pass.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Drops what arrives at an interface for as long as the value lives.
#[derive(Debug)]
pub struct DropSink {
    _program: Program,
}

impl DropSink {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        Ok(Self { _program: Program::attach(namespace, interface, XDP_DROP)? })
    }
}

/// Makes an interface poll, without joining frames, for as long as the value lives: what its
/// peer redirects to it arrives frame by frame and in order.
#[derive(Debug)]
pub struct PollingSink {
    _program: Program,
}

impl PollingSink {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        let program = Program::attach(namespace, interface, XDP_PASS)?;
        // A veth pair switches GRO on when a program comes, and goes on polling without it.
        namespace.set_features(interface, &[("gro", false)])?;
        Ok(Self { _program: program })
    }
}

/// Verdicts of an XDP program (linux/bpf.h).
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

/// A program with one verdict for all frames.
#[derive(Debug)]
struct Program {
    namespace: Namespace,
    interface: String,
}

impl Program {
    fn attach(namespace: &Namespace, interface: &str, verdict: u32) -> Result<Self, NetError> {
        let scratch = Scratch::new()?;
        let (source, object) = (scratch.file("verdict.c"), scratch.file("verdict.o"));
        // Without headers, so that it needs nothing but clang.
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
        // Fails where the interface is gone, and the program with it.
        drop(self.namespace.ip(&[&format!("link set dev {} xdp off", self.interface)]));
    }
}
