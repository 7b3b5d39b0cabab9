//! Connections between a Wirestorm endpoint and Linux TCP, through a router that may lose packets
//! or translate addresses.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive, AfPacketTransmit};
use wirestorm_io::clock;
use wirestorm_io::namespace::{InterfaceName, Namespace};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::ip::IpSettings;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::tcp::Algorithm;
use wirestorm_model::tcp::{EcnMode, Settings};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{
    Endpoint, EndpointOptions, LinkHeader, Listen, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};
use wirestorm_testkit::net::{LabOptions, RouterLab};
use wirestorm_testkit::require::require_root;
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

const PORT: u16 = 80;
const TICK: wirestorm_base::time::Duration = wirestorm_base::time::Duration::from_millis(1);

/// A router between Wirestorm's interface `a`, which has no kernel address, and Linux's `b`.
struct Wire {
    lab: RouterLab,
}

impl Wire {
    fn new() -> Option<Self> {
        Self::with(&LabOptions::default())
    }

    fn with(options: &LabOptions) -> Option<Self> {
        if !require_root() {
            return None;
        }
        let lab = RouterLab::with(options).unwrap();
        let flush = format!("address flush dev {}", lab.a.interface());
        lab.a.namespace().ip(&[&flush]).unwrap();
        // Remove the permanent entry, so that the router must resolve our address. This does not
        // work over IPv6 yet: the router checks its own address for duplicates for 1 s.
        let (ours, interface) = (lab.a.ipv4(), lab.router_a.interface());
        let forget = format!("neighbour flush to {ours} dev {interface} nud permanent");
        lab.router_a.namespace().ip(&[&forget]).unwrap();
        Some(Self { lab })
    }

    fn ours(&self) -> Ipv4Addr {
        self.lab.a.ipv4()
    }

    fn linux(&self) -> Ipv4Addr {
        self.lab.b.ipv4()
    }

    /// Runs `work` in Linux's namespace. Sockets opened there stay in it.
    fn in_linux<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        namespace(&self.lab.b).enter(work).unwrap()
    }

    fn nft(&self, rules: &str) {
        let status = self.lab.router_a.command("nft").arg(rules).status().unwrap();
        assert!(status.success(), "nft {rules}");
    }

    /// Makes the router drop 5 % of the packets in both directions.
    fn lose(&self) {
        self.nft(
            "table inet loss { chain forward { type filter hook forward priority 0; \
             numgen random mod 100 < 5 drop; }; }",
        );
    }

    fn start(&self, template: Template, buffers: Buffers, connections: u64) -> Running {
        let mac = self.lab.a.mac();
        let options = EndpointOptions {
            templates: vec![template],
            groups: Vec::new(),
            buffers,
            frame_length_max: 1_514,
            flows_max: 1_000,
            host: Host {
                mac: MacAddress(mac),
                addresses: vec![
                    Prefix { address: self.ours().into(), length: 24 },
                    Prefix { address: self.lab.a.ipv6().into(), length: 64 },
                ],
                ..Host::default()
            },
            seed: 7,
            blackhole: Blackhole::None,
            verifies_checksums: true,
        };
        let name = InterfaceName::new(namespace(&self.lab.a), self.lab.a.interface()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let probes = Arc::new(Probes::default());
        let probed = Arc::clone(&probes);
        let (over, done) = sync_channel(1);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let port = AfPacketOptions::new(name);
            let mut transmit = AfPacketTransmit::open(&port).unwrap();
            let mut receive = AfPacketReceive::open(&port).unwrap();
            let mut endpoint = Endpoint::new(options, clock::now());
            ready.send(()).unwrap();
            for _ in 0..connections {
                assert!(endpoint.connect(0, clock::now(), &mut transmit));
            }
            while !stops.load(Ordering::Relaxed) {
                let received = endpoint.breathe(clock::now(), &mut transmit, &mut receive).unwrap();
                probed.note(endpoint.tcp().sndprobe);
                if endpoint.is_done() {
                    // A full channel already holds the signal.
                    let _ = over.try_send(());
                }
                if received == 0 {
                    // Wait for the next frame or timer tick.
                    receive.wait(TICK);
                }
            }
            endpoint
        });
        is_ready.recv().unwrap();
        Running { thread, stop, done, probes }
    }
}

struct Running {
    thread: JoinHandle<Endpoint>,
    stop: Arc<AtomicBool>,
    /// Signals that all connections are over.
    done: Receiver<()>,
    /// Counter of zero-window probes.
    probes: Arc<Probes>,
}

