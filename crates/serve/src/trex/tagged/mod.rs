//! Tagged packet groups: streams whose received frames count by their VLAN tags.
//!
//! ```text
//! enable_tpg ──> groups: one `TaggedGroups` for each user, with its table of tags
//!                  ^ collect_tagged, at each request and at the end of a run
//! runs ── counters by VLAN of the engine (`per_vlan`) ──> counters: TRex's, by number of the tag
//! ```
//!
//! The counters belong to the number of a tag, so a change of the table moves no counters.

mod counters;
mod groups;
mod table;

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use self::counters::Slot;
use self::groups::{Stage, TaggedGroups};
use self::table::TagTable;
use super::parameters::{Parameters, done};
use super::rpc::{Answer, RpcError};
use super::{Trex, TrexMode};

pub(super) use self::groups::{Tagged, TaggedFlow, tagged_flows, tagged_group_of};

/// Maximum number of users with groups.
const USERS_MAX: usize = 256;
/// Maximum number of counters of a request that clears a range of groups, as in TRex.
const CLEARED_MAX: u64 = 2_048;
/// All groups.
const ALL: RangeInclusive<u32> = 0..=u32::MAX;

fn failed<T>(text: impl Into<String>) -> Result<T, RpcError> {
    Err(RpcError::execution(text))
}

pub(super) fn enable_tpg(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    if trex.mode == TrexMode::Astf {
        return failed("Tagged Packet Group can be enabled only in the stateless mode");
    }
    let user = parameters.text("username")?;
    if parameters.find("num_tpgids").is_none() {
        // The second step.
        return match trex.begin_tagged(user) {
            true => done(),
            false => failed("Tagged Packet Group in Dp can be enabled only after Cp and Rx!"),
        };
    }
    let stage = trex.state().tagged.of_users.get(user).map(|groups| groups.stage);
    if stage == Some(Stage::Enabled) {
        return failed("Tagged Packet Grouping is already enabled for this user!");
    }
    let session = parameters.u32("session_id")?;
    let ports = owned_ports(trex, parameters, "ports", user, session)?;
    let rx_ports = owned_ports(trex, parameters, "rx_ports", user, session)?;
    if ports.is_empty() || rx_ports.iter().any(|port| !ports.contains(port)) {
        return failed("Rx Ports must be acquired!");
    }
    let count = parameters.u32("num_tpgids")?;
    let table = TagTable::read(parameters.array("tags")?)?;
    let mut state = trex.state();
    let users = &mut state.tagged.of_users;
    if users.len() >= USERS_MAX && !users.contains_key(user) {
        return failed(format!("Tagged Packet Group is enabled for {USERS_MAX} users"));
    }
    let groups = TaggedGroups::new(user, ports, rx_ports, count, table);
    users.insert(user.to_owned(), groups);
    done()
}

/// Returns the ports that a list names, which the user must own.
fn owned_ports(
    trex: &Trex,
    parameters: &Parameters<'_>,
    list: &str,
    user: &str,
    session: u32,
) -> Result<Vec<usize>, RpcError> {
    let mut ports = Vec::new();
    for number in parameters.u32s(list)? {
        let port = trex.checked_port(number as usize)?;
        match trex.owner(port) {
            None => {
                return failed(format!(
                    "Please acquire port {port} before using it for Tagged Packet Group"
                ));
            }
            Some(owner) if owner.user != user || owner.session != session => {
                return failed(format!(
                    "Port {port} is not owned by you or your current executing session"
                ));
            }
            Some(_) if ports.contains(&port) => {}
            Some(_) => ports.push(port),
        }
    }
    Ok(ports)
}

pub(super) fn disable_tpg(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let user = parameters.text("username")?;
    let mut state = trex.state();
    match state.tagged.of_users.get_mut(user) {
        Some(groups) if groups.stage == Stage::Disabled => {
            state.tagged.of_users.remove(user);
        }
        Some(groups) => groups.stage = Stage::Disabled,
        None => return failed("Tagged Packet Group is not enabled."),
    }
    done()
}

pub(super) fn get_tpg_state(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let user = parameters.text("username")?;
    let state = trex.state();
    Ok(state.tagged.of_users.get(user).map_or(0, |groups| groups.stage.number()).into())
}

/// Whose groups a request asks for.
enum Whose<'a> {
    User(&'a str),
    Port(usize),
}

impl<'a> Whose<'a> {
    fn read(trex: &Trex, parameters: &Parameters<'a>, what: &str) -> Result<Self, RpcError> {
        let user = parameters.text_or("username", "")?;
        let is_port = parameters.find("port_id").is_some();
        let how_many = match (user.is_empty(), is_port) {
            (false, false) => return Ok(Self::User(user)),
            (true, true) => return trex.port_id(parameters).map(Self::Port),
            (false, true) => "only",
            (true, false) => "at least",
        };
        failed(format!(
            "Should provide {how_many} one between port_id and username to get TPG {what}"
        ))
    }

