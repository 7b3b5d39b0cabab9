//! What loading any BPF program needs.

use std::io;

use aya::Ebpf;
use aya::programs::{Program, ProgramError};

/// An error with all its reasons in one line: the loader's own lines name only the outermost.
pub(super) fn failure(error: impl std::error::Error) -> io::Error {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    io::Error::other(text)
}

/// The program of that name.
pub(super) fn program<'a, P>(programs: &'a mut Ebpf, name: &str) -> io::Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    programs
        .program_mut(name)
        .ok_or_else(|| io::Error::other(format!("the BPF object has no program named {name}")))?
        .try_into()
        .map_err(failure)
}
