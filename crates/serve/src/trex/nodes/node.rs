//! The nodes of a port.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use wirestorm_control::namespace::InterfaceName;
use wirestorm_control::tap::Tap;
use wirestorm_control::wire::packet::MacAddress;

use super::super::interface::Interface;
use super::super::packets::Pushed;
use super::super::rpc::RpcError;
use super::counters::Counters;
use super::filter::{self, Tags};
use super::relay::{Member, Members, Relay};
use super::system::{OwnNamespace, interface, ip, switch_ipv6};

/// Maximum number of nodes of a port, and of its shared namespaces.
const NODES_MAX: usize = 1_000;
const NAMESPACES_MAX: usize = 256;
const IPV4: Option<&str> = Some("-4");
const IPV6: Option<&str> = Some("-6");

/// Namespace of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// One of its own.
    Own,
    /// One of this name, with other nodes.
    Shared(String),
    /// The one for BIRD, with all such nodes of all ports.
    Bird,
}

/// IPv4 configuration of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ipv4 {
    /// A single address, with a default gateway.
    Host { address: Ipv4Addr, gateway: Ipv4Addr },
    /// An address in a network, for a node of a shared namespace.
    Network { address: Ipv4Addr, length: u8 },
}

/// IPv6 configuration of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ipv6 {
    /// `None`: only a link-local address.
    pub(super) address: Option<Ipv6Addr>,
    /// Length of the network's prefix; 0 without an address.
    pub(super) length: u8,
    /// Whether the configuration is one for a node of a shared namespace.
    pub(super) is_shared: bool,
}

/// A node.
struct Node {
    interface: InterfaceName,
    /// Name of its namespace.
    namespace: String,
    home: Home,
    /// Keeps a namespace of its own.
    _own: Option<OwnNamespace>,
    member: Arc<Member>,
    ipv4: Option<Ipv4>,
    ipv6: Option<Ipv6>,
}

/// The namespace for BIRD, once there is a node for it. It lasts until the end of the server, so that
/// a daemon in it goes on when nodes change.
pub(super) type BirdNamespace = Arc<Mutex<Option<OwnNamespace>>>;

/// The nodes of a port.
pub(super) struct PortNodes {
    number: usize,
    port: InterfaceName,
    /// Frames sent beside the runs of the port.
    pushed: Arc<Pushed>,
    mtu: u32,
    nodes: BTreeMap<MacAddress, Node>,
    /// Shared namespaces by their names.
    shared: BTreeMap<String, OwnNamespace>,
    bird: BirdNamespace,
    /// Number of the next interface.
    next: u32,
    members: Arc<Members>,
    relay: Option<Relay>,
}

impl PortNodes {
    pub(super) fn new(number: usize, interface: &Interface, bird: BirdNamespace) -> Self {
        Self {
            number,
            port: interface.name.clone(),
            pushed: Arc::clone(&interface.pushed),
            mtu: interface.facts().mtu,
            nodes: BTreeMap::new(),
            shared: BTreeMap::new(),
            bird,
            next: 0,
            members: Arc::default(),
            relay: None,
        }
    }

    pub(super) fn members(&self) -> Arc<Members> {
        Arc::clone(&self.members)
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.members.counters
    }

    /// Adds a node: an interface with this address in a namespace.
    pub(super) fn add(&mut self, mac: MacAddress, home: Home) -> Result<(), String> {
        if self.nodes.contains_key(&mac) {
            return Err(format!("Node with MAC {mac} already exists"));
        }
        if mac.0[0] & 1 == 1 {
            return Err(format!("{mac} is the address of a group, expected one of an interface"));
        }
        if self.nodes.len() >= NODES_MAX {
            return Err(format!("port {} has {NODES_MAX} nodes already", self.number));
        }
        let mut own = None;
        let namespace = match &home {
            Home::Own => own.insert(OwnNamespace::create()?).name().to_owned(),
            Home::Shared(name) => self.shared_namespace(name)?.name().to_owned(),
            Home::Bird => {
                let mut bird = self.bird.lock().unwrap_or_else(PoisonError::into_inner);
                let namespace = match bird.take() {
                    Some(namespace) => namespace,
                    None => OwnNamespace::create()?,
                };
                bird.insert(namespace).name().to_owned()
            }
        };
        let name = format!("trex-{:x}-{:x}", self.number, self.next);
        self.next += 1;
        let interface = interface(&namespace, &name)?;
        let tap = Tap::create(&interface).map_err(|error| error.to_string())?;
        switch_ipv6(&interface, false)?;
        let mtu = self.mtu;
        ip(&namespace, None, &[format!("link set dev {name} address {mac} mtu {mtu} up")])?;
        let filter = if home == Home::Bird { filter::ALL } else { filter::OTHER };
        let member = Arc::new(Member { tap, rules: Mutex::new((Tags::default(), filter)) });
        self.members.lock().insert(mac, Arc::clone(&member));
        let node = Node { interface, namespace, home, _own: own, member, ipv4: None, ipv6: None };
        self.nodes.insert(mac, node);
        if self.relay.is_none() {
            let pushed = Arc::clone(&self.pushed);
            self.relay = Some(Relay::start(self.port.clone(), pushed, &self.members)?);
        }
        Ok(())
    }

