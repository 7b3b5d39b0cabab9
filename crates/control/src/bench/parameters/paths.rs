//! Parameters of the paths of frames, which all methods share.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use wirestorm_base::rate::Rate;

use super::super::test_bed::{InterfaceAddress, Paths, PortPair, Waits};
use super::schema;
use super::value::{ParameterError, in_range, of, one_or_many, parse_load, parse_wait};

/// Speed of links, and the largest load on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// Speed in bit/s of layer 1.
    pub bps: u64,
    /// Largest load in frames per second of each interface; `None`: the line rate.
    pub load_max: Option<u64>,
}

/// UDP flows in each direction: their source ports end below 65,536.
const FLOWS: RangeInclusive<u32> = 1..=16_384;
/// Pairs of ports: each has a network of its own in 198.18.0.0/15.
const PAIRS_MAX: usize = 256;

/// Parameters of the paths of frames.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathParameters {
    /// Ports that send, each once.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::texts")]
    pub tx: Vec<String>,
    /// Ports that receive, one for each that sends.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::texts")]
    pub rx: Vec<String>,
    /// Whether both ports of a pair send.
    pub bidirectional: bool,
    /// UDP flows in each direction.
    #[schemars(range(min = *FLOWS.start(), max = *FLOWS.end()))]
    pub flows: u32,
    /// Speed of the links in bit/s, such as `10G`. Default: the slowest that the drivers report.
    pub link_speed: Option<String>,
    /// Largest load of each port, such as `1Mpps`. Default: the line rate.
    pub max_load: Option<String>,
    /// Wait after each trial.
    #[schemars(schema_with = "schema::wait")]
    pub settle: String,
    /// Wait after the learning frames before each trial.
    #[schemars(schema_with = "schema::wait")]
    pub learning_wait: String,
    /// Whether no learning frames are sent.
    pub no_learning: bool,
}

impl Default for PathParameters {
    fn default() -> Self {
        Self {
            tx: Vec::new(),
            rx: Vec::new(),
            bidirectional: false,
            flows: 1,
            link_speed: None,
            max_load: None,
            settle: "5s".to_owned(),
            learning_wait: "2s".to_owned(),
            no_learning: false,
        }
    }
}

impl PathParameters {
    /// Keys.
    pub(super) const KEYS: [&str; 9] = [
        "tx",
        "rx",
        "bidirectional",
        "flows",
        "link_speed",
        "max_load",
        "settle",
        "learning_wait",
        "no_learning",
    ];

    /// Returns the paths between ports with these addresses.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn paths(&self, addresses: Vec<InterfaceAddress>) -> Result<Paths, ParameterError> {
        if self.tx.len() != self.rx.len() {
            let (tx, rx) = (self.tx.join(","), self.rx.join(","));
            let message = format!("{rx:?}: expected one for each tx, which are {tx:?}");
            return Err(ParameterError::new("rx", message));
        }
        if self.tx.len() > PAIRS_MAX {
            let message = format!("{} ports: expected at most {PAIRS_MAX}", self.tx.len());
            return Err(ParameterError::new("tx", message));
        }
        self.check_senders()?;
        let pair = |(tx, rx): (&String, &String)| PortPair { tx: tx.clone(), rx: rx.clone() };
        Ok(Paths {
            pairs: self.tx.iter().zip(&self.rx).map(pair).collect(),
            is_bidirectional: self.bidirectional,
            addresses,
            flows: in_range("flows", self.flows, &FLOWS)?,
        })
    }

    /// Checks that each port sends for one pair: the load of a method is that of a port.
    fn check_senders(&self) -> Result<(), ParameterError> {
        let senders = self.tx.iter().map(|name| ("tx", name));
        let back = self.rx.iter().filter(|_| self.bidirectional).map(|name| ("rx", name));
        let mut seen = BTreeSet::new();
        for (key, name) in senders.chain(back) {
            if !seen.insert(name) {
                let message = format!("{name:?} again: expected ports that send for one pair each");
                return Err(ParameterError::new(key, message));
            }
        }
        Ok(())
    }

    /// Returns the waits around a trial.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn waits(&self) -> Result<Waits, ParameterError> {
        Ok(Waits {
            sends_learning_frames: !self.no_learning,
            learning: of("learning_wait", parse_wait(&self.learning_wait))?,
            settle: of("settle", parse_wait(&self.settle))?,
        })
    }

    /// Returns the speed of the links in bit/s of layer 1; `None` for the one that the drivers report.
    ///
    /// # Errors
    /// The parameter has a wrong value.
    pub fn link_bps(&self) -> Result<Option<u64>, ParameterError> {
        let Some(text) = &self.link_speed else { return Ok(None) };
        let wrong = |reason: &dyn Display| {
            format!("{text:?}: {reason}; expected bits a second, such as 10G")
        };
        let speed = Rate::parse_per_second(text, 1).map_err(|error| wrong(&error));
        let bps = speed.map(|speed| speed.per_second() as u64);
        let bps = bps.and_then(|bps| if bps == 0 { Err(wrong(&"less than 1")) } else { Ok(bps) });
        of("link_speed", bps).map(Some)
    }

    /// Returns the largest load in frames per second; `None` for the line rate.
    ///
    /// # Errors
    /// The parameter has a wrong value.
    pub fn load_max(&self) -> Result<Option<u64>, ParameterError> {
        of("max_load", self.max_load.as_deref().map(parse_load).transpose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(tx: &[&str], rx: &[&str], bidirectional: bool) -> Result<Paths, String> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let parameters = PathParameters {
            tx: names(tx),
            rx: names(rx),
            bidirectional,
            ..PathParameters::default()
        };
        parameters.paths(Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_port_sends_for_one_pair() {
        assert_eq!(paths(&["a", "b"], &["c", "c"], false).unwrap().pairs.len(), 2);
        let expected = "again: expected ports that send for one pair each";
        let twice = paths(&["a", "a"], &["b", "c"], false);
        assert_eq!(twice.unwrap_err(), format!("tx: \"a\" {expected}"));
        let back = paths(&["a", "b"], &["c", "c"], true);
        assert_eq!(back.unwrap_err(), format!("rx: \"c\" {expected}"));
        let names: Vec<String> = (0..=PAIRS_MAX).map(|number| format!("p{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(paths(&names[1..], &names[1..], false).is_ok());
        assert_eq!(
            paths(&names, &names, false).unwrap_err(),
            "tx: 257 ports: expected at most 256"
        );
    }

    #[test]
    fn speed_of_links_is_at_least_a_bit_a_second() {
        let speed = |text: &str| {
            let link_speed = Some(text.to_owned());
            PathParameters { link_speed, ..PathParameters::default() }.link_bps()
        };
        assert_eq!(speed("2.5G"), Ok(Some(2_500_000_000)));
        for wrong in ["0.4", "0", "fast"] {
            let error = speed(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("link_speed: {wrong:?}: ")), "{error}");
        }
    }
}
