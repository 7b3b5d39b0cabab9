//! Decoding of the records of a data set.

use alloc::vec::Vec;

use crate::header::Times;
use crate::layout::{StreamFacts, Values};
use crate::malformed::Malformed;
use crate::record::{Content, Record, Source};
use crate::template::{Position, Template};

use super::sampling::Sampling;

/// What the records of a set depend on beside their template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) source: &'a Source,
    pub(super) times: &'a Times,
    pub(super) facts: StreamFacts,
    pub(super) sampling: &'a Sampling,
}

/// What a set contained.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoded {
    pub(super) records: u32,
    pub(super) flows: u32,
    pub(super) malformed: Option<Malformed>,
}

/// Decodes the flow records of a set and passes them to `sink`.
pub(super) fn decode_flows(
    template: &Template,
    body: &[u8],
    context: &Context<'_>,
    positions: &mut Vec<Position>,
    sink: &mut impl FnMut(&Record<'_>),
) -> Decoded {
    let mut decoded = Decoded::default();
    let layout = template.layout();
    let mut facts = context.facts;
    facts.sampling_interval = context.sampling.interval(None);
    let malformed = each_record(template, body, positions, |bytes, positions, values| {
        decoded.records += 1;
        decoded.flows += 1;
        if let Some(id) = layout.reported_sampling(values).sampler {
            facts.sampling_interval = context.sampling.interval(Some(id));
        }
        let flow = layout.flow(values, context.times, &facts);
        let content = Content::Fields { template, bytes, positions };
        sink(&Record { source: context.source, flow: &flow, content });
        if layout.is_biflow()
            && let Some(reverse) = layout.reverse(&flow, values, context.times, &facts)
        {
            decoded.flows += 1;
            sink(&Record { source: context.source, flow: &reverse, content });
        }
    });
    Decoded { malformed, ..decoded }
}

/// Calls `visit` with the bytes, positions and numbers of each record of a set. Returns the fault at
/// which it stopped.
#[inline(always)]
pub(super) fn each_record(
    template: &Template,
    body: &[u8],
    positions: &mut Vec<Position>,
    mut visit: impl FnMut(&[u8], &[Position], &Values),
) -> Option<Malformed> {
    let layout = template.layout();
    let length_min = usize::from(template.record_length_min());
    let mut values = Values::ZERO;
    let mut rest = body;
    // What is shorter than a record is padding (RFC 7011 section 3.3.1).
    while rest.len() >= length_min {
        let length = match template.is_variable() {
            false => {
                layout.load(rest, &mut values);
                length_min
            }
            true => {
                let Some(length) = template.locate(rest, positions) else {
                    return Some(Malformed::TruncatedField);
                };
                layout.load_at(rest, positions, &mut values);
                length
            }
        };
        let (record, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        visit(record, if template.is_variable() { positions } else { &[] }, &values);
        rest = behind;
    }
    None
}
