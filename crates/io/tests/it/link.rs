//! Properties of interfaces, link state notifications, and the transmit lock.

use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_io::link::{self, Link, LinkError, LinkKind, LinkMeter, LinkState, LinkWatch};
use wirestorm_io::lock::{Access, Holder, InterfaceLock, LockError};
use wirestorm_io::namespace::{InterfaceName, Namespace};

use crate::support::{VethPair, eventually, run};

#[test]
fn veth_reports_its_properties() {
    let Some(pair) = VethPair::with(&["numtxqueues", "4", "numrxqueues", "6"], 1400) else {
        return;
    };
    run(&pair.left.namespace, "ethtool", &["-L", "left", "rx", "4", "tx", "3"]);
    run(&pair.left.namespace, "ip", &["link", "set", "left", "address", "02:00:00:00:00:07"]);
    let left = Link::open(&pair.left).unwrap();
    let right = Link::open(&pair.right).unwrap();
    assert_eq!(left.name, "left");
    assert_eq!(left.mac, Some([2, 0, 0, 0, 0, 7]));
    assert_eq!(left.mtu, 1400);
    assert_eq!((left.untagged_length_max(), left.frame_length_max()), (1414, 1418));
    assert!(left.up && left.running);
    assert_eq!(left.kind, LinkKind::Veth);
    assert_eq!(left.driver.unwrap().name, "veth");
    assert_eq!((left.queues.receive, left.queues.transmit), (4, 3));
    assert_eq!((left.queues.receive_max, left.queues.transmit_max), (6, 4));
    assert_eq!(left.peer.unwrap().index, right.index);
    assert!(left.peer.unwrap().namespace_id.is_some());
    assert!(!left.default_route);
    assert_eq!(left.xdp_program, None);
    let features = left.xdp_features.unwrap();
    assert!(features.basic() && features.redirect());
}

#[test]
fn gro_at_the_peer_enables_xdp_transmit_of_a_veth() {
    let Some(pair) = VethPair::new() else { return };
    assert_eq!(Link::open(&pair.right).unwrap().receive_offload, Some(false));
    assert!(!Link::open(&pair.left).unwrap().xdp_features.unwrap().transmit());
    run(&pair.right.namespace, "ethtool", &["-K", "right", "gro", "on"]);
    assert_eq!(Link::open(&pair.right).unwrap().receive_offload, Some(true));
    run(&pair.left.namespace, "ethtool", &["-K", "left", "gro", "on"]);
    assert!(Link::open(&pair.left).unwrap().xdp_features.unwrap().transmit());
}

#[test]
fn default_route_is_found_in_every_table_and_family() {
    let Some(pair) = VethPair::new() else { return };
    run(&pair.left.namespace, "ip", &["address", "add", "192.0.2.1/24", "dev", "left"]);
    assert!(!Link::open(&pair.left).unwrap().default_route);
    let route = ["route", "add", "default", "via", "192.0.2.2", "table", "77"];
    run(&pair.left.namespace, "ip", &route);
    assert!(Link::open(&pair.left).unwrap().default_route);
    assert!(!Link::open(&pair.right).unwrap().default_route);
    run(&pair.right.namespace, "sysctl", &["-q", "-w", "net.ipv6.conf.right.disable_ipv6=0"]);
    run(&pair.right.namespace, "ip", &["-6", "route", "add", "default", "dev", "right"]);
    assert!(Link::open(&pair.right).unwrap().default_route);
}

#[test]
fn list_returns_all_interfaces_of_a_namespace() {
    let Some(pair) = VethPair::new() else { return };
    let names: Vec<_> =
        link::list(&pair.left.namespace).unwrap().into_iter().map(|link| link.name).collect();
    assert_eq!(names, ["lo", "left"]);
}

#[test]
fn missing_interface_error_contains_its_name() {
    let error = Link::open(&"no-such-if".parse().unwrap()).unwrap_err();
    assert!(matches!(error, LinkError::Missing(_)), "{error}");
    assert!(error.to_string().contains("no-such-if"));
}

#[test]
fn meter_counts_frames_received_at_the_peer() {
    let Some(pair) = VethPair::new() else { return };
    let mut meter = LinkMeter::open(&pair.right).unwrap();
    let before = meter.read().unwrap();
    run(&pair.left.namespace, "ip", &["address", "add", "192.0.2.1/24", "dev", "left"]);
    run(&pair.right.namespace, "ip", &["address", "add", "192.0.2.2/24", "dev", "right"]);
    run(&pair.left.namespace, "bash", &["-c", "echo hello > /dev/udp/192.0.2.2/9"]);
    let after = eventually("an ARP request", || {
        meter.read().ok().filter(|after| after.receive_packets > before.receive_packets)
    });
    assert!(after.receive_bytes > before.receive_bytes);
}

