//! TRex's stateless streams, from the JSON that its clients write.
//!
//! The document is the output of `STLProfile.to_json`: a list of streams. Each is an object, or is
//! nested in one with its name and number, as in `add_stream`. Unknown fields are errors. An error
//! has its path in the document.
//!
//! ```text
//! JSON -> document (words) -> template, program, rate -> chain -> wire::stream::Stream
//! ```

pub mod captures;
mod chain;
mod document;
mod error;
mod program;
mod rate;
pub mod stateful;
mod template;

pub use error::TrexError;
pub use rate::TotalLoad;
pub use template::Addresses;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde_json::Value;
use wirestorm_base::rate::Rate;
use wirestorm_model::stream::{GapDistribution, Mode, Program, Speed, Stream, Transmission};
use wirestorm_wire::kernel_frame::KernelFrame;
use wirestorm_wire::mark::Network;
use wirestorm_wire::packet::MacAddress;

use chain::ChainedStream;
use document::{
    FlowStatsDocument, ModeDocument, PacketDocument, ProgramDocument, RateDocument, RuleType,
    StreamDocument, deserialize_at,
};
use rate::Load;

use crate::multiplier::Multiplier;

/// Parameters of the streams beside the document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowerOptions {
    /// Bits per second of the port at layer 1, the base of percentages.
    pub line_rate: Rate,
    /// Multiplier of the streams' rates.
    pub multiplier: Multiplier,
    /// The port's addresses.
    pub addresses: Addresses,
    /// Handling of streams with flow statistics.
    pub marking: Marking,
    /// Number of cores among which TRex would share the streams. A variable that is not split among
    /// them advances with every frame of a core.
    pub cores: NonZeroU64,
}

/// How receivers recognise frames of streams with flow statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// By a signature in the payload: the stream is measured. Frames without room for one, that are
    /// only counted, have a mark in their IP header instead.
    Signature,
    /// As in TRex: by IPv4 identification or IPv6 flow label, and the type of service. Latency
    /// streams also have a header at the end of the frame. It holds the constants of TRex's
    /// simulator in place of sequence numbers and times.
    Trex,
}

impl LowerOptions {
    /// Returns the options of TRex's simulator: 10 Gbit/s, its two addresses, one core.
    pub fn simulator() -> Self {
        Self {
            line_rate: Rate::TEN_GIGA,
            multiplier: Multiplier::ONE,
            addresses: Addresses {
                source: MacAddress([0x18; 6]),
                destination: MacAddress([0x10; 6]),
            },
            marking: Marking::Trex,
            cores: NonZeroU64::MIN,
        }
    }
}

/// Returns whether a document looks like a list of streams. Its first item has a field that neither
/// plans nor TRex's other profiles have.
pub fn looks_like_streams(document: &Value) -> bool {
    let Some(items) = document.as_array() else { return false };
    let names = ["stream", "stream_id", "mode", "packet", "isg", "self_start"];
    let is_stream = |item: &Value| names.iter().any(|name| item.get(name).is_some());
    items.first().is_none_or(is_stream)
}

/// Lowers the enabled streams of a document, in document order. Streams that only take time become
/// delays of others. A stream without a name has its number as name.
///
/// # Errors
/// Returns a [`TrexError`] with the path in the document.
pub fn lower(json: &str, options: &LowerOptions) -> Result<Vec<Stream>, TrexError> {
    let (mut links, loads) = lower_with_multiplier(json, options)?;
    for (link, load) in links.iter_mut().zip(&loads) {
        link.stream.transmission.speed = Speed::Frames(load.frames);
    }
    chain::resolve(links)
}

/// Returns the maximum total load of the streams of a document.
///
/// # Errors
/// As [`lower`].
pub fn load(json: &str, options: &LowerOptions) -> Result<TotalLoad, TrexError> {
    let (_, loads) = lower_with_multiplier(json, options)?;
    Ok(TotalLoad::of(&loads))
}

