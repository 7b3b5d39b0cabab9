//! Tunables of TCP and IP.

use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::tcp::{Algorithm, EcnMode};

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::emulation::{Ip, Tcp};

/// Tunables of a side, or of one template's side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tunables {
    pub(super) tcp: Tcp,
    pub(super) ip: Ip,
    pub(super) ipv6: Ipv6,
    /// Seconds in which rates ramp up.
    pub(super) ramp_s: Option<u32>,
    /// Unanswered packets that belong to no flow: 0 none, 1 some, 2 all.
    pub(super) blackhole: Option<u8>,
}

/// Use of IPv6 instead of IPv4.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ipv6 {
    pub(super) is_enabled: Option<bool>,
    pub(super) source: Option<[u8; 16]>,
    pub(super) destination: Option<[u8; 16]>,
}

/// Owner of tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A whole side.
    Side,
    /// One template, which has fewer tunables.
    Template,
}

const SIDE: [&str; 4] = ["scheduler", "ipv6", "tcp", "ip"];
const SCHEDULER: [&str; 2] = ["rampup_sec", "accurate"];
const IPV6: [&str; 3] = ["src_msb", "dst_msb", "enable"];
const IP: [&str; 3] = ["tos", "ttl", "dont_use_inbound_mac"];
const TCP: [&str; 17] = [
    "mss",
    "initwnd",
    "rxbufsize",
    "txbufsize",
    "no_delay",
    "no_delay_counter",
    "rexmtthresh",
    "do_rfc1323",
    "do_sack",
    "do_ecn",
    "cc_algo",
    "reass_maxqlen",
    "keepinit",
    "keepidle",
    "keepintvl",
    "blackhole",
    "delay_ack_msec",
];
/// TCP tunables that a template can set.
const TCP_OF_TEMPLATE: [&str; 6] =
    ["mss", "initwnd", "rxbufsize", "txbufsize", "no_delay", "no_delay_counter"];

/// Maximum delay of acknowledgements (RFC 9293 section 3.8.6.3).
const DELAYED_ACK_MS_MAX: u64 = 500;

impl Tunables {
    /// Returns TRex's defaults.
    pub(super) fn defaults(is_ipv6: bool) -> Self {
        let tcp = Tcp {
            congestion: Some(Algorithm::NewReno),
            delayed_ack_ms: Some(100),
            keepalive_ms: Some(5_000),
            keepalive_interval_ms: Some(7_000),
            ..Tcp::default()
        };
        let tcp = with_open_timeout(5, tcp);
        let ip = Ip { ttl: Some(if is_ipv6 { 64 } else { 127 }), ..Ip::default() };
        Self { tcp, ip, ..Self::default() }
    }

    /// Returns these tunables, with unset ones taken from `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            tcp: self.tcp.or(other.tcp),
            ip: self.ip.or(other.ip),
            ipv6: Ipv6 {
                is_enabled: self.ipv6.is_enabled.or(other.ipv6.is_enabled),
                source: self.ipv6.source.or(other.ipv6.source),
                destination: self.ipv6.destination.or(other.ipv6.destination),
            },
            ramp_s: self.ramp_s.or(other.ramp_s),
            blackhole: self.blackhole.or(other.blackhole),
        }
    }

    /// Returns the unanswered packets of a port with these clients. With 1 it answers no segment;
    /// BSD would answer those without SYN.
    pub(super) fn blackhole_of_clients(&self) -> Blackhole {
        if self.blackhole.unwrap_or(0) == 0 { Blackhole::None } else { Blackhole::All }
    }

    /// Returns the unanswered packets of a port with these servers. With 1 these are SYNs, as in
    /// TRex's code; its manual says all but SYNs.
    pub(super) fn blackhole_of_servers(&self) -> Blackhole {
        match self.blackhole {
            None | Some(0) => Blackhole::None,
            Some(1) => Blackhole::Syn,
            Some(_) => Blackhole::All,
        }
    }
}

/// Sets the time after which an attempt to connect fails. As in BSD, there are at most twelve SYN
/// retransmissions, which end an attempt of more than a quarter of an hour earlier.
fn with_open_timeout(seconds: u32, tcp: Tcp) -> Tcp {
    Tcp { open_timeout_ms: Some(seconds * 1_000), syn_retries: Some(12), ..tcp }
}

