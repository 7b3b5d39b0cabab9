//! Trials of emulated clients and servers: connections, transactions and their times.
//!
//! The phases are those of RFC 9411 section 4.3.4:
//!
//! ```text
//! load        ________________
//!            /                \       measured: sustain
//! ___init___/ramp up  sustain  \_ramp down, collection
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::distribution::Distribution;
use crate::seconds;

/// What clients and servers do in a trial. The load of the step of the offer counts in `unit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConnectionsInput {
    /// Unit of the load.
    pub unit: LoadUnit,
    /// Kinds of connections that clients start at the same time.
    pub classes: Vec<TrafficClass>,
    /// Time before the first connection in seconds.
    #[serde(rename = "init_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub init: Duration,
    /// Time in seconds in which the load grows linearly from zero.
    #[serde(rename = "ramp_up_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub ramp_up: Duration,
    /// Time in seconds of the constant load, which is measured.
    #[serde(rename = "sustain_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub sustain: Duration,
    /// Time in seconds between a response and the next request of a connection, and after the last
    /// response.
    #[serde(rename = "think_time_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub think_time: Duration,
}

/// Unit of a load of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    /// New connections per second.
    ConnectionsPerSecond,
    /// Open connections.
    ConcurrentConnections,
    /// Bits per second of layer 2 in both directions. Each class starts connections at the rate
    /// that follows from its `bits_per_connection`.
    BitsPerSecond,
}

/// Connections of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrafficClass {
    /// Name in results.
    pub name: String,
    /// TLS settings; null for HTTP without TLS.
    pub tls: Option<TlsSettings>,
    /// Sizes in bytes of the objects that a connection requests, one after the other.
    pub objects: Vec<u32>,
    /// Times that a connection requests all of them.
    pub rounds: u32,
    /// Share of the load, 0 to 1. The shares of all classes sum to 1.
    pub share: f64,
    /// Bits of layer 2 of a connection in both directions.
    pub bits_per_connection: f64,
}

/// TLS settings. Sessions are never resumed: RFC 9411 section 4.3.1.4 requires a full handshake
/// for each connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TlsSettings {
    /// Version: `1.2` or `1.3`.
    pub version: String,
    /// Cipher suite by its IANA name.
    pub cipher: String,
}

/// What clients and servers counted in the sustain phase of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConnectionsOutput {
    /// Length of the sustain phase in seconds.
    pub sustain_s: f64,
    /// Connections that clients initiated.
    pub attempted: u64,
    /// Connections established.
    pub established: u64,
    /// Connections that failed, from the start of the sustain phase to the end of the trial. Each
    /// failed a transaction.
    pub failed: u64,
    /// Connections that were terminated by a RST that neither side sent, in the same time.
    pub resets: u64,
    /// Connections that the clients did not start in time: the tester was too slow.
    pub late: u64,
    /// Connections that failed before the sustain phase.
    pub failed_before: u64,
    /// Transactions started.
    pub transactions_attempted: u64,
    /// Transactions completed with status 200 and all data.
    pub transactions: u64,
    /// TLS handshakes completed.
    pub tls_handshakes: u64,
    /// Bytes of frames with FCS that both sides received.
    pub layer_2_bytes: u64,
    /// Bytes of TCP payload that both sides received.
    pub payload_bytes: u64,
    /// Counts in equal intervals of the sustain phase.
    pub series: ConnectionsSeries,
    /// Time from the SYN to the first packet of application data.
    pub time_to_first_byte: Distribution,
    /// Time from the SYN to the last packet of application data of the first transaction.
    pub time_to_last_byte: Distribution,
    /// Time from the request to the last packet of application data of later transactions.
    pub response_time: Distribution,
}

/// Counts in equal intervals of the sustain phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConnectionsSeries {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Open connections at the end of the interval, without TIME-WAIT.
    pub concurrent: Vec<u64>,
    /// Bytes of TCP payload that both sides received.
    pub payload_bytes: Vec<u64>,
    /// Connections established, per second. Its intervals are about as long as the others, but have
    /// other ends.
    pub established_per_s: Vec<f64>,
    /// Transactions completed, per second, in the same intervals.
    pub transactions_per_s: Vec<f64>,
}

impl LoadUnit {
    /// Returns the unit for a value in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectionsPerSecond => "connections/s",
            Self::ConcurrentConnections => "connections",
            Self::BitsPerSecond => "bit/s",
        }
    }
}

impl TrafficClass {
    /// Returns the number of transactions of a connection.
    pub fn transactions(&self) -> u64 {
        self.objects.len() as u64 * u64::from(self.rounds)
    }

    /// Returns the bytes of all objects of a connection.
    pub fn object_bytes(&self) -> u64 {
        self.objects.iter().map(|&size| u64::from(size)).sum::<u64>() * u64::from(self.rounds)
    }
}

impl ConnectionsInput {
    /// Returns the rate at which a class starts connections, per second. For concurrent
    /// connections: the number of connections.
    pub fn class_load(&self, class: &TrafficClass, load: u64) -> f64 {
        let of_class = load as f64 * class.share;
        match self.unit {
            LoadUnit::ConnectionsPerSecond | LoadUnit::ConcurrentConnections => of_class,
            LoadUnit::BitsPerSecond => of_class / class.bits_per_connection.max(1.0),
        }
    }

    /// Returns the time that the trial takes, with all phases. Connections that are held end as they
    /// began, so the load ramps down as long as it ramped up.
    pub fn duration(&self) -> Duration {
        let loaded = self.init.saturating_add(self.ramp_up).saturating_add(self.sustain);
        match self.unit {
            LoadUnit::ConcurrentConnections => loaded.saturating_add(self.ramp_up),
            LoadUnit::ConnectionsPerSecond | LoadUnit::BitsPerSecond => loaded,
        }
    }
}

impl ConnectionsOutput {
    /// Returns the load that was reached, in a unit.
    pub fn reached(&self, unit: LoadUnit) -> f64 {
        let seconds = self.sustain_s.max(1e-9);
        match unit {
            LoadUnit::ConnectionsPerSecond => self.established as f64 / seconds,
            LoadUnit::ConcurrentConnections => {
                let counts = &self.series.concurrent;
                counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64
            }
            LoadUnit::BitsPerSecond => self.layer_2_bytes as f64 * 8.0 / seconds,
        }
    }
}
