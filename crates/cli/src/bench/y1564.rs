//! Flags of `wirestorm bench y1564`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use wirestorm_control::bench::Y1564Parameters;
use wirestorm_control::files::Files;
use wirestorm_control::method::method::Method;
use wirestorm_control::plan::files;
use wirestorm_control::plan::services::{self, ServicePlan};

use super::OutputFlags;
use super::bed::BedFlags;
use crate::files::CommandLineFiles;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench y1564 --tx eth1 --rx eth2 --cir 10M --eir 5M --ftd 10ms --dry-run
  wirestorm bench y1564 --tx eth1 --rx eth2 --cir 10M --vlan 100 --pcp 5 --flr 0.1%
  wirestorm bench y1564 --tx eth1 --rx eth2 --services services.yaml --performance 2h
  wirestorm bench y1564 --tx eth1 --rx eth2 --services services.yaml --tests performance";

/// Test Ethernet services against their bandwidth profiles (ITU-T Y.1564)
///
/// The configuration test runs each service alone: CIR in steps, CIR + EIR, and a load above both for
/// the policer. The performance test then runs all services at their CIR. The exit status is 3 if a
/// service fails.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Y1564Flags {
    /// Services in YAML or JSON; instead of the flags of one service
    #[arg(long, value_name = "FILE", conflicts_with_all = ["service", "protocol", "frame_size", "vlan",
        "pcp", "dscp", "cir", "eir", "cbs", "ebs", "flr", "ftd", "fdv", "availability"])]
    services: Option<PathBuf>,

    /// Tests: cir, eir, policing, performance or all
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "all")]
    tests: Vec<String>,

    /// Steps of the CIR test, in percent of the CIR; 100 for the simple test
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "25,50,75,100")]
    cir_steps: Vec<f64>,

    /// Duration of a step of the configuration test
    #[arg(long, value_name = "TIME", default_value = "60s")]
    step: String,

    /// Duration of the performance test: usually 15min, 2h or 24h
    #[arg(long, value_name = "TIME", default_value = "15min")]
    performance: String,

    /// Tolerance of the limits of the information rate, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    rate_tolerance: f64,

    #[command(flatten)]
    service: ServiceFlags,

    #[command(flatten)]
    pub(super) bed: BedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags of one service. The keys of a file have the same names.
#[derive(Args, Debug)]
#[command(next_help_heading = "Service")]
struct ServiceFlags {
    /// Name of the service
    #[arg(id = "service", long = "service", value_name = "NAME")]
    name: Option<String>,

    /// Committed information rate in bits a second of layer 2 (with FCS), such as 10M
    #[arg(long, value_name = "RATE")]
    cir: Option<String>,

    /// Excess information rate
    #[arg(long, value_name = "RATE")]
    eir: Option<String>,

    /// Committed burst size; extends the largest rate that passes
    #[arg(long, value_name = "BYTES")]
    cbs: Option<String>,

    /// Excess burst size; extends the largest rate that passes
    #[arg(long, value_name = "BYTES")]
    ebs: Option<String>,

    /// Frame sizes with FCS; default: 512
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    frame_size: Vec<String>,

    /// Protocol: ipv4 or ipv6
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,

    /// VLAN ID
    #[arg(long, value_name = "ID")]
    vlan: Option<String>,

    /// Priority of the VLAN tag (PCP)
    #[arg(long, value_name = "0-7")]
    pcp: Option<String>,

    /// DSCP
    #[arg(long, value_name = "0-63")]
    dscp: Option<String>,

    /// Largest frame loss ratio, such as 0.1%; default: no loss
    #[arg(long, value_name = "PERCENT")]
    flr: Option<String>,

    /// Largest frame transfer delay: mean one-way delay, such as 5ms
    #[arg(long, value_name = "TIME")]
    ftd: Option<String>,

    /// Largest frame delay variation: 99.9th percentile minus minimum
    #[arg(long, value_name = "TIME")]
    fdv: Option<String>,

    /// Smallest availability, such as 99.9%
    #[arg(long, value_name = "PERCENT")]
    availability: Option<String>,
}

