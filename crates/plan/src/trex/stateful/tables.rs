//! Tables that templates refer to by index.

use super::pools::{self, Pool};
use super::program::{self, Conversation};
use super::tunables::{self, Tunables};
use crate::document::error::{PlanError, Problems};
use crate::document::place::{Fields, Place};
use crate::trex::document::from_base64;

const BUFFER: [&str; 3] = ["base", "size", "fill"];

/// Tables of a profile.
pub(super) struct Tables {
    pub(super) pools: Vec<Pool>,
    pub(super) programs: Vec<Conversation>,
    pub(super) groups: Vec<String>,
    /// Tunables of all clients.
    pub(super) clients: Tunables,
    /// Tunables of all servers.
    pub(super) servers: Tunables,
}

/// Bytes to send: `text`, extended to `size` by repeats of `fill`.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    pub(super) text: Vec<u8>,
    pub(super) size: u32,
    pub(super) fill: Vec<u8>,
}

/// Reads the tables. Records errors, and skips the faulty entries.
pub(super) fn read(
    fields: &Fields<'_>,
    problems: &mut Problems,
    notes: &mut Vec<String>,
) -> Tables {
    let items = |name: &str, problems: &mut Problems| {
        let list = problems.take(fields.need(name, "a list"));
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

fn read_names(place: &Place<'_>) -> Result<Vec<String>, PlanError> {
    let name = |it: &Place<'_>| it.free_text("the name of a group").map(str::to_owned);
    place.items("names")?.iter().map(name).collect()
}

fn read_buffer(place: &Place<'_>) -> Result<Bytes, PlanError> {
    let bytes = |place: &Place<'_>| {
        let text = place.text("bytes in base 64")?;
        from_base64(text).ok_or_else(|| place.wrong("bytes in base 64"))
    };
    if place.value().is_string() {
        let text = bytes(place)?;
        return Ok(Bytes { size: text.len() as u32, text, fill: Vec::new() });
    }
    let fields = place.fields(&BUFFER)?;
    let text = bytes(&fields.need("base", "bytes in base 64")?)?;
    let size = fields.need("size", "the size in bytes after filling")?;
    let size = size.integer(text.len() as u64, u32::MAX.into())? as u32;
    let fill = fields.get("fill").map_or(Ok(Vec::new()), |it| bytes(&it))?;
    Ok(Bytes { text, size, fill })
}

/// Returns the entry whose index a field gives.
pub(super) fn entry<'a, T>(
    place: &Place<'_>,
    list: &'a [T],
    what: &str,
) -> Result<&'a T, PlanError> {
    let number = place.value().as_u64().and_then(|it| usize::try_from(it).ok());
    number.and_then(|number| list.get(number)).ok_or_else(|| {
        place.wrong(format!("the number of one of the {} {what}, from 0", list.len()))
    })
}
