//! Client and server endpoints with TLS over a network in memory.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_model::program::{Delimiter, MessageFraming};
use wirestorm_stack::content::{Session, SessionFactory, SessionState};
use wirestorm_stack::endpoint::Endpoint;
use wirestorm_stack::program::{Buffer, Buffers, Check, Contents, Instruction};
use wirestorm_tls::{Identity, Resume, TlsClients, TlsServers, TlsSettings, Version};
use wirestorm_wire::pattern::Pattern;

use crate::impaired::{Impairment, Side, World};

const UP: u64 = 40_000;
const DOWN: u64 = 150_000;
const FLOWS: u64 = 16;
const MINUTE: Duration = Duration::from_secs(60);

/// Runs clients that send one request each, and servers that respond.
fn world(settings: [&TlsSettings; 2], disturbance: Impairment, seed: u64) -> World {
    world_with(FLOWS, settings, disturbance, seed)
}

/// Like [`world`], with `flows` flows of ten clients, round robin.
fn world_with(
    flows: u64,
    settings: [&TlsSettings; 2],
    disturbance: Impairment,
    seed: u64,
) -> World {
    let mut buffers = Buffers::default();
    let [question, answer] =
        [UP, DOWN].map(|size| buffers.push(Buffer::new(&[], size as u32, &[])));
    let asks = vec![
        Instruction::Connect,
        Instruction::Send { buffer: question },
        Instruction::Receive { bytes: DOWN, clear: true },
    ];
    let answers = vec![
        Instruction::Connect,
        Instruction::Receive { bytes: UP, clear: true },
        Instruction::Send { buffer: answer },
        Instruction::WaitForPeerClose,
    ];
    let clients = Arc::new(TlsClients::new(settings[0]).unwrap());
    let servers = Arc::new(TlsServers::new(settings[1]).unwrap());
    let sides = [
        Side { program: asks, contents: Contents::default(), sessions: Some(clients) },
        Side { program: answers, contents: Contents::default(), sessions: Some(servers) },
    ];
    let mut world = World::new(sides, &buffers, [flows, 2], disturbance, seed);
    world.run(MINUTE);
    world
}

fn of_version(version: Version) -> TlsSettings {
    let name = Some("pages.test".to_owned());
    TlsSettings { versions: vec![version], name, ..TlsSettings::default() }
}

const BOTH: [Version; 2] = [Version::Tls12, Version::Tls13];

/// Generates a self-signed certificate for a name, and its key, in PEM.
fn certificate_for(name: &str) -> [Vec<u8>; 2] {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    [certified.cert.pem(), certified.signing_key.serialize_pem()].map(String::into_bytes)
}

#[test]
fn plaintext_arrives_over_a_rough_network() {
    for version in BOTH {
        let settings = of_version(version);
        for seed in 1..=8 {
            let world = world([&settings, &settings], Impairment::ROUGH, seed);
            let [client, server] = [&world.client, &world.server].map(Endpoint::sessions);
            for sessions in [&client, &server] {
                assert_eq!(sessions.failures, BTreeMap::new(), "{version:?} seed {seed}");
                assert_eq!(sessions.full_handshakes + sessions.resumed_handshakes, FLOWS);
                assert_eq!(sessions.handshake.count(), FLOWS);
                assert_eq!(sessions.truncated, 0);
            }
            for side in [&world.client, &world.server] {
                assert_eq!((side.counters().closed, side.counters().failed()), (FLOWS, 0));
            }
            assert_eq!(
                (client.full_handshakes, client.resumed_handshakes),
                (server.full_handshakes, server.resumed_handshakes)
            );
        }
    }
}

#[test]
fn sessions_resume_unless_a_side_disables_it() {
    for version in BOTH {
        let resuming = of_version(version);
        let full = TlsSettings { resume: Resume::NONE, ..of_version(version) };
        for (client, server, resumed) in
            [(&resuming, &resuming, true), (&full, &resuming, false), (&resuming, &full, false)]
        {
            let world = world_with(30, [client, server], Impairment::NONE, 1);
            let sessions = world.client.sessions();
            assert_eq!(sessions.full_handshakes + sessions.resumed_handshakes, 30);
            // The first connection of each client has no ticket: clients do not share tickets.
            let expected = if resumed { 20 } else { 0 };
            assert_eq!(sessions.resumed_handshakes, expected, "{version:?}");
            assert_eq!(world.server.sessions().resumed_handshakes, expected, "{version:?}");
        }
    }
}

