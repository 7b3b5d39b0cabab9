//! Details of single flows.

use std::collections::BTreeSet;
use std::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;
use wirestorm_model::tcp::Settings;
use wirestorm_stack::endpoint::{MatchByte, Role, SampleOptions, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};
use wirestorm_stack::tcp::connection::State;

use super::world::{STEP, World, client, pass_by, server, template};

#[test]
fn flow_details_include_state_and_addresses() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"", 100_000, &[]));
    let load = Load::Concurrent(2);
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
    let offered = world.client.flows(0, world.now).next().unwrap().tcp.unwrap();
    // Offered options are not agreed yet.
    assert_eq!((offered.timestamps, offered.sack, offered.window_scales), (false, false, None));
    assert_eq!((offered.receive_window, offered.idle_ms), (0, None));
    world.run(Duration::from_millis(300), |_, _| {});

    let flows: Vec<_> = world.client.flows(0, world.now).collect();
    assert_eq!(flows.len(), 2);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    for (flow, client) in flows.iter().zip(["2001:db8:1::1", "2001:db8:1::2"]) {
        assert_eq!(flow.local, (address(client), 10_000));
        assert_eq!(flow.peer.1, 80);
        assert_eq!(flow.age, Duration::from_micros(300_100));
        let tcp = flow.tcp.unwrap();
        assert_eq!((tcp.state, tcp.bytes_in_flight, tcp.unsent), (State::Established, 0, 0));
        // Ethernet, IPv6, and TCP with timestamps.
        assert_eq!(tcp.segment_size, 1_514 - 14 - 40 - 32);
        assert!(tcp.congestion_window > 10 * 1_428, "{tcp:?}");
        assert!(tcp.slow_start_threshold > 100_000);
        // Each end polls its wire every 100 us; an acknowledgement may be delayed.
        assert!((90..=110).contains(&tcp.min_rtt_us.unwrap()), "{tcp:?}");
        assert!((90..50_000).contains(&tcp.round_trip_us.unwrap()), "{tcp:?}");
        assert_eq!((tcp.expiries, tcp.repeats), (0, 0));
        assert_eq!((tcp.acknowledged, tcp.received), (100_000, 0));
        // RFC 6298: the minimum margin is 200 ms here, plus the round trip.
        assert!((200_090..300_000).contains(&tcp.timeout_us), "{tcp:?}");
        assert!(tcp.timestamps && tcp.sack && !tcp.ecn, "{tcp:?}");
        assert_eq!((tcp.window_scales, tcp.receive_window), (Some((0, 0)), 32 << 10));
        // Keepalive is off, so the time comes from the peer's last timestamp.
        assert!((250..=300).contains(&tcp.idle_ms.unwrap()), "{tcp:?}");
        assert_eq!(tcp.out_of_order, 0);
        assert_eq!(world.client.flow(&flow.key, world.now), Some(*flow));
        assert_eq!(world.server.flow(&flow.key, world.now), None);
    }
    let accepted: Vec<_> = world.server.flows(0, world.now).collect();
    for (theirs, ours) in accepted.iter().zip(&flows) {
        assert_eq!((theirs.local, theirs.peer), (ours.peer, ours.local));
        let tcp = theirs.tcp.unwrap();
        assert_eq!((tcp.acknowledged, tcp.received), (0, 100_000));
    }
    let datagrams: Vec<_> = world.client.flows(1, world.now).collect();
    assert_eq!(datagrams.len(), 2);
    assert!(datagrams.iter().all(|it| it.tcp.is_none() && it.peer.1 == 81));
    assert_eq!(world.client.flows(2, world.now).count(), 0);

    // A client without answers.
    let mut alone = World::of(
        vec![template(vec![], client("16.0.0.1", 80, Load::Concurrent(1), None))],
        vec![],
        &buffers,
    );
    for _ in 0..40_000 {
        alone.client.breathe(alone.now, &mut alone.up.0, &mut alone.down.1).unwrap();
        alone.now += super::world::STEP;
    }
    let details: Vec<_> = alone.client.flows(0, alone.now).filter_map(|it| it.tcp).collect();
    assert_eq!(details.len(), 1);
    assert_eq!((details[0].state, details[0].expiries), (State::SynSent, 2));
    assert_eq!((details[0].acknowledged, details[0].received), (0, 0));
    assert_eq!(details[0].timeout_us, 4_000_000, "doubled twice");
}

