//! Services of an activation test, in YAML or JSON: bandwidth profiles and acceptance criteria.
//!
//! ```yaml
//! services:
//!   - name: voice
//!     cir: 2M
//!     frame_size: 256
//!     vlan: 100
//!     ftd: 5ms
//! ```

use serde_json::{Value, json};
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;

use crate::document;
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::schema::{
    any_of, described, integer, list, matches_nothing, number_or_zero, object, pattern, text, time,
};
use crate::document::time::read_time;
use crate::document::value_at::{Fields, ValueAt};
use crate::traffic::FRAME_WITH_FCS_MAX;

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServicePlan {
    /// Name in results.
    pub name: String,
    /// Whether the frames are IPv6.
    pub is_ipv6: bool,
    /// Frame sizes in bytes with FCS; at least one.
    pub frame_sizes: Vec<u32>,
    /// VLAN ID.
    pub vlan: Option<u16>,
    /// Priority of the tag (PCP).
    pub pcp: u8,
    /// DSCP.
    pub dscp: u8,
    /// Committed information rate in bit/s of layer 2.
    pub cir_bps: u64,
    /// Excess information rate in bit/s of layer 2.
    pub eir_bps: u64,
    /// Committed burst size in bytes; 0 if it is unknown.
    pub cbs_bytes: u64,
    /// Excess burst size in bytes; 0 if it is unknown.
    pub ebs_bytes: u64,
    /// Largest frame loss ratio, 0 to 1.
    pub flr: f64,
    /// Largest frame transfer delay.
    pub ftd: Option<Duration>,
    /// Largest frame delay variation.
    pub fdv: Option<Duration>,
    /// Smallest availability, 0 to 1.
    pub availability: Option<f64>,
}

const FILE: [&str; 1] = ["services"];
/// Fields of a service.
pub const SERVICE: [&str; 14] = [
    "name",
    "protocol",
    "frame_size",
    "vlan",
    "pcp",
    "dscp",
    "cir",
    "eir",
    "cbs",
    "ebs",
    "flr",
    "ftd",
    "fdv",
    "availability",
];
/// Largest number of services: more do not fit the table of a report.
const SERVICES_MAX: usize = 64;
/// Frame size with FCS without `frame_size`.
const FRAME_SIZE: u32 = 512;
/// Smallest frame of Ethernet with FCS.
const FRAME_SIZE_MIN: u64 = 64;
/// Smallest IPv6 frame with FCS that holds UDP and the signature of a measured frame.
const IPV6_FRAME_SIZE_MIN: u64 = 84;
/// Bytes of a VLAN tag.
const TAG: u64 = 4;
/// Largest burst size in bytes.
const BURST_MAX: u64 = 1 << 40;

/// Reads services.
///
/// # Errors
/// Returns all errors, each with its path.
pub fn parse(text: &str) -> Result<Vec<ServicePlan>, PlanErrors> {
    let document = document::read(text)?;
    let root = ValueAt::root(&document);
    let list = root.fields(&FILE)?.required("services", "a list of services")?;
    let items = list.items("services")?;
    if items.is_empty() || items.len() > SERVICES_MAX {
        let found = format!("{} services", items.len());
        return Err(list.error(found, format!("1 to {SERVICES_MAX}")).into());
    }
    let mut problems = ErrorCollector::default();
    let mut services: Vec<ServicePlan> = Vec::new();
    for item in items {
        let Some(service) = problems.take(read_service(&item)) else { continue };
        if services.iter().any(|other| other.name == service.name) {
            let found = format!("a second service {:?}", service.name);
            problems.take::<()>(Err(item.error(found, "a unique name")));
        }
        services.push(service);
    }
    problems.finish(services)
}

