//! Clients that are switched off and on.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wirestorm_base::time::Duration;
use wirestorm_model::load::{Load, ThinkTime};
use wirestorm_model::pairing::ClientOrder;
use wirestorm_stack::endpoint::{AddressSet, Endpoint, Role};

use super::world::{SECOND, World, client, rate};

/// Last address bytes of the clients that have flows.
fn clients(endpoint: &Endpoint, world: &World) -> BTreeSet<u8> {
    let last = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    endpoint.flows(0, world.now).map(|it| last(it.local.0)).collect()
}

/// Set of clients, by ranges of the last address byte.
fn off(prefix: &str, ranges: &[(u8, u8)]) -> AddressSet {
    let address = |last: u8| format!("{prefix}{last}").parse::<IpAddr>().unwrap();
    let mut set = AddressSet::default();
    set.add(ranges.iter().map(|&(first, last)| (address(first), address(last))));
    set
}

#[test]
fn switched_off_clients_start_no_flows_but_keep_existing_ones() {
    for prefix in ["16.0.0.", "2001:db8:1::"] {
        for order in [ClientOrder::RoundRobin, ClientOrder::Random] {
            let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None };
            let mut role = client(&format!("{prefix}1"), 80, load, None);
            if let Role::Client { tuples, .. } = &mut role {
                tuples.order = order;
            }
            // A flow lasts a little more than 100 ms.
            let mut world = World::new(vec![role], 100_000);
            world.run(Duration::from_millis(200), |_, _| {});
            assert_eq!(clients(&world.client, &world), (1..=10).collect(), "of ten");
            world.client.switch_off(&off(prefix, &[(1, 4), (6, 6), (9, 200)]));
            world.run(Duration::from_millis(30), |_, _| {});
            assert_eq!(clients(&world.client, &world), (1..=10).collect(), "flows continue");
            world.run(Duration::from_millis(170), |_, _| {});
            assert_eq!(clients(&world.client, &world), [5, 7, 8].into(), "{order:?}");
            world.client.switch_off(&AddressSet::default());
            world.run(Duration::from_millis(600), |_, _| {});
            assert_eq!(clients(&world.client, &world), (1..=10).collect());
            // The rate did not change.
            let flows = world.client.tally(0).unwrap().flows;
            assert_eq!((flows.offered, flows.started, flows.clients_disabled), (1_000, 1_000, 0));
            world.assert_over(1_000);
        }
    }
}

#[test]
fn flows_due_while_all_clients_are_off_are_counted() {
    let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(800))], 1_000);
    world.run(Duration::from_millis(100), |_, _| {});
    world.client.switch_off(&off("16.0.0.", &[(1, 10)]));
    world.run(Duration::from_millis(300), |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!((flows.started, flows.clients_disabled, flows.active), (100, 300, 0));
    world.client.switch_off(&off("16.0.0.", &[(2, 10)]));
    world.run(Duration::from_millis(600), |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!((flows.offered, flows.started), (1_000, 700));
    world.run(Duration::from_millis(600), |_, _| {});
    // Nothing of the limit is lost.
    assert!(world.client.is_done());
    world.assert_over(800);
}

#[test]
fn closed_loop_waits_for_a_client_to_be_on() {
    let think = ThinkTime::Uniform { min: Duration::ZERO, max: Duration::ZERO };
    for load in [
        Load::Concurrent(20),
        Load::Users { users: 20, think_time: think },
        Load::Throughput(1_000_000),
    ] {
        let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 10_000);
        world.run(Duration::from_millis(50), |_, _| {});
        world.client.switch_off(&off("16.0.0.", &[(1, 10)]));
        world.run(Duration::from_millis(100), |_, _| {});
        let before = world.client.tally(0).unwrap().flows;
        assert!(before.started > 0);
        world.run(Duration::from_millis(200), |_, _| {});
        let after = world.client.tally(0).unwrap().flows;
        assert_eq!(
            (after.started, after.offered, after.active),
            (before.started, before.offered, 0)
        );
        assert_eq!(after.clients_disabled, 0, "no flow was due in vain");
        assert_eq!(world.client.next(), None, "{load:?}: unexpected deadline");
        world.client.switch_off(&off("16.0.0.", &[(1, 9)]));
        world.run(Duration::from_millis(5), |_, _| {});
        assert_eq!(clients(&world.client, &world), [10].into(), "{load:?}");
        world.client.stop();
        world.run(SECOND, |_, _| {});
        assert!(world.client.is_done());
    }
}
