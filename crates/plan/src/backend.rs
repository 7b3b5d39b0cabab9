//! What carries frames.

/// What carries the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The best that works on the interface.
    #[default]
    Auto,
    /// Nothing: frames end in memory.
    Memory,
    /// `AF_PACKET` sockets: every interface, every kernel.
    AfPacket,
    /// `AF_XDP` sockets.
    AfXdp,
    /// The in-kernel sender.
    Xdp,
}
