//! BPF objects that are loaded often, errors of BPF programs, and lookup of programs by name.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use aya::programs::{Program, ProgramError};
use aya::{Ebpf, EbpfLoader};

use crate::privilege;
use crate::system::system_error;

/// Object file whose programs need no types of the kernel, with one constant, which is a flag.
///
/// A new loader reads all types of the kernel, which takes 10 ms. So the process has a single one
/// for each object, which forgets them.
pub(crate) struct FlagObject {
    bytes: &'static [u8],
    loader: OnceLock<Mutex<EbpfLoader<'static>>>,
}

impl FlagObject {
    /// `bytes`: the object file.
    pub(crate) const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, loader: OnceLock::new() }
    }

    /// Loads maps and programs, with this value of the constant `name`.
    ///
    /// # Errors
    /// There is no such constant, or the kernel refuses.
    pub(crate) fn load(&self, name: &'static str, value: bool) -> io::Result<Ebpf> {
        static VALUES: [u32; 2] = [0, 1];
        let loader = self.loader.get_or_init(|| {
            let mut loader = EbpfLoader::new();
            loader.btf(None);
            Mutex::new(loader)
        });
        let mut loader = loader.lock().unwrap_or_else(PoisonError::into_inner);
        let value = &VALUES[usize::from(value)];
        loader.override_global(name, value, true).load(self.bytes).map_err(failure)
    }
}

/// Converts an error to one line with all its causes; the loader's own text has only the outermost
/// one. Of the verifier log, it keeps only the last line: the verifier's objection. For `EPERM`,
/// the text lists the capabilities that the process lacks.
pub(crate) fn failure(error: impl std::error::Error + 'static) -> io::Error {
    if system_error(&error) == Some(libc::EPERM) {
        let refused = privilege::permission_hint(privilege::XDP);
        let text = format!("no privilege for BPF programs ({error}): {refused}");
        return io::Error::new(io::ErrorKind::PermissionDenied, text);
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    io::Error::other(without_verifier_log(&text))
}

fn without_verifier_log(text: &str) -> String {
    const LOG: &str = "Verifier output:";
    let Some((what, log)) = text.split_once(LOG) else { return text.to_owned() };
    let is_figure = |line: &str| {
        ["verification time", "stack depth", "processed"].iter().any(|it| line.starts_with(it))
    };
    let objection = log.lines().rev().map(str::trim).find(|it| !it.is_empty() && !is_figure(it));
    format!("{} {LOG} {}", what.trim_end(), objection.unwrap_or("empty"))
}

/// Finds the program with this name.
pub(crate) fn program<'a, P>(programs: &'a mut Ebpf, name: &str) -> io::Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    programs
        .program_mut(name)
        .ok_or_else(|| io::Error::other(format!("the BPF object has no program named {name}")))?
        .try_into()
        .map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_of_the_verifier_log_is_kept() {
        let log = "load failed. Verifier output: 0: R1=ctx()\n387: (0f) r1 += r7\n\
                   R1 pointer arithmetic prohibited\nverification time 9 usec\nstack depth 72\n";
        assert_eq!(
            without_verifier_log(log),
            "load failed. Verifier output: R1 pointer arithmetic prohibited"
        );
        assert_eq!(without_verifier_log("no privilege"), "no privilege");
    }
}
