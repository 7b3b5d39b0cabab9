//! Invalid settings, and peers that send invalid bytes.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use wirestorm_stack::content::{Session, SessionFactory, SessionState};
use wirestorm_tls::{Identity, TlsClients, TlsServers, TlsSettings, Version};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Generates a self-signed certificate for a name, and its key, in PEM.
fn certificate_for(name: &str) -> [Vec<u8>; 2] {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    [certified.cert.pem(), certified.signing_key.serialize_pem()].map(String::into_bytes)
}

#[track_caller]
fn assert_error(result: Result<impl Sized, impl std::fmt::Display>, expected: &str) {
    let Err(error) = result else { panic!("no error, expected {expected:?}") };
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn errors_name_the_found_and_the_expected_value() {
    let ciphers = vec!["TLS_NULL".to_owned()];
    let settings = TlsSettings { ciphers, ..TlsSettings::default() };
    let expected = "found the cipher suite \"TLS_NULL\", expected one of: TLS_AES_256_GCM_SHA384";
    assert_error(TlsClients::new(&settings), expected);
    assert_error(TlsServers::new(&settings), expected);

    let ciphers = vec!["TLS_AES_128_GCM_SHA256".to_owned()];
    let versions = vec![Version::Tls12];
    let settings = TlsSettings { ciphers, versions, ..TlsSettings::default() };
    assert_error(TlsServers::new(&settings), "versions and cipher suites do not match");

    let settings = TlsSettings { name: Some("a b".into()), ..TlsSettings::default() };
    assert_error(TlsClients::new(&settings), "found the name \"a b\", expected a host's name");

    let [chain, key] = certificate_for("own.test");
    assert_error(Identity::from_pem(b"", &key), "no certificate found");
    assert_error(Identity::from_pem(&chain, &chain), "no private key found");
    let [other, _] = certificate_for("other.test");
    let identity = Some(Identity::from_pem(&other, &key).unwrap());
    let settings = TlsSettings { identity, ..TlsSettings::default() };
    assert_error(TlsServers::new(&settings), "certificate and key cannot be used");

    let settings = TlsSettings { client_authorities: Some(key.clone()), ..TlsSettings::default() };
    assert_error(TlsServers::new(&settings), "no CA certificate found");
    let client_identity = Some(Identity::from_pem(&other, &key).unwrap());
    let settings = TlsSettings { client_identity, ..TlsSettings::default() };
    assert_error(TlsClients::new(&settings), "certificate and key cannot be used");
    let settings = TlsSettings { authorities: Some(key), ..TlsSettings::default() };
    assert_error(TlsClients::new(&settings), "no CA certificate found");
}

/// Passes bytes between two sessions for ten flights; `change` may modify each flight.
fn converse(sessions: [&mut dyn Session; 2], mut change: impl FnMut(usize, &mut Vec<u8>)) {
    for flight in 0..10 {
        let mut bytes = VecDeque::new();
        sessions[flight % 2].transmit(&mut bytes);
        let mut bytes = Vec::from(bytes);
        change(flight, &mut bytes);
        sessions[1 - flight % 2].receive_data(&bytes, &mut |_| {});
    }
}

#[test]
fn damaged_bytes_never_cause_a_panic() {
    let mut random = 1_u64;
    let mut draw = |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % end.max(1)
    };
    let mut failures = 0;
    for version in [Version::Tls12, Version::Tls13] {
        let settings = TlsSettings { versions: vec![version], ..TlsSettings::default() };
        let (clients, servers) =
            (TlsClients::new(&settings).unwrap(), TlsServers::new(&settings).unwrap());
        for round in 0..300 {
            let (mut client, mut server) = (clients.begin(LOCAL, PEER), servers.begin(LOCAL, PEER));
            let damaged = round % 5;
            converse([client.as_mut(), server.as_mut()], |flight, bytes| {
                if flight == damaged && !bytes.is_empty() {
                    match draw(4) {
                        0 => bytes.truncate(draw(bytes.len())),
                        1 => bytes.drain(..draw(bytes.len())).for_each(drop),
                        2 => bytes.iter_mut().for_each(|byte| *byte = draw(256) as u8),
                        _ => {
                            let place = draw(bytes.len());
                            bytes[place] ^= 1 << draw(8);
                        }
                    }
                }
            });
            for session in [client, server] {
                failures += u64::from(matches!(session.state(), SessionState::Failed(_)));
            }
        }
        let (mut client, mut server) = (clients.begin(LOCAL, PEER), servers.begin(LOCAL, PEER));
        converse([client.as_mut(), server.as_mut()], |_, _| {});
        assert_eq!([client.state(), server.state()], [SessionState::Open; 2], "{version:?}");
    }
    assert!(failures > 300, "{failures}");
}
