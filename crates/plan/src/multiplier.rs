//! What rates are multiplied by, in TRex's words.

use wirestorm_base::rate::{Decimal, Layer};

/// What the rates of all streams are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Multiplier {
    /// This factor.
    Factor(Decimal),
    /// What makes all together send so many frames a second.
    Frames(f64),
    /// What makes all together send so many bits a second, counted at this layer.
    Bits(f64, Layer),
    /// What makes all together take this part of the line, in percent of its bits at layer 1.
    Percent(f64),
}

impl Multiplier {
    /// The rates as they are.
    pub const ONE: Self = Self::Factor(Decimal { digits: 1, denominator: 1 });

    /// Reads `3`, `0.5`, `23%`, `10kpps`, `1.5mpps`, `10mbps` (frames with FCS) or `10mbpsl1`
    /// (all that the wire carries); `None` for anything else, and for nothing at all.
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
