//! The cheapest receiver: an XDP program that drops every frame.

use std::process::Command;

use super::namespace::run;
use super::{Namespace, NetError};
use crate::Scratch;

/// Without headers, so that it needs nothing but clang. 1 is `XDP_DROP` (linux/bpf.h).
const PROGRAM: &str = r#"
__attribute__((section("xdp"), used)) int drop_all(void *context) { return 1; }
char declared[] __attribute__((section("license"), used)) = "GPL";
"#;

/// Drops what arrives at an interface for as long as the value lives.
#[derive(Debug)]
pub struct DropSink {
    namespace: Namespace,
    interface: String,
}

impl DropSink {
    pub(super) fn attach(namespace: &Namespace, interface: &str) -> Result<Self, NetError> {
        let scratch = Scratch::new()?;
        let (source, object) = (scratch.file("drop.c"), scratch.file("drop.o"));
        std::fs::write(&source, PROGRAM)?;
        let mut clang = Command::new("clang");
        run(clang.args(["-O2", "-g", "-target", "bpf", "-c"]).arg(source).arg("-o").arg(&object))?;
        let object = object.display();
        namespace.ip(&[&format!("link set dev {interface} xdp obj {object} sec xdp")])?;
        Ok(Self { namespace: namespace.clone(), interface: interface.to_owned() })
    }
}

impl Drop for DropSink {
    fn drop(&mut self) {
        // Fails where the interface is gone, and the program with it.
        drop(self.namespace.ip(&[&format!("link set dev {} xdp off", self.interface)]));
    }
}
