//! Plan of streams of a trial.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use wirestorm_method::trial::{Length, Offer, TrialInput};
use wirestorm_plan::traffic::TrafficPlan;

use super::output::Steps;
use super::test_bed::{Paths, PortPair};
use super::traffic::{Headers, NamedTraffic, TrafficDefinition};

/// First UDP source port of the test frames: the one of RFC 2544 appendix C.2.6.4 and more.
const SOURCE_PORT: u32 = 0xc020;
/// UDP destination port: echo (RFC 2544 appendix C.2.6.4).
const DESTINATION_PORT: u32 = 7;
/// Frames sent to make a device learn addresses.
const LEARNING_FRAMES: u64 = 3;
/// Rate of these frames in frames per second.
const LEARNING_RATE: u64 = 100;

/// Plan of a trial, and the steps that its flows belong to.
#[derive(Clone, Debug)]
pub struct PlanOfTrial {
    /// Text of the plan, in JSON.
    pub text: String,
    /// The plan.
    pub plan: TrafficPlan,
    /// Offer and step of each flow.
    pub steps: Steps,
}

/// What fills the frames of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    /// Ports that send and receive.
    pub paths: &'a Paths,
    /// MAC address of each port.
    pub macs: &'a [(String, [u8; 6])],
    /// Traffic by name, besides the built-in.
    pub traffic: &'a NamedTraffic,
}

/// One direction: an interface that sends to another.
#[derive(Clone, Copy)]
struct Direction<'a> {
    /// Index of the pair.
    pair: usize,
    from: &'a str,
    to: &'a str,
    /// Whether frames leave the second interface of the pair.
    is_reverse: bool,
}

