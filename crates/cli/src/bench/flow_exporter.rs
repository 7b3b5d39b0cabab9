//! Flags of `wirestorm bench flow-exporter`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::base::time::Duration;
use wirestorm_control::bench::FlowExporterBed;
use wirestorm_control::method::flow_exporter::{CAPTURE, FLOWS, FlowExporter};
use wirestorm_control::method::method::Method;
use wirestorm_control::namespace::Namespace;
use wirestorm_control::plan::replay::parse_catch_up;

use super::OutputFlags;
use super::bed::{read_address, read_model, read_wait};
use crate::traffic::read_time;

const EXAMPLES: &str = "\
Examples:
  wirestorm bench flow-exporter --tx eth1 --flows-per-second 10k..140k/10k
  wirestorm bench flow-exporter --tx eth1 --capture traffic.pcap \\
      --flows-per-second 10k..140k/10k --collector 192.0.2.1:2055
  wirestorm bench flow-exporter --tx eth1 --flows-per-second 1k,50k --search \\
      --idle-timeout 5s --cache-size 100000";

/// Largest number of rates in a sweep.
const RATES_MAX: u64 = 10_000;

/// Test a flow exporter: flows sent against flows captured (RFC 6645)
///
/// Configure the device to export NetFlow v5, v9, IPFIX or sFlow to the address of --collector, and
/// set its Idle Timeout to the minimum.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct FlowExporterFlags {
    /// Rates: a list (10k,20k) or a range with a step (10k..140k/10k)
    #[arg(long, value_name = "RATES", default_value = "10k..140k/10k")]
    flows_per_second: String,

    /// Search the rate where loss begins, between the rates
    #[arg(long)]
    search: bool,

    /// Resolution of the search, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    resolution: f64,

    /// Duration of the traffic of a trial
    #[arg(long, value_name = "TIME", default_value = "60s")]
    trial: String,

    /// Replay this capture, with new addresses in each pass; default: one packet for each flow
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,

    /// Frame size of generated flows in bytes with FCS
    #[arg(long, value_name = "BYTES", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(64..=16_384))]
    frame_size: u32,

    /// First source address of generated flows
    #[arg(long, value_name = "ADDRESS", default_value = "10.0.0.1")]
    first_source: Ipv4Addr,

    /// Number of source addresses; several times the Cache Size
    #[arg(long, value_name = "N", default_value_t = 16_000_000,
        value_parser = clap::value_parser!(u32).range(1..))]
    sources: u32,

    /// Destination address of generated flows
    #[arg(long, value_name = "ADDRESS", default_value = "198.19.0.2")]
    destination: Ipv4Addr,

    #[command(flatten)]
    device: DeviceFlags,

    #[command(flatten)]
    bed: FlowBedFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags that describe the device.
#[derive(Args, Debug)]
#[command(next_help_heading = "Device")]
struct DeviceFlags {
    /// Idle Timeout of the device
    #[arg(long, value_name = "TIME", default_value = "15s")]
    idle_timeout: String,

    /// Active Timeout of the device, for the report
    #[arg(long, value_name = "TIME")]
    active_timeout: Option<String>,

    /// Cache Size of the device in flows
    #[arg(long, value_name = "FLOWS")]
    cache_size: Option<u64>,

    /// Log of the device with its statistics (nprobe, softflowd)
    #[arg(long, value_name = "FILE")]
    device_log: Option<PathBuf>,
}

/// Flags for the test bed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Test bed")]
struct FlowBedFlags {
    /// Interface that sends to the device
    #[arg(long, value_name = "INTERFACE", required_unless_present = "simulate")]
    tx: Option<String>,

    /// Interface that receives what the device forwards
    #[arg(long, value_name = "INTERFACE")]
    rx: Option<String>,

    /// Destination MAC address of generated flows
    #[arg(long, value_name = "MAC")]
    dmac: Option<String>,

    /// Address of --tx, and its router: 198.18.0.2/24,198.18.0.1
    #[arg(long, value_name = "ADDRESS[,ROUTER]", conflicts_with = "dmac")]
    address: Option<String>,

    /// Address of the collector: [netns/NAME:]ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:2055")]
    collector: String,

    /// Time without records after which a trial ends; default: --idle-timeout and 2 s
    #[arg(long, value_name = "TIME")]
    quiet_time: Option<String>,

