//! Parameters of a method in a document: `method`, the paths, and what the method needs.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wirestorm_method::method::Method;
use wirestorm_method::rfc2544::Test;
use wirestorm_plan::files::Files;
use wirestorm_plan::load;
use wirestorm_plan::services::{self, ServicePlan};

use super::{
    Links, MlrsearchParameters, NdrParameters, ParameterError, PathParameters, Rfc2544Parameters,
    Y1564Parameters,
};
use crate::bench::traffic::NamedTraffic;

/// A method of frames with its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchParameters {
    /// Paths of the frames.
    pub paths: PathParameters,
    /// Method.
    pub method: MethodParameters,
}

/// Parameters of a method of frames.
#[derive(Clone, Debug, PartialEq)]
pub enum MethodParameters {
    /// RFC 2544.
    Rfc2544(Box<Rfc2544Parameters>),
    /// MLRsearch.
    Mlrsearch(MlrsearchParameters),
    /// Non-drop rate.
    Ndr(NdrParameters),
    /// Ethernet services.
    Y1564(Y1564Parameters, Vec<ServicePlan>),
}

impl BenchParameters {
    /// Reads parameters. `place`: the folder of the document, and its files.
    ///
    /// # Errors
    /// A message with the key, what was found, and what is expected.
    pub fn read(document: &Value, place: (&Path, &dyn Files)) -> Result<Self, String> {
        let mut keys = document.as_object().cloned().unwrap_or_default();
        let known = "expected rfc2544, mlrsearch, ndr or y1564";
        let name = match keys.remove("method") {
            Some(Value::String(name)) => name,
            Some(other) => return Err(format!("method: found {other}, {known}")),
            None => return Err(format!("method: found nothing, {known}")),
        };
        let (of_paths, mut of_method): (Map<_, _>, Map<_, _>) =
            keys.into_iter().partition(|(key, _)| PathParameters::KEYS.contains(&key.as_str()));
        let method = match &*name {
            "rfc2544" => MethodParameters::Rfc2544(Box::new(deserialize(of_method)?)),
            "mlrsearch" => MethodParameters::Mlrsearch(deserialize(of_method)?),
            "ndr" => MethodParameters::Ndr(deserialize(of_method)?),
            "y1564" => {
                let services = read_services(of_method.remove("services"), place)?;
                MethodParameters::Y1564(deserialize(of_method)?, services)
            }
            "rfc9411" | "flow-exporter" | "collector" => {
                return Err(format!(
                    "method: found {name}, whose trials are more than frames between ports, \
                     {known}; `wirestorm bench {name}` runs it on one machine"
                ));
            }
            _ => return Err(format!("method: found {name:?}, {known}")),
        };
        let paths: PathParameters = deserialize(of_paths)?;
        if paths.tx.is_empty() {
            return Err("tx: found nothing, expected the port that sends".to_owned());
        }
        let parameters = Self { paths, method };
        // All errors before anything is asked of the ports.
        let checked = parameters.check();
        checked.map_err(|error| error.to_string())?;
        Ok(parameters)
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.paths.paths(Vec::new())?;
        self.paths.waits()?;
        let load_max = self.paths.load_max()?;
        let links = Links { bps: self.paths.link_bps()?.unwrap_or(1), load_max };
        match self.method.method(links)? {
            Method::Rfc2544(method) if method.tests.contains(&Test::Reset) => {
                let message = "reset: expected the others, since nothing resets the device between \
                               the machines of a test";
                Err(ParameterError::new("tests", message))
            }
            _ => Ok(()),
        }
    }
}

impl MethodParameters {
    /// Returns the method for these links.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn method(&self, links: Links) -> Result<Method, ParameterError> {
        match self {
            Self::Rfc2544(parameters) => parameters.method(links).map(Method::Rfc2544),
            Self::Mlrsearch(parameters) => parameters.method(links).map(Method::Mlrsearch),
            Self::Ndr(parameters) => parameters.method(links).map(Method::Ndr),
            Self::Y1564(parameters, services) => {
                parameters.method(services.clone()).map(Method::Y1564)
            }
        }
    }

    /// Returns whether the loads depend on the speed of the links.
    pub const fn needs_link_speed(&self) -> bool {
        !matches!(self, Self::Y1564(..))
    }

    /// Returns the traffic that trials of the method refer to by name.
    pub fn traffic(method: &Method) -> NamedTraffic {
        match method {
            Method::Y1564(method) => Y1564Parameters::traffic(method),
            _ => NamedTraffic::new(),
        }
    }
}

