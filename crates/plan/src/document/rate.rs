//! Parses the `rate` of a flow.

use wirestorm_base::rate::{Decimal, Layer, Rate};
use wirestorm_model::stream::Speed;

use super::error::PlanError;
use super::value_at::ValueAt;

/// Accepted notation of a rate, for error messages.
pub(crate) const EXPECTED: &str = "a rate: 1Mpps, 10G-l1 (with preamble and gap), 10G-l2 (with \
                                   FCS), 50% (of the port's speed) or max; or one of the fields \
                                   pps, bps, kbps, mbps, gbps, bps_l1, bps_l2, percentage";

pub(crate) const UNITS: [&str; 8] =
    ["pps", "bps", "kbps", "mbps", "gbps", "bps_l1", "bps_l2", "percentage"];

/// A requested rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedRate {
    /// An absolute speed.
    Speed(Speed),
    /// A percentage of the port's speed, counted at layer 1.
    Percentage(Decimal),
}

impl RequestedRate {
    /// Converts the rate to a speed on a port with this line rate.
    ///
    /// # Errors
    /// Returns a message if a percentage needs the unknown line rate, or has too many decimals for
    /// exact arithmetic.
    pub fn on_port(self, bits_per_second: Option<Rate>) -> Result<Speed, &'static str> {
        let percentage = match self {
            Self::Speed(speed) => return Ok(speed),
            Self::Percentage(percentage) => percentage,
        };
        let integer_rate = bits_per_second
            .ok_or("a percentage needs the port's speed: set `speed` on the port, such as 10G")?;
        integer_rate
            .scaled(percentage.digits, percentage.denominator.saturating_mul(100))
            .map(|rate| Speed::Bits(rate, Layer::Wire))
            .map_err(|_| "the percentage has too many decimals")
    }
}

pub(crate) fn read(place: &ValueAt<'_>) -> Result<RequestedRate, PlanError> {
    if let Some(text) = place.value().as_str() {
        return parse(text).ok_or_else(|| place.unexpected(EXPECTED));
    }
    if !place.value().is_object() {
        return Err(place.unexpected(EXPECTED));
    }
    let (unit, value) = place.choice(&UNITS)?;
    let text = value.number_text().ok_or_else(|| value.unexpected("a number"))?;
    let rate = |scale| Rate::parse_per_second(&text, scale);
    let bits = |scale, layer| rate(scale).map(|rate| Speed::Bits(rate, layer));
    let speed = match unit {
        "pps" => rate(1).map(Speed::Frames),
        // Open Traffic Generator counts bits at layer 1: its minimum rate, 672, is one 64-byte
        // frame with preamble and gap.
        "bps" | "bps_l1" => bits(1, Layer::Wire),
        "kbps" => bits(1_000, Layer::Wire),
        "mbps" => bits(1_000_000, Layer::Wire),
        "gbps" => bits(1_000_000_000, Layer::Wire),
        "bps_l2" => bits(1, Layer::FrameWithFcs),
        _ => return percentage(&text).ok_or_else(|| value.unexpected("more than 0, at most 100")),
    };
    speed.map(RequestedRate::Speed).map_err(|error| value.unexpected(error.to_string()))
}

/// Parses a rate in one word: `1Mpps`, `10G-l1`, `10Gbps-l2`, `50%`, `max`.
pub fn parse(text: &str) -> Option<RequestedRate> {
    let text = text.trim();
    if text == "max" {
        return Some(RequestedRate::Speed(Speed::Max));
    }
    if let Some(number) = text.strip_suffix('%') {
        return percentage(number.trim_end());
    }
    let rate = |number: &str| Rate::parse_per_second(number.trim_end(), 1).ok();
    if let Some(number) = text.strip_suffix("pps") {
        return rate(number).map(|rate| RequestedRate::Speed(Speed::Frames(rate)));
    }
    let (number, layer) = match text.rsplit_once('-') {
        Some((number, "l1" | "L1")) => (number, Layer::Wire),
        Some((number, "l2" | "L2")) => (number, Layer::FrameWithFcs),
        Some(_) => return None,
        // The layer is mandatory: for small frames the two differ by a quarter.
        None => return None,
    };
    let number = number.strip_suffix("bps").unwrap_or(number);
    rate(number).map(|rate| RequestedRate::Speed(Speed::Bits(rate, layer)))
}

fn percentage(text: &str) -> Option<RequestedRate> {
    let decimal = Decimal::parse(text).ok()?;
    let most = decimal.denominator.checked_mul(100)?;
    (decimal.digits > 0 && decimal.digits <= most).then_some(RequestedRate::Percentage(decimal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn speed(text: &str) -> Option<Speed> {
        match parse(text)? {
            RequestedRate::Speed(speed) => Some(speed),
            RequestedRate::Percentage(_) => None,
        }
    }

    fn rate(text: &str) -> Rate {
        Rate::parse_per_second(text, 1).unwrap()
    }

    #[test]
    fn parses_number_unit_and_layer() {
        assert_eq!(speed("1.5Mpps"), Some(Speed::Frames(rate("1.5M"))));
        assert_eq!(speed("10G-l1"), Some(Speed::Bits(rate("10G"), Layer::Wire)));
        assert_eq!(speed("10Gbps-l1"), Some(Speed::Bits(rate("10G"), Layer::Wire)));
        assert_eq!(speed("100M-l2"), Some(Speed::Bits(rate("100M"), Layer::FrameWithFcs)));
        assert_eq!(speed("max"), Some(Speed::Max));
        for text in ["", "10", "10G", "10Gbps", "fast", "-1pps", "10G-l3", "0pps", "101%", "0%"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn percentages_refer_to_the_layer_1_speed_of_the_port() {
        let half = parse("50%").unwrap();
        assert_eq!(half.on_port(Some(rate("10G"))), Ok(Speed::Bits(rate("5G"), Layer::Wire)));
        assert!(half.on_port(None).is_err());
        let odd = parse("33.3 %").unwrap();
        assert_eq!(odd.on_port(Some(rate("1G"))), Ok(Speed::Bits(rate("333M"), Layer::Wire)));
    }

    #[test]
    fn parses_the_fields_of_open_traffic_generator() {
        let read = |value| read(&ValueAt::root(&value)).map_err(|error| error.to_string());
        assert_eq!(read(json!({"pps": 1000})), Ok(parse("1000pps").unwrap()));
        assert_eq!(read(json!({"gbps": 2})), Ok(parse("2G-l1").unwrap()));
        assert_eq!(read(json!({"percentage": 12.5})), Ok(parse("12.5%").unwrap()));
        let error = read(json!({"pp": 1})).unwrap_err();
        assert!(error.starts_with("pp: found an unknown field, expected pps?"), "{error}");
        let error = read(json!({"pps": 1, "bps": 2})).unwrap_err();
        assert!(error.contains("found both"), "{error}");
        assert!(read(json!(7)).unwrap_err().starts_with("plan: found 7, expected a rate"));
    }
}
