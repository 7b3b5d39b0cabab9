//! Selection among several servers at one port.

use std::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;
use wirestorm_stack::endpoint::{
    Devices, Endpoint, EndpointOptions, LinkHeader, Listen, MatchByte, Role, Template, Transport,
};
use wirestorm_stack::program::{Buffer, Buffers, Instruction, Program};
use wirestorm_stack::tcp::counters::TcpCounters;
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use super::world::{SECOND, STEP, World, client, options, pass_by, template};

fn addresses(first: &str, count: u32) -> Option<AddressRange> {
    Some(AddressRange { first: first.parse::<IpAddr>().unwrap(), count })
}

/// First bytes to match; a dot matches any byte.
fn begins_with(text: &str) -> Vec<MatchByte> {
    let bytes = (0..).zip(text.bytes()).filter(|(_, value)| *value != b'.');
    bytes.map(|(offset, value)| MatchByte { offset, mask: 0xff, value }).collect()
}

/// A client that sends bytes to one server, from which it receives 3 bytes.
fn client_sending(request: &str, server: &str, over: Transport, buffers: &mut Buffers) -> Template {
    let buffer = buffers.push(Buffer::new(request.as_bytes(), 0, &[]));
    let mut role = client("16.0.0.1", 80, Load::Concurrent(1), Some(1));
    let Role::Client { tuples, .. } = &mut role else { unreachable!("it is one") };
    tuples.servers = addresses(server, 1).unwrap();
    let program = match over {
        Transport::Tcp(_) => {
            vec![Instruction::Send { buffer }, Instruction::Receive { bytes: 3, clear: false }]
        }
        Transport::Udp => vec![
            Instruction::SendDatagram { buffer },
            Instruction::ReceiveDatagrams { count: 1, clear: false },
        ],
    };
    Template { transport: over, ..template(program, role) }
}

/// A server that waits for 4 bytes, or one datagram, and answers with 3.
fn answering(listen: Listen, over: Transport, buffers: &mut Buffers) -> Template {
    let buffer = buffers.push(Buffer::new(b"yes", 0, &[]));
    let program = match over {
        Transport::Tcp(_) => {
            vec![Instruction::Receive { bytes: 4, clear: false }, Instruction::Send { buffer }]
        }
        Transport::Udp => vec![
            Instruction::ReceiveDatagrams { count: 1, clear: false },
            Instruction::SendDatagram { buffer },
        ],
    };
    Template { transport: over, ..template(program, Role::Server { listen }) }
}

/// Number of successfully closed flows of each template.
fn closed(endpoint: &Endpoint, templates: usize) -> Vec<u64> {
    let flows = (0..templates).map(|it| endpoint.tally(it).unwrap().flows);
    flows
        .inspect(|flows| assert_eq!((flows.active, flows.failed()), (0, 0)))
        .map(|it| it.closed)
        .collect()
}

#[test]
fn most_specific_server_is_selected_then_the_first() {
    let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
    for over in [tcp, Transport::Udp] {
        let mut buffers = Buffers::default();
        let everywhere = Listen::at(80);
        let wide = Listen { addresses: addresses("48.0.0.0", 256), ..Listen::at(80) };
        let narrow = Listen { addresses: addresses("48.0.0.8", 8), ..Listen::at(80) };
        let get = Listen { first_bytes: begins_with("GET "), ..narrow.clone() };
        let put = Listen { first_bytes: begins_with("P.T"), ..Listen::at(80) };
        let listens = [everywhere.clone(), wide, narrow, get, put, everywhere];
        let servers: Vec<_> =
            listens.into_iter().map(|listen| answering(listen, over, &mut buffers)).collect();
        // First bytes, server address, and index of the server that answers.
        let cases = [
            ("GET ", "49.0.0.1", 0),
            ("PUT ", "49.0.0.1", 4),
            ("PAT ", "49.0.0.1", 4),
            ("PATH", "48.0.0.7", 1),
            ("PUT ", "48.0.0.255", 1),
            ("PUT ", "48.0.0.8", 2),
            ("GET ", "48.0.0.15", 3),
            ("GET ", "48.0.0.16", 1),
        ];
        for (request, server, expected) in cases {
            let client = client_sending(request, server, over, &mut buffers);
            let mut world = World::of(vec![client], servers.clone(), &buffers);
            world.run(SECOND, |_, _| {});
            assert_eq!(closed(&world.client, 1), [1]);
            let mut one = vec![0; servers.len()];
            one[expected] = 1;
            assert_eq!(closed(&world.server, servers.len()), one, "{request} to {server}");
            let (of_it, total) = (world.server.tally(expected).unwrap(), &world.server);
            let connected = |tcp: TcpCounters| (tcp.accepts, tcp.connects, tcp.rcvbyte);
            assert_eq!(connected(of_it.tcp), connected(total.tcp()));
            assert_eq!(of_it.tcp.accepts + of_it.udp.accepts, 1);
            assert_eq!(of_it.tcp.connects, of_it.tcp.accepts);
            assert_eq!(of_it.udp, total.udp());
            assert_eq!(of_it.times.time_to_first_byte.count(), 1);
        }
    }
}

