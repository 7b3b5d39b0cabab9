//! Rate multipliers in TRex's syntax.

use wirestorm_base::rate::{Decimal, Layer};

/// Factor or total that scales the rates of all streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Multiplier {
    /// Multiplies each rate by this factor.
    Factor(Decimal),
    /// Scales the streams to this total, in frames per second.
    Frames(f64),
    /// Scales the streams to this total, in bits per second at this layer.
    Bits(f64, Layer),
    /// Scales the streams to this percentage of the line rate at layer 1.
    Percent(f64),
}

impl Multiplier {
    /// Leaves the rates unchanged.
    pub const ONE: Self = Self::Factor(Decimal { digits: 1, denominator: 1 });

    /// Parses `3`, `0.5`, `23%`, `10kpps`, `1.5mpps`, `10mbps` (frames with FCS) or `10mbpsl1`
    /// (with preamble and gap). Returns `None` for zero and for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let decimal = Decimal::parse(number).ok().filter(|decimal| decimal.digits > 0)?;
        let value = decimal.digits as f64 / decimal.denominator as f64;
        let (unit, scale) = match unit.as_bytes().first() {
            Some(b'k') => (&unit[1..], 1e3),
            Some(b'm') => (&unit[1..], 1e6),
            Some(b'g') => (&unit[1..], 1e9),
            _ => (unit, 1.0),
        };
        match unit {
            "" if scale == 1.0 => Some(Self::Factor(decimal)),
            "%" if scale == 1.0 => Some(Self::Percent(value)),
            "pps" => Some(Self::Frames(value * scale)),
            "bps" => Some(Self::Bits(value * scale, Layer::FrameWithFcs)),
            "bpsl1" => Some(Self::Bits(value * scale, Layer::Wire)),
            _ => None,
        }
    }
}
