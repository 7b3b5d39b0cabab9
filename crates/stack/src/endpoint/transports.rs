//! Flows of both transports, and the state that they share.

use wirestorm_wire::flow::FlowKey;

use super::common::Common;
use super::connections::Connections;
use super::datagrams::Datagrams;
use super::events::FlowSlot;
use super::load::Origin;
use super::template::{Role, Transport};
use crate::tcp::connection::Connection;
use crate::tcp::now::Now;
use wirestorm_base::random::Random;

/// Flows of both transports, and the state that they share.
#[derive(Debug)]
pub(super) struct Transports {
    pub(super) common: Common,
    pub(super) connections: Connections,
    pub(super) datagrams: Datagrams,
}

impl Transports {
    /// Starts a flow of a template, between the ends in `origin`, if any.
    #[inline]
    pub(super) fn open(
        &mut self,
        template: usize,
        origin: Option<Origin>,
        now: Now,
    ) -> Option<FlowSlot> {
        let Self { common, connections, datagrams } = self;
        let is_full = common.is_full();
        let state = common.templates.get_mut(template)?;
        let Role::Client { tuples, link, .. } = &state.template.role else { return None };
        if is_full {
            state.tally.flows.flow_table_full += 1;
            return None;
        }
        let transport = &state.template.transport;
        // A flow that a program starts has a fixed client, on or off.
        let number = match state.off.as_ref().filter(|_| origin.is_none()) {
            None => Some(state.used),
            Some(off) => tuples.next_switched_on(state.used, off),
        };
        let Some(number) = number else {
            state.tally.flows.clients_disabled += 1;
            return None;
        };
        let protocol = transport.protocol();
        state.used = number + 1;
        let is_free = |key: &FlowKey| match transport {
            Transport::Tcp(_) => !connections.flows.contains(key),
            Transport::Udp => !datagrams.flows.contains(key),
        };
        let (off, random) = (state.off.as_ref(), &mut common.random);
        let ports = state.first_port;
        let key = tuples.tuples_for(number, ports, origin, protocol, off, random).find(is_free);
        let Some(key) = key else {
            state.tally.flows.no_free_tuple += 1;
            return None;
        };
        let link = common.links.take(link.of(key.destination(), key.source()));
        if connections.flows.are_many() && tuples.is_round_robin() {
            // Prefetch the slot of the next tuple for its lookup.
            let random = &mut Random::new(0);
            let next = tuples.tuples_for(number + 1, ports, None, protocol, None, random).next();
            next.iter().for_each(|key| connections.flows.prefetch(key));
        }
        state.tally.flows.started += 1;
        match transport {
            Transport::Tcp(_) => {
                let initial = common.initial(&key, now);
                let (_, settings, tally) = common.templates[template].tcp(&key);
                let mut connection = Connection::connect(settings, initial, now, &mut tally.tcp);
                common.paths.limit(&key, &mut connection, settings);
                if settings.fast_open {
                    connections.fast_open.begin(&key, now, &mut connection);
                }
                let template = template as u16;
                let place = connections.insert(key, connection, template, link, now, common);
                Some(FlowSlot::Tcp(place))
            }
            Transport::Udp => {
                state.tally.udp.connects += 1;
                Some(FlowSlot::Udp(datagrams.insert(key, template as u16, link, now, common)))
            }
        }
    }

    /// Returns the key of a flow.
    pub(super) fn key(&self, place: FlowSlot) -> Option<FlowKey> {
        match place {
            FlowSlot::Tcp(place) => self.connections.flows.get(place).map(|it| it.key),
            FlowSlot::Udp(place) => self.datagrams.flows.get(place).map(|it| it.key),
        }
    }

    /// Continues a flow whose awaited event has happened or failed.
    #[cold]
    pub(super) fn go_on(&mut self, place: FlowSlot, has_failed: bool) {
        match place {
            FlowSlot::Tcp(place) => self.connections.wake(place, |flow| flow.run.go_on(has_failed)),
            FlowSlot::Udp(place) => self.datagrams.go_on(place, has_failed),
        }
    }

    /// Fails a flow because its child failed.
    pub(super) fn fail_with(&mut self, place: FlowSlot) {
        match place {
            FlowSlot::Tcp(place) => self.connections.wake(place, |flow| flow.run.fail_with_child()),
            FlowSlot::Udp(place) => self.datagrams.go_on(place, true),
        }
    }
}
