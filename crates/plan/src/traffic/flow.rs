//! Parses the `flows` of a plan.

use wirestorm_base::time::Duration;
use wirestorm_model::stream::{FrameBits, GapDistribution, Mode, Speed, Stream, Transmission};

use super::captured_packet::FrameLoader;
use super::duration::{self, FlowDuration};
use super::template::{AutoAddresses, Packet};
use super::{packet, size};
use crate::document::error::{ErrorCollector, PlanError};
use crate::document::port::Port;
use crate::document::rate::{self, RequestedRate};
use crate::document::time::read_time;
use crate::document::value_at::{Fields, ValueAt};

/// A flow: a stream of frames from one port.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Index of the sending port in the plan.
    pub tx_port: usize,
    /// Indices of the receiving ports in the plan.
    pub rx_ports: Vec<usize>,
    /// Rate of the flow.
    pub rate: RequestedRate,
    /// Duration of the flow, if the plan gives a time.
    pub duration: Option<Duration>,
    /// Offset of the payload in the template, if it is the same in every frame. No device on the
    /// path should change the payload.
    pub payload: Option<usize>,
    /// Bits of received frames by whose values the receiver counts; empty for none.
    pub counted_bits: Vec<FrameBits>,
    /// Ethernet addresses that are resolved before sending.
    pub auto_addresses: AutoAddresses,
    /// The stream. For a rate in percent, its speed is a placeholder until the port's speed is
    /// known.
    pub stream: Stream,
    /// Path of the flow in the plan, for messages.
    pub path: String,
}

impl Flow {
    /// Creates a flow that sends this stream unchanged from port `transmit`.
    pub fn from_stream(stream: Stream, transmit: usize, receive: Vec<usize>, path: String) -> Self {
        Self {
            tx_port: transmit,
            rx_ports: receive,
            rate: RequestedRate::Speed(stream.transmission.speed),
            duration: None,
            payload: None,
            counted_bits: Vec::new(),
            auto_addresses: AutoAddresses::default(),
            stream,
            path,
        }
    }
}

pub(super) const FLOW: [&str; 12] = [
    "name",
    "tx",
    "rx",
    "packet",
    "size",
    "rate",
    "duration",
    "inter_departure",
    "start_delay",
    "start",
    "next",
    "metrics",
];

pub(super) const METRICS: [&str; 1] = ["enable"];
pub(super) const NEXT: [&str; 2] = ["flow", "times"];
pub(super) const DEPARTURES: [&str; 2] = ["poisson", "on_off"];
pub(super) const POISSON: [&str; 1] = ["seed"];
pub(super) const ON_OFF: [&str; 2] = ["on", "off"];

/// Values of `start`: whether the flow starts by itself, and whether it then waits to be resumed.
pub(super) const STARTS: [(&str, (bool, bool)); 3] =
    [("immediate", (true, false)), ("paused", (true, true)), ("triggered", (false, false))];

/// A flow whose `next` is a name and not yet an index.
pub(super) struct UnlinkedFlow {
    flow: Flow,
    next: Option<(String, PlanError)>,
}

pub(super) fn read_flows(
    place: &ValueAt<'_>,
    ports: &[Port],
    load: &mut FrameLoader<'_>,
    problems: &mut ErrorCollector,
) -> Vec<Flow> {
    let Some(items) = problems.take(place.items("flows")) else { return Vec::new() };
    let read: Vec<Option<UnlinkedFlow>> =
        items.iter().map(|item| read_flow(item, ports, load, problems)).collect();
    // Include faulty flows, so that `next` can refer to them without further errors.
    let names: Vec<_> = items.iter().map(|item| item.value()["name"].as_str()).collect();
    let mut flows: Vec<Flow> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (item, unlinked) in items.iter().zip(read) {
        let Some(UnlinkedFlow { mut flow, next }) = unlinked else { continue };
        if !seen.insert(flow.stream.name.clone()) {
            let found = format!("a second flow {:?}", flow.stream.name);
            problems.take::<()>(Err(item.error(found, "a unique name")));
        }
        if let Some((name, error)) = next {
            let position = names.iter().position(|other| *other == Some(name.as_str()));
            flow.stream.transmission.next = problems.take(position.ok_or(error));
        }
        flows.push(flow);
    }
    flows
}

