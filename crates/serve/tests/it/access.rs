//! Who may send which request.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use wirestorm_api::client::{Client, ClientOptions};
use wirestorm_api::error::ErrorCode;
use wirestorm_api::session::{Limits, Role, UserRequest};
use wirestorm_serve::{ListenOption, Owner, Service, ServiceError, Tls, TlsFiles, Users, openapi};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::service::{TestServer, code, loopback, options, request};

fn add(users: &Users, name: &str, role: Role, limits: Limits) -> String {
    users.put(name, UserRequest { role, limits, certificate: None }).unwrap().token
}

/// Sends a request; returns the status.
fn status(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let url = format!("http://{address}{path}");
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = match method {
        "GET" | "DELETE" => agent.run(request.body(()).unwrap()),
        _ => agent.run(request.body("").unwrap()),
    };
    response.unwrap().status().as_u16()
}

/// Returns the method, the path and the role of each route of the OpenAPI document.
fn routes() -> Vec<(String, String, String)> {
    let document: Value = serde_json::from_str(&openapi().unwrap()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let role = operation["x-role"].as_str().expect("each route has a role").to_owned();
            let path = path.replace(['{', '}'], "");
            routes.push((method.to_uppercase(), path, role));
        }
    }
    for path in ["/api/v1/openapi.json", "/metrics"] {
        routes.push(("GET".into(), path.into(), "observe".into()));
    }
    routes
}

#[test]
fn every_route_refuses_requests_without_a_token_and_users_without_the_role() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let server = options(&scratch, &lab);
    let users = Users::open(&server.directory).unwrap();
    let listen = ListenOption { needs_user: true, ..loopback() };
    let refused = Service::start(server.clone(), std::slice::from_ref(&listen), None);
    assert!(matches!(refused, Err(ServiceError::NeedsUsers(_))), "there are no users");
    let tokens = [Role::Observe, Role::Operate, Role::Administer]
        .map(|role| (role, add(&users, role.name(), role, Limits::default())));
    let service = Service::start(server, &[listen], None).unwrap();
    let address = service.addresses()[0];
    let routes = routes();
    assert!(routes.len() > 25, "{routes:?}");
    for (method, path, needed) in &routes {
        for headers in [
            &[][..],
            &[("authorization", "Bearer wrong")],
            &[("authorization", "Basic b2JzZXJ2ZQ==")],
            &[("wirestorm-user", "administer")],
        ] {
            assert_eq!(status(address, method, path, headers), 401, "{method} {path} {headers:?}");
        }
        for (role, token) in &tokens {
            // Long streams have their own tests.
            if path.ends_with("/events") || path.ends_with("/capture") {
                continue;
            }
            let needed = Role::ALL.into_iter().find(|it| it.name() == *needed).unwrap();
            let header = format!("Bearer {token}");
            let found = status(address, method, path, &[("authorization", &header)]);
            let place = format!("{method} {path} as {}: {found}", role.name());
            assert_eq!(found == 403, *role < needed, "{place}");
            assert_ne!(found, 401, "{place}");
        }
    }
    // Nothing above changed the users.
    assert_eq!(users.list().unwrap().len(), 3);
}

#[test]
fn owner_of_a_socket_is_its_only_user() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let server = options(&scratch, &lab);
    let owner = Owner::new("ada").unwrap();
    let token = owner.token().to_owned();
    let listen = [
        ListenOption { needs_user: true, owner: Some(owner), ..loopback() },
        ListenOption { needs_user: true, owner: Some(Owner::new("bob").unwrap()), ..loopback() },
    ];
    let users = Users::open(&server.directory).unwrap();
    let service = Service::start(server, &listen, None).unwrap();
    let client = |address: SocketAddr, token: Option<&str>| {
        let options = ClientOptions {
            server: format!("http://{address}"),
            token: token.map(str::to_owned),
            user: Some("ada".to_owned()),
            ..ClientOptions::default()
        };
        Client::new(&options).unwrap()
    };
    let [own, other] = service.addresses() else { panic!("two sockets") };
    let session = client(*own, Some(&token)).session().unwrap();
    assert_eq!((session.user.as_str(), session.role), ("ada", Role::Administer));
    assert_eq!(code(client(*own, None).session()), Some(ErrorCode::Unauthorized));
    assert_eq!(code(client(*other, Some(&token)).session()), Some(ErrorCode::Unauthorized));
    assert!(users.list().unwrap().is_empty(), "the file has no users");
}

