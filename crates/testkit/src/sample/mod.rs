//! Synthetic captures of network traffic, reproducible from a seed.
//!
//! [`Traffic`] generates packets of thousands of interleaved conversations. It covers HTTP and
//! HTTPS over TCP from handshake to FIN, DNS, QUIC, NTP, voice, echo requests and ARP. They run
//! over IPv4 and IPv6, partly in VLANs, with correct lengths and checksums. [`FixedFrames`]
//! generates frames of one length for benchmarks. Both are iterators that keep only active
//! conversations, so [`write()`] makes files of any size.

mod dialogue;
mod fixed;
mod frame;
mod random;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use dialogue::{Dialogue, Kind};
pub use fixed::{FixedFrames, FixedOptions};
use frame::{Conversation, Host, nth_ipv4, nth_ipv6};
use random::Random;

use crate::pcap::{Packet, Resolution, Writer};

/// Default start time of a capture: 14 November 2023, 22:13:20 UTC.
const START: u64 = 1_700_000_000_000_000_000;

/// First client port; client ports end at 65535. All server ports are lower.
const CLIENT_PORT_FIRST: u64 = 10_000;
const CLIENT_PORTS: u64 = 65_536 - CLIENT_PORT_FIRST;
/// Coprime to the number of client ports, so that its multiples visit all ports.
const CLIENT_PORT_STRIDE: u64 = 10_007;

/// A range of host addresses.
#[derive(Clone, Debug)]
pub struct Pool {
    /// First IPv4 address.
    pub ipv4: Ipv4Addr,
    /// First IPv6 address.
    pub ipv6: Ipv6Addr,
    /// Number of consecutive addresses.
    pub hosts: u32,
}

/// Options of [`Traffic`].
#[derive(Clone, Debug)]
pub struct TrafficOptions {
    /// Number of conversations. Most have two flows, one in each direction.
    pub conversations: u64,
    /// Time span in nanoseconds in which conversations start, spread evenly. The last ones end
    /// later.
    pub duration: u64,
    /// Number of packets; new conversations start at the same rate until it is reached.
    pub packets: Option<u64>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Addresses of the clients.
    pub clients: Pool,
    /// Addresses of the servers.
    pub servers: Pool,
    /// Share of conversations over IPv6, 0 to 1.
    pub ipv6_share: f64,
    /// Share of conversations in a VLAN, 0 to 1.
    pub vlan_share: f64,
    /// Earliest time of the first packet, in nanoseconds since the Unix epoch.
    pub start: u64,
}

impl Default for TrafficOptions {
    /// Returns 2,000 conversations of 500 clients with 200 servers in 10 s, a quarter over IPv6.
    fn default() -> Self {
        Self {
            conversations: 2_000,
            duration: 10_000_000_000,
            packets: None,
            seed: 1,
            clients: Pool {
                ipv4: Ipv4Addr::new(10, 0, 0, 1),
                ipv6: Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 1),
                hosts: 500,
            },
            servers: Pool {
                ipv4: Ipv4Addr::new(198, 18, 0, 1),
                ipv6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
                hosts: 200,
            },
            ipv6_share: 0.25,
            vlan_share: 0.1,
            start: START,
        }
    }
}

/// Iterator over the packets of many conversations in order of time.
///
/// Each conversation has unique addresses and ports, as long as each client has fewer than 55,536
/// conversations.
#[derive(Debug)]
pub struct Traffic {
    options: TrafficOptions,
    started: u64,
    generated: u64,
    /// Active conversations, ordered by the time of their next packet, then by number.
    active: BinaryHeap<Reverse<Pending>>,
}