/// Reads a flow. Records all errors, and returns `None` if there are any.
fn read_flow(
    place: &ValueAt<'_>,
    ports: &[Port],
    load: &mut FrameLoader<'_>,
    problems: &mut ErrorCollector,
) -> Option<UnlinkedFlow> {
    let fields = place.fields_collecting(&FLOW, |_| false, problems)?;
    let name = fields.required("name", "a name").and_then(|name| name.string("a name"));
    let name = problems.take(name.map(str::to_owned));
    let transmit = fields.required("tx", "the name of a port");
    let transmit = problems.take(transmit.and_then(|tx| read_port_name(&tx, ports)));
    let receive = fields.get("rx").map_or(Ok(Vec::new()), |rx| read_rx_ports(&rx, ports));
    let receive = problems.take(receive);
    let size = fields.get("size").map_or(Ok(size::FrameSize::AsBuilt), |size| size::read(&size));
    let size = problems.take(size);
    let is_measured = fields.get("metrics").map_or(Ok(false), |metrics| read_metrics(&metrics));
    let is_measured = problems.take(is_measured);
    let packet = problems.take(fields.required("packet", "a list of headers")).and_then(|packet| {
        // Check the headers even if the size is invalid.
        let size = size.as_ref().unwrap_or(&size::FrameSize::AsBuilt);
        problems.take_all(packet::read(&packet, size, is_measured.unwrap_or(false), load))
    });
    let rate = match fields.get("rate") {
        // The default of Open Traffic Generator.
        None => rate::parse("1000pps").ok_or_else(|| place.unexpected(rate::EXPECTED)),
        Some(rate) => rate::read(&rate),
    };
    let rate = problems.take(rate);
    let extent =
        fields.get("duration").map_or(Ok(FlowDuration::Continuous), |it| duration::read(&it));
    let extent = problems.take(extent);
    // Check the other transmission fields even if the rate or duration is invalid.
    let (any_rate, any_extent) = (RequestedRate::Speed(Speed::Max), FlowDuration::Packets(1));
    let (transmission, next) = read_transmission(
        &fields,
        rate.unwrap_or(any_rate),
        extent.unwrap_or(any_extent),
        problems,
    );
    let time = match extent? {
        FlowDuration::Time(time) => Some(time),
        _ => None,
    };
    let Packet { template, program, payload, found } = packet?;
    let (name, is_measured) = (name?, is_measured?);
    let stream = Stream {
        name,
        template,
        program,
        transmission,
        is_measured,
        trailer: 0,
        is_marked: false,
        member: None,
    };
    let (transmit, receive, path) = (transmit?, receive?, place.path());
    size?;
    Some(UnlinkedFlow {
        flow: Flow {
            tx_port: transmit,
            rx_ports: receive,
            rate: rate?,
            duration: time,
            payload,
            counted_bits: Vec::new(),
            auto_addresses: found,
            stream,
            path,
        },
        next,
    })
}

fn read_rx_ports(place: &ValueAt<'_>, ports: &[Port]) -> Result<Vec<usize>, PlanError> {
    if place.value().is_array() {
        let names = place.items("names of ports")?;
        return names.iter().map(|name| read_port_name(name, ports)).collect();
    }
    Ok(vec![read_port_name(place, ports)?])
}

fn read_metrics(place: &ValueAt<'_>) -> Result<bool, PlanError> {
    place.fields(&METRICS)?.get("enable").map_or(Ok(true), |enable| enable.boolean())
}

