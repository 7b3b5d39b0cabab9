//! Loads that ramp up, change, or follow the received rate.

use std::num::NonZero;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::{Load, ThinkTime};
use wirestorm_model::program::{TransactionId, UserCounter};
use wirestorm_sim::memory::{WireOptions, wire};
use wirestorm_stack::endpoint::{Devices, Endpoint, EndpointOptions, Role, Template, Transport};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};

use super::world::{SECOND, World, client, options, rate, server, template};

fn ramping(load: Load, over: Duration) -> Role {
    let mut role = client("16.0.0.1", 80, load, None);
    let Role::Client { ramp, .. } = &mut role else { unreachable!("it is one") };
    *ramp = over;
    role
}

fn set_scale(endpoint: &mut Endpoint, scale: (u32, u32), now: Instant) {
    let [numerator, denominator] = [scale.0, scale.1].map(|it| NonZero::new(it).unwrap());
    endpoint.set_load_scale(numerator, denominator, now).unwrap();
}

fn flows_started(endpoint: &Endpoint) -> u64 {
    endpoint.tally(0).unwrap().flows.started
}

#[test]
fn rate_ramps_up_linearly() {
    let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None };
    let mut world = World::new(vec![ramping(load, Duration::from_secs(2))], 0);
    world.run(Duration::from_secs(3), |now, client| {
        let millis = u128::from(now.as_nanos()) / 100_000;
        // In tenths of a millisecond: t^2 / 2T flows during the ramp, then t - T / 2; the first one
        // at once.
        let expected = match millis < 20_000 {
            true => millis * millis / 400_000,
            false => (millis - 10_000) / 10,
        };
        assert_eq!(u128::from(flows_started(client)), expected + 1, "at {now:?}");
    });
    assert_eq!(flows_started(&world.client), 2_000);
    world.assert_over(2_000);
}

#[test]
fn load_ends_an_interval_after_the_last_flow() {
    let load = Load::Rate { rate: rate(4, SECOND), concurrent_max: None };
    let at = |millis| Some(Instant::ZERO.saturating_add(Duration::from_millis(millis)));
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(2))], 0);
    assert_eq!(world.client.load_end(), None);
    world.run(Duration::from_millis(300), |_, _| {});
    assert_eq!(world.client.load_end(), at(500));
    // A stop at the end changes nothing; an earlier stop ends the load.
    world.client.stop();
    assert_eq!(world.client.load_end(), at(500));
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(9))], 0);
    world.run(Duration::from_millis(300), |_, _| {});
    world.client.stop();
    assert!(world.client.load_end() <= at(300), "{:?}", world.client.load_end());
}

#[test]
fn poisson_rate_ramps_up_linearly() {
    let load = Load::Poisson { rate: rate(2_000, SECOND), concurrent_max: None };
    let mut world = World::new(vec![ramping(load, Duration::from_secs(4))], 0);
    world.run(Duration::from_secs(2), |_, _| {});
    // A quarter of 4,000, with a standard deviation of 32.
    assert!(
        (870..1_130).contains(&flows_started(&world.client)),
        "{}",
        flows_started(&world.client)
    );
    world.run(Duration::from_secs(2), |_, _| {});
    assert!(
        (3_750..4_250).contains(&flows_started(&world.client)),
        "{}",
        flows_started(&world.client)
    );
}

#[test]
fn rate_change_applies_at_once() {
    let load = Load::Rate { rate: rate(1, SECOND), concurrent_max: None };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
    let mut times = Vec::new();
    let mut run = |world: &mut World, millis| {
        world.run(Duration::from_millis(millis), |now, client| {
            while (times.len() as u64) < flows_started(client) {
                times.push(now.as_nanos() / 100_000);
            }
        });
        times.len()
    };
    run(&mut world, 1_400);
    // 600 ms of an interval are left, which become 150.
    set_scale(&mut world.client, (4, 1), world.now);
    assert_eq!(run(&mut world, 1_000), 2 + 4);
    // The last flow started 100 ms ago; 150 of 250 ms become 600 of 1,000.
    set_scale(&mut world.client, (1, 1), world.now);
    run(&mut world, 700);
    // Two thirds: 900 of 1,000 ms become 1,350.
    set_scale(&mut world.client, (2, 3), world.now);
    run(&mut world, 3_000);
    let expected =
        [0, 10_000, 15_500, 18_000, 20_500, 23_000, 30_000, 30_000 + 1_000 + 13_500, 59_500];
    assert_eq!(times, expected);
}

