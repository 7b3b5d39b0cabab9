//! Detects templates whose flows start further flows without end, whatever their limits are.

use wirestorm_model::program::Step;

use super::types::{EmulationPlan, Template};
use crate::document::error::PlanError;

/// Group of a flow that a program starts; `None`: the program's own template.
type StartedGroup<'a> = Option<&'a str>;

/// Refuses templates whose every flow starts another flow, in a cycle. A cycle with a conditional
/// jump may end, and so may one through a group with a template that starts none: both are allowed.
pub(crate) fn check(plan: &EmulationPlan) -> Result<(), PlanError> {
    let templates = &plan.templates;
    let started: Vec<Vec<StartedGroup<'_>>> = templates.iter().map(started_groups).collect();
    let mut endless: Vec<bool> = started.iter().map(|it| !it.is_empty()).collect();
    while let Some(place) = (0..templates.len())
        .find(|&place| endless[place] && next(templates, &started, &endless, place).is_none())
    {
        endless[place] = false;
    }
    let Some(first) = endless.iter().position(|it| *it) else { return Ok(()) };
    let mut cycle = vec![first];
    let mut place = first;
    while let Some(then) = next(templates, &started, &endless, place) {
        let before = cycle.iter().position(|it| *it == then);
        cycle.push(then);
        place = then;
        if let Some(begin) = before {
            cycle.drain(..begin);
            break;
        }
    }
    let names: Vec<_> = cycle.iter().map(|place| format!("{:?}", templates[*place].name)).collect();
    Err(PlanError {
        path: templates[cycle[0]].path.clone(),
        message: format!(
            "each flow starts another one without end, whatever `limit` is: {}; make that depend \
             on a jump, or add a template to the group that starts none",
            names.join(" starts ")
        ),
    })
}

/// Returns an endless template of which every flow of template `place` starts a flow.
fn next(
    templates: &[Template],
    started: &[Vec<StartedGroup<'_>>],
    endless: &[bool],
    place: usize,
) -> Option<usize> {
    started[place].iter().find_map(|started| {
        let Some(group) = started else { return Some(place) };
        let is_candidate = |it: &usize| {
            templates[*it].client.is_some() && templates[*it].group.as_deref() == Some(*group)
        };
        let mut candidates = (0..templates.len()).filter(is_candidate);
        let first = candidates.next()?;
        (endless[first] && candidates.all(|it| endless[it])).then_some(first)
    })
}

/// Returns the groups of the flows that every flow of a template starts.
fn started_groups(template: &Template) -> Vec<StartedGroup<'_>> {
    let (client, server) = (template.client.as_ref(), template.server.as_ref());
    let programs = [client.map(|it| &it.program), server.map(|it| &it.program)];
    let mut found = Vec::new();
    for steps in programs.into_iter().flatten() {
        walk(steps, &mut None, &mut found);
    }
    found
}

/// Visits steps up to the first jump. Returns whether there is none.
fn walk<'a>(
    steps: &'a [Step],
    group: &mut StartedGroup<'a>,
    found: &mut Vec<StartedGroup<'a>>,
) -> bool {
    steps.iter().all(|step| {
        match step {
            Step::SelectGroup(name) => *group = Some(name),
            Step::RunFlow | Step::StartFlow { .. } => found.push(*group),
            Step::Repeat { steps, .. } => return walk(steps, group, found),
            Step::Jump { .. } | Step::DecrementAndJump { .. } => return false,
            _ => {}
        }
        true
    })
}