pub(super) fn read(
    place: &ValueAt<'_>,
    scope: Scope,
    notes: &mut Vec<String>,
) -> Result<Tunables, PlanError> {
    let groups = if scope == Scope::Side { &SIDE[..] } else { &SIDE[1..] };
    let fields = place.fields(groups)?;
    let mut tunables = Tunables::default();
    if let Some(scheduler) = fields.get("scheduler") {
        for (name, value) in scheduler.fields(&SCHEDULER)?.all() {
            match name {
                "rampup_sec" => tunables.ramp_s = Some(value.integer(3, 60_000)? as u32),
                // No effect in TRex; Wirestorm's rates are always exact.
                _ => drop(value.integer(0, 1)?),
            }
        }
    }
    if let Some(ip) = fields.get("ip") {
        tunables.ip = read_ip(&ip, notes)?;
    }
    if let Some(ipv6) = fields.get("ipv6") {
        tunables.ipv6 = read_ipv6(&ipv6)?;
    }
    if let Some(tcp) = fields.get("tcp") {
        let known = if scope == Scope::Side { &TCP[..] } else { &TCP_OF_TEMPLATE };
        for (name, value) in tcp.fields(known)?.all() {
            match name {
                "blackhole" => tunables.blackhole = Some(value.integer(0, 2)? as u8),
                _ => read_tcp(name, &value, &mut tunables.tcp, notes)?,
            }
        }
    }
    Ok(tunables)
}

fn read_ip(place: &ValueAt<'_>, notes: &mut Vec<String>) -> Result<Ip, PlanError> {
    let mut ip = Ip::default();
    for (name, value) in place.fields(&IP)?.all() {
        match name {
            // TRex clears the lowest bit, by which some of its ports filter.
            "tos" => ip.tos = Some(value.integer(0, 255)? as u8 & !1),
            "ttl" => ip.ttl = Some(value.integer(1, 255)?.min(127) as u8),
            _ => {
                if value.integer(0, 1)? == 1 {
                    let path = value.path();
                    notes.push(format!("{path}: servers reply to the source of each frame"));
                }
            }
        }
    }
    Ok(ip)
}

fn read_ipv6(place: &ValueAt<'_>) -> Result<Ipv6, PlanError> {
    let mut ipv6 = Ipv6::default();
    for (name, value) in place.fields(&IPV6)?.all() {
        match name {
            "enable" => ipv6.is_enabled = Some(value.integer(0, 1)? == 1),
            "src_msb" => ipv6.source = Some(read_prefix(&value)?),
            _ => ipv6.destination = Some(read_prefix(&value)?),
        }
    }
    Ok(ipv6)
}

fn read_prefix(place: &ValueAt<'_>) -> Result<[u8; 16], PlanError> {
    let bytes = place.items("16 bytes")?;
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|it| it.integer(0, 255).map(|byte| byte as u8))
        .collect::<Result<_, _>>()?;
    bytes.try_into().map_err(|_| place.unexpected("a list of 16 bytes"))
}

fn read_tcp(
    name: &str,
    value: &ValueAt<'_>,
    tcp: &mut Tcp,
    notes: &mut Vec<String>,
) -> Result<(), PlanError> {
    let mut note = |what: &str| notes.push(format!("{}: {what}", value.path()));
    let seconds = || value.integer(2, 65_533).map(|it| it as u32 * 1_000);
    match name {
        "mss" => tcp.mss = Some(value.integer(10, 9_216)? as u16),
        "initwnd" => tcp.initial_window = Some(value.integer(1, 20)? as u8),
        "rxbufsize" => tcp.receive_buffer = Some(value.integer(1 << 10, 1 << 30)? as u32),
        "txbufsize" => tcp.send_buffer = Some(value.integer(1 << 10, 1 << 30)? as u32),
        "no_delay" => {
            let bits = value.integer(0, 3)?;
            tcp.no_delay = Some(bits & 1 != 0);
            tcp.push_all = Some(bits & 2 != 0);
        }
        "no_delay_counter" => tcp.ack_after_bytes = Some(value.integer(0, 65_533)? as u32),
        "do_rfc1323" => {
            let is_on = value.integer(0, 1)? == 1;
            (tcp.timestamps, tcp.window_scaling) = (Some(is_on), Some(is_on));
        }
        "do_sack" => tcp.sack = Some(value.integer(0, 1)? == 1),
        "do_ecn" => {
            tcp.ecn = Some(match value.integer(0, 2)? {
                0 => EcnMode::Never,
                1 => EcnMode::Offer,
                _ => EcnMode::Accept,
            });
        }
        "cc_algo" => {
            let is_cubic = value.integer(0, 1)? == 1;
            tcp.congestion = Some(if is_cubic { Algorithm::Cubic } else { Algorithm::NewReno });
        }
        "keepidle" => tcp.keepalive_ms = Some(seconds()?),
        "keepintvl" => tcp.keepalive_interval_ms = Some(seconds()?),
        "keepinit" => *tcp = with_open_timeout(value.integer(2, 65_533)? as u32, *tcp),
        "delay_ack_msec" => {
            let delay_ms = value.integer(20, 50_000)?;
            if delay_ms > DELAYED_ACK_MS_MAX {
                note("acknowledgements wait at most 500 ms (RFC 9293)");
            }
            tcp.delayed_ack_ms = Some(delay_ms.min(DELAYED_ACK_MS_MAX) as u16);
        }
        "rexmtthresh" => tcp.dupack_threshold = Some(value.integer(1, 10)? as u8),
        _ => tcp.reassembly_max = Some(value.integer(0, 1_000)? as u16),
    }
    Ok(())
}