#[test]
fn watch_reports_down_no_carrier_up_and_gone() {
    let Some(pair) = VethPair::new() else { return };
    let mut watch = LinkWatch::open(&pair.left).unwrap();
    assert_eq!(watch.state().unwrap(), LinkState::Running);
    let mut expect = |state: LinkState| {
        eventually("a change of state", || (watch.state().unwrap() == state).then_some(()));
    };
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    expect(LinkState::NoCarrier);
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    expect(LinkState::Down);
    run(&pair.left.namespace, "ip", &["link", "set", "left", "up"]);
    run(&pair.right.namespace, "ip", &["link", "set", "right", "up"]);
    expect(LinkState::Running);
    run(&pair.left.namespace, "ip", &["link", "delete", "left"]);
    expect(LinkState::Gone);
}

#[test]
fn wait_ends_on_a_notification_or_a_timeout() {
    let Some(pair) = VethPair::new() else { return };
    let mut watches = [&pair.right, &pair.left].map(|end| LinkWatch::open(end).unwrap());
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    while watches[1].state().unwrap() != LinkState::Down
        || watches[0].state().unwrap() != LinkState::NoCarrier
    {
        // Without a notification this would exceed the time limit of a test.
        LinkWatch::wait(watches.iter(), Duration::from_secs(3_600));
    }
    // At some point the kernel has no more notifications.
    eventually("a wait that lasts", || {
        watches.iter_mut().for_each(|watch| assert!(watch.state().is_ok()));
        let before = clock::now();
        LinkWatch::wait(watches.iter(), Duration::from_millis(20));
        (clock::now().saturating_since(before) >= Duration::from_millis(20)).then_some(())
    });
}

#[test]
fn exclusive_lock_has_one_holder() {
    let Some(pair) = VethPair::new() else { return };
    let exclusive = |name| InterfaceLock::acquire(name, Access::Exclusive);
    let lock = exclusive(&pair.left).unwrap();
    let _other_end = exclusive(&pair.right).unwrap();
    let error = exclusive(&pair.left).unwrap_err();
    let LockError::Held { interface, holder } = &error else { panic!("{error}") };
    assert_eq!(interface, &pair.left);
    assert_eq!(*holder, Holder { process: Some(std::process::id()) });
    let command = format!("end it with: kill -INT {}", std::process::id());
    assert!(error.to_string().ends_with(&command), "{error}");
    drop(lock);
    // A child process that another test starts now inherits the socket until it calls exec.
    eventually("the lock to be free", || exclusive(&pair.left).ok());
}

#[test]
fn shared_and_exclusive_locks_exclude_each_other() {
    let Some(pair) = VethPair::new() else { return };
    let lock = |access| InterfaceLock::acquire(&pair.left, access);
    let is_held = |outcome| match outcome {
        Err(LockError::Held { holder, .. }) => holder.process == Some(std::process::id()),
        _ => false,
    };
    let shared = [lock(Access::Shared).unwrap(), lock(Access::Shared).unwrap()];
    assert!(is_held(lock(Access::Exclusive)));
    // The failed attempt leaves no lock behind.
    let [first, second] = shared;
    drop(first);
    let third = lock(Access::Shared).unwrap();
    drop(second);
    assert!(is_held(lock(Access::Exclusive)));
    drop(third);
    let exclusive = eventually("the lock to be free", || lock(Access::Exclusive).ok());
    assert!(is_held(lock(Access::Shared)));
    assert!(is_held(lock(Access::Exclusive)));
    drop(exclusive);
    eventually("the lock to be free", || lock(Access::Shared).ok());
}

#[test]
fn number_of_shared_locks_is_bounded() {
    let Some(pair) = VethPair::new() else { return };
    let lock = || InterfaceLock::acquire(&pair.left, Access::Shared);
    let held: Vec<_> = (0..64).map(|_| lock().unwrap()).collect();
    let refused = lock().unwrap_err();
    assert!(matches!(refused, LockError::TooManyShared { .. }), "{refused}");
    drop(held);
    eventually("a place to be free", || lock().ok());
}

#[test]
fn enter_runs_inside_a_named_namespace_and_returns() {
    let Some(_) = VethPair::new() else { return };
    /// Removes the namespace even if the test fails.
    struct Named(String);
    impl Drop for Named {
        fn drop(&mut self) {
            run(&Namespace::Current, "ip", &["netns", "delete", &self.0]);
        }
    }
    let named = Named(format!("wirestorm-test-{}", std::process::id()));
    run(&Namespace::Current, "ip", &["netns", "add", &named.0]);
    let here = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let namespace = Namespace::Named(named.0.clone());
    let there = namespace.enter(|| std::fs::read_link("/proc/thread-self/ns/net").unwrap());
    assert_ne!(here, there.unwrap());
    assert_eq!(here, std::fs::read_link("/proc/thread-self/ns/net").unwrap());
    let interface: InterfaceName = format!("netns/{}:lo", named.0).parse().unwrap();
    assert_eq!(Link::open(&interface).unwrap().kind, LinkKind::Loopback);
}
