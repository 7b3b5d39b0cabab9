//! Commands of a device's file.
//!
//! The parser follows the kernel (net/core/pktgen.c). A number ends after its last digit, has a
//! maximum number of digits, and is 0 without digits. A value loses the upper bits that its field
//! cannot hold. The device keeps a note of each value that differs from the text. Two rules differ
//! from the kernel. An invalid address is an error, while the kernel sends to an arbitrary one.
//! `clone_skb` and `burst` work on every interface. A refused command changes nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use wirestorm_wire::packet::MacAddress;

use super::device::{Device, NEVER, Pace, XmitMode};
use super::error::Problem;
use super::flags::{Flag, flag_names};
use super::scan::Scanner;

/// A refused command.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) problem: Problem,
    /// New `Result:` of the file, if the kernel sets one.
    pub(super) result: Option<String>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, result: None }
    }
}

/// Names of the commands of a device's file.
pub(super) const COMMANDS: [&str; 48] = [
    "min_pkt_size",
    "max_pkt_size",
    "pkt_size",
    "imix_weights",
    "debug",
    "frags",
    "delay",
    "rate",
    "ratep",
    "udp_src_min",
    "udp_dst_min",
    "udp_src_max",
    "udp_dst_max",
    "clone_skb",
    "count",
    "src_mac_count",
    "dst_mac_count",
    "burst",
    "node",
    "xmit_mode",
    "flag",
    "dst_min",
    "dst",
    "dst_max",
    "dst6",
    "dst6_min",
    "dst6_max",
    "src6",
    "src_min",
    "src_max",
    "dst_mac",
    "src_mac",
    "clear_counters",
    "flows",
    "spi",
    "flowlen",
    "queue_map_min",
    "queue_map_max",
    "mpls",
    "vlan_id",
    "vlan_p",
    "vlan_cfi",
    "svlan_id",
    "svlan_p",
    "svlan_cfi",
    "tos",
    "traffic_class",
    "skb_priority",
];

/// Minimum size: headers of Ethernet, IPv4 and UDP.
const SIZE_MIN: u64 = 14 + 20 + 8;
const FLOWS_MAX: u64 = 65_536;
const LABELS_MAX: usize = 16;
const IMIX_MAX: usize = 20;
/// Bottom-of-stack bit of an MPLS label stack entry.
pub(super) const BOTTOM_OF_STACK: u32 = 0x100;

impl Device {
    /// Executes a command.
    pub(super) fn command(&mut self, text: &str) -> Result<(), Refusal> {
        let mut scan = Scanner::new(text);
        scan.skip_separators();
        // The kernel's buffer for the name of a command holds 15 bytes.
        let name = scan.word(15);
        scan.skip_separators();
        if let Some(result) = self.set(name, scan)? {
            self.result = result;
        }
        Ok(())
    }