    /// Adapts the relay to the nodes.
    pub(super) fn update_relay(&mut self) -> Result<(), String> {
        if self.nodes.is_empty() {
            self.relay = None;
            return Ok(());
        }
        self.relay.as_mut().map_or(Ok(()), Relay::update)
    }

    pub(super) fn remove(&mut self, mac: MacAddress) -> Result<(), String> {
        self.members.lock().remove(&mac);
        match self.nodes.remove(&mac) {
            Some(_) => Ok(()),
            None => Err(format!("Node with MAC {mac} does not exist")),
        }
    }

    /// Removes all nodes and the namespaces that they share.
    pub(super) fn remove_all(&mut self) -> Result<(), String> {
        self.members.lock().clear();
        self.nodes.clear();
        self.shared.clear();
        self.update_relay()
    }

    /// Creates a namespace for several nodes. Returns its name.
    pub(super) fn add_shared_namespace(&mut self) -> Result<String, String> {
        if self.shared.len() >= NAMESPACES_MAX {
            return Err(format!("port {} has {NAMESPACES_MAX} namespaces already", self.number));
        }
        let namespace = OwnNamespace::create()?;
        let name = namespace.name().to_owned();
        self.shared.insert(name.clone(), namespace);
        Ok(name)
    }

    fn shared_namespace(&self, name: &str) -> Result<&OwnNamespace, String> {
        let found = self.shared.get(name);
        found.ok_or_else(|| format!("namespace '{name}' wasn't created by TRex!"))
    }

    /// Removes a namespace. Its nodes keep their interfaces in it.
    pub(super) fn remove_shared_namespace(&mut self, name: &str) -> Result<(), String> {
        self.shared_namespace(name)?;
        self.shared.remove(name);
        Ok(())
    }

    /// Sets the default gateway of a shared namespace.
    pub(super) fn set_gateway(&self, namespace: &str, gateway: Ipv4Addr) -> Result<(), String> {
        let name = self.shared_namespace(namespace)?.name();
        ip(name, IPV4, &[format!("route replace default via {gateway}")])
    }

    fn node(&mut self, mac: MacAddress) -> Result<&mut Node, String> {
        self.nodes.get_mut(&mac).ok_or_else(|| format!("node {mac} does not exist"))
    }

    pub(super) fn set_tags(&mut self, mac: MacAddress, tags: Tags) -> Result<(), String> {
        self.node(mac)?.member.rules().0 = tags;
        Ok(())
    }

    /// Sets the filter of a node: see [`filter`].
    pub(super) fn set_filter(&mut self, mac: MacAddress, mask: u8) -> Result<(), String> {
        self.node(mac)?.member.rules().1 = mask & filter::ALL;
        Ok(())
    }

    pub(super) fn set_mtu(&mut self, mac: MacAddress, mtu: u32) -> Result<(), String> {
        let node = self.node(mac)?;
        node.check_kind(true)?;
        let name = node.interface.name();
        ip(&node.namespace, None, &[format!("link set dev {name} mtu {mtu}")])
    }

