//! Packets of no flow that a port does not answer.

/// Packets of no flow that a port does not answer.
///
/// RFC 9293 section 3.10.7.1 requires an answer: "An incoming segment not containing a RST causes a
/// RST to be sent in response."
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blackhole {
    /// None: the port answers segments with RST and datagrams with ICMP Port Unreachable.
    #[default]
    None,
    /// SYNs to ports without a server.
    Syn,
    /// All packets.
    All,
}
