//! Streams of one transmitting port, and their outcome.

use wirestorm_base::port::{PortError, StampPoint, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::stream::{Share, StreamCounters};
use wirestorm_model::stream::Stream;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::mark;

use super::error::TrafficError;
use super::options::StreamOptions;
use crate::backend::Choice;
use crate::host::{RunStreamIds, StreamIds};
use crate::port::Interfaces;
use crate::work::Stamped;

/// Streams of one transmitting port.
pub(super) struct PortWorkload {
    /// Index of the port in the plan.
    pub(super) port: usize,
    /// Flow of each stream, by index in the plan.
    pub(super) flows: Vec<usize>,
    pub(super) streams: Vec<Stream>,
    /// Streams with a limited time: end relative to the start, and index of the stream.
    pub(super) ends: Vec<(Duration, usize)>,
    /// Stream ID of the first stream in signatures.
    pub(super) numbered_from: u32,
    /// Number of workers that share each stream.
    pub(super) workers: usize,
    /// Length of the longest frame of the interface.
    pub(super) length_max: usize,
}

impl PortWorkload {
    /// Writes the mark of a marked stream, by its position, into a template. Returns whether there is
    /// a mark for it; other streams need none.
    pub(super) fn write_mark(&self, position: usize, template: &mut [u8]) -> bool {
        if !self.streams.get(position).is_some_and(|stream| stream.is_marked) {
            return true;
        }
        let share = Share { index: 0, workers: self.workers as u64 };
        let number = share.number(self.numbered_from, position as u32);
        let number = u16::try_from(number).ok().filter(|number| *number < mark::COUNT);
        number.map(|number| mark::write(template, number)).is_some()
    }
}

/// Outcome of one port of a worker.
pub(super) struct PortOutcome {
    pub(super) choice: Choice,
    pub(super) transmitted: TransmitCounters,
    pub(super) counters: Vec<StreamCounters>,
    pub(super) departures: Option<Stamped>,
    /// Timestamp point of the port's departures.
    pub(super) stamp: StampPoint,
}

/// Outcome of one worker.
pub(super) struct WorkerOutcome {
    pub(super) ports: Vec<PortOutcome>,
    pub(super) finished: Instant,
    /// Time that the worker was paused.
    pub(super) paused: Duration,
    pub(super) error: Option<PortError>,
}

/// Builds the workloads of a plan, in the order of its transmitting ports, including those on other
/// machines. `interfaces`: those of the ports on this machine.
///
/// # Errors
/// Fails if the plan is invalid for these ports, or a frame is too long for its port.
pub(super) fn workloads(
    plan: &TrafficPlan,
    transmitting: &[usize],
    interfaces: &Interfaces,
    options: &StreamOptions,
) -> Result<Vec<PortWorkload>, TrafficError> {
    let workers = usize::from(options.workers.max(1));
    let mut workloads = Vec::new();
    let mut numbered_from = 0;
    let mut links = interfaces.links.iter();
    for &port in transmitting {
        let link = if options.is_here(port) { links.next() } else { None };
        let speed = link.and_then(|(_, link)| link.speed);
        let (flows, streams): (Vec<_>, Vec<_>) =
            plan.streams(port, speed, options.multiplier)?.into_iter().unzip();
        // The machine of the port checks the length.
        let length_max = link.map_or(usize::MAX, |(_, link)| link.frame_length_max());
        if let Some(stream) = streams.iter().find(|stream| stream.template.len() > length_max) {
            return Err(TrafficError::TooLong {
                flow: stream.name.clone(),
                length: stream.template.len(),
                interface: link.map(|(interface, _)| interface.to_string()).unwrap_or_default(),
                length_max,
            });
        }
        let numbers = (streams.len() * workers) as u32;
        let ends = ends(plan, &flows, &streams);
        workloads.push(PortWorkload {
            port,
            flows,
            streams,
            ends,
            numbered_from,
            workers,
            length_max,
        });
        numbered_from += numbers;
    }
    Ok(workloads)
}

/// Assigns unused stream IDs to the streams of all workloads, and writes the marks of marked
/// streams. `first` asks for these IDs instead of any. Dropping the result releases the IDs.
///
/// # Errors
/// Fails if there are not enough stream IDs or marks.
pub(super) fn number(
    workloads: &mut [PortWorkload],
    workers: usize,
    stream_ids: &StreamIds,
    first: Option<u32>,
) -> Result<RunStreamIds, TrafficError> {
    let count = workloads.iter().map(|workload| workload.streams.len() * workers).sum::<usize>();
    let count32 = u32::try_from(count).map_err(|_| TrafficError::TooMany(count as u64))?;
    let numbers = match first {
        None => stream_ids.take(count32).ok_or(TrafficError::TooMany(count as u64))?,
        Some(first) => stream_ids
            .take_from(first, count32)
            .ok_or(TrafficError::StreamIdsTaken { first, count: count32 })?,
    };
    for workload in workloads {
        workload.numbered_from += numbers.first();
        for position in 0..workload.streams.len() {
            let mut template = std::mem::take(&mut workload.streams[position].template);
            let has_mark = workload.write_mark(position, &mut template);
            let stream = &mut workload.streams[position];
            stream.template = template;
            if !has_mark {
                return Err(TrafficError::NoMark(stream.name.clone()));
            }
        }
    }
    Ok(numbers)
}

/// Returns the ends of streams with a limited time, relative to the start. Excludes streams that do
/// not start by themselves, and parts of a chain.
fn ends(plan: &TrafficPlan, flows: &[usize], streams: &[Stream]) -> Vec<(Duration, usize)> {
    let followers: Vec<_> = streams.iter().filter_map(|stream| stream.transmission.next).collect();
    let end = |(index, (&flow, stream)): (usize, (&usize, &Stream))| {
        let transmission = &stream.transmission;
        let time = plan.flows[flow].duration?;
        let is_alone = transmission.next.is_none() && !followers.contains(&index);
        let begins = transmission.self_start && !transmission.start_paused;
        (is_alone && begins).then(|| (transmission.start_delay.saturating_add(time), index))
    };
    flows.iter().zip(streams).enumerate().filter_map(end).collect()
}