#[test]
fn server_with_more_match_bytes_is_selected_in_any_order() {
    let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
    for over in [tcp, Transport::Udp] {
        let mut buffers = Buffers::default();
        let half = MatchByte { offset: 0, mask: 0xf0, value: b'G' };
        let begins = [vec![half], begins_with("GE"), begins_with("GET "), Vec::new()];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let listens =
                order.map(|it: usize| Listen { first_bytes: begins[it].clone(), ..Listen::at(80) });
            let servers: Vec<_> =
                listens.into_iter().map(|it| answering(it, over, &mut buffers)).collect();
            for (request, expected) in [("GET ", 2), ("GETS", 1), ("GOTO", 0), ("PUT ", 3)] {
                let client = client_sending(request, "48.0.0.1", over, &mut buffers);
                let mut world = World::of(vec![client], servers.clone(), &buffers);
                world.run(SECOND, |_, _| {});
                let found = closed(&world.server, 4).iter().position(|it| *it == 1).unwrap();
                assert_eq!(order[found], expected, "{request} in {order:?}");
            }
        }
    }
}

#[test]
fn first_bytes_match_in_sequence_order() {
    let mut buffers = Buffers::default();
    let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
    let get = Listen { first_bytes: begins_with("GET "), ..Listen::at(80) };
    let server = answering(get, tcp, &mut buffers);
    // Two segments, the first of which is lost once.
    let mut client = client_sending("GET ", "48.0.0.1", tcp, &mut buffers);
    let pieces = [&b"GET "[..], b"PUT "].map(|it| buffers.push(Buffer::new(it, 0, &[])));
    let mut program = vec![Instruction::SendBlocking { waits: false }];
    program.extend(pieces.map(|buffer| Instruction::Send { buffer }));
    program.push(Instruction::Receive { bytes: 3, clear: false });
    client.program = Program::new(program).unwrap();
    let Transport::Tcp(settings) = &mut client.transport else { unreachable!("it is one") };
    settings.no_delay = true;
    let mut world = World::of(vec![client], vec![server], &buffers);
    let mut lost = false;
    for _ in 0..20_000 {
        world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
        pass_by(&mut world.up, |frame| {
            if frame.ends_with(b"GET ") && !lost {
                lost = true;
                // To an address of no host.
                frame[30] = 1;
            }
        });
        world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
        world.now += STEP;
    }
    assert!(lost);
    assert_eq!(world.server.tcp().rcvoopack, 1, "the second segment arrived first");
    assert_eq!((closed(&world.client, 1), closed(&world.server, 1)), (vec![1], vec![1]));
}