#[test]
fn address_that_others_reach_needs_tls_and_users() {
    let scratch = Scratch::new().unwrap();
    let server = wirestorm_serve::ServerOptions {
        ports: Vec::new(),
        directory: scratch.file("state"),
        runs_directory: scratch.file("runs"),
        captures_bytes_max: 1_000,
        director: None,
    };
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let plain = ListenOption { address, tls: None, needs_user: true, owner: None };
    let refused = Service::start(server.clone(), &[plain], None);
    assert!(matches!(refused, Err(ServiceError::NeedsTls(_))));
    let files = Certificates::new(&scratch);
    let tls = Some(Tls::Files(files.server()));
    let tls = ListenOption { address, tls, needs_user: false, owner: None };
    let refused = Service::start(server, &[tls], None);
    assert!(matches!(refused, Err(ServiceError::NeedsUsers(_))));
}

#[test]
fn pages_of_other_sites_do_not_reach_a_server_without_users() {
    if !require_root() {
        return;
    }
    let server = TestServer::start();
    let path = "/api/v1/session";
    let address = server.address();
    let host = address.to_string();
    let with = |headers: &[(&str, &str)]| status(address, "GET", path, headers);
    assert_eq!(with(&[]), 200);
    assert_eq!(with(&[("host", "localhost:9410")]), 200);
    assert_eq!(with(&[("host", &host), ("origin", &format!("http://{host}"))]), 200);
    for headers in [
        &[("host", "evil.example")][..],
        &[("host", "localhost.evil.example:9410")],
        &[("host", &host), ("origin", "http://evil.example")],
        &[("host", &host), ("origin", "null")],
        &[("host", "")],
    ] {
        assert_eq!(with(headers), 403, "{headers:?}");
    }
}

#[test]
fn limits_of_a_user_bound_its_ports_and_rates() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let server = options(&scratch, &lab);
    let users = Users::open(&server.directory).unwrap();
    let limits = |limits| add(&users, "ada", Role::Operate, limits);
    let mut token = limits(Limits { ports: Some(vec!["left".into()]), ..Limits::default() });
    let listen = ListenOption { needs_user: true, ..loopback() };
    let service = Service::start(server, &[listen], None).unwrap();
    let client = |token: &str| {
        let server = format!("http://{}", service.addresses()[0]);
        let token = Some(token.to_owned());
        Client::new(&ClientOptions { server, token, ..ClientOptions::default() }).unwrap()
    };
    let run = |token: &str, rate: &str| client(token).create_run(&request(rate, "100ms"));
    assert_eq!(code(run(&token, "1kpps")), Some(ErrorCode::Forbidden), "right is not allowed");
    token = limits(Limits { ports_max: Some(1), ..Limits::default() });
    assert_eq!(code(run(&token, "1kpps")), Some(ErrorCode::Forbidden), "the run has two ports");
    token = limits(Limits { pps_max: Some(1_000), ..Limits::default() });
    assert_eq!(code(run(&token, "1001pps")), Some(ErrorCode::Forbidden));
    assert_eq!(code(run(&token, "max")), Some(ErrorCode::Forbidden));
    let id = run(&token, "1kpps").unwrap().id;
    // 128 bytes with FCS, and 20 bytes of preamble and gap.
    crate::service::wait_for(&client(&token), &id, |state| state.is_over());
    token = limits(Limits { bps_max: Some(148 * 8 * 1_000), ..Limits::default() });
    let id = run(&token, "1kpps").unwrap().id;
    crate::service::wait_for(&client(&token), &id, |state| state.is_over());
    assert_eq!(code(run(&token, "1001pps")), Some(ErrorCode::Forbidden));
    // A command exceeds the limit: the measurement stops the run.
    token = limits(Limits { pps_max: Some(1_000), ..Limits::default() });
    let id = client(&token).create_run(&request("900pps", "60s")).unwrap().id;
    let faster = wirestorm_api::run::CommandRequest::Rate { rate: "3kpps".into(), flows: None };
    client(&token).command(&id, &faster).unwrap();
    let run = crate::service::wait_for(&client(&token), &id, |state| state.is_over());
    assert!(run.message.as_ref().is_some_and(|it| it.contains("the limit of ada")), "{run:?}");
}

