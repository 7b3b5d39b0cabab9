//! Clients and servers on both sides of a simulated device with known limits.

use crate::connections::{ConnectionsInput, ConnectionsOutput, ConnectionsSeries, LoadUnit};
use crate::device::DeviceModel;
use crate::distribution::Distribution;
use crate::trial::{OfferOutput, StepOutput, TrialInput, TrialOutput};

/// Returns the output of a trial. The device fails what exceeds its limits, and resets a part of
/// the connections as its model says.
pub(crate) fn simulate(
    model: &DeviceModel,
    input: &TrialInput,
    connections: &ConnectionsInput,
) -> TrialOutput {
    let load = input.offers.first().and_then(|it| it.steps.first()).map_or(0, |step| step.load);
    let sustain_s = connections.sustain.as_secs_f64();
    let is_held = connections.unit == LoadUnit::ConcurrentConnections;
    // Sums over the classes: connections, transactions and bits, per second. For held connections:
    // all of them.
    let sum = |of: &dyn Fn(&crate::connections::TrafficClass) -> f64| -> f64 {
        let of_class = |class| connections.class_load(class, load) * of(class);
        connections.classes.iter().map(of_class).sum()
    };
    let wanted = sum(&|_| 1.0);
    let transactions = sum(&|class| class.transactions() as f64);
    let bits = sum(&|class| class.bits_per_connection);
    let ramp_s = connections.ramp_up.as_secs_f64().max(1e-9);
    let start_rate = if is_held { wanted / ramp_s } else { wanted };
    let started = wanted * (model.generator_max / start_rate).min(1.0);
    // Part of what is started that the device handles.
    let part = |limit: f64, load: f64| (limit / load.max(1e-9)).min(1.0);
    let handled = part(model.connections_per_second, start_rate).min(match is_held {
        true => part(model.concurrent_connections, wanted),
        false => {
            part(model.transactions_per_second, transactions).min(part(model.bits_per_second, bits))
        }
    });
    let seconds = if is_held { 1.0 } else { sustain_s };
    let attempted = (started * seconds).round() as u64;
    let established = match handled < 1.0 {
        true => (started * handled * seconds + 1e-6).floor().min(attempted as f64),
        false => attempted as f64,
    };
    let failed = attempted - established as u64;
    let resets = (attempted as f64 * model.reset_ratio).floor() as u64;
    let per_connection = transactions / wanted.max(1e-9);
    let done = (established * per_connection).round() as u64;
    let bytes = established * bits / wanted.max(1e-9) / 8.0;
    let response_s = 4.0 * model.delay_ns as f64 / 1e9;
    let held = match is_held {
        true => established,
        false => established / sustain_s.max(1e-9) * response_s * per_connection,
    };
    let intervals = (sustain_s.floor() as usize).max(1);
    let varied = |mean: f64| -> Vec<f64> {
        // Alternating, so that the mean stays.
        let vary = |place: usize| if place.is_multiple_of(2) { 1.0 } else { -1.0 };
        let pairs = intervals - intervals % 2;
        let variation =
            |place| if place < pairs { vary(place) * model.rate_variation } else { 0.0 };
        (0..intervals).map(|place| mean * (1.0 + variation(place))).collect()
    };
    let whole = |values: Vec<f64>| values.into_iter().map(|it| it.round() as u64).collect();
    let interval = intervals as f64;
    let tls = connections.classes.iter().filter(|class| class.tls.is_some());
    let tls: f64 = tls.map(|class| connections.class_load(class, load)).sum();
    let late = (wanted * seconds).round() as u64 - attempted;
    let first = established as u64;
    let time = |factor: u64, count| Distribution::of((model.delay_ns * factor) as i64, count);
    let output = ConnectionsOutput {
        sustain_s,
        attempted,
        established: first,
        failed: failed + resets,
        resets,
        late,
        failed_before: 0,
        transactions_attempted: (attempted as f64 * per_connection).round() as u64,
        transactions: done - resets.min(done),
        tls_handshakes: (established * tls / wanted.max(1e-9)).round() as u64,
        layer_2_bytes: bytes as u64,
        payload_bytes: (bytes * 0.9) as u64,
        series: ConnectionsSeries {
            interval_s: sustain_s / interval,
            concurrent: vec![held.round() as u64; intervals],
            payload_bytes: whole(varied(bytes * 0.9 / interval)),
            established_per_s: match is_held {
                true => vec![0.0; intervals],
                false => varied(established / sustain_s.max(1e-9)),
            },
            transactions_per_s: varied(done as f64 / sustain_s.max(1e-9)),
        },
        time_to_first_byte: time(4, first),
        time_to_last_byte: time(5, first),
        response_time: time(2, done.saturating_sub(first)),
    };
    let step = StepOutput {
        intended: attempted + late,
        offered: attempted,
        received: attempted - failed.saturating_add(resets).min(attempted),
        seconds: sustain_s,
        ..StepOutput::default()
    };
    let offers = vec![OfferOutput { steps: vec![step], ..OfferOutput::default() }];
    let elapsed_s = input.duration().as_secs_f64();
    TrialOutput { offers, connections: Some(output), elapsed_s, ..TrialOutput::default() }
}
