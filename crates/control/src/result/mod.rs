//! Result of a run: one document for all kinds of runs. Tables, JSON and the Python API read it.
//!
//! The JSON form is `wirestorm.result/2`, described by `schemas/wirestorm.result.2.json`. It is an
//! envelope with sections that all kinds of runs share. Names give the units: seconds or
//! nanoseconds for times, rates per second. Lengths exclude the FCS unless the name says L1 (with
//! FCS, preamble and inter-packet gap) or L2 (with FCS).

mod connections;
mod counters;
mod device;
mod envelope;
mod flow;
mod histogram;
mod host;
mod judge;
mod latency;
mod link;
mod merge;
mod one_way;
mod port;
mod rates;
mod receive;
mod series;
mod sessions;
mod template;
mod total;
mod verdict;

use std::borrow::Cow;

pub use connections::{
    ConnectionsReport, FlowCountsReport, FlowSample, FlowSeries, SampledFlow, TimesReport,
};
pub use device::{DeviceReport, DeviceRun};
pub use envelope::{Achieved, ClockKind, Kind, RunResult, SCHEMA, Target, Times};
pub use flow::{FlowReport, MeasuredReport, TagReport, ValuesReport};
pub use histogram::{DistributionReport, HistogramReport, VariationReport};
pub use host::HostFacts;
pub use latency::LatencyReport;
pub use link::{ImpairmentReport, TunnelsReport};
pub use merge::merge_parts;
pub use one_way::{
    AsymmetryReport, ClockAlternative, ClockEvent, OneWayReport, OneWaySegment, SegmentReport,
};
pub use port::{
    DepartureReport, PortReport, RefusedReport, ReplayFlows, RetriedReport, TransmitReport,
};
pub use rates::Rates;
pub(crate) use rates::{FrameRate, layer_name};
pub use receive::{QueueReport, ReceiveReport, VerifyReport};
pub use series::SeriesReport;
pub use sessions::{Http1Report, Http2Report, TlsReport};
pub use template::{
    FAILED_FLOWS, FailureReport, GroupReport, StampedReport, TemplateReport, TransactionReport,
};
pub use total::TotalReport;
pub use verdict::{Outcome, Verdict};

/// A label such as a counter name: static in the program that writes a result, owned in a result
/// that was parsed.
pub type Label = Cow<'static, str>;
