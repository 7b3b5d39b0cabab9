//! Loads that exceed the available time, ports, peers or bandwidth.

use wirestorm_base::port::Receive;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::{Load, ThinkTime};
use wirestorm_model::program::UserCounter;
use wirestorm_stack::endpoint::{Endpoint, FlowCounters, Role};
use wirestorm_stack::program::{Buffer, Buffers, Instruction};

use super::world::{SECOND, STEP, World, client, rate, server, template};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn constant(flows: u64) -> Load {
    Load::Rate { rate: rate(flows, SECOND), concurrent_max: None }
}

fn poisson(flows: u64) -> Load {
    Load::Poisson { rate: rate(flows, SECOND), concurrent_max: None }
}

fn flows(endpoint: &Endpoint) -> FlowCounters {
    endpoint.tally(0).unwrap().flows
}

/// Clients of a load; the server sends `bytes` bytes after a delay.
fn pages(load: Load, bytes: u32, micros: u32) -> World {
    let mut buffers = Buffers::default();
    let ask = buffers.push(Buffer::new(b"page", 0, &[]));
    let page = buffers.push(Buffer::new(b"", bytes, &[]));
    let receive = |bytes| Instruction::Receive { bytes, clear: false };
    let asks = [Instruction::Send { buffer: ask }, receive(bytes.into())];
    let delay = Instruction::Delay { micros };
    let answers = [receive(4), delay, Instruction::Send { buffer: page }];
    World::with(vec![client("16.0.0.1", 80, load, None)], &buffers, &asks, &answers)
}

/// Received rate in bit/s during a time.
fn received(world: &mut World, span: Duration) -> f64 {
    let before = world.client.tcp().rcvbyte;
    world.run(span, |_, _| {});
    (world.client.tcp().rcvbyte - before) as f64 * 8.0 / span.as_secs_f64()
}

#[test]
fn unreachable_rate_is_counted_and_ends_in_time() {
    for load in [constant(1_000_000_000_000), poisson(1_000_000_000_000)] {
        let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
        world.client.end_at(Instant::ZERO + millis(20));
        let mut before = 0;
        world.run(millis(30), |_, client| {
            // Starting flows must not take a whole iteration.
            let flows = flows(client);
            let begun = flows.started + flows.no_free_tuple + flows.flow_table_full;
            assert!(begun - before <= 64, "{flows:?}");
            before = begun;
        });
        assert!(world.client.is_behind());
        world.client.stop();
        let flows = flows(&world.client);
        assert_eq!(
            flows.late + flows.started + flows.no_free_tuple + flows.flow_table_full,
            flows.offered
        );
        let expected = 20_000_000_000.0;
        assert!((0.999..1.001).contains(&(flows.offered as f64 / expected)), "{flows:?}");
        assert!(!world.client.is_behind());
    }
}

#[test]
fn flows_late_by_more_than_a_second_are_skipped() {
    for load in [constant(1_000_000_000), poisson(1_000_000_000)] {
        let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
        world.now = Instant::ZERO + seconds(3);
        world.run(Duration::from_micros(100), |_, _| {});
        let flows = flows(&world.client);
        assert!((0.999..1.001).contains(&(flows.late as f64 / 2e9)), "{flows:?}");
        assert!(flows.started <= 64);
    }
}

#[test]
fn skipped_flows_are_counted_in_constant_time() {
    let load = Load::Rate { rate: rate(1_000_000_000_000, SECOND), concurrent_max: Some(1) };
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 50_000);
    world.client.end_at(Instant::ZERO + millis(40));
    world.run(millis(50), |_, _| {});
    let flows = flows(&world.client);
    assert_eq!((flows.offered, flows.started), (40_000_000_000, 1));
    assert_eq!(flows.skipped, flows.offered - 1);
}

#[test]
fn first_flow_is_due_at_once_and_none_at_the_end() {
    for (a_second, length) in [(1_000, 1), (1, 2), (3, 1)] {
        let load = constant(a_second);
        let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
        world.client.end_at(Instant::ZERO + seconds(length));
        world.run(Duration::from_micros(100), |_, _| {});
        assert_eq!(flows(&world.client).started, 1);
        // The iteration that finds the end is late.
        world.run(seconds(length) + millis(5), |_, _| {});
        world.client.stop();
        assert_eq!(flows(&world.client).offered, a_second * length);
        world.assert_over(a_second * length);
    }
}

#[test]
fn templates_share_the_time_under_overload() {
    let role = |port, load| client("16.0.0.1", port, load, None);
    let roles = vec![role(80, constant(1_000_000_000)), role(81, constant(100))];
    let mut world = World::new(roles, 0);
    world.run(SECOND, |_, _| {});
    let flows_started = |template| world.client.tally(template).unwrap().flows.started;
    assert!(flows_started(0) > 1_000);
    assert!((90..=100).contains(&flows_started(1)), "{} of 100", flows_started(1));
}

