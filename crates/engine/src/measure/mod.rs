//! What the device between the ports did to the traffic.
//!
//! Frames that carry a [`Signature`] are measured for each stream by a [`Receiver`]; those that
//! cannot, such as replayed ones, are matched by their content by a [`Verifier`].
//!
//! ```text
//! port -> Receiver -- find the signature --> StreamRecord -> Sequence       lost, repeated, reordered
//!             |                                          -> DelayRecord    delay, PDV, IPDV, jitter
//!             +-- unknown, foreign                       -> PayloadCheck   corrupt
//!                                                        -> Series         all of it over time
//!                                      --> TagRecord     by VLAN tags, where that is asked for
//! ```
//!
//! Nothing here allocates for a frame but histograms that have to reach further, a few times for
//! each stream; and no frame can make it panic.
//!
//! With many streams the memory is what takes time. What every frame of a stream needs is kept
//! together, its histograms are no wider than its values, and its window is for frames that do
//! not arrive in order.

mod delay;
mod distribution;
mod receiver;
mod sequence;
mod series;
mod signature;
mod stream;
mod summary;
mod tags;
mod tally;
mod verify;

pub use delay::{DelayRecord, Jitter, PacketDelayVariation};
pub use distribution::Distribution;
pub use receiver::Receiver;
pub use sequence::{Arrived, N_REORDERING_MAX, Sequence, SequenceCounters};
pub use series::{Interval, Series};
pub use signature::{Found, Signature, find};
pub use stream::{MeasureOptions, MeasuredStream, Ordered, PayloadCheck, StreamRecord, Tallies};
pub use summary::StreamSummary;
pub use tags::{TAG_RECORDS_MAX, TagRecord, VlanTags};
pub use tally::Tally;
pub use verify::{Verifier, VerifyCounters, frame_hash};
