//! Lowers a device's settings to the stream that the kernel would send.

use wirestorm_base::rate::{FRAME_CHECK_SEQUENCE_BYTES, Layer, PREAMBLE_AND_GAP_BYTES, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed, Stream, Transmission};

use super::device::{Device, NEVER, Pace, XmitMode};
use super::error::LowerError;
use super::flags::Flag;
use super::flows::Flows;
use super::frame::{Field, FieldSource, Frames, TimestampPosition};
use super::notes;

/// A device lowered to streams.
#[derive(Clone, Debug)]
pub struct LoweredDevice {
    /// Name of the device: `eth0@1`.
    pub name: String,
    /// Name of the interface: `eth0`.
    pub interface: String,
    /// CPU of its thread.
    pub cpu: u32,
    /// One stream, or none if the delay means never.
    pub streams: Vec<Stream>,
    /// Position of the time stamp in frames; `None` with NO_TIMESTAMP.
    pub stamps: Option<TimestampPosition>,
    /// Notes on differences from the kernel, on unexpected behaviour of the kernel, and on settings
    /// without effect.
    pub notes: Vec<String>,
    /// Minimum and maximum size, as the file shows them after the start.
    pub(super) sizes: (u32, u32),
    /// Number of times that each packet is sent.
    pub(super) copies: u64,
    /// Whether source and destination MAC addresses are random.
    pub(super) random_macs: (bool, bool),
    pub(super) flows: Flows,
    imix: Vec<u64>,
    size_variable: Option<usize>,
    held: Vec<(Field, FieldSource)>,
}

impl LoweredDevice {
    pub(super) fn new(device: &Device, cpu: u32, ordinal: usize) -> Result<Self, LowerError> {
        let name = || device.name.clone();
        if device.flags.has(Flag::Ipsec) {
            return Err(LowerError::Ipsec { device: name() });
        }
        if device.mode == XmitMode::NetifReceive {
            return Err(LowerError::NetifReceive { device: name() });
        }
        let frames = Frames::new(device, ordinal)?;
        let mut notes = notes::of_settings(device, &frames);
        let transmission = transmission(device, &frames, &mut notes)?;
        let stream = transmission.map(|transmission| Stream {
            name: name(),
            template: frames.template,
            program: frames.program,
            transmission,
            is_measured: false,
            trailer: 0,
            is_marked: false,
            member: None,
        });
        Ok(Self {
            name: name(),
            interface: device.interface().to_owned(),
            cpu,
            streams: stream.into_iter().collect(),
            stamps: frames.stamps,
            notes,
            sizes: frames.sizes,
            copies: frames.copies,
            random_macs: (
                device.flags.has(Flag::SourceMacRandom),
                device.flags.has(Flag::DestinationMacRandom),
            ),
            flows: frames.flows,
            imix: frames.imix,
            size_variable: frames.size_variable,
            held: frames.field_sources,
        })
    }

    /// Returns the number of frames of each size of `imix_weights` among the first `frames`, in
    /// that order; empty without `imix_weights`. Takes time proportional to `frames`.
    pub fn imix_counts(&self, frames: u64) -> Vec<u64> {
        let mut counts = vec![0; self.imix.len()];
        let (Some(variable), Some(stream)) = (self.size_variable, self.streams.first()) else {
            return counts;
        };
        let variables = &stream.program.variables;
        for number in 0..frames {
            let size = variables[variable].value(number, variables);
            // Of equal sizes the first one counts.
            let index = self.imix.iter().position(|known| u128::from(*known) == size);
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count += 1;
            }
        }
        counts
    }

    /// Returns the value of a field in frame `number`.
    pub(super) fn value(&self, field: Field, number: u64) -> Option<u128> {
        let (_, held) = self.held.iter().find(|(known, _)| *known == field)?;
        match *held {
            FieldSource::Constant(value) => Some(value),
            FieldSource::Variable { index, base, mask } => {
                let variables = &self.streams.first()?.program.variables;
                Some(base & !mask | variables[index].value(number, variables) & mask)
            }
        }
    }

    /// Returns the number of flows among the first `frames`.
    pub(super) fn flows_started(&self, frames: u64) -> u64 {
        let packets = frames.div_ceil(self.copies);
        match &self.flows {
            Flows::None => 0,
            Flows::InSequence(length) => packets.div_ceil(*length),
            Flows::Random(flows) => flows.started(packets),
        }
    }
}

/// Returns the schedule of the frames; `None`: never.
fn transmission(
    device: &Device,
    frames: &Frames,
    notes: &mut Vec<String>,
) -> Result<Option<Transmission>, LowerError> {
    let mut note = |text: String| notes.push(text);
    let burst = frames.burst;
    let one_second = Duration::from_secs(1);
    let (speed, is_delay) = match device.pace {
        Pace::Delay if device.delay == NEVER => {
            note(
                "delay 2147483647 means never: nothing is sent (the kernel's start would not \
                 return before it is stopped)"
                    .to_owned(),
            );
            return Ok(None);
        }
        Pace::Delay if device.delay == 0 => (Ok(Speed::Max), true),
        Pace::Delay => {
            let span = Duration::from_nanos(device.delay);
            (Rate::new(u64::from(burst), span).map(Speed::Frames), true)
        }
        Pace::Frames(frames) => (Rate::new(frames, one_second).map(Speed::Frames), false),
        Pace::Megabits(megabits) => {
            let overhead = FRAME_CHECK_SEQUENCE_BYTES + PREAMBLE_AND_GAP_BYTES;
            note(format!(
                "rate {megabits}: counts frames without FCS, preamble and gap, as in the kernel; \
                 on the wire each takes {overhead} bytes more"
            ));
            let delay = frames.template.len() as u64 * 8 * 1000 / megabits;
            if device.delay != delay || frames.size_variable.is_some() {
                note(format!(
                    "rate {megabits}: the kernel converts it to a delay of {} ns, from the \
                     minimum size at that time; here the rate holds for all frames",
                    device.delay
                ));
            }
            let rate = Rate::new(megabits.saturating_mul(1_000_000), one_second);
            (rate.map(|rate| Speed::Bits(rate, Layer::Frame)), false)
        }
    };
    let speed = speed.map_err(|error| LowerError::Rate { device: device.name.clone(), error })?;
    if burst > 1 && !is_delay {
        note(format!(
            "burst {burst}: the kernel's delay is between bursts, so it would send {burst} times \
             the rate; here the rate is that of all frames"
        ));
    } else if burst > 1 && speed != Speed::Max {
        note(format!(
            "burst {burst}: {burst} frames for each delay, as in the kernel, but evenly spaced"
        ));
    }
    if burst > 1 && !device.count.is_multiple_of(u64::from(burst)) {
        note(format!(
            "count {}: is exact; the kernel would complete the last burst of {burst}",
            device.count
        ));
    }
    Ok(Some(Transmission {
        mode: match device.count {
            0 => Mode::Continuous,
            frames => Mode::Burst { frames },
        },
        ..Transmission::continuous(speed)
    }))
}