    /// Sets the parameter `name`. Returns the new `Result:` of the file, if it changes.
    fn set(&mut self, name: &str, mut scan: Scanner<'_>) -> Result<Option<String>, Refusal> {
        let scan = &mut scan;
        let result = match name {
            "min_pkt_size" => {
                self.size_min = self.size("min_pkt_size", scan);
                format!("OK: min_pkt_size={}", self.size_min)
            }
            "max_pkt_size" => {
                self.size_max = self.size("max_pkt_size", scan);
                format!("OK: max_pkt_size={}", self.size_max)
            }
            "pkt_size" => {
                let size = self.size("pkt_size", scan);
                // As in the kernel, a separately set maximum stays if the minimum does not change.
                if size != self.size_min {
                    (self.size_min, self.size_max) = (size, size);
                }
                format!("OK: pkt_size={}", self.size_min)
            }
            "imix_weights" => {
                self.imix = self.imix_weights(scan)?;
                self.current.imix_counts = vec![0; self.imix.len()];
                return Ok(None);
            }
            "debug" => format!("OK: debug={}", self.u32("debug", scan)),
            "frags" => {
                self.fragments = self.u32("frags", scan);
                format!("OK: frags={}", self.fragments.cast_signed())
            }
            "delay" => {
                let delay = self.number("delay", scan, 10, u64::MAX);
                self.delay = if delay == 0x7fff_ffff { NEVER } else { delay };
                self.pace = Pace::Delay;
                format!("OK: delay={}", self.delay)
            }
            "rate" => {
                let megabits = self.above_zero("rate", scan, "Mbit/s, 1 or more")?;
                // As in the kernel, the delay follows the current size, even if the size changes
                // later.
                self.delay = u64::from(self.size_min) * 8 * 1000 / megabits;
                self.pace = Pace::Megabits(megabits);
                format!("OK: rate={megabits}")
            }
            "ratep" => {
                let frames = self.above_zero("ratep", scan, "frames a second, 1 or more")?;
                self.delay = 1_000_000_000 / frames;
                self.pace = Pace::Frames(frames);
                format!("OK: rate={frames}")
            }
            "udp_src_min" => {
                self.source_port.0 = self.u16("udp_src_min", scan, 10);
                self.current.source_port = self.source_port.0;
                format!("OK: udp_src_min={}", self.source_port.0)
            }
            "udp_dst_min" => {
                self.destination_port.0 = self.u16("udp_dst_min", scan, 10);
                self.current.destination_port = self.destination_port.0;
                format!("OK: udp_dst_min={}", self.destination_port.0)
            }
            "udp_src_max" => {
                self.source_port.1 = self.u16("udp_src_max", scan, 10);
                self.current.source_port = self.source_port.1;
                format!("OK: udp_src_max={}", self.source_port.1)
            }
            "udp_dst_max" => {
                self.destination_port.1 = self.u16("udp_dst_max", scan, 10);
                self.current.destination_port = self.destination_port.1;
                format!("OK: udp_dst_max={}", self.destination_port.1)
            }
            "clone_skb" => {
                self.clone_skb = self.clones(scan)?;
                format!("OK: clone_skb={}", self.clone_skb.cast_signed())
            }
            "count" => {
                self.count = self.number("count", scan, 10, u64::MAX);
                format!("OK: count={}", self.count)
            }
            "src_mac_count" => {
                self.source_macs = self.u32("src_mac_count", scan);
                self.current.source_mac_offset = 0;
                format!("OK: src_mac_count={}", self.source_macs.cast_signed())
            }
            "dst_mac_count" => {
                self.destination_macs = self.u32("dst_mac_count", scan);
                self.current.destination_mac_offset = 0;
                format!("OK: dst_mac_count={}", self.destination_macs.cast_signed())
            }
            "burst" => {
                self.burst = self.burst(scan)?;
                format!("OK: burst={}", self.burst)
            }
            "node" => {
                self.node = Some(self.u32("node", scan));
                format!("OK: node={}", self.node.unwrap_or_default())
            }
            "xmit_mode" => self.xmit_mode(scan)?,
            "flag" => self.flag(scan)?,
            "dst_min" | "dst" => {
                let address = ipv4(scan)?;
                self.destination.min = Some(address);
                self.current.destination = address;
                format!("OK: dst_min={address}")
            }
            "dst_max" => {
                let address = ipv4(scan)?;
                self.destination.max = Some(address);
                self.current.destination = address;
                format!("OK: dst_max={address}")
            }
            "src_min" => {
                let address = ipv4(scan)?;
                self.source.min = Some(address);
                self.current.source = address;
                format!("OK: src_min={address}")
            }
            "src_max" => {
                let address = ipv4(scan)?;
                self.source.max = Some(address);
                self.current.source = address;
                format!("OK: src_max={address}")
            }
            "dst6" => {
                self.destination6 = self.ipv6(scan)?;
                self.current.destination6 = self.destination6;
                format!("OK: dst6={}", self.destination6)
            }
            "dst6_min" => {
                self.destination6_min = self.ipv6(scan)?;
                self.current.destination6 = self.destination6_min;
                format!("OK: dst6_min={}", self.destination6_min)
            }
            "dst6_max" => {
                self.destination6_max = self.ipv6(scan)?;
                format!("OK: dst6_max={}", self.destination6_max)
            }
            "src6" => {
                self.source6 = self.ipv6(scan)?;
                self.current.source6 = self.source6;
                format!("OK: src6={}", self.source6)
            }
            "dst_mac" => {
                self.destination_mac = mac(scan)?;
                format!("OK: dstmac {}", self.destination_mac)
            }
            "src_mac" => {
                self.source_mac = mac(scan)?;
                format!("OK: srcmac {}", self.source_mac)
            }
            "clear_counters" => {
                self.clear_counters();
                "OK: Clearing counters.\n".to_owned()
            }
            "flows" => {
                self.flows = self.number("flows", scan, 10, u64::MAX).min(FLOWS_MAX) as u32;
                format!("OK: flows={}", self.flows)
            }
            "spi" => {
                self.spi = self.u32("spi", scan);
                format!("OK: spi={}", self.spi)
            }
            "flowlen" => {
                self.flow_length = self.u32("flowlen", scan);
                format!("OK: flowlen={}", self.flow_length)
            }
            "queue_map_min" => {
                self.queue_min = self.u16("queue_map_min", scan, 5);
                format!("OK: queue_map_min={}", self.queue_min)
            }
            "queue_map_max" => {
                self.queue_max = self.u16("queue_map_max", scan, 5);
                format!("OK: queue_map_max={}", self.queue_max)
            }
            "mpls" => self.mpls(scan)?,
            "vlan_id" | "svlan_id" => return Ok(self.vlan_id(name, scan)),
            "vlan_p" => {
                self.vlan_priority = vlan_bits("vlan_p", 7, self.vlan, scan)?;
                format!("OK: vlan_p={}", self.vlan_priority)
            }
            "vlan_cfi" => {
                self.vlan_cfi = vlan_bits("vlan_cfi", 1, self.vlan, scan)?;
                format!("OK: vlan_cfi={}", self.vlan_cfi)
            }
            "svlan_p" => {
                self.service_vlan_priority = vlan_bits("svlan_p", 7, self.service_vlan, scan)?;
                format!("OK: svlan_p={}", self.service_vlan_priority)
            }
            "svlan_cfi" => {
                self.service_vlan_cfi = vlan_bits("svlan_cfi", 1, self.service_vlan, scan)?;
                format!("OK: svlan_cfi={}", self.service_vlan_cfi)
            }
            "tos" => {
                self.tos = two_hex_digits("tos", scan)?;
                format!("OK: tos=0x{:02x}", self.tos)
            }
            "traffic_class" => {
                self.traffic_class = two_hex_digits("traffic_class", scan)?;
                format!("OK: traffic_class=0x{:02x}", self.traffic_class)
            }
            "skb_priority" => {
                let priority = self.number("skb_priority", scan, 9, u64::MAX);
                // Nine digits always fit.
                self.priority = priority as u32;
                format!("OK: skb_priority={}", self.priority)
            }
            _ => {
                let problem = Problem::NoSuchCommand {
                    found: name.to_owned(),
                    expected: COMMANDS.join(", "),
                };
                let result = Some(format!("No such parameter \"{name}\""));
                return Err(Refusal { problem, result });
            }
        };
        Ok(Some(result))
    }

