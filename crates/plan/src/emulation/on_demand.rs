//! Checks of `accept_flow` and of the templates whose flows programs accept.

use wirestorm_model::program::Step;

use super::steps::need_payload_bytes;
use super::types::{Server, Template, Transport};
use crate::document::error::PlanError;

/// Checks the on-demand server of a template. Also checks that its programs accept only flows of
/// groups with an on-demand server on the same port of the plan.
pub(super) fn check(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    if let Some(server) = template.server.as_ref().filter(|it| it.listen.is_none()) {
        check_accepted(template, server)?;
    }
    let client = template.client.as_ref().map(|it| ("client", it.transmit, &it.program));
    let server = template.server.as_ref().map(|it| ("server", it.transmit, &it.program));
    for (side, port, steps) in client.into_iter().chain(server) {
        let steps: Vec<_> = flatten(steps).collect();
        if !steps.iter().any(|it| matches!(it, Step::AcceptFlow)) {
            continue;
        }
        let error = |message: String| {
            let path = format!("{}.{side}.program", template.path);
            Err(PlanError { path, message: format!("accept_flow: {message}") })
        };
        if !steps.iter().any(|it| matches!(it, Step::Listen { .. })) {
            return error("found no step `listen`, expected one before it".to_owned());
        }
        let accepts = |it: &Template, group: &str| {
            let server = it.server.as_ref().filter(|it| it.listen.is_none());
            it.group.as_deref() == Some(group) && server.is_some_and(|it| it.transmit == port)
        };
        let makes = steps.iter().any(|it| matches!(it, Step::RunFlow | Step::StartFlow { .. }));
        let mut groups = steps.iter().filter_map(|it| match it {
            Step::SelectGroup(name) => Some(name),
            _ => None,
        });
        let missing = |group: &&String| !makes && !all.iter().any(|it| accepts(it, group));
        if groups.clone().next().is_none() {
            return error("found no step `select_group`, expected one before it".to_owned());
        }
        if let Some(group) = groups.find(missing) {
            return error(format!(
                "found group {group:?}, expected one with a server on the same port of the plan \
                 that has `port: on_demand`"
            ));
        }
    }
    Ok(())
}

/// Refuses UDP, HTTP/2 and payload steps in an on-demand server: its template is known only after
/// the connection is open.
fn check_accepted(template: &Template, server: &Server) -> Result<(), PlanError> {
    let error = |field: &str, message: &str| {
        let path = format!("{}.{field}", template.path);
        Err(PlanError { path, message: message.to_owned() })
    };
    if template.transport == Transport::Udp {
        return error("server.port", "found on_demand, which only TCP supports");
    }
    if template.http2.is_some() {
        return error("http2", "found HTTP/2, which an on-demand server does not support");
    }
    if need_payload_bytes(&server.program) {
        let message = "found steps that write values, read received data or start TLS, which an \
                       on-demand server does not support: the program that accepts its flows can \
                       do that on its own connection";
        return error("server.program", message);
    }
    Ok(())
}

/// Iterates over steps, with the steps in loops instead of the loops.
fn flatten(steps: &[Step]) -> Box<dyn Iterator<Item = &Step> + '_> {
    Box::new(steps.iter().flat_map(|step| match step {
        Step::Repeat { steps, .. } => flatten(steps),
        step => Box::new(std::iter::once(step)),
    }))
}