impl Frames<'_> {
    /// Builds the plan of a trial.
    ///
    /// # Errors
    /// Fails if the frames do not fit, or a name of traffic is unknown or has no headers.
    pub fn trial(&self, input: &TrialInput) -> Result<PlanOfTrial, String> {
        let mut flows = Vec::new();
        let mut steps = Vec::new();
        for (number, offer) in input.offers.iter().enumerate() {
            for direction in self.directions(false) {
                for step in 0..offer.steps.len() {
                    flows.push(self.flow(number, offer, step, direction)?);
                    steps.push((number, step));
                }
            }
        }
        self.plan(flows, steps, input)
    }

    /// Builds the plan of the learning frames of a trial: from the receiving interfaces.
    ///
    /// # Errors
    /// As [`Self::trial`].
    pub fn learning(&self, input: &TrialInput) -> Result<PlanOfTrial, String> {
        let mut flows = Vec::new();
        for (number, offer) in input.offers.iter().enumerate() {
            for direction in self.directions(true) {
                let Direction { from, to, .. } = direction;
                flows.push(json!({
                    "name": format!("learning {number} {from} to {to}"),
                    "tx": from,
                    "rx": to,
                    "packet": self.packet(offer, direction)?,
                    "size": offer.frame_size,
                    "rate": {"pps": LEARNING_RATE},
                    "duration": {"fixed_packets": LEARNING_FRAMES},
                }));
            }
        }
        self.plan(flows, Vec::new(), input)
    }

    fn plan(
        &self,
        flows: Vec<Value>,
        steps: Vec<(usize, usize)>,
        input: &TrialInput,
    ) -> Result<PlanOfTrial, String> {
        let is_ipv6 = |offer: &Offer| self.headers(offer).is_ok_and(|headers| headers.is_ipv6);
        let is_ipv6 = input.offers.iter().any(is_ipv6);
        let ports: Vec<_> =
            self.paths.interfaces().into_iter().map(|name| self.port(name, is_ipv6)).collect();
        let document = json!({"ports": ports, "flows": flows});
        // JSON is valid YAML.
        let text = document.to_string();
        let plan = TrafficPlan::parse(&text).map_err(|error| error.to_string())?;
        Ok(PlanOfTrial { text, plan, steps: Steps::new(steps) })
    }

    fn port(&self, interface: &str, is_ipv6: bool) -> Value {
        let mut port = json!({"name": interface, "location": interface});
        if let Some(address) = self.paths.address(interface, is_ipv6) {
            port["addresses"] = json!(format!("{}/{}", address.address, address.prefix));
            if let Some(gateway) = address.gateway {
                port["gateway"] = json!(gateway.to_string());
            }
        }
        port
    }

    /// Returns the directions of test frames, or those of learning frames: their reverse.
    fn directions(&self, is_learning: bool) -> Vec<Direction<'_>> {
        let mut directions = Vec::new();
        for (pair, PortPair { tx, rx }) in self.paths.pairs.iter().enumerate() {
            if !is_learning || self.paths.is_bidirectional {
                directions.push(Direction { pair, from: tx, to: rx, is_reverse: false });
            }
            if is_learning || self.paths.is_bidirectional {
                directions.push(Direction { pair, from: rx, to: tx, is_reverse: true });
            }
        }
        directions
    }

    fn flow(
        &self,
        number: usize,
        offer: &Offer,
        step: usize,
        direction: Direction,
    ) -> Result<Value, String> {
        let Direction { from, to, .. } = direction;
        let name = |step: usize| format!("{number}.{step} {} {from} to {to}", offer.traffic);
        let load = &offer.steps[step];
        let duration = match load.length {
            Length::Time(time) => json!({"fixed_seconds": time.as_secs_f64()}),
            Length::Units(frames) => json!({"fixed_packets": frames}),
        };
        let mut flow = json!({
            "name": name(step),
            "tx": from,
            "rx": to,
            "packet": self.packet(offer, direction)?,
            "size": offer.frame_size,
            "rate": {"pps": load.load},
            "duration": duration,
            "metrics": {"enable": true},
        });
        if step > 0 {
            flow["start"] = json!("triggered");
        }
        if step + 1 < offer.steps.len() {
            flow["next"] = json!({"flow": name(step + 1), "times": 1});
        }
        Ok(flow)
    }

    /// Returns the headers of the frames of one direction.
    fn packet(&self, offer: &Offer, direction: Direction) -> Result<Value, String> {
        let Headers { is_ipv6, vlan, pcp, dscp } = self.headers(offer)?;
        let address = |interface: &str, is_second: bool| {
            let own = self.paths.address(interface, is_ipv6).map(|address| address.address);
            own.unwrap_or_else(|| benchmark_address(is_ipv6, is_second, direction.pair))
        };
        let source = address(direction.from, direction.is_reverse);
        let destination = address(direction.to, !direction.is_reverse);
        let ethernet = match self.paths.address(direction.from, is_ipv6) {
            Some(_) => json!({"src": "auto", "dst": "auto"}),
            None => json!({"src": self.mac(direction.from), "dst": self.mac(direction.to)}),
        };
        let source_port = match self.paths.flows {
            0 | 1 => json!(SOURCE_PORT),
            flows => json!({"increment": {"start": SOURCE_PORT, "count": flows}}),
        };
        let ip = if is_ipv6 { "ipv6" } else { "ipv4" };
        let mut ip_fields = json!({"src": source.to_string(), "dst": destination.to_string()});
        if dscp > 0 {
            ip_fields["dscp"] = json!(dscp);
        }
        let mut packet = vec![json!({"ethernet": ethernet})];
        packet.extend(vlan.map(|id| json!({"vlan": {"id": id, "priority": pcp}})));
        packet.push(json!({ip: ip_fields}));
        packet.push(json!({"udp": {"src_port": source_port, "dst_port": DESTINATION_PORT}}));
        Ok(packet.into())
    }

    /// Returns the headers of the traffic of an offer.
    fn headers(&self, offer: &Offer) -> Result<Headers, String> {
        let name = &*offer.traffic;
        match (self.traffic.get(name), name) {
            (Some(TrafficDefinition::Headers(headers)), _) => Ok(*headers),
            (None, "ipv4") => Ok(Headers::default()),
            (None, "ipv6") => Ok(Headers { is_ipv6: true, ..Headers::default() }),
            _ => {
                let known: Vec<_> = self.traffic.keys().map(String::as_str).collect();
                let known = [&["ipv4", "ipv6"], &*known].concat().join(", ");
                Err(format!("found traffic {name:?}, expected one of {known}"))
            }
        }
    }

    fn mac(&self, interface: &str) -> String {
        let mac = self.macs.iter().find(|(name, _)| name == interface).map(|(_, mac)| *mac);
        let [a, b, c, d, e, f] = mac.unwrap_or_default();
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// Returns an address of the networks for benchmarks: 198.18.0.0/15 (RFC 2544 appendix C.2.2), or
/// 2001:2::/48 (RFC 5180 section 8). Each half belongs to one side.
fn benchmark_address(is_ipv6: bool, is_second: bool, pair: usize) -> IpAddr {
    let pair = pair as u16 & 0xff;
    if is_ipv6 {
        let side = if is_second { 0x8000 } else { 0 };
        return Ipv6Addr::new(0x2001, 2, 0, side | pair, 0, 0, 0, 2).into();
    }
    let side = if is_second { 19 } else { 18 };
    Ipv4Addr::new(198, side, pair as u8, 2).into()
}

#[cfg(test)]
mod tests {
    use wirestorm_base::time::Duration;
    use wirestorm_method::trial::Traffic;
    use wirestorm_plan::Multiplier;

    use super::*;

    fn paths() -> Paths {
        Paths {
            pairs: vec![PortPair { tx: "eth1".into(), rx: "eth2".into() }],
            is_bidirectional: false,
            addresses: Vec::new(),
            flows: 1,
        }
    }

    fn frame(traffic: &NamedTraffic, name: &str) -> Result<Vec<u8>, String> {
        let macs =
            ["eth1", "eth2"].map(|name| (name.to_owned(), [2, 0, 0, 0, 0, name.as_bytes()[3]]));
        let frames = Frames { paths: &paths(), macs: &macs, traffic };
        let subject = Traffic { name: name.into(), frame_size: Some(128) };
        let length = Length::Time(Duration::from_secs(1));
        let plan = frames.trial(&TrialInput::constant("test", &subject, 10, length))?.plan;
        let streams = plan.streams(0, None, Multiplier::ONE).unwrap();
        Ok(streams[0].1.template.to_vec())
    }

    #[test]
    fn named_traffic_has_its_tag_priority_and_dscp() {
        let headers = Headers { is_ipv6: false, vlan: Some(100), pcp: 5, dscp: 46 };
        let mut traffic = NamedTraffic::new();
        traffic.insert("voice".into(), TrafficDefinition::Headers(headers));
        let voice = frame(&traffic, "voice").unwrap();
        assert_eq!(voice.len(), 124);
        assert_eq!(voice[12..18], [0x81, 0, 0xa0, 100, 8, 0]);
        assert_eq!(voice[19], 46 << 2);
        let plain = frame(&traffic, "ipv4").unwrap();
        assert_eq!((plain[12..14].to_vec(), plain[15]), (vec![8, 0], 0));
        assert_eq!(frame(&traffic, "ipv6").unwrap()[12..14], [0x86, 0xdd]);
        let error = frame(&traffic, "video").unwrap_err();
        assert!(error.contains("ipv4, ipv6, voice"), "{error}");
    }
}