    fn find<'s>(&self, state: &'s super::State) -> Option<&'s TaggedGroups> {
        match self {
            Self::User(user) => {
                state.tagged.of_users.get(*user).filter(|groups| groups.is_enabled())
            }
            Self::Port(port) => state.tagged.of_port(*port),
        }
    }
}

pub(super) fn get_tpg_status(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let whose = Whose::read(trex, parameters, "status")?;
    let state = trex.state();
    let groups = whose.find(&state);
    let none: &[usize] = &[];
    Ok(json!({
        "enabled": groups.is_some(),
        "data": {
            "acquired_ports": groups.map_or(none, |it| &it.ports),
            "rx_ports": groups.map_or(none, |it| &it.rx_ports),
            "username": groups.map_or("-", |it| &it.user),
            "num_tpgids": groups.map_or(0, |it| it.count),
            "num_tags": groups.map_or(0, |it| it.table.len()),
        },
    }))
}

/// Returns the enabled groups of a user, to change them.
fn enabled<'s>(state: &'s mut super::State, user: &str) -> Result<&'s mut TaggedGroups, RpcError> {
    let groups = state.tagged.of_users.get_mut(user).filter(|groups| groups.is_enabled());
    groups.ok_or_else(|| RpcError::execution("Tagged Packet Group is not enabled."))
}

pub(super) fn update_tpg_tags(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let user = parameters.text("username")?;
    let changes = parameters.array("tags")?;
    enabled(&mut trex.state(), user)?;
    // Frames from before the change count for the tag that they had.
    trex.collect_tagged(&ALL);
    let mut state = trex.state();
    let groups = enabled(&mut state, user)?;
    groups.table = groups.table.with_changes(changes)?;
    done()
}

pub(super) fn clear_updated(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let user = parameters.text("username")?;
    let port = trex.port_id(parameters)?;
    let (first, last) = (parameters.u32("min_tpgid")?, parameters.u32("max_tpgid")?);
    let tags = parameters.u16s("tag_list")?;
    {
        let mut state = trex.state();
        let groups = enabled(&mut state, user)?;
        if last > groups.count {
            return failed(format!("tpgid {last} is bigger than the max allowed tpgid."));
        }
        if first >= last {
            return failed(format!("max tpgid {last} is bigger than min tpgid {first}"));
        }
        let count = u64::from(last - first) * tags.len() as u64;
        if count > CLEARED_MAX {
            let text = format!("Num Stats to clear {count} is too big. Decrease list of tags.");
            return failed(text);
        }
    }
    trex.collect_tagged(&(first..=last - 1));
    let mut state = trex.state();
    let received = enabled(&mut state, user)?.received(port).ok_or_else(|| not_counting(port))?;
    for group in first..last {
        received.clear(group, tags.iter().map(|tag| Slot::Tag(*tag)));
    }
    done()
}

fn not_counting(port: usize) -> RpcError {
    RpcError::execution(format!("Port {port} is not a valid port for TPG stats."))
}

/// Returns the first and the last number of tags in a request; the last one is not included.
fn tag_range(
    parameters: &Parameters<'_>,
    first: u16,
    count: usize,
    may_be_empty: bool,
) -> Result<(u16, u16), RpcError> {
    parameters.value("max_tag")?;
    let last = parameters.u16_or("max_tag", 0)?;
    if first > last {
        return failed(format!("Min Tag = {first} must be smaller/equal than Max Tag = {last}"));
    }
    if first == last && !may_be_empty {
        let text = "Min Tag can equal Max Tag iff unknown tag or untagged flags provided.";
        return failed(text);
    }
    if usize::from(last) > count {
        return failed(format!("Max Tag {last} is larger than number of tags {count}"));
    }
    Ok((first, last))
}

pub(super) fn get_tpg_tags(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    parameters.value("min_tag")?;
    let first = parameters.u16_or("min_tag", 0)?;
    let whose = Whose::read(trex, parameters, "tags")?;
    let state = trex.state();
    let Some(groups) = whose.find(&state) else {
        return failed("Tagged Packet Group is not enabled.");
    };
    let (first, last) = tag_range(parameters, first, groups.table.len(), false)?;
    Ok(groups.table.documents(first, last))
}

/// Returns the enabled groups of a port.
fn of_port(state: &mut super::State, port: usize) -> Result<&mut TaggedGroups, RpcError> {
    let groups = state.tagged.of_port_mut(port);
    groups.ok_or_else(|| RpcError::execution("Tagged Packet Group is not enabled on this port."))
}

