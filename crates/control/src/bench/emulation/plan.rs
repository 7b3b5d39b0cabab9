//! Plan of clients and servers of a trial.

use serde_json::{Value, json};
use wirestorm_method::connections::{ConnectionsInput, LoadUnit, TrafficClass};
use wirestorm_plan::emulation::EmulationPlan;

use super::ConnectionAddresses;
use crate::bench::test_bed::{PortPair, TestBed};

/// Name of the transaction that the SYN of an HTTP connection starts.
pub(super) const FIRST: &str = "first";
/// Name of the transaction from the same start to the head of the response, in its first packet.
pub(super) const FIRST_BYTE: &str = "first byte";
/// Name of later transactions of a connection.
pub(super) const NEXT: &str = "next";

/// Largest number of transactions of a connection with objects of several sizes.
const TRANSACTIONS_MAX: u64 = 1_000;

/// What a plan is built from.
pub(super) struct PlanOfConnections<'a> {
    pub(super) bed: &'a TestBed,
    pub(super) addresses: &'a ConnectionAddresses,
    pub(super) input: &'a ConnectionsInput,
    pub(super) load: u64,
}

impl PlanOfConnections<'_> {
    /// Builds the plan. Ports are `clientsN` and `serversN`, with N from 0 for each pair.
    ///
    /// # Errors
    /// Fails if an address or a TLS setting is not valid.
    pub(super) fn build(&self) -> Result<EmulationPlan, String> {
        let (mut ports, mut templates) = (Vec::new(), Vec::new());
        for (pair, PortPair { tx, rx }) in self.bed.paths.pairs.iter().enumerate() {
            let is_ipv6 = self.is_ipv6(pair);
            ports.push(self.port(&format!("clients{pair}"), tx, is_ipv6));
            ports.push(self.port(&format!("servers{pair}"), rx, is_ipv6));
            for (place, class) in self.input.classes.iter().enumerate() {
                templates.extend(self.template(pair, place, class)?);
            }
        }
        let document = json!({"ports": ports, "templates": templates});
        // JSON is valid YAML.
        EmulationPlan::parse(&document.to_string()).map_err(|error| error.to_string())
    }

    fn is_ipv6(&self, pair: usize) -> bool {
        self.addresses.clients[pair].contains(':')
    }

    /// Without an address, frames go to the MAC address of the other interface of the pair.
    fn port(&self, name: &str, interface: &str, is_ipv6: bool) -> Value {
        let mut port = json!({"name": name, "location": interface});
        if let Some(address) = self.bed.paths.address(interface, is_ipv6) {
            port["addresses"] = json!(format!("{}/{}", address.address, address.prefix));
            if let Some(gateway) = address.gateway {
                port["gateway"] = json!(gateway.to_string());
            }
        }
        port
    }

    /// Returns the template of a class on a pair; `None` if this pair has none of its connections.
    fn template(
        &self,
        pair: usize,
        place: usize,
        class: &TrafficClass,
    ) -> Result<Option<Value>, String> {
        let Some(load) = self.class_load(pair, class) else { return Ok(None) };
        let port = self.server_port(place, class);
        // RFC 9411 section 4.3.1.1.
        let mss = if self.is_ipv6(pair) { 1_440 } else { 1_460 };
        let mut template = json!({
            "name": class.name,
            "tcp": {
                "mss": mss,
                "receive_buffer": 65_535,
                "initial_window": 10,
                "retries": 3,
                "syn_retries": 3,
                "push_all": true,
                "no_delay": true,
            },
            "client": {
                "tx": format!("clients{pair}"),
                "addresses": self.addresses.clients[pair],
                "servers": self.addresses.servers[pair],
                "server_port": port,
                "load": load,
                "ramp_up": milliseconds(self.input.ramp_up.as_nanos()),
                "program": self.client(class)?,
            },
            "server": {
                "tx": format!("servers{pair}"),
                "port": port,
                "program": server(class),
            },
        });
        if let Some(tls) = &class.tls {
            // "session reuse or resumption MUST be disabled" (RFC 9411 section 4.3.1.4).
            template["tls"] =
                json!({"versions": [tls.version], "ciphers": [tls.cipher], "resume": false});
        }
        Ok(Some(template))
    }

    /// Returns the load of a class on a pair; `None` if it is zero. The pairs share it equally.
    fn class_load(&self, pair: usize, class: &TrafficClass) -> Option<Value> {
        let pairs = self.bed.paths.pairs.len();
        let of_class = self.input.class_load(class, self.load);
        if self.input.unit == LoadUnit::ConcurrentConnections {
            let all = of_class.round() as u64;
            let of_pair = all / pairs as u64 + u64::from((pair as u64) < all % pairs as u64);
            return (of_pair > 0).then(|| json!({"concurrent": of_pair}));
        }
        let rate = format!("{:.6}", of_class / pairs as f64);
        (rate.parse::<f64>().is_ok_and(|rate| rate > 0.0)).then(|| json!({"rate": rate}))
    }

    /// Returns the server port of a class. The first class of a protocol has its well-known port.
    fn server_port(&self, place: usize, class: &TrafficClass) -> usize {
        let is_same = |it: &TrafficClass| it.tls.is_some() == class.tls.is_some();
        let before = self.input.classes[..place].iter().filter(|it| is_same(it)).count();
        match (class.tls.is_some(), before) {
            (false, 0) => 80,
            (true, 0) => 443,
            (false, before) => 8_000 + before,
            (true, before) => 8_443 + before,
        }
    }

    /// Returns the program of a client. It closes the connection after its last transaction.
    fn client(&self, class: &TrafficClass) -> Result<Vec<Value>, String> {
        let think = match self.input.think_time.as_nanos() {
            0 => None,
            nanoseconds => Some(json!({"delay": milliseconds(nanoseconds)})),
        };
        let with_think = |mut steps: Vec<Value>| {
            steps.extend(think.clone());
            steps
        };
        let sizes = &class.objects;
        let first = *sizes.first().ok_or("expected objects, found none")?;
        let mut program = vec![json!({"transaction": {"start": FIRST_BYTE}})];
        program.extend(with_think(exchange(FIRST, first)));
        if let [size] = **sizes {
            if class.rounds > 1 {
                let steps = with_think(exchange(NEXT, size));
                program.push(json!({"repeat": {"times": class.rounds - 1, "steps": steps}}));
            }
            return Ok(program);
        }
        if class.transactions() > TRANSACTIONS_MAX {
            let found = class.transactions();
            return Err(format!(
                "found {found} transactions in a connection, expected at most {TRANSACTIONS_MAX}"
            ));
        }
        let all = std::iter::repeat_n(sizes, class.rounds as usize).flatten();
        for &size in all.skip(1) {
            program.extend(with_think(exchange(NEXT, size)));
        }
        Ok(program)
    }
}

