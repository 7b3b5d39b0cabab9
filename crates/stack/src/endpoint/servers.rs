//! Servers of an endpoint, and the selection of one for a flow.

use alloc::vec::Vec;
use core::cmp::Reverse;

use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use super::listen::{Listen, MatchByte};
use super::template::{Role, Template};

/// Selection of a server by the first data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The server of this template.
    For(u16),
    /// No server.
    NoServer,
    /// More data is needed.
    Open,
}

/// Servers of an endpoint, grouped by port, the most specific first.
#[derive(Clone, Debug)]
pub(super) struct Servers(Vec<Server>);

#[derive(Clone, Debug)]
struct Server {
    listen: Listen,
    protocol: u8,
    template: u16,
    /// Template of connections to this server until their first data has arrived.
    first_data_template: Option<u16>,
}

impl Servers {
    /// Collects the servers of the templates. Appends a template for each TCP server with first
    /// bytes, for connections whose first data has not arrived.
    pub(super) fn new(templates: &mut Vec<Template>) -> Self {
        let mut servers = Vec::new();
        let mut undecided = Vec::new();
        for (place, template) in templates.iter().enumerate() {
            let Role::Server { listen } = &template.role else { continue };
            let protocol = template.transport.protocol();
            let looks = !listen.first_bytes.is_empty() && protocol == protocol::TCP;
            servers.push(Server {
                listen: listen.clone(),
                protocol,
                template: place as u16,
                first_data_template: looks.then_some((templates.len() + undecided.len()) as u16),
            });
            if looks {
                undecided.push(template.waiting_for_data());
            }
        }
        templates.append(&mut undecided);
        // The sort is stable, so equal servers stay in the plan's order.
        servers.sort_by_key(|it| {
            let addresses = it.listen.addresses.map_or(u64::MAX, |it| it.count.into());
            let bits = it.listen.first_bytes.iter().map(|it| it.mask.count_ones()).sum::<u32>();
            (it.protocol, it.listen.port, addresses, Reverse(bits))
        });
        Self(servers)
    }

    /// Returns the template of a new connection; `None` if no server listens.
    pub(super) fn at(&self, key: &FlowKey) -> Option<u16> {
        self.candidates(key).next().map(|it| it.first_data_template.unwrap_or(it.template))
    }

    /// Returns the template of a flow with this first data; `None` if no server matches.
    pub(super) fn with_data(&self, key: &FlowKey, data: &[u8]) -> Option<u16> {
        match self.decide(key, data, true) {
            Decision::For(template) => Some(template),
            Decision::NoServer | Decision::Open => None,
        }
    }

    /// Selects the template of a flow that starts with `data`. `is_all`: no more data follows.
    pub(super) fn decide(&self, key: &FlowKey, data: &[u8], is_all: bool) -> Decision {
        let differs = |it: &MatchByte| match data.get(usize::from(it.offset)) {
            Some(byte) => byte & it.mask != it.value & it.mask,
            None => is_all,
        };
        for server in self.candidates(key) {
            let bytes = &server.listen.first_bytes;
            if bytes.iter().any(differs) {
                continue;
            }
            // More specific servers come first: while one may match, no later one is selected.
            let is_known = bytes.iter().all(|it| usize::from(it.offset) < data.len());
            return if is_known { Decision::For(server.template) } else { Decision::Open };
        }
        Decision::NoServer
    }

    /// Returns how many first bytes of a connection the servers examine.
    pub(super) fn bytes_max(&self, key: &FlowKey) -> usize {
        let bytes = self.candidates(key).flat_map(|it| &it.listen.first_bytes);
        bytes.map(|it| usize::from(it.offset) + 1).max().unwrap_or(0)
    }

    /// Returns the servers that listen at the destination of a flow.
    fn candidates(&self, key: &FlowKey) -> impl Iterator<Item = &Server> {
        let whereto = (key.protocol(), key.destination_port());
        let start = self.0.partition_point(|it| (it.protocol, it.listen.port) < whereto);
        let address = key.destination();
        self.0[start..]
            .iter()
            .take_while(move |it| (it.protocol, it.listen.port) == whereto)
            .filter(move |it| it.listen.addresses.is_none_or(|range| range.contains(address)))
    }
}
