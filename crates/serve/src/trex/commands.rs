//! The commands: one table by name.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::parameters::Parameters;
use super::rpc::{Answer, RpcError};
use super::{
    Trex, TrexMode, astf, attributes, capture_port, captures, counters, general, groups, nodes,
    ownership, packets, replay, streams, tagged, traffic,
};

/// What a command needs before it is executed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing: clients send it before they know the token of the server.
    Nothing,
    /// The token of the server.
    Api,
}

/// Modes in which the server has a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    Stl,
    Astf,
}

type Handler = fn(&Arc<Trex>, &Parameters<'_>) -> Answer;

struct Command {
    name: &'static str,
    modes: In,
    needs: Needs,
    handler: Handler,
}

/// Builds the table. A handler checks the owner of its port itself.
macro_rules! commands {
    ($($name:literal $modes:ident $needs:ident $handler:expr;)+) => {
        &[$(Command {
            name: $name,
            modes: In::$modes,
            needs: Needs::$needs,
            handler: |trex, parameters| $handler(trex, parameters),
        }),+]
    };
}

/// All commands, in the order of their names.
const COMMANDS: &[Command] = commands! {
    "acquire"                           Stl  Api     ownership::acquire;
    "acquire"                           Astf Api     astf::acquire;
    "activate_tunnel_mode"              Astf Api     astf::activate_tunnel_mode;
    "add_stream"                        Both Api     streams::add_stream;
    "api_sync"                          Both Nothing general::api_sync;
    "api_sync_v2"                       Both Nothing general::api_sync_v2;
    "cancel_async_task"                 Both Api     nodes::cancel_async_task;
    "capture"                           Both Api     captures::capture;
    "clear_tpg_stats"                   Both Api     tagged::clear_tpg_stats;
    "clear_tpg_tx_stats"                Both Api     tagged::clear_tpg_tx_stats;
    "clear_tpg_unknown_tags"            Both Api     tagged::clear_tpg_unknown_tags;
    "clear_updated"                     Both Api     tagged::clear_updated;
    "conf_ipv6"                         Both Api     attributes::conf_ipv6;
    "conf_ns_batch"                     Both Api     nodes::conf_ns_batch;
    "disable_tpg"                       Both Api     tagged::disable_tpg;
    "enable_disable_client"             Astf Api     astf::enable_disable_client;
    "enable_tpg"                        Both Api     tagged::enable_tpg;
    "get_active_pgids"                  Both Api     groups::get_active_pgids;
    "get_all_streams"                   Both Api     streams::get_all_streams;
    "get_async_events"                  Both Api     general::get_async_events;
    "get_async_results"                 Both Api     nodes::get_async_results;
    "get_clients_info_pull"             Astf Api     astf::get_clients_info_pull;
    "get_clients_info_start"            Astf Api     astf::get_clients_info_start;
    "get_counter_desc"                  Astf Api     astf::get_counter_desc;
    "get_counter_values"                Astf Api     astf::get_counter_values;
    "get_dynamic_counter_desc"          Astf Api     astf::get_dynamic_counter_desc;
    "get_dynamic_counter_values"        Astf Api     astf::get_dynamic_counter_values;
    "get_flow_info"                     Astf Api     astf::get_flow_info;
    "get_global_cfg"                    Both Api     general::get_global_cfg;
    "get_global_stats"                  Both Api     counters::get_global_stats;
    "get_ignored_ips"                   Astf Api     astf::get_ignored_ips;
    "get_ignored_macs"                  Astf Api     astf::get_ignored_macs;
    "get_latency_stats"                 Astf Api     astf::get_latency_stats;
    "get_owner"                         Both Api     ownership::get_owner;
    "get_pgid_stats"                    Both Api     groups::get_pgid_stats;
    "get_port_stats"                    Both Api     counters::get_port_stats;
    "get_port_status"                   Both Api     general::get_port_status;
    "get_port_xstats_names"             Both Api     counters::get_port_xstats_names;
    "get_port_xstats_values"            Both Api     counters::get_port_xstats_values;
    "get_profile_list"                  Stl  Api     streams::get_profile_list;
    "get_profile_list"                  Astf Api     astf::get_profile_list;
    "get_rx_queue_pkts"                 Both Api     captures::get_rx_queue_pkts;
    "get_stream"                        Both Api     streams::get_stream;
    "get_stream_list"                   Both Api     streams::get_stream_list;
    "get_supported_cmds"                Both Api     general::get_supported_cmds;
    "get_system_info"                   Both Api     general::get_system_info;
    "get_tg_id_stats"                   Astf Api     astf::get_tg_id_stats;
    "get_tg_names"                      Astf Api     astf::get_tg_names;
    "get_total_counter_values"          Astf Api     astf::get_total_counter_values;
    "get_total_dynamic_counter_values"  Astf Api     astf::get_total_dynamic_counter_values;
    "get_tpg_state"                     Both Api     tagged::get_tpg_state;
    "get_tpg_stats"                     Both Api     tagged::get_tpg_stats;
    "get_tpg_status"                    Both Api     tagged::get_tpg_status;
    "get_tpg_tags"                      Both Api     tagged::get_tpg_tags;
    "get_tpg_tx_stats"                  Both Api     tagged::get_tpg_tx_stats;
    "get_tpg_unknown_tags"              Both Api     tagged::get_tpg_unknown_tags;
    "get_traffic_dist"                  Astf Api     astf::get_traffic_dist;
    "get_utilization"                   Both Api     counters::get_utilization;
    "get_version"                       Both Nothing general::get_version;
    "inc_epoch"                         Astf Api     astf::inc_epoch;
    "is_tunnel_supported"               Astf Api     astf::is_tunnel_supported;
    "pause_streams"                     Both Api     traffic::pause_streams;
    "pause_traffic"                     Both Api     traffic::pause_traffic;
    "ping"                              Both Nothing general::ping;
    "profile_clear"                     Astf Api     astf::profile_clear;
    "profile_fragment"                  Astf Api     astf::profile_fragment;
    "publish_now"                       Both Api     general::publish_now;
    "push_pkts"                         Both Api     packets::push_pkts;
    "push_remote"                       Both Api     replay::push_remote;
    "release"                           Stl  Api     ownership::release;
    "release"                           Astf Api     astf::release;
    "remove_all_streams"                Both Api     streams::remove_all_streams;
    "remove_rx_filters"                 Both Api     traffic::remove_rx_filters;
    "remove_stream"                     Both Api     streams::remove_stream;
    "resume_streams"                    Both Api     traffic::resume_streams;
    "resume_traffic"                    Both Api     traffic::resume_traffic;
    "service"                           Stl  Api     attributes::service;
    "service"                           Astf Api     astf::service;
    "set_capture_port_bpf"              Both Api     capture_port::set_capture_port_bpf;
    "set_global_cfg"                    Both Api     general::set_global_cfg;
    "set_ignored_ips"                   Astf Api     astf::set_ignored_ips;
    "set_ignored_macs"                  Astf Api     astf::set_ignored_macs;
    "set_l2"                            Both Api     attributes::set_l2;
    "set_l3"                            Both Api     attributes::set_l3;
    "set_port_attr"                     Both Api     attributes::set_port_attr;
    "set_rx_feature"                    Both Api     captures::set_rx_feature;
    "set_vlan"                          Both Api     attributes::set_vlan;
    "shutdown"                          Both Api     general::shutdown;
    "start"                             Astf Api     astf::start;
    "start_capture_port"                Both Api     capture_port::start_capture_port;
    "start_latency"                     Astf Api     astf::start_latency;
    "start_traffic"                     Both Api     traffic::start_traffic;
    "stop"                              Astf Api     astf::stop;
    "stop_capture_port"                 Both Api     capture_port::stop_capture_port;
    "stop_latency"                      Astf Api     astf::stop_latency;
    "stop_traffic"                      Both Api     traffic::stop_traffic;
    "sync"                              Astf Api     astf::sync;
    "topo_clear"                        Astf Api     astf::topo_clear;
    "topo_fragment"                     Astf Api     astf::topo_fragment;
    "topo_get"                          Astf Api     astf::topo_get;
    "tunnel_topo_clear"                 Astf Api     astf::tunnel_topo_clear;
    "tunnel_topo_fragment"              Astf Api     astf::tunnel_topo_fragment;
    "tunnel_topo_get"                   Astf Api     astf::tunnel_topo_get;
    "update"                            Astf Api     astf::update;
    "update_latency"                    Astf Api     astf::update_latency;
    "update_streams"                    Both Api     traffic::update_streams;
    "update_tpg_tags"                   Both Api     tagged::update_tpg_tags;
    "update_traffic"                    Both Api     traffic::update_traffic;
    "update_tunnel_client"              Astf Api     astf::update_tunnel_client;
    "validate"                          Both Api     streams::validate;
};

/// Returns the names of the commands in a mode.
pub(super) fn names(mode: TrexMode) -> Vec<&'static str> {
    let is_in = |command: &&Command| command.is_in(mode);
    COMMANDS.iter().filter(is_in).map(|command| command.name).collect()
}

