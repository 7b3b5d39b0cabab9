//! Properties of the steps of a program.

use wirestorm_model::program::{JumpCondition, Step};

use super::types::Transport;

/// Returns the transport protocol of a step; `None` for both.
fn transport_of(step: &Step) -> Option<Transport> {
    match step {
        Step::Send { .. }
        | Step::SendComposed(_)
        | Step::Receive(_)
        | Step::ReceiveMessage(_)
        | Step::ReceiveMessageOrFail(_)
        | Step::ReceiveTotal(_)
        | Step::ReceiveOrFail(_)
        | Step::Listen { .. }
        | Step::AcceptFlow
        | Step::Connect
        | Step::StartTls
        | Step::Reconnect { .. }
        | Step::FailIfClosed
        | Step::WaitForClose
        | Step::Reset
        | Step::SetBlocking(_) => Some(Transport::Tcp),
        Step::SendDatagram { .. }
        | Step::SendComposedDatagram(_)
        | Step::ReceiveDatagrams { .. } => Some(Transport::Udp),
        _ => None,
    }
}

/// Returns whether steps need the payload bytes of each flow: they write values, read received data
/// or start TLS.
pub(super) fn need_payload_bytes(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => need_payload_bytes(steps),
        Step::SendComposed(_)
        | Step::SendComposedDatagram(_)
        | Step::ReceiveMessage(_)
        | Step::ReceiveMessageOrFail(_)
        | Step::Expect { .. }
        | Step::Extract { .. }
        | Step::StartFlow { .. }
        | Step::StartTls
        | Step::Jump { when: JumpCondition::Received(_), .. }
        | Step::SetText { .. } => true,
        _ => false,
    })
}

/// Returns whether any step satisfies the predicate, including steps in loops.
pub(super) fn any(steps: &[Step], is_so: fn(&Step) -> bool) -> bool {
    steps.iter().any(|step| match step {
        Step::Repeat { steps, .. } => any(steps, is_so),
        step => is_so(step),
    })
}

/// Returns the relative path and the name of the first selected group that `groups` lacks.
pub(super) fn unknown_group<'a>(steps: &'a [Step], groups: &[&str]) -> Option<(String, &'a str)> {
    steps.iter().enumerate().find_map(|(index, step)| match step {
        Step::SelectGroup(name) if !groups.contains(&name.as_str()) => {
            Some((format!("[{index}].select_group"), name.as_str()))
        }
        Step::Repeat { steps, .. } => {
            let (place, name) = unknown_group(steps, groups)?;
            Some((format!("[{index}].repeat.steps{place}"), name))
        }
        _ => None,
    })
}

/// Returns the relative path of the first step of another transport protocol.
pub(super) fn step_of_other_transport(steps: &[Step], transport: Transport) -> Option<String> {
    steps.iter().enumerate().find_map(|(index, step)| match step {
        Step::Repeat { steps, .. } => step_of_other_transport(steps, transport)
            .map(|place| format!("[{index}].repeat.steps{place}")),
        step => transport_of(step).filter(|of| *of != transport).map(|_| format!("[{index}]")),
    })
}
