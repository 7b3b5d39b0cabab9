//! Nodes of TRex's clients: namespaces behind the ports, with packets through the wire.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use wirestorm_control::namespace::Namespace;
use wirestorm_serve::TrexMode;
use wirestorm_testkit::net::{Lab, LabOptions};
use wirestorm_testkit::require::require_root;

use crate::trex::{Client, PATIENCE, start};

const NODE: &str = "00:01:02:03:04:05";
const OTHER: &str = "00:01:02:03:04:06";

struct Session {
    client: Client,
    handlers: [Value; 2],
}

impl Session {
    /// Owns both ports in service mode.
    fn new(mut client: Client) -> Self {
        let mut handlers = [Value::Null, Value::Null];
        for (port, handler) in handlers.iter_mut().enumerate() {
            let acquire = json!({"port_id": port, "user": "ada", "session_id": 7, "force": true});
            *handler = client.call("acquire", acquire);
            let service = json!({"port_id": port, "handler": *handler, "enabled": true});
            client.call("service", service);
        }
        Self { client, handlers }
    }

    /// Runs commands at a port and returns their results.
    fn batch(&mut self, port: usize, commands: &[(&str, Value)]) -> Vec<Value> {
        let commands = commands.iter();
        let commands: Vec<Value> =
            commands.map(|(method, it)| json!({"method": method, "params": it})).collect();
        let batch = Value::from(commands).to_string();
        let handler = self.handlers[port].clone();
        let request = json!({"port_id": port, "handler": handler, "batch": batch, "block": false});
        let ticket = self.client.call("conf_ns_batch", request)["ticket_id"].clone();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let results = self.client.call("get_async_results", json!({"ticket_id": ticket}));
            match results {
                Value::Array(results) => return results,
                progress => assert!(Instant::now() < deadline, "{progress}"),
            }
        }
    }

    fn info(&mut self, port: usize, mac: &str) -> Value {
        let results = self.batch(port, &[("get_nodes_info", json!({"macs": [mac]}))]);
        results[0]["result"]["nodes"][0].clone()
    }
}

fn ping(namespace: &str, address: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "ping", "-c1", "-w10", address]);
    command.output().unwrap().status.success()
}