#[test]
fn flows_are_followed_from_start_to_end() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"a", 3_000, &[]));
    let limited = |first, port| client(first, port, Load::Concurrent(1), Some(3));
    let wait = Instruction::WaitForPeerClose;
    let clients = vec![
        template(vec![Instruction::Send { buffer }], limited("16.0.0.1", 80)),
        template(vec![], limited("16.0.0.1", 81)),
    ];
    // The template of a connection to the first port is known only after its first data.
    let mut decided = server(80);
    if let Role::Server { listen } = &mut decided {
        listen.first_bytes = vec![MatchByte { offset: 0, mask: 0xff, value: b'a' }];
    }
    let servers = vec![template(vec![wait], decided), template(vec![wait], server(81))];
    let mut world = World::of(clients, servers, &buffers);
    let of_first = |count| SampleOptions { count, templates: vec![0], ..SampleOptions::default() };
    world.client.follow(of_first(2));
    let elsewhere = Some("16.9.9.9".parse().unwrap());
    world.server.follow(SampleOptions { address: elsewhere, ..of_first(2) });
    world.run(Duration::from_micros(500), |_, _| {});
    assert!(world.server.followed().is_empty(), "followed a flow of another template");
    world.server.follow(SampleOptions { port: Some(80), ..of_first(2) });
    world.run(Duration::from_secs(2), |_, _| {});
    for (endpoint, begins, template) in
        [(&world.client, State::SynSent, 0), (&world.server, State::Established, 0)]
    {
        let followed = endpoint.followed();
        let numbers: BTreeSet<_> = followed.iter().map(|it| it.number).collect();
        assert_eq!(numbers.len(), 2, "too many flows: {followed:?}");
        for flow in followed {
            let ((began, first), (ended, last)) = (flow.first, flow.last.expect("it is over"));
            assert_eq!((flow.template, first.tcp.unwrap().state), (template, begins));
            assert!([State::TimeWait, State::Closed].contains(&last.tcp.unwrap().state));
            assert!(began < ended && first.key == last.key, "{flow:?}");
            let last = last.tcp.unwrap();
            assert!(last.timestamps && last.sack, "{last:?}");
            assert_eq!(last.acknowledged + last.received, 3_000, "{last:?}");
        }
    }
    // The third flow replaced the first.
    assert!(world.client.followed().iter().any(|it| it.number == 2));

    // A refused connection has no details.
    let refused = template(vec![wait], limited("16.0.0.1", 9));
    let mut world = World::of(vec![refused], vec![], &buffers);
    world.client.follow(of_first(1));
    world.run(Duration::from_millis(10), |_, _| {});
    let last = world.client.followed()[0].last.and_then(|(_, last)| last.tcp).unwrap();
    assert_eq!((last.state, last.received, last.acknowledged), (State::Closed, 0, 0));
    assert_eq!((last.timestamps, last.sack, last.window_scales), (false, false, None));
}

#[test]
fn segment_size_is_set_before_the_peer_answers() {
    let settings = Settings { maximum_segment_size: 10, timestamps: true, ..Settings::default() };
    let clients = template(vec![], client("16.0.0.1", 80, Load::Concurrent(1), None));
    let clients = Template { transport: Transport::Tcp(settings), ..clients };
    let mut world = World::of(vec![clients], vec![], &Buffers::default());
    world.run(Duration::from_micros(100), |_, _| {});
    let flow = world.client.flows(0, world.now).next().unwrap().tcp.unwrap();
    assert_eq!((flow.state, flow.segment_size), (State::SynSent, 10));
}

#[test]
fn keepalive_gives_the_time_since_the_last_segment() {
    let tcp = Settings {
        keepalive_ms: 500,
        keepalive_interval_ms: 300,
        receive_buffer: 1 << 20,
        sack: false,
        timestamps: false,
        ..Settings::default()
    };
    let with = |role| Template {
        transport: Transport::Tcp(tcp),
        ..template(vec![Instruction::WaitForPeerClose], role)
    };
    let clients = vec![with(client("16.0.0.1", 80, Load::Concurrent(1), None))];
    let mut world = World::of(clients, vec![with(server(80))], &Buffers::default());
    let silent = |world: &World| {
        let flow = world.client.flows(0, world.now).next().unwrap();
        flow.tcp.unwrap().idle_ms.unwrap()
    };
    world.run(Duration::from_millis(400), |_, _| {});
    assert!((398..=400).contains(&silent(&world)), "{}", silent(&world));
    let flow = world.client.flows(0, world.now).next().unwrap().tcp.unwrap();
    assert_eq!((flow.window_scales, flow.receive_window), (Some((5, 5)), 1 << 20));
    assert!(!flow.timestamps && !flow.sack);
    // Both ends probe at the same time, so each receives the other's probe.
    world.run(Duration::from_millis(150), |_, _| {});
    assert!(silent(&world) < 60, "{}", silent(&world));
    // The server answers no probes any more.
    for _ in 0..9_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        world.now += super::world::STEP;
    }
    assert!((900..960).contains(&silent(&world)), "{}", silent(&world));
}

#[test]
fn out_of_order_segments_are_counted_per_flow() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"", 100_000, &[]));
    let wait = Instruction::WaitForPeerClose;
    let clients = vec![template(
        vec![Instruction::Send { buffer }, wait],
        client("16.0.0.1", 80, Load::Concurrent(2), None),
    )];
    let mut world = World::of(clients, vec![template(vec![wait], server(80))], &buffers);
    let mut frames = 0;
    while world.now < Instant::ZERO + Duration::from_millis(500) {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| {
            // Damage one data segment of one of the flows: its checksum becomes wrong.
            let is_of_first = frame[29] == 1 && frame.len() > 1_000;
            frames += usize::from(is_of_first);
            if is_of_first && frames == 3 {
                frame[1_000] ^= 1;
            }
        });
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += STEP;
    }
    assert_eq!(world.server.unmatched().malformed, 1);
    let counted = world.server.tcp().rcvoopack;
    assert!((2..200).contains(&counted), "{counted}");
    let flows: Vec<_> = world.server.flows(0, world.now).collect();
    let counted_of = |client: &str| {
        let flow = flows.iter().find(|it| it.peer.0 == client.parse::<IpAddr>().unwrap()).unwrap();
        flow.tcp.map(|tcp| (tcp.received, u64::from(tcp.out_of_order)))
    };
    assert_eq!(counted_of("16.0.0.1"), Some((100_000, counted)));
    assert_eq!(counted_of("16.0.0.2"), Some((100_000, 0)));
}
