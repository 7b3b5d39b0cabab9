//! Demos: a replay, and tests between two machines, in network namespaces.

mod replay;
mod sites;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::ValueExt;

use crate::Fallible;
use sites::{Site, Traffic};

/// Runs the command `demo`.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut conversations, mut pps) = (3_000_u32, None);
    let (mut size, mut seconds, mut json, mut site) = (64_u32, 10_u32, None, None);
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Value(name) => site = Some(Site::parse(&name.string()?)?),
            lexopt::Arg::Long("flows") => conversations = arguments.value()?.parse()?,
            lexopt::Arg::Long("pps") => pps = Some(arguments.value()?.parse()?),
            lexopt::Arg::Long("size") => size = arguments.value()?.parse()?,
            lexopt::Arg::Long("seconds") => seconds = arguments.value()?.parse()?,
            lexopt::Arg::Long("json") => json = Some(PathBuf::from(arguments.value()?)),
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            other => return Err(other.unexpected().into()),
        }
    }
    match site {
        None => replay::run(conversations, pps.unwrap_or(100_000)),
        Some(site) => {
            let traffic = Traffic { pps: pps.unwrap_or(2_000), size, seconds };
            sites::run(site, traffic, json.as_deref())
        }
    }
}