#[test]
fn configured_share_of_connections_resumes() {
    for version in BOTH {
        let resume = Resume::from_billionths(500_000_000).unwrap();
        let half = TlsSettings { resume, ..of_version(version) };
        let settings = [&half, &of_version(version)];
        let sessions = world_with(30, settings, Impairment::NONE, 1).client.sessions();
        assert_eq!(sessions.full_handshakes + sessions.resumed_handshakes, 30);
        // 10 of 20 possible ones are expected, with a standard deviation of 2.2; each run is equal.
        assert!(
            (4..=16).contains(&sessions.resumed_handshakes),
            "{version:?} {}",
            sessions.resumed_handshakes
        );
    }
}

/// Returns the failure cause of an endpoint on which all flows failed for one cause.
fn cause(side: &Endpoint) -> &'static str {
    let sessions = side.sessions();
    assert_eq!((side.counters().failed(), side.counters().active), (FLOWS, 0));
    match sessions.failures.iter().collect::<Vec<_>>()[..] {
        [(cause, times)] => {
            assert_eq!(*times, FLOWS, "{cause}");
            cause
        }
        _ => panic!("{:?}", sessions.failures),
    }
}

#[test]
fn negotiation_failures_name_their_cause() {
    let usual = || of_version(Version::Tls13);
    let with_cipher = |cipher: &str| TlsSettings { ciphers: vec![cipher.into()], ..usual() };
    let with_alpn = |protocol: &str| TlsSettings { alpn: vec![protocol.into()], ..usual() };
    let [other, _] = certificate_for("other.test");
    let authorities = Some(other);
    let cases = [
        (
            of_version(Version::Tls12),
            usual(),
            ["received alert protocol_version", "no version in common"],
        ),
        (
            with_cipher("TLS_AES_128_GCM_SHA256"),
            with_cipher("TLS_CHACHA20_POLY1305_SHA256"),
            ["received alert handshake_failure", "no cipher suite in common"],
        ),
        (
            with_alpn("h2"),
            with_alpn("http/1.1"),
            ["received alert no_application_protocol", "no ALPN protocol in common"],
        ),
        (
            TlsSettings { authorities, ..usual() },
            usual(),
            ["certificate of an unknown issuer", "received alert unknown_ca"],
        ),
    ];
    for (client, server, expected) in cases {
        let world = world([&client, &server], Impairment::NONE, 1);
        assert_eq!([cause(&world.client), cause(&world.server)], expected);
    }
}

#[test]
fn certificate_must_match_the_server_name() {
    let [chain, key] = certificate_for("pages.test");
    let server = || TlsSettings {
        identity: Some(Identity::from_pem(&chain, &key).unwrap()),
        ..of_version(Version::Tls13)
    };
    let client = |name: &str| TlsSettings {
        authorities: Some(chain.clone()),
        name: Some(name.to_owned()),
        ..of_version(Version::Tls13)
    };
    let good = world([&client("pages.test"), &server()], Impairment::NONE, 1);
    assert_eq!(good.client.counters().closed, FLOWS);
    let bad = world([&client("other.test"), &server()], Impairment::NONE, 1);
    let causes = [cause(&bad.client), cause(&bad.server)];
    assert_eq!(causes, ["certificate is for another name", "received alert bad_certificate"]);
}