impl Command {
    fn is_in(&self, mode: TrexMode) -> bool {
        match self.modes {
            In::Both => true,
            In::Stl => mode == TrexMode::Stl,
            In::Astf => mode == TrexMode::Astf,
        }
    }
}

/// Executes a command; `None` if the server has none of this name.
pub(super) fn execute(
    trex: &Arc<Trex>,
    method: &str,
    parameters: Option<&Value>,
) -> Option<Answer> {
    let is_it = |command: &&Command| command.name == method && command.is_in(trex.mode);
    let command = COMMANDS.iter().find(is_it)?;
    Some(
        check(trex, command, parameters)
            .and_then(|parameters| (command.handler)(trex, &Parameters(&parameters))),
    )
}

fn check<'a>(
    trex: &Trex,
    command: &Command,
    parameters: Option<&'a Value>,
) -> Result<std::borrow::Cow<'a, Map<String, Value>>, RpcError> {
    use std::borrow::Cow;
    let parameters = match parameters.filter(|parameters| !parameters.is_null()) {
        Some(Value::Object(parameters)) => Cow::Borrowed(parameters),
        None if command.needs == Needs::Nothing => Cow::Owned(Map::new()),
        None => return Err(RpcError::parameters("field 'api_h' is missing")),
        Some(_) if command.needs == Needs::Nothing => {
            let text = "JSON-RPC2 params should be object in TRex case ";
            return Err(RpcError::execution(text));
        }
        Some(_) => return Err(RpcError::parameters("parent field 'api_h' is missing")),
    };
    if command.needs == Needs::Api {
        let found = Parameters(&parameters).text("api_h")?;
        if found != trex.api_handler {
            let class = trex.mode.name();
            return Err(RpcError::execution(format!(
                "API verification failed - API handler provided mismatch for class: '{class}'"
            )));
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_the_order_of_their_names() {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(super::names(TrexMode::Stl).contains(&"get_profile_list"));
    }
}
