//! Arbitrary bytes from a client of TRex: frames of ZeroMQ, compressed text, JSON-RPC.

/// Checks one input.
pub fn run(input: &[u8]) {
    wirestorm_serve::check_trex_message(input);
}
