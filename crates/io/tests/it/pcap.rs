//! Port contract of the capture file ports: one writes a file that the other reads.

use wirestorm_base::contract::PortPair;
use wirestorm_base::port_contract;
use wirestorm_io::clock;
use wirestorm_io::pcap::{PcapReceive, PcapTransmit};

fn connect() -> Option<PortPair<PcapTransmit, PcapReceive>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wire.pcap");
    let transmit = PcapTransmit::create(&path).unwrap();
    let receive = PcapReceive::open(&path).unwrap();
    Some(PortPair { transmit, receive, now: clock::now, window: 512, wire: Box::new(folder) })
}

port_contract!(contract, connect);
