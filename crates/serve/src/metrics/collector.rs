//! Formats the metrics of all watched runs at each scrape.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Unit;
use wirestorm_control::result::Kind;
use wirestorm_control::{RunState, Snapshot};

use super::FLOWS_MAX;
use super::families::{
    BUILD, FLOW_FAMILIES, FLOWS_OMITTED, Family, PORT_FAMILIES, RUN_FAMILIES, RUNS_OMITTED, STATE,
    Type, Unit as FamilyUnit, Value,
};
use super::watched::WatchedRuns;

/// States of a run, in the order of its life.
const STATES: [RunState; 8] = [
    RunState::Preparing,
    RunState::Prepared,
    RunState::Armed,
    RunState::Running,
    RunState::Draining,
    RunState::Finished,
    RunState::Failed,
    RunState::Interrupted,
];

/// Reads and formats the last snapshots of the runs of a server.
#[derive(Debug)]
pub(super) struct RunCollector(pub(super) Arc<WatchedRuns>);

/// A run at the time of a scrape.
struct Sample {
    id: String,
    kind: Kind,
    state: RunState,
    snapshot: Arc<Snapshot>,
    /// Number of the first flows that have metrics.
    flows: usize,
}

impl Collector for RunCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (runs, omitted) = self.0.read();
        let mut room = FLOWS_MAX;
        let sample = |run: &wirestorm_control::RunHandle| {
            let snapshot = run.latest().unwrap_or_default();
            let flows = snapshot.flows.len().min(room);
            room -= flows;
            let (id, kind, state) = (run.id().to_string(), run.kind(), run.state());
            Sample { id, kind, state, snapshot, flows }
        };
        let samples: Vec<Sample> = runs.iter().map(sample).collect();
        encode(&samples, omitted, Encoder(encoder))
    }
}

fn encode(samples: &[Sample], omitted: u64, mut encoder: Encoder<'_>) -> fmt::Result {
    encoder.build()?;
    encoder.family(&RUNS_OMITTED, [(NO_LABELS, Value::Count(omitted))])?;
    let states = samples.iter().flat_map(|sample| {
        STATES.map(|state| {
            let [run, kind] = sample.labels();
            let value = Value::Real(if sample.state == state { 1.0 } else { 0.0 });
            ([run, kind, ("state", state.name())], value)
        })
    });
    encoder.family(&STATE, states)?;
    let omitted = samples.iter().map(|sample| {
        let omitted = sample.snapshot.flows.len() - sample.flows;
        (sample.labels(), Value::Real(omitted as f64))
    });
    encoder.family(&FLOWS_OMITTED, omitted)?;
    for family in RUN_FAMILIES {
        let runs = samples.iter().filter(|sample| family.has(sample.kind));
        let values = runs.filter_map(|it| Some((it.labels(), (family.value)(&it.snapshot)?)));
        encoder.family(family, values)?;
    }
    for family in PORT_FAMILIES {
        let runs = samples.iter().filter(|sample| family.has(sample.kind));
        let ports =
            runs.flat_map(|sample| sample.snapshot.ports.iter().map(move |it| (sample, it)));
        let values = ports.filter_map(|(sample, port)| {
            let [run, kind] = sample.labels();
            let place = [("port", port.name.as_str()), ("interface", port.interface.as_str())];
            Some(([run, kind, place[0], place[1]], (family.value)(port)?))
        });
        encoder.family(family, values)?;
    }
    for family in FLOW_FAMILIES {
        let flows = samples.iter().flat_map(|sample| {
            sample.snapshot.flows.iter().take(sample.flows).map(move |flow| (sample, flow))
        });
        let values = flows.filter_map(|(sample, flow)| {
            let [run, kind] = sample.labels();
            Some(([run, kind, ("flow", &*flow.name)], (family.value)(flow)?))
        });
        encoder.family(family, values)?;
    }
    Ok(())
}

