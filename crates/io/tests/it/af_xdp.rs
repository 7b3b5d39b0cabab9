//! The AF_XDP port on the two ends of a veth pair.

use wirestorm_base::contract::PortPair;
use wirestorm_base::port::{Receive, Received, Transmit};
use wirestorm_base::port_contract;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive, AfPacketTransmit};
use wirestorm_io::af_xdp::{
    AfXdp, AfXdpError, AfXdpFeatures, AfXdpOptions, AfXdpReceive, AfXdpTransmit, AttachMode,
    BusyPoll, CopyMode, Direction,
};
use wirestorm_io::clock;
use wirestorm_io::link::{Link, UnsuitableLinkError};
use wirestorm_io::namespace::InterfaceName;

use crate::support::{VethPair, eventually, ping, run};

fn transmit_options(interface: &InterfaceName) -> AfXdpOptions {
    let defaults = AfXdpOptions::new(interface.clone(), Direction::Transmit);
    AfXdpOptions { transmit_frames: 128, ..defaults }
}

fn receive_options(interface: &InterfaceName) -> AfXdpOptions {
    let defaults = AfXdpOptions::new(interface.clone(), Direction::Receive);
    AfXdpOptions { receive_frames: 512, ..defaults }
}

fn transmit_port(interface: &InterfaceName) -> AfXdpTransmit {
    AfXdp::open(&transmit_options(interface)).unwrap().transmit.remove(0)
}

fn receive_port(interface: &InterfaceName) -> AfXdpReceive {
    AfXdp::open(&receive_options(interface)).unwrap().receive.remove(0)
}

fn connect_with(mtu: u32) -> Option<PortPair<AfXdpTransmit, AfXdpReceive>> {
    let pair = VethPair::with(&[], mtu)?;
    let receive = receive_port(&pair.right);
    let transmit = transmit_port(&pair.left);
    Some(PortPair { transmit, receive, now: clock::now, window: 64, wire: Box::new(pair) })
}

fn connect() -> Option<PortPair<AfXdpTransmit, AfXdpReceive>> {
    connect_with(1500)
}

port_contract!(contract, connect);

fn connect_with_large_frames() -> Option<PortPair<AfXdpTransmit, AfXdpReceive>> {
    connect_with(3000)
}

port_contract!(contract_with_large_frames, connect_with_large_frames);

/// From a packet socket to AF_XDP: the receiving half with an independent sender.
fn connect_from_af_packet() -> Option<PortPair<AfPacketTransmit, AfXdpReceive>> {
    let pair = VethPair::new()?;
    let receive = receive_port(&pair.right);
    let options = AfPacketOptions { frames: 128, ..AfPacketOptions::new(pair.left.clone()) };
    let transmit = AfPacketTransmit::open(&options).unwrap();
    Some(PortPair { transmit, receive, now: clock::now, window: 64, wire: Box::new(pair) })
}

port_contract!(contract_from_af_packet, connect_from_af_packet);

/// From AF_XDP to a packet socket: the transmitting half with an independent receiver.
fn connect_to_af_packet() -> Option<PortPair<AfXdpTransmit, AfPacketReceive>> {
    let pair = VethPair::new()?;
    let receive = AfPacketReceive::open(&AfPacketOptions::new(pair.right.clone())).unwrap();
    let transmit = transmit_port(&pair.left);
    Some(PortPair { transmit, receive, now: clock::now, window: 256, wire: Box::new(pair) })
}

port_contract!(contract_to_af_packet, connect_to_af_packet);

