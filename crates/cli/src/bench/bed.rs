//! Flags for the test bed: interfaces, addresses, waits.

use std::net::IpAddr;
use std::process::Command;

use clap::Args;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::time::Duration;
use wirestorm_control::bench::{
    InterfaceAddress, Links, ParameterError, PathParameters, Reset, TestBed, parse_wait,
};
use wirestorm_control::method::device::DeviceModel;
use wirestorm_control::plan::replay::parse_catch_up;

/// Flags for the test bed, which all methods share.
#[derive(Args, Debug)]
#[command(next_help_heading = "Test bed")]
pub(super) struct BedFlags {
    /// Interface that sends; repeat --tx and --rx for several pairs
    #[arg(long, value_name = "INTERFACE", required_unless_present = "simulate")]
    tx: Vec<String>,

    /// Interface that receives, for each --tx
    #[arg(long, value_name = "INTERFACE", required_unless_present = "simulate")]
    rx: Vec<String>,

    /// Send in both directions
    #[arg(long)]
    bidirectional: bool,

    /// Address of an interface, and its router: eth1=198.18.0.2/24,198.18.0.1
    ///
    /// For a device that routes. Repeat it for each interface, and for IPv6. Without an address,
    /// frames go to the MAC address of the other interface, as a bridge needs it.
    #[arg(long, value_name = "INTERFACE=ADDRESS[,ROUTER]")]
    address: Vec<String>,

    /// UDP flows in each direction
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=16_384))]
    flows: u32,

    /// Speed of the links, such as 10G, if the drivers do not report it
    #[arg(long, value_name = "SPEED")]
    link_speed: Option<String>,

    /// Largest load of each interface, such as 1Mpps; default: the line rate
    #[arg(long, value_name = "RATE")]
    pub(super) max_load: Option<String>,

    /// Wait after each trial, until the device has settled
    #[arg(long, value_name = "TIME", default_value = "5s")]
    settle: String,

    /// Wait after the learning frames before each trial
    #[arg(long, value_name = "TIME", default_value = "2s")]
    learning_wait: String,

    /// Send no learning frames
    #[arg(long)]
    no_learning: bool,

    /// Backend that sends and receives frames
    #[arg(long, value_parser = crate::backend::both_ways(), default_value = "auto")]
    backend: Backend,

    /// Number of sending threads, each with its own queue
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,

    /// Late frames: bounded:MS, bounded:unlimited, strict:MS or stretch
    #[arg(long, value_name = "POLICY", default_value = "bounded")]
    catch_up: String,

    /// Send even on the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Command that resets the device, for the reset test
    #[arg(long, value_name = "COMMAND")]
    pub(super) reset_command: Option<String>,

    /// Simulate a device: frames_per_second=1e6,queue=1000
    ///
    /// Keys: frames_per_second, bits_per_second, police_bps, queue, drops_each, noise, noise_frames,
    /// overload_capacity, overload_s, has_hysteresis, pause_s, reset_s, delay_ns, generator_max,
    /// seed; for connections connections_per_second, transactions_per_second,
    /// concurrent_connections, reset_ratio, rate_variation.
    #[arg(long, value_name = "LIMITS", conflicts_with_all = ["tx", "rx", "address"])]
    simulate: Option<String>,
}

impl BedFlags {
    /// Returns the interfaces.
    pub(super) fn interfaces(&self) -> Vec<String> {
        self.tx.iter().chain(&self.rx).cloned().collect()
    }

    /// Returns whether a simulated device replaces interfaces.
    pub(super) const fn is_simulated(&self) -> bool {
        self.simulate.is_some()
    }

    /// Returns the model of the simulated device; `None` without simulation.
    pub(super) fn simulated(&self) -> Result<Option<DeviceModel>, String> {
        self.simulate.as_deref().map(read_model).transpose()
    }

    /// Returns the time between two trials in seconds.
    pub(super) fn waits_s(&self) -> Result<f64, String> {
        if self.is_simulated() {
            return Ok(0.0);
        }
        let waits = self.parameters().waits();
        waits.map(|waits| waits.total().as_secs_f64()).map_err(|error| error.of_flag())
    }

    /// Returns the time between two trials in seconds that send no learning frames.
    pub(super) fn settle_s(&self) -> Result<f64, String> {
        if self.is_simulated() {
            return Ok(0.0);
        }
        let waits = self.parameters().waits();
        waits.map(|waits| waits.settle.as_secs_f64()).map_err(|error| error.of_flag())
    }

    /// Returns the parameters of the paths of frames.
    pub(super) fn parameters(&self) -> PathParameters {
        PathParameters {
            tx: self.tx.clone(),
            rx: self.rx.clone(),
            bidirectional: self.bidirectional,
            flows: self.flows,
            link_speed: self.link_speed.clone(),
            max_load: self.max_load.clone(),
            settle: self.settle.clone(),
            learning_wait: self.learning_wait.clone(),
            no_learning: self.no_learning,
        }
    }

