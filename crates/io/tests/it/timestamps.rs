//! Sockets with time stamps on loopback and on a veth pair, whose ends have the same clock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use wirestorm_base::time::Duration;
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, Direction};
use wirestorm_io::link::Link;
use wirestorm_io::namespace::Namespace;
use wirestorm_io::timestamps::{
    Departure, PacketArrival, Stamp, StampSource, StampedPacketSocket, StampedSocket, wait,
};
use wirestorm_io::xdp::XdpCounter;

use crate::support::{VethPair, eventually, ping};

const ETHER_TYPE: u16 = 0x88f7;
const GROUP: [u8; 6] = [0x01, 0x1b, 0x19, 0, 0, 0];
const IP_GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(224, 0, 1, 129));

/// Checks that all stamps are the kernel's and in the order of time.
#[track_caller]
fn check(stamps: &[Stamp]) {
    assert!(stamps.is_sorted_by_key(|stamp| stamp.realtime_ns), "{stamps:?}");
    assert!(stamps.iter().all(|stamp| stamp.point == StampSource::Kernel), "{stamps:?}");
}

fn socket(address: &str) -> StampedSocket {
    StampedSocket::bind(&Namespace::Current, address.parse().unwrap()).unwrap()
}

/// Returns a socket that keeps the stamps of arrivals on, which the kernel starts in its own time.
fn stamps_on() -> StampedSocket {
    let mut socket = socket("127.0.0.1:0");
    let address = socket.local_address().unwrap();
    eventually("a stamp of an arrival", || {
        socket.send_to(b"start", address).unwrap();
        let arrival = socket.receive(&mut [0; 64], Duration::from_secs(5)).unwrap()?;
        (arrival.stamp.point == StampSource::Kernel).then_some(())
    });
    socket
}

fn arrival(socket: &StampedPacketSocket, buffer: &mut [u8]) -> PacketArrival {
    eventually("a frame", || {
        wait([socket.as_fd()].into_iter(), Duration::from_millis(100));
        socket.try_receive(buffer).unwrap()
    })
}

#[test]
fn frames_to_a_group_and_to_one_address_are_stamped() {
    let Some(pair) = VethPair::new() else { return };
    let _on = stamps_on();
    let open = |interface| StampedPacketSocket::open(interface, ETHER_TYPE, GROUP).unwrap();
    let (mut left, right) = (open(&pair.left), open(&pair.right));
    let other = StampedPacketSocket::open(&pair.right, 0x88cc, GROUP).unwrap();
    for to in [GROUP, right.mac(), GROUP] {
        let number = left.send_to(b"question", to).unwrap();
        let mut buffer = [0; 128];
        let arrival = arrival(&right, &mut buffer);
        assert_eq!(&buffer[..8], b"question");
        assert_eq!((arrival.length, arrival.from), (8, left.mac()));
        let departure = eventually("a departure", || left.departure().unwrap());
        assert_eq!(departure.number, number);
        check(&[departure.stamp, arrival.stamp]);
        assert!(left.departure().unwrap().is_none());
    }
    let mut buffer = [0; 128];
    assert!(left.try_receive(&mut buffer).unwrap().is_none(), "its own frames");
    assert!(other.try_receive(&mut buffer).unwrap().is_none(), "another EtherType");
}

