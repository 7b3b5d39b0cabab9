//! Settings of a PTP session, which `clock ptp` and `agent` have as flags of different names.

use clap::{Args, ValueEnum};
use wirestorm_control::sync::TransportKind;
use wirestorm_control::sync::ptp::{Address, LogInterval, PtpOptions, PtpRole};

const HEADING: &str = "PTP";

/// Role of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Slave,
    Master,
}

/// Network of a session.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Transport {
    L2,
    Udp4,
    Udp6,
}

/// Values of the flags of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct PtpSettings<'a> {
    pub(super) interface: &'a str,
    pub(super) role: Role,
    pub(super) transport: Transport,
    pub(super) unicast: Option<Address>,
    pub(super) domain: u8,
    pub(super) log_interval: i8,
    pub(super) priority: u8,
}

impl PtpSettings<'_> {
    /// Returns the options of a session. `interface` and `unicast` are the names of their flags.
    ///
    /// # Errors
    /// The interface has no valid name, or a master has an address to ask.
    pub(super) fn options(&self, [interface, unicast]: [&str; 2]) -> Result<PtpOptions, String> {
        if self.role == Role::Master && self.unicast.is_some() {
            return Err(format!("{unicast} is an option of a slave; a master serves all slaves"));
        }
        Ok(PtpOptions {
            interface: self.interface.parse().map_err(|error| format!("{interface} {error}"))?,
            transport: match self.transport {
                Transport::L2 => TransportKind::L2,
                Transport::Udp4 => TransportKind::Udp4,
                Transport::Udp6 => TransportKind::Udp6,
            },
            domain: self.domain,
            role: match self.role {
                Role::Slave => PtpRole::Slave { unicast: self.unicast },
                Role::Master => PtpRole::Master { priority1: self.priority },
            },
            interval: LogInterval::clamped(self.log_interval),
        })
    }
}

/// PTP session of an agent.
#[derive(Args, Debug)]
pub(crate) struct AgentPtpFlags {
    /// Interface of a PTP session that lasts as long as the agent: eth1 or netns/NAME:eth1
    ///
    /// Agents with the same grandmaster can compare their clocks by PTP (`clock: {source: ptp}`).
    #[arg(long, value_name = "INTERFACE", help_heading = HEADING)]
    ptp: Option<String>,

    /// Follow a master, or be one
    #[arg(long, value_name = "ROLE", value_enum, default_value_t = Role::Slave, requires = "ptp", help_heading = HEADING)]
    ptp_role: Role,

    /// Ethernet, or UDP over IPv4 or IPv6
    #[arg(long, value_name = "NETWORK", value_enum, default_value_t = Transport::Udp4, requires = "ptp", help_heading = HEADING)]
    ptp_transport: Transport,

    /// Ask the master at this IP or MAC address for unicast messages; else multicast
    #[arg(long, value_name = "ADDRESS", requires = "ptp", help_heading = HEADING)]
    ptp_unicast: Option<Address>,

    /// PTP domain
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ptp", help_heading = HEADING)]
    ptp_domain: u8,

    /// Interval of measurements: 2^N seconds; multicast slaves get that of the master
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-7..=6), requires = "ptp", help_heading = HEADING)]
    ptp_log_interval: i8,

    /// Priority of a master; the lowest wins
    #[arg(long, value_name = "N", default_value_t = 128, requires = "ptp", help_heading = HEADING)]
    ptp_priority: u8,
}

impl AgentPtpFlags {
    /// Returns the options of the session; `None` without one.
    ///
    /// # Errors
    /// Same as [`PtpSettings::options`].
    pub(crate) fn options(&self) -> Result<Option<PtpOptions>, String> {
        let Some(interface) = &self.ptp else { return Ok(None) };
        let settings = PtpSettings {
            interface,
            role: self.ptp_role,
            transport: self.ptp_transport,
            unicast: self.ptp_unicast,
            domain: self.ptp_domain,
            log_interval: self.ptp_log_interval,
            priority: self.ptp_priority,
        };
        settings.options(["--ptp", "--ptp-unicast"]).map(Some)
    }
}
