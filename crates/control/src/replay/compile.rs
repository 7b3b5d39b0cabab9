//! Converts a plan to the options of the reader, the workers and the renderer.

use std::path::Path;

use wirestorm_base::pace::Pace;
use wirestorm_base::resident::{CAPTURED_MAX, CaptureOptions, ResidentOptions};
use wirestorm_engine::replay::{
    IndexerOptions, KeptChunks, RenderOptions, Renderer, SideSource, Unique, UniqueFields,
    WorkerOptions,
};
use wirestorm_engine::sides::CacheFile;
use wirestorm_plan::files::{self, Files};
use wirestorm_plan::replay::{ReplayPlan, SideAssignment, Target};

use super::error::ReplayError;
use super::input::Input;
use super::reader::{self, KEEP_BYTES_MAX, ReaderOptions};
use crate::backend::Backend;
use crate::port::Interfaces;
use crate::work::HORIZON;

/// Maximum kernel memory for the frames of each worker's port.
const STORE_BYTES_MAX: u64 = 256 << 20;

/// Largest capture that the kernel sends by itself.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

/// Returns the options of the reader.
///
/// # Errors
/// Fails if the tcpprep cache file cannot be read.
pub(super) fn reader_options(
    plan: &ReplayPlan,
    inputs: Vec<Input>,
    is_resident: bool,
    files: &dyn Files,
) -> Result<ReaderOptions, ReplayError> {
    Ok(ReaderOptions {
        inputs,
        passes: plan.limits.passes,
        preload: plan.preload || is_resident,
        in_pairs: plan.sides == SideAssignment::Pairs,
        indexer: IndexerOptions {
            workers: plan.workers,
            flows: plan.flows.is_some(),
            flow_expiry: plan.flows.and_then(|flows| flows.expiry),
            flows_max: plan.flows.map_or(0, |flows| flows.flows_max),
            sides: side_source(plan, files)?,
            needs_offsets: plan.unique.is_some() || plan.edits != Default::default(),
            only: plan.include.clone(),
            except: plan.exclude.clone(),
        },
    })
}

/// Returns the bytes of frames that a port may store because each pass sends them unchanged.
/// `extent`: size of the captures if known; `read`: bytes read so far.
pub(super) fn store_bytes(plan: &ReplayPlan, extent: Option<u64>, read: u64) -> usize {
    if plan.limits.passes <= 1 || plan.unique.is_some() || plan.edits != Default::default() {
        return 0;
    }
    let bytes = match extent {
        _ if plan.preload => read,
        Some(bytes) if bytes <= KEEP_BYTES_MAX => bytes,
        _ => 0,
    };
    // Chunks do not fill the memory exactly: with many small files half of it may stay unused.
    (2 * bytes).min(STORE_BYTES_MAX) as usize
}

/// Returns whether the kernel may send the whole capture by itself.
pub(super) fn may_be_resident(plan: &ReplayPlan, inputs: &[Input], backend: Backend) -> bool {
    // At top speed, a single pass is over before the frames would be in the memory of the kernel.
    let is_worth = plan.limits.passes > 1 || plan.pace != Pace::TopSpeed;
    matches!(plan.target, Target::Interfaces { secondary: None, .. })
        && is_worth
        && backend.may_need_dedicated_cpu()
        && reader::size(inputs).is_some_and(|size| size <= RESIDENT_BYTES_MAX)
}

/// Returns what a port is opened for to send the capture by itself, and the memory that its frames
/// need in bytes; `None` if they do not fit.
pub(super) fn resident(
    plan: &ReplayPlan,
    kept: &KeptChunks,
    renderer: &Renderer,
) -> Option<(ResidentOptions, usize)> {
    let records = kept.chunks.iter().flat_map(|chunk| &chunk.records);
    let (mut frames, mut bytes) = (0_usize, 0_usize);
    for record in records {
        frames += 1;
        bytes = bytes.checked_add(renderer.room(record))?;
    }
    // Frames are stored in pieces, which do not fill the memory exactly.
    let bytes = bytes.checked_add(bytes / 4)?.checked_add(2 << 20)?;
    let fits = (1..=CAPTURED_MAX).contains(&frames) && bytes as u64 <= STORE_BYTES_MAX;
    let capture = Some(CaptureOptions { frames });
    let is_timed = plan.pace != Pace::TopSpeed;
    fits.then_some((ResidentOptions { capture, is_timed, ..ResidentOptions::default() }, bytes))
}

fn side_source(plan: &ReplayPlan, files: &dyn Files) -> Result<SideSource, ReplayError> {
    Ok(match &plan.sides {
        SideAssignment::Single => SideSource::One,
        SideAssignment::Pairs => SideSource::Interface,
        SideAssignment::Cache(path) => SideSource::Cache(cache_file(path, files)?),
        SideAssignment::Rules(rules) => SideSource::Rules(rules.clone()),
    })
}

fn cache_file(path: &Path, files: &dyn Files) -> Result<CacheFile, ReplayError> {
    let name = || files.name(path);
    let file =
        files::read(files, path).map_err(|error| ReplayError::CacheFile { path: name(), error })?;
    CacheFile::parse(&file).map_err(|error| ReplayError::Cache { path: name(), error })
}

/// Returns the options of worker `index`.
pub(super) fn worker_options(plan: &ReplayPlan, index: usize) -> WorkerOptions {
    WorkerOptions {
        index: index as u16,
        pace: plan.pace,
        policy: plan.policy,
        packets_max: plan.limits.packets,
        duration_max: plan.limits.duration,
        pass_delay: plan.pass_delay,
        virtual_time: matches!(plan.target, Target::File(_)),
        horizon: HORIZON,
    }
}

/// Returns the options for building frames.
pub(super) fn render_options(plan: &ReplayPlan, interfaces: &Interfaces) -> RenderOptions {
    RenderOptions {
        edits: plan.edits.clone(),
        link_addresses: link_addresses(interfaces),
        unique: plan.unique.map(|unique| Unique {
            what: if unique.ports {
                UniqueFields::AddressesAndPorts
            } else {
                UniqueFields::Addresses
            },
            passes_milli: unique.passes_milli,
        }),
        original_length: plan.original_length,
    }
}

/// Returns the addresses for frames without an Ethernet header, by side: to broadcast, from the
/// interface.
fn link_addresses(interfaces: &Interfaces) -> [[u8; 12]; 2] {
    let mut addresses = [[0xff; 12]; 2];
    for (side, address) in addresses.iter_mut().enumerate() {
        let link = interfaces.links.get(side).or(interfaces.links.first());
        let mac = link.and_then(|(_, link)| link.mac).unwrap_or([2, 0, 0, 0, 0, 1]);
        address[6..].copy_from_slice(&mac);
    }
    addresses
}
