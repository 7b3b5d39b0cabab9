//! Nodes: network namespaces behind a port, for pings, and for routing daemons such as BIRD.
//!
//! ```text
//!                 ┌ relay ──────────────────────────────────┐
//! port <─ packet sockets ── VLAN tags, filters, counters ── TAP interface of a node, in its namespace
//! ```
//!
//! A request carries a batch of commands. They run on a thread, and the client asks for their
//! results. The namespaces have names, so that `ip netns exec` finds them. They vanish with the
//! server; those of a killed one vanish when the next one starts.

mod batch;
mod counters;
mod filter;
mod node;
mod relay;
mod system;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::Trex;
use super::interface::Interface;
use super::parameters::Parameters;
use super::rpc::{Answer, RpcError};
use batch::run_command;
use node::{BirdNamespace, PortNodes};
use relay::Members;
pub(super) use system::remove_orphans;

/// Maximum number of commands in a batch, and of batches whose results nobody has fetched.
const COMMANDS_MAX: usize = 100_000;
const BATCHES_MAX: usize = 128;
/// Time for which the request of a batch waits for its end, so that clients find the results of
/// most batches at once.
const WAIT: Duration = Duration::from_millis(250);

/// Nodes of all ports.
pub(super) struct Nodes {
    ports: Vec<Mutex<PortNodes>>,
    /// What the relays of the ports know, also while a batch runs.
    members: Vec<Arc<Members>>,
    bird: BirdNamespace,
    batches: Mutex<Batches>,
}

#[derive(Default)]
struct Batches {
    last: u64,
    batches: BTreeMap<u64, Batch>,
}

/// A batch of commands.
#[derive(Default)]
struct Batch {
    total: usize,
    executed: usize,
    failed: usize,
    is_cancelled: bool,
    /// Results of all commands at the end.
    results: Option<Vec<Value>>,
}

impl Nodes {
    pub(super) fn new(interfaces: &[Interface]) -> Self {
        let bird = BirdNamespace::default();
        let ports = interfaces.iter().enumerate();
        let ports: Vec<PortNodes> = ports
            .map(|(number, interface)| PortNodes::new(number, interface, Arc::clone(&bird)))
            .collect();
        Self {
            members: ports.iter().map(PortNodes::members).collect(),
            ports: ports.into_iter().map(Mutex::new).collect(),
            bird,
            batches: Mutex::default(),
        }
    }

    /// Returns whether a port has nodes, which need the frames that arrive.
    pub(super) fn has_any(&self, port: usize) -> bool {
        self.members.get(port).is_some_and(|members| !members.lock().is_empty())
    }

    /// Removes all nodes and namespaces.
    pub(super) fn clear(&self) {
        for batch in self.batches().batches.values_mut() {
            batch.is_cancelled = true;
        }
        for port in 0..self.ports.len() {
            if let Some(mut nodes) = self.of(port) {
                // What is left is removed at the next start.
                let _ = nodes.remove_all();
            }
        }
        self.bird.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn of(&self, port: usize) -> Option<MutexGuard<'_, PortNodes>> {
        Some(self.ports.get(port)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the commands of a batch.
    fn run(&self, port: usize, ticket: u64, commands: &[Value]) {
        let mut results = Vec::with_capacity(commands.len());
        let mut failed = 0;
        if let Some(mut nodes) = self.of(port) {
            for command in commands {
                {
                    let mut batches = self.batches();
                    let Some(batch) = batches.batches.get_mut(&ticket) else { break };
                    (batch.executed, batch.failed) = (results.len(), failed);
                    if batch.is_cancelled {
                        break;
                    }
                }
                results.push(match run_command(&mut nodes, command) {
                    Ok(Value::Null) => Value::Null,
                    Ok(result) => json!({"result": result}),
                    Err(error) => {
                        failed += 1;
                        json!({"error": error.text()})
                    }
                });
            }
            if let Err(error) = nodes.update_relay() {
                results.push(json!({"error": error}));
            }
        }
        if let Some(batch) = self.batches().batches.get_mut(&ticket) {
            (batch.executed, batch.failed) = (results.len(), failed);
            batch.results = Some(results);
        }
    }
}

pub(super) fn conf_ns_batch(trex: &Arc<Trex>, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    if !trex.state().ports[port].is_service {
        let text = "port service mode must be enabled for configuring name-spaces";
        return Err(RpcError::execution(text));
    }
    let commands: Value = serde_json::from_str(parameters.text("batch")?)
        .map_err(|error| RpcError::execution(format!("Bad JSON Format: {error}")))?;
    let Value::Array(commands) = commands else {
        return Err(RpcError::execution("Bad JSON Format: expected an array of commands"));
    };
    if commands.len() > COMMANDS_MAX {
        return Err(RpcError::execution(format!("at most {COMMANDS_MAX} commands in a batch")));
    }
    let ticket = {
        let mut batches = trex.nodes.batches();
        while batches.batches.len() >= BATCHES_MAX {
            batches.batches.pop_first();
        }
        batches.last += 1;
        let ticket = batches.last;
        let batch = Batch { total: commands.len(), ..Batch::default() };
        batches.batches.insert(ticket, batch);
        ticket
    };
    let on_thread = Arc::clone(trex);
    let (end, ended) = mpsc::channel::<Infallible>();
    let run = move || {
        // Closes the channel, also after a panic.
        let _end = end;
        on_thread.nodes.run(port, ticket, &commands);
    };
    let spawned = std::thread::Builder::new().name("trex-nodes".to_owned()).spawn(run);
    spawned.map_err(|error| {
        trex.nodes.batches().batches.remove(&ticket);
        RpcError::execution(format!("cannot start a thread: {error}"))
    })?;
    // An error either way: the channel closes, or the time is over.
    let _ = ended.recv_timeout(WAIT);
    Ok(json!({"ticket_id": ticket}))
}

pub(super) fn get_async_results(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let ticket = parameters.u64("ticket_id")?;
    let mut batches = trex.nodes.batches();
    let Some(batch) = batches.batches.get_mut(&ticket) else {
        return Err(RpcError::no_results());
    };
    match batch.results.take() {
        Some(results) => {
            batches.batches.remove(&ticket);
            Ok(results.into())
        }
        None => Ok(json!({
            "ticket_id": ticket,
            "total_cmds": batch.total,
            "exec_cmds": batch.executed,
            "errs_cmds": batch.failed,
        })),
    }
}

pub(super) fn cancel_async_task(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let ticket = parameters.u64("ticket_id")?;
    if let Some(batch) = trex.nodes.batches().batches.get_mut(&ticket) {
        batch.is_cancelled = true;
    }
    Ok(Value::Null)
}
