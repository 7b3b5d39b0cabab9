//! Counters of a device's run, in the format of the kernel.

use std::net::{Ipv4Addr, Ipv6Addr};

use wirestorm_base::time::{Duration, Instant};

use super::device::Device;
use super::frame::Field;
use super::lower::LoweredDevice;

/// Counters of a device's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Sent frames.
    pub frames: u64,
    /// Sent bytes, without FCS.
    pub bytes: u64,
    /// Frames that failed to be sent.
    pub errors: u64,
    /// Start time. The kernel counts from boot.
    pub started: Instant,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Idle time within the duration.
    pub idle: Duration,
    /// Frames of each size of `imix_weights`, in that order; empty without `imix_weights`.
    pub imix: Vec<u64>,
}

impl Counters {
    /// Returns the two lines after `Result: `. `size` is the frame size, or `None` if sizes vary.
    ///
    /// Rates are rounded down. Bit rates exclude FCS, preamble and gap. If sizes vary, the kernel
    /// uses the size of the last frame for all. Here the size is the mean, and the bit rate counts
    /// all bytes.
    pub fn result(&self, size: Option<u32>) -> String {
        let nanoseconds = u128::from(self.elapsed.as_nanos().max(1));
        let per_second = |things: u128| things * 1_000_000_000 / nanoseconds;
        let frames_per_second = per_second(u128::from(self.frames));
        let (size, bits_per_second) = match size {
            Some(size) => (u64::from(size), frames_per_second * 8 * u128::from(size)),
            None => {
                let mean = self.bytes.checked_div(self.frames).unwrap_or(0);
                (mean, per_second(u128::from(self.bytes) * 8))
            }
        };
        let busy = self.elapsed.saturating_sub(self.idle);
        let microseconds = |span: Duration| span.as_nanos() / 1000;
        format!(
            "OK: {}(c{}+d{}) usec, {} ({size}byte,0frags)\n  \
             {frames_per_second}pps {}Mb/sec ({bits_per_second}bps) errors: {}",
            microseconds(self.elapsed),
            microseconds(busy),
            microseconds(self.idle),
            self.frames,
            bits_per_second / 1_000_000,
            self.errors
        )
    }
}

impl Device {
    /// Updates the counters of a running device.
    pub(super) fn progress(&mut self, frames: u64, errors: u64) {
        self.current.frames = frames;
        self.current.errors = errors;
        // 32-bit sequence number of the next frame.
        self.current.sequence = frames.wrapping_add(1) as u32;
    }

    /// Stores the values of the last frame and the result. Returns the result.
    pub(super) fn finish(&mut self, lowered: &LoweredDevice, counters: &Counters) -> &str {
        self.is_running = false;
        self.size_min = lowered.sizes.0;
        self.size_max = lowered.sizes.1;
        self.progress(counters.frames, counters.errors);
        let current = &mut self.current;
        current.started = counters.started;
        current.stopped = counters.started.saturating_add(counters.elapsed);
        current.idle = counters.idle;
        current.imix_counts.clone_from(&counters.imix);
        current.imix_counts.resize(self.imix.len(), 0);
        let last = counters.frames.saturating_sub(1);
        // Each value has the width of its field.
        let value = |field| lowered.value(field, last).unwrap_or_default();
        let packets = counters.frames.div_ceil(lowered.copies);
        // The offset is below the count. Random addresses do not use it.
        let next_offset = |count: u32, is_random: bool| match count {
            2.. if !is_random => (packets % u64::from(count)) as u32,
            _ => 0,
        };
        current.source_mac_offset = next_offset(self.source_macs, lowered.random_macs.0);
        current.destination_mac_offset = next_offset(self.destination_macs, lowered.random_macs.1);
        current.source = Ipv4Addr::from(value(Field::Source) as u32);
        current.destination = Ipv4Addr::from(value(Field::Destination) as u32);
        current.source6 = Ipv6Addr::from(value(Field::Source6));
        current.destination6 = Ipv6Addr::from(value(Field::Destination6));
        current.source_port = value(Field::SourcePort) as u16;
        current.destination_port = value(Field::DestinationPort) as u16;
        current.flows = lowered.flows_started(counters.frames);
        let is_constant = self.size_min >= self.size_max && self.imix.is_empty();
        self.result = counters.result(is_constant.then_some(self.size_min));
        &self.result
    }
}