#[derive(Debug)]
struct Pending {
    time: u64,
    number: u64,
    dialogue: Box<Dialogue>,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.number) == (other.time, other.number)
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl Traffic {
    /// Creates a generator that starts with the first packet.
    ///
    /// # Panics
    /// Panics without conversations, or with a pool without hosts.
    pub fn new(options: TrafficOptions) -> Self {
        assert!(options.conversations > 0, "{options:?}");
        assert!(options.clients.hosts > 0 && options.servers.hosts > 0, "{options:?}");
        Self { options, started: 0, generated: 0, active: BinaryHeap::new() }
    }

    /// Returns the start time of the next conversation, if any. Each one starts at a random point
    /// in its own slice of the duration.
    fn next_start(&self) -> Option<u64> {
        let options = &self.options;
        let number = self.started;
        if options.packets.is_none() && number >= options.conversations {
            return None;
        }
        let slice = options.duration as f64 / options.conversations as f64;
        let within = Random::of(options.seed ^ 0x5bd1_e995, number).unit();
        Some(options.start + ((number as f64 + within) * slice) as u64)
    }

    fn start_conversation(&mut self, time: u64) {
        let options = &self.options;
        let number = self.started;
        self.started += 1;
        let mut random = Random::of(options.seed, number);
        let kind = Kind::choose(&mut random);
        let is_ipv6 = random.chance(options.ipv6_share) && kind != Kind::Arp;
        let is_tagged = random.chance(options.vlan_share) && kind != Kind::Arp;
        let vlan = is_tagged.then(|| random.between(100, 109) as u16);
        let hosts = u64::from(options.clients.hosts);
        // Multiplying by a prime visits every client once a round, but not in order.
        let client = (number % hosts * 2_147_483_647 % hosts) as u32;
        let round = number / hosts;
        let port = CLIENT_PORT_FIRST + round * CLIENT_PORT_STRIDE % CLIENT_PORTS;
        let server = random.between(0, u64::from(options.servers.hosts) - 1) as u32;
        let host = |pool: &Pool, index: u32, role: u8, port: u16| Host {
            mac: {
                let [a, b, c, d] = index.to_be_bytes();
                [0x02, role, a, b, c, d]
            },
            address: if is_ipv6 { nth_ipv6(pool.ipv6, index) } else { nth_ipv4(pool.ipv4, index) },
            port,
        };
        let conversation = Conversation {
            client: host(&options.clients, client, 1, port as u16),
            server: host(&options.servers, server, 2, kind.server_port()),
            vlan,
        };
        let dialogue = Box::new(Dialogue::new(conversation, kind, random, time));
        self.push(Pending { time, number, dialogue });
    }

    /// Queues the conversation for its next packet, if it has one.
    fn push(&mut self, mut pending: Pending) {
        if let Some(gap) = pending.dialogue.gap() {
            pending.time += gap;
            self.active.push(Reverse(pending));
        }
    }
}

impl Iterator for Traffic {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        if self.options.packets.is_some_and(|packets| self.generated >= packets) {
            return None;
        }
        // Start all conversations that begin before the next packet, so that they are compared.
        while let Some(start) = self.next_start() {
            if self.active.peek().is_some_and(|Reverse(next)| next.time < start) {
                break;
            }
            self.start_conversation(start);
        }
        let Reverse(mut pending) = self.active.pop()?;
        let time = pending.time;
        let frame = pending.dialogue.frame(time)?;
        self.push(pending);
        self.generated += 1;
        Some(Packet { time, frame })
    }
}

/// Size of the written capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSize {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of the frames without FCS.
    pub bytes: u64,
    /// Nanoseconds from the first packet to the last.
    pub span: u64,
}

/// Writes packets to a capture file one by one.
///
/// # Errors
/// The error of the writer.
pub fn write(
    packets: impl Iterator<Item = Packet>,
    resolution: Resolution,
    to: impl Write,
) -> io::Result<CaptureSize> {
    let mut writer = Writer::new(to, resolution)?;
    let mut written = CaptureSize::default();
    let mut first = None;
    for packet in packets {
        writer.write(packet.time, &packet.frame)?;
        written.packets += 1;
        written.bytes += packet.frame.len() as u64;
        written.span = packet.time.saturating_sub(*first.get_or_insert(packet.time));
    }
    writer.finish()?;
    Ok(written)
}

/// Same as [`write()`], to a file.
///
/// # Errors
/// The error of creating or writing the file.
pub fn write_file(
    packets: impl Iterator<Item = Packet>,
    resolution: Resolution,
    path: &Path,
) -> io::Result<CaptureSize> {
    write(packets, resolution, BufWriter::with_capacity(1 << 20, File::create(path)?))
}