#[test]
fn rate_change_applies_during_a_ramp() {
    let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None };
    let mut world = World::new(vec![ramping(load, Duration::from_secs(2))], 0);
    world.run(SECOND, |_, _| {});
    assert_eq!(flows_started(&world.client), 250);
    set_scale(&mut world.client, (2, 1), world.now);
    world.run(SECOND, |_, _| {});
    // 750 would have started; twice as many do. The first was due at once.
    assert_eq!(flows_started(&world.client), 250 + 1_500);
    world.run(SECOND, |_, _| {});
    assert_eq!(flows_started(&world.client), 250 + 1_500 + 2_000);
}

#[test]
fn scale_is_relative_to_the_configured_load() {
    let held = client("16.0.0.1", 80, Load::Concurrent(10), None);
    let mut world = World::new(vec![held], 50_000);
    for (scale, expected) in [((3, 1), 30), ((5, 2), 25), ((1, 1), 10), ((1, 100), 0)] {
        set_scale(&mut world.client, scale, world.now);
        world.run(SECOND, |_, _| {});
        assert_eq!(world.client.counters().active, expected, "{scale:?}");
    }
    // A rate that cannot be represented changes nothing, also for other templates.
    let clients = vec![
        client("16.0.0.1", 80, Load::Concurrent(10), None),
        client(
            "17.0.0.1",
            81,
            Load::Rate { rate: rate(1_000_000_000_000_000_000, SECOND), concurrent_max: None },
            Some(1),
        ),
    ];
    let mut world = World::new(clients, 50_000);
    let [two, one] = [2, 1].map(|it| NonZero::new(it).unwrap());
    let too_many = world.client.set_load_scale(NonZero::<u32>::MAX, one, world.now);
    assert!(too_many.is_err());
    world.run(SECOND, |_, _| {});
    assert_eq!(world.client.counters().active, 10);
    assert!(world.client.set_load_scale(one, two, world.now).is_ok());
}

#[test]
fn throughput_load_reaches_its_target() {
    // A flow receives 5,000 bytes in about 61 ms, so 8 Mbit/s need 12 of them.
    let load = Load::Throughput(8_000_000);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 50_000);
    let second = |world: &mut World| {
        let before = world.client.tcp().rcvbyte;
        world.run(SECOND, |_, _| {});
        (world.client.tcp().rcvbyte - before) as f64 * 8.0 / 1e6
    };
    for (scale, expected) in [((1, 1), 8.0), ((4, 1), 32.0), ((1, 2), 4.0)] {
        set_scale(&mut world.client, scale, world.now);
        second(&mut world);
        let mean = (0..5).map(|_| second(&mut world)).sum::<f64>() / 5.0;
        assert!((0.97..1.03).contains(&(mean / expected)), "{mean} Mbit/s of {expected}");
    }
    let flows = world.client.counters();
    assert_eq!((flows.offered, flows.failed()), (flows.started, 0));
}

fn users(users: u64, min: u64, max: u64) -> Load {
    let [min, max] = [min, max].map(Duration::from_millis);
    Load::Users { users, think_time: ThinkTime::Uniform { min, max } }
}

#[test]
fn users_wait_between_two_flows() {
    // A flow takes about 51 ms for its client, and then 10 ms in TIME-WAIT, which do not count. So
    // a user makes one every 190 ms.
    let mut world = World::new(vec![client("16.0.0.1", 80, users(10, 139, 139), None)], 50_000);
    world.run(SECOND, |_, client| {
        let flows = client.tally(0).unwrap().flows;
        assert!(flows.active - flows.waiting <= 10, "{flows:?}");
    });
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!(flows.started, 60);
    assert_eq!((flows.offered, flows.failed()), (flows.started, 0));
}

#[test]
fn users_start_one_by_one_and_leave_after_their_delay() {
    let role = ramping(users(20, 100, 500), Duration::from_secs(2));
    let mut world = World::new(vec![role], 0);
    let mut first = Vec::new();
    // The delay is at least 100 ms, so the first flows start on their own.
    world.run(Duration::from_millis(99), |now, client| {
        if flows_started(client) > first.len() as u64 {
            first.push(now.as_nanos() / 1_000_000);
        }
    });
    assert_eq!(first, [0]);
    world.run(Duration::from_millis(1_901), |_, _| {});
    // Each user makes one flow at the start, and one every 300 ms then: 20, and 21,000 ms / 300 ms.
    assert!((80..100).contains(&flows_started(&world.client)), "{}", flows_started(&world.client));
    let mut second = |scale| {
        set_scale(&mut world.client, scale, world.now);
        // Users in their delay continue for half a second.
        world.run(SECOND, |_, _| {});
        let before = flows_started(&world.client);
        world.run(SECOND, |_, _| {});
        flows_started(&world.client) - before
    };
    // 20, 10, none and 40 users, each of whom makes 3.3 flows per second.
    let [full, half, none, double] = [(1, 1), (1, 2), (1, 100), (2, 1)].map(&mut second);
    assert!((61..=72).contains(&full), "{full}");
    assert!((29..=38).contains(&half), "{half}");
    assert_eq!(none, 0);
    assert!((122..=144).contains(&double), "{double}");
}

