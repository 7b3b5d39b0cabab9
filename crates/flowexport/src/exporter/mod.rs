//! Exporters: from flow records to datagrams, for tests of collectors.

mod fleet;
mod generator;
mod sample;
mod template;
mod writer;

use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

pub use fleet::{Fleet, FleetDatagram, FleetOptions};
pub use generator::{Family, FlowGenerator, FlowGeneratorOptions};
pub use template::ExportTemplate;

use crate::element::{self, FieldId};
use crate::header::{
    IPFIX_HEADER_LENGTH, SET_HEADER_LENGTH, V5_HEADER_LENGTH, V5_RECORD_LENGTH, V5_RECORDS_MAX,
    V9_HEADER_LENGTH, Version,
};
use crate::record::FlowRecord;
use crate::template::VARIABLE_LENGTH;
use sample::{SAMPLE_LENGTH_MAX, encode_sample};
use template::uptime_ms;
use writer::Writer;

/// Largest payload of a UDP datagram over IPv4.
const UDP_PAYLOAD_MAX: usize = 65_507;
/// Flows that are left out one after another before a datagram ends; the flows may be endless.
const UNSUPPORTED_MAX: u32 = 1_000;
/// Identifier of the options template that reports the sampling interval.
const SAMPLING_TEMPLATE: u16 = 65_535;

/// Settings of an exporter: one export stream.
#[derive(Clone, Debug)]
pub struct ExporterOptions {
    /// Protocol. Default: IPFIX.
    pub version: Version,
    /// Source identifier (NetFlow v9), observation domain (IPFIX), engine type times 256 plus engine
    /// number (NetFlow v5, lower 16 bits), or sub-agent (sFlow). Default: 1.
    pub domain: u32,
    /// Address of the agent in datagrams of sFlow. Default: 192.0.2.1.
    pub agent: IpAddr,
    /// Time of the boot since 1970, from which the uptime counts. Default: 0.
    pub boot: Instant,
    /// Longest datagram in bytes, without UDP and IP. Default: 1452, for an MTU of 1500 over IPv6.
    pub datagram_length_max: usize,
    /// Most flow records in a datagram. NetFlow v5 has at most 30. Default: as many as fit.
    pub records_per_datagram_max: u32,
    /// First sequence number. Default: 0.
    pub first_sequence: u32,
    /// Datagrams after which templates are sent again; 0 for never. Default: 20.
    pub template_refresh_datagrams: u32,
    /// Time after which templates are sent again. Default: 60 s.
    pub template_refresh_interval: Duration,
    /// Sampling interval that is reported: in the header of NetFlow v5, in the samples of sFlow, and
    /// in options data of NetFlow v9 and IPFIX; 0 for none. Default: 0.
    pub sampling_interval: u32,
    /// Templates of NetFlow v9 and IPFIX: the first one of a flow's IP version is used. Empty means
    /// [`ExportTemplate::standard`] for both IP versions. Default: empty.
    pub templates: Vec<ExportTemplate>,
}

impl Default for ExporterOptions {
    fn default() -> Self {
        Self {
            version: Version::Ipfix,
            domain: 1,
            agent: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            boot: Instant::ZERO,
            datagram_length_max: 1_452,
            records_per_datagram_max: u32::MAX,
            first_sequence: 0,
            template_refresh_datagrams: 20,
            template_refresh_interval: Duration::from_secs(60),
            sampling_interval: 0,
            templates: Vec::new(),
        }
    }
}

/// Why an exporter cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExporterError {
    /// A record, or all templates, do not fit into a datagram.
    #[error("datagrams have at most {found} bytes, but a record or the templates need {needed}")]
    DatagramTooShort {
        /// Limit of the options.
        found: usize,
        /// Least sufficient limit.
        needed: usize,
    },
    /// The limit is more than UDP can carry.
    #[error("datagrams of up to {found} bytes, but UDP carries at most 65507")]
    DatagramTooLong {
        /// Limit of the options.
        found: usize,
    },
    /// NetFlow v9 has no fields of variable length.
    #[error("template {id} has a field of variable length, which NetFlow v9 does not have")]
    VariableLength {
        /// Identifier of the template.
        id: u16,
    },
    /// Two templates have the same identifier, or the identifier of the sampling options.
    #[error("two templates have the identifier {id}")]
    RepeatedTemplate {
        /// The identifier.
        id: u16,
    },
    /// Datagrams would have no record.
    #[error("records_per_datagram_max is 0, expected at least 1")]
    NoRecords,
}

