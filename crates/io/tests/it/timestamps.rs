//! Sockets with time stamps on the two ends of a veth pair, which have the same clock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use wirestorm_base::time::Duration;
use wirestorm_io::link::Link;
use wirestorm_io::timestamps::{
    PacketArrival, Stamp, StampSource, StampedPacketSocket, StampedSocket, wait,
};

use crate::support::{VethPair, eventually};

const ETHER_TYPE: u16 = 0x88f7;
const GROUP: [u8; 6] = [0x01, 0x1b, 0x19, 0, 0, 0];
const IP_GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(224, 0, 1, 129));

/// Checks that all stamps are the kernel's and in the order of time.
#[track_caller]
fn check(stamps: &[Stamp]) {
    assert!(stamps.is_sorted_by_key(|stamp| stamp.realtime_ns), "{stamps:?}");
    assert!(stamps.iter().all(|stamp| stamp.point == StampSource::Kernel), "{stamps:?}");
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