    /// Reads a number, of which the field keeps the bits of `mask`. Records a note if the value
    /// differs from the text.
    fn number(
        &mut self,
        name: &'static str,
        scan: &mut Scanner<'_>,
        digits_max: usize,
        mask: u64,
    ) -> u64 {
        let written = scan.peek_word();
        let value = scan.number(digits_max) & mask;
        let significant = written.trim_start_matches('0');
        if written.is_empty() || significant != value.to_string().trim_start_matches('0') {
            self.reading_notes.insert(name, format!("{name}: {written:?} is read as {value}"));
        } else {
            self.reading_notes.remove(name);
        }
        value
    }

    fn u32(&mut self, name: &'static str, scan: &mut Scanner<'_>) -> u32 {
        self.number(name, scan, 10, u64::from(u32::MAX)) as u32
    }

    fn u16(&mut self, name: &'static str, scan: &mut Scanner<'_>, digits_max: usize) -> u16 {
        self.number(name, scan, digits_max, u64::from(u16::MAX)) as u16
    }

    fn size(&mut self, name: &'static str, scan: &mut Scanner<'_>) -> u32 {
        let size = self.number(name, scan, 10, u64::MAX);
        size.clamp(SIZE_MIN, u64::from(u32::MAX)) as u32
    }

    fn above_zero(
        &mut self,
        name: &'static str,
        scan: &mut Scanner<'_>,
        expected: &'static str,
    ) -> Result<u64, Problem> {
        let found = scan.peek_word().to_owned();
        let before = self.reading_notes.get(name).cloned();
        match self.number(name, scan, 10, u64::MAX) {
            0 => {
                self.reading_notes.remove(name);
                self.reading_notes.extend(before.map(|reading| (name, reading)));
                Err(Problem::Malformed { found, expected })
            }
            value => Ok(value),
        }
    }

