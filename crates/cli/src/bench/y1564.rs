//! Flags of `wirestorm bench y1564`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use wirestorm_control::base::time::Duration;
use wirestorm_control::bench::{Headers, NamedTraffic, TrafficDefinition};
use wirestorm_control::files::Files;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::y1564::{Criteria, Service, Test, Y1564};
use wirestorm_control::plan::files;
use wirestorm_control::plan::services::{self, ServicePlan};

use super::OutputFlags;
use super::bed::BedFlags;
use super::parameters::read_percent;
use crate::files::CommandLineFiles;
use crate::traffic::read_time;

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
        let services = self.services()?.into_iter().map(service).collect();
        let step = |percent: &f64| read_percent("--cir-steps", *percent, 1.0, 100.0);
        let cir_steps: Vec<f64> = self.cir_steps.iter().map(step).collect::<Result<_, _>>()?;
        if !cir_steps.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("--cir-steps: expected ascending percent, such as 25,50,75,100".into());
        }
        Ok(Method::Y1564(Y1564 {
            services,
            tests: read_tests(&self.tests)?,
            cir_steps,
            step: read_duration("--step", &self.step)?,
            performance: read_duration("--performance", &self.performance)?,
            rate_tolerance: read_percent("--rate-tolerance", self.rate_tolerance, 0.0, 50.0)?,
        }))
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

/// Returns the traffic of the services of a method, by name.
pub(super) fn named_traffic(method: &Method) -> NamedTraffic {
    let Method::Y1564(method) = method else { return NamedTraffic::new() };
    let headers = |service: &Service| Headers {
        is_ipv6: service.protocol == "ipv6",
        vlan: service.vlan,
        pcp: service.pcp,
        dscp: service.dscp,
    };
    let named = |it: &Service| (it.name.clone(), TrafficDefinition::Headers(headers(it)));
    method.services.iter().map(named).collect()
}

fn service(plan: ServicePlan) -> Service {
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    Service {
        name: plan.name,
        protocol: if plan.is_ipv6 { "ipv6" } else { "ipv4" }.to_owned(),
        frame_sizes: plan.frame_sizes,
        vlan: plan.vlan,
        pcp: plan.pcp,
        dscp: plan.dscp,
        cir_bps: plan.cir_bps,
        eir_bps: plan.eir_bps,
        cbs_bytes: plan.cbs_bytes,
        ebs_bytes: plan.ebs_bytes,
        criteria: Criteria {
            flr: plan.flr,
            ftd_s: seconds(plan.ftd),
            fdv_s: seconds(plan.fdv),
            availability: plan.availability,
        },
    }
}

/// Parses a time above zero.
fn read_duration(option: &str, text: &str) -> Result<Duration, String> {
    match read_time(option, text)? {
        Duration::ZERO => Err(format!("{option} {text:?}: expected more than 0")),
        time => Ok(time),
    }
}

/// Parses names of tests.
fn read_tests(names: &[String]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(Test::ALL.to_vec());
        }
        let test = Test::ALL.into_iter().find(|test| test.name() == name);
        tests.push(test.ok_or_else(|| {
            let all = Test::ALL.map(Test::name).join(", ");
            format!("--tests {name:?}: expected all, or some of {all}")
        })?);
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(read_tests(&["burst".into()]).unwrap_err().contains("policing"));
    }
}
