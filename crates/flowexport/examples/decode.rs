//! Measures encoding and decoding of flow export on one core.
//!
//! `decode VERSION RECORDS encode|decode|table` prints one JSON document; VERSION is 5, 9, 10 or
//! sflow. `decode` decodes each datagram of a small set again and again; `table` also adds the
//! records to a flow table with 100,000 keys. The difference of two runs under callgrind, divided by
//! the difference of their records, is the number of instructions a record.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant as Clock;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::Version;
use wirestorm_flowexport::collector::{Collector, CollectorOptions};
use wirestorm_flowexport::exporter::{
    Exporter, ExporterOptions, FlowGenerator, FlowGeneratorOptions,
};
use wirestorm_flowexport::flow_table::FlowTable;

const NOW: Instant = Instant::from_nanos(1_800_000_000_000_000_000);
const EXPORTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 2_055);
/// Keys of the flow table.
const KEYS: u64 = 100_000;
/// Datagrams that are decoded again and again.
const DATAGRAMS: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, records, mode] = &arguments[..] else { usage() };
    let version = match version.as_str() {
        "5" => Version::NetflowV5,
        "9" => Version::NetflowV9,
        "10" => Version::Ipfix,
        "sflow" => Version::SflowV5,
        _ => usage(),
    };
    let Ok(records) = records.parse::<u64>() else { usage() };
    let boot = NOW.saturating_sub(Duration::from_secs(3_600));
    let options = ExporterOptions { version, boot, ..ExporterOptions::default() };
    let exporter = Exporter::new(options).expect("the options are valid");
    let (done, elapsed, extra) = match mode.as_str() {
        "encode" => encode(exporter, records),
        "decode" => decode(exporter, records, false),
        "table" => decode(exporter, records, true),
        _ => usage(),
    };
    println!(
        "{{\"version\": \"{version}\", \"mode\": \"{mode}\", \"records\": {done}, \
         \"seconds\": {elapsed:.3}, \"records_per_second\": {:.0}, {extra}}}",
        done as f64 / elapsed
    );
}

fn usage() -> ! {
    eprintln!("usage: decode 5|9|10|sflow RECORDS encode|decode|table");
    std::process::exit(2);
}

fn encode(mut exporter: Exporter, records: u64) -> (u64, f64, String) {
    let generator = FlowGenerator::new(FlowGeneratorOptions::default());
    let mut flows = (0..records).map(|index| generator.flow(index, NOW));
    let mut buffer = [0; 2_048];
    let began = Clock::now();
    while exporter.encode(NOW, &mut flows, &mut buffer).is_some() {}
    let elapsed = began.elapsed().as_secs_f64();
    let counters = exporter.counters();
    (counters.records, elapsed, format!("\"datagrams\": {}", counters.datagrams))
}

fn decode(mut exporter: Exporter, records: u64, with_table: bool) -> (u64, f64, String) {
    let generator = FlowGenerator::new(FlowGeneratorOptions::default());
    let mut flows = (0..).map(|index| generator.flow(index % KEYS, NOW));
    let mut datagrams = Vec::new();
    let mut buffer = [0; 2_048];
    let keys = if with_table { KEYS } else { 0 };
    while datagrams.len() < DATAGRAMS || exporter.counters().records < keys {
        let encoded = exporter.encode(NOW, &mut flows, &mut buffer).expect("flows are endless");
        datagrams.push(buffer[..encoded.length].to_vec());
    }
    // A repeated datagram is a jump back: the collector needs no exception for it.
    let mut collector = Collector::new(CollectorOptions::default());
    let mut table = FlowTable::default();
    let (mut done, mut bytes) = (0, 0_u64);
    let began = Clock::now();
    'all: loop {
        for datagram in &datagrams {
            let received = collector.receive(EXPORTER, datagram, NOW, |record| {
                bytes += record.flow.bytes;
                if with_table {
                    table.add(record.flow);
                }
            });
            done += u64::from(received.records);
            if done >= records {
                break 'all;
            }
        }
    }
    let elapsed = began.elapsed().as_secs_f64();
    (done, elapsed, format!("\"bytes\": {bytes}, \"keys\": {}", table.len()))
}
