//! The servers of an endpoint, and which of them a flow is for.

use alloc::vec::Vec;
use core::cmp::Reverse;

use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use super::listen::{Listen, MatchByte};
use super::template::{Role, Template};

/// The server of a flow, as far as its first data decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// That of this template.
    For(u16),
    /// That of nobody.
    Nobody,
    /// More data will tell.
    Open,
}

/// The servers of an endpoint, those of one port together, the most particular first.
#[derive(Clone, Debug)]
pub(super) struct Servers(Vec<Server>);

#[derive(Clone, Debug)]
struct Server {
    listen: Listen,
    protocol: u8,
    template: u16,
    /// What connections are that it may be for, as long as nothing is known of their data.
    undecided: Option<u16>,
}

impl Servers {
    /// The servers of these templates. Appended to them is one for each that looks at bytes of
    /// connections, for those that nothing is known of yet.
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
                undecided: looks.then_some((templates.len() + undecided.len()) as u16),
            });
            if looks {
                undecided.push(template.waiting_for_data());
            }
        }
        templates.append(&mut undecided);
        // Stable: what is equal stays in the plan's order.
        servers.sort_by_key(|it| {
            let addresses = it.listen.addresses.map_or(u64::MAX, |it| it.count.into());
            let bits = it.listen.first_bytes.iter().map(|it| it.mask.count_ones()).sum::<u32>();
            (it.protocol, it.listen.port, addresses, Reverse(bits))
        });
        Self(servers)
    }

    /// The template of a connection that is asked for; `None` where nobody waits.
    pub(super) fn at(&self, key: &FlowKey) -> Option<u16> {
        self.candidates(key).next().map(|it| it.undecided.unwrap_or(it.template))
    }

    /// The template of a flow with its first data; `None` where nobody waits for such.
    pub(super) fn with_data(&self, key: &FlowKey, data: &[u8]) -> Option<u16> {
        match self.decide(key, data, true) {
            Decision::For(template) => Some(template),
            Decision::Nobody | Decision::Open => None,
        }
    }

    /// Which template a flow is of that begins with `data`, where that `is_all` of it, or more may
    /// come.
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
            // The more particular ones come first: as long as one of them may be it, no other is.
            let is_known = bytes.iter().all(|it| usize::from(it.offset) < data.len());
            return if is_known { Decision::For(server.template) } else { Decision::Open };
        }
        Decision::Nobody
    }

    /// How much of the data of a connection is looked at.
    pub(super) fn bytes_max(&self, key: &FlowKey) -> usize {
        let bytes = self.candidates(key).flat_map(|it| &it.listen.first_bytes);
        bytes.map(|it| usize::from(it.offset) + 1).max().unwrap_or(0)
    }

    /// Those that wait where a flow goes to.
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
