//! Exporters of this crate against nfdump's collector.

use wirestorm_base::time::Duration;
use wirestorm_flowexport::Version;
use wirestorm_flowexport::exporter::{
    Exporter, ExporterOptions, Family, FlowGenerator, FlowGeneratorOptions,
};
use wirestorm_testkit::{Scratch, require};

use crate::programs::{Nfcapd, Stored};
use crate::support::{NOW, datagrams, generated};

#[test]
fn nfcapd_stores_what_exporters_send() {
    if !require::require_tool("nfcapd") || !require::require_tool("nfdump") {
        return;
    }
    for version in [Version::NetflowV5, Version::NetflowV9, Version::Ipfix] {
        let options = ExporterOptions {
            version,
            boot: NOW.saturating_sub(Duration::from_secs(3_600)),
            ..ExporterOptions::default()
        };
        let family = if version == Version::NetflowV5 { Family::Ipv4 } else { Family::Both };
        let generator = FlowGenerator::new(FlowGeneratorOptions { family, ..Default::default() });
        let sent = generated(&generator, 0..3_000);
        let mut exporter = Exporter::new(options).expect("valid options");
        let scratch = Scratch::new().expect("a folder");
        let nfcapd = Nfcapd::start(&scratch.file("nfcapd"));
        for datagram in datagrams(&mut exporter, NOW, sent.iter().copied()) {
            nfcapd.send(&datagram);
        }
        let stored = nfcapd.finish();
        assert_eq!(stored.len(), sent.len(), "{version}");
        for (stored, flow) in stored.iter().zip(&sent) {
            assert_eq!(*stored, Stored::of(flow), "{version}");
        }
    }
}
