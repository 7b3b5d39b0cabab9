//! Flags of `wirestorm bench collector`.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use wirestorm_control::bench::CollectorBed;
use wirestorm_control::method::collector::Collector;
use wirestorm_control::method::method::Method;

use super::OutputFlags;
use super::bed::{read_model, read_wait};
use super::flow_exporter::{read_rates, read_socket};
use super::parameters::read_percent;
use crate::traffic::read_time;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench collector --target 192.0.2.1:2055 --protocol ipfix --exporters 100 \\
      --records-per-second 100k..1M/100k
  wirestorm bench collector --target 192.0.2.1:2055 --records-per-second 10k,200k --search \\
      --received-command \"clickhouse-client -q 'select count() from flows'\"
  wirestorm bench collector --target 127.0.0.1:2055 --protocol v5 --exporters 50 --domains 4 \\
      --source 127.0.0.1-127.0.0.50 --records-per-second 50k --trial 10s";

/// Most exporters, and most streams of all exporters.
const EXPORTERS_MAX: i64 = 16_384;
const STREAMS_MAX: u64 = 65_536;

/// Test a collector: records that emulated exporters send against records that it stores
///
/// Wirestorm prints what each stream of each exporter sent, to compare it with the collector. With
/// --received-command it computes the loss itself.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CollectorFlags {
    /// Rates of all exporters: a list (10k,20k) or a range with a step (100k..1M/100k)
    #[arg(long, value_name = "RATES", default_value = "100k..1M/100k")]
    records_per_second: String,

    /// Search the rate where loss begins, between the rates
    #[arg(long)]
    search: bool,

    /// Resolution of the search, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    resolution: f64,

    /// Duration of a trial
    #[arg(long, value_name = "TIME", default_value = "60s")]
    trial: String,

    #[command(flatten)]
    exporters: ExporterFlags,

    #[command(flatten)]
    bed: CollectorBedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags of the emulated exporters.
#[derive(Args, Debug)]
#[command(next_help_heading = "Exporters")]
struct ExporterFlags {
    /// Protocol
    #[arg(long, value_enum, default_value_t = Protocol::Ipfix)]
    protocol: Protocol,

    /// IP version of the flows
    #[arg(long, value_enum, default_value_t = Family::Ipv4)]
    family: Family,

    /// Number of exporters, each with a source address and port of its own
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=EXPORTERS_MAX))]
    exporters: u32,

    /// Observation domains (source IDs, engines, sub-agents) of each exporter, numbered from 1
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=65_535))]
    domains: u32,

    /// Flows of a domain before its keys repeat; 0: no key repeats
    #[arg(long, value_name = "N", default_value_t = 0)]
    flows: u64,

    /// Time after which templates are sent again
    #[arg(long, value_name = "TIME", default_value = "60s")]
    template_refresh: String,

    /// Datagrams of a domain after which its templates are sent again; 0: never
    #[arg(long, value_name = "N", default_value_t = 20)]
    template_refresh_datagrams: u32,

    /// Longest datagram in bytes, without UDP and IP
    #[arg(long, value_name = "BYTES", default_value_t = 1_452,
        value_parser = clap::value_parser!(u32).range(512..=65_507))]
    datagram_size: u32,

    /// Seed of the flows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Protocol of the exporters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// NetFlow v5
    V5,
    /// NetFlow v9 (RFC 3954)
    V9,
    /// IPFIX (RFC 7011)
    Ipfix,
    /// sFlow v5; a record is a flow sample
    Sflow,
}

/// IP versions of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Family {
    Ipv4,
    Ipv6,
    Both,
}

/// Flags for the test bed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Test bed")]
struct CollectorBedFlags {
    /// Address of the collector: [netns/NAME:]ADDRESS:PORT, with the namespace of the exporters
    #[arg(long, value_name = "ADDRESS", required_unless_present = "simulate")]
    target: Option<String>,

    /// Source addresses of the exporters, round robin: a list, or a range (10.0.0.1-10.0.0.100)
    ///
    /// They must be addresses of this machine. Default: the address of the route.
    #[arg(long, value_name = "ADDRESSES")]
    source: Option<String>,

    /// First source port; further exporters of an address count up. 0: free ports
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    source_port: u16,

    /// Shell command that prints the number of records that the collector has stored so far
    ///
    /// Wirestorm runs it before and after each trial. The difference is what the collector stored.
    #[arg(long, value_name = "COMMAND")]
    received_command: Option<String>,

    /// Time without further stored records after which a trial ends
    #[arg(long, value_name = "TIME", default_value = "3s")]
    quiet_time: String,

    /// Wait after each trial
    #[arg(long, value_name = "TIME", default_value = "1s")]
    settle: String,

    /// Simulate a collector: flows_per_second=750000
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["target", "received_command"])]
    simulate: Option<String>,
}

