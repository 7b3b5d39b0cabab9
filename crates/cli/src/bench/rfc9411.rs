//! Flags and tables of `wirestorm bench rfc9411`.

use std::fmt::{self, Formatter};

use clap::Args;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::bench::ConnectionAddresses;
use wirestorm_control::method::connections::{ConnectionsInput, LoadUnit, TlsSettings};
use wirestorm_control::method::method::Method;
use wirestorm_control::method::rfc9411::{
    Criteria, CriterionValue, KILOBYTE, MixClass, Rfc9411, Rfc9411Findings, Rfc9411Row, Targets,
    Test, TimeSummary,
};
use wirestorm_control::method::trial::{TrialInput, TrialOutput};

use super::OutputFlags;
use super::bed::{BedFlags, read_wait};
use super::parameters::read_percent;
use crate::number::{grouped, rounded, scaled, signed_nanoseconds};
use crate::traffic::read_time;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench rfc9411 --tx eth1 --rx eth2 --dry-run \\
      --target connections=50k,throughput=10G,concurrent=1M
  wirestorm bench rfc9411 --tx eth1 --rx eth2 --https --tests connections,throughput \\
      --target connections=10k,throughput=5G --object-sizes 1K,64K
  wirestorm bench rfc9411 --tx eth1 --rx eth2 --tests mix --target throughput=10G \\
      --mix web=https:64K:70% --mix api=http:1K+4K:30%
  wirestorm bench rfc9411 --tx eth1 --rx eth2 --tests connections --target connections=50k \\
      --address eth1=198.18.0.2/16,198.18.0.1 --address eth2=198.19.0.2/16,198.19.0.1

Interfaces of --tx have the clients, those of --rx the servers.";

/// Measure connections, transactions and throughput of a security device (RFC 9411)
///
/// The defaults are those of RFC 9411. --dry-run shows how long they take.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rfc9411Flags {
    /// Tests: connections, throughput, latency, concurrent, mix
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "connections,throughput,latency,concurrent"
    )]
    tests: Vec<String>,

    /// Targets: connections=50k (per second), throughput=10G (bit/s), concurrent=1M
    ///
    /// From the data sheet, or for the deployment. The default of the throughput is the link speed.
    #[arg(long, value_name = "NAME=NUMBER", value_delimiter = ',')]
    target: Vec<String>,

    /// Initial load, in percent of the target
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    initial: f64,

    /// Resolution of a search, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    resolution: f64,

    #[command(flatten)]
    traffic: TrafficFlags,

    #[command(flatten)]
    profile: ProfileFlags,

    #[command(flatten)]
    criteria: CriteriaFlags,

    #[command(flatten)]
    pub(super) bed: BedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags for clients and servers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
struct TrafficFlags {
    /// Use HTTPS: sections 7.6 to 7.9 instead of 7.2 to 7.5
    #[arg(long)]
    https: bool,

    /// TLS version; each connection has a full handshake, with ECDHE and ECDSA
    #[arg(long, value_name = "VERSION", default_value = "1.3", value_parser = ["1.2", "1.3"])]
    tls_version: String,

    /// Cipher suite by its IANA name; default: AES-128-GCM of the TLS version
    #[arg(long, value_name = "NAME")]
    tls_cipher: Option<String>,

    /// Object sizes, such as 1K,64K,mixed (1K: 1,024 bytes); default: those of the RFC
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    object_sizes: Vec<String>,

    /// Application of the mix: NAME=http|https:SIZE[+SIZE...]:SHARE; repeatable
    #[arg(long, value_name = "APPLICATION")]
    mix: Vec<String>,

    /// Client addresses of each --tx
    #[arg(long, value_name = "RANGE", default_value = "198.18.1.1-198.18.1.100")]
    client_addresses: Vec<String>,

    /// Server addresses of each --rx
    #[arg(long, value_name = "RANGE", default_value = "198.19.1.1-198.19.1.20")]
    server_addresses: Vec<String>,
}

/// Flags for the load profile.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load profile")]
struct ProfileFlags {
    /// Time before the first connection
    #[arg(long, value_name = "TIME", default_value = "5s")]
    init: String,

    /// Time in which the load grows; the concurrent test computes its own
    #[arg(long, value_name = "TIME", default_value = "30s")]
    ramp_up: String,

    /// Time of the constant load, which is measured
    #[arg(long, value_name = "TIME", default_value = "300s")]
    sustain: String,

    /// The same for the trials of a search before the final one; default: --sustain
    #[arg(long, value_name = "TIME")]
    search_sustain: Option<String>,
}