#[test]
fn first_bytes_may_span_several_segments() {
    let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
    let piece = |text: &str, buffers: &mut Buffers| {
        let buffer = buffers.push(Buffer::new(text.as_bytes(), 0, &[]));
        Instruction::Send { buffer }
    };
    // Pieces that a client sends, which piece is lost once, and the selected server.
    let cases: [(&[&str], Option<&str>, usize); 7] = [
        (&["G", "E", "T", " "], None, 0),
        (&["GE", "T more"], None, 0),
        (&["GE", "T more"], Some("GE"), 0),
        (&["G", "ET ", "more"], Some("ET "), 0),
        (&["PU", "T "], None, 1),
        (&["P", "AT "], Some("P"), 1),
        (&["GO", "NE"], None, 2),
    ];
    for (pieces, loses, expected) in cases {
        let mut buffers = Buffers::default();
        let listens = [begins_with("GET "), begins_with("P.T"), begins_with("")];
        let listens = listens.map(|first_bytes| Listen { first_bytes, ..Listen::at(80) });
        let servers: Vec<_> =
            listens.into_iter().map(|it| answering(it, tcp, &mut buffers)).collect();
        let mut client = client_sending("", "48.0.0.1", tcp, &mut buffers);
        let mut program = vec![Instruction::SendBlocking { waits: false }];
        program.extend(pieces.iter().map(|it| piece(it, &mut buffers)));
        program.push(Instruction::Receive { bytes: 3, clear: false });
        client.program = Program::new(program).unwrap();
        let Transport::Tcp(settings) = &mut client.transport else { unreachable!("it is one") };
        settings.no_delay = true;
        let mut world = World::of(vec![client], servers, &buffers);
        let mut lost = false;
        for _ in 0..20_000 {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| {
                if loses.is_some_and(|it| frame.ends_with(it.as_bytes())) && !lost {
                    lost = true;
                    frame[30] = 1;
                }
            });
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            world.now += STEP;
        }
        let case = format!("{pieces:?}, of which {loses:?} is lost");
        assert_eq!(lost, loses.is_some(), "{case}");
        let mut one = vec![0; 3];
        one[expected] = 1;
        assert_eq!(closed(&world.server, 3), one, "{case}");
        let (of_it, total) = (world.server.tally(expected).unwrap(), world.server.tcp());
        let connected = |tcp: TcpCounters| (tcp.accepts, tcp.connects, tcp.rcvbyte, tcp.rcvpack);
        assert_eq!(connected(of_it.tcp), connected(total), "{case}");
        let sent_bytes: usize = pieces.iter().map(|it| it.len()).sum();
        assert_eq!(
            (total.rcvbyte, of_it.times.time_to_first_byte.count()),
            (sent_bytes as u64, 1),
            "{case}"
        );
    }
}

#[test]
fn connection_with_unmatched_first_bytes_is_reset() {
    let mut buffers = Buffers::default();
    let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
    let get = Listen { first_bytes: begins_with("GET "), ..Listen::at(80) };
    let server = answering(get.clone(), tcp, &mut buffers);
    let mut clients = ["PUT ", "GET", "GET "]
        .map(|request| client_sending(request, "48.0.0.1", tcp, &mut buffers))
        .to_vec();
    // Sends only a part of the first bytes, and closes.
    let part = buffers.push(Buffer::new(b"GET", 0, &[]));
    clients[1].program = Program::new([Instruction::Send { buffer: part }]).unwrap();
    let mut world = World::of(clients, vec![server], &buffers);
    world.run(SECOND, |_, _| {});
    let ends = |place| {
        let flows = world.client.tally(place).unwrap().flows;
        (flows.closed, flows.reset)
    };
    assert_eq!([0, 1, 2].map(ends), [(0, 1), (0, 1), (1, 0)]);
    assert_eq!((world.server.unmatched().no_match, world.server.tcp().rst_sent), (2, 2));
    assert_eq!(closed(&world.server, 1), [1]);

    // A client that sends nothing ends well, and belongs to no server.
    let silent =
        template(vec![Instruction::Connect], client("16.0.0.1", 80, Load::Concurrent(1), Some(1)));
    let mut world = World::of(vec![silent], vec![answering(get, tcp, &mut buffers)], &buffers);
    world.run(SECOND, |_, _| {});
    assert_eq!((closed(&world.client, 1), closed(&world.server, 1)), (vec![1], vec![0]));
    assert_eq!((world.server.counters().closed, world.server.tcp().accepts), (1, 1));
}

