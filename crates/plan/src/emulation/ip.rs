//! Parses IP settings.

use wirestorm_model::ip::{FlowLabel, Identification, IpSettings};

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// IP settings of a plan; `None`: the default of [`IpSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ip {
    /// Time to live (IPv4) or hop limit (IPv6).
    pub ttl: Option<u8>,
    /// Type of service (IPv4) or traffic class (IPv6); the lower two bits are ECN.
    pub tos: Option<u8>,
    /// Whether IPv4 packets carry the "don't fragment" bit.
    pub dont_fragment: Option<bool>,
    /// Identification of IPv4 packets.
    pub identification: Option<Identification>,
    /// Flow label of IPv6 packets.
    pub flow_label: Option<FlowLabel>,
}

impl Ip {
    /// The settings of a flow, with a default for each that the plan leaves out.
    pub fn settings(&self) -> IpSettings {
        let default = IpSettings::default();
        let dont_fragment = self.dont_fragment.unwrap_or(default.dont_fragment);
        // Reassembly needs a unique identification if routers may fragment (RFC 6864 section 4.3).
        let identification =
            if dont_fragment { default.identification } else { Identification::Counting };
        IpSettings {
            hop_limit: self.ttl.unwrap_or(default.hop_limit),
            traffic_class: self.tos.unwrap_or(default.traffic_class),
            dont_fragment,
            identification: self.identification.unwrap_or(identification),
            flow_label: self.flow_label.unwrap_or(default.flow_label),
        }
    }

    /// Returns these settings, with unset ones from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.or(other.ttl),
            tos: self.tos.or(other.tos),
            dont_fragment: self.dont_fragment.or(other.dont_fragment),
            identification: self.identification.or(other.identification),
            flow_label: self.flow_label.or(other.flow_label),
        }
    }
}

pub(super) const IP: [&str; 5] = ["ttl", "tos", "dont_fragment", "identification", "flow_label"];

/// Maximum flow label, 20 bits (RFC 6437).
pub(super) const FLOW_LABEL_MAX: u64 = (1 << 20) - 1;

pub(super) fn read(place: &ValueAt<'_>) -> Result<Ip, PlanError> {
    let mut ip = Ip::default();
    for (name, value) in place.fields(&IP)?.all() {
        match name {
            "ttl" => ip.ttl = Some(value.integer(1, 255)? as u8),
            "tos" => ip.tos = Some(value.integer(0, 255)? as u8),
            "dont_fragment" => ip.dont_fragment = Some(value.boolean()?),
            "identification" => ip.identification = Some(read_identification(&value)?),
            _ => ip.flow_label = Some(read_flow_label(&value)?),
        }
    }
    Ok(ip)
}

fn read_identification(place: &ValueAt<'_>) -> Result<Identification, PlanError> {
    const EXPECTED: &str = "zero, counting or random";
    match place.text(EXPECTED)? {
        "zero" => Ok(Identification::Zero),
        "counting" => Ok(Identification::Counting),
        "random" => Ok(Identification::Random),
        _ => Err(place.unexpected(EXPECTED)),
    }
}

fn read_flow_label(place: &ValueAt<'_>) -> Result<FlowLabel, PlanError> {
    match place.value().as_str() {
        Some("flow") => Ok(FlowLabel::PerFlow),
        _ => {
            let expected = || format!("flow, or a whole number from 0 to {FLOW_LABEL_MAX}");
            let label =
                place.integer(0, FLOW_LABEL_MAX).map_err(|_| place.unexpected(expected()))?;
            Ok(FlowLabel::Value(label as u32))
        }
    }
}
