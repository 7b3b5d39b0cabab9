//! `egress_only_tracking`.

use wirestorm_otg::from_json;
use wirestorm_otg::lower::{EgressTracking, MetricTag};
use wirestorm_otg::proto::Config;

use crate::support::{errors, lowered};

fn tracking(of_ports: &str) -> Config {
    let ports = r#"[{"name": "p1"}, {"name": "p2"}]"#;
    let text = format!(r#"{{"ports": {ports}, "egress_only_tracking": [{of_ports}]}}"#);
    from_json(&text).unwrap().0
}

#[test]
fn a_port_is_tracked_by_bits() {
    let lowered = lowered(&tracking(
        r#"{"port_name": "p2", "enable_timestamps": true, "filters": [{"choice": "none"}],
            "metric_tags": [{"name": "dscp", "rx_offset": 120, "length": 6}, {"name": "one",
            "rx_offset": 3, "tx_offset": {"choice": "custom", "custom": {"value": 4}}}]}"#,
    ));
    let tag = |name: &str, bit_offset, bit_length| MetricTag {
        name: name.to_owned(),
        bit_offset,
        bit_length,
    };
    let tags = vec![tag("dscp", 120, 6), tag("one", 3, 1)];
    assert_eq!(lowered.egress, [EgressTracking { port: 1, tags, timestamps: true }]);
    let warnings: Vec<&str> = lowered.warnings.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(warnings, ["egress_only_tracking[0].metric_tags[1].tx_offset"]);
}

#[test]
fn what_cannot_be_tracked_is_an_error() {
    let tag = r#""metric_tags": [{"name": "t", "rx_offset": 0, "length": 8}]"#;
    let twice = format!(r#"{{"port_name": "p1", {tag}}}, {{"port_name": "p1", {tag}}}"#);
    let macsec =
        format!(r#"{{"port_name": "p1", {tag}, "filters": [{{"choice": "auto_macsec"}}]}}"#);
    let long = r#"{"port_name": "p1", "metric_tags": [{"name": "t", "rx_offset": 0,
        "length": 129}]}"#;
    for (config, expected) in [
        (&*twice, r#"egress_only_tracking[1].port_name: found "p1" a second time"#),
        (&macsec, "egress_only_tracking[0].filters[0].auto_macsec: not supported"),
        (r#"{"port_name": "p1"}"#, "egress_only_tracking[0].metric_tags: found none"),
        (long, "egress_only_tracking[0].metric_tags[0]: found 129 bits"),
    ] {
        let errors = errors(&tracking(config));
        assert!(errors.len() == 1 && errors[0].starts_with(expected), "{errors:?}");
    }
}