#[test]
fn frames_for_other_hosts_are_ignored() {
    let port_mac = MacAddress([2, 0, 0, 0, 0, 2]);
    let other = MacAddress([2, 0, 0, 0, 0, 9]);
    let aimed_at = [(MacAddress([2, 0, 0, 0, 0, 1]), 2)];
    // Server address, other MAC addresses that clients of the plan send to, destination, port, and
    // whether to use a group address. The result: flows that end well, that are refused, and frames
    // for other hosts.
    let cases = [
        (other, &aimed_at[..], "48.0.0.1", 80, false, [2, 0, 0]),
        (port_mac, &[], "48.0.0.1", 80, false, [2, 0, 0]),
        (port_mac, &[], "48.0.0.1", 81, false, [0, 2, 0]),
        // The port's own address, and one of no host.
        (port_mac, &[], "50.0.0.1", 80, false, [0, 2, 0]),
        (port_mac, &[], "49.0.0.1", 80, false, [0, 0, 0]),
        (other, &[], "48.0.0.1", 80, false, [0, 0, 2]),
        (other, &[], "48.0.0.1", 81, false, [0, 0, 2]),
        // To a group.
        (port_mac, &[], "48.0.0.1", 80, true, [0, 0, 2]),
        (port_mac, &[], "48.0.0.1", 81, true, [0, 0, 2]),
    ];
    for (mac, aimed_at, address, port, is_to_group, expected) in cases {
        for leaves in [false, true] {
            let mut buffers = Buffers::default();
            let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
            let overs = [tcp, Transport::Udp];
            let listen = Listen { addresses: addresses("48.0.0.1", 1), ..Listen::at(80) };
            let servers = overs.map(|over| answering(listen.clone(), over, &mut buffers)).to_vec();
            let mut clients = overs.map(|over| client_sending("what", address, over, &mut buffers));
            for client in &mut clients {
                let Role::Client { tuples, .. } = &mut client.role else { unreachable!() };
                tuples.server_port = port;
            }
            let mut world = World::of(clients.to_vec(), servers, &buffers);
            world.server.set_addresses(
                mac,
                aimed_at,
                vec![Prefix::host("50.0.0.1".parse().unwrap())],
                &[],
            );
            if leaves {
                world.server.ignore_unmatched();
            }
            // Short enough to avoid retransmissions.
            for _ in 0..2_000 {
                world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
                pass_by(&mut world.up, |frame| frame[0] |= u8::from(is_to_group));
                world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
                world.now += STEP;
            }
            let (flows, unmatched) = (world.client.counters(), world.server.unmatched());
            let found = [flows.closed, flows.refused, unmatched.foreign_mac];
            let case = format!("{address} port {port}, {mac}, {is_to_group}");
            let left = if leaves { [expected[0], 0, 0] } else { expected };
            assert_eq!(found, left, "{case}");
            let refused = if leaves { 0 } else { 2 - expected[0] - expected[2] };
            assert_eq!(unmatched.no_flow + unmatched.no_template, refused, "{case}");
            if found == [0; 3] {
                let sent = (world.server.tcp().sndtotal, unmatched.unreachable_sent);
                assert_eq!(sent, (0, 0), "{case}");
            }
        }
    }
}

