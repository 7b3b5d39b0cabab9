//! The flag `--metrics`: live metrics for Prometheus.

use std::net::SocketAddr;

use clap::Args;

/// Flag for live metrics, which all commands with runs have.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct MetricsFlags {
    /// Serve live metrics for Prometheus [default: off]
    ///
    /// At http://ADDRESS:PORT/metrics, as long as the run lasts. Port 0 selects a free port and
    /// prints it. There is no access control; 127.0.0.1 admits only this machine.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "found {text:?}, expected an IP address and a port, such as 127.0.0.1:9400 or \
             [::1]:9400"
        )
    })
}