fn read_transmission(
    fields: &Fields<'_>,
    rate: RequestedRate,
    extent: FlowDuration,
    problems: &mut ErrorCollector,
) -> (Transmission, Option<(String, PlanError)>) {
    let mode = match extent {
        FlowDuration::Continuous | FlowDuration::Time(_) => Mode::Continuous,
        FlowDuration::Packets(frames) => Mode::Burst { frames },
        FlowDuration::Bursts { bursts, packets, gap } => {
            Mode::Bursts { frames: packets, count: bursts, gap }
        }
    };
    let constant = Ok(GapDistribution::Constant);
    let departures = fields.get("inter_departure").map_or(constant, |it| read_departures(&it));
    let departures = problems.take(departures).unwrap_or(GapDistribution::Constant);
    let zero = Ok(Duration::ZERO);
    let start_delay = fields.get("start_delay").map_or(zero, |delay| read_time(&delay));
    let start_delay = problems.take(start_delay).unwrap_or(Duration::ZERO);
    let start = fields.get("start").map_or(Ok((true, false)), |start| read_start(&start));
    let (self_start, start_paused) = problems.take(start).unwrap_or((true, false));
    let next = fields.get("next").map_or(Ok(None), |next| read_next(&next, extent).map(Some));
    let next = problems.take(next).flatten();
    let starts_max = next.as_ref().map_or(0, |next| next.times);
    let next = next.map(|next| (next.name, next.unknown));
    let speed = match rate {
        RequestedRate::Speed(speed) => speed,
        RequestedRate::Percentage(_) => Speed::Max,
    };
    let transmission = Transmission {
        mode,
        speed,
        departures,
        start_delay,
        self_start,
        start_paused,
        next: None,
        starts_max,
    };
    (transmission, next)
}

/// The `next` of a flow.
struct Next {
    name: String,
    /// Maximum starts of the flow that has this `next`; 0: no limit.
    times: u32,
    /// Error for the case that no flow has this name.
    unknown: PlanError,
}

fn read_next(place: &ValueAt<'_>, extent: FlowDuration) -> Result<Next, PlanError> {
    let (mut name, mut times) = (place.clone(), 0);
    if place.value().is_object() {
        let fields = place.fields(&NEXT)?;
        if let Some(most) = fields.get("times") {
            times = most.integer(1, u64::from(u32::MAX))? as u32;
        }
        name = fields.required("flow", "the name of a flow")?;
    }
    if extent == FlowDuration::Continuous {
        return Err(
            name.error("a flow that has no end", "a duration, after which the next flow starts")
        );
    }
    let unknown = name.unexpected("the name of a flow");
    Ok(Next { name: name.string("the name of a flow")?.to_owned(), times, unknown })
}

const START: &str = "immediate, paused (until it is resumed) or triggered (by another flow's next)";

fn read_start(place: &ValueAt<'_>) -> Result<(bool, bool), PlanError> {
    let text = place.text(START)?;
    let known = STARTS.iter().find(|(name, _)| *name == text);
    known.map(|(_, start)| *start).ok_or_else(|| place.unexpected(START))
}

fn read_departures(place: &ValueAt<'_>) -> Result<GapDistribution, PlanError> {
    const EXPECTED: &str = "constant, poisson, or one of the fields poisson, on_off";
    match place.value().as_str() {
        Some("constant") => return Ok(GapDistribution::Constant),
        Some("poisson") => return Ok(GapDistribution::Poisson { seed: place.seed()? }),
        Some(_) => return Err(place.unexpected(EXPECTED)),
        None if !place.value().is_object() => return Err(place.unexpected(EXPECTED)),
        None => {}
    }
    let (form, value) = place.choice(&DEPARTURES)?;
    if form == "poisson" {
        value.fields(&POISSON)?;
        return Ok(GapDistribution::Poisson { seed: value.seed()? });
    }
    let fields = value.fields(&ON_OFF)?;
    let on = fields.required("on", "the length of a period with frames")?;
    let on_time = read_time(&on)?;
    if on_time == Duration::ZERO {
        return Err(on.unexpected("more than 0"));
    }
    let off = read_time(&fields.required("off", "the length of a period without frames")?)?;
    Ok(GapDistribution::OnOff { on: on_time, off })
}

fn read_port_name(place: &ValueAt<'_>, ports: &[Port]) -> Result<usize, PlanError> {
    let expected = || {
        let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        match names.as_slice() {
            [] => "the name of a port, but there are no ports".to_owned(),
            names => format!("the name of a port: {}", names.join(", ")),
        }
    };
    let name = place.string(&expected())?;
    ports.iter().position(|port| port.name == name).ok_or_else(|| place.unexpected(expected()))
}