#[test]
fn servers_may_require_client_certificates() {
    let [chain, key] = certificate_for("client.test");
    let [others_chain, others_key] = certificate_for("other.test");
    let client = |version, identity: Option<[&Vec<u8>; 2]>| TlsSettings {
        client_identity: identity.map(|[chain, key]| Identity::from_pem(chain, key).unwrap()),
        ..of_version(version)
    };
    for version in BOTH {
        let asking = TlsSettings { client_authorities: Some(chain.clone()), ..of_version(version) };
        let known = client(version, Some([&chain, &key]));
        for server in [&asking, &of_version(version)] {
            let good = world([&known, server], Impairment::ROUGH, 1);
            for side in [&good.client, &good.server] {
                assert_eq!((side.counters().closed, side.counters().failed()), (FLOWS, 0));
            }
            assert!(good.client.sessions().resumed_handshakes > 0);
        }
        let nobody = world([&client(version, None), &asking], Impairment::NONE, 1);
        let expected = ["received alert certificate_required", "peer has no certificate"];
        assert_eq!([cause(&nobody.client), cause(&nobody.server)], expected);
        let other = client(version, Some([&others_chain, &others_key]));
        let other = world([&other, &asking], Impairment::NONE, 1);
        // Both certificates have the same distinguished name, the default of rcgen.
        let expected = ["received alert decrypt_error", "certificate's signature is wrong"];
        assert_eq!([cause(&other.client), cause(&other.server)], expected);
    }
}

/// Generates a self-signed CA certificate for a server name, as `openssl req -x509` does, and its
/// key, in PEM. It is valid until the end of the given year.
fn self_issued_ca_certificate(name: &str, valid_until: i32) -> [Vec<u8>; 2] {
    let mut parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.not_after = rcgen::date_time_ymd(valid_until, 12, 31);
    let key = rcgen::KeyPair::generate().unwrap();
    let chain = parameters.self_signed(&key).unwrap().pem();
    [chain, key.serialize_pem()].map(String::into_bytes)
}

#[test]
fn listed_ca_certificate_is_trusted_as_a_server_certificate() {
    let [chain, key] = self_issued_ca_certificate("pages.test", 4_000);
    let [old_chain, old_key] = self_issued_ca_certificate("pages.test", 2_000);
    let [another, _] = self_issued_ca_certificate("pages.test", 4_000);
    for version in BOTH {
        let usual = || of_version(version);
        let server = |chain, key| TlsSettings {
            identity: Some(Identity::from_pem(chain, key).unwrap()),
            ..usual()
        };
        let trusting =
            |chain: &Vec<u8>| TlsSettings { authorities: Some(chain.clone()), ..usual() };
        let good = world([&trusting(&chain), &server(&chain, &key)], Impairment::ROUGH, 1);
        assert_eq!((good.client.counters().closed, good.client.counters().failed()), (FLOWS, 0));

        let renamed = TlsSettings { name: Some("other.test".to_owned()), ..trusting(&chain) };
        for (client, server, expected) in [
            (renamed, server(&chain, &key), "certificate is for another name"),
            (trusting(&old_chain), server(&old_chain, &old_key), "certificate has expired"),
            (trusting(&another), server(&chain, &key), "untrusted CA certificate"),
        ] {
            let world = world([&client, &server], Impairment::NONE, 1);
            assert_eq!(cause(&world.client), expected, "{version:?}");
        }
    }
}

#[test]
fn peer_without_tls_fails_with_a_cause() {
    let mut buffers = Buffers::default();
    let buffer = buffers.push(Buffer::new(b"GET / HTTP/1.1\r\n\r\n", 0, &[]));
    let asks = vec![Instruction::Send { buffer }, Instruction::WaitForPeerClose];
    let servers = Arc::new(TlsServers::new(&TlsSettings::default()).unwrap());
    let sides = [
        Side { program: asks, contents: Contents::default(), sessions: None },
        Side {
            program: vec![Instruction::Connect],
            contents: Contents::default(),
            sessions: Some(servers),
        },
    ];
    let mut world = World::new(sides, &buffers, [FLOWS, 1], Impairment::NONE, 1);
    world.run(MINUTE);
    assert_eq!(cause(&world.server), "peer's message is not TLS");
    // The client receives an alert as plain data, and the connection closes.
    assert_eq!(world.client.counters().closed, FLOWS);
}

/// Texts of both sides before and after TLS starts. The client sends `STARTTLS` and `more` at once;
/// the server sends `go ahead` and `unasked`. Then each side sends a line within TLS.
struct Starting {
    more: &'static str,
    unasked: &'static str,
    settings: TlsSettings,
    disturbance: Impairment,
    seed: u64,
}