/// State of an exporter.
#[derive(Clone, Debug)]
pub struct Exporter {
    options: ExporterOptions,
    sequence: u32,
    /// Datagrams since the templates were sent, and when that was; `None` if they are due.
    templates_sent: Option<(u32, Instant)>,
    /// A flow that did not fit into the previous datagram.
    pending: Option<FlowRecord>,
    v5: ExportTemplate,
    /// Samples of sFlow that were sent.
    samples: u32,
    counters: ExporterCounters,
}

/// Counters of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExporterCounters {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of the datagrams, without UDP and IP.
    pub bytes: u64,
    /// Flow records, or flow samples.
    pub records: u64,
    /// Records of templates and options templates.
    pub templates: u64,
    /// Records of options data.
    pub options_records: u64,
    /// Flows that the version or the templates cannot express, such as IPv6 in NetFlow v5.
    pub unsupported_flows: u64,
}

/// A datagram that was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Bytes in the buffer.
    pub length: usize,
    /// Flow records, or flow samples.
    pub records: u32,
    /// Sequence number of the header.
    pub sequence: u32,
    /// Whether it has templates.
    pub has_templates: bool,
}

/// Records of a message so far, and its limit.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    flows_max: u32,
    flows: u32,
    templates: u32,
    options: u32,
}

impl Exporter {
    /// Creates an exporter whose first datagram has the templates.
    ///
    /// # Errors
    /// If a record and the templates do not fit into a datagram, or if the templates are not those of
    /// the version.
    pub fn new(mut options: ExporterOptions) -> Result<Self, ExporterError> {
        if options.templates.is_empty() {
            options.templates = [false, true]
                .map(|is_ipv6| ExportTemplate::standard(options.version, is_ipv6))
                .into();
        }
        check(&options)?;
        Ok(Self {
            sequence: options.first_sequence,
            options,
            templates_sent: None,
            pending: None,
            v5: ExportTemplate::v5(),
            samples: 0,
            counters: ExporterCounters::default(),
        })
    }

    /// Encodes the next datagram at `now`, since 1970, and takes its flows from `flows`.
    ///
    /// Returns `None` if there is no flow, if the next 1000 flows are unsupported, or if `buffer` is
    /// shorter than [`ExporterOptions::datagram_length_max`].
    pub fn encode(
        &mut self,
        now: Instant,
        flows: &mut impl Iterator<Item = FlowRecord>,
        buffer: &mut [u8],
    ) -> Option<Encoded> {
        self.encode_at_most(u32::MAX, now, flows, buffer)
    }

    /// Same as [`Self::encode`], with at most `records` flow records. Returns `None` if it is 0.
    pub fn encode_at_most(
        &mut self,
        records: u32,
        now: Instant,
        flows: &mut impl Iterator<Item = FlowRecord>,
        buffer: &mut [u8],
    ) -> Option<Encoded> {
        if records == 0 {
            return None;
        }
        let length_max = self.options.datagram_length_max;
        if buffer.len() < length_max {
            return None;
        }
        if self.pending.is_none() {
            self.pending = self.next_flow(flows);
        }
        self.pending?;
        let mut writer = Writer::new(buffer, length_max);
        let flows_max = records.min(self.options.records_per_datagram_max);
        let mut counts = Counts { flows_max, ..Counts::default() };
        match self.options.version {
            Version::NetflowV5 => self.records_v5(now, flows, &mut writer, &mut counts),
            Version::NetflowV9 | Version::Ipfix => {
                self.message(now, flows, &mut writer, &mut counts);
            }
            Version::SflowV5 => self.samples(now, flows, &mut writer, &mut counts),
        }
        Some(self.finish(counts, writer.length()))
    }