/// Counter of zero-window probes that threads can wait for.
#[derive(Default)]
struct Probes {
    count: Mutex<u64>,
    more: Condvar,
}

impl Probes {
    fn note(&self, count: u64) {
        let mut known = self.count.lock().unwrap();
        if *known != count {
            *known = count;
            self.more.notify_all();
        }
    }

    fn wait_for(&self, least: u64) {
        let patience = Duration::from_secs(60);
        let known = self.count.lock().unwrap();
        let known = self.more.wait_timeout_while(known, patience, |count| *count < least);
        assert!(!known.unwrap().1.timed_out(), "the window is not probed");
    }
}

impl Running {
    fn stop(self) -> Endpoint {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn namespace(end: &wirestorm_testkit::net::End) -> Namespace {
    Namespace::Named(end.namespace().name().into())
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|offset| (offset % 251) as u8).collect()
}

fn template(program: Program, tcp: Settings, role: Role) -> Template {
    Template {
        program,
        transport: Transport::Tcp(tcp),
        ip: IpSettings::default(),
        sessions: None,
        expects_resets: false,
        role,
    }
}

/// Server that waits for a request of 4 bytes and responds with `bytes` bytes.
fn server(bytes: usize, tcp: Settings) -> (Template, Buffers) {
    let mut buffers = Buffers::default();
    let reply = buffers.push(Buffer::new(&content(bytes), 0, &[]));
    let program = Program::new(vec![
        Instruction::Receive { bytes: 4, clear: false },
        Instruction::Send { buffer: reply },
    ]);
    let role = Role::Server { listen: Listen::at(PORT) };
    (template(program.unwrap(), tcp, role), buffers)
}

/// TCP options negotiated by both sides.
#[derive(Debug, Default, PartialEq, Eq)]
struct NegotiatedOptions {
    timestamps: bool,
    sack: bool,
    window_scaling: bool,
    ecn: bool,
}

/// Reads the negotiated options of a Linux connection from `ss`.
fn agreed(wire: &Wire, stream: &TcpStream) -> NegotiatedOptions {
    let [local, peer] = [stream.local_addr(), stream.peer_addr()].map(|it| it.unwrap().to_string());
    let mut command = wire.lab.b.command("ss");
    let output = command.args(["-Htinoa", "-O", "src", &local, "dst", &peer]);
    let text = String::from_utf8(output.output().unwrap().stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{local} to {peer}: {text}");
    let mut agreed = NegotiatedOptions::default();
    for word in text.split_whitespace() {
        match word {
            "ts" => agreed.timestamps = true,
            "sack" => agreed.sack = true,
            "ecn" => agreed.ecn = true,
            word if word.starts_with("wscale:") => agreed.window_scaling = true,
            _ => {}
        }
    }
    agreed
}

/// Returns the options that these settings negotiate with Linux.
fn expected_options(settings: &Settings, has_ecn: bool) -> NegotiatedOptions {
    NegotiatedOptions {
        timestamps: settings.timestamps,
        sack: settings.sack,
        window_scaling: settings.window_scaling,
        ecn: has_ecn,
    }
}

/// Fetches a page from Wirestorm. Returns the page and the negotiated options.
fn fetch(wire: &Wire, ours: IpAddr) -> (Vec<u8>, NegotiatedOptions) {
    let mut stream = wire.in_linux(|| TcpStream::connect((ours, PORT)).unwrap());
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"page").unwrap();
    let mut page = Vec::new();
    stream.read_to_end(&mut page).unwrap();
    (page, agreed(wire, &stream))
}

/// Returns settings with different negotiated options, from all to none.
fn settings_variants() -> Vec<Settings> {
    let plain = Settings::default();
    vec![
        plain,
        Settings { timestamps: false, ..plain },
        Settings { sack: false, ..plain },
        Settings { window_scaling: false, timestamps: false, sack: false, ..plain },
        Settings { ecn: EcnMode::Offer, ..plain },
        Settings { maximum_segment_size: 88, ..plain },
        Settings { ecn: EcnMode::Accept, window_shift: Some(9), ..plain },
        Settings { send_buffer: 6_000, ack_after_bytes: 5_000, ..plain },
        Settings { receive_buffer: 4 << 20, ..plain },
        Settings { delayed_ack_ms: 0, no_delay: true, push_all: true, ..plain },
        Settings { congestion: Algorithm::Bbr, ..plain },
    ]
}

#[test]
fn linux_fetches_pages_from_us() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    wire.in_linux(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap();
    for settings in settings_variants() {
        let (template, buffers) = server(300_000, settings);
        let running = wire.start(template, buffers, 0);
        for (ours, _) in ends(&wire) {
            let (page, agreed) = fetch(&wire, ours);
            assert!(page == content(300_000), "{ours}: {settings:?}");
            let has_ecn = settings.ecn != EcnMode::Never;
            assert_eq!(agreed, expected_options(&settings, has_ecn), "{ours}: {settings:?}");
        }
        let endpoint = running.stop();
        let tcp = endpoint.tcp();
        assert_eq!((tcp.accepts, tcp.connects, tcp.rexmttimeo), (2, 2, 0), "{settings:?}");
        assert_eq!((tcp.rcvbyte, tcp.rcvackbyte), (8, 600_000), "{settings:?}");
        assert_eq!(endpoint.unmatched().malformed, 0);
    }
}

#[test]
fn linux_fetches_pages_from_us_despite_packet_loss() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    wire.lose();
    let controls = [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr];
    let dialects = [true, false].into_iter().flat_map(|it| controls.map(|by| (it, by)));
    for ((sack, congestion), (ours, _)) in dialects.zip(ends(&wire).into_iter().cycle()) {
        let settings = Settings { sack, congestion, ..Settings::default() };
        let (template, buffers) = server(1_000_000, settings);
        let running = wire.start(template, buffers, 0);
        let (page, agreed) = fetch(&wire, ours);
        assert!(page == content(1_000_000), "{ours}: SACK: {sack}, {congestion:?}");
        assert_eq!(agreed.sack, sack);
        let endpoint = running.stop();
        assert!(endpoint.tcp().sndrexmitpack > 10, "{:?}", endpoint.tcp());
        assert_eq!(endpoint.tcp().rcvackbyte, 1_000_000);
    }
}