impl Starting {
    fn run(&self) -> World {
        let mut buffers = Buffers::default();
        let mut send = |text: &str| {
            let buffer = buffers.push(Buffer::new(text.as_bytes(), text.len() as u32, &[]));
            Instruction::Send { buffer }
        };
        let take = |check| {
            [Instruction::Take { rule: 0, is_required: true }, Instruction::Expect { check }]
        };
        let contents = |lines: [&str; 2]| Contents {
            rules: vec![MessageFraming::Until(Delimiter::new(b"\n").unwrap())],
            checks: lines.map(|it| Check::Matches(Pattern::new(it).unwrap())).into(),
            ..Contents::default()
        };
        let (start, done) = (Instruction::StartSession, Instruction::WaitForPeerClose);
        let asks = send(&format!("STARTTLS\n{}", self.more));
        let grants = send(&format!("go ahead\n{}", self.unasked));
        let (question, answer) = (send("question\n"), send("answer\n"));
        let at_once = Instruction::SendBlocking { waits: false };
        let client = [&[at_once, asks][..], &take(0), &[start, question], &take(1)].concat();
        let server = [&take(0)[..], &[grants, start], &take(1), &[answer, done]].concat();
        let clients = Arc::new(TlsClients::new(&self.settings).unwrap());
        let servers = Arc::new(TlsServers::new(&self.settings).unwrap());
        let sides = [
            Side {
                program: client,
                contents: contents(["^go ahead\n$", "^answer\n$"]),
                sessions: Some(clients),
            },
            Side {
                program: server,
                contents: contents(["^STARTTLS\n$", "^question\n$"]),
                sessions: Some(servers),
            },
        ];
        let mut world = World::new(sides, &buffers, [FLOWS, 2], self.disturbance, self.seed);
        world.run(MINUTE);
        world
    }
}

fn starting(version: Version) -> Starting {
    let settings = of_version(version);
    Starting { more: "", unasked: "", settings, disturbance: Impairment::NONE, seed: 1 }
}

#[test]
fn tls_starts_within_a_connection_over_a_rough_network() {
    for version in BOTH {
        for seed in 1..=8 {
            let world =
                Starting { disturbance: Impairment::ROUGH, seed, ..starting(version) }.run();
            for side in [&world.client, &world.server] {
                let sessions = side.sessions();
                assert_eq!(sessions.failures, BTreeMap::new(), "{version:?} seed {seed}");
                assert_eq!(sessions.full_handshakes + sessions.resumed_handshakes, FLOWS);
                assert!(sessions.resumed_handshakes > 0, "{version:?} seed {seed}");
                assert_eq!(sessions.handshake.count(), FLOWS);
                assert_eq!((side.counters().closed, side.counters().failed()), (FLOWS, 0));
            }
        }
    }
}

#[test]
fn plaintext_before_tls_is_not_taken_for_protected_data() {
    for version in BOTH {
        // CVE-2011-0411: a second, unprotected command follows the STARTTLS command.
        let world = Starting { more: "question\n", ..starting(version) }.run();
        assert_eq!(cause(&world.server), "peer's message is not TLS");
        let world = Starting { unasked: "answer\n", ..starting(version) }.run();
        assert_eq!(cause(&world.client), "peer's message is not TLS");
    }
}

/// The server sends no tickets to a client that has sent its data and closed. The client's host
/// would answer them with RST.
#[test]
fn tickets_wait_until_the_server_sends_data() {
    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    let settings = of_version(Version::Tls13);
    let mut client = TlsClients::new(&settings).unwrap().begin(LOCAL, PEER);
    let mut server = TlsServers::new(&settings).unwrap().begin(PEER, LOCAL);
    let carry = |from: &mut dyn Session, to: &mut dyn Session| {
        let mut bytes = VecDeque::new();
        from.transmit(&mut bytes);
        to.receive_data(bytes.make_contiguous(), &mut |_| {});
        bytes.len()
    };
    carry(&mut *client, &mut *server);
    carry(&mut *server, &mut *client);
    client.send_data(b"file");
    client.close();
    carry(&mut *client, &mut *server);
    assert_eq!(server.state(), SessionState::PeerClosed);
    assert_eq!(carry(&mut *server, &mut *client), 0);
    server.close();
    assert!(carry(&mut *server, &mut *client) > 200);
}