    /// Encodes a withdrawal of all templates (RFC 7011 section 8.1), and sends the templates again
    /// with the next datagram. Over UDP an exporter must not send it (RFC 7011 section 8.4), but a
    /// collector has to cope.
    ///
    /// Returns `None` for other versions than IPFIX and for a short buffer.
    pub fn encode_withdrawal(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Encoded> {
        /// Identifiers of template sets and options template sets.
        const SETS: [u16; 2] = [2, 3];
        const LENGTH: usize = IPFIX_HEADER_LENGTH + 2 * (SET_HEADER_LENGTH + 4);
        if self.options.version != Version::Ipfix || buffer.len() < LENGTH {
            return None;
        }
        let mut writer = Writer::new(buffer, LENGTH);
        self.ipfix_header(now, &mut writer);
        for id in SETS {
            for number in [id, SET_HEADER_LENGTH as u16 + 4, id, 0] {
                writer.u16(number);
            }
        }
        writer.set_u16(2, LENGTH);
        let encoded = self.finish(Counts::default(), LENGTH);
        self.templates_sent = None;
        Some(encoded)
    }

    /// Restarts at `now`: the uptime is zero, the sequence numbers start again, and the next datagram
    /// has the templates.
    pub const fn restart(&mut self, now: Instant) {
        self.options.boot = now;
        self.sequence = self.options.first_sequence;
        self.templates_sent = None;
        self.samples = 0;
    }

    /// Replaces the templates; the next datagram has the new ones.
    ///
    /// # Errors
    /// Same as [`Self::new`]; the exporter then keeps its templates.
    pub fn set_templates(&mut self, templates: Vec<ExportTemplate>) -> Result<(), ExporterError> {
        let options = ExporterOptions { templates, ..self.options.clone() };
        check(&options)?;
        self.options = options;
        self.templates_sent = None;
        Ok(())
    }

    /// Returns the settings, with the current templates and boot.
    pub const fn options(&self) -> &ExporterOptions {
        &self.options
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &ExporterCounters {
        &self.counters
    }

    fn next_flow(&mut self, flows: &mut impl Iterator<Item = FlowRecord>) -> Option<FlowRecord> {
        for _ in 0..UNSUPPORTED_MAX {
            let flow = flows.next()?;
            let is_ipv6 = flow.key.version() == 6;
            let is_supported = match self.options.version {
                Version::NetflowV5 => !is_ipv6,
                Version::SflowV5 => true,
                _ => self.template(&flow).is_some(),
            };
            if is_supported {
                return Some(flow);
            }
            self.counters.unsupported_flows += 1;
        }
        None
    }

    fn template(&self, flow: &FlowRecord) -> Option<usize> {
        let is_ipv6 = flow.key.version() == 6;
        self.options.templates.iter().position(|template| template.is_ipv6() == is_ipv6)
    }

    fn records_v5(
        &mut self,
        now: Instant,
        flows: &mut impl Iterator<Item = FlowRecord>,
        writer: &mut Writer<'_>,
        counts: &mut Counts,
    ) {
        const COUNT_AT: usize = 2;
        let boot = self.options.boot;
        writer.u16(5);
        writer.u16(0);
        writer.u32(uptime_ms(Some(now), boot));
        writer.u32(seconds(now));
        writer.u32((now.as_nanos() % NANOSECONDS_PER_SECOND) as u32);
        writer.u32(self.sequence);
        writer.u16(self.options.domain as u16);
        // Mode 1 is deterministic sampling.
        let interval = self.options.sampling_interval.min(0x3fff) as u16;
        writer.u16(if interval > 1 { 1 << 14 | interval } else { interval });
        let records_max = counts.flows_max.min(V5_RECORDS_MAX.into());
        while let Some(flow) = self.pending
            && counts.flows < records_max
            && writer.room() >= V5_RECORD_LENGTH
        {
            self.v5.encode(&flow, boot, writer);
            counts.flows += 1;
            self.pending = self.next_flow(flows);
        }
        writer.set_u16(COUNT_AT, counts.flows as usize);
    }

    /// A message of NetFlow v9 or IPFIX.
    fn message(
        &mut self,
        now: Instant,
        flows: &mut impl Iterator<Item = FlowRecord>,
        writer: &mut Writer<'_>,
        counts: &mut Counts,
    ) {
        const COUNT_OR_LENGTH_AT: usize = 2;
        let boot = self.options.boot;
        let is_ipfix = self.options.version == Version::Ipfix;
        if is_ipfix {
            self.ipfix_header(now, writer);
        } else {
            writer.u16(9);
            writer.u16(0);
            writer.u32(uptime_ms(Some(now), boot));
            writer.u32(seconds(now));
            writer.u32(self.sequence);
            writer.u32(self.options.domain);
        }
        if self.are_templates_due(now) {
            self.template_sets(writer, counts);
            self.templates_sent = Some((0, now));
        }
        let records_max = counts.flows_max;
        let mut is_full = false;
        while let Some(flow) = self.pending
            && counts.flows < records_max
            && !is_full
        {
            let Some(number) = self.template(&flow) else { break };
            let start = writer.length();
            // The padding of the set needs up to 3 bytes.
            let needed = |template: &ExportTemplate| template.record_length_max() + 3;
            let Some(template) = self.options.templates.get(number) else { break };
            if writer.room() < SET_HEADER_LENGTH + needed(template) {
                break;
            }
            writer.u16(template.id());
            writer.u16(0);
            while let Some(flow) = self.pending
                && counts.flows < records_max
                && self.template(&flow) == Some(number)
            {
                let Some(template) = self.options.templates.get(number) else { break };
                if writer.room() < needed(template) {
                    is_full = true;
                    break;
                }
                template.encode(&flow, boot, writer);
                counts.flows += 1;
                self.pending = self.next_flow(flows);
            }
            writer.pad(start);
            writer.set_u16(start + 2, writer.length() - start);
        }
        let records = counts.flows + counts.templates + counts.options;
        writer
            .set_u16(COUNT_OR_LENGTH_AT, if is_ipfix { writer.length() } else { records as usize });
    }

    fn ipfix_header(&self, now: Instant, writer: &mut Writer<'_>) {
        writer.u16(10);
        writer.u16(0);
        writer.u32(seconds(now));
        writer.u32(self.sequence);
        writer.u32(self.options.domain);
    }

    fn are_templates_due(&self, now: Instant) -> bool {
        let ExporterOptions { template_refresh_datagrams, template_refresh_interval, .. } =
            self.options;
        self.templates_sent.is_none_or(|(datagrams, sent)| {
            let is_count =
                template_refresh_datagrams > 0 && datagrams >= template_refresh_datagrams;
            is_count || now.saturating_since(sent) >= template_refresh_interval
        })
    }

    /// Writes all templates, and the sampling interval as options data.
    fn template_sets(&self, writer: &mut Writer<'_>, counts: &mut Counts) {
        let is_ipfix = self.options.version == Version::Ipfix;
        let start = writer.length();
        writer.u16(if is_ipfix { 2 } else { 0 });
        writer.u16(0);
        for template in &self.options.templates {
            writer.u16(template.id());
            writer.u16(template.fields().len() as u16);
            for field in template.fields() {
                field_specifier(field.id, field.length, is_ipfix, writer);
            }
            counts.templates += 1;
        }
        writer.set_u16(start + 2, writer.length() - start);
        let interval = self.options.sampling_interval;
        if interval == 0 {
            return;
        }
        let start = writer.length();
        if is_ipfix {
            writer.u16(3);
            writer.u16(0);
            // Three fields, one of them the scope.
            for number in [SAMPLING_TEMPLATE, 3, 1] {
                writer.u16(number);
            }
            field_specifier(element::OBSERVATION_DOMAIN, 4, true, writer);
            field_specifier(element::SAMPLING_PACKET_INTERVAL, 4, true, writer);
            field_specifier(element::SAMPLING_PACKET_SPACE, 4, true, writer);
        } else {
            writer.u16(1);
            writer.u16(0);
            // Bytes of the scope fields and of the option fields; the scope is the system.
            for number in [SAMPLING_TEMPLATE, 4, 8, 1, 4] {
                writer.u16(number);
            }
            field_specifier(element::SAMPLING_INTERVAL, 4, false, writer);
            field_specifier(element::SAMPLING_ALGORITHM, 1, false, writer);
        }
        writer.pad(start);
        writer.set_u16(start + 2, writer.length() - start);
        let start = writer.length();
        writer.u16(SAMPLING_TEMPLATE);
        writer.u16(0);
        writer.u32(self.options.domain);
        match is_ipfix {
            true => {
                writer.u32(1);
                writer.u32(interval - 1);
            }
            false => {
                writer.u32(interval);
                // 1 is deterministic sampling.
                writer.number(1, 1);
            }
        }
        writer.pad(start);
        writer.set_u16(start + 2, writer.length() - start);
        counts.templates += 1;
        counts.options += 1;
    }

    fn samples(
        &mut self,
        now: Instant,
        flows: &mut impl Iterator<Item = FlowRecord>,
        writer: &mut Writer<'_>,
        counts: &mut Counts,
    ) {
        writer.u32(5);
        match self.options.agent {
            IpAddr::V4(address) => {
                writer.u32(1);
                writer.bytes(&address.octets());
            }
            IpAddr::V6(address) => {
                writer.u32(2);
                writer.bytes(&address.octets());
            }
        }
        writer.u32(self.options.domain);
        writer.u32(self.sequence);
        writer.u32(uptime_ms(Some(now), self.options.boot));
        let count_at = writer.length();
        writer.u32(0);
        let interval = self.options.sampling_interval.max(1);
        while let Some(flow) = self.pending
            && counts.flows < counts.flows_max
            && writer.room() >= SAMPLE_LENGTH_MAX
        {
            self.samples = self.samples.wrapping_add(1);
            encode_sample(&flow, self.samples, interval, writer);
            counts.flows += 1;
            self.pending = self.next_flow(flows);
        }
        writer.set_u32(count_at, counts.flows);
    }

    fn finish(&mut self, counts: Counts, length: usize) -> Encoded {
        let sequence = self.sequence;
        let units = match self.options.version.counts_records() {
            true => counts.flows + counts.options,
            false => 1,
        };
        self.sequence = sequence.wrapping_add(units);
        if let Some((datagrams, _)) = &mut self.templates_sent {
            *datagrams = datagrams.saturating_add(1);
        }
        self.counters.datagrams += 1;
        self.counters.bytes += length as u64;
        self.counters.records += u64::from(counts.flows);
        self.counters.templates += u64::from(counts.templates);
        self.counters.options_records += u64::from(counts.options);
        Encoded { length, records: counts.flows, sequence, has_templates: counts.templates > 0 }
    }
}

/// Writes a field specifier (RFC 7011 section 3.2).
fn field_specifier(id: FieldId, length: u16, is_ipfix: bool, writer: &mut Writer<'_>) {
    let has_enterprise = is_ipfix && id.enterprise != 0;
    writer.u16(if has_enterprise { id.number | 0x8000 } else { id.number });
    writer.u16(length);
    if has_enterprise {
        writer.u32(id.enterprise);
    }
}

fn seconds(now: Instant) -> u32 {
    (now.as_nanos() / NANOSECONDS_PER_SECOND) as u32
}

fn check(options: &ExporterOptions) -> Result<(), ExporterError> {
    let found = options.datagram_length_max;
    if found > UDP_PAYLOAD_MAX {
        return Err(ExporterError::DatagramTooLong { found });
    }
    if options.records_per_datagram_max == 0 {
        return Err(ExporterError::NoRecords);
    }
    let needed = match options.version {
        Version::NetflowV5 => V5_HEADER_LENGTH + V5_RECORD_LENGTH,
        Version::SflowV5 => 40 + SAMPLE_LENGTH_MAX,
        Version::NetflowV9 => V9_HEADER_LENGTH + check_templates(options)?,
        Version::Ipfix => IPFIX_HEADER_LENGTH + check_templates(options)?,
    };
    match needed > found {
        true => Err(ExporterError::DatagramTooShort { found, needed }),
        false => Ok(()),
    }
}

/// Returns the bytes of all templates with options, and of a data set with one record.
fn check_templates(options: &ExporterOptions) -> Result<usize, ExporterError> {
    const SAMPLING_LENGTH: usize = 48;
    let mut ids = vec![SAMPLING_TEMPLATE];
    let (mut templates, mut record_max) = (SET_HEADER_LENGTH + SAMPLING_LENGTH, 0);
    for template in &options.templates {
        let id = template.id();
        let is_variable = template.fields().iter().any(|field| field.length == VARIABLE_LENGTH);
        if is_variable && options.version == Version::NetflowV9 {
            return Err(ExporterError::VariableLength { id });
        }
        if ids.contains(&id) {
            return Err(ExporterError::RepeatedTemplate { id });
        }
        ids.push(id);
        templates += 4 + template.fields().len() * 8;
        record_max = record_max.max(template.record_length_max());
    }
    Ok(templates + SET_HEADER_LENGTH + record_max + 3)
}