    /// Wait after each trial
    #[arg(long, value_name = "TIME", default_value = "1s")]
    settle: String,

    /// Largest number of flows of a trial that are compared one by one
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    keys_max: usize,

    /// Frames of one further flow after the traffic; 0: none
    ///
    /// Exporters that read from libpcap, such as softflowd, get packets in blocks. The filler
    /// pushes the last packets out of their buffers.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    filler_frames: u64,

    /// Backend that sends frames
    #[arg(long, value_parser = crate::backend::sending(), default_value = "auto")]
    backend: Backend,

    /// Late frames: bounded:MS, bounded:unlimited, strict:MS or stretch
    #[arg(long, value_name = "POLICY", default_value = "bounded")]
    catch_up: String,

    /// Send even on the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Simulate a device: flows_per_second=75000
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["tx", "rx"])]
    simulate: Option<String>,
}

impl FlowExporterFlags {
    /// Returns the path of the capture.
    pub(super) fn capture(&self) -> Option<&Path> {
        self.capture.as_deref()
    }

    /// Returns the method that the flags describe.
    pub(super) fn method(&self) -> Result<Method, String> {
        if !(0.01..=50.0).contains(&self.resolution) {
            let found = self.resolution;
            return Err(format!("--resolution {found}: expected percent from 0.01 to 50"));
        }
        let active = self.device.active_timeout.as_deref();
        let active = active.map(|text| read_time("--active-timeout", text)).transpose()?;
        let (traffic, frame_size) = match self.capture {
            Some(_) => (CAPTURE, None),
            None => (FLOWS, Some(self.frame_size)),
        };
        Ok(Method::FlowExporter(FlowExporter {
            rates: read_rates("--flows-per-second", &self.flows_per_second, "10k..140k/10k")?,
            searches: self.search,
            resolution: self.resolution / 100.0,
            traffic: traffic.into(),
            frame_size,
            trial: read_time("--trial", &self.trial)?,
            idle_timeout: self.idle_timeout()?,
            active_timeout_s: active.map(Duration::as_secs_f64),
            cache_size: self.device.cache_size,
        }))
    }

    fn idle_timeout(&self) -> Result<Duration, String> {
        read_wait("--idle-timeout", &self.device.idle_timeout)
    }

    fn quiet_time(&self) -> Result<Duration, String> {
        match &self.bed.quiet_time {
            Some(text) => read_time("--quiet-time", text),
            None => Ok(self.idle_timeout()?.saturating_add(Duration::from_secs(2))),
        }
    }

    /// Returns the interfaces.
    pub(super) fn interfaces(&self) -> Vec<String> {
        self.bed.tx.iter().chain(&self.bed.rx).cloned().collect()
    }

    /// Returns the text of --simulate.
    pub(super) fn simulate(&self) -> Option<&str> {
        self.bed.simulate.as_deref()
    }

    /// Returns the time between two trials in seconds.
    pub(super) fn waits_s(&self) -> Result<f64, String> {
        if self.bed.simulate.is_some() {
            read_model(self.simulate().unwrap_or_default())?;
            return Ok(0.0);
        }
        // The records of the last flows come an Idle Timeout after the traffic.
        let settle = read_wait("--settle", &self.bed.settle)?;
        Ok(settle.saturating_add(self.idle_timeout()?).as_secs_f64())
    }

    /// Returns the test bed.
    pub(super) fn test_bed(&self) -> Result<FlowExporterBed, String> {
        let bed = &self.bed;
        let tx = bed.tx.clone().ok_or("expected --tx")?;
        let (collector_namespace, collector) = read_socket("--collector", &bed.collector)?;
        let address = |text: &String| read_address("--address", &format!("{tx}={text}"));
        Ok(FlowExporterBed {
            rx: bed.rx.clone(),
            destination_mac: bed.dmac.as_deref().map(read_mac).transpose()?,
            address: bed.address.as_ref().map(address).transpose()?,
            first_source: self.first_source,
            destination: self.destination,
            sources: self.sources,
            capture: self.capture.clone(),
            collector,
            collector_namespace,
            idle_timeout: self.idle_timeout()?,
            quiet: self.quiet_time()?,
            keys_max: bed.keys_max,
            filler_frames: bed.filler_frames,
            device_log: self.device.device_log.clone(),
            settle: read_wait("--settle", &bed.settle)?,
            backend: bed.backend,
            policy: parse_catch_up(&bed.catch_up).map_err(|error| format!("--catch-up {error}"))?,
            force_interface: bed.force_interface,
            tx,
        })
    }
}

