//! Order of the clients, and pairing of clients with servers.

/// Order in which the clients of a template connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientOrder {
    /// Round robin.
    #[default]
    RoundRobin,
    /// Uniformly random, for each flow.
    Random,
}

/// Pairing of clients with servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// Round robin.
    #[default]
    RoundRobin,
    /// Uniformly random, for each flow.
    Random,
    /// Client `k` connects to server `k` modulo the number of servers.
    Fixed,
}