/// Reads services: a file, or a list as in a file.
fn read_services(
    services: Option<Value>,
    (folder, files): (&Path, &dyn Files),
) -> Result<Vec<ServicePlan>, String> {
    let text = match services {
        Some(Value::String(path)) => load::read_text(&folder.join(path), files)
            .map_err(|error| format!("services: {error}"))?,
        Some(list @ Value::Array(_)) => json!({"services": list}).to_string(),
        _ => return Err("services: expected a list of services, or a file with one".to_owned()),
    };
    // The errors name the place in the list.
    services::parse(&text).map_err(|errors| errors.to_string())
}

/// Deserialises parameters, which all have a default. An error names the key.
fn deserialize<T: DeserializeOwned>(keys: Map<String, Value>) -> Result<T, String> {
    for (key, value) in &keys {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        let read = serde_json::from_value::<T>(Value::Object(alone));
        read.map_err(|error| format!("{key}: {error}"))?;
    }
    serde_json::from_value(Value::Object(keys)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::HostFiles;

    fn read(mut more: Value) -> Result<BenchParameters, String> {
        for (key, value) in [("method", "rfc2544"), ("tx", "a"), ("rx", "b")] {
            if more.get(key).is_none() {
                more[key] = json!(value);
            }
        }
        BenchParameters::read(&more, (Path::new("."), &HostFiles))
    }

    #[test]
    fn keys_are_those_of_the_flags() {
        let parameters = read(json!({
            "tests": "throughput",
            "frame_sizes": [64, 1518],
            "trial": "2s",
            "settle": "0s",
            "no_learning": true,
            "max_load": "1kpps",
            "link_speed": "1G",
        }));
        let parameters = parameters.unwrap();
        assert_eq!(
            (&parameters.paths.tx[..], &parameters.paths.rx[..]),
            (&["a".to_owned()][..], &["b".to_owned()][..])
        );
        assert_eq!(parameters.paths.load_max(), Ok(Some(1_000)));
        let links = Links { bps: parameters.paths.link_bps().unwrap().unwrap(), load_max: None };
        let Ok(Method::Rfc2544(method)) = parameters.method.method(links) else { panic!() };
        assert_eq!((&method.frame_sizes[..], method.link_bps), (&[64, 1518][..], 1_000_000_000));
        assert_eq!(method.intermediate.as_secs_f64(), 2.0);
        assert!(matches!(
            read(json!({"method": "mlrsearch", "goal": ["pdr", "ndr"]})).unwrap().method,
            MethodParameters::Mlrsearch(MlrsearchParameters { goal, .. }) if goal.len() == 2
        ));
        assert!(read(json!({"method": "ndr", "pdr": 0})).is_ok());
        let services = json!([{"name": "voice", "cir": "2M", "vlan": 100}]);
        let voice = read(json!({"method": "y1564", "services": services, "step": "1s"})).unwrap();
        let method = voice.method.method(links).unwrap();
        assert!(MethodParameters::traffic(&method).contains_key("voice"));
    }

    #[test]
    fn errors_name_the_key() {
        for (wrong, expected) in [
            (json!({"method": "rfc9411"}), "method: found rfc9411"),
            (json!({"method": "y1564"}), "services: expected a list"),
            (json!({"method": "y1564", "services": [{"name": "a"}]}), "services[0]"),
            (json!({"method": "rfc2545"}), "method: found \"rfc2545\", expected rfc2544"),
            (json!({"trial": "2"}), "trial: \"2\": expected a time"),
            (json!({"settle": 0}), "settle: invalid type: integer"),
            (json!({"frame_sizes": [63]}), "frame_sizes: 63: expected 64 to 16384"),
            (json!({"frame_sizes": "x"}), "frame_sizes: invalid type"),
            (json!({"traffic": "ipx"}), "traffic: \"ipx\": expected ipv4 or ipv6"),
            (json!({"goal": "pdr"}), "goal: unknown field"),
            (json!({"rx": ["b", "c"]}), "rx: \"b,c\": expected one for each tx"),
            (json!({"tx": []}), "tx: found nothing"),
            (json!({"tests": ["jitter"]}), "tests: \"jitter\": expected all"),
            (json!({"tests": "all"}), "tests: reset: expected the others"),
            (json!({"resolution": 60}), "resolution: 60: expected percent"),
            (json!({"flows": 0}), "flows: 0: expected 1 to"),
            (json!({"max_load": "1M"}), "max_load: \"1M\": expected frames"),
            (json!({"method": "mlrsearch", "goal": "best"}), "goal: \"best\""),
            (
                json!({"method": "mlrsearch", "min_load": "2kpps", "max_load": "1kpps"}),
                "min_load: \"2kpps\": expected at most",
            ),
            (json!({"method": "ndr", "latency_tolerance": 1}), "latency_tolerance: has no effect"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