#[test]
fn nodes_ping_hosts_and_each_other_with_vlan_tags() {
    if !require_root() {
        return;
    }
    let lab = Lab::with(&LabOptions { addresses: true, ..LabOptions::default() }).unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut session = Session::new(fixture.client("STL"));
    // A node in a shared namespace reaches the host at the other end.
    let shared = session.batch(0, &[("add_shared_ns", json!({}))])[0]["result"].clone();
    let shared = shared.as_str().unwrap();
    let host = lab.b.ipv4();
    let mut octets = host.octets();
    octets[3] = 77;
    let own = std::net::Ipv4Addr::from(octets).to_string();
    let results = session.batch(
        0,
        &[
            ("add_node", json!({"mac": NODE, "is_bird": false, "shared_ns": shared})),
            ("set_ipv4", json!({"mac": NODE, "ipv4": own, "subnet": 24, "shared_ns": true})),
            ("set_mtu", json!({"mac": NODE, "mtu": 1400})),
            ("set_dg", json!({"shared_ns": shared, "dg": host.to_string()})),
        ],
    );
    assert_eq!(results, [Value::Null, Value::Null, Value::Null, Value::Null]);
    assert!(ping(shared, &host.to_string()));
    let info = session.info(0, NODE);
    assert_eq!((&info["ipv4"]["src"], &info["ipv4"]["subnet"]), (&json!(own), &json!(24)));
    assert_eq!((&info["linux-ns"], &info["is-shared-ns"]), (&json!(shared), &json!(true)));
    let counters = session.batch(0, &[("counters_get_value", json!({"zeros": false}))]);
    let counters = &counters[0]["result"][""];
    for number in ["0", "1", "5"] {
        assert!(counters[number].as_u64() > Some(0), "{number}: {counters}");
    }

    // Nodes of both ports, in VLAN 21.
    session.batch(0, &[("remove_all", Value::Null), ("counters_clear", Value::Null)]);
    assert!(!Path::new("/run/netns").join(shared).exists());
    let capture = json!({
        "command": "start", "limit": 100, "mode": "fixed", "tx": [0], "rx": [],
        "filter": "vlan 21 and icmp",
    });
    session.client.call("capture", capture);
    for (port, mac, address, gateway) in
        [(0, NODE, "1.1.1.3", "1.1.1.2"), (1, OTHER, "1.1.1.2", "1.1.1.3")]
    {
        let results = session.batch(
            port,
            &[
                ("add_node", json!({"mac": mac, "is_bird": false})),
                ("set_ipv4", json!({"mac": mac, "ipv4": address, "dg": gateway})),
                ("set_ipv6", json!({"mac": mac, "enable": true, "src_ipv6": ""})),
                ("set_vlans", json!({"mac": mac, "vlans": [21], "tpids": [0x8100]})),
            ],
        );
        assert_eq!(results, [Value::Null, Value::Null, Value::Null, Value::Null]);
    }
    let info = session.info(0, NODE);
    let namespace = info["linux-ns"].as_str().unwrap();
    assert!(ping(namespace, "1.1.1.2"));
    let status = session.client.call("capture", json!({"command": "status"}));
    assert!(status[0]["matched"].as_u64() > Some(0), "{status}");
    assert_eq!((&info["vlan"]["tags"], &info["vlan"]["tpids"]), (&json!([21]), &json!([0x8100])));
    assert_eq!(info["vlan_filter"], "no_tcp_udp");
    // A node in another VLAN gets nothing.
    session.batch(1, &[("set_vlans", json!({"mac": OTHER, "vlans": [22]}))]);
    assert!(
        !Command::new("ip")
            .args(["netns", "exec", namespace, "ping", "-c1", "-w1", "1.1.1.2"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let namespace = Path::new("/run/netns").join(namespace);
    assert!(namespace.exists());
    assert!(fixture.service.stop().is_empty());
    assert!(!namespace.exists(), "the namespace outlives the server");
}

#[test]
fn nodes_exchange_tcp_segments_if_their_filter_allows_it() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut session = Session::new(fixture.client("STL"));
    let mut namespaces = Vec::new();
    for (port, mac, address) in [(0, NODE, "192.0.2.1"), (1, OTHER, "192.0.2.2")] {
        let shared = session.batch(port, &[("add_shared_ns", json!({}))])[0]["result"].clone();
        let address = json!({"mac": mac, "ipv4": address, "subnet": 24, "shared_ns": true});
        let results = session.batch(
            port,
            &[
                ("add_node", json!({"mac": mac, "is_bird": false, "shared_ns": shared})),
                ("set_ipv4", address),
                ("set_vlan_filter", json!({"mac": mac, "filter_mask": 3})),
            ],
        );
        assert_eq!(results, [Value::Null, Value::Null, Value::Null]);
        namespaces.push(Namespace::Named(shared.as_str().unwrap().to_owned()));
    }
    let [one, other] = [&namespaces[0], &namespaces[1]];
    let listener = other.enter(|| TcpListener::bind("192.0.2.2:179").unwrap()).unwrap();
    let mut stream = one.enter(|| TcpStream::connect("192.0.2.2:179").unwrap()).unwrap();
    let mut accepted = listener.accept().unwrap().0;
    let message = vec![7; 20_000];
    let expected = message.clone();
    let writer = std::thread::spawn(move || stream.write_all(&message).unwrap());
    let mut found = Vec::new();
    accepted.read_to_end(&mut found).unwrap();
    writer.join().unwrap();
    assert_eq!(found, expected);
    // Without TCP, a connection is not even refused.
    session.batch(1, &[("set_vlan_filter", json!({"mac": OTHER, "filter_mask": 1}))]);
    let refused = one.enter(|| {
        let address = "192.0.2.2:180".parse().unwrap();
        TcpStream::connect_timeout(&address, std::time::Duration::from_millis(300))
    });
    let kind = refused.unwrap().unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::TimedOut);
    assert!(fixture.service.stop().is_empty());
}

#[test]
fn bird_nodes_of_all_ports_are_in_one_namespace() {
    if !require_root() {
        return;
    }
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    let mut session = Session::new(fixture.client("STL"));
    let mut namespace = |port: usize, mac: &str| {
        let address = json!({
            "mac": mac, "enable": true, "src_ipv6": "2001:db8::1", "subnet": 64, "shared_ns": true,
        });
        let results = session.batch(
            port,
            &[("add_node", json!({"mac": mac, "is_bird": true})), ("set_ipv6", address)],
        );
        assert_eq!(results, [Value::Null, Value::Null]);
        let info = session.info(port, mac);
        assert_eq!((&info["is_bird"], &info["vlan_filter"]), (&json!(true), &json!("all")));
        let ipv6 = json!({"enabled": true, "src": "2001:db8::1", "subnet": 64});
        assert_eq!(info["ipv6"], ipv6);
        info["linux-ns"].as_str().unwrap().to_owned()
    };
    let bird = namespace(0, NODE);
    assert_eq!(namespace(1, OTHER), bird);
    // A daemon in the namespace outlives the nodes.
    for port in [0, 1] {
        session.batch(port, &[("remove_all", Value::Null)]);
    }
    let path = Path::new("/run/netns").join(bird);
    assert!(path.exists());
    assert!(fixture.service.stop().is_empty());
    assert!(!path.exists());
}

#[test]
fn batch_has_a_result_for_each_command() {
    if !require_root() {
        return;
    }
    // A process that no longer exists has left a namespace.
    let mut gone = Command::new("true").spawn().unwrap();
    let orphan = format!("wirestorm-{}-0", gone.id());
    gone.wait().unwrap();
    assert!(Command::new("ip").args(["netns", "add", &orphan]).status().unwrap().success());
    let lab = Lab::new().unwrap();
    let fixture = start(&lab, TrexMode::Stl);
    assert!(!Path::new("/run/netns").join(&orphan).exists());
    let mut session = Session::new(fixture.client("STL"));
    let add = ("add_node", json!({"mac": NODE, "is_bird": false}));
    let results = session.batch(
        1,
        &[
            add.clone(),
            add,
            ("set_mtu", json!({"mac": NODE, "mtu": 1400})),
            ("set_vlans", json!({"mac": NODE, "vlans": [1, 2, 3]})),
            ("set_ipv4", json!({"mac": OTHER, "ipv4": "1.1.1.1", "dg": "1.1.1.2"})),
            ("add_node", json!({"mac": "x"})),
            ("add_node", json!({"mac": OTHER, "shared_ns": "elsewhere"})),
            ("add_node", json!({"mac": "01:00:00:00:00:01"})),
            ("fly", json!({})),
            ("get_nodes", json!({"only_bird": false})),
            ("get_nodes", json!({"only_bird": true})),
            ("remove_node", json!({"mac": NODE})),
            ("get_nodes", Value::Null),
        ],
    );
    let expected = [
        "",
        "Node with MAC 00:01:02:03:04:05 already exists",
        "must be shared namespace node",
        "Maximal number of stacked VLANs is 2, got: 3",
        "node 00:01:02:03:04:06 does not exist",
        "wrong mac format",
        "namespace 'elsewhere' wasn't created by TRex!",
        "the address of a group",
        "Method fly not registered",
    ];
    for (result, expected) in results.iter().zip(expected) {
        let error = result["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{error:?}: {expected:?}");
    }
    let nodes = |result: &Value| result["result"]["nodes"].clone();
    assert_eq!((&results[0], nodes(&results[9])), (&Value::Null, json!([NODE])));
    assert_eq!((nodes(&results[10]), nodes(&results[12])), (json!([]), json!([])));
    assert_eq!(results.len(), 13);
    // Outside service mode there are no batches.
    let handler = session.handlers[0].clone();
    let service = json!({"port_id": 0, "handler": handler, "enabled": false});
    session.client.call("service", service);
    let request = json!({"port_id": 0, "handler": handler, "batch": "[]"});
    let error = session.client.error("conf_ns_batch", request);
    assert!(error.contains("service mode must be enabled"), "{error}");
    assert!(fixture.service.stop().is_empty());
}
