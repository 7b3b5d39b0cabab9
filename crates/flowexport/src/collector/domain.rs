//! One export stream: an exporter's observation domain.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wirestorm_base::bytes::Reader;
use wirestorm_base::time::Instant;

use crate::header::{Header, SET_HEADER_LENGTH, Times, Version};
use crate::layout::StreamFacts;
use crate::malformed::Malformed;
use crate::reader::opaque;
use crate::record::{Content, Record, Source};
use crate::sflow::{FlowSample, SAMPLE_HEADER_LENGTH, format};
use crate::template::{Definition, Definitions, Position, TEMPLATE_ID_MIN, Template};

use super::counters::Counters;
use super::records::{Context, decode_flows, each_record};
use super::sampling::Sampling;
use super::sequence::{SequenceConvention, SequenceCounters, Sequences, Units};
use super::templates::{Learned, Templates, WaitingSet, WaitingSets};
use super::{CollectorOptions, Withdrawals};

/// Decrease of the uptime that only a restart explains; datagrams are not reordered as far.
const UPTIME_DECREASE_MS: i32 = 1_000;
/// Data sources of sFlow whose drops are counted.
const DATA_SOURCES_MAX: usize = 256;

/// State of one export stream.
#[derive(Debug)]
pub struct Domain {
    source: Source,
    counters: Counters,
    sequences: Sequences,
    templates: Templates,
    waiting: WaitingSets,
    sampling: Sampling,
    /// Boot of the exporter, from options data.
    system_init: Option<Instant>,
    uptime_ms: Option<u32>,
    /// Fewest and most flow records in a datagram that has some.
    records_range: Option<(u32, u32)>,
    /// Data sources of sFlow with their last number of drops.
    drops: Vec<((u32, u32), u32)>,
    first_arrival: Instant,
    last_arrival: Instant,
}

/// Parts of the collector that all domains use.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: CollectorOptions,
    pub(super) v5: Template,
    /// Positions of the fields of the current record.
    pub(super) positions: Vec<Position>,
}

/// What a datagram contained.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DatagramContent {
    /// Flow records.
    pub(super) records: u32,
    pub(super) malformed: Option<Malformed>,
    options_records: u32,
    templates: u32,
    /// Bytes of sets whose template is unknown.
    unknown_bytes: u32,
    /// Bytes that have a counter.
    counted_bytes: usize,
    has_new_template: bool,
}

impl Domain {
    pub(super) fn new(source: Source, gap_limit: u32, now: Instant) -> Self {
        Self {
            source,
            counters: Counters::default(),
            sequences: Sequences::new(source.version, gap_limit),
            templates: Templates::default(),
            waiting: WaitingSets::default(),
            sampling: Sampling::default(),
            system_init: None,
            uptime_ms: None,
            records_range: None,
            drops: Vec::new(),
            first_arrival: now,
            last_arrival: now,
        }
    }

    /// Returns the exporter and its observation domain.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the counters of the stream.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns what the sequence numbers show. They count datagrams or data records, see
    /// [`Version::counts_records`].
    pub fn sequence(&self) -> SequenceCounters {
        self.sequences.best().1
    }

    /// Returns how the exporter counts data records, if it does: the convention with the fewest
    /// irregularities.
    pub fn sequence_convention(&self) -> SequenceConvention {
        self.sequences.best().0
    }

    /// Iterates over the current templates by identifier, with the arrival of their last refresh.
    pub fn templates(&self) -> impl Iterator<Item = (&Template, Instant)> {
        self.templates.iter()
    }

