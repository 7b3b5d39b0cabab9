//! Addresses and ports of flows.

use wirestorm_base::port::Receive;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_stack::endpoint::{Role, Template, Transport, Tuples};
use wirestorm_stack::program::{Buffers, Instruction};

use super::world::{SECOND, STEP, World, client, rate, server, template};

fn with(load: Load, limit: Option<u64>, change: impl FnOnce(&mut Tuples)) -> Role {
    let mut role = client("16.0.0.1", 80, load, limit);
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    change(tuples);
    role
}

/// Connections or UDP flows that stay open.
fn staying(over: Transport, role: Role) -> Template {
    let forever = Instruction::SetIdle { millis: 0, receive_only: false };
    let wait = vec![forever, Instruction::WaitForPeerClose];
    Template { transport: over, ..template(wait, role) }
}

#[test]
fn each_client_server_pair_uses_all_ports_in_any_order() {
    let tcp = template(vec![], server(80)).transport;
    for over in [tcp, Transport::Udp] {
        for order in [ClientOrder::RoundRobin, ClientOrder::Random] {
            for pairing in [Pairing::RoundRobin, Pairing::Random, Pairing::Fixed] {
                // 40 ports, 2 clients and 3 servers; a fixed pairing has only two pairs.
                let pairs = if pairing == Pairing::Fixed { 2 } else { 6 };
                let role = with(Load::Concurrent(1_000), None, |tuples| {
                    (tuples.clients.count, tuples.client_ports) = (2, 65_496..=65_535);
                    (tuples.order, tuples.pairing) = (order, pairing);
                });
                let mut world = World::of(vec![staying(over, role)], vec![], &Buffers::default());
                for _ in 0..2_000 {
                    world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
                    let mut batch = Vec::new();
                    world.up.1.receive(1_000, &mut batch).unwrap();
                    batch.into_iter().for_each(|received| world.up.1.release(received));
                    world.now += STEP;
                }
                let flows = world.client.counters();
                assert_eq!(flows.active, pairs * 40, "{order:?} {pairing:?} {over:?}");
                assert!(flows.no_free_tuple > 0);
            }
        }
    }
}

#[test]
fn flow_takes_the_next_free_port() {
    let tcp = template(vec![], server(80)).transport;
    let both = |tuples: &mut Tuples| {
        (tuples.clients.count, tuples.servers.count) = (1, 1);
        tuples.client_ports = 5_000..=5_009;
    };
    // The first template takes ports 5000 to 5006; the second one gets the others.
    let hold = |flows| Load::Concurrent(flows);
    let clients = vec![
        staying(tcp, with(hold(7), Some(7), both)),
        staying(tcp, with(hold(3), Some(3), both)),
        staying(
            tcp,
            with(Load::Rate { rate: rate(10, SECOND), concurrent_max: None }, Some(5), both),
        ),
    ];
    let servers = vec![template(vec![Instruction::WaitForPeerClose], server(80))];
    let mut world = World::of(clients, servers, &Buffers::default());
    world.run(SECOND, |_, _| {});
    let flows = |place| world.client.tally(place).unwrap().flows;
    assert_eq!((flows(0).active, flows(1).active), (7, 3));
    assert_eq!((flows(0).no_free_tuple, flows(1).no_free_tuple), (0, 0));
    let last = flows(2);
    assert_eq!(
        (last.offered, last.started, last.no_free_tuple),
        (5, 0, 5),
        "the shortfall is counted"
    );
    assert_eq!(world.server.counters().active, 10);
}
