//! Changes of a configuration: `PATCH /config`, `/config/append` and `/config/delete`.
//!
//! All or nothing: with an error, the configuration stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::lower::ConfigError;
use crate::proto::config_append_resources::choice::Enum as Appended;
use crate::proto::config_delete_resources::choice::Enum as Deleted;
use crate::proto::config_update::choice::Enum as Updates;
use crate::proto::flows_update::property_names::Enum as Property;
use crate::proto::{Config, ConfigAppend, ConfigDelete, ConfigUpdate};

/// A changed configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Updated {
    /// The new configuration.
    pub config: Config,
    /// Indices of the flows whose rate or size changed. They keep sending.
    pub flows: Vec<usize>,
}

/// Replaces the rates and sizes of flows.
///
/// # Errors
/// If a flow does not exist, or the update is not one of flows.
pub fn update(config: &Config, update: &ConfigUpdate) -> Result<Updated, Vec<ConfigError>> {
    let (Updates::Flows, Some(update)) = (update.choice(), &update.flows) else {
        return Err(vec![error("", "found no flows: only flows can be updated")]);
    };
    let known = names(config);
    let mut errors = Vec::new();
    let mut updated = Updated { config: config.clone(), flows: Vec::new() };
    let properties: Vec<Property> = update.property_names().collect();
    if properties.is_empty() {
        errors.push(error("flows.property_names", "found none, expected rate or size"));
    }
    for (index, new) in update.flows.iter().enumerate() {
        let Some(&place) = known.get(new.name()) else {
            errors.push(unknown(&format!("flows.flows[{index}].name"), new.name()));
            continue;
        };
        let flow = &mut updated.config.flows[place];
        for property in &properties {
            match property {
                Property::Rate => flow.rate = new.rate,
                Property::Size => flow.size.clone_from(&new.size),
                Property::Unspecified => {}
            }
        }
        updated.flows.push(place);
    }
    if errors.is_empty() { Ok(updated) } else { Err(errors) }
}

/// Adds flows at the end.
///
/// # Errors
/// If a name is in use.
pub fn append(config: &Config, append: &ConfigAppend) -> Result<Config, Vec<ConfigError>> {
    let mut new = config.clone();
    let mut used: BTreeSet<String> = names(config).into_keys().map(str::to_owned).collect();
    let mut errors = Vec::new();
    for (index, resources) in append.config_append_list.iter().enumerate() {
        let path = format!("config_append_list[{index}]");
        if resources.choice() != Appended::Flows {
            errors.push(error(&path, "found no flows: only flows can be appended"));
            continue;
        }
        for (index, flow) in resources.flows.iter().enumerate() {
            if !used.insert(flow.name().to_owned()) {
                let message = format!("found {:?}, which is a flow already", flow.name());
                errors.push(error(&format!("{path}.flows[{index}].name"), message));
            }
            new.flows.push(flow.clone());
        }
    }
    if errors.is_empty() { Ok(new) } else { Err(errors) }
}

/// Removes flows.
///
/// # Errors
/// If a flow does not exist.
pub fn delete(config: &Config, delete: &ConfigDelete) -> Result<Config, Vec<ConfigError>> {
    let known = names(config);
    let mut removed = BTreeSet::new();
    let mut errors = Vec::new();
    for (index, resources) in delete.config_delete_list.iter().enumerate() {
        let path = format!("config_delete_list[{index}]");
        if resources.choice() != Deleted::Flows {
            errors.push(error(&path, "found no flows: only flows can be deleted"));
            continue;
        }
        for (index, name) in resources.flows.iter().enumerate() {
            match known.get(name.as_str()) {
                Some(place) => {
                    removed.insert(*place);
                }
                None => errors.push(unknown(&format!("{path}.flows[{index}]"), name)),
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut new = config.clone();
    let mut place = 0..;
    new.flows.retain(|_| place.next().is_some_and(|place| !removed.contains(&place)));
    Ok(new)
}

fn names(config: &Config) -> BTreeMap<&str, usize> {
    config.flows.iter().enumerate().map(|(index, flow)| (flow.name(), index)).collect()
}

fn error(path: &str, message: impl Into<String>) -> ConfigError {
    ConfigError { path: path.to_owned(), message: message.into() }
}

fn unknown(path: &str, name: &str) -> ConfigError {
    error(path, format!("found {name:?}, which is no flow of this configuration"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_json;

    fn flow(name: &str, more: &str) -> String {
        format!(r#"{{"name": "{name}", "tx_rx": {{"port": {{"tx_name": "p"}}}}{more}}}"#)
    }

    fn config() -> Config {
        let flows: Vec<_> = ["a", "b", "c"].map(|name| flow(name, "")).into();
        let text = format!(r#"{{"ports": [{{"name": "p"}}], "flows": [{}]}}"#, flows.join(","));
        from_json(&text).unwrap().0
    }

    fn flow_names(config: &Config) -> Vec<&str> {
        config.flows.iter().map(|flow| flow.name()).collect()
    }

    fn texts(errors: &[ConfigError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_the_named_properties_change() {
        let new = flow("b", r#", "rate": {"pps": 7}, "size": {"fixed": 99}"#);
        let text = format!(r#"{{"flows": {{"property_names": ["rate"], "flows": [{new}]}}}}"#);
        let updated = update(&config(), &from_json(&text).unwrap().0).unwrap();
        assert_eq!(updated.flows, [1]);
        let flow = &updated.config.flows[1];
        assert_eq!(flow.rate.unwrap().pps, Some(7));
        assert_eq!(flow.size, None);
    }

    #[test]
    fn flows_are_appended_and_deleted_by_name() {
        let text = format!(
            r#"{{"config_append_list": [{{"choice": "flows", "flows": [{}]}}]}}"#,
            flow("d", "")
        );
        let appended = append(&config(), &from_json(&text).unwrap().0).unwrap();
        assert_eq!(flow_names(&appended), ["a", "b", "c", "d"]);
        let text = r#"{"config_delete_list": [{"choice": "flows", "flows": ["d", "a"]}]}"#;
        let deleted = delete(&appended, &from_json(text).unwrap().0).unwrap();
        assert_eq!(flow_names(&deleted), ["b", "c"]);
    }

    #[test]
    fn unknown_and_used_names_are_errors() {
        let text =
            format!(r#"{{"flows": {{"property_names": ["size"], "flows": [{}]}}}}"#, flow("x", ""));
        let errors = update(&config(), &from_json(&text).unwrap().0).unwrap_err();
        assert_eq!(
            texts(&errors),
            ["flows.flows[0].name: found \"x\", which is no flow of this configuration"]
        );
        let text = format!(
            r#"{{"config_append_list": [{{"choice": "flows", "flows": [{}]}}]}}"#,
            flow("a", "")
        );
        let errors = append(&config(), &from_json(&text).unwrap().0).unwrap_err();
        assert_eq!(
            texts(&errors),
            ["config_append_list[0].flows[0].name: found \"a\", which is a flow already"]
        );
        let text = r#"{"config_delete_list": [{"choice": "flows", "flows": ["x"]}]}"#;
        let errors = delete(&config(), &from_json(text).unwrap().0).unwrap_err();
        assert_eq!(
            texts(&errors),
            ["config_delete_list[0].flows[0]: found \"x\", which is no flow of this configuration"]
        );
    }
}