#[test]
fn held_flows_start_as_fast_as_they_are_answered() {
    let load = Load::Concurrent(10_000);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 3_000_000);
    let mut before = 0;
    let mut unanswered_max = 0;
    world.run(SECOND, |_, client| {
        let tcp = client.tcp();
        assert!(tcp.connattempt - before <= 64);
        before = tcp.connattempt;
        unanswered_max = unanswered_max.max(tcp.connattempt - tcp.connects);
    });
    assert_eq!(world.client.counters().active, 10_000);
    assert_eq!(world.client.tcp().rexmttimeo_syn, 0);
    assert!(unanswered_max < 2_000, "{unanswered_max}");
}

#[test]
fn silent_peer_does_not_get_all_held_flows() {
    let load = Load::Concurrent(10_000);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
    for _ in 0..1_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        let mut batch = Vec::new();
        world.up.1.receive(64, &mut batch).unwrap();
        batch.drain(..).for_each(|it| world.up.1.release(it));
        world.now += millis(1);
    }
    assert!(world.client.tcp().connattempt <= 512, "{}", world.client.tcp().connattempt);
}

#[test]
fn held_flows_start_within_the_ramp() {
    let mut role = client("16.0.0.1", 80, Load::Concurrent(100), None);
    let Role::Client { ramp, .. } = &mut role else { unreachable!("it is one") };
    *ramp = SECOND;
    let mut world = World::new(vec![role], 5_000_000);
    world.run(seconds(2), |now, client| {
        let due = (now.as_nanos() / 10_000_000 + 1).min(100);
        assert_eq!(client.counters().active, due, "at {now:?}");
    });
}

/// Clients of a load whose server listens on another port.
fn refused(load: Load) -> World {
    let mut world = World::new(vec![client("16.0.0.1", 80, load, None)], 0);
    let other = World::new(vec![client("16.0.0.1", 81, load, None)], 0);
    world.server = other.server;
    world
}

#[test]
fn refused_flows_are_retried_with_backoff() {
    let think = ThinkTime::Uniform { min: Duration::ZERO, max: Duration::ZERO };
    for load in [Load::Concurrent(10), Load::Users { users: 10, think_time: think }] {
        let mut world = refused(load);
        let mut times = Vec::new();
        world.run(seconds(4), |now, client| {
            let count = flows(client).started;
            (times.len() as u64..count).for_each(|_| times.push(now.as_nanos() / 1_000_000));
        });
        let at = |millis: u64| times.iter().filter(|it| it.abs_diff(millis) < 5).count();
        // After 100, 200, 400 and 800 ms, and then every second.
        for millis in [0, 100, 300, 700, 1_500, 2_500, 3_500] {
            assert_eq!(at(millis), 10, "at {millis} ms: {times:?}");
        }
        assert_eq!(times.len(), 70, "{load:?}");
        assert_eq!(flows(&world.client).refused, 70);
    }
}

#[test]
fn flows_without_a_free_port_are_retried_with_backoff() {
    let mut role = client("16.0.0.1", 80, Load::Concurrent(20), None);
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    tuples.client_ports = 2_000..=2_009;
    tuples.clients.count = 1;
    tuples.servers.count = 1;
    let mut world = World::new(vec![role], 300_000);
    world.run(seconds(2), |_, _| {});
    let flows = flows(&world.client);
    assert!(flows.started >= 30, "{flows:?}");
    assert!(flows.no_free_tuple < 200, "{flows:?}");
    assert!(world.client.next().is_some_and(|next| next > Instant::ZERO));
}

#[test]
fn throughput_target_may_need_less_than_one_flow() {
    // A page takes a few milliseconds; the target is one in 80 ms.
    for (bytes, bits) in [(100_000, 10_000_000), (30_000, 10_000_000), (500, 100_000)] {
        let load = Load::Throughput(bits);
        let mut world = pages(load, bytes, 0);
        let page = f64::from(bytes) * 8.0;
        let mut sum = 0.0;
        for second in 1..=5 {
            sum += received(&mut world, SECOND);
            let expected = f64::from(second) * bits as f64;
            assert!((sum - expected).abs() <= page * 1.01, "{sum} of {expected} bits");
        }
        assert_eq!(world.client.saturation_flows(0), None);
        assert_eq!(world.client.throughput(0), None);
        world.client.stop();
        let outcome = world.client.throughput(0).unwrap();
        // Up to the last iteration.
        let target = (SECOND.as_nanos() * 5 - STEP.as_nanos()) as f64 / 1e9 * bits as f64 / 8.0;
        assert_eq!(outcome.target_bytes, target.round() as u64);
        assert_eq!(outcome.received_bytes, world.client.tcp().rcvbyte);
        world.client.stop();
        assert_eq!(world.client.throughput(0), Some(outcome));
    }
}