impl CollectorFlags {
    /// Returns the parameters that the flags describe.
    pub(super) fn parameters(&self) -> Result<Collector, String> {
        let (exporters, bed) = (&self.exporters, &self.bed);
        if self.search && bed.received_command.is_none() && bed.simulate.is_none() {
            return Err("--search needs --received-command, which counts the stored records".into());
        }
        let streams = u64::from(exporters.exporters) * u64::from(exporters.domains);
        if streams > STREAMS_MAX {
            return Err(format!(
                "--exporters {} and --domains {} are {streams} streams: expected at most \
                 {STREAMS_MAX}",
                exporters.exporters, exporters.domains
            ));
        }
        if exporters.protocol == Protocol::V5 && exporters.family != Family::Ipv4 {
            return Err("--family: NetFlow v5 has no IPv6; use --protocol v9 or ipfix".into());
        }
        Ok(Collector {
            rates: read_rates("--records-per-second", &self.records_per_second, "100k..1M/100k")?,
            searches: self.search,
            resolution: read_percent("--resolution", self.resolution, 0.01, 50.0)?,
            protocol: match exporters.protocol {
                Protocol::V5 => "v5",
                Protocol::V9 => "v9",
                Protocol::Ipfix => "ipfix",
                Protocol::Sflow => "sflow",
            }
            .into(),
            family: match exporters.family {
                Family::Ipv4 => "ipv4",
                Family::Ipv6 => "ipv6",
                Family::Both => "both",
            }
            .into(),
            exporters: exporters.exporters,
            domains: exporters.domains,
            flows_per_stream: exporters.flows,
            datagram_length_max: exporters.datagram_size,
            template_refresh: read_time("--template-refresh", &exporters.template_refresh)?,
            template_refresh_datagrams: exporters.template_refresh_datagrams,
            trial: read_time("--trial", &self.trial)?,
        })
    }

    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        self.parameters().map(Method::Collector)
    }

    /// Returns the text of --simulate.
    pub(super) fn simulate(&self) -> Option<&str> {
        self.bed.simulate.as_deref()
    }

    /// Returns the time between two trials in seconds.
    pub(super) fn waits_s(&self) -> Result<f64, String> {
        if let Some(text) = self.simulate() {
            read_model(text)?;
            return Ok(0.0);
        }
        Ok(read_wait("--settle", &self.bed.settle)?.as_secs_f64())
    }

    /// Returns the test bed.
    pub(super) fn test_bed(&self) -> Result<CollectorBed, String> {
        let bed = &self.bed;
        let target = bed.target.as_deref().ok_or("expected --target")?;
        let (namespace, target) = read_socket("--target", target)?;
        Ok(CollectorBed {
            target,
            namespace,
            sources: bed.source.as_deref().map(read_sources).transpose()?.unwrap_or_default(),
            source_port: bed.source_port,
            seed: self.exporters.seed,
            received_command: bed.received_command.clone(),
            quiet: read_time("--quiet-time", &bed.quiet_time)?,
            settle: read_wait("--settle", &bed.settle)?,
        })
    }
}

/// Parses source addresses: a list of addresses and ranges.
fn read_sources(text: &str) -> Result<Vec<IpAddr>, String> {
    let wrong = || {
        format!(
            "--source {text:?}: expected addresses of this machine, such as 10.0.0.1,10.0.0.2 or \
             10.0.0.1-10.0.0.100, at most {EXPORTERS_MAX}"
        )
    };
    let mut sources = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let parsed = (first.parse::<IpAddr>().ok(), last.parse::<IpAddr>().ok());
        let (first, count) = match parsed {
            (Some(IpAddr::V4(first)), Some(IpAddr::V4(last))) => {
                let count = last.to_bits().checked_sub(first.to_bits());
                (IpAddr::V4(first), count.map(u128::from))
            }
            (Some(IpAddr::V6(first)), Some(IpAddr::V6(last))) => {
                (IpAddr::V6(first), last.to_bits().checked_sub(first.to_bits()))
            }
            _ => return Err(wrong()),
        };
        let left = EXPORTERS_MAX as usize - sources.len();
        let count = count.filter(|count| *count < left as u128).ok_or_else(wrong)?;
        sources.extend((0..=count).map(|number| match first {
            IpAddr::V4(first) => IpAddr::V4((first.to_bits() + number as u32).into()),
            IpAddr::V6(first) => IpAddr::V6((first.to_bits() + number).into()),
        }));
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_lists_and_ranges() {
        let read = |text: &str| {
            let sources = read_sources(text).unwrap();
            sources.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(read("10.0.0.255-10.0.1.1"), ["10.0.0.255", "10.0.1.0", "10.0.1.1"]);
        assert_eq!(read("::1,fd00::fffe-fd00::ffff"), ["::1", "fd00::fffe", "fd00::ffff"]);
        let wrong = ["", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "10.0.0.0-10.1.0.0", "eth0", "1-2"];
        for wrong in wrong {
            assert!(read_sources(wrong).unwrap_err().contains("--source"), "{wrong}");
        }
    }
}