/// Flags for the validation criteria.
#[derive(Args, Debug)]
#[command(next_help_heading = "Validation criteria")]
struct CriteriaFlags {
    /// Failed transactions, in percent of the attempted ones
    #[arg(long, value_name = "PERCENT", default_value_t = 0.001)]
    max_failed: f64,

    /// Connections with an unexpected RST, in percent of the initiated ones
    #[arg(long, value_name = "PERCENT", default_value_t = 0.001)]
    max_resets: f64,

    /// Deviation of the forwarding rate, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    max_rate_deviation: f64,

    /// Deviation of the concurrent connections, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
    max_concurrent_deviation: f64,
}

impl Rfc9411Flags {
    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        let tests = read_tests(&self.tests)?;
        let sustain = read_time("--sustain", &self.profile.sustain)?;
        let search_sustain = self.profile.search_sustain.as_deref();
        let search_sustain =
            search_sustain.map(|text| read_time("--search-sustain", text)).transpose()?;
        let (object_sizes, has_mixed_objects) = read_sizes(&self.traffic.object_sizes)?;
        let mix = self.mix(&tests)?;
        let criteria = &self.criteria;
        let limit = |option: &str, percent: f64| read_percent(option, percent, 1e-9, 100.0);
        Ok(Method::Rfc9411(Rfc9411 {
            targets: self.targets(&tests)?,
            tls: self.traffic.https.then(|| self.tls()),
            object_sizes,
            has_mixed_objects,
            mix,
            initial: read_percent("--initial", self.initial, 0.1, 100.0)?,
            init: read_wait("--init", &self.profile.init)?,
            ramp_up: read_time("--ramp-up", &self.profile.ramp_up)?,
            sustain,
            search_sustain: search_sustain.unwrap_or(sustain),
            resolution: read_percent("--resolution", self.resolution, 0.01, 50.0)?,
            criteria: Criteria {
                failed: limit("--max-failed", criteria.max_failed)?,
                resets: limit("--max-resets", criteria.max_resets)?,
                rate_deviation: limit("--max-rate-deviation", criteria.max_rate_deviation)?,
                concurrent_deviation: limit(
                    "--max-concurrent-deviation",
                    criteria.max_concurrent_deviation,
                )?,
            },
            clients: self.traffic.client_addresses.clone(),
            servers: self.traffic.server_addresses.clone(),
            tests,
        }))
    }

    /// Returns the addresses of clients and servers.
    pub(super) fn addresses(&self) -> ConnectionAddresses {
        ConnectionAddresses {
            clients: self.traffic.client_addresses.clone(),
            servers: self.traffic.server_addresses.clone(),
        }
    }

    fn tls(&self) -> TlsSettings {
        let version = self.traffic.tls_version.clone();
        let cipher = self.traffic.tls_cipher.clone().unwrap_or_else(|| match &*version {
            "1.2" => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".into(),
            _ => "TLS_AES_128_GCM_SHA256".into(),
        });
        TlsSettings { version, cipher }
    }

    /// Returns the targets. Each test must have those that it needs.
    fn targets(&self, tests: &[Test]) -> Result<Targets, String> {
        let mut targets = Targets::default();
        for text in &self.target {
            let wrong = || {
                format!(
                    "--target {text:?}: expected connections=50k, throughput=10G or concurrent=1M"
                )
            };
            let (name, number) = text.split_once('=').ok_or_else(wrong)?;
            let number = Rate::parse_per_second(number, 1).map_err(|_| wrong())?.per_second();
            let number = Some(number as u64).filter(|number| *number > 0);
            let target = match name {
                "connections" => &mut targets.connections_per_s,
                "throughput" => &mut targets.throughput_bps,
                "concurrent" => &mut targets.concurrent,
                _ => return Err(wrong()),
            };
            *target = Some(number.ok_or_else(wrong)?);
        }
        let has = |of: &[Test]| tests.iter().find(|test| of.contains(test)).copied();
        let needed = |target: Option<u64>, name: &str, of: &[Test]| match (target, has(of)) {
            (None, Some(test)) => Err(format!(
                "the {} test needs --target {name}=NUMBER, such as the figure of the data sheet",
                test.name()
            )),
            _ => Ok(()),
        };
        let connecting = [Test::Connections, Test::Latency, Test::Concurrent];
        needed(targets.connections_per_s, "connections", &connecting)?;
        needed(targets.concurrent, "concurrent", &[Test::Concurrent])?;
        let transferring = [Test::Throughput, Test::Latency, Test::Mix];
        if targets.throughput_bps.is_none() && has(&transferring).is_some() {
            targets.throughput_bps = Some(self.bed.links()?.bps);
        }
        Ok(targets)
    }

    fn mix(&self, tests: &[Test]) -> Result<Vec<MixClass>, String> {
        let mix = self.traffic.mix.iter().map(|text| self.application(text));
        let mix: Vec<MixClass> = mix.collect::<Result<_, _>>()?;
        let sum: f64 = mix.iter().map(|class| class.share).sum();
        if tests.contains(&Test::Mix) && (sum - 1.0).abs() > 1e-6 {
            return Err(format!(
                "--mix: the shares are {} %, expected 100 %",
                (sum * 1e4).round() / 100.0
            ));
        }
        Ok(mix)
    }

    /// Parses an application of the mix.
    fn application(&self, text: &str) -> Result<MixClass, String> {
        let parts = || {
            let (name, rest) = text.split_once('=')?;
            let (protocol, rest) = rest.split_once(':')?;
            let (sizes, share) = rest.split_once(':')?;
            let sizes: Option<Vec<u32>> = sizes.split('+').map(read_size).collect();
            let share: f64 = share.strip_suffix('%')?.parse().ok()?;
            let tls = match protocol {
                "http" => None,
                "https" => Some(self.tls()),
                _ => return None,
            };
            let is_share = share > 0.0 && share <= 100.0;
            let class = MixClass { name: name.into(), tls, objects: sizes?, share: share / 100.0 };
            is_share.then_some(class)
        };
        parts().ok_or_else(|| {
            format!(
                "--mix {text:?}: expected NAME=http|https:SIZE[+SIZE...]:SHARE, such as \
                     web=https:64K+16K:70%"
            )
        })
    }
}