fn listen(wire: &Wire, linux: IpAddr) -> TcpListener {
    wire.in_linux(|| TcpListener::bind(SocketAddr::from((linux, PORT))).unwrap())
}

/// Serves connections in Linux, one after the other: reads 4 bytes, writes `bytes` bytes and waits
/// for the end. Calls `look` for each connection after its request.
fn serve(
    listener: &TcpListener,
    bytes: usize,
    connections: usize,
    look: impl Fn(&TcpStream),
) -> Vec<Vec<u8>> {
    let one = |_| {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut request = vec![0; 4];
        stream.read_exact(&mut request).unwrap();
        look(&stream);
        stream.write_all(&content(bytes)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut request).unwrap();
        request
    };
    (0..connections).map(one).collect()
}

fn client(
    wire: &Wire,
    ends: (IpAddr, IpAddr),
    bytes: usize,
    tcp: Settings,
    client_ports: RangeInclusive<u16>,
) -> (Template, Buffers) {
    let mut buffers = Buffers::default();
    let request = buffers.push(Buffer::new(b"page", 0, &[]));
    let thanks = buffers.push(Buffer::new(b"thanks", 0, &[]));
    let program = Program::new(vec![
        Instruction::Connect,
        Instruction::Send { buffer: request },
        Instruction::Receive { bytes: bytes as u64, clear: false },
        Instruction::WaitForPeerClose,
        Instruction::Send { buffer: thanks },
    ]);
    (template(program.unwrap(), tcp, between(wire, ends, client_ports)), buffers)
}

/// Client role with our address and a Linux server.
fn between(
    wire: &Wire,
    (ours, linux): (IpAddr, IpAddr),
    client_ports: RangeInclusive<u16>,
) -> Role {
    let mut link = Vec::new();
    link.extend(wire.lab.router_a.mac());
    link.extend(wire.lab.a.mac());
    link.extend(if ours.is_ipv4() { [8, 0] } else { [0x86, 0xdd] });
    let range = |first| AddressRange { first, count: 1 };
    Role::Client {
        tuples: Tuples {
            clients: range(ours),
            order: ClientOrder::RoundRobin,
            servers: range(linux),
            pairing: Pairing::RoundRobin,
            server_port: PORT,
            client_ports,
            consecutive_flows: 1,
            reuse_after: None,
        },
        link: LinkHeader::new(&link).unwrap().into(),
        load: Load::OnDemand,
        ramp: wirestorm_base::time::Duration::ZERO,
        limit: None,
    }
}