#[test]
fn martian_addresses_get_no_answer() {
    // A SYN and a datagram of a client at 16.0.0.1, with another source or destination.
    let cases = [
        (26, [16, 0, 0, 1], 0),
        (26, [224, 0, 0, 1], 2),
        (26, [255; 4], 2),
        (26, [0; 4], 2),
        (26, [127, 0, 0, 1], 2),
        (26, [48, 0, 0, 1], 2),
        (30, [255; 4], 2),
        (30, [239, 0, 0, 1], 2),
    ];
    for (place, address, expected) in cases {
        let mut buffers = Buffers::default();
        let tcp = template(vec![], client("16.0.0.1", 80, Load::OnDemand, None)).transport;
        let overs = [tcp, Transport::Udp];
        let servers = overs.map(|over| answering(Listen::at(80), over, &mut buffers)).to_vec();
        let clients =
            overs.map(|over| client_sending("what", "48.0.0.1", over, &mut buffers)).to_vec();
        let mut world = World::of(clients, Vec::new(), &buffers);
        let options =
            EndpointOptions { verifies_checksums: false, ..options(servers, &buffers, 2) };
        world.server = Endpoint::new(options, Instant::ZERO);
        world.server.set_addresses(MacAddress([2, 0, 0, 0, 0, 2]), &[], Vec::new(), &[]);
        // Short enough to avoid retransmissions.
        for _ in 0..2_000 {
            world.client.breathe(world.now, &mut world.up.0, &mut world.down.1).unwrap();
            pass_by(&mut world.up, |frame| {
                frame[place..place + 4].copy_from_slice(&address);
            });
            world.server.breathe(world.now, &mut world.down.0, &mut world.up.1).unwrap();
            world.now += STEP;
        }
        let (server, unmatched) = (&world.server, world.server.unmatched());
        assert_eq!(unmatched.martian, expected, "{address:?}");
        assert_eq!(server.tcp().accepts + server.udp().accepts, 2 - expected, "{address:?}");
        if expected == 2 {
            assert_eq!((server.tcp().sndtotal, unmatched.unreachable_sent), (0, 0), "{address:?}");
        }
    }
}

#[test]
fn device_addresses_belong_to_the_port() {
    let link = |last| [&[2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 32][..], &[8, 0]].concat();
    for (to, counts, is_to_port) in [
        (1, true, true),
        (32, true, true),
        (35, true, true),
        (36, true, false),
        (32, false, true),
        (33, false, false),
    ] {
        let mut buffers = Buffers::default();
        let mut behind = client("16.0.0.1", 80, Load::OnDemand, None);
        let Role::Client { link: links, tuples, .. } = &mut behind else { unreachable!() };
        links.devices.push(Devices {
            clients: tuples.clients,
            stride: 1,
            count: 4,
            link: LinkHeader::new(&link(8)).unwrap(),
            destinations_count: false,
            sources_count: counts,
        });
        let tcp = Transport::Tcp(Default::default());
        let mut asks = client_sending("what", "16.0.0.1", tcp, &mut buffers);
        let Role::Client { link: links, tuples, .. } = &mut asks.role else { unreachable!() };
        tuples.clients = addresses("16.0.1.1", 1).unwrap();
        links.default_link = LinkHeader::new(&link(to)).unwrap();
        let mut world = World::of(vec![asks], vec![template(vec![], behind)], &buffers);
        world.server.set_addresses(MacAddress([2, 0, 0, 0, 0, 1]), &[], Vec::new(), &[]);
        world.run(Duration::from_millis(200), |_, _| {});
        let found = (world.client.counters().refused, world.server.unmatched().foreign_mac);
        assert_eq!(found, (u64::from(is_to_port), u64::from(!is_to_port)), "to {to}, {counts}");
    }
}

#[test]
fn unmatched_segments_are_ignored_if_configured() {
    for leaves in [false, true] {
        let mut buffers = Buffers::default();
        let roles = [Transport::Tcp(Default::default()), Transport::Udp];
        let clients =
            roles.map(|over| client_sending("what", "48.0.0.1", over, &mut buffers)).to_vec();
        let mut world = World::of(clients, Vec::new(), &buffers);
        if leaves {
            world.server.ignore_unmatched();
        }
        world.run(SECOND, |_, _| {});
        let (unmatched, sent) = (world.server.unmatched(), world.server.tcp().rst_sent);
        let refused = world.client.counters().refused;
        match leaves {
            false => {
                assert_eq!((unmatched.no_template, unmatched.no_flow, sent, refused), (1, 1, 1, 1))
            }
            true => {
                assert_eq!((unmatched.no_template, unmatched.no_flow, sent, refused), (0, 0, 0, 0))
            }
        }
    }
}
