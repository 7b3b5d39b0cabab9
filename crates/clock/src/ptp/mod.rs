//! The Precision Time Protocol, IEEE 1588-2019: one master, and a slave that measures.
//!
//! ```text
//! master  t1 ──Sync──┐ Follow_Up(t1)     ┌──> t4 ──Delay_Resp(t4)──>
//! slave              └──> t2        t3 ──┘ Delay_Req
//! ```
//!
//! [`Slave`](slave::Slave) and [`Master`](master::Master) are state machines without sockets and
//! clocks: the caller passes received messages, time stamps and the time, then takes what they want
//! to send from `poll_output`, and calls `handle_timer` at `next_timer`. A slave sets no clock. It
//! returns each pair of time stamps as an [`Exchange`](crate::exchange::Exchange).

pub mod address;
pub mod identity;
pub mod interval;
pub mod master;
pub mod message;
pub mod output;
pub mod slave;
pub mod time;

#[cfg(test)]
mod trace;

/// UDP port of event messages, which have time stamps (annex C).
pub const EVENT_PORT: u16 = 319;
/// UDP port of general messages (annex C).
pub const GENERAL_PORT: u16 = 320;
/// EtherType of PTP over Ethernet (annex E).
pub const ETHER_TYPE: u16 = 0x88f7;