fn read_tests(names: &[String]) -> Result<Vec<Test>, String> {
    let test = |name: &String| {
        let found = Test::ALL.into_iter().find(|test| test.name() == name);
        found.ok_or_else(|| {
            let all = Test::ALL.map(Test::name).join(", ");
            format!("--tests {name:?}: expected some of {all}")
        })
    };
    names.iter().map(test).collect()
}

/// Parses object sizes. Returns `None` for those of the RFC, and whether mixed objects are included.
fn read_sizes(texts: &[String]) -> Result<(Option<Vec<u32>>, bool), String> {
    if texts.is_empty() {
        return Ok((None, true));
    }
    let has_mixed = texts.iter().any(|text| text == "mixed");
    let sizes = texts.iter().filter(|text| *text != "mixed").map(|text| {
        read_size(text).ok_or_else(|| {
            format!("--object-sizes {text:?}: expected a size such as 500, 16K or 1M, or mixed")
        })
    });
    Ok((Some(sizes.collect::<Result<_, _>>()?), has_mixed))
}

/// Parses a size of at most 256 MB. K and M are powers of 1,024.
fn read_size(text: &str) -> Option<u32> {
    let (number, factor) = match text.strip_suffix('K') {
        Some(number) => (number, KILOBYTE),
        None => match text.strip_suffix('M') {
            Some(number) => (number, KILOBYTE * KILOBYTE),
            None => (text, 1),
        },
    };
    let size = number.parse::<u32>().ok()?.checked_mul(factor)?;
    (1..=1 << 28).contains(&size).then_some(size)
}

/// Formats a load with its unit.
pub(super) fn load_text(unit: LoadUnit, load: u64) -> String {
    match unit {
        LoadUnit::ConnectionsPerSecond => format!("{}/s", grouped(load)),
        LoadUnit::ConcurrentConnections => grouped(load),
        LoadUnit::BitsPerSecond => format!("{}b/s", scaled(load as f64)),
    }
}

/// Returns the line of a completed trial, at most 80 columns wide.
pub(super) fn line(
    number: u32,
    input: &TrialInput,
    connections: &ConnectionsInput,
    output: &TrialOutput,
) -> String {
    let offer = input.offers.first();
    let traffic = offer.map_or("", |offer| &offer.traffic);
    let load = offer.and_then(|offer| offer.steps.first()).map_or(0, |step| step.load);
    let outcome = output.connections.as_ref().map_or_else(String::new, |found| {
        let reached = found.reached(connections.unit) * 100.0 / load.max(1) as f64;
        let failed = match found.failed {
            0 => String::new(),
            failed => format!(", {} failed", grouped(failed)),
        };
        format!("reached {reached:.1} %{failed}")
    });
    let load = load_text(connections.unit, load);
    let sustain = connections.sustain.as_secs_f64();
    format!("{number:>5}  {:<12} {traffic:<13} {load:>12} {sustain:>6} s  {outcome}", input.test)
}

