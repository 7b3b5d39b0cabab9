//! From a device's settings to the stream that sends what the kernel would send.

use wirestorm_base::rate::{FRAME_CHECK_SEQUENCE_BYTES, Layer, PREAMBLE_AND_GAP_BYTES, Rate};
use wirestorm_base::time::Duration;
use wirestorm_model::stream::{Mode, Speed, Stream, Transmission};

use super::device::{Device, NEVER, Pace, XmitMode};
use super::error::LowerError;
use super::flags::Flag;
use super::flows::Flows;
use super::frame::{Field, Frames, Held, Stamps};
use super::notes;

/// What a device sends.
#[derive(Clone, Debug)]
pub struct LoweredDevice {
    /// The device: `eth0@1`.
    pub name: String,
    /// Its interface: `eth0`.
    pub interface: String,
    /// The CPU of its thread.
    pub cpu: u32,
    /// What it sends: one stream, or none where its delay means never.
    pub streams: Vec<Stream>,
    /// Where frames carry the time at which they were sent; `None` with NO_TIMESTAMP.
    pub stamps: Option<Stamps>,
    /// What differs from the kernel, what of it would surprise, and what has no effect.
    pub notes: Vec<String>,
    /// Least and greatest size, as the file shows them once the device has started.
    pub(super) sizes: (u32, u32),
    /// How often each packet is sent.
    pub(super) copies: u64,
    /// Whether source and destination MAC addresses are drawn.
    pub(super) random_macs: (bool, bool),
    pub(super) flows: Flows,
    imix: Vec<u64>,
    size_variable: Option<usize>,
    held: Vec<(Field, Held)>,
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
            is_marked: false,
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
            held: frames.held,
        })
    }

    /// How many of the first so many frames have each size of `imix_weights`, in that order;
    /// empty without. Every frame is looked at.
    pub fn imix_counts(&self, frames: u64) -> Vec<u64> {
        let mut counts = vec![0; self.imix.len()];
        let (Some(variable), Some(stream)) = (self.size_variable, self.streams.first()) else {
            return counts;
        };
        let variables = &stream.program.variables;
        for number in 0..frames {
            let size = variables[variable].value(number, variables);
            // Of sizes that are alike the first one counts.
            let index = self.imix.iter().position(|known| u128::from(*known) == size);
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count += 1;
            }
        }
        counts
    }

    /// The value of a field in frame `number`.
    pub(super) fn value(&self, field: Field, number: u64) -> Option<u128> {
        let (_, held) = self.held.iter().find(|(known, _)| *known == field)?;
        match *held {
            Held::Constant(value) => Some(value),
            Held::Variable { index, base, mask } => {
                let variables = &self.streams.first()?.program.variables;
                Some(base & !mask | variables[index].value(number, variables) & mask)
            }
        }
    }

    /// How many flows the first so many frames belong to.
    pub(super) fn flows_begun(&self, frames: u64) -> u64 {
        let packets = frames.div_ceil(self.copies);
        match &self.flows {
            Flows::None => 0,
            Flows::InSequence(length) => packets.div_ceil(*length),
            Flows::Random(flows) => flows.begun(packets),
        }
    }
}

/// When frames leave; `None`: never.
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
                    "rate {megabits}: the kernel makes a delay of {} ns of it, from the least \
                     size as it was set then; here the rate holds for all frames",
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
            "count {}: is kept; the kernel would fill up the last burst of {burst}",
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