    /// Sets or removes the IPv4 address of a node.
    pub(super) fn set_ipv4(&mut self, mac: MacAddress, ipv4: Option<Ipv4>) -> Result<(), String> {
        let node = self.node(mac)?;
        if let Some(ipv4) = ipv4 {
            node.check_kind(matches!(ipv4, Ipv4::Network { .. }))?;
        }
        let name = node.interface.name();
        let flush = format!("addr flush dev {name}");
        let lines = match ipv4 {
            None => vec![flush],
            Some(Ipv4::Network { address, length }) => {
                vec![flush, format!("addr add {address}/{length} dev {name}")]
            }
            Some(Ipv4::Host { address, gateway }) => vec![
                flush,
                format!("addr add {address}/32 dev {name}"),
                format!("route replace {gateway} dev {name}"),
                format!("route replace default via {gateway}"),
            ],
        };
        ip(&node.namespace, IPV4, &lines)?;
        node.ipv4 = ipv4;
        Ok(())
    }

    /// Sets the IPv6 address of a node, or switches IPv6 off.
    pub(super) fn set_ipv6(&mut self, mac: MacAddress, ipv6: Option<Ipv6>) -> Result<(), String> {
        let node = self.node(mac)?;
        if let Some(ipv6) = ipv6 {
            node.check_kind(ipv6.is_shared)?;
        }
        // Off at first, so that earlier addresses vanish.
        switch_ipv6(&node.interface, false)?;
        node.ipv6 = None;
        let Some(ipv6) = ipv6 else { return Ok(()) };
        switch_ipv6(&node.interface, true)?;
        let name = node.interface.name();
        let route = (!ipv6.is_shared).then(|| format!("route replace default dev {name}"));
        let length = ipv6.length;
        let address = ipv6.address.map(|it| format!("addr add {it}/{length} dev {name}"));
        let lines: Vec<String> = route.into_iter().chain(address).collect();
        if !lines.is_empty() {
            ip(&node.namespace, IPV6, &lines)?;
        }
        node.ipv6 = Some(ipv6);
        Ok(())
    }

    /// Returns the addresses of the nodes.
    pub(super) fn macs(&self, only_bird: bool) -> Vec<String> {
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|(_, node)| !only_bird || node.home == Home::Bird);
        nodes.map(|(mac, _)| mac.to_string()).collect()
    }

    /// Describes a node to clients.
    pub(super) fn document(&self, mac: MacAddress) -> Result<Value, RpcError> {
        let node = self.nodes.get(&mac);
        let node =
            node.ok_or_else(|| RpcError::parameters(format!("node {mac} does not exist")))?;
        Ok(node.document(mac))
    }
}

impl Node {
    /// Checks that a configuration for nodes of a shared namespace, or for others, suits the node.
    fn check_kind(&self, for_shared: bool) -> Result<(), String> {
        match (for_shared, self.home != Home::Own) {
            (true, false) => Err("Wrong node type, must be shared namespace node!".to_owned()),
            (false, true) => Err("Wrong node type, must not be shared namespace node!".to_owned()),
            _ => Ok(()),
        }
    }

    fn document(&self, mac: MacAddress) -> Value {
        let is_shared = self.home != Home::Own;
        let (tags, filter) = self.member.rules().clone();
        let mut ipv4 = match self.ipv4 {
            None => json!({"state": "none"}),
            Some(Ipv4::Host { address, gateway }) => {
                json!({"src": address.to_string(), "dst": gateway.to_string()})
            }
            Some(Ipv4::Network { address, .. }) => json!({"src": address.to_string()}),
        };
        let mut ipv6 = match self.ipv6 {
            None => json!({"enabled": false}),
            Some(Ipv6 { address, .. }) => {
                let address = address.map(|it| it.to_string()).unwrap_or_default();
                json!({"enabled": true, "src": address})
            }
        };
        if is_shared {
            let length = match self.ipv4 {
                Some(Ipv4::Network { length, .. }) => length,
                _ => 0,
            };
            ipv4["subnet"] = length.into();
            ipv6["subnet"] = self.ipv6.map_or(0, |it| it.length).into();
        }
        json!({
            "ether": {"src": mac.to_string()},
            "vlan": {
                "tags": tags.0.iter().map(|tag| tag.vlan).collect::<Vec<_>>(),
                "tpids": tags.0.iter().map(|tag| tag.tpid).collect::<Vec<_>>(),
            },
            "ipv4": ipv4,
            "ipv6": ipv6,
            "linux-ns": self.namespace,
            "is-shared-ns": is_shared,
            "linux-veth-internal": self.interface.name(),
            "linux-veth-external": "",
            "bpf": "",
            "vlan_filter": filter::name(filter),
            "is_bird": self.home == Home::Bird,
        })
    }
}
