//! Parameters of MLRsearch.

use schemars::JsonSchema;
use serde::Deserialize;
use wirestorm_method::mlrsearch::Mlrsearch;
use wirestorm_method::rfc2544::FRAME_SIZES;
use wirestorm_method::search::classification::Goal;
use wirestorm_plan::traffic::parse_time;

use super::paths::Links;
use super::schema;
use super::value::{
    ParameterError, check_duration, duration, frame_sizes, of, one_or_many, parse_load, protocols,
};

/// Goals of a search: each trial is classified for each of them.
const GOALS_MAX: usize = 16;

/// Parameters of MLRsearch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MlrsearchParameters {
    /// Search goals: `rfc2544`, `tst009`, `ndr`, `pdr`, or attributes such as
    /// `final=60s,sum=60s,loss=0%,exceed=0`.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::texts")]
    pub goal: Vec<String>,
    /// Smallest load, such as `1kpps`. Default: 1/10,000 of the largest.
    pub min_load: Option<String>,
    /// Maximum duration of all trials of one search.
    #[schemars(schema_with = "schema::time")]
    pub search_max: String,
    /// Frame sizes in bytes with FCS.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::frame_sizes")]
    pub frame_sizes: Vec<u32>,
    /// Protocols; each is searched on its own.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::protocols")]
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
        Ok(Mlrsearch {
            goals: self.goals()?,
            traffic: protocols(&self.traffic)?,
            frame_sizes: frame_sizes(&self.frame_sizes)?,
            link_bps: links.bps,
            load_max: links.load_max,
            load_min: self.load_min(links)?,
            search_max: duration("search_max", &self.search_max)?,
        })
    }
}

impl MlrsearchParameters {
    fn goals(&self) -> Result<Vec<Goal>, ParameterError> {
        const KEY: &str = "goal";
        if self.goal.is_empty() {
            return Err(ParameterError::new(KEY, ": expected at least one goal"));
        }
        if self.goal.len() > GOALS_MAX {
            let message = format!("{} goals: expected at most {GOALS_MAX}", self.goal.len());
            return Err(ParameterError::new(KEY, message));
        }
        let mut goals: Vec<Goal> = Vec::new();
        for text in &self.goal {
            let goal = of(KEY, parse_goal(text))?;
            if goals.iter().any(|other| other.name == goal.name) {
                let message = format!("a second goal {:?}: expected unique names", goal.name);
                return Err(ParameterError::new(KEY, message));
            }
            goals.push(goal);
        }
        Ok(goals)
    }

    fn load_min(&self, links: Links) -> Result<Option<u64>, ParameterError> {
        let Some(text) = &self.min_load else { return Ok(None) };
        let load_min = of("min_load", parse_load(text))?;
        match links.load_max {
            Some(load_max) if load_min > load_max => {
                let message = format!("{text:?}: expected at most the largest load, {load_max}pps");
                Err(ParameterError::new("min_load", message))
            }
            _ => Ok(Some(load_min)),
        }
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
            let no_time = || wrong(&format!("{key} is {value:?}, not a time with its unit"));
            let time = parse_time(value).ok_or_else(no_time)?;
            check_duration(time)
                .map_err(|expected| wrong(&format!("{key} is {value:?}, {expected}")))
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
            "name" if value.is_empty() => return Err(wrong("the name is empty")),
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
        for wrong in [
            "ndrr",
            "final=x",
            "loss=1",
            "loss=2%,width=0",
            "exceed=-1",
            "depth=3",
            "sum=0s",
            "name=",
        ] {
            assert!(parse_goal(wrong).unwrap_err().contains("expected rfc2544"), "{wrong}");
        }
    }

    #[test]
    fn goals_are_unique_and_loads_in_order() {
        let links = Links { bps: 1_000_000_000, load_max: Some(1_000) };
        let method = |goal: &[&str], min_load: &str| {
            let goal = goal.iter().map(|goal| (*goal).to_owned()).collect();
            let min_load = Some(min_load.to_owned());
            let parameters = MlrsearchParameters { goal, min_load, ..Default::default() };
            parameters.method(links).map_err(|error| error.to_string())
        };
        assert_eq!(method(&["ndr", "pdr"], "1kpps").unwrap().load_min, Some(1_000));
        assert!(method(&["ndr", "ndr"], "1pps").unwrap_err().starts_with("goal: a second goal"));
        assert!(method(&["ndr"; 17], "1pps").unwrap_err().starts_with("goal: 17 goals"));
        let error = method(&["ndr"], "2kpps").unwrap_err();
        assert_eq!(error, "min_load: \"2kpps\": expected at most the largest load, 1000pps");
    }
}