/// Returns the enabled groups of a port, which must have a group of this number.
fn of_group(
    state: &mut super::State,
    port: usize,
    group: u32,
) -> Result<&mut TaggedGroups, RpcError> {
    let groups = of_port(state, port)?;
    match group < groups.count {
        true => Ok(groups),
        false => failed(format!("tpgid {group} is bigger than the max allowed tpgid.")),
    }
}

/// Slots beside the numbered tags that a request names.
fn other_slots(parameters: &Parameters<'_>) -> Result<Vec<(&'static str, Slot)>, RpcError> {
    let slots = [("untagged", Slot::Untagged), ("unknown_tag", Slot::Unknown)];
    let mut chosen = Vec::new();
    for (name, slot) in slots {
        if parameters.flag_or(name, false)? {
            chosen.push((name, slot));
        }
    }
    Ok(chosen)
}

pub(super) fn get_tpg_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let group = parameters.u32("tpgid")?;
    parameters.value("min_tag")?;
    let first = parameters.u16_or("min_tag", 0)?;
    let others = other_slots(parameters)?;
    of_group(&mut trex.state(), port, group)?;
    trex.collect_tagged(&(group..=group));
    let mut state = trex.state();
    let groups = of_group(&mut state, port, group)?;
    let (first, last) = tag_range(parameters, first, groups.table.len(), !others.is_empty())?;
    let received = groups.received(port).ok_or_else(|| not_counting(port))?;
    received.check()?;
    let mut found = match first < last {
        true => received.section(group, first, last),
        false => Map::new(),
    };
    for (name, slot) in others {
        found.insert(name.to_owned(), received.counters(group, slot).document(slot));
    }
    Ok(of_port_and_group(port, group, Value::Object(found)))
}

fn of_port_and_group(port: usize, group: u32, found: Value) -> Value {
    let found = Map::from_iter([(group.to_string(), found)]);
    Map::from_iter([(port.to_string(), Value::Object(found))]).into()
}

pub(super) fn clear_tpg_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let group = parameters.u32("tpgid")?;
    let first = parameters.u16_or("min_tag", 0)?;
    let others = other_slots(parameters)?;
    let is_list = parameters.find("tag_list").is_some();
    if is_list == parameters.find("max_tag").is_some() {
        let text = "One between max_tag and tag_list should be provided in clear_tpg_stats.";
        return failed(text);
    }
    of_group(&mut trex.state(), port, group)?;
    trex.collect_tagged(&(group..=group));
    let mut state = trex.state();
    let groups = of_group(&mut state, port, group)?;
    let count = groups.table.len();
    let tags: Vec<u16> = if is_list {
        let tags = parameters.u16s("tag_list")?;
        if let Some(tag) = tags.iter().find(|tag| usize::from(**tag) >= count) {
            return failed(format!("Tag {tag} is larger than number of tags {count}"));
        }
        tags
    } else {
        let (first, last) = tag_range(parameters, first, count, !others.is_empty())?;
        (first..last).collect()
    };
    let received = groups.received(port).ok_or_else(|| not_counting(port))?;
    received.clear(group, tags.into_iter().map(Slot::Tag));
    received.clear(group, others.into_iter().map(|(_, slot)| slot));
    done()
}

pub(super) fn get_tpg_tx_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let group = parameters.u32("tpgid")?;
    of_group(&mut trex.state(), port, group)?;
    trex.collect_tagged(&(group..=group));
    let found = of_group(&mut trex.state(), port, group)?.sent(port, group);
    Ok(of_port_and_group(port, group, found))
}

pub(super) fn clear_tpg_tx_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let group = parameters.u32("tpgid")?;
    of_group(&mut trex.state(), port, group)?;
    trex.collect_tagged(&(group..=group));
    of_group(&mut trex.state(), port, group)?.clear_sent(port, group);
    done()
}

/// Calls a function with what a port received.
fn with_received<T>(
    trex: &Trex,
    parameters: &Parameters<'_>,
    call: impl FnOnce(usize, &mut counters::Received) -> T,
) -> Result<T, RpcError> {
    let port = trex.port_id(parameters)?;
    trex.collect_tagged(&ALL);
    let mut state = trex.state();
    let received = state.tagged.of_port_mut(port).and_then(|groups| groups.received(port));
    match received {
        Some(received) => Ok(call(port, received)),
        None => failed("Tagged Packet Group is not enabled or collecting on this port."),
    }
}

pub(super) fn get_tpg_unknown_tags(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    with_received(trex, parameters, |port, received| {
        Map::from_iter([(port.to_string(), received.unknown())]).into()
    })
}

pub(super) fn clear_tpg_unknown_tags(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    with_received(trex, parameters, |_, received| received.clear_unknown())?;
    done()
}
