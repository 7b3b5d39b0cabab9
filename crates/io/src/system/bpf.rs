//! BPF objects that are loaded often, errors of BPF programs, and lookup of programs by name.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
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

/// `BPF_MAP_UPDATE_ELEM`, `BPF_PROG_LOAD`, `BPF_PROG_TYPE_XDP` and `BPF_XDP` (linux/bpf.h).
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Loads an XDP program. `I`: an instruction of 8 bytes, as in RFC 9669.
///
/// # Errors
/// The kernel refuses it; the error has the verifier's objection.
pub(crate) fn load_xdp<I: Copy>(name: &str, instructions: &[I]) -> io::Result<OwnedFd> {
    /// The part of `union bpf_attr` that belongs to `BPF_PROG_LOAD` (linux/bpf.h).
    #[repr(C)]
    #[derive(Default)]
    struct Load {
        kind: u32,
        instructions_count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    const { assert!(size_of::<I>() == 8) };
    const LOG_BYTES: usize = 1 << 20;
    let load = |log: &mut [u8]| {
        let mut attributes = Load {
            kind: PROG_TYPE_XDP,
            instructions_count: u32::try_from(instructions.len()).map_err(io::Error::other)?,
            instructions: instructions.as_ptr() as u64,
            license: c"Dual MIT/GPL".as_ptr() as u64,
            attach_type: ATTACH_XDP,
            ..Load::default()
        };
        // The name ends with a zero.
        for (to, from) in attributes.name[..15].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        if !log.is_empty() {
            attributes.log_level = 1;
            attributes.log_bytes = log.len() as u32;
            attributes.log = log.as_mut_ptr() as u64;
        }
        // SAFETY: the attributes have the kernel's layout; all memory that they name lives through
        // the call. The kernel writes only to the log.
        let answer = unsafe {
            libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw mut attributes, size_of::<Load>())
        };
        match i32::try_from(answer) {
            // SAFETY: a new descriptor that nothing else owns.
            Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
            _ => Err(io::Error::last_os_error()),
        }
    };
    load(&mut []).or_else(|error| {
        if error.raw_os_error() == Some(libc::EPERM) {
            return Err(failure(error));
        }
        let mut log = vec![0; LOG_BYTES];
        let error = match load(&mut log) {
            Ok(program) => return Ok(program),
            Err(error) => error,
        };
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
        let text = format!("the program {name} does not load: {error}. Verifier output: {log}");
        Err(io::Error::other(without_verifier_log(&text)))
    })
}

/// Sets an element of a map of programs or interfaces: the descriptor of a program, or the index of an
/// interface.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn set_element(map: BorrowedFd<'_>, index: u32, value: u32) -> io::Result<()> {
    /// The part of `union bpf_attr` that belongs to `BPF_MAP_UPDATE_ELEM` (linux/bpf.h).
    #[repr(C)]
    struct Update {
        map: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    // A value of a map of interfaces has 8 bytes if the kernel knows programs there (`struct
    // bpf_devmap_val`): the second half is the descriptor of one, 0 for none.
    let value = [value, 0];
    let mut attributes = Update {
        map: map.as_raw_fd().cast_unsigned(),
        padding: 0,
        key: &raw const index as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: the attributes have the kernel's layout; key and value live through the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, MAP_UPDATE_ELEM, &raw mut attributes, size_of::<Update>())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