#[test]
fn datagrams_to_a_group_are_stamped() {
    let Some(pair) = VethPair::new() else { return };
    pair.add_addresses();
    let _on = stamps_on();
    let any = SocketAddr::from(([0, 0, 0, 0], 319));
    let open = |interface: &wirestorm_io::namespace::InterfaceName| {
        let socket = StampedSocket::bind(&interface.namespace, any).unwrap();
        socket.bind_to_interface(interface.name()).unwrap();
        socket.join(IP_GROUP, Link::open(interface).unwrap().index).unwrap();
        socket
    };
    let (mut left, right) = (open(&pair.left), open(&pair.right));
    let number = left.send_to(b"question", SocketAddr::new(IP_GROUP, 319)).unwrap();
    let mut buffer = [0; 64];
    let arrival = right.receive(&mut buffer, Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!(&buffer[..arrival.length], b"question");
    assert_eq!((arrival.from, arrival.ttl), ("10.9.8.1:319".parse().unwrap(), Some(1)));
    let departure = eventually("a departure", || left.departure().unwrap());
    assert_eq!(departure.number, number);
    check(&[departure.stamp, arrival.stamp]);
    assert!(left.try_receive(&mut buffer).unwrap().is_none(), "its own datagram");
}

#[test]
fn interface_that_does_not_exist_is_refused() {
    let Some(pair) = VethPair::new() else { return };
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let socket = StampedSocket::bind(&pair.left.namespace, any).unwrap();
    assert!(socket.bind_to_interface("nosuch").is_err());
    assert!(socket.join(IP_GROUP, 9_999).is_err());
}

fn departure_of(socket: &StampedSocket) -> Departure {
    // Loopback reports a departure before the datagram arrives.
    socket.departure().unwrap().expect("a departure")
}

#[test]
fn departure_and_arrival_have_stamps_of_the_kernel() {
    let _on = stamps_on();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut one, other) = (socket(address), socket(address));
        one.set_ttl(77).unwrap();
        let to = other.local_address().unwrap();
        for _ in 0..3 {
            let before = Stamp::now();
            let number = one.send_to(b"question", to).unwrap();
            let mut buffer = [0; 64];
            let arrival = other.receive(&mut buffer, Duration::from_secs(5)).unwrap().unwrap();
            assert_eq!(&buffer[..arrival.length], b"question");
            assert_eq!((arrival.from, arrival.ttl), (one.local_address().unwrap(), Some(77)));
            let departure = departure_of(&one);
            assert_eq!(departure.number, number);
            let stamps = [before, departure.stamp, arrival.stamp, Stamp::now()];
            assert!(stamps.is_sorted_by_key(|stamp| stamp.realtime_ns), "{stamps:?}");
            assert_eq!(departure.stamp.point, StampSource::Kernel);
            assert_eq!(arrival.stamp.point, StampSource::Kernel);
        }
        assert_eq!(one.departure().unwrap(), None);
    }
}

#[test]
fn closed_port_does_not_end_the_socket() {
    let mut one = socket("127.0.0.1:0");
    let closed = socket("127.0.0.1:0").local_address().unwrap();
    let other = socket("127.0.0.1:0");
    let mut buffer = [0; 64];
    for _ in 0..3 {
        one.send_to(b"question", closed).unwrap();
        assert!(one.receive(&mut buffer, Duration::from_millis(1)).unwrap().is_none());
        departure_of(&one);
    }
    let number = one.send_to(b"question", other.local_address().unwrap()).unwrap();
    assert!(other.receive(&mut buffer, Duration::from_secs(5)).unwrap().is_some());
    assert_eq!(departure_of(&one).number, number);
}

/// Sends datagrams from an unlisted port of the left end to `to`; returns whether one arrives.
fn arrives(pair: &VethPair, to: &mut StampedSocket, address: SocketAddr) -> bool {
    let sender = pair.left.namespace.enter(|| UdpSocket::bind("10.9.8.1:0")).unwrap().unwrap();
    for _ in 0..10 {
        sender.send_to(b"compare", address).unwrap();
        if to.receive(&mut [0; 64], Duration::from_millis(100)).unwrap().is_some() {
            return true;
        }
    }
    false
}

#[test]
fn receivers_of_test_traffic_leave_datagrams_of_sessions_to_the_kernel() {
    let Some(pair) = VethPair::new() else { return };
    pair.add_addresses();
    // A receiver may take ARP too, so the left end has to know the right one.
    assert!(ping(&pair.left.namespace, &["10.9.8.2"]));
    let bind =
        || StampedSocket::bind(&pair.right.namespace, "10.9.8.2:0".parse().unwrap()).unwrap();
    let receive = AfXdpOptions::new(pair.right.clone(), Direction::Receive);
    let measure = AfXdpOptions { passes_neighbours: true, ..receive.clone() };
    for options in [Some(receive), Some(measure), None] {
        let mut socket = bind();
        let address = socket.local_address().unwrap();
        let port = options.as_ref().map(|options| AfXdp::open(options).unwrap());
        let count = || XdpCounter::open(pair.right.name(), true).unwrap();
        let counter = options.is_none().then(|| pair.right.namespace.enter(count).unwrap());
        assert!(arrives(&pair, &mut socket, address), "{options:?}");
        // One that is opened later is not known.
        let mut later = bind();
        let address = later.local_address().unwrap();
        assert!(!arrives(&pair, &mut later, address), "{options:?}");
        drop((port, counter));
    }
}
