//! Helpers that several tests share.

pub(crate) mod build;

use std::path::{Path, PathBuf};

use wirestorm_engine::edit::{EditResult, Editor, FrameFacts};
use wirestorm_wire::capture::{LinkType, Records};
use wirestorm_wire::dissect::{Class, dissect};

/// Returns the folder of reference output; prints a note and returns `None` if it is absent.
pub(crate) fn goldens() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/goldens/tcpreplay");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: shared/goldens is absent");
    None
}

/// Returns the real captures; prints a note and returns `None` if they are absent.
pub(crate) fn captures() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: shared/captures is absent");
        return None;
    };
    let captures = entries
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    Some(captures.collect())
}

/// Packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) data: Vec<u8>,
    pub(crate) original_length: usize,
    pub(crate) link: LinkType,
}

/// Reads the packets of a capture file.
pub(crate) fn packets(path: &Path) -> Vec<Packet> {
    let file = std::fs::read(path).expect("a readable capture");
    Records::new(&file)
        .map(|record| {
            let (header, data) = record.expect("a whole capture");
            Packet {
                data: data.to_vec(),
                original_length: header.original_length as usize,
                link: header.link_type,
            }
        })
        .collect()
}

/// Returns the facts about a frame that a capture reader passes to the editor.
pub(crate) fn facts(frame: &[u8]) -> FrameFacts {
    let dissection = dissect(LinkType::EN10MB, frame);
    let Class::Flow(key) = dissection.class else { return FrameFacts::default() };
    FrameFacts {
        network_offset: dissection.network_offset,
        transport_offset: dissection.transport_offset,
        protocol: dissection.protocol,
        is_ip: true,
        is_ipv6: key.version() == 6,
        ..FrameFacts::default()
    }
}

/// Edits a frame in a large enough buffer; returns `None` if the frame is dropped.
pub(crate) fn edited(
    editor: &Editor,
    frame: &[u8],
    original_length: usize,
    facts: FrameFacts,
) -> Option<Vec<u8>> {
    let mut buffer = frame.to_vec();
    // Old bytes of the buffer must not become visible.
    buffer.resize(frame.len().max(original_length) + editor.frame_length_max_growth(), 0xa5);
    match editor.apply(&mut buffer, frame.len(), original_length, facts) {
        EditResult::Length(length) => {
            buffer.truncate(length);
            Some(buffer)
        }
        EditResult::Drop => None,
    }
}