    fn clones(&mut self, scan: &mut Scanner<'_>) -> Result<u32, Problem> {
        let clones = scan.clone().number(10) as u32;
        if clones > 0 && self.mode == XmitMode::NetifReceive {
            return Err(Problem::NotInMode { setting: "clone_skb", mode: "netif_receive" });
        }
        if clones > 0 && !self.imix.is_empty() {
            return Err(Problem::Excluded { other: "imix_weights" });
        }
        if clones > 0 && !self.flags.has(Flag::Shared) {
            return Err(Problem::Excluded { other: "flag !SHARED" });
        }
        Ok(self.u32("clone_skb", scan))
    }

    fn burst(&mut self, scan: &mut Scanner<'_>) -> Result<u32, Problem> {
        let burst = scan.clone().number(10) as u32;
        if burst > 1 && self.mode == XmitMode::QueueXmit {
            return Err(Problem::NotInMode { setting: "burst", mode: "queue_xmit" });
        }
        if burst > 1 && !self.flags.has(Flag::Shared) {
            return Err(Problem::Excluded { other: "flag !SHARED" });
        }
        Ok(self.u32("burst", scan).max(1))
    }

    fn xmit_mode(&mut self, scan: &mut Scanner<'_>) -> Result<String, Refusal> {
        let word = scan.word(31);
        self.mode = match word {
            "start_xmit" => XmitMode::StartXmit,
            "netif_receive" if self.clone_skb > 0 => {
                let (setting, mode) = ("clone_skb", "netif_receive");
                return Err(Problem::NotInMode { setting, mode }.into());
            }
            "netif_receive" => XmitMode::NetifReceive,
            "queue_xmit" => XmitMode::QueueXmit,
            _ => {
                let expected = "start_xmit, netif_receive or queue_xmit".to_owned();
                let modes = "start_xmit, netif_receive\n";
                return Err(Refusal {
                    problem: Problem::Ignored { found: word.to_owned(), expected },
                    result: Some(format!("xmit_mode -:{word}:- unknown\nAvailable modes: {modes}")),
                });
            }
        };
        Ok(format!("OK: xmit_mode={word}"))
    }

    fn flag(&mut self, scan: &mut Scanner<'_>) -> Result<String, Refusal> {
        let word = scan.word(31);
        let Some((flag, to)) = Flag::parse(word) else {
            let names = flag_names();
            return Err(Refusal {
                problem: Problem::Ignored {
                    found: word.to_owned(),
                    expected: format!(
                        "one of {names}, or one with a leading ! to unset it; IPV6 can only be \
                         unset: dst6 and src6 set it"
                    ),
                },
                result: Some(format!(
                    "Flag -:{word}:- unknown\nAvailable flags, (prepend ! to un-set flag):\n{names}"
                )),
            });
        };
        if flag == Flag::Shared && !to && (self.clone_skb > 0 || self.burst > 1) {
            let other = "clone_skb or burst";
            return Err(Problem::Excluded { other }.into());
        }
        self.flags.set(flag, to);
        Ok(format!("OK: flags=0x{:x}", self.flags.0))
    }

    fn ipv6(&mut self, scan: &mut Scanner<'_>) -> Result<Ipv6Addr, Problem> {
        let word = scan.word(127);
        let address = word.parse().map_err(|_| malformed(word, "an IPv6 address"))?;
        self.flags.set(Flag::Ipv6, true);
        Ok(address)
    }

