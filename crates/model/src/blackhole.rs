//! Segments and datagrams of no flow: which of them a port answers.

/// What a port leaves unanswered of the packets that belong to no flow.
///
/// RFC 9293 section 3.10.7.1 wants an answer: "An incoming segment not containing a RST causes a
/// RST to be sent in response."
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blackhole {
    /// The port answers all: segments with RST, datagrams with ICMP Port Unreachable.
    #[default]
    Nothing,
    /// The port does not answer SYNs to ports without a server.
    Syn,
    /// The port answers none.
    All,
}
