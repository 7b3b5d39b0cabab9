//! Measures what the network between the ports does to the traffic.
//!
//! A [`Receiver`] measures each stream by the [`Signature`] in its frames. A [`Verifier`] matches
//! frames that carry no signature, such as replayed ones, by their content.
//!
//! ```text
//! port -> Receiver -- find the signature --> StreamRecord -> Sequence      loss, duplicates, order
//!             |                                          -> DelayRecord   delay, PDV, IPDV, jitter
//!             +-- unknown, foreign                       -> PayloadCheck  corruption
//!                                                        -> Series        time series
//!                                      --> TagRecord     counters by VLAN tag (optional)
//!                                      --> ValueRecord   counters by bits of frames (optional)
//! ```
//!
//! Nothing here allocates per frame. Only histograms grow, a few times for each stream. No frame
//! can cause a panic.
//!
//! With many streams, cache misses dominate. The state that every frame needs is stored together,
//! histograms are no wider than their values, and the window is used only by frames out of order.

mod delay;
mod distribution;
mod receiver;
mod segments;
mod sequence;
mod series;
mod signature;
mod stream;
mod summary;
mod tags;
mod tally;
mod values;
mod verify;

pub use delay::{DelayRecord, Jitter, PacketDelayVariation};
pub use distribution::Distribution;
pub use receiver::Receiver;
pub use segments::{Segment, SegmentOptions};
pub use sequence::{Arrived, N_REORDERING_MAX, Sequence, SequenceCounters};
pub use series::{Interval, Series};
pub use signature::{FoundSignature, Signature, find};
pub use stream::{
    GapTimes, MeasureOptions, MeasuredStream, OrderMeasurements, PayloadCheck, StreamRecord,
    Tallies,
};
pub use summary::StreamSummary;
pub use tags::{TAG_RECORDS_MAX, TagRecord, VlanTags};
pub use tally::Tally;
pub use values::{ValueCounter, ValueRecord};
pub use verify::{Verifier, VerifyCounters, frame_hash};