/// Lowers the streams and multiplies their rates, which are in the loads.
fn lower_with_multiplier(
    json: &str,
    options: &LowerOptions,
) -> Result<(Vec<ChainedStream>, Vec<Load>), TrexError> {
    let words: Vec<(String, StreamDocument)> =
        document::read(json)?.into_iter().filter(|(_, words)| words.enabled).collect();
    let names = Names::new(&words)?;
    let mut groups = Groups::default();
    let drafts = words
        .into_iter()
        .enumerate()
        .map(|(index, (path, words))| draft(path, words, index, &names, &mut groups, options));
    let (links, mut loads): (Vec<ChainedStream>, Vec<Load>) =
        drafts.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    rate::multiply(&mut loads, options.multiplier, options.line_rate)?;
    Ok((links, loads))
}

/// Names and numbers of the streams.
struct Names {
    names: Vec<String>,
    by_name: BTreeMap<String, usize>,
    by_id: BTreeMap<i64, usize>,
}

impl Names {
    fn new(words: &[(String, StreamDocument)]) -> Result<Self, TrexError> {
        let mut this = Self { names: Vec::new(), by_name: BTreeMap::new(), by_id: BTreeMap::new() };
        for (index, (path, words)) in words.iter().enumerate() {
            let id = words.id.unwrap_or(index as i64 + 1);
            let name = words.name.as_ref().map_or_else(|| id.to_string(), document::Name::text);
            if this.by_id.insert(id, index).is_some() {
                let (path, name) = (format!("{path}.id"), id.to_string());
                return Err(TrexError::Duplicate { path, kind: "stream", name });
            }
            if this.by_name.insert(name.clone(), index).is_some() {
                let path = format!("{path}.name");
                return Err(TrexError::Duplicate { path, kind: "stream", name });
            }
            this.names.push(name);
        }
        Ok(this)
    }

    fn next(&self, path: &str, words: &StreamDocument) -> Result<Option<usize>, TrexError> {
        let unknown = |field: &str, name: String| TrexError::Unknown {
            path: format!("{path}.{field}"),
            kind: "enabled stream",
            name,
        };
        if let Some(next) = words.next.as_ref().map(document::Name::text) {
            let index = self.by_name.get(&next).copied();
            return index.map(Some).ok_or_else(|| unknown("next", next));
        }
        match words.next_stream_id {
            None | Some(..0) => Ok(None),
            Some(id) => {
                let index = self.by_id.get(&id).copied();
                index.map(Some).ok_or_else(|| unknown("next_stream_id", id.to_string()))
            }
        }
    }
}

/// Groups of flow statistics, numbered per rule in order of appearance.
#[derive(Default)]
struct Groups {
    counted: Vec<u32>,
    latency: Vec<u32>,
}

impl Groups {
    fn number(&mut self, rule: RuleType, group: u32) -> u16 {
        let groups = if rule == RuleType::Latency { &mut self.latency } else { &mut self.counted };
        let known = groups.iter().position(|other| *other == group);
        let number = known.unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }
}

