//! Parameters of MLRsearch.

use serde::Deserialize;
use wirestorm_method::mlrsearch::Mlrsearch;
use wirestorm_method::rfc2544::FRAME_SIZES;
use wirestorm_method::search::classification::Goal;
use wirestorm_plan::traffic::parse_time;

use super::paths::Links;
use super::value::{ParameterError, frame_sizes, of, one_or_many, parse_load, protocols, time};

/// Parameters of MLRsearch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlrsearchParameters {
    /// Search goals: names, or attributes such as `final=60s,sum=60s,loss=0%,exceed=0`.
    #[serde(deserialize_with = "one_or_many")]
    pub goal: Vec<String>,
    /// Smallest load, such as `1kpps`; `None`: 1/10,000 of the largest.
    pub min_load: Option<String>,
    /// Maximum duration of all trials of one search.
    pub search_max: String,
    /// Frame sizes in bytes with FCS.
    #[serde(deserialize_with = "one_or_many")]
    pub frame_sizes: Vec<u32>,
    /// Protocols: `ipv4`, `ipv6`.
    #[serde(deserialize_with = "one_or_many")]
    pub traffic: Vec<String>,
}

impl Default for MlrsearchParameters {
    fn default() -> Self {
        Self {
            goal: vec!["rfc2544".to_owned()],
            min_load: None,
            search_max: "30min".to_owned(),
            frame_sizes: FRAME_SIZES.to_vec(),
            traffic: vec!["ipv4".to_owned()],
        }
    }
}

impl MlrsearchParameters {
    /// Returns the method for these links.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn method(&self, links: Links) -> Result<Mlrsearch, ParameterError> {
        if self.goal.is_empty() {
            return Err(ParameterError::new("goal", ": expected at least one goal"));
        }
        let goals = self.goal.iter().map(|text| parse_goal(text)).collect();
        let min_load = self.min_load.as_deref().map(parse_load).transpose();
        Ok(Mlrsearch {
            goals: of("goal", goals)?,
            traffic: protocols(&self.traffic)?,
            frame_sizes: frame_sizes(&self.frame_sizes)?,
            link_bps: links.bps,
            load_max: links.load_max,
            load_min: of("min_load", min_load)?,
            search_max: time("search_max", &self.search_max)?,
        })
    }
}

/// Parses a search goal.
fn parse_goal(text: &str) -> Result<Goal, String> {
    if let Some(goal) = Goal::preset(text) {
        return Ok(goal);
    }
    let wrong = |message: &str| {
        format!(
            "{text:?}: {message}; expected rfc2544, tst009, ndr, pdr, or attributes such as \
             final=60s,sum=60s,loss=0%,exceed=0"
        )
    };
    let fraction = |value: &str| {
        let (number, scale) = match value.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (value, 1.0),
        };
        number.parse::<f64>().ok().map(|number| number / scale)
    };
    let mut goal = Goal { name: text.to_owned(), ..Goal::rfc2544() };
    let mut sum = None;
    for attribute in text.split(',') {
        let Some((key, value)) = attribute.split_once('=') else {
            return Err(wrong(&format!("found {attribute:?}")));
        };
        let time = || {
            let wrong = || wrong(&format!("{key} is {value:?}, not a time with its unit"));
            parse_time(value).ok_or_else(wrong)
        };
        let ratio = |most: f64| {
            let ratio = fraction(value).filter(|ratio| (0.0..most).contains(ratio));
            ratio.ok_or_else(|| wrong(&format!("{key} is {value:?}, not a ratio below {most}")))
        };
        match key {
            "final" => goal.final_trial = time()?,
            "sum" => sum = Some(time()?),
            "initial" => goal.initial_trial = time()?,
            "loss" => goal.loss_ratio = ratio(1.0)?,
            "exceed" => goal.exceed_ratio = ratio(1.0)?,
            "width" => {
                goal.width = ratio(1.0)?;
                if goal.width <= 0.0 {
                    return Err(wrong("the width is 0"));
                }
            }
            "name" => value.clone_into(&mut goal.name),
            _ => return Err(wrong(&format!("{key:?} is no attribute"))),
        }
    }
    goal.duration_sum = sum.unwrap_or(goal.final_trial);
    goal.initial_trial = goal.initial_trial.min(goal.final_trial);
    Ok(goal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_base::time::Duration;

    #[test]
    fn goals_are_presets_or_attributes() {
        assert!(parse_goal("rfc2544").unwrap().is_rfc2544());
        let goal = parse_goal("final=10s,sum=30s,loss=0.1%,exceed=0.5,name=mine").unwrap();
        assert_eq!((&*goal.name, goal.loss_ratio, goal.exceed_ratio), ("mine", 0.001, 0.5));
        assert_eq!(goal.duration_sum, Duration::from_secs(30));
        for wrong in ["ndrr", "final=x", "loss=1", "loss=2%,width=0", "exceed=-1", "depth=3"] {
            assert!(parse_goal(wrong).unwrap_err().contains("expected rfc2544"), "{wrong}");
        }
    }
}