impl Y1564Flags {
    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        let method = self.parameters().method(self.services()?);
        method.map(Method::Y1564).map_err(|error| error.of_flag())
    }

    fn parameters(&self) -> Y1564Parameters {
        Y1564Parameters {
            tests: self.tests.clone(),
            cir_steps: self.cir_steps.clone(),
            step: self.step.clone(),
            performance: self.performance.clone(),
            rate_tolerance: self.rate_tolerance,
        }
    }

    /// Returns the path of the file of services.
    pub(super) fn services_file(&self) -> Option<&Path> {
        self.services.as_deref()
    }

    fn services(&self) -> Result<Vec<ServicePlan>, String> {
        let Some(path) = &self.services else { return self.service.read() };
        let name = CommandLineFiles.name(path);
        let bytes = files::read(&CommandLineFiles, path);
        let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name}: expected text"))?;
        services::parse(&text).map_err(|errors| format!("{name}: {errors}"))
    }
}

impl ServiceFlags {
    /// Reads the service as the reader of files does.
    fn read(&self) -> Result<Vec<ServicePlan>, String> {
        if self.cir.is_none() && self.eir.is_none() {
            return Err("expected --services FILE, or --cir and --eir of one service".into());
        }
        let fields = [
            ("cir", &self.cir),
            ("eir", &self.eir),
            ("cbs", &self.cbs),
            ("ebs", &self.ebs),
            ("protocol", &self.protocol),
            ("vlan", &self.vlan),
            ("pcp", &self.pcp),
            ("dscp", &self.dscp),
            ("flr", &self.flr),
            ("ftd", &self.ftd),
            ("fdv", &self.fdv),
            ("availability", &self.availability),
        ];
        let given = fields.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?)));
        let mut service: Map<String, Value> =
            given.map(|(key, text)| (key.to_owned(), json!(text))).collect();
        service.insert("name".into(), json!(self.name.as_deref().unwrap_or("service")));
        if !self.frame_size.is_empty() {
            service.insert("frame_size".into(), json!(self.frame_size));
        }
        let parsed = services::parse(&json!({"services": [service]}).to_string());
        parsed.map_err(|errors| errors.to_string().replace("services[0].", "--").replace('_', "-"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wirestorm_control::base::time::Duration;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        flags: Y1564Flags,
    }

    fn flags() -> ServiceFlags {
        ServiceFlags {
            name: None,
            cir: Some("10M".into()),
            eir: None,
            cbs: None,
            ebs: None,
            frame_size: Vec::new(),
            protocol: None,
            vlan: None,
            pcp: None,
            dscp: None,
            flr: None,
            ftd: None,
            fdv: None,
            availability: None,
        }
    }

    #[test]
    fn flags_of_a_service_are_read_as_a_file_is() {
        let services = ServiceFlags {
            frame_size: vec!["68".into(), "1518".into()],
            vlan: Some("7".into()),
            ftd: Some("5ms".into()),
            ..flags()
        };
        let service = services.read().unwrap().remove(0);
        assert_eq!((&*service.name, service.cir_bps), ("service", 10_000_000));
        assert_eq!((&*service.frame_sizes, service.vlan), (&[68, 1518][..], Some(7)));
        assert_eq!(service.ftd, Some(Duration::from_millis(5)));
    }

    #[test]
    fn errors_of_a_service_name_the_flag() {
        let error = ServiceFlags { cir: Some("fast".into()), ..flags() }.read().unwrap_err();
        assert!(error.contains("--cir: found \"fast\""), "{error}");
        let error = ServiceFlags { frame_size: vec!["1".into()], ..flags() }.read().unwrap_err();
        assert!(error.contains("--frame-size"), "{error}");
        let error = ServiceFlags { cir: None, ..flags() }.read().unwrap_err();
        assert!(error.contains("--services"), "{error}");
    }

    #[test]
    fn defaults_of_flags_are_those_of_the_keys_of_a_test() {
        let Flags { flags } = Flags::parse_from(["y1564", "--tx", "a", "--rx", "b", "--cir", "1M"]);
        assert_eq!(flags.parameters(), Y1564Parameters::default());
    }
}
