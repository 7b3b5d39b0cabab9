//! Parameters of the paths of frames, which all methods share.

use serde::Deserialize;
use wirestorm_base::rate::Rate;

use super::super::test_bed::{InterfaceAddress, Paths, PortPair, Waits};
use super::value::{ParameterError, in_range, of, one_or_many, parse_load, parse_wait};

/// Speed of links, and the largest load on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// Speed in bit/s of layer 1.
    pub bps: u64,
    /// Largest load in frames per second of each interface; `None`: the line rate.
    pub load_max: Option<u64>,
}

/// Parameters of the paths of frames.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathParameters {
    /// Ports that send.
    #[serde(deserialize_with = "one_or_many")]
    pub tx: Vec<String>,
    /// Ports that receive, one for each that sends.
    #[serde(deserialize_with = "one_or_many")]
    pub rx: Vec<String>,
    /// Whether both ports of a pair send.
    pub bidirectional: bool,
    /// UDP flows in each direction.
    pub flows: u32,
    /// Speed of the links; `None` for the one that the drivers report.
    pub link_speed: Option<String>,
    /// Largest load of each port; `None` for the line rate.
    pub max_load: Option<String>,
    /// Wait after each trial.
    pub settle: String,
    /// Wait after the learning frames before each trial.
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
        let pair = |(tx, rx): (&String, &String)| PortPair { tx: tx.clone(), rx: rx.clone() };
        Ok(Paths {
            pairs: self.tx.iter().zip(&self.rx).map(pair).collect(),
            is_bidirectional: self.bidirectional,
            addresses,
            flows: in_range("flows", self.flows, &(1..=16_384))?,
        })
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
        let speed = Rate::parse_per_second(text, 1)
            .map_err(|error| format!("{text:?}: {error}; expected bits a second, such as 10G"));
        Ok(Some(of("link_speed", speed)?.per_second() as u64))
    }

    /// Returns the largest load in frames per second; `None` for the line rate.
    ///
    /// # Errors
    /// The parameter has a wrong value.
    pub fn load_max(&self) -> Result<Option<u64>, ParameterError> {
        of("max_load", self.max_load.as_deref().map(parse_load).transpose())
    }
}
