//! The cheapest receivers: XDP programs that drop, pass or stamp all frames.

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

/// Writes the time of `CLOCK_MONOTONIC` at which XDP sees a PTP frame (EtherType 0x88f7) into the first
/// eight bytes of its payload, in the byte order of the machine, and passes the frame on, until the value
/// is dropped.
#[derive(Debug)]
pub struct ArrivalStamps {
    _program: Program,
}

impl ArrivalStamps {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        let program = Program::attach_source(namespace, interface, STAMPING)?;
        namespace.set_features(interface, &[("gro", false)])?;
        Ok(Self { _program: program })
    }
}

/// `struct xdp_md` begins with both ends of the frame; function 5 is `bpf_ktime_get_ns` (linux/bpf.h).
const STAMPING: &str = "\
static unsigned long long (*const now)(void) = (void *)5;
__attribute__((section(\"xdp\"), used)) int stamp(unsigned *context) {
    unsigned char *frame = (void *)(long)context[0], *end = (void *)(long)context[1];
    if (frame + 22 <= end && frame[12] == 0x88 && frame[13] == 0xf7)
        *(unsigned long long *)(frame + 14) = now();
    return 2;
}
";

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
        let source = format!(
            "__attribute__((section(\"xdp\"), used)) int all(void *c) {{ return {verdict}; }}\n"
        );
        Self::attach_source(namespace, interface, &source)
    }

    /// Attaches a program in C, without its licence.
    fn attach_source(
        namespace: &Namespace,
        interface: &str,
        program: &str,
    ) -> Result<Self, NetError> {
        let scratch = Scratch::new()?;
        let (source, object) = (scratch.file("program.c"), scratch.file("program.o"));
        // The source includes no headers, so that it needs only clang.
        let licence = "char declared[] __attribute__((section(\"license\"), used)) = \"GPL\";\n";
        std::fs::write(&source, format!("{program}{licence}"))?;
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