fn draft(
    path: String,
    words: StreamDocument,
    index: usize,
    names: &Names,
    groups: &mut Groups,
    options: &LowerOptions,
) -> Result<(ChainedStream, Load), TrexError> {
    /// Flag of a stream that only takes time.
    const DUMMY: u32 = 8;
    /// All known flags.
    const KNOWN: u32 = 15;
    if words.flags & !KNOWN != 0 {
        return Err(TrexError::value(format!("{path}.flags"), words.flags, "0 to 15"));
    }
    let next = names.next(&path, &words)?;
    let id = words.id.unwrap_or(index as i64 + 1);
    let packet: PacketDocument = deserialize_at(words.packet, &format!("{path}.packet"))?;
    let vm: ProgramDocument = deserialize_at(words.vm, &format!("{path}.vm"))?;
    let flow_stats: FlowStatsDocument =
        deserialize_at(words.flow_stats, &format!("{path}.flow_stats"))?;
    let counted = statistics_group(&path, &flow_stats, options.marking)?;
    let is_dummy = words.flags & DUMMY != 0;
    let is_latency = matches!(counted, Some((RuleType::Latency, _)));
    // TRex renders frames with sequence numbers individually, all on one core.
    let is_sequenced = is_latency || matches!(counted, Some((RuleType::Tpg, _)));

    let mut template = frame(&format!("{path}.packet.binary"), &packet.binary)?;
    template::set_addresses(&mut template, words.flags, &options.addresses);
    if options.marking == Marking::Trex && !is_dummy {
        let trims = vm.instructions.iter().any(|one| one["type"] == "trim_pkt_size");
        mark(&path, &mut template, counted, groups, trims)?;
    }
    let recognition = match counted {
        Some((rule, _)) if options.marking == Marking::Signature && !is_dummy => {
            recognition(&path, rule, &mut template)?
        }
        _ => Recognition::None,
    };
    let seed = match words.random_seed {
        0 => id as u64,
        seed => u64::from(seed),
    };
    let context = program::Context {
        path: &path,
        template: &template,
        seed,
        cores: if is_sequenced { NonZeroU64::MIN } else { options.cores },
        cache: if is_sequenced { 0 } else { vm.cache },
    };
    let lowered = program::lower(vm.instructions, &context)?;
    if recognition == Recognition::Mark {
        check_mark(&path, &template, &lowered.program)?;
    }

    let mode_path = format!("{path}.mode");
    let (mode, rate) = mode(&mode_path, deserialize_at(words.mode, &mode_path)?)?;
    if mode == Mode::Continuous && next.is_some() {
        let expected = "none after a continuous stream, which never ends";
        return Err(TrexError::value(format!("{path}.next"), "a stream", expected));
    }
    let rate_path = format!("{mode_path}.rate");
    let rate: RateDocument = deserialize_at(rate, &rate_path)?;
    let load = Load {
        frames: rate::frames(&rate_path, &rate, lowered.double_length, options.line_rate)?,
        double_length: lowered.double_length,
        mode,
        start_delay: rate::microseconds(&format!("{path}.isg"), words.isg)?,
        self_start: words.self_start,
        next,
        is_fixed: is_latency,
    };
    let transmission = Transmission {
        mode,
        speed: Speed::Frames(load.frames),
        departures: GapDistribution::Constant,
        start_delay: load.start_delay,
        self_start: words.self_start,
        start_paused: words.start_paused,
        next,
        starts_max: 0,
    };
    let stream = Stream {
        name: names.names[index].clone(),
        template,
        program: lowered.program,
        transmission,
        is_measured: recognition == Recognition::Signature,
        trailer: 0,
        is_marked: recognition == Recognition::Mark,
        member: None,
    };
    Ok((ChainedStream { path, stream, action_count: words.action_count, is_dummy }, load))
}

/// How receivers recognise frames of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recognition {
    None,
    /// By a signature, for which the template has reserved bytes.
    Signature,
    /// By a mark in the IP header of the template.
    Mark,
}

/// Selects the recognition of a stream with flow statistics. Latency and tagged groups need the
/// numbers and times of a signature; a stream that is only counted does not.
fn recognition(path: &str, rule: RuleType, frame: &mut [u8]) -> Result<Recognition, TrexError> {
    let unseen = |what: &str| {
        let what = format!("{what}: receivers leave such frames to the kernel; leave it out");
        Err(TrexError::unsupported(format!("{path}.flow_stats"), what))
    };
    let neighbour = KernelFrame::of(frame);
    match neighbour {
        Some(KernelFrame::Arp) => return unseen("statistics of ARP"),
        Some(KernelFrame::Discovery) => return unseen("statistics of neighbour discovery"),
        Some(KernelFrame::Fragment) => return unseen("statistics of fragments of ICMP"),
        Some(KernelFrame::Ping) | None => {}
    }
    let least = match template::reserve_signature(frame) {
        Ok(()) => return Ok(Recognition::Signature),
        Err(least) => least,
    };
    let is_ping = neighbour == Some(KernelFrame::Ping);
    if rule == RuleType::Stats && !is_ping && template::mark(frame, Some(rule), 0) {
        return Ok(Recognition::Mark);
    }
    let found = format!("{} bytes", frame.len());
    let expected = format!(
        "at least {least}, of which the last {} hold the signature of a measured stream",
        template::SIGNATURE_BYTES
    );
    Err(TrexError::value(format!("{path}.packet.binary"), found, expected))
}