#[test]
fn we_fetch_pages_from_linux() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    let dialects = settings_variants().into_iter().map(|it| (false, it)).chain([
        (true, Settings::default()),
        (true, Settings { sack: false, ..Settings::default() }),
    ]);
    // Use new ports, because Linux keeps closed connections in TIME-WAIT.
    for (first, (lossy, settings)) in (1_024..).step_by(2).zip(dialects) {
        for ends in ends(&wire) {
            fetch_from_linux(&wire, ends, first, &settings, lossy);
        }
    }
}

/// Makes two connections, from ports `first` and `first + 1`.
fn fetch_from_linux(
    wire: &Wire,
    ends: (IpAddr, IpAddr),
    first: u16,
    settings: &Settings,
    lossy: bool,
) {
    wire.nft("flush ruleset");
    if lossy {
        wire.lose();
    }
    let (template, buffers) = client(wire, ends, 300_000, *settings, first..=first + 1);
    let listener = listen(wire, ends.1);
    let running = wire.start(template, buffers, 2);
    let served = serve(&listener, 300_000, 2, |stream| {
        let has_ecn = settings.ecn == EcnMode::Offer;
        assert_eq!(
            agreed(wire, stream),
            expected_options(settings, has_ecn),
            "{ends:?}: {settings:?}"
        );
    });
    // Data sent after the peer's FIN also arrived: the connection was half-closed.
    assert_eq!(served, [b"pagethanks", b"pagethanks"], "{ends:?}: {settings:?}");
    let endpoint = running.stop();
    let tcp = endpoint.tcp();
    assert_eq!((tcp.connects, tcp.rcvbyte), (2, 600_000), "{ends:?}: {settings:?}");
    assert_eq!(endpoint.counters().failed(), 0);
    if lossy {
        assert!(tcp.rcvoopack > 5, "{tcp:?}");
    } else {
        assert_eq!((tcp.rexmttimeo, tcp.sndrexmitpack), (0, 0), "{ends:?}: {settings:?}");
    }
}

#[test]
fn we_fetch_pages_from_linux_through_a_nat() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    let interface = wire.lab.router_b.interface();
    wire.nft(&format!(
        "table inet nat {{ chain out {{ type nat hook postrouting priority 100; \
         oifname {interface} masquerade; }}; }}"
    ));
    for ends in ends(&wire) {
        let (template, buffers) = client(&wire, ends, 300_000, Settings::default(), 2_000..=2_049);
        let listener = listen(&wire, ends.1);
        let running = wire.start(template, buffers, 50);
        let served = serve(&listener, 300_000, 50, |_| {});
        assert!(served.iter().all(|request| request == b"pagethanks"), "{ends:?}");
        let endpoint = running.stop();
        assert_eq!((endpoint.tcp().connects, endpoint.tcp().rcvbyte), (50, 50 * 300_000));
        assert_eq!((endpoint.counters().failed(), endpoint.unmatched().no_flow), (0, 0));
    }
}

/// Datagram length that needs several fragments.
const LONG: usize = 20_000;

/// Returns our address and Linux's address for each IP version.
fn ends(wire: &Wire) -> [(IpAddr, IpAddr); 2] {
    let (a, b) = (&wire.lab.a, &wire.lab.b);
    [(a.ipv4().into(), b.ipv4().into()), (a.ipv6().into(), b.ipv6().into())]
}

fn with_ipv6() -> LabOptions {
    LabOptions { ipv6: true, ..LabOptions::default() }
}

/// Server that answers each datagram with a long one.
fn datagram_server() -> (Template, Buffers) {
    let mut buffers = Buffers::default();
    let reply = buffers.push(Buffer::new(&content(LONG), 0, &[]));
    let program = Program::new(vec![
        Instruction::ReceiveDatagrams { count: 1, clear: true },
        Instruction::SendDatagram { buffer: reply },
        Instruction::Jump { to: 0 },
    ]);
    let role = Role::Server { listen: Listen::at(PORT) };
    let template = template(program.unwrap(), Settings::default(), role);
    (Template { transport: Transport::Udp, ..template }, buffers)
}