const NO_LABELS: [(&str, &str); 0] = [];

impl Sample {
    /// Returns the labels of all metrics of the run.
    fn labels(&self) -> [(&str, &str); 2] {
        [("run", &self.id), ("kind", self.kind.name())]
    }
}

/// Writes families.
struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    fn build(&mut self) -> fmt::Result {
        let info = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        let encoder = self.0.encode_descriptor(BUILD.name, BUILD.help, None, MetricType::Info)?;
        EncodeMetric::encode(&info, encoder)
    }

    /// Writes a family with a value for each label set; nothing if there is none.
    fn family<Of, Labels: EncodeLabelSet>(
        &mut self,
        family: &Family<Of>,
        values: impl IntoIterator<Item = (Labels, Value)>,
    ) -> fmt::Result {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return Ok(());
        }
        let unit = match family.unit {
            FamilyUnit::None => None,
            FamilyUnit::Bytes => Some(Unit::Bytes),
            FamilyUnit::Seconds => Some(Unit::Seconds),
            FamilyUnit::Ratio => Some(Unit::Other("ratio".to_owned())),
        };
        let metric_type = match family.metric_type {
            Type::Counter => MetricType::Counter,
            Type::Gauge => MetricType::Gauge,
            Type::Info => MetricType::Info,
        };
        let mut encoder =
            self.0.encode_descriptor(family.name, family.help, unit.as_ref(), metric_type)?;
        for (labels, value) in values {
            let encoder = encoder.encode_family(&labels)?;
            match (value, family.metric_type) {
                (Value::Count(value), Type::Counter) => {
                    ConstCounter::new(value).encode(encoder)?;
                }
                (Value::Real(value), Type::Counter) => ConstCounter::new(value).encode(encoder)?,
                (Value::Count(value), _) => ConstGauge::new(value as f64).encode(encoder)?,
                (Value::Real(value), _) => ConstGauge::new(value).encode(encoder)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::{prometheus_text, text};
    use prometheus_client::registry::Registry;
    use wirestorm_control::{FlowSnapshot, MeasuredSnapshot, PortSnapshot};

    use super::*;

    /// Samples as a collector.
    #[derive(Debug)]
    struct Fixed(fn() -> Vec<Sample>);

    impl Collector for Fixed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            super::encode(&self.0(), 0, Encoder(encoder))
        }
    }

    fn registry(samples: fn() -> Vec<Sample>) -> Registry {
        let mut registry = Registry::with_prefix("wirestorm");
        registry.register_collector(Box::new(Fixed(samples)));
        registry
    }

    fn prometheus(samples: fn() -> Vec<Sample>) -> String {
        let mut encoded = String::new();
        prometheus_text::encode(&mut encoded, &registry(samples)).unwrap();
        encoded
    }

    fn sample(kind: Kind, snapshot: Snapshot) -> Sample {
        let flows = snapshot.flows.len().min(FLOWS_MAX);
        let (id, snapshot) = ("7".to_owned(), Arc::new(snapshot));
        Sample { id, kind, state: RunState::Running, snapshot, flows }
    }

    fn streams() -> Vec<Sample> {
        let measured = MeasuredSnapshot { frames: 9, ..MeasuredSnapshot::default() };
        let delayed = MeasuredSnapshot { delay_mean_ns: Some(2_500.0), ..measured };
        let flow = |name: &str, received| FlowSnapshot {
            name: name.into(),
            received,
            ..FlowSnapshot::default()
        };
        let mut port = PortSnapshot { name: "a\"\\".into(), ..PortSnapshot::default() };
        port.transmitted.sent = u64::MAX;
        let snapshot = Snapshot {
            fraction: Some(0.25),
            ports: vec![port],
            flows: vec![
                flow("bare", None),
                flow("untimed", Some(measured)),
                flow("b", Some(delayed)),
            ],
            ..Snapshot::default()
        };
        vec![sample(Kind::Streams, snapshot)]
    }

    #[test]
    fn each_sample_has_its_labels_and_its_exact_value() {
        let text = prometheus(streams);
        for line in [
            "wirestorm_run_state{run=\"7\",kind=\"streams\",state=\"running\"} 1.0",
            "wirestorm_run_state{run=\"7\",kind=\"streams\",state=\"finished\"} 0.0",
            "wirestorm_run_completed_ratio{run=\"7\",kind=\"streams\"} 0.25",
            "wirestorm_port_sent_frames_total{run=\"7\",kind=\"streams\",port=\"a\\\"\\\\\",interface=\"\"} \
             18446744073709551615",
            "wirestorm_flow_received_frames_total{run=\"7\",kind=\"streams\",flow=\"untimed\"} 9",
            "wirestorm_flow_delay_mean_seconds{run=\"7\",kind=\"streams\",flow=\"b\"} 0.0000025",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn unknown_values_have_no_samples() {
        let text = prometheus(streams);
        assert!(
            !text.contains("flow_received_frames_total{run=\"7\",kind=\"streams\",flow=\"bare\"}")
        );
        assert_eq!(text.matches("flow_delay_mean_seconds{").count(), 1, "{text}");
        for family in ["connections", "impairment", "replay"] {
            assert!(!text.contains(&format!("wirestorm_{family}_")), "{text}");
        }
        let text = prometheus(|| vec![sample(Kind::Emulation, Snapshot::default())]);
        assert!(!text.contains("completed"), "{text}");
    }

    #[test]
    fn open_metrics_ends_with_its_mark_and_names_counters_without_total() {
        let mut encoded = String::new();
        text::encode(&mut encoded, &registry(streams)).unwrap();
        assert!(encoded.contains("# TYPE wirestorm_port_sent_bytes counter\n"), "{encoded}");
        assert!(encoded.contains("# UNIT wirestorm_port_sent_bytes bytes\n"), "{encoded}");
        assert!(encoded.contains("\nwirestorm_port_sent_bytes_total{"), "{encoded}");
        assert!(encoded.ends_with("# EOF\n"), "{encoded}");
    }

    #[test]
    fn flows_beyond_the_limit_are_omitted_and_counted() {
        let text = prometheus(|| {
            let flow = |number| FlowSnapshot {
                name: format!("flow-{number}").into(),
                ..FlowSnapshot::default()
            };
            let flows = (0..FLOWS_MAX + 200).map(flow).collect();
            vec![sample(Kind::Streams, Snapshot { flows, ..Snapshot::default() })]
        });
        assert_eq!(text.matches("wirestorm_flow_sent_frames_total{").count(), FLOWS_MAX);
        assert!(text.contains("run_flows_omitted{run=\"7\",kind=\"streams\"} 200.0\n"));
    }

    /// Metrics of the guide: name and type.
    fn documented() -> Vec<(String, String)> {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let rows = guide.lines().filter_map(|line| line.strip_prefix("| `wirestorm_"));
        let row = |row: &str| {
            let mut cells = row.split('|').map(|cell| cell.trim().trim_end_matches('`').to_owned());
            (format!("wirestorm_{}", cells.next().unwrap()), cells.next().unwrap())
        };
        rows.map(row).collect()
    }

    #[test]
    fn guide_lists_all_metrics_with_their_types() {
        let text = prometheus(|| {
            let mut samples = streams();
            let port =
                PortSnapshot { impairment: Some(Default::default()), ..PortSnapshot::default() };
            for kind in [Kind::Emulation, Kind::Replay] {
                let ports = vec![port.clone()];
                samples.push(sample(kind, Snapshot { ports, ..Snapshot::default() }));
            }
            samples
        });
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let typed = |line: &str| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let mut exported: Vec<(String, String)> = types.filter_map(typed).collect();
        let mut documented = documented();
        exported.sort();
        documented.sort();
        assert_eq!(exported, documented);
    }
}
