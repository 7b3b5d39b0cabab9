//! Samples of single connections, under TRex's names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wirestorm_control::Detail;
use wirestorm_control::result::{FlowSample, SampledFlow};

use super::super::Trex;
use super::super::parameters::Parameters;
use super::super::rpc::Answer;
use super::{counters, profile_name};

/// States of TCP in the numbers of BSD's stack.
const STATES: [&str; 11] = [
    "CLOSED",
    "LISTEN",
    "SYN-SENT",
    "SYN-RECEIVED",
    "ESTABLISHED",
    "CLOSE-WAIT",
    "FIN-WAIT-1",
    "CLOSING",
    "LAST-ACK",
    "FIN-WAIT-2",
    "TIME-WAIT",
];
/// Shifts of round-trip times and their variation, as BSD's stack keeps them.
const ROUND_TRIP_SHIFT: u32 = 5;
const VARIATION_SHIFT: u32 = 4;
/// Time for which samples are kept, in seconds.
const KEPT_S: f64 = 10.0;

/// Returns the fields of a sample: times in milliseconds, lengths in bytes.
fn info(flow: &SampledFlow, sample: &FlowSample) -> Value {
    let state = STATES.iter().position(|name| *name == sample.state.as_ref());
    let is_open = sample.state != "SYN-SENT";
    let behind = u64::from(sample.unsent);
    let sent =
        (sample.acknowledged_bytes + u64::from(sample.bytes_in_flight)).saturating_sub(behind);
    let shifted = |us: Option<u32>, shift: u32| (u64::from(us.unwrap_or(0)) << shift) / 1_000;
    let mut options = String::new();
    for (is_used, text) in [
        (sample.timestamps, "/timestamps"),
        (sample.sack, "/sack"),
        (sample.ecn, "/ecn"),
        (sample.send_window_scale.is_some(), "/wscale"),
    ] {
        if is_used {
            options.push_str(text);
        }
    }
    let mut found = json!({
        "origin": flow.side,
        "duration": ((sample.at_s - flow.start_s) * 1e3).max(0.0).round() as u64,
        "state": state.unwrap_or_default(),
        "options": options,
        "rto": sample.rto_us / 1_000,
        "rtt": shifted(sample.rtt_us, ROUND_TRIP_SHIFT),
        "rttvar": shifted(sample.rttvar_us, VARIATION_SHIFT),
        "snd_ssthresh": sample.ssthresh.unwrap_or(u32::MAX),
        "snd_cwnd": sample.cwnd,
        "snd_wnd": sample.send_window,
        // Sequence numbers relative to the SYN.
        "snd_nxt": 1 + sent,
        "rcv_nxt": if is_open { 1 + sample.received_bytes } else { 0 },
        "snd_mss": sample.mss,
        "rcv_mss": sample.mss,
        "rcv_space": sample.receive_window,
        "snd_rexmitpack": sample.retransmitted,
        "rcv_ooopack": sample.out_of_order,
        // Programs read received data at once, so that the window never closes.
        "snd_zerowin": 0,
    });
    if let Some(scale) = sample.send_window_scale {
        found["snd_wscale"] = scale.into();
        found["rcv_wscale"] = sample.receive_window_scale.into();
    }
    if let Some(idle_ms) = sample.idle_ms {
        found["last_data_recv"] = idle_ms.into();
    }
    found
}

/// Returns the samples from number `from` on, an object for each number.
fn samples_of<'a>(
    flows: impl Iterator<Item = &'a SampledFlow>,
    interval_s: f64,
    from: u64,
) -> Vec<Value> {
    let mut found: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
    for flow in flows {
        for sample in &flow.samples {
            let number = (sample.at_s / interval_s).max(0.0).round() as u64;
            if number >= from {
                let ends = format!("{}-{}", flow.local, flow.remote);
                found.entry(number).or_default().insert(ends, info(flow, sample));
            }
        }
    }
    let kept = (KEPT_S / interval_s).max(1.0) as usize;
    let left_out = found.len().saturating_sub(kept);
    let kept = found.into_iter().skip(left_out).map(|(number, mut flows)| {
        flows.insert("index".to_owned(), number.into());
        Value::Object(flows)
    });
    kept.collect()
}

pub(in super::super) fn get_flow_info(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let from = parameters.u64_or("index", 0)?;
    let run = trex.state().astf.profile(profile_name(parameters)?)?.last.clone();
    let Some((run, interval_s)) = run.and_then(|run| Some((run.clone(), run.dump_interval_s?)))
    else {
        return Ok(json!([]));
    };
    // Asking the workers takes some time, so no lock is held here.
    let (reports, _) = counters::reports(&run, Detail::Templates);
    let ports = reports.iter().filter_map(|port| port.connections.as_ref());
    let flows = ports.flat_map(|connections| &connections.sampled_flows);
    Ok(samples_of(flows, interval_s, from).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64) -> FlowSample {
        FlowSample {
            at_s,
            state: "ESTABLISHED".into(),
            mss: 1_460,
            cwnd: 14_600,
            ssthresh: None,
            send_window: 65_535,
            receive_window: 32_768,
            send_window_scale: Some(7),
            receive_window_scale: Some(2),
            timestamps: true,
            sack: true,
            ecn: false,
            idle_ms: None,
            bytes_in_flight: 30,
            unsent: 10,
            rtt_us: Some(2_000),
            rttvar_us: Some(1_000),
            rtt_min_us: None,
            rto_us: 200_000,
            retransmitted: 1,
            out_of_order: 0,
            acknowledged_bytes: 100,
            received_bytes: 50,
        }
    }

    #[test]
    fn samples_have_numbers_and_the_names_of_trex() {
        let flow = SampledFlow {
            template: "a".to_owned(),
            side: "client".into(),
            transport: "tcp".into(),
            local: "16.0.0.1:1024".to_owned(),
            remote: "48.0.0.1:80".to_owned(),
            start_s: 0.5,
            ended: false,
            samples: vec![sample(1.0), sample(2.0), sample(3.0)],
        };
        let found = samples_of([&flow].into_iter(), 1.0, 2);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["index"], 2);
        let info = &found[0]["16.0.0.1:1024-48.0.0.1:80"];
        assert_eq!(
            (&info["state"], &info["options"]),
            (&json!(4), &json!("/timestamps/sack/wscale"))
        );
        assert_eq!((&info["snd_nxt"], &info["rcv_nxt"]), (&json!(121), &json!(51)));
        assert_eq!((&info["rtt"], &info["rto"]), (&json!(64), &json!(200)));
        assert_eq!((&info["duration"], &info["snd_ssthresh"]), (&json!(1_500), &json!(u32::MAX)));
        assert_eq!(samples_of([&flow].into_iter(), 10.0, 0).len(), 1);
    }
}