/// Sends a long datagram from Linux and returns the answer, or an error after `patience`.
fn ask(socket: &UdpSocket, patience: Duration) -> std::io::Result<Vec<u8>> {
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.send(&content(LONG))?;
    let mut answer = vec![0; LONG + 1];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

fn connected(wire: &Wire, ours: IpAddr, linux: IpAddr) -> UdpSocket {
    wire.in_linux(|| {
        let socket = UdpSocket::bind((linux, 0)).unwrap();
        socket.connect((ours, PORT)).unwrap();
        socket
    })
}

#[test]
fn fragmented_datagrams_work_in_both_directions() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    let (template, buffers) = datagram_server();
    let running = wire.start(template, buffers, 0);
    for (ours, linux) in ends(&wire) {
        let socket = connected(&wire, ours, linux);
        for _ in 0..3 {
            let answer = ask(&socket, Duration::from_secs(10)).unwrap();
            assert!(answer == content(LONG), "{ours}: {} bytes", answer.len());
        }
    }
    let endpoint = running.stop();
    let (udp, unmatched) = (endpoint.udp(), endpoint.unmatched());
    assert_eq!((udp.rcvpkt, udp.rcvbyte), (6, 6 * LONG as u64));
    assert_eq!((udp.sndpkt, udp.fragmented, unmatched.reassembled), (6, 6, 6));
    assert_eq!((unmatched.malformed, unmatched.fragments_incomplete), (0, 0));
}

#[test]
fn datagrams_adapt_to_a_smaller_path_mtu() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    for end in [&wire.lab.router_b, &wire.lab.b] {
        end.set_mtu(1_300).unwrap();
    }
    let (template, buffers) = datagram_server();
    let running = wire.start(template, buffers, 0);
    let [(v4, linux_v4), (v6, linux_v6)] = ends(&wire);
    // A router fragments IPv4 packets again.
    let socket = connected(&wire, v4, linux_v4);
    assert!(ask(&socket, Duration::from_secs(10)).unwrap() == content(LONG));
    // For IPv6 it drops the answer and sends Packet Too Big.
    let socket = connected(&wire, v6, linux_v6);
    assert!(ask(&socket, Duration::from_secs(1)).is_err());
    assert!(ask(&socket, Duration::from_secs(10)).unwrap() == content(LONG));
    let unmatched = running.stop().unmatched();
    assert!(unmatched.too_big >= 1, "{unmatched:?}");
    assert_eq!((unmatched.reassembled, unmatched.malformed), (3, 0));
}

/// Client that sends one datagram of `bytes` bytes and waits for one.
fn datagram_client(wire: &Wire, ends: (IpAddr, IpAddr), bytes: usize) -> (Template, Buffers) {
    let mut buffers = Buffers::default();
    let request = buffers.push(Buffer::new(&content(bytes), 0, &[]));
    let program = Program::new(vec![
        Instruction::SetIdle { millis: 10_000, receive_only: false },
        Instruction::SendDatagram { buffer: request },
        Instruction::ReceiveDatagrams { count: 1, clear: false },
    ]);
    let role = between(wire, ends, 1_024..=1_024);
    let template = template(program.unwrap(), Settings::default(), role);
    (Template { transport: Transport::Udp, ..template }, buffers)
}

/// Waits until the flow of an endpoint is over, then stops the endpoint.
fn settle(running: Running) -> Endpoint {
    // Longer than any answer takes, but shorter than the idle timeout of the flow.
    running.done.recv_timeout(Duration::from_secs(5)).unwrap();
    running.stop()
}

#[test]
fn linux_echoes_long_datagrams() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    for (ours, linux) in ends(&wire) {
        let socket = wire.in_linux(|| UdpSocket::bind((linux, PORT)).unwrap());
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let echo = std::thread::spawn(move || {
            let mut request = vec![0; LONG + 1];
            let (length, from) = socket.recv_from(&mut request).unwrap();
            request.truncate(length);
            socket.send_to(&request, from).unwrap();
            request
        });
        let (template, buffers) = datagram_client(&wire, (ours, linux), LONG);
        let endpoint = settle(wire.start(template, buffers, 1));
        assert!(echo.join().unwrap() == content(LONG), "{ours}");
        let (udp, unmatched) = (endpoint.udp(), endpoint.unmatched());
        assert_eq!((udp.rcvpkt, udp.rcvbyte), (1, LONG as u64), "{ours}");
        assert_eq!((unmatched.reassembled, endpoint.counters().closed), (1, 1), "{ours}");
    }
}

