//! The methods as values: parameters in, findings out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, CollectorFindings};
use crate::flow_exporter::{FlowExporter, FlowExporterFindings};
use crate::mlrsearch::{Mlrsearch, MlrsearchFindings};
use crate::ndr::{Ndr, NdrFindings};
use crate::repeating::Repeating;
use crate::rfc2544::{Rfc2544, Rfc2544Findings};
use crate::rfc9411::{Rfc9411, Rfc9411Findings};
use crate::trial::{Trial, TrialError};
use crate::y1564::{Y1564, Y1564Findings};

/// Parameters of a method. Together with the outputs of trials they determine the findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Method {
    /// RFC 2544.
    Rfc2544(Rfc2544),
    /// MLRsearch (RFC 9971).
    Mlrsearch(Mlrsearch),
    /// Test of a flow exporter (RFC 6645).
    FlowExporter(FlowExporter),
    /// Test of a collector of flow records.
    Collector(Collector),
    /// Connections, transactions and throughput of network security devices (RFC 9411).
    Rfc9411(Rfc9411),
    /// Non-drop rate, as by TRex.
    Ndr(Ndr),
    /// Ethernet service activation (ITU-T Y.1564).
    Y1564(Y1564),
}

/// Findings of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Findings {
    /// RFC 2544.
    Rfc2544(Rfc2544Findings),
    /// MLRsearch (RFC 9971).
    Mlrsearch(MlrsearchFindings),
    /// Test of a flow exporter (RFC 6645).
    FlowExporter(FlowExporterFindings),
    /// Test of a collector of flow records.
    Collector(CollectorFindings),
    /// Connections, transactions and throughput of network security devices (RFC 9411).
    Rfc9411(Rfc9411Findings),
    /// Non-drop rate, as by TRex.
    Ndr(NdrFindings),
    /// Ethernet service activation (ITU-T Y.1564).
    Y1564(Y1564Findings),
}

impl Method {
    /// Returns the name of the method in commands and results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rfc2544(_) => "rfc2544",
            Self::Mlrsearch(_) => "mlrsearch",
            Self::FlowExporter(_) => "flow-exporter",
            Self::Collector(_) => "collector",
            Self::Rfc9411(_) => "rfc9411",
            Self::Ndr(_) => "ndr",
            Self::Y1564(_) => "y1564",
        }
    }

    /// Runs the method. After an error, the findings are those of the completed tests. A trial that
    /// the tester spoiled is repeated, at most twice.
    pub fn run(&self, trial: &mut dyn Trial) -> (Findings, Result<(), TrialError>) {
        let trial = &mut Repeating::new(trial);
        match self {
            Self::Collector(method) => {
                let mut findings = CollectorFindings::default();
                // It sums the records of all trials, so it repeats them itself.
                let outcome = method.run(trial.once(), &mut findings);
                (Findings::Collector(findings), outcome)
            }
            Self::Rfc2544(method) => {
                let mut findings = Rfc2544Findings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::Rfc2544(findings), outcome)
            }
            Self::Mlrsearch(method) => {
                let mut findings = MlrsearchFindings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::Mlrsearch(findings), outcome)
            }
            Self::FlowExporter(method) => {
                let mut findings = FlowExporterFindings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::FlowExporter(findings), outcome)
            }
            Self::Rfc9411(method) => {
                let mut findings = Rfc9411Findings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::Rfc9411(findings), outcome)
            }
            Self::Ndr(method) => {
                let mut findings = NdrFindings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::Ndr(findings), outcome)
            }
            Self::Y1564(method) => {
                let mut findings = Y1564Findings::default();
                let outcome = method.run(trial, &mut findings);
                (Findings::Y1564(findings), outcome)
            }
        }
    }

    /// Returns the differences of the parameters from what the method's documents recommend or
    /// require, one sentence each.
    pub fn deviations(&self) -> Vec<String> {
        match self {
            Self::Rfc2544(method) => method.deviations(),
            Self::Mlrsearch(method) => method.deviations(),
            Self::FlowExporter(method) => method.deviations(),
            Self::Collector(_) => Vec::new(),
            Self::Rfc9411(method) => method.deviations(),
            Self::Ndr(method) => method.deviations(),
            Self::Y1564(method) => method.deviations(),
        }
    }
}

impl Findings {
    /// Returns what a reader must know before the figures, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::Rfc2544(findings) => findings.warnings(),
            Self::Mlrsearch(findings) => findings.warnings(),
            Self::FlowExporter(findings) => findings.warnings(),
            Self::Collector(findings) => findings.warnings(),
            Self::Rfc9411(findings) => findings.warnings(),
            Self::Ndr(findings) => findings.warnings(),
            Self::Y1564(_) => Vec::new(),
        }
    }

    /// Returns the acceptance criteria that the device failed, one sentence each; empty for methods
    /// that only measure.
    pub fn shortfalls(&self) -> Vec<String> {
        match self {
            Self::Rfc9411(findings) => findings.shortfalls(),
            Self::Y1564(findings) => findings.shortfalls(),
            Self::Rfc2544(_)
            | Self::Mlrsearch(_)
            | Self::FlowExporter(_)
            | Self::Collector(_)
            | Self::Ndr(_) => Vec::new(),
        }
    }
}