/// Returns the JSON Schema of the value of `services` in a test: the path of a file, or a list.
pub fn schema() -> Value {
    let rate = |description| described(description, number_or_zero());
    let part = |description| {
        let text = pattern(r"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?\s*%?");
        let number = json!({"type": "number", "minimum": 0, "maximum": 1});
        described(description, any_of([number, text]))
    };
    let size = || integer(FRAME_SIZE_MIN, FRAME_WITH_FCS_MAX);
    let service = object(&SERVICE, &["name"], |name| match name {
        "name" => described("Name in results.", text()),
        "protocol" => {
            let names = json!({"enum": ["ipv4", "ipv6"]});
            described("Protocol. Default: ipv4.", names)
        }
        "frame_size" => {
            let sizes = any_of([size(), list(size())]);
            described("Frame sizes in bytes with FCS, one or a list. Default: 512.", sizes)
        }
        "vlan" => described("VLAN ID. Default: no tag.", integer(1, 4094)),
        "pcp" => described("Priority of the tag (PCP). Default: 0.", integer(0, 7)),
        "dscp" => described("DSCP. Default: 0.", integer(0, 63)),
        "cir" => rate("Committed information rate in bit/s with FCS, such as `10M`. Default: 0."),
        "eir" => rate("Excess information rate in bit/s with FCS. Default: 0."),
        "cbs" => {
            described("Committed burst size in bytes. Default: unknown.", integer(0, BURST_MAX))
        }
        "ebs" => described("Excess burst size in bytes. Default: unknown.", integer(0, BURST_MAX)),
        "flr" => part("Largest frame loss ratio, such as `0.1%`. Default: 0."),
        "ftd" => described("Largest mean frame transfer delay. Default: no limit.", time()),
        "fdv" => described(
            "Largest frame delay variation: 99.9th percentile minus minimum. Default: no limit.",
            time(),
        ),
        "availability" => part("Smallest availability, such as `99.9%`. Default: no limit."),
        _ => matches_nothing(),
    });
    let mut services = list(service);
    services["minItems"] = 1.into();
    services["maxItems"] = SERVICES_MAX.into();
    let file = described("File with such a list, relative to the test.", text());
    described("Services with their bandwidth profiles.", any_of([file, services]))
}

fn read_service(place: &ValueAt<'_>) -> Result<ServicePlan, PlanError> {
    let fields = place.fields(&SERVICE)?;
    let name = fields.required("name", "a name")?.non_empty_string("a name")?.to_owned();
    if ["ipv4", "ipv6"].contains(&&*name) {
        return Err(place.error(format!("the name {name:?}"), "a name that is no protocol"));
    }
    let is_ipv6 = match fields.get("protocol") {
        None => false,
        Some(protocol) => match protocol.text("ipv4 or ipv6")? {
            "ipv4" => false,
            "ipv6" => true,
            _ => return Err(protocol.unexpected("ipv4 or ipv6")),
        },
    };
    let number = |field: &str, least: u64, most: u64| {
        fields.get(field).map(|it| it.integer(least, most)).transpose()
    };
    let vlan = number("vlan", 1, 4094)?.map(|vlan| vlan as u16);
    let pcp = number("pcp", 0, 7)?;
    if let (Some(_), None, Some(pcp)) = (pcp, vlan, fields.get("pcp")) {
        return Err(pcp.error("a priority without a tag", "`vlan` beside it"));
    }
    let rate = |field: &str| fields.get(field).map_or(Ok(0), |it| read_rate(&it));
    let (cir_bps, eir_bps) = (rate("cir")?, rate("eir")?);
    if cir_bps == 0 && eir_bps == 0 {
        return Err(place.error("neither `cir` nor `eir`", "at least one of them"));
    }
    let time = |field: &str| fields.get(field).map(|it| read_time(&it)).transpose();
    let part = |field: &str| fields.get(field).map(|it| read_part(&it)).transpose();
    Ok(ServicePlan {
        frame_sizes: read_sizes(&fields, is_ipv6, vlan.is_some())?,
        name,
        is_ipv6,
        vlan,
        pcp: pcp.unwrap_or(0) as u8,
        dscp: number("dscp", 0, 63)?.unwrap_or(0) as u8,
        cir_bps,
        eir_bps,
        cbs_bytes: number("cbs", 0, BURST_MAX)?.unwrap_or(0),
        ebs_bytes: number("ebs", 0, BURST_MAX)?.unwrap_or(0),
        flr: part("flr")?.unwrap_or(0.0),
        ftd: time("ftd")?,
        fdv: time("fdv")?,
        availability: part("availability")?,
    })
}

fn read_sizes(fields: &Fields<'_>, is_ipv6: bool, is_tagged: bool) -> Result<Vec<u32>, PlanError> {
    let least = if is_ipv6 { IPV6_FRAME_SIZE_MIN } else { FRAME_SIZE_MIN };
    let least = if is_tagged { least + TAG } else { least };
    let read =
        |place: &ValueAt<'_>| place.integer(least, FRAME_WITH_FCS_MAX).map(|size| size as u32);
    match fields.get("frame_size") {
        None => Ok(vec![FRAME_SIZE]),
        Some(place) if place.value().is_array() => {
            let sizes: Vec<_> =
                place.items("frame sizes")?.iter().map(read).collect::<Result<_, _>>()?;
            if sizes.is_empty() {
                Err(place.unexpected("one or more frame sizes"))
            } else {
                Ok(sizes)
            }
        }
        Some(place) => Ok(vec![read(&place)?]),
    }
}

