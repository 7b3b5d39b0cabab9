//! Applies a multiplier to the streams of a port.

use wirestorm_base::rate::{Layer, Rate, RateError};
use wirestorm_model::stream::{Speed, Step, Stream};

use crate::multiplier::Multiplier;

/// Number of frames over which the mean length is computed.
const LENGTHS_MAX: u64 = 10_000;

/// Multiplies the speeds of all streams of a port. Streams at maximum speed stay unchanged.
///
/// If the multiplier sets a total, triggered streams do not count towards the sum: they send in
/// place of the stream that starts them.
///
/// # Errors
/// Returns a message if the line rate is unknown, no stream has a rate, or a product is out of
/// range.
pub(super) fn multiply(
    streams: &mut [(usize, Stream)],
    multiplier: Multiplier,
    bits_per_second: Option<Rate>,
) -> Result<(), String> {
    let (target, layer) = match multiplier {
        Multiplier::Factor(factor) => {
            return scale(streams, |rate| rate.scaled(factor.digits, factor.denominator));
        }
        Multiplier::Frames(target) => (target, None),
        Multiplier::Bits(target, layer) => (target, Some(layer)),
        Multiplier::Percent(percent) => {
            let port_rate = bits_per_second.ok_or(
                "a percentage needs the port's speed: set `speed` on the port, such as 10G",
            )?;
            (port_rate.per_second() * percent / 100.0, Some(Layer::Wire))
        }
    };
    let together: f64 = streams
        .iter()
        .map(|(_, stream)| stream)
        .filter(|stream| stream.transmission.self_start)
        .map(|stream| stream_load(stream, layer))
        .sum();
    if together <= 0.0 {
        return Err("no flow of this port has a rate to multiply".into());
    }
    scale(streams, |rate| {
        let product = rate.per_second() * (target / together);
        Rate::parse_per_second(&format!("{product:.6}"), 1)
    })
}

fn scale(
    streams: &mut [(usize, Stream)],
    by: impl Fn(Rate) -> Result<Rate, RateError>,
) -> Result<(), String> {
    for (_, stream) in streams {
        let scaled = match stream.transmission.speed {
            Speed::Max => continue,
            Speed::Frames(rate) => by(rate).map(Speed::Frames),
            Speed::Bits(rate, layer) => by(rate).map(|rate| Speed::Bits(rate, layer)),
        };
        stream.transmission.speed =
            scaled.map_err(|error| format!("flow {:?}: {error}", stream.name))?;
    }
    Ok(())
}

/// Returns the load of a stream per second: frames, or bits counted at a layer.
fn stream_load(stream: &Stream, layer: Option<Layer>) -> f64 {
    let bits = |layer: Layer| (mean_length(stream) + layer.overhead() as f64) * 8.0;
    match (stream.transmission.speed, layer) {
        (Speed::Max, _) => 0.0,
        (Speed::Frames(rate), None) => rate.per_second(),
        (Speed::Frames(rate), Some(layer)) => rate.per_second() * bits(layer),
        (Speed::Bits(rate, of), None) => rate.per_second() / bits(of),
        (Speed::Bits(rate, of), Some(layer)) => rate.per_second() / bits(of) * bits(layer),
    }
}

/// Returns the mean length of the first frames, in bytes without FCS.
fn mean_length(stream: &Stream) -> f64 {
    let program = &stream.program;
    let variable = program.steps.iter().rev().find_map(|step| match step {
        Step::Length { variable } => Some(*variable),
        _ => None,
    });
    let longest = stream.template.len();
    let Some(variable) = variable else { return longest as f64 };
    let length = |number| {
        let value = program.variables[variable].value(number, &program.variables);
        usize::try_from(value).unwrap_or(longest).min(longest) as f64
    };
    (0..LENGTHS_MAX).map(length).sum::<f64>() / LENGTHS_MAX as f64
}