/// Returns an error if a program changes the marked fields.
fn check_mark(path: &str, template: &[u8], program: &Program) -> Result<(), TrexError> {
    let Some(network) = Network::find(template) else { return Ok(()) };
    let is_changed = program.steps.iter().any(|step| {
        let target = step.target();
        network.overlaps_mark(target.start, target.end)
    });
    if !is_changed {
        return Ok(());
    }
    let what = "frames without room for a signature are counted by their IPv4 identification or \
                IPv6 flow label, and by the lowest bit of their type of service: do not change \
                these fields, or make the packet longer";
    Err(TrexError::unsupported(format!("{path}.vm"), what.to_owned()))
}

/// Returns the rule and the group of a counted stream.
fn statistics_group(
    path: &str,
    words: &FlowStatsDocument,
    marking: Marking,
) -> Result<Option<(RuleType, u32)>, TrexError> {
    let path = format!("{path}.flow_stats");
    if !words.enabled {
        return Ok(None);
    }
    let (Some(rule), Some(group)) = (words.rule_type, words.stream_id) else {
        let reason = "enabled without rule_type and stream_id".to_owned();
        return Err(TrexError::Malformed { path, reason });
    };
    let unsupported = |field: &str, what: &str| {
        Err(TrexError::unsupported(format!("{path}.{field}"), what.to_owned()))
    };
    if words.ieee_1588 && marking == Marking::Signature {
        return unsupported("ieee_1588", "there are no hardware time stamps: leave it out");
    }
    if words.vxlan {
        return unsupported("vxlan", "frames are not counted by an inner packet: leave it out");
    }
    Ok(Some((rule, group)))
}

/// Decodes a packet, and pads it as TRex does.
fn frame(path: &str, binary: &str) -> Result<Vec<u8>, TrexError> {
    let Some(mut frame) = document::from_base64(binary) else {
        return Err(TrexError::value(path, "an invalid text", "bytes in base 64"));
    };
    let lengths = template::PACKET_MIN..=template::PACKET_MAX;
    if !lengths.contains(&frame.len()) {
        let expected = format!("{} to {}", lengths.start(), lengths.end());
        return Err(TrexError::value(path, format!("{} bytes", frame.len()), expected));
    }
    frame.resize(frame.len().max(template::FRAME_LENGTH_MIN), 0);
    Ok(frame)
}

fn mark(
    path: &str,
    frame: &mut [u8],
    counted: Option<(RuleType, u32)>,
    groups: &mut Groups,
    trims: bool,
) -> Result<(), TrexError> {
    let Some((rule, group)) = counted else {
        template::mark(frame, None, 0);
        return Ok(());
    };
    let path = format!("{path}.flow_stats");
    if rule != RuleType::Stats && trims {
        let what = "TRex's header is at the end of the frame, which trim_pkt_size moves: \
                    remove one of them";
        return Err(TrexError::unsupported(path, what));
    }
    if rule == RuleType::Tpg {
        template::mark(frame, None, 0);
        template::group_header(frame, group);
        return Ok(());
    }
    let number = groups.number(rule, group);
    if !template::mark(frame, Some(rule), number) {
        let expected = "IPv4 or IPv6 after at most two VLAN tags, which can be marked";
        return Err(TrexError::value(path, "another packet", expected));
    }
    if rule == RuleType::Latency {
        template::latency_header(frame, number);
    }
    Ok(())
}

fn mode(path: &str, words: ModeDocument) -> Result<(Mode, serde_json::Value), TrexError> {
    let positive = |field: &str, count: u32| match count {
        0 => Err(TrexError::value(format!("{path}.{field}"), 0, "at least 1")),
        count => Ok(u64::from(count)),
    };
    Ok(match words {
        ModeDocument::Continuous { rate } => (Mode::Continuous, rate),
        ModeDocument::SingleBurst { rate, total_pkts } => {
            (Mode::Burst { frames: positive("total_pkts", total_pkts)? }, rate)
        }
        ModeDocument::MultiBurst { rate, pkts_per_burst, count, ibg } => {
            let mode = Mode::Bursts {
                frames: positive("pkts_per_burst", pkts_per_burst)?,
                count: positive("count", count)?,
                gap: rate::microseconds(&format!("{path}.ibg"), ibg)?,
            };
            (mode, rate)
        }
    })
}
