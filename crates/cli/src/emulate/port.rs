//! A port in tables.

use wirestorm_control::result::{
    ConnectionsReport, FlowCountsReport, PortReport, ReceiveReport, TransmitReport,
};

/// Sections of the report of a port with clients or servers.
pub(super) struct Port<'a> {
    pub(super) report: &'a PortReport,
    pub(super) connections: &'a ConnectionsReport,
    pub(super) flows: &'a FlowCountsReport,
    pub(super) tx: &'a TransmitReport,
    pub(super) rx: &'a ReceiveReport,
}

impl<'a> Port<'a> {
    /// Returns `None` for a port without clients and servers.
    pub(super) fn of(report: &'a PortReport) -> Option<Self> {
        let connections = report.connections.as_ref()?;
        let (tx, rx) = (report.tx.as_ref()?, report.rx.as_ref()?);
        Some(Self { report, connections, flows: &connections.flows, tx, rx })
    }

    pub(super) fn name(&self) -> &str {
        &self.report.name
    }

    pub(super) fn tcp(&self, name: &str) -> u64 {
        self.connections.tcp.get(name).copied().unwrap_or(0)
    }

    pub(super) fn udp(&self, name: &str) -> u64 {
        self.connections.udp.get(name).copied().unwrap_or(0)
    }
}