/// Parses rates: a list, or a range with a step such as `example`.
pub(super) fn read_rates(option: &str, text: &str, example: &str) -> Result<Vec<u64>, String> {
    let wrong = || {
        format!(
            "{option} {text:?}: expected ascending rates such as 10k,20k or {example}, at most \
             {RATES_MAX}"
        )
    };
    let rate = |text: &str| {
        let rate = Rate::parse_per_second(text, 1).ok()?.per_second();
        (rate >= 1.0 && rate.fract() == 0.0).then_some(rate as u64)
    };
    let rates: Option<Vec<u64>> = match text.split_once("..") {
        Some((first, rest)) => (|| {
            let (last, step) = rest.split_once('/')?;
            let (first, last, step) = (rate(first)?, rate(last)?, rate(step)?);
            let count = last.checked_sub(first)? / step;
            (count < RATES_MAX).then(|| (0..=count).map(|number| first + number * step).collect())
        })(),
        None => text.split(',').map(rate).collect(),
    };
    let is_ascending = |rates: &Vec<u64>| rates.windows(2).all(|pair| pair[0] < pair[1]);
    rates.filter(|rates| is_ascending(rates) && rates.len() <= RATES_MAX as usize).ok_or_else(wrong)
}

/// Parses the address of a socket and its namespace.
pub(super) fn read_socket(option: &str, text: &str) -> Result<(Namespace, SocketAddr), String> {
    let wrong = || format!("{option} {text:?}: expected ADDRESS:PORT or netns/NAME:ADDRESS:PORT");
    let (namespace, address) = match text.strip_prefix("netns/") {
        None => (Namespace::Current, text),
        Some(rest) => {
            let (name, address) = rest.split_once(':').ok_or_else(wrong)?;
            let namespace = match name.starts_with('/') {
                true => Namespace::Path(name.into()),
                false => Namespace::Named(name.into()),
            };
            (namespace, address)
        }
    };
    Ok((namespace, address.parse().map_err(|_| wrong())?))
}

/// Parses a MAC address.
fn read_mac(text: &str) -> Result<[u8; 6], String> {
    let byte = |part: &str| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2);
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    let mac = bytes.and_then(|bytes| bytes.try_into().ok());
    mac.ok_or_else(|| format!("--dmac {text:?}: expected a MAC address such as 02:00:00:00:00:01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_a_list_or_a_range() {
        let read_rates = |text: &str| read_rates("--flows-per-second", text, "10k..140k/10k");
        assert_eq!(read_rates("10k..40k/10k").unwrap(), [10_000, 20_000, 30_000, 40_000]);
        assert_eq!(read_rates("1k,1.5k,1M").unwrap(), [1_000, 1_500, 1_000_000]);
        for wrong in ["", "10k..", "2k,1k", "10k..1k/1k", "0", "1..1M/1", "1.5", "1k..2k/0"] {
            assert!(read_rates(wrong).unwrap_err().contains("10k..140k/10k"), "{wrong}");
        }
    }

    #[test]
    fn collector_may_be_in_a_namespace() {
        let read_collector = |text: &str| read_socket("--collector", text);
        let (namespace, address) = read_collector("netns/lab:192.0.2.1:2055").unwrap();
        assert_eq!(namespace, Namespace::Named("lab".into()));
        assert_eq!(address, "192.0.2.1:2055".parse().unwrap());
        assert_eq!(read_collector("[::1]:9995").unwrap().0, Namespace::Current);
        for wrong in ["2055", "netns/lab", "192.0.2.1", "lab:1"] {
            assert!(read_collector(wrong).unwrap_err().contains("--collector"), "{wrong}");
        }
    }

    #[test]
    fn mac_has_six_bytes() {
        assert_eq!(read_mac("02:00:00:00:00:0a").unwrap(), [2, 0, 0, 0, 0, 10]);
        assert!(read_mac("02:00:00:00:00").is_err() && read_mac("2:0:0:0:0:1").is_err());
    }
}