#[test]
fn users_without_delay_or_with_failed_flows_continue_at_once() {
    let mut world = World::new(vec![client("16.0.0.1", 80, users(3, 0, 0), Some(60))], 0);
    world.run(SECOND, |_, _| {});
    world.assert_over(60);
    // Nothing listens there: each flow is refused, and retried.
    let tries = template(vec![], client("16.0.0.1", 81, users(3, 100, 100), Some(12)));
    let mut world = World::of(vec![tries], vec![], &Buffers::default());
    world.run(SECOND, |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!((flows.started, flows.refused), (12, 12));
    // There is no room for a third flow before others end.
    let stay = template(vec![Instruction::WaitForPeerClose], {
        client("16.0.0.1", 80, users(3, 10, 10), None)
    });
    let serve = template(vec![Instruction::WaitForPeerClose], server(80));
    let mut world = World::of(vec![], vec![serve], &Buffers::default());
    let options = EndpointOptions { flows_max: 2, ..options(vec![stay], &Buffers::default(), 1) };
    world.client = Endpoint::new(options, Instant::ZERO);
    world.run(SECOND, |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!((flows.offered, flows.started), (2, 2));
    // It is retried after 100, 200 and 400 ms.
    assert_eq!(flows.flow_table_full, 4, "{flows:?}");
}

#[test]
fn flows_that_end_at_once_are_replaced_once_per_iteration() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"12", 0, &[]));
    let sender = template(
        vec![Instruction::SendDatagram { buffer }],
        client("16.0.0.1", 80, users(2, 0, 0), None),
    );
    let sender = Template { transport: Transport::Udp, ..sender };
    let mut world = World::of(vec![sender], vec![], &buffers);
    world.run(Duration::from_millis(1), |now, client| {
        let iterations = now.as_nanos() / super::world::STEP.as_nanos() + 1;
        assert!(flows_started(client) <= 2 * iterations, "{} at {now:?}", flows_started(client));
    });
    assert!(flows_started(&world.client) > 2);
}

#[test]
fn unmet_load_is_reported() {
    let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: None };
    let stay = template(vec![Instruction::WaitForPeerClose], client("16.0.0.1", 80, load, None));
    let serve = template(vec![Instruction::WaitForPeerClose], server(80));
    let mut world = World::of(vec![], vec![serve], &Buffers::default());
    let options = EndpointOptions { flows_max: 100, ..options(vec![stay], &Buffers::default(), 1) };
    world.client = Endpoint::new(options, Instant::ZERO);
    world.run(SECOND, |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!((flows.offered, flows.started, flows.flow_table_full), (1_000, 100, 900));
    assert_eq!(flows.active_max, 100);
}

#[test]
fn each_of_many_clients_may_have_its_own_device() {
    const MANY: u32 = 66_000;
    let mut role = client("16.0.0.1", 80, Load::OnDemand, None);
    let Role::Client { tuples, link, .. } = &mut role else { unreachable!("it is one") };
    tuples.clients.count = MANY;
    link.devices.push(Devices {
        clients: tuples.clients,
        stride: 1,
        count: MANY,
        link: link.default_link,
        destinations_count: true,
        sources_count: false,
    });
    let stay = template(vec![Instruction::WaitForPeerClose], role);
    for transport in [stay.transport, Transport::Udp] {
        let stay = Template { transport, ..stay.clone() };
        let buffers = Buffers::default();
        let options =
            EndpointOptions { flows_max: MANY as usize, ..options(vec![stay], &buffers, 1) };
        let mut endpoint = Endpoint::new(options, Instant::ZERO);
        let (mut transmit, _receive) = wire(WireOptions { frames: 4, frame_length_max: 1_600 });
        for number in 0..MANY {
            assert!(endpoint.connect(0, Instant::ZERO, &mut transmit), "{number}");
        }
        assert_eq!(endpoint.counters().active, u64::from(MANY));
    }
}