/// An authority, and certificates of a server and a client.
struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    fn new(scratch: &Scratch) -> Self {
        let directory = scratch.path().to_owned();
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        std::fs::write(directory.join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        for (name, hosts) in [("server", vec!["127.0.0.1".to_owned()]), ("client", vec![])] {
            let key = KeyPair::generate().unwrap();
            let mut parameters = CertificateParams::new(hosts).unwrap();
            parameters.distinguished_name.push(DnType::CommonName, format!("{name}.example"));
            let certificate = parameters.signed_by(&key, &issuer).unwrap();
            std::fs::write(directory.join(format!("{name}.pem")), certificate.pem()).unwrap();
            std::fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        Self { directory }
    }

    fn server(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.directory.join("server.pem"),
            key: self.directory.join("server.key"),
            client_authority: Some(self.directory.join("ca.pem")),
        }
    }
}

#[test]
fn tls_users_have_a_token_or_a_client_certificate() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let files = Certificates::new(&scratch);
    let server = options(&scratch, &lab);
    let users = Users::open(&server.directory).unwrap();
    let token = add(&users, "ada", Role::Observe, Limits::default());
    let request = UserRequest {
        role: Role::Operate,
        limits: Limits::default(),
        certificate: Some("client.example".to_owned()),
    };
    users.put("ci", request).unwrap();
    let listen =
        ListenOption { tls: Some(Tls::Files(files.server())), needs_user: true, ..loopback() };
    let service = Service::start(server, &[listen], None).unwrap();
    let ca = Some(files.directory.join("ca.pem"));
    let connect = |token: Option<&str>, with_certificate: bool| {
        let key = files.directory.join("client.key");
        let certificate = (files.directory.join("client.pem"), key);
        let options = ClientOptions {
            server: format!("https://{}", service.addresses()[0]),
            token: token.map(str::to_owned),
            authority: ca.clone(),
            certificate: with_certificate.then_some(certificate),
            ..ClientOptions::default()
        };
        Client::new(&options).unwrap().session()
    };
    assert_eq!(connect(Some(&token), false).unwrap().user, "ada");
    let session = connect(None, true).unwrap();
    assert_eq!((session.user.as_str(), session.role), ("ci", Role::Operate));
    assert_eq!(code(connect(None, false)), Some(ErrorCode::Unauthorized));
    assert_eq!(code(connect(Some("wrong"), true)), Some(ErrorCode::Unauthorized));
    users.remove("ci").unwrap();
    assert_eq!(code(connect(None, true)), Some(ErrorCode::Unauthorized));
    // A client without the authority of the server does not trust it.
    let untrusting = ClientOptions {
        server: format!("https://{}", service.addresses()[0]),
        token: Some(token),
        ..ClientOptions::default()
    };
    let error = Client::new(&untrusting).unwrap().session().unwrap_err();
    assert!(error.code().is_none(), "{error}");
}

#[test]
fn streams_end_when_their_user_loses_its_rights() {
    if !require_root() {
        return;
    }
    let (scratch, lab) = (Scratch::new().unwrap(), Lab::new().unwrap());
    let server = options(&scratch, &lab);
    let users = Users::open(&server.directory).unwrap();
    let token = add(&users, "ada", Role::Operate, Limits::default());
    let listen = ListenOption { needs_user: true, ..loopback() };
    let service = Service::start(server, &[listen], None).unwrap();
    let options = ClientOptions {
        server: format!("http://{}", service.addresses()[0]),
        token: Some(token),
        ..ClientOptions::default()
    };
    let client = Client::new(&options).unwrap();
    let mut events = client.events().unwrap();
    assert!(events.next().is_some(), "the ports");
    let request = UserRequest { role: Role::Observe, limits: Limits::default(), certificate: None };
    users.put("ada", request).unwrap();
    // A test that waits for ever fails by the time limit of the runner.
    let ends = std::thread::spawn(move || events.count());
    ends.join().unwrap();
    assert_eq!(code(client.session()), Some(ErrorCode::Unauthorized), "the token is another one");
}