fn read_rate(place: &ValueAt<'_>) -> Result<u64, PlanError> {
    const EXPECTED: &str = "bits a second, such as 10M";
    let text = place.number_text().ok_or_else(|| place.unexpected(EXPECTED))?;
    if text == "0" {
        return Ok(0);
    }
    let rate = Rate::parse_per_second(&text, 1).map_err(|_| place.unexpected(EXPECTED))?;
    Ok(rate.per_second() as u64)
}

/// Reads a fraction or a percentage, and returns a fraction from 0 to 1.
fn read_part(place: &ValueAt<'_>) -> Result<f64, PlanError> {
    const EXPECTED: &str = "a percentage such as 0.1%, or a fraction from 0 to 1";
    let text = place.number_text().ok_or_else(|| place.unexpected(EXPECTED))?;
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    // Rounding makes 99.9% the same number as 0.999, so that a measured 0.999 meets it.
    let part = number.parse::<f64>().ok().map(|number| (number / scale * 1e12).round() / 1e12);
    part.filter(|part| (0.0..=1.0).contains(part)).ok_or_else(|| place.unexpected(EXPECTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_defaults_units_and_several_sizes() {
        let services = parse(
            "services:
  - {name: voice, cir: 2M, frame_size: 256, vlan: 100, pcp: 5, dscp: 46, flr: 0.1%, ftd: 5ms,
     fdv: 500us, availability: 99.9%}
  - {name: bulk, protocol: ipv6, cir: 1.5M, eir: 500k, cbs: 12000, frame_size: [84, 1518]}
",
        )
        .unwrap();
        let [voice, bulk] = &*services else { panic!("{services:?}") };
        assert_eq!((voice.cir_bps, voice.eir_bps, voice.vlan), (2_000_000, 0, Some(100)));
        assert_eq!((voice.pcp, voice.dscp, voice.flr), (5, 46, 0.001));
        assert_eq!((voice.ftd, voice.availability), (Some(Duration::from_millis(5)), Some(0.999)));
        assert_eq!((bulk.cir_bps, bulk.eir_bps, bulk.cbs_bytes), (1_500_000, 500_000, 12_000));
        assert_eq!((&*bulk.frame_sizes, bulk.is_ipv6, bulk.flr), (&[84, 1518][..], true, 0.0));
        let plain = parse("services: [{name: a, cir: 1M}]").unwrap();
        assert_eq!((&*plain[0].frame_sizes, plain[0].ftd), (&[512][..], None));
    }

    #[test]
    fn every_key_of_a_service_is_described() {
        assert_eq!(crate::document::schema::closed_objects(&schema()), 1);
    }

    #[test]
    fn errors_name_the_place_and_what_is_expected() {
        for (service, expected) in [
            ("{cir: 1M}", "services[0].name"),
            ("{name: a}", "at least one of them"),
            ("{name: a, cir: fast}", "services[0].cir"),
            ("{name: a, cir: 1M, pcp: 5}", "services[0].pcp"),
            ("{name: a, cir: 1M, vlan: 4095}", "1 to 4094"),
            ("{name: a, cir: 1M, vlan: 5, frame_size: 64}", "68 to 16384"),
            ("{name: a, cir: 1M, protocol: ipv6, frame_size: 64}", "84 to 16384"),
            ("{name: a, cir: 1M, frame_size: []}", "one or more frame sizes"),
            ("{name: a, cir: 1M, flr: 2}", "services[0].flr"),
            ("{name: a, cir: 1M, dcsp: 4}", "dscp"),
            ("{name: ipv4, cir: 1M}", "no protocol"),
            ("{name: a, cir: 1M}, {name: a, cir: 2M}", "a unique name"),
        ] {
            let error = parse(&format!("services: [{service}]")).unwrap_err().to_string();
            assert!(error.contains(expected), "{service}: {error}");
        }
        assert!(parse("services: []").unwrap_err().to_string().contains("1 to 64"));
    }
}
