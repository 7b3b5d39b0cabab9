//! Measures how long a configuration of many flows takes: `set_config` of the API, without ports.
//!
//! ```console
//! $ cargo run --release -p wirestorm-otg --example set_config -- 4096
//! ```
#![expect(clippy::disallowed_methods, reason = "a measurement reads arguments and the clock")]

use std::fmt::Write as _;
use std::time::Instant;

use prost::Message;
use wirestorm_otg::proto::Config;
use wirestorm_otg::{Resolve, from_json, from_protobuf, lower, to_json};

/// Measurements of each step; the fastest counts.
const REPEATS: u32 = 10;

/// Returns two ports and `flows` flows of Ethernet, IPv4 and UDP, as snappi writes them.
fn configuration(flows: usize) -> String {
    let mut text = String::from(r#"{"ports": [{"name": "p1"}, {"name": "p2"}], "flows": ["#);
    for index in 0..flows {
        let (high, low) = (index >> 8, index & 0xff);
        let separator = if index == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            r#"{separator}
    {{
      "duration": {{
        "choice": "fixed_packets",
        "fixed_packets": {{ "gap": 12, "packets": 1000 }}
      }},
      "metrics": {{ "enable": true, "loss": false, "timestamps": false }},
      "name": "flow {index}",
      "packet": [
        {{
          "choice": "ethernet",
          "ethernet": {{
            "dst": {{ "choice": "value", "value": "02:00:00:00:{high:02x}:{low:02x}" }},
            "src": {{ "choice": "value", "value": "02:00:00:01:{high:02x}:{low:02x}" }}
          }}
        }},
        {{
          "choice": "ipv4",
          "ipv4": {{
            "dst": {{ "choice": "value", "value": "10.1.{high}.{low}" }},
            "src": {{
              "choice": "increment",
              "increment": {{ "count": 10, "start": "10.0.{high}.{low}", "step": "0.0.0.1" }}
            }}
          }}
        }},
        {{
          "choice": "udp",
          "udp": {{
            "dst_port": {{ "choice": "values", "values": [ 53, 80, 443 ] }},
            "src_port": {{ "choice": "value", "value": 5000 }}
          }}
        }}
      ],
      "rate": {{ "choice": "pps", "pps": "1000" }},
      "size": {{ "choice": "fixed", "fixed": 128 }},
      "tx_rx": {{ "choice": "port", "port": {{ "rx_names": [ "p2" ], "tx_name": "p1" }} }}
    }}"#
        );
    }
    text.push_str("]}");
    text
}

/// Prints the least time of a step.
fn measure<T>(name: &str, mut step: impl FnMut() -> T) -> T {
    let mut best = f64::INFINITY;
    let mut result = step();
    for _ in 0..REPEATS {
        let start = Instant::now();
        result = step();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:<16} {:8.2} ms", best * 1e3);
    result
}

fn main() {
    let flows = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4096);
    let text = configuration(flows);
    println!("{flows} flows, {} bytes of JSON", text.len());
    let (config, _) = measure("from_json", || from_json::<Config>(&text).expect("a valid text"));
    let lowered = measure("lower", || lower(&config, &Resolve::default()).expect("no errors"));
    assert_eq!(lowered.plan.flows.len(), flows);
    let bytes = config.encode_to_vec();
    measure("from_protobuf", || from_protobuf::<Config>(&bytes).expect("a valid message"));
    measure("to_json", || to_json(&config));
}
