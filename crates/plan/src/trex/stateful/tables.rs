//! Tables that templates refer to by index.

use super::buffers::{Bytes, read_buffer};
use super::pools::{self, Pool};
use super::program::{self, SideProgram};
use super::tunables::{self, Tunables};
use crate::document::error::{ErrorCollector, PlanError};
use crate::document::value_at::{Fields, ValueAt};

/// Tables of a profile.
pub(super) struct Tables {
    pub(super) pools: Vec<Pool>,
    pub(super) programs: Vec<SideProgram>,
    pub(super) groups: Vec<String>,
    /// Tunables of all clients.
    pub(super) clients: Tunables,
    /// Tunables of all servers.
    pub(super) servers: Tunables,
}

/// Reads the tables. Records errors, and skips the faulty entries.
pub(super) fn read(
    fields: &Fields<'_>,
    problems: &mut ErrorCollector,
    notes: &mut Vec<String>,
) -> Tables {
    let items = |name: &str, problems: &mut ErrorCollector| {
        let list = problems.take(fields.required(name, "a list"));
        list.and_then(|it| problems.take(it.items("objects"))).unwrap_or_default()
    };
    let groups = match fields.get("tg_names") {
        Some(names) => problems.take(read_names(&names)).unwrap_or_default(),
        None => Vec::new(),
    };
    let mut buffers = Vec::new();
    for item in items("buf_list", problems) {
        // A faulty buffer keeps its index.
        let nothing = || Bytes { text: Vec::new(), size: 0, fill: Vec::new() };
        buffers.push(problems.take(read_buffer(&item)).unwrap_or_else(nothing));
    }
    let mut programs = Vec::new();
    for item in items("program_list", problems) {
        let program = problems.take(program::read(&item, &buffers, &groups, notes));
        programs.push(program.unwrap_or_default());
    }
    let mut pools = Vec::new();
    for item in items("ip_gen_dist_list", problems) {
        pools.extend(problems.take(pools::read(&item)));
    }
    let mut side = |name: &str| match fields.get(name) {
        Some(place) => {
            problems.take(tunables::read(&place, tunables::Scope::Side, notes)).unwrap_or_default()
        }
        None => Tunables::default(),
    };
    let (clients, servers) = (side("c_glob_info"), side("s_glob_info"));
    Tables { pools, programs, groups, clients, servers }
}

fn read_names(place: &ValueAt<'_>) -> Result<Vec<String>, PlanError> {
    let name = |it: &ValueAt<'_>| it.string("the name of a group").map(str::to_owned);
    place.items("names")?.iter().map(name).collect()
}