    fn imix_weights(&self, scan: &mut Scanner<'_>) -> Result<Vec<(u64, u64)>, Problem> {
        const EXPECTED: &str =
            "sizes and weights of 1 or more, separated by one space: 64,7 576,4 1518,1";
        if self.clone_skb > 0 {
            return Err(Problem::Excluded { other: "clone_skb" });
        }
        let mut entries = Vec::new();
        loop {
            if entries.len() == IMIX_MAX {
                return Err(Problem::TooMany { limit: IMIX_MAX });
            }
            let found = scan.peek_word();
            let size = scan.number(10).max(SIZE_MIN);
            let weight = if scan.take(',') { scan.number(10) } else { 0 };
            if weight == 0 {
                return Err(malformed(found, EXPECTED));
            }
            entries.push((size, weight));
            if !scan.take(' ') {
                return Ok(entries);
            }
        }
    }

    fn mpls(&mut self, scan: &mut Scanner<'_>) -> Result<String, Problem> {
        let mut labels = Vec::new();
        let mut is_last_missing = scan.is_empty();
        loop {
            if labels.len() == LABELS_MAX {
                return Err(Problem::TooMany { limit: LABELS_MAX });
            }
            if is_last_missing {
                return Err(malformed("", "label stack entries in hexadecimal, as in 00010000"));
            }
            let (label, digits) = scan.hex(8);
            // An entry of zero, or no entry, turns MPLS off.
            if digits == 0 || label == 0 {
                labels.clear();
                break;
            }
            labels.push(label);
            if !scan.take(',') {
                break;
            }
            is_last_missing = scan.is_empty();
        }
        if labels.iter().any(|label| label & BOTTOM_OF_STACK != 0) {
            self.flags.set(Flag::MplsRandom, true);
        }
        if !labels.is_empty() && self.vlan.is_some() {
            (self.vlan, self.service_vlan) = (None, None);
        }
        self.labels = labels;
        let words: Vec<String> = self.labels.iter().map(|label| format!("{label:08x}")).collect();
        Ok(format!("OK: mpls={}", words.join(",")))
    }

    /// Sets a VLAN tag. An invalid one removes both tags.
    fn vlan_id(&mut self, name: &str, scan: &mut Scanner<'_>) -> Option<String> {
        let id = scan.number(4) as u16;
        let is_service = name == "svlan_id";
        if id > 4095 || (is_service && self.vlan.is_none()) {
            (self.vlan, self.service_vlan) = (None, None);
            return None;
        }
        let tag = if is_service { &mut self.service_vlan } else { &mut self.vlan };
        *tag = Some(id);
        self.labels.clear();
        Some(format!("OK: {name}={id}"))
    }
}

fn malformed(found: &str, expected: &'static str) -> Problem {
    Problem::Malformed { found: found.to_owned(), expected }
}

fn ipv4(scan: &mut Scanner<'_>) -> Result<Ipv4Addr, Problem> {
    let word = scan.word(31);
    word.parse().map_err(|_| malformed(word, "an IPv4 address"))
}

/// Parses a MAC address. Only the first 17 characters of the word count.
fn mac(scan: &mut Scanner<'_>) -> Result<MacAddress, Problem> {
    let word = scan.word(31);
    let address = word.get(..17).filter(|address| !address.contains('-'));
    address
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| malformed(word, "a MAC address, as in 02:00:00:00:00:01"))
}

/// Reads a one-digit field of a VLAN tag that is already set.
fn vlan_bits(
    name: &str,
    max: u64,
    tag: Option<u16>,
    scan: &mut Scanner<'_>,
) -> Result<u8, Refusal> {
    let found = scan.peek_word();
    let value = scan.number(1);
    if value <= max && tag.is_some() {
        // One digit.
        return Ok(value as u8);
    }
    let id = if name.starts_with('s') { "svlan_id" } else { "vlan_id" };
    let expected = format!("0 to {max}, after {id}");
    Err(Refusal {
        problem: Problem::Ignored { found: found.to_owned(), expected },
        result: Some(format!("ERROR: {name} must be 0-{max}")),
    })
}

fn two_hex_digits(name: &str, scan: &mut Scanner<'_>) -> Result<u8, Refusal> {
    let found = scan.peek_word();
    match scan.hex(2) {
        // Two digits.
        (value, 2) => Ok(value as u8),
        _ => Err(Refusal {
            problem: Problem::Ignored {
                found: found.to_owned(),
                expected: "two hexadecimal digits, 00 to ff".to_owned(),
            },
            result: Some(format!("ERROR: {name} must be 00-ff")),
        }),
    }
}