#[test]
fn throughput_ended_by_a_limit_has_no_verdict() {
    let load = Load::Throughput(10_000_000);
    let mut world = World::new(vec![client("16.0.0.1", 80, load, Some(2))], 0);
    world.run(SECOND, |_, _| {});
    assert_eq!(world.client.counters().closed, 2);
    world.client.stop();
    assert_eq!(world.client.throughput(0), None);
}

#[test]
fn received_bytes_exceed_the_target_by_at_most_one_flow() {
    // A flow receives 5,000 bytes in about 61 ms, so 12 of them run at once.
    let bits = 8_000_000;
    let mut world = pages(Load::Throughput(bits), 5_000, 50_000);
    world.run(seconds(5), |now, client| {
        let received = client.tcp().rcvbyte * 8;
        let target = now.as_nanos() / 1_000 * (bits / 1_000_000);
        assert!(received <= target + 5_000 * 8, "{received} of {target} bits at {now:?}");
    });
    let received = world.client.tcp().rcvbyte * 8;
    assert!(received > 5 * bits * 95 / 100, "{received}");
}

#[test]
fn long_flows_are_kept_at_the_target_throughput() {
    // 100,000 bytes after 2 s: 4 Mbit/s need 10 flows at once.
    let load = Load::Throughput(4_000_000);
    let mut world = pages(load, 100_000, 2_000_000);
    received(&mut world, seconds(20));
    let mean = received(&mut world, seconds(20));
    assert!((0.9..1.1).contains(&(mean / 4e6)), "{mean}");
}

#[test]
fn no_flows_are_added_without_gain() {
    // An iteration handles 64 frames in 100 us, which is 7 Gbit/s.
    let load = Load::Throughput(100_000_000_000);
    let mut world = pages(load, 10_000, 0);
    let mut most = 0;
    world.run(seconds(3), |_, client| {
        let flows = flows(client);
        most = most.max(flows.active - flows.waiting);
    });
    assert!(most < 512, "{most} flows at once");
    let bits = world.client.tcp().rcvbyte as f64 * 8.0 / 3.0;
    assert!(bits > 1e9, "{bits}");
    let later = received(&mut world, SECOND);
    assert!(later > 0.8 * bits, "{later} after {bits}");
    assert!(world.client.saturation_flows(0).is_some());
}

#[test]
fn simultaneous_closes_are_spread_over_time() {
    const CONNECTIONS: u64 = 6_000;
    let closes = vec![Instruction::Connect, Instruction::Delay { micros: 500_000 }];
    let load = client("16.0.0.1", 80, constant(50_000), Some(CONNECTIONS));
    let servers = vec![template(vec![Instruction::WaitForPeerClose], server(80))];
    let mut world = World::of(vec![template(closes, load)], servers, &Buffers::default());
    world.run(millis(300), |_, _| {});
    assert_eq!(flows(&world.client).active, CONNECTIONS);
    // The machine is suspended for a second.
    world.now += SECOND;
    let (mut closed, mut before) = (0, 0);
    for step in 1..=5_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        // Each connection has sent a SYN, and then a FIN.
        closed = world.client.tcp().sndctrl - CONNECTIONS;
        world.now += STEP;
        // A step is a tenth of a tick.
        if step % 10 == 0 {
            assert!(closed - before <= 300, "{} in 1 ms", closed - before);
            before = closed;
        }
    }
    let (client, server) = (&world.client, &world.server);
    assert_eq!(closed, CONNECTIONS);
    assert_eq!((client.counters().closed, server.counters().closed), (closed, closed));
    assert_eq!(client.tcp().rexmttimeo + server.tcp().rexmttimeo, 0);
}

#[test]
fn many_timers_catch_up_after_a_pause() {
    const CONNECTIONS: u64 = 20_000;
    let statistic = UserCounter::new(0).unwrap();
    let ticks = vec![
        Instruction::Connect,
        Instruction::Delay { micros: 10_000 },
        Instruction::Count { statistic, value: 1 },
        Instruction::Jump { to: 1 },
    ];
    let load = client("16.0.0.1", 80, constant(200_000), Some(CONNECTIONS));
    let servers = vec![template(vec![Instruction::WaitForPeerClose], server(80))];
    let mut world = World::of(vec![template(ticks, load)], servers, &Buffers::default());
    let count = |world: &mut World, span: Duration| {
        let before = world.client.statistics().get(statistic);
        let end = world.now + span;
        while world.now < end {
            // Programs have enough time for their work.
            for _ in 0..4 {
                world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
                world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            }
            world.now += STEP;
        }
        world.client.statistics().get(statistic) - before
    };
    count(&mut world, millis(200));
    let usual = count(&mut world, millis(300));
    assert!(usual > 250_000, "{usual}");
    world.now += millis(100);
    count(&mut world, millis(100));
    let later = count(&mut world, millis(300));
    assert!(later * 10 > usual * 9, "{later} after {usual}");
}