    /// Returns the number of data sets that wait for their template.
    pub fn waiting_sets(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the fewest and the most flow records in a datagram that has some.
    pub fn records_per_datagram(&self) -> Option<RangeInclusive<u32>> {
        self.records_range.map(|(least, most)| least..=most)
    }

    /// Returns the arrivals of the first and the last datagram.
    pub const fn arrivals(&self) -> (Instant, Instant) {
        (self.first_arrival, self.last_arrival)
    }

    /// Receives a datagram of this stream.
    pub(super) fn receive(
        &mut self,
        header: &Header,
        datagram: &[u8],
        now: Instant,
        shared: &mut Shared,
        sink: &mut impl FnMut(&Record<'_>),
    ) -> DatagramContent {
        self.counters.datagrams += 1;
        self.counters.bytes += datagram.len() as u64;
        self.last_arrival = now;
        let is_restart = self.receive_uptime(header);

        let body = datagram.get(header.header_length..header.message_length).unwrap_or_default();
        let mut content = DatagramContent::default();
        self.counters.header_bytes += header.header_length as u64;
        content.counted_bytes = header.header_length;
        let result = match header.version {
            Version::NetflowV5 => {
                self.records_v5(header, body, &mut content, shared, sink);
                Ok(())
            }
            Version::NetflowV9 | Version::Ipfix => {
                self.sets(header, body, now, &mut content, shared, sink)
            }
            Version::SflowV5 => self.samples(header.count, body, &mut content, sink),
        };
        content.malformed = result.err();
        if content.has_new_template {
            self.recover(shared, sink);
        }
        self.finish(header, is_restart, datagram.len(), &content);
        content
    }

    /// Receives the uptime of a message. Returns whether it is the first after a restart.
    fn receive_uptime(&mut self, header: &Header) -> bool {
        let Some(now) = header.times.uptime_ms else { return false };
        let increase = now.wrapping_sub(self.uptime_ms.unwrap_or(now)) as i32;
        let is_restart =
            increase < -UPTIME_DECREASE_MS && self.sequences.is_restart(header.sequence);
        if is_restart || increase >= 0 {
            self.uptime_ms = Some(now);
        }
        if is_restart {
            // Templates are lost when the exporter restarts (RFC 3954 section 7).
            self.counters.templates_discarded += self.templates.clear() as u64;
            self.counters.discarded_sets += self.waiting.clear() as u64;
            self.sampling = Sampling::default();
            self.system_init = None;
        }
        is_restart
    }

    fn records_v5(
        &mut self,
        header: &Header,
        body: &[u8],
        content: &mut DatagramContent,
        shared: &mut Shared,
        sink: &mut impl FnMut(&Record<'_>),
    ) {
        let sampling = Sampling::of(header.sampling_interval);
        let context = Context {
            source: &self.source,
            times: &header.times,
            facts: StreamFacts::default(),
            sampling: &sampling,
        };
        let decoded = decode_flows(&shared.v5, body, &context, &mut shared.positions, sink);
        content.records = decoded.records;
        content.counted_bytes += body.len();
        self.counters.record_bytes += body.len() as u64;
        self.counters.flows += u64::from(decoded.flows);
    }

    /// RFC 3954 section 5, RFC 7011 section 3.3.
    fn sets(
        &mut self,
        header: &Header,
        body: &[u8],
        now: Instant,
        content: &mut DatagramContent,
        shared: &mut Shared,
        sink: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Malformed> {
        let (templates, options_templates) = match header.version {
            Version::NetflowV9 => (0, 1),
            _ => (2, 3),
        };
        let mut reader = Reader::new(body);
        // Less than a set header is padding, which some exporters of NetFlow v9 append.
        while reader.rest().len() >= SET_HEADER_LENGTH {
            let (id, set) = set(&mut reader).ok_or(Malformed::SetLength)?;
            self.counters.header_bytes += SET_HEADER_LENGTH as u64;
            content.counted_bytes += SET_HEADER_LENGTH;
            if id == templates || id == options_templates {
                content.counted_bytes += set.len();
                self.counters.template_bytes += set.len() as u64;
                let is_options = id == options_templates;
                let fields_max = shared.options.template_fields_max;
                let set = Definitions::new(header.version, is_options, fields_max, set);
                self.definitions(set, now, content, &shared.options)?;
            } else if id >= TEMPLATE_ID_MIN {
                content.counted_bytes += set.len();
                self.data_set(id, set, &header.times, now, content, shared, sink)?;
            } else {
                self.counters.reserved_sets += 1;
            }
        }
        Ok(())
    }

    fn definitions(
        &mut self,
        mut set: Definitions<'_>,
        now: Instant,
        content: &mut DatagramContent,
        options: &CollectorOptions,
    ) -> Result<(), Malformed> {
        while let Some(definition) = set.next() {
            let template = match definition? {
                Definition::Template(template) => template,
                Definition::Withdrawal(id) => {
                    self.counters.withdrawals += 1;
                    if options.withdrawals == Withdrawals::Apply && !self.templates.withdraw(id) {
                        self.counters.withdrawals_unknown += 1;
                    }
                    continue;
                }
            };
            self.counters.templates += 1;
            content.templates += 1;
            match self.templates.learn(template, now, options.templates_max) {
                Learned::Refreshed => self.counters.templates_refreshed += 1,
                Learned::New => content.has_new_template = true,
                Learned::Changed => self.counters.templates_changed += 1,
                Learned::Refused => self.counters.templates_refused += 1,
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the state of a datagram has no other use")]
    fn data_set(
        &mut self,
        id: u16,
        set: &[u8],
        times: &Times,
        now: Instant,
        content: &mut DatagramContent,
        shared: &mut Shared,
        sink: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Malformed> {
        let options = &shared.options;
        if self.templates.expire(id, now, options.template_lifetime) {
            self.counters.templates_expired += 1;
        }
        if self.templates.get(id).is_none() {
            self.counters.unknown_template_sets += 1;
            self.counters.unknown_template_bytes += set.len() as u64;
            content.unknown_bytes = content.unknown_bytes.saturating_add(set.len() as u32);
            let waiting = WaitingSet { template: id, times: *times, body: set.into() };
            if !self.waiting.push(waiting, options.waiting_bytes_max) {
                self.counters.discarded_sets += 1;
            }
            return Ok(());
        }
        let (records, malformed) = self.known_set(id, set, times, content, shared, sink);
        let bytes = match records {
            Records::Flows => &mut self.counters.record_bytes,
            Records::Options => &mut self.counters.options_bytes,
        };
        *bytes += set.len() as u64;
        malformed.map_or(Ok(()), Err)
    }

    /// Decodes a set whose template is known. Returns what its records are, and its fault.
    fn known_set(
        &mut self,
        id: u16,
        set: &[u8],
        times: &Times,
        content: &mut DatagramContent,
        shared: &mut Shared,
        sink: &mut impl FnMut(&Record<'_>),
    ) -> (Records, Option<Malformed>) {
        let Some(template) = self.templates.get(id) else { return (Records::Flows, None) };
        if !template.is_options() {
            let facts = StreamFacts { system_init: self.system_init, sampling_interval: 0 };
            let context = Context { source: &self.source, times, facts, sampling: &self.sampling };
            let decoded = decode_flows(template, set, &context, &mut shared.positions, sink);
            content.records += decoded.records;
            self.counters.flows += u64::from(decoded.flows);
            return (Records::Flows, decoded.malformed);
        }
        let (sampling, layout) = (&mut self.sampling, template.layout());
        let (mut records, mut refused) = (0, 0);
        let malformed = each_record(template, set, &mut shared.positions, |_, _, values| {
            records += 1;
            refused += u64::from(!sampling.learn(layout.reported_sampling(values)));
            self.system_init = layout.system_init(values).or(self.system_init);
        });
        content.options_records += records;
        self.counters.options_records += u64::from(records);
        self.counters.samplers_refused += refused;
        (Records::Options, malformed)
    }

    /// Decodes the sets whose template has arrived.
    fn recover(&mut self, shared: &mut Shared, sink: &mut impl FnMut(&Record<'_>)) {
        while let Some(set) = self.waiting.pop(&self.templates) {
            let mut content = DatagramContent::default();
            let (_, malformed) =
                self.known_set(set.template, &set.body, &set.times, &mut content, shared, sink);
            self.counters.recovered_malformed += u64::from(malformed.is_some());
            self.counters.recovered_sets += 1;
            self.counters.records += u64::from(content.records);
        }
    }

    fn samples(
        &mut self,
        count: u32,
        body: &[u8],
        content: &mut DatagramContent,
        sink: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Malformed> {
        let mut reader = Reader::new(body);
        for _ in 0..count {
            let format = reader.u32().ok_or(Malformed::TruncatedSample)?;
            let sample = opaque(&mut reader).ok_or(Malformed::TruncatedSample)?;
            self.counters.header_bytes += SAMPLE_HEADER_LENGTH as u64;
            content.counted_bytes += SAMPLE_HEADER_LENGTH;
            match format {
                format::FLOW_SAMPLE | format::FLOW_SAMPLE_EXPANDED => {
                    let is_expanded = format == format::FLOW_SAMPLE_EXPANDED;
                    let sample_bytes = sample.len();
                    let sample =
                        FlowSample::parse(sample, is_expanded).ok_or(Malformed::TruncatedSample)?;
                    self.count_drops(sample.data_source, sample.drops);
                    let Some(flow) = &sample.flow else {
                        self.counters.other_samples += 1;
                        continue;
                    };
                    content.records += 1;
                    content.counted_bytes += sample_bytes;
                    self.counters.record_bytes += sample_bytes as u64;
                    self.counters.flows += 1;
                    let content = Content::Sample(sample.header);
                    sink(&Record { source: &self.source, flow, content });
                }
                format::COUNTER_SAMPLE | format::COUNTER_SAMPLE_EXPANDED => {
                    self.counters.counter_samples += 1;
                }
                _ => self.counters.other_samples += 1,
            }
        }
        Ok(())
    }

    /// Counts the drops since the previous sample of a data source.
    fn count_drops(&mut self, data_source: (u32, u32), drops: u32) {
        if let Some((_, before)) = self.drops.iter_mut().find(|known| known.0 == data_source) {
            // A smaller number is that of an agent that started again.
            self.counters.sample_drops += u64::from(drops.saturating_sub(*before));
            *before = drops;
        } else if self.drops.len() < DATA_SOURCES_MAX {
            self.drops.push((data_source, drops));
        }
    }

    fn finish(
        &mut self,
        header: &Header,
        is_restart: bool,
        length: usize,
        content: &DatagramContent,
    ) {
        self.counters.records += u64::from(content.records);
        self.counters.other_bytes += (length - content.counted_bytes) as u64;
        if content.records > 0 {
            self.counters.record_datagrams += 1;
            let (least, most) = self.records_range.unwrap_or((u32::MAX, 0));
            self.records_range = Some((least.min(content.records), most.max(content.records)));
        }
        if content.malformed.is_some() {
            self.counters.malformed += 1;
        }
        let is_complete = content.malformed.is_none() && content.unknown_bytes == 0;
        let records = content.records + content.options_records + content.templates;
        if header.version == Version::NetflowV9 && is_complete && header.count != records {
            self.counters.count_mismatches += 1;
        }
        let unknown = match content.malformed {
            // Each record has at least one byte.
            Some(_) => length as u32,
            None => content.unknown_bytes,
        };
        let (flows, options) = (content.records, content.options_records);
        self.sequences.receive(header.sequence, Units { flows, options, unknown }, is_restart);
    }
}

/// Kinds of data records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Records {
    Flows,
    Options,
}

/// Reads a set: its identifier and body; `None` if its length is wrong.
fn set<'a>(reader: &mut Reader<'a>) -> Option<(u16, &'a [u8])> {
    let id = reader.u16()?;
    let length = usize::from(reader.u16()?);
    Some((id, reader.bytes(length.checked_sub(SET_HEADER_LENGTH)?)?))
}
