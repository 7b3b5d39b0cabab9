//! What is told of single flows.

use std::net::IpAddr;

use wirestorm_base::time::Duration;
use wirestorm_stack::endpoint::{Load, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};
use wirestorm_stack::tcp::connection::State;

use crate::world::{World, client, server, template};

#[test]
fn flows_tell_what_they_are_and_between_whom() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"", 100_000, &[]));
    let load = Load::Hold { flows: 2 };
    let wait = Instruction::WaitForPeerClose;
    let datagrams = template(vec![wait], client("16.0.0.1", 81, load, None));
    let clients = vec![
        template(vec![Instruction::Send { buffer }, wait], client("2001:db8:1::1", 80, load, None)),
        Template { transport: Transport::Udp, ..datagrams },
    ];
    let mut world = World::of(clients, vec![template(vec![wait], server(80))], &buffers);
    world.run(Duration::from_micros(100), |_, _| {});
    let states: Vec<_> = world.client.flows(0, world.now).map(|it| it.tcp.unwrap().state).collect();
    assert_eq!(states, [State::SynSent; 2]);
    world.run(Duration::from_millis(300), |_, _| {});

    let flows: Vec<_> = world.client.flows(0, world.now).collect();
    assert_eq!(flows.len(), 2);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (flow, own) in flows.iter().zip(["2001:db8:1::1", "2001:db8:1::2"]) {
        assert_eq!(flow.own, (address(own), 10_000));
        assert_eq!(flow.peer.1, 80);
        assert_eq!(flow.age, Duration::from_micros(300_100));
        let tcp = flow.tcp.unwrap();
        assert_eq!((tcp.state, tcp.backlog, tcp.unsent), (State::Established, 0, 0));
        // Ethernet, IPv6, TCP with timestamps.
        assert_eq!(tcp.segment_size, 1_514 - 14 - 40 - 32);
        assert!(tcp.congestion_window > 10 * 1_428, "{tcp:?}");
        assert!(tcp.slow_start_threshold > 100_000);
        // Each end looks at its wire once in 100 us; an acknowledgement may wait.
        assert!((90..=110).contains(&tcp.least_us.unwrap()), "{tcp:?}");
        assert!((90..50_000).contains(&tcp.round_trip_us.unwrap()), "{tcp:?}");
        assert_eq!((tcp.expiries, tcp.repeats), (0, 0));
        assert_eq!((tcp.acknowledged, tcp.received), (100_000, 0));
        // RFC 6298: the least of it is 200 ms here, and the round trip is added.
        assert!((200_090..300_000).contains(&tcp.timeout_us), "{tcp:?}");
        assert_eq!(world.client.flow(&flow.key, world.now), Some(*flow));
        assert_eq!(world.server.flow(&flow.key, world.now), None);
    }
    let accepted: Vec<_> = world.server.flows(0, world.now).collect();
    for (theirs, ours) in accepted.iter().zip(&flows) {
        assert_eq!((theirs.own, theirs.peer), (ours.peer, ours.own));
        let tcp = theirs.tcp.unwrap();
        assert_eq!((tcp.acknowledged, tcp.received), (0, 100_000));
    }
    let datagrams: Vec<_> = world.client.flows(1, world.now).collect();
    assert_eq!(datagrams.len(), 2);
    assert!(datagrams.iter().all(|it| it.tcp.is_none() && it.peer.1 == 81));
    assert_eq!(world.client.flows(2, world.now).count(), 0);

    // Who is not answered any more.
    let mut alone = World::of(
        vec![template(vec![], client("16.0.0.1", 80, Load::Hold { flows: 1 }, None))],
        vec![],
        &buffers,
    );
    for _ in 0..40_000 {
        alone.client.breathe(alone.now, &mut alone.up.0, &mut alone.down.1).unwrap();
        alone.now += crate::world::STEP;
    }
    let details: Vec<_> = alone.client.flows(0, alone.now).filter_map(|it| it.tcp).collect();
    assert_eq!(details.len(), 1);
    assert_eq!((details[0].state, details[0].expiries), (State::SynSent, 2));
    assert_eq!((details[0].acknowledged, details[0].received), (0, 0));
    assert_eq!(details[0].timeout_us, 4_000_000, "twice as long, twice");
}