#[test]
fn rate_skips_flows_at_the_concurrency_limit() {
    let (rate, at_most) = (rate(1_000, SECOND), Some(64));
    for load in [
        Load::Rate { rate, concurrent_max: at_most },
        Load::Poisson { rate, concurrent_max: at_most },
    ] {
        // A flow lasts a little more than 100 ms, so there would be more than 100 of them.
        let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 100_000);
        let mut most = 0;
        world.run(SECOND, |_, client| {
            let flows = client.counters();
            most = most.max(flows.active - flows.waiting);
        });
        assert_eq!(most, 64, "{load:?}");
        let flows = world.client.tally(0).unwrap().flows;
        assert_eq!(
            flows.offered,
            flows.started + flows.skipped,
            "{load:?}: the shortfall is counted"
        );
        // The rate does not change: skipped flows are not made up for.
        assert!((900..=1_100).contains(&flows.offered), "{load:?}: {flows:?}");
        assert!((550..=640).contains(&flows.started), "{load:?}: {flows:?}");
        world.assert_over(flows.started);
    }
}

#[test]
fn skipped_flows_do_not_count_towards_the_limit() {
    let load = Load::Rate { rate: rate(1_000, SECOND), concurrent_max: Some(1) };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(3))], 100_000);
    world.run(SECOND, |_, _| {});
    let flows = world.client.tally(0).unwrap().flows;
    assert_eq!(flows.started, 3);
    assert!((200..=210).contains(&flows.skipped), "{flows:?}");
    assert!(world.client.is_done());
    world.assert_over(3);
}

#[test]
fn scale_changes_the_rate_but_not_the_concurrency_limit() {
    let load = Load::Rate { rate: rate(100, SECOND), concurrent_max: Some(20) };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 100_000);
    world.run(SECOND, |_, _| {});
    // About 10 at once.
    assert_eq!(world.client.tally(0).unwrap().flows.skipped, 0);
    set_scale(&mut world.client, (10, 1), world.now);
    world.run(SECOND, |_, client| {
        let flows = client.counters();
        assert!(flows.active - flows.waiting <= 20);
    });
    let flows = world.client.tally(0).unwrap().flows;
    assert!((100 + 180..=100 + 220).contains(&flows.started), "{flows:?}");
    assert_eq!(flows.offered, flows.started + flows.skipped);
}

/// Programs that never wait share the time, so that other flows run as before.
#[test]
fn flows_that_never_wait_share_the_worker() {
    let statistic = UserCounter::new(0).unwrap();
    let count = Instruction::Count { statistic, value: 1 };
    let program = vec![count, Instruction::Jump { to: 0 }];
    let done = |flows, is_udp: bool| {
        let role = client("16.0.0.1", 80, Load::Concurrent(flows), None);
        let mut clients = template(program.clone(), role);
        if is_udp {
            clients.transport = Transport::Udp;
        }
        let servers = vec![template(vec![Instruction::WaitForPeerClose], server(80))];
        let mut world = World::of(vec![clients], servers, &Buffers::default());
        world.run(Duration::from_millis(500), |_, _| {});
        assert_eq!(world.client.counters().active, flows);
        world.client.statistics().get(statistic)
    };
    // A turn of 1,000 steps counts to 500. A single flow has one turn per millisecond. Many flows
    // have ten in total, besides the first one of each.
    for is_udp in [false, true] {
        let (one, many) = (done(1, is_udp), done(200, is_udp));
        assert!((200_000..=252_000).contains(&one), "{one}");
        assert!((2_000_000..=2_700_000).contains(&many), "{many}");
    }
}

#[test]
fn delays_are_exact_to_a_millisecond() {
    let transaction = TransactionId::new(0).unwrap();
    for is_udp in [false, true] {
        for micros in [0, 20, 1_000, 5_000] {
            let program = vec![
                Instruction::BeginTransaction { transaction },
                Instruction::Delay { micros },
                Instruction::EndTransaction { transaction },
            ];
            // The flows start at any of ten points within a millisecond.
            let load = Load::Rate {
                rate: rate(1_000, Duration::from_micros(1_300_000)),
                concurrent_max: None,
            };
            let mut clients = template(program, client("16.0.0.1", 80, load, None));
            if is_udp {
                clients.transport = Transport::Udp;
            }
            let servers = vec![template(vec![Instruction::WaitForPeerClose], server(80))];
            let mut world = World::of(vec![clients], servers, &Buffers::default());
            world.run(SECOND, |_, _| {});
            let times = world.client.tally(0).unwrap().findings.transaction(transaction);
            let times = times.unwrap();
            let [min, max] =
                [times.min, times.times.max()].map(|it| (it.as_nanos() / 1_000) as u32);
            assert!(times.times.count() > 700);
            let longest = if micros == 0 { 0 } else { micros + 999 };
            assert!(min >= micros && max <= longest, "{micros}: {min} to {max}");
        }
    }
}