/// A 60-byte IPv4 frame for another MAC address.
fn frame_of(number: u8) -> [u8; 60] {
    let mut frame = [number; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame
}

fn send(transmit: &mut impl Transmit, bytes: &[u8]) {
    let frame = transmit.take().unwrap();
    transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
    transmit.send(frame, bytes.len(), Instant::ZERO);
}

fn receive(port: &mut AfXdpReceive, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut batch: Vec<Received> = Vec::new();
    eventually("frames", || {
        port.receive(64, &mut batch).unwrap();
        for received in batch.drain(..) {
            frames.push(port.frame(&received).to_vec());
            port.release(received);
        }
        (frames.len() >= count).then_some(())
    });
    frames
}

fn error_of(options: &AfXdpOptions) -> AfXdpError {
    match AfXdp::open(options) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[test]
fn veth_uses_copy_mode_and_native_xdp() {
    let Some(pair) = VethPair::new() else { return };
    let both = AfXdpOptions::new(pair.left.clone(), Direction::Both);
    let ports = AfXdp::open(&both).unwrap();
    assert_eq!((ports.transmit.len(), ports.receive.len()), (1, 1));
    let expected = AfXdpFeatures {
        zero_copy: false,
        need_wakeup: true,
        busy_poll: false,
        attached: Some(AttachMode::Native),
        queues: 1,
        interface_queues: 1,
    };
    assert_eq!(ports.facts, expected);
}

#[test]
fn both_halves_of_one_queue_work_at_the_same_time() {
    let Some(pair) = VethPair::new() else { return };
    let open = |interface: &InterfaceName| {
        let options = AfXdpOptions::new(interface.clone(), Direction::Both);
        let mut ports = AfXdp::open(&options).unwrap();
        (ports.transmit.remove(0), ports.receive.remove(0))
    };
    let (mut left_transmit, mut left_receive) = open(&pair.left);
    let (mut right_transmit, mut right_receive) = open(&pair.right);
    for number in 0..100 {
        send(&mut left_transmit, &frame_of(number));
        send(&mut right_transmit, &frame_of(100 + number));
        left_transmit.flush().unwrap();
        right_transmit.flush().unwrap();
        assert_eq!(receive(&mut right_receive, 1), [frame_of(number)]);
        assert_eq!(receive(&mut left_receive, 1), [frame_of(100 + number)]);
    }
}

#[test]
fn program_is_detached_with_the_last_receiving_half() {
    let Some(pair) = VethPair::new() else { return };
    let attached = || Link::open(&pair.right).unwrap().xdp_program;
    assert_eq!(attached(), None);
    let port = receive_port(&pair.right);
    assert!(attached().is_some());
    drop(port);
    eventually("the program to go", || attached().is_none().then_some(()));
}

#[test]
fn queue_can_be_reopened_right_after_close() {
    let Some(pair) = VethPair::new() else { return };
    for _ in 0..5 {
        drop(transmit_port(&pair.left));
        drop(receive_port(&pair.right));
    }
}

#[test]
fn transmit_only_attaches_no_program() {
    let Some(pair) = VethPair::new() else { return };
    let _port = transmit_port(&pair.left);
    assert_eq!(Link::open(&pair.left).unwrap().xdp_program, None);
}

#[test]
fn interface_without_native_xdp_uses_generic_mode() {
    let Some(pair) = VethPair::new() else { return };
    // The driver of an intermediate functional block (ifb) has no XDP support.
    run(&pair.right.namespace, "ip", &["link", "add", "plain", "type", "ifb"]);
    run(&pair.right.namespace, "ip", &["link", "set", "plain", "up"]);
    let plain = InterfaceName::new(pair.right.namespace.clone(), "plain").unwrap();
    let ports = AfXdp::open(&receive_options(&plain)).unwrap();
    assert_eq!(ports.facts.attached, Some(AttachMode::Generic));
}

#[test]
fn frames_of_a_queue_without_a_port_go_to_the_network_stack() {
    let Some(pair) = VethPair::with(&["numrxqueues", "2", "numtxqueues", "2"], 1500) else {
        return;
    };
    let second = AfXdpOptions { first_queue: 1, ..receive_options(&pair.right) };
    let mut port = AfXdp::open(&second).unwrap().receive.remove(0);
    let mut stack = AfPacketReceive::open(&AfPacketOptions::new(pair.right.clone())).unwrap();
    let every_queue = AfXdpOptions { queues: None, ..transmit_options(&pair.left) };
    let mut senders = AfXdp::open(&every_queue).unwrap().transmit;
    assert_eq!(senders.len(), 2);
    // A veth delivers the frames of transmit queue N to receive queue N.
    for (sender, number) in senders.iter_mut().zip([10, 11]) {
        send(sender, &frame_of(number));
        sender.flush().unwrap();
    }
    assert_eq!(receive(&mut port, 1), [frame_of(11)]);
    let mut batch = Vec::new();
    eventually("the other frame", || {
        stack.receive(8, &mut batch).unwrap();
        (!batch.is_empty()).then_some(())
    });
    assert_eq!(stack.frame(&batch[0]), frame_of(10));
}

#[test]
fn passes_neighbours_passes_only_unsigned_pings_to_the_kernel() {
    let Some(pair) = VethPair::new() else { return };
    pair.add_addresses();
    let options = AfXdpOptions { passes_neighbours: true, ..receive_options(&pair.right) };
    let mut port = AfXdp::open(&options).unwrap().receive.remove(0);
    assert!(ping(&pair.left.namespace, &["10.9.8.2"]), "requests arrive at the port");
    assert!(ping(&pair.right.namespace, &["10.9.8.1"]), "replies arrive at the port");
    let signed = ["-p", "5753", "10.9.8.2"];
    assert!(!ping(&pair.left.namespace, &signed), "test traffic is the port's");
    assert_eq!(receive(&mut port, 1).len(), 1);
}

#[test]
fn passes_neighbours_passes_unsigned_pings_in_two_vlans() {
    for is_beside in [true, false] {
        let Some(pair) = VethPair::new() else { return };
        pair.set_stag_offload(is_beside);
        pair.add_addresses();
        pair.join_two_vlans();
        let options = AfXdpOptions { passes_neighbours: true, ..receive_options(&pair.right) };
        let mut port = AfXdp::open(&options).unwrap().receive.remove(0);
        let at = format!("the first tag beside the frame: {is_beside}");
        assert!(ping(&pair.left.namespace, &["10.9.8.2"]), "requests arrive at the port, {at}");
        assert!(ping(&pair.right.namespace, &["10.9.8.1"]), "replies arrive at the port, {at}");
        let signed = ["-p", "5753", "10.9.8.2"];
        assert!(!ping(&pair.left.namespace, &signed), "test traffic is the port's, {at}");
        assert_eq!(receive(&mut port, 1).len(), 1);
    }
}

#[test]
fn frames_beyond_a_full_ring_count_as_missed() {
    let Some(pair) = VethPair::new() else { return };
    let small = AfXdpOptions { receive_frames: 64, ..receive_options(&pair.right) };
    let mut port = AfXdp::open(&small).unwrap().receive.remove(0);
    let mut transmit = transmit_port(&pair.left);
    for number in 0..100 {
        send(&mut transmit, &frame_of(number));
    }
    eventually("all to leave", || {
        transmit.flush().unwrap();
        (transmit.in_flight() == 0).then_some(())
    });
    let counters = eventually("the counters", || {
        Some(port.received()).filter(|counters| counters.rx_dropped == 36)
    });
    assert_eq!(counters.received, 36, "so far only those missed are known");
    let arrived = receive(&mut port, 64);
    assert_eq!(arrived[63], frame_of(63));
    assert_eq!(port.received().received, 100);
    send(&mut transmit, &frame_of(200));
    assert_eq!(port.receive(8, &mut Vec::new()), Ok(0));
    transmit.flush().unwrap();
    assert_eq!(receive(&mut port, 1), [frame_of(200)]);
}

/// Keeps CPU 0 busy and polls the interface there with idle priority.
struct BusyCpu(std::process::Child);

impl BusyCpu {
    fn new(interface: &InterfaceName) -> Self {
        let threaded = format!(
            "mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{}/threaded",
            interface.name()
        );
        run(&interface.namespace, "unshare", &["-m", "sh", "-c", &threaded]);
        let thread = format!("napi/{}-", interface.name());
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let is_it = |name: &str| {
            let named = std::fs::read_to_string(format!("/proc/{name}/comm"));
            named.is_ok_and(|named| named.starts_with(&thread))
        };
        let mut names = processes.map(|it| it.file_name().to_string_lossy().into_owned());
        let id = names.find(|name| is_it(name)).expect("a thread that polls");
        run(&interface.namespace, "chrt", &["--idle", "--pid", "0", &id]);
        run(&interface.namespace, "taskset", &["--pid", "1", &id]);
        let mut busy = std::process::Command::new("taskset");
        Self(busy.args(["1", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for BusyCpu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn frames_beyond_a_full_veth_ring_are_missed_with_counts_lost() {
    const SENT: u64 = 4_000;
    for counts_lost in [true, false] {
        let Some(pair) = VethPair::new() else { return };
        pair.add_addresses();
        let options = AfXdpOptions {
            counts_veth_drops: counts_lost,
            passes_neighbours: true,
            receive_frames: 8_192,
            ..receive_options(&pair.right)
        };
        let mut port = AfXdp::open(&options).unwrap().receive.remove(0);
        assert!(ping(&pair.left.namespace, &["10.9.8.2"]));
        let crowded = BusyCpu::new(&pair.right);
        let flood = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             for n in range(4000):\n try: s.sendto(b'x', ('10.9.8.2', 9))\n except OSError: pass\n";
        run(&pair.left.namespace, "python3", &["-c", flood]);
        drop(crowded);
        let mut arrived = 0;
        let mut batch = Vec::new();
        eventually("all to arrive or be missed", || {
            port.receive(64, &mut batch).unwrap();
            arrived += batch.len() as u64;
            batch.drain(..).for_each(|received| port.release(received));
            let is_all = port.received().received == SENT;
            (is_all || !counts_lost && arrived > 200).then_some(())
        });
        let missed = port.received().rx_dropped;
        assert!(arrived > 0 && arrived < SENT, "the ring was full: {arrived}");
        assert_eq!(missed > 0, counts_lost, "{arrived} arrived, {missed} missed");
    }
}

#[test]
fn every_frame_is_received_or_missed_while_another_cpu_sends() {
    const TOTAL: u64 = 400_000;
    let Some(pair) = VethPair::new() else { return };
    let small = AfXdpOptions { receive_frames: 64, ..receive_options(&pair.right) };
    let mut port = AfXdp::open(&small).unwrap().receive.remove(0);
    let options = AfPacketOptions::new(pair.left.clone());
    let mut transmit = AfPacketTransmit::open(&options).unwrap();
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        eventually("all to leave", || {
            while sent < TOTAL
                && let Some(frame) = transmit.take()
            {
                transmit.frame_mut(&frame)[..60].copy_from_slice(&frame_of(sent as u8));
                transmit.send(frame, 60, Instant::ZERO);
                sent += 1;
            }
            transmit.flush().unwrap();
            (sent == TOTAL && transmit.in_flight() == 0).then_some(())
        });
    });
    let mut batch = Vec::new();
    eventually("all to be counted", || {
        // Poll many times for each read of the counters, which makes a system call.
        for _ in 0..1000 {
            port.receive(16, &mut batch).unwrap();
            batch.drain(..).for_each(|received| port.release(received));
        }
        (port.received().received == TOTAL).then_some(())
    });
    sender.join().unwrap();
}

#[test]
fn frames_too_long_or_too_short_count_as_failed() {
    let Some(pair) = VethPair::new() else { return };
    let mut port = receive_port(&pair.right);
    let mut transmit = transmit_port(&pair.left);
    send(&mut transmit, &[8; 1515]);
    send(&mut transmit, &[8; 13]);
    send(&mut transmit, &frame_of(7));
    transmit.flush().unwrap();
    assert_eq!(receive(&mut port, 1), [frame_of(7)]);
    eventually("the end", || {
        transmit.flush().unwrap();
        (transmit.in_flight() == 0).then_some(())
    });
    let counters = transmit.transmitted();
    assert_eq!((counters.sent, counters.failed, counters.sent_bytes), (1, 2, 60));
}

#[test]
fn frames_to_a_peer_that_is_down_count_as_failed() {
    let Some(pair) = VethPair::new() else { return };
    let mut transmit = transmit_port(&pair.left);
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    for number in 0..40 {
        send(&mut transmit, &frame_of(number));
    }
    eventually("all to be counted", || {
        transmit.flush().unwrap();
        (transmit.in_flight() == 0).then_some(())
    });
    let counters = transmit.transmitted();
    assert_eq!((counters.sent, counters.failed), (0, 40));
}

#[test]
fn wait_ends_on_a_frame_at_any_queue_or_a_timeout() {
    let Some(pair) = VethPair::with(&["numtxqueues", "2", "numrxqueues", "2"], 1500) else {
        return;
    };
    let options = AfXdpOptions { queues: None, ..receive_options(&pair.right) };
    let mut ports = AfXdp::open(&options).unwrap().receive;
    let mut both: Vec<&mut AfXdpReceive> = ports.iter_mut().collect();
    let before = clock::now();
    AfXdpReceive::wait(&mut both, Duration::from_millis(20));
    assert!(clock::now().saturating_since(before) >= Duration::from_millis(20));
    let second = AfXdpOptions { first_queue: 1, ..transmit_options(&pair.left) };
    let mut transmit = AfXdp::open(&second).unwrap().transmit.remove(0);
    send(&mut transmit, &frame_of(1));
    transmit.flush().unwrap();
    // Without the frame this would exceed the time limit of a test.
    AfXdpReceive::wait(&mut both, Duration::from_secs(3_600));
    let [_, second] = &mut both[..] else { panic!("two queues") };
    assert_eq!(receive(second, 1).len(), 1);
}

#[test]
fn removed_interface_is_reported_right_after_a_wait() {
    let Some(pair) = VethPair::new() else { return };
    let mut port = receive_port(&pair.right);
    run(&pair.left.namespace, "ip", &["link", "delete", "left"]);
    AfXdpReceive::wait(&mut [&mut port], Duration::from_millis(1));
    assert_eq!(port.receive(8, &mut Vec::new()), Err(pair.right.removed_error()));
}

#[test]
fn interface_down_or_removed_stops_both_halves() {
    let Some(pair) = VethPair::new() else { return };
    let mut port = receive_port(&pair.right);
    let mut transmit = transmit_port(&pair.left);
    let mut batch = Vec::new();
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    send(&mut transmit, &frame_of(1));
    let error = eventually("the sending half", || transmit.flush().err());
    assert_eq!(error, pair.left.down_error());
    let error = eventually("the receiving half", || port.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.down_error());
    run(&pair.left.namespace, "ip", &["link", "delete", "left"]);
    let error = eventually("the sending half", || transmit.flush().err());
    assert_eq!(error, pair.left.removed_error());
    let error = eventually("the receiving half", || port.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.removed_error());
    transmit.abort();
    assert_eq!((transmit.in_flight(), transmit.transmitted().unsent), (0, 1));
}

#[test]
fn busy_polling_with_forced_copy_mode_works() {
    let Some(pair) = VethPair::new() else { return };
    let with = |options| AfXdpOptions {
        busy_poll: Some(BusyPoll::default()),
        copy: CopyMode::Copy,
        ..options
    };
    let mut receiver = AfXdp::open(&with(receive_options(&pair.right))).unwrap();
    let mut sender = AfXdp::open(&with(transmit_options(&pair.left))).unwrap();
    assert!(receiver.facts.busy_poll && sender.facts.busy_poll);
    for number in 0..50 {
        send(&mut sender.transmit[0], &frame_of(number));
    }
    sender.transmit[0].flush().unwrap();
    assert_eq!(receive(&mut receiver.receive[0], 50)[49], frame_of(49));
}

#[test]
fn open_errors_name_the_reason() {
    let Some(pair) = VethPair::new() else { return };
    let zero_copy = AfXdpOptions { copy: CopyMode::ZeroCopy, ..transmit_options(&pair.left) };
    let error = error_of(&zero_copy);
    assert!(matches!(error, AfXdpError::NoZeroCopy { .. }), "{error}");

    let second = AfXdpOptions { first_queue: 1, ..transmit_options(&pair.left) };
    let error = error_of(&second);
    assert!(matches!(error, AfXdpError::NoSuchQueue { requested: 1, found: 1, .. }), "{error}");

    let _port = receive_port(&pair.right);
    let error = error_of(&receive_options(&pair.right));
    assert!(matches!(error, AfXdpError::ProgramInUse { program: Some(_), .. }), "{error}");
    assert!(error.to_string().contains("ip link set right xdp off"), "{error}");

    let _port = transmit_port(&pair.left);
    let error = error_of(&transmit_options(&pair.left));
    assert!(matches!(error, AfXdpError::QueueInUse { queue: 0, .. }), "{error}");

    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    assert!(matches!(
        error_of(&transmit_options(&pair.left)),
        AfXdpError::Link(UnsuitableLinkError::Down(_))
    ));
}