    /// Returns the test bed.
    pub(super) fn test_bed(&self) -> Result<TestBed, String> {
        let of_flag = |error: ParameterError| error.of_flag();
        let parameters = self.parameters();
        let bed = TestBed {
            paths: parameters.paths(self.addresses()?).map_err(of_flag)?,
            backend: self.backend,
            workers: self.workers,
            policy: parse_catch_up(&self.catch_up)
                .map_err(|error| format!("--catch-up {error}"))?,
            waits: parameters.waits().map_err(of_flag)?,
            force_interface: self.force_interface,
        };
        let names = bed.interfaces();
        match bed.paths.addresses.iter().find(|address| !names.contains(&&*address.interface)) {
            Some(address) => Err(format!(
                "--address {}: the interfaces are {}",
                address.interface,
                names.join(", ")
            )),
            None => Ok(bed),
        }
    }

    /// Returns the function that runs the reset command; `None` without one.
    pub(super) fn reset(&self) -> Result<Option<Reset>, String> {
        let Some(command) = self.reset_command.clone() else { return Ok(None) };
        Ok(Some(Box::new(move || {
            let status = Command::new("/bin/sh").args(["-c", &command]).status();
            match status {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("--reset-command {command:?}: {status}")),
                Err(error) => Err(format!("--reset-command {command:?}: {error}")),
            }
        })))
    }

    fn addresses(&self) -> Result<Vec<InterfaceAddress>, String> {
        self.address.iter().map(|text| read_address("--address", text)).collect()
    }

    /// Returns the speed of the links, and the largest load on them.
    pub(super) fn links(&self) -> Result<Links, String> {
        let parameters = self.parameters();
        let load_max = parameters.load_max().map_err(|error| error.of_flag())?;
        let bps = match parameters.link_bps().map_err(|error| error.of_flag())? {
            Some(bps) => bps,
            None if self.is_simulated() => 10_000_000_000,
            None => self.test_bed()?.link_bps().ok_or(
                "the drivers do not report the speed of the links; give it, as in --link-speed 10G",
            )?,
        };
        Ok(Links { bps, load_max })
    }
}

/// Parses the limits of a simulated device.
pub(super) fn read_model(text: &str) -> Result<DeviceModel, String> {
    let mut fields = serde_json::Map::new();
    for field in text.split(',').filter(|field| !field.is_empty()) {
        let number = field.split_once('=').and_then(|(key, value)| {
            let value = serde_json::from_str::<serde_json::Value>(value).ok()?;
            Some((key.to_owned(), whole(value)))
        });
        let (key, value) = number.ok_or_else(|| {
            format!("--simulate {field:?}: expected KEY=NUMBER, such as queue=1000")
        })?;
        fields.insert(key, value);
    }
    let model = serde_json::from_value(fields.into());
    model.map_err(|error| format!("--simulate {text:?}: {error}"))
}

/// Parses a time that may be zero.
pub(super) fn read_wait(option: &str, text: &str) -> Result<Duration, String> {
    parse_wait(text).map_err(|error| format!("{option} {error}"))
}

/// Converts a whole float, such as 1e6, to an integer, which integer fields need. Other fields
/// accept both.
fn whole(value: serde_json::Value) -> serde_json::Value {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && (0.0..1e15).contains(&number) => {
            (number as u64).into()
        }
        _ => value,
    }
}

pub(super) fn read_address(option: &str, text: &str) -> Result<InterfaceAddress, String> {
    let address = text.split_once('=').and_then(|(interface, rest)| {
        let (network, gateway) = match rest.split_once(',') {
            Some((network, gateway)) => (network, Some(gateway.parse::<IpAddr>().ok()?)),
            None => (rest, None),
        };
        let (address, prefix) = network.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let prefix_max = if address.is_ipv6() { 128 } else { 32 };
        let is_valid = prefix <= prefix_max
            && gateway.is_none_or(|gateway| gateway.is_ipv6() == address.is_ipv6());
        let interface = interface.to_owned();
        is_valid.then_some(InterfaceAddress { interface, address, prefix, gateway })
    });
    address.ok_or_else(|| {
        format!(
            "{option} {text:?}: expected INTERFACE=ADDRESS/PREFIX[,ROUTER], such as \
             eth1=198.18.0.2/24,198.18.0.1"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_interface_the_network_and_the_router() {
        let address = read_address("--address", "netns/a:veth0=198.18.0.2/24,198.18.0.1").unwrap();
        assert_eq!(address.interface, "netns/a:veth0");
        assert_eq!((address.prefix, address.gateway), (24, Some([198, 18, 0, 1].into())));
        assert_eq!(read_address("--address", "eth1=2001:2::2/64").unwrap().gateway, None);
        for wrong in ["eth1", "eth1=198.18.0.2", "eth1=198.18.0.2/33", "eth1=198.18.0.2/24,fe80::1"]
        {
            assert!(
                read_address("--address", wrong).unwrap_err().contains("INTERFACE=ADDRESS"),
                "{wrong}"
            );
        }
    }
}
