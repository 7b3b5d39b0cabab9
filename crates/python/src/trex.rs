//! TRex streams for the client in `python/trex`: their load, and runs of them.

use std::num::NonZeroU64;

use pyo3::prelude::*;
use wirestorm_control::FlowCommand;
use wirestorm_control::base::rate::Rate;
use wirestorm_control::model::stream::Stream;
use wirestorm_control::plan::traffic::{Flow, Port, TrafficPlan};
use wirestorm_control::plan::trex::{self, Addresses, LowerOptions, Marking};
use wirestorm_control::wire::packet::MacAddress;

use crate::errors::{plan_error_of, value_error};
use crate::run::{Run, SendOptions};
use crate::{read_multiplier, read_speed};

/// Names of the two ports of a run.
const TRANSMIT: &str = "tx";
const RECEIVE: &str = "rx";

/// Parameters to convert TRex streams: rate multiplier, line speed in bit/s, source and destination
/// MAC address.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct StreamParameters {
    multiplier: String,
    speed: String,
    source: String,
    destination: String,
}

impl StreamParameters {
    fn line_rate(&self) -> PyResult<Rate> {
        read_speed(&self.speed)
    }

    fn options(&self) -> PyResult<LowerOptions> {
        let address = |text: &str| {
            text.parse::<MacAddress>()
                .map_err(|_| value_error(format!("{text:?}: expected a MAC address")))
        };
        Ok(LowerOptions {
            line_rate: self.line_rate()?,
            multiplier: read_multiplier(&self.multiplier)?,
            addresses: Addresses {
                source: address(&self.source)?,
                destination: address(&self.destination)?,
            },
            marking: Marking::Signature,
            cores: NonZeroU64::MIN,
        })
    }

    fn lower(&self, py: Python<'_>, streams: &str) -> PyResult<Vec<Stream>> {
        trex::lower(streams, &self.options()?).map_err(|error| plan_error_of(py, &error))
    }
}

/// Returns the maximum load of TRex streams together: frames/s, bit/s at layer 2 and bit/s at layer
/// 1.
#[pyfunction]
pub(crate) fn trex_load(
    py: Python<'_>,
    streams: &str,
    terms: StreamParameters,
) -> PyResult<(f64, f64, f64)> {
    let load = trex::load(streams, &terms.options()?);
    let load = load.map_err(|error| plan_error_of(py, &error))?;
    Ok((load.frames, load.bits_l2, load.bits_l1))
}

/// Starts to send TRex streams from an interface. `receive` is the interface that receives them.
///
/// The flows have the names of the streams, or their numbers if they have no names.
#[pyfunction]
pub(crate) fn trex_start(
    py: Python<'_>,
    streams: &str,
    terms: StreamParameters,
    interface: String,
    receive: Option<String>,
    how: SendOptions,
) -> PyResult<Run> {
    let streams = terms.lower(py, streams)?;
    let speed = Some(terms.line_rate()?);
    let mut ports = vec![Port::on_interface(interface, TRANSMIT.into(), speed)];
    ports.extend(receive.map(|interface| Port::on_interface(interface, RECEIVE.into(), speed)));
    let receive: Vec<usize> = (1..ports.len()).collect();
    let flow = |(index, stream): (usize, Stream)| {
        Flow::from_stream(stream, 0, receive.clone(), format!("[{index}]"))
    };
    let flows = streams.into_iter().enumerate().map(flow).collect();
    let plan = TrafficPlan { ports, flows };
    Run::start(py, plan, how)
}

/// Changes the rates of some or all streams of a run.
///
/// The new rates are those of the document with this multiplier.
#[pyfunction]
pub(crate) fn trex_update(
    py: Python<'_>,
    run: &Run,
    streams: &str,
    terms: StreamParameters,
) -> PyResult<()> {
    for stream in terms.lower(py, streams)? {
        run.command(&[stream.name], FlowCommand::SetSpeed(stream.transmission.speed))?;
    }
    Ok(())
}
