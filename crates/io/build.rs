//! Compiles every `bpf/*.bpf.c` to an object in `OUT_DIR`, from where the crate includes it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for source in sources(Path::new("bpf")) {
        let name = source.file_name().expect("a source has a name").to_string_lossy();
        let object = output.join(name.replace(".bpf.c", ".o"));
        let run = Command::new(&clang)
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
            .args(system_include_arguments())
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        match run {
            Ok(status) if status.success() => {}
            Ok(status) => panic!(
                "{clang} could not compile {}: {status}; the kernel's and libbpf's headers come \
                 with: apt-get install linux-libc-dev libbpf-dev",
                source.display()
            ),
            Err(error) => panic!(
                "{clang}: {error}; the BPF programs need it: apt-get install clang libbpf-dev"
            ),
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the crate has a folder bpf");
    let mut sources: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".bpf.c"))
        .collect();
    sources.sort();
    sources
}

/// Debian keeps `asm/types.h` in a folder for each architecture. clang does not search that folder
/// when it compiles for BPF.
fn system_include_arguments() -> Vec<String> {
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let folder = format!("/usr/include/{architecture}-linux-gnu");
    if Path::new(&folder).is_dir() { vec!["-idirafter".into(), folder] } else { Vec::new() }
}
