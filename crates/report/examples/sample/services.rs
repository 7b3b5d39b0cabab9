//! Sample runs of non-drop rates, Ethernet services and RFC 9411.

use wirestorm_base::time::Duration;
use wirestorm_method::collector::Collector;
use wirestorm_method::connections::TlsSettings;
use wirestorm_method::device::DeviceModel;
use wirestorm_method::method::Method;
use wirestorm_method::ndr::{CONNECTIONS, Ndr};
use wirestorm_method::rfc9411::{MixClass, Rfc9411, Targets, Test};
use wirestorm_method::y1564::{Criteria, Service, Test as ServiceTest, Y1564};
use wirestorm_report::run::{Run, RunOutput};

use crate::data::bench;

/// Non-drop rates of three frame sizes, with the half and the third of each.
pub(crate) fn ndr(id: &str, frames_per_second: f64) -> Run {
    let method =
        Ndr { frame_sizes: vec![64, 256, 512, 1518], pdr: 0.0, results: 3, ..Ndr::default() };
    let model = DeviceModel {
        frames_per_second,
        bits_per_second: 9.2e9,
        generator_max: 14e6,
        delay_ns: 8_000,
        ..DeviceModel::default()
    };
    bench(id, "lab router", Method::Ndr(method), &model)
}

/// Rate of the connections of a plan.
pub(crate) fn ndr_connections(id: &str, connections_per_second: f64) -> Run {
    let method = Ndr {
        traffic: vec![CONNECTIONS.to_owned()],
        frame_sizes: Vec::new(),
        load_max: Some(100_000),
        results: 2,
        ..Ndr::default()
    };
    let model = DeviceModel { connections_per_second, ..DeviceModel::default() };
    bench(id, "lab firewall", Method::Ndr(method), &model)
}

/// A collector that loses records above a rate.
pub(crate) fn collector(id: &str) -> Run {
    let method = Collector {
        rates: (1..=10).map(|step| step * 100_000).collect(),
        searches: true,
        resolution: 0.01,
        protocol: "ipfix".to_owned(),
        family: "ipv4".to_owned(),
        exporters: 100,
        domains: 4,
        flows_per_stream: 0,
        datagram_length_max: 1_400,
        template_refresh: Duration::from_secs(60),
        template_refresh_datagrams: 20,
        trial: Duration::from_secs(60),
    };
    let model = DeviceModel { flows_per_second: 640_000.0, ..DeviceModel::default() };
    bench(id, "lab collector", Method::Collector(method), &model)
}

/// Three services; the policer passes more than the profile of the last one.
pub(crate) fn y1564(id: &str) -> Run {
    let service = |name: &str, cir_bps: u64, eir_bps: u64, frame_sizes: &[u32]| Service {
        name: name.to_owned(),
        protocol: "ipv4".to_owned(),
        frame_sizes: frame_sizes.to_vec(),
        vlan: Some(100),
        pcp: 5,
        dscp: 46,
        cir_bps,
        eir_bps,
        cbs_bytes: 0,
        ebs_bytes: 0,
        criteria: Criteria {
            flr: 0.001,
            ftd_s: Some(0.005),
            fdv_s: Some(0.002),
            availability: Some(0.999),
        },
    };
    let method = Y1564 {
        services: vec![
            service("voice", 4_000_000, 0, &[256]),
            service("data", 10_000_000, 5_000_000, &[512, 1518]),
            service("video", 16_000_000, 0, &[1518]),
        ],
        tests: ServiceTest::ALL.to_vec(),
        cir_steps: vec![0.25, 0.5, 0.75, 1.0],
        step: Duration::from_secs(10),
        performance: Duration::from_secs(900),
        rate_tolerance: 0.01,
    };
    let model = DeviceModel { police_bps: 15e6, delay_ns: 900_000, ..DeviceModel::default() };
    let mut run = bench(id, "metro switch", Method::Y1564(method), &model);
    if let Some(RunOutput::Bench(result)) = &mut run.result {
        result.verdict = wirestorm_control::result::Verdict {
            outcome: wirestorm_control::result::Outcome::FellShort,
            reasons: vec!["2 steps of service video failed".to_owned()],
        };
    }
    run
}

/// All tests of RFC 9411 on a firewall. The search stops where a limit of it is.
pub(crate) fn rfc9411(id: &str, has_tls: bool) -> Run {
    let tls =
        TlsSettings { version: "1.3".to_owned(), cipher: "TLS_AES_128_GCM_SHA256".to_owned() };
    let class = |name: &str, tls: Option<TlsSettings>, objects: &[u32], share: f64| MixClass {
        name: name.to_owned(),
        tls,
        objects: objects.to_vec(),
        share,
    };
    let method = Rfc9411 {
        tests: Test::ALL.to_vec(),
        tls: has_tls.then(|| tls.clone()),
        mix: vec![
            class("web", Some(tls), &[65_536], 0.7),
            class("api", None, &[1_024, 4_096], 0.3),
        ],
        targets: Targets {
            connections_per_s: Some(50_000),
            throughput_bps: Some(10_000_000_000),
            concurrent: Some(1_000_000),
        },
        sustain: Duration::from_secs(60),
        search_sustain: Duration::from_secs(60),
        clients: vec!["198.18.0.0/16".to_owned()],
        servers: vec!["198.19.0.0/24".to_owned()],
        ..Rfc9411::default()
    };
    let part = if has_tls { 0.4 } else { 1.0 };
    let model = DeviceModel {
        connections_per_second: 42_000.0 * part,
        transactions_per_second: 160_000.0 * part,
        bits_per_second: 8.4e9 * part,
        concurrent_connections: 780_000.0 * part,
        rate_variation: 0.02,
        delay_ns: 300_000,
        ..DeviceModel::default()
    };
    bench(id, "lab firewall", Method::Rfc9411(method), &model)
}
