//! A script for the kernel's packet generator, and arbitrary text for its files. Accepted commands
//! can be shown and sent; others fail with a message.

use std::collections::BTreeMap;

use wirestorm_plan::pktgen::{Action, Link, Pktgen, Script};

use crate::arbitrary_input;

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(text) = arbitrary_input::<&str>(input) else { return };
    let link = Link { is_up: true, ..Link::default() };
    let mut pktgen = Pktgen::new(2, BTreeMap::from([("eth0".to_owned(), link)]));
    assert_message(pktgen.write("kpktgend_0", "add_device eth0"));
    let script = Script::parse(text);
    for line in &script.unsupported {
        assert!(!line.to_string().is_empty());
    }
    for step in script.steps {
        if let Action::Write { file, text } = step.action {
            assert_message(pktgen.write(&file, &text));
        }
    }
    for line in text.lines() {
        for file in ["pgctrl", "kpktgend_1", "eth0"] {
            assert_message(pktgen.write(file, line));
        }
    }
    for file in pktgen.files() {
        assert!(!pktgen.show(&file).expect("a file that is listed").is_empty());
    }
    match pktgen.lower() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(devices) => {
            for stream in devices.iter().flat_map(|device| &device.streams) {
                for number in [0, 1, u64::MAX] {
                    for variable in &stream.program.variables {
                        variable.value(number, &stream.program.variables);
                    }
                }
            }
        }
    }
}

/// Checks that an error has a message.
fn assert_message<T, E: std::fmt::Display>(outcome: Result<T, E>) {
    if let Err(error) = outcome {
        assert!(!error.to_string().is_empty());
    }
}
