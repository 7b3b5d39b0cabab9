//! Messages between the machines of a test.
//!
//! [`Bus`] is a blocking trait: requests, messages, key-value buckets with a time to live, logs,
//! and objects. Two back ends have the same semantics; `testing::contract` is their common test.
//!
//! | back end | for |
//! | --- | --- |
//! | [`local::LocalBus`] | one process, without a server |
//! | [`nats::NatsBus`] | several machines, over a NATS server |
//!
//! The bus knows nothing of runs. [`subject`] has the names of all subjects, and [`cluster`] the
//! keys, certificates and permissions of a server.
//!
//! # Delivery
//!
//! | what | guarantee |
//! | --- | --- |
//! | [`Bus::publish`], [`Bus::request`] | at most once; the bus never repeats one |
//! | [`Bus::append`] | exactly once, if the caller repeats it with the same ID until it succeeds |
//! | [`Bus::create`], [`Bus::update`], [`Bus::delete`] | compare and set; a repeated one conflicts |
//! | [`Bus::put_object`] | may be repeated |
//!
//! A request that timed out may still arrive later, for example after a link was down. So the
//! receiver of a command has to check that it is current: by a fencing token, or by an ID.
#![forbid(unsafe_code)]

mod bus;
pub mod clock;
pub mod cluster;

mod error;
pub mod local;
pub mod nats;
mod queue;
pub mod subject;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use bus::{
    Appended, BucketConfig, Bus, ConnectionState, Entry, LogConfig, LogEntry, Message,
    ObjectsConfig, Revision, Server, StateChanges, Subscription,
};
pub use error::{BusError, RecvError};
pub use nats::advisories::Advisory;
pub use watch::{Change, Watch};

/// Bytes of a payload.
pub use bytes::Bytes;