#[test]
fn port_unreachable_is_sent_and_understood() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    for (ours, linux) in ends(&wire) {
        let (template, buffers) = datagram_client(&wire, (ours, linux), 100);
        let endpoint = settle(wire.start(template, buffers, 1));
        let flows = endpoint.counters();
        assert_eq!((flows.refused, flows.failed()), (1, 1), "{ours}");

        // No server listens at our port 80, only a client template exists.
        let (template, buffers) = datagram_client(&wire, (ours, linux), 100);
        let running = wire.start(template, buffers, 0);
        let refusal = ask(&connected(&wire, ours, linux), Duration::from_secs(10)).unwrap_err();
        assert_eq!(refusal.kind(), std::io::ErrorKind::ConnectionRefused, "{ours}");
        assert_eq!(running.stop().unmatched().unreachable_sent, 1, "{ours}");
    }
}

/// Sends a packet of an unsupported IP protocol, and prints the resulting error.
const SPEAKS_ANOTHER: &str = "
import errno, socket, sys
ours = sys.argv[1]
family = socket.AF_INET6 if ':' in ours else socket.AF_INET
raw = socket.socket(family, socket.SOCK_RAW, 253)
raw.settimeout(10)
raw.connect((ours, 0))
raw.send(b'12345678')
try:
    raw.recv(100)
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
";

#[test]
fn linux_understands_protocol_unreachable() {
    let Some(wire) = Wire::with(&with_ipv6()) else { return };
    let (template, buffers) = datagram_server();
    let running = wire.start(template, buffers, 0);
    for ((ours, _), expected) in ends(&wire).into_iter().zip(["ENOPROTOOPT", "EPROTO"]) {
        let mut command = wire.lab.b.command("python3");
        let output = command.args(["-c", SPEAKS_ANOTHER, &ours.to_string()]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{ours}: {output:?}");
    }
    assert_eq!(running.stop().unmatched().unreachable_sent, 2);
}

#[test]
fn icmp_reject_of_a_firewall_ends_a_connection() {
    let Some(wire) = Wire::new() else { return };
    for (with, expected) in [("port-unreachable", [1, 0]), ("host-unreachable", [0, 1])] {
        wire.nft("flush ruleset");
        wire.nft(&format!(
            "table ip wall {{ chain forward {{ type filter hook forward priority 0; \
             reject with icmp {with}; }}; }}"
        ));
        let ends = (wire.ours().into(), wire.linux().into());
        let (template, buffers) = client(&wire, ends, 0, Settings::default(), 1_024..=1_024);
        let flows = settle(wire.start(template, buffers, 1)).counters();
        assert_eq!([flows.refused, flows.unreachable], expected, "{with}");
    }
}

/// More data than Linux buffers while the application does not read.
const MUCH: usize = 8_000_000;

/// Reads all data after three zero-window probes.
fn read_late(mut stream: TcpStream, probes: &Probes) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    probes.wait_for(3);
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[track_caller]
fn assert_probed(endpoint: &Endpoint) {
    let tcp = endpoint.tcp();
    assert!(tcp.persisttimeo >= 3 && tcp.sndprobe >= 3, "{tcp:?}");
    assert_eq!((tcp.rcvackbyte, tcp.rexmttimeo, tcp.persistdrop), (MUCH as u64, 0, 0), "{tcp:?}");
    assert_eq!(endpoint.counters().failed(), 0);
}

/// RFC 9293 section 3.8.6.1. There is no test for the other direction: the endpoint consumes data
/// at once, so its window never closes.
#[test]
fn closed_window_of_linux_is_probed_by_client_and_server() {
    let Some(wire) = Wire::new() else { return };
    let (serving, buffers) = server(MUCH, Settings::default());
    let running = wire.start(serving, buffers, 0);
    let probes = Arc::clone(&running.probes);
    let page = wire.in_linux(|| {
        let mut stream = TcpStream::connect((wire.ours(), PORT)).unwrap();
        stream.write_all(b"page").unwrap();
        read_late(stream, &probes)
    });
    assert!(page == content(MUCH));
    assert_probed(&running.stop());

    let mut buffers = Buffers::default();
    let much = buffers.push(Buffer::new(&content(MUCH), 0, &[]));
    let program = Program::new(vec![Instruction::Connect, Instruction::Send { buffer: much }]);
    let ends = (wire.ours().into(), wire.linux().into());
    let role = between(&wire, ends, 3_000..=3_000);
    let listener =
        wire.in_linux(|| TcpListener::bind(SocketAddr::from((wire.linux(), PORT))).unwrap());
    let running = wire.start(template(program.unwrap(), Settings::default(), role), buffers, 1);
    let (stream, _) = listener.accept().unwrap();
    assert!(read_late(stream, &running.probes) == content(MUCH));
    assert_probed(&settle(running));
}
