//! `wirestorm serve unit`: prints the systemd unit of the server.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  wirestorm serve unit > /etc/systemd/system/wirestorm.service
  systemctl daemon-reload && systemctl enable --now wirestorm

The server runs as a user of its own with four capabilities: CAP_NET_RAW,
CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON. Its flags are in /etc/default/wirestorm:
  WIRESTORM_FLAGS=--port eth1 --port eth2
`wirestorm doctor` checks the installed unit.";

/// Print the systemd unit of the server
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct UnitFlags {}