/// Returns the steps of a client's transaction. It fails unless the status is 200 and the length
/// that of the object.
fn exchange(name: &str, size: u32) -> Vec<Value> {
    let request = format!(
        "GET /object/{size} HTTP/1.1\r\nHost: ${{server}}\r\nUser-Agent: wirestorm\r\nAccept: \
         */*\r\n\r\n"
    );
    let expected = format!(r"\AHTTP/1\.1 200 (?s:.*)\r\nContent-Length: {size}\r\n");
    let mut steps = vec![
        json!({"transaction": {"start": name}}),
        json!({"send": request}),
        json!({"receive": {"message": "http_head"}}),
    ];
    if name == FIRST {
        steps.push(json!({"transaction": {"end": FIRST_BYTE}}));
    }
    steps.extend([
        json!({"expect": {"pattern": expected}}),
        json!({"receive": {"bytes": size}}),
        json!({"transaction": {"end": name}}),
        json!({"count": {"A": 1}}),
    ]);
    steps
}

/// Returns the program of a server: one response for each request. The client closes.
fn server(class: &TrafficClass) -> Vec<Value> {
    let answer = |size: u32| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: wirestorm\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {size}\r\n\r\n"
        );
        let length = head.len() as u64 + u64::from(size);
        [json!({"receive": {"message": "http"}}), json!({"send": {"text": head, "size": length}})]
    };
    let answers: Vec<Value> = class.objects.iter().flat_map(|&size| answer(size)).collect();
    vec![json!({"repeat": {"times": class.rounds, "steps": answers}}), json!("wait_for_close")]
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{}ms", nanoseconds / 1_000_000)
}