/// Writes the tables of the findings.
pub(super) fn tables(f: &mut Formatter<'_>, findings: &Rfc9411Findings) -> fmt::Result {
    for rows in findings.rows.chunk_by(|a, b| (a.test, a.unit) == (b.test, b.unit)) {
        let Some(first) = rows.first() else { continue };
        writeln!(
            f,
            "\n{:<20} {:>10} {:>10} {:>10} {:>10} {:>8} {:>6}",
            format!("{} {}", first.section, first.unit.name()),
            "target",
            "result",
            "upper",
            "trans/s",
            "b/s L2",
            "trials"
        )?;
        for row in rows {
            self::row(f, row)?;
        }
        if first.test == Test::Latency {
            times(f, rows)?;
        }
    }
    Ok(())
}

fn row(f: &mut Formatter<'_>, row: &Rfc9411Row) -> fmt::Result {
    let value = |value: u64| match row.unit {
        LoadUnit::BitsPerSecond => scaled(value as f64),
        LoadUnit::ConnectionsPerSecond | LoadUnit::ConcurrentConnections => grouped(value),
    };
    let kpi = |of: fn(&wirestorm_control::method::rfc9411::Kpis) -> String| {
        row.kpis.as_ref().map_or_else(|| "–".into(), of)
    };
    writeln!(
        f,
        "{:<20} {:>10} {:>10} {:>10} {:>10} {:>8} {:>6}",
        subject(row),
        value(row.target),
        row.load.map_or_else(|| "none".into(), value),
        row.upper.map_or_else(|| "–".into(), value),
        kpi(|kpis| rounded(kpis.transactions_per_s.mean)),
        kpi(|kpis| scaled(kpis.throughput_bps.mean)),
        row.trials
    )?;
    if !row.is_valid() {
        let step = if row.is_qualified { "not met: " } else { "step 1 failed: " };
        return writeln!(f, "{}", wrapped("    ", &(step.to_owned() + &unmet(&row.criteria))));
    }
    if !row.upper_unmet.is_empty() {
        let text = format!("above the result: {}", unmet(&row.upper_unmet));
        writeln!(f, "{}", wrapped("    ", &text))?;
    }
    Ok(())
}

/// Returns the traffic, with the transactions of a connection if there are several.
fn subject(row: &Rfc9411Row) -> String {
    match row.transactions {
        0 | 1 => row.traffic.clone(),
        transactions => format!("{} x{transactions}", row.traffic),
    }
}

/// Returns the criteria that were not met, with their values.
fn unmet(values: &[CriterionValue]) -> String {
    let unmet = values
        .iter()
        .filter(|value| !value.is_met)
        .map(|value| format!("{} {} %", value.criterion.name(), percent(value.value)));
    unmet.collect::<Vec<_>>().join(", ")
}

/// Formats a fraction as percent with two significant digits.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = if percent >= 1.0 || percent <= 0.0 {
        1
    } else {
        (1.0 - percent.log10().floor()).clamp(1.0, 9.0) as usize
    };
    format!("{percent:.digits$}")
}

fn times(f: &mut Formatter<'_>, rows: &[Rfc9411Row]) -> fmt::Result {
    writeln!(
        f,
        "\n{:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "TTFB min", "mean", "max", "TTLB min", "mean", "max"
    )?;
    for row in rows {
        let kpis = row.kpis.as_ref();
        let of = |times: Option<TimeSummary>| match times {
            Some(times) => {
                [times.min_ns, times.mean_ns as i64, times.max_ns].map(signed_nanoseconds)
            }
            None => ["–"; 3].map(str::to_owned),
        };
        let [first_min, first_mean, first_max] = of(kpis.and_then(|it| it.time_to_first_byte));
        let [last_min, last_mean, last_max] = of(kpis.and_then(|it| it.time_to_last_byte));
        writeln!(
            f,
            "{:<20} {first_min:>9} {first_mean:>9} {first_max:>9} {last_min:>9} {last_mean:>9} \
             {last_max:>9}",
            subject(row)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024_bytes() {
        assert_eq!(read_size("500"), Some(500));
        assert_eq!((read_size("16K"), read_size("1M")), (Some(16_384), Some(1_048_576)));
        assert_eq!(["0", "16k", "1G", "-1", ""].map(read_size), [None; 5]);
        let sizes = ["1K", "mixed"].map(str::to_owned);
        assert_eq!(read_sizes(&sizes), Ok((Some(vec![1_024]), true)));
        assert_eq!(read_sizes(&[]), Ok((None, true)));
        assert!(read_sizes(&["x".to_owned()]).unwrap_err().contains("--object-sizes"));
    }

    #[test]
    fn percent_has_two_significant_digits() {
        let shown = [0.5, 0.012_34, 0.001_23, 0.000_012_3, 0.0].map(percent);
        assert_eq!(shown, ["50.0", "1.2", "0.12", "0.0012", "0.0"]);
    }
}
