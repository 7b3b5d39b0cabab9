//! Keys and permissions of a generated configuration, enforced by a real server.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use wirestorm_bus::cluster::{
    CAPTURES, Certificates, Cluster, Credentials, LEASES, Limits, PLANS, Paths, RESULTS, Role,
};
use wirestorm_bus::nats::{Key, NatsBus};
use wirestorm_bus::subject::Site;
use wirestorm_bus::{
    BucketConfig, Bus, BusError, ConnectionState, LogConfig, ObjectsConfig, RecvError, Revision,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::nats::{NatsServer, free_port, require_nats_server};

use crate::{SOON, wait_for};

/// A server with a cluster of two agents and a director.
struct Bed {
    cluster: Cluster,
    site: Site,
    credentials: Vec<Credentials>,
    server: NatsServer,
    scratch: Scratch,
}

fn paths(root: &Path) -> Paths {
    Paths {
        certificate: root.join("server.pem"),
        key: root.join("server-key.pem"),
        store: root.join("jetstream"),
        process_id: root.join("nats-server.pid"),
    }
}

impl Bed {
    fn open() -> Option<Self> {
        Self::open_at([127, 0, 0, 1].into(), &[])
    }

    /// Starts a server at an address, with more agents.
    fn open_at(address: IpAddr, more: &[String]) -> Option<Self> {
        let program = require_nats_server()?;
        let scratch = Scratch::new().unwrap();
        let port = free_port().unwrap();
        let listen = (address, port).into();
        let (mut cluster, certificates) = Cluster::new("lab", listen, &[]).unwrap();
        let mut credentials = vec![
            cluster.add(Role::Agent, "a").unwrap(),
            cluster.add(Role::Agent, "b").unwrap(),
            cluster.add(Role::Director, "d").unwrap(),
        ];
        let more = more.iter().map(|name| cluster.add(Role::Agent, name).unwrap());
        credentials.extend(more);
        let Certificates { server, server_key, .. } = certificates;
        let paths = paths(scratch.path());
        std::fs::write(&paths.certificate, server).unwrap();
        std::fs::write(&paths.key, server_key).unwrap();
        let config = write_config(&cluster, &scratch);
        let server = NatsServer::with_config(&program, &config, listen, None).unwrap();
        let site = Site::new("lab").unwrap();
        let bed = Self { cluster, site, credentials, server, scratch };
        bed.create_stores();
        Some(bed)
    }

    /// Connects as the member of a name.
    fn connect(&self, name: &str) -> NatsBus {
        let credentials = self.credentials.iter().find(|it| it.name == name).unwrap();
        NatsBus::connect(credentials.options(None).unwrap()).unwrap()
    }

    fn create_stores(&self) {
        let director = self.connect("d");
        let time_to_live = Some(Duration::from_secs(60));
        let bucket = BucketConfig { name: LEASES.into(), time_to_live, bytes_max: 1 << 20 };
        director.create_bucket(&bucket).unwrap();
        let log = LogConfig {
            name: RESULTS.into(),
            pattern: self.site.all_results(),
            age_max: None,
            bytes_max: 1 << 20,
            duplicate_window: Duration::from_secs(600),
        };
        director.create_log(&log).unwrap();
        for name in [PLANS, CAPTURES] {
            let name = name.into();
            let objects = ObjectsConfig { name, age_max: None, bytes_max: 1 << 20 };
            director.create_objects(&objects).unwrap();
        }
    }
}

fn write_config(cluster: &Cluster, scratch: &Scratch) -> std::path::PathBuf {
    let limits = Limits { store_bytes: 1 << 30 };
    let text = cluster.configuration(&paths(scratch.path()), limits).unwrap();
    let path = scratch.file("nats-server.conf");
    std::fs::write(&path, text).unwrap();
    path
}

fn assert_denied<T: std::fmt::Debug>(what: &str, result: Result<T, BusError>) {
    match result {
        Err(BusError::Denied { what: subject, reason }) => {
            assert!(!subject.is_empty() && !reason.is_empty());
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn agents_and_director_can_do_their_work() {
    let Some(bed) = Bed::open() else { return };
    let (agent, director) = (bed.connect("a"), bed.connect("d"));
    let site = &bed.site;

    let status = director.subscribe(&site.all_agent_status(), 8).unwrap();
    agent.publish(&site.agent_status("a").unwrap(), b"here").unwrap();
    agent.flush(SOON).unwrap();
    let message = status.recv(SOON).unwrap();
    assert_eq!(site.agent_of(&message.subject), Some("a"));

    let rpc = agent.subscribe(&site.agent_rpc("a").unwrap(), 8).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                agent.respond(&rpc.recv(SOON).unwrap(), b"done").unwrap();
            }
        });
        for _ in 0..3 {
            let subject = site.agent_rpc("a").unwrap();
            assert_eq!(&*director.request(&subject, b"prepare", SOON).unwrap(), b"done");
        }
    });

    let lease = director.subscribe(&site.director_lease("t1").unwrap(), 8).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| director.respond(&lease.recv(SOON).unwrap(), b"granted").unwrap());
        let subject = site.director_lease("t1").unwrap();
        assert_eq!(&*agent.request(&subject, b"renew", SOON).unwrap(), b"granted");
    });

    let revision = director.create(LEASES, "a", b"t1").unwrap();
    assert_eq!(agent.get(LEASES, "a").unwrap().unwrap().revision, revision);
    director.put_object(PLANS, "0123abcd", &vec![7; 300_000]).unwrap();
    let plan = agent.get_object(PLANS, "0123abcd", 1 << 20).unwrap().unwrap();
    assert!(*plan == vec![7; 300_000]);
    director.put_object(PLANS, "t1.0123abcd.0", b"file").unwrap();
    assert_eq!(&*agent.get_object(PLANS, "t1.0123abcd.0", 10).unwrap().unwrap(), b"file");
    director.remove_object(PLANS, "0123abcd").unwrap();
    assert_eq!(agent.get_object(PLANS, "0123abcd", 1 << 20).unwrap(), None);
    agent.put_object(CAPTURES, "a.run1", b"pcap").unwrap();
    assert_eq!(&*director.get_object(CAPTURES, "a.run1", 10).unwrap().unwrap(), b"pcap");
    let result = site.result("t1", "a").unwrap();
    agent.append(RESULTS, &result, "t1-a-1", b"{}").unwrap();
    let pattern = site.test_results("t1").unwrap();
    assert_eq!(director.read(RESULTS, &pattern, 1, 10).unwrap()[0].subject, result);
    agent.flush(SOON).unwrap();
    director.flush(SOON).unwrap();
}

#[test]
fn an_agent_cannot_act_as_another_one() {
    let Some(bed) = Bed::open() else { return };
    let (agent, director) = (bed.connect("a"), bed.connect("d"));
    let site = &bed.site;
    let seen = director.subscribe(&site.all(), 64).unwrap();
    for subject in [
        site.agent_status("b").unwrap(),
        site.agent_event("b").unwrap(),
        site.agent_rpc("b").unwrap(),
        site.agent_rpc("a").unwrap(),
        site.result("t1", "b").unwrap(),
        "ws.other.agent.a.status".into(),
        "elsewhere".into(),
        "$SYS.REQ.SERVER.PING".into(),
    ] {
        agent.publish(&subject, b"forged").unwrap();
        let error = agent.flush(SOON).unwrap_err();
        assert!(error.to_string().contains(&subject), "{error}");
        assert_denied(&subject, Err::<(), _>(error));
        assert_denied(&subject, agent.request(&subject, b"forged", SOON));
    }
    for pattern in [
        site.agent_rpc("b").unwrap(),
        site.all(),
        site.all_agent_status(),
        site.director_lease("t1").unwrap(),
        ">".into(),
        "_INBOX.>".into(),
        "_INBOX.ws.lab.agent.b.>".into(),
        "$KV.>".into(),
    ] {
        assert_denied(&pattern, agent.subscribe(&pattern, 8));
    }
    assert_eq!(seen.recv(Duration::from_millis(200)), Err(RecvError::Timeout));
}

#[test]
fn an_agent_reads_and_writes_its_own_stores_alone() {
    let Some(bed) = Bed::open() else { return };
    let (agent, director) = (bed.connect("a"), bed.connect("d"));
    let site = &bed.site;
    director.create(LEASES, "b", b"").unwrap();
    director.put_object(CAPTURES, "b.run1", b"").unwrap();
    director.put_object(PLANS, "known", b"plan").unwrap();

    assert_denied("lease of b", agent.get(LEASES, "b"));
    assert_denied("all leases", agent.keys(LEASES));
    assert_denied("watch", agent.watch(LEASES, ">"));
    assert_denied("own lease", agent.create(LEASES, "a", b"mine"));
    assert_denied("own lease", agent.update(LEASES, "a", b"mine", Revision(1)));
    assert_denied("captures of b", agent.put_object(CAPTURES, "b.run2", b""));
    assert_denied("captures of b", agent.get_object(CAPTURES, "b.run1", 10));
    assert_denied("plans", agent.put_object(PLANS, "forged", b""));
    assert_denied("plans", agent.put_object(PLANS, "known", b"forged"));
    assert_denied("plans", agent.remove_object(PLANS, "known"));
    assert_denied("results", agent.read(RESULTS, ">", 1, 1));
    let other = site.result("t1", "b").unwrap();
    assert_denied("results of b", agent.append(RESULTS, &other, "1", b""));
    let bucket = BucketConfig { name: "mine".into(), time_to_live: None, bytes_max: 1 };
    assert_denied("bucket", agent.create_bucket(&bucket));

    // The API of JetStream itself.
    for request in [
        "$JS.API.INFO",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.INFO.OBJ_ws-lab-plans",
        "$JS.API.STREAM.DELETE.OBJ_ws-lab-plans",
        "$JS.API.STREAM.PURGE.OBJ_ws-lab-plans",
        "$JS.API.STREAM.MSG.GET.OBJ_ws-lab-plans",
        "$JS.API.STREAM.MSG.DELETE.OBJ_ws-lab-plans",
        "$JS.API.DIRECT.GET.OBJ_ws-lab-plans",
        "$JS.API.CONSUMER.CREATE.OBJ_ws-lab-plans",
        "$JS.API.CONSUMER.DURABLE.CREATE.OBJ_ws-lab-plans.c",
    ] {
        assert_denied(request, agent.request(request, b"{\"seq\":1}", SOON));
    }
    for request in [
        "$JS.API.STREAM.DELETE.OBJ_ws-lab-plans",
        "$JS.API.STREAM.PURGE.OBJ_ws-lab-plans",
        "$JS.API.CONSUMER.CREATE.OBJ_ws-lab-plans",
    ] {
        assert_denied(request, director.request(request, b"{}", SOON));
    }
    assert_eq!(&*agent.get_object(PLANS, "known", 10).unwrap().unwrap(), b"plan");
}

#[test]
fn an_answer_of_the_server_cannot_become_a_command() {
    let Some(bed) = Bed::open() else { return };
    let director = bed.connect("d");
    let site = &bed.site;
    let victim = bed.connect("b");
    let rpc = victim.subscribe(&site.agent_rpc("b").unwrap(), 8).unwrap();
    // Agent a, with a client of its own, stores a command, and has the server send it to b.
    director.put_object(PLANS, "x", b"start traffic").unwrap();
    let seed = bed.credentials[0].seed.clone();
    let url = format!("tls://127.0.0.1:{}", bed.server.port());
    let ca = bed.scratch.file("ca.pem");
    std::fs::write(&ca, &bed.cluster.authority).unwrap();
    let reply = site.agent_rpc("b").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = async_nats::ConnectOptions::with_nkey(seed).add_root_certificates(ca);
        let client = options.connect(url).await.unwrap();
        let request = "$JS.API.DIRECT.GET.OBJ_ws-lab-plans.ws.lab.object.plans.x.0";
        client.publish_with_reply(request, reply.clone(), "".into()).await.unwrap();
        // The director answers requests; the answer must not go to b.
        let lease = site.director_lease("t1").unwrap();
        client.publish_with_reply(lease, reply, "renew".into()).await.unwrap();
        client.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    });
    assert_eq!(rpc.recv(Duration::from_millis(100)), Err(RecvError::Timeout));

    let lease = director.subscribe(&site.director_lease("t2").unwrap(), 8).unwrap();
    runtime.block_on(async {
        let options = async_nats::ConnectOptions::with_nkey(bed.credentials[0].seed.clone())
            .add_root_certificates(bed.scratch.file("ca.pem"));
        let url = format!("tls://127.0.0.1:{}", bed.server.port());
        let client = options.connect(url).await.unwrap();
        let (lease, reply) = (site.director_lease("t2").unwrap(), site.agent_rpc("b").unwrap());
        client.publish_with_reply(lease, reply, "renew".into()).await.unwrap();
        client.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    let request = lease.recv(SOON).unwrap();
    let answer = director.respond(&request, b"start traffic");
    assert!(matches!(answer, Err(BusError::Invalid { .. })), "{answer:?}");
    assert_eq!(rpc.recv(Duration::from_millis(100)), Err(RecvError::Timeout));
}

#[test]
fn a_wrong_key_is_refused() {
    let Some(bed) = Bed::open() else { return };
    let mut forged = bed.credentials[0].clone();
    forged.seed = Key::generate().seed().unwrap();
    let error = NatsBus::connect(forged.options(None).unwrap()).unwrap_err();
    assert!(error.to_string().contains("does not know this key"), "{error}");
    assert_denied("wrong key", Err::<(), _>(error));
}

#[test]
fn no_key_is_refused() {
    let Some(bed) = Bed::open() else { return };
    let url = &bed.credentials[0].url;
    let options = wirestorm_bus::nats::NatsOptions::new(url, &bed.site, "agent", "a").unwrap();
    let options = options.with_authority(&bed.cluster.authority).unwrap();
    assert_denied("no key", NatsBus::connect(options));
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let Some(bed) = Bed::open() else { return };
    let listen = ([127, 0, 0, 1], 4222).into();
    let (other, _) = Cluster::new("lab", listen, &[]).unwrap();
    let mut credentials = bed.credentials[0].clone();
    credentials.authority = Some(other.authority);
    let error = NatsBus::connect(credentials.options(None).unwrap()).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn a_revoked_key_ends_at_once_and_others_stay() {
    let Some(mut bed) = Bed::open() else { return };
    let (revoked, other) = (bed.connect("a"), bed.connect("b"));
    let changes = other.state_changes();
    bed.cluster.revoke("a").unwrap();
    write_config(&bed.cluster, &bed.scratch);
    bed.server.reload().unwrap();
    let told = |state: ConnectionState| matches!(state, ConnectionState::Disconnected { reason, .. } if reason.contains("revoked"));
    wait_for("the key is not revoked", || told(revoked.state()));
    let error = revoked.publish(&bed.site.agent_status("a").unwrap(), b"").unwrap_err();
    assert!(error.to_string().contains("revoked"), "{error}");
    let error = NatsBus::connect(bed.credentials[0].options(None).unwrap()).unwrap_err();
    assert_denied("revoked key", Err::<(), _>(error));

    other.publish(&bed.site.agent_status("b").unwrap(), b"").unwrap();
    other.flush(SOON).unwrap();
    assert!(changes.recv(SOON).unwrap().is_connected());
    assert_eq!(changes.recv(Duration::from_millis(100)), Err(RecvError::Timeout));
}

#[test]
fn a_new_agent_connects_after_the_reload() {
    let Some(mut bed) = Bed::open() else { return };
    let new = bed.cluster.add(Role::Agent, "new").unwrap();
    let connect = || NatsBus::connect(new.options(None).unwrap());
    assert_denied("before the reload", connect());
    write_config(&bed.cluster, &bed.scratch);
    bed.server.reload().unwrap();
    wait_for("the server does not know the new key", || connect().is_ok());
}

#[test]
fn an_ipv6_address_works() {
    let Some(bed) = Bed::open_at(Ipv6Addr::LOCALHOST.into(), &[]) else { return };
    let ConnectionState::Connected(server) = bed.connect("a").state() else { panic!() };
    assert!(server.address.starts_with("tls://[::1]:"), "{server:?}");
}

#[test]
fn a_hundred_agents_of_one_process_answer_a_director() {
    let names: Vec<String> = (0..100).map(|number| format!("agent-{number}")).collect();
    let Some(bed) = Bed::open_at([127, 0, 0, 1].into(), &names) else { return };
    let director = bed.connect("d");
    let started = Instant::now();
    let agents: Vec<_> = names
        .iter()
        .map(|name| {
            let agent = bed.connect(name);
            let requests = agent.subscribe(&bed.site.agent_rpc(name).unwrap(), 8).unwrap();
            (agent, requests)
        })
        .collect();
    let connected = started.elapsed();
    std::thread::scope(|scope| {
        for (agent, requests) in &agents {
            scope.spawn(|| agent.respond(&requests.recv(SOON).unwrap(), b"ready").unwrap());
        }
        for name in &names {
            let subject = bed.site.agent_rpc(name).unwrap();
            assert_eq!(&*director.request(&subject, b"prepare", SOON).unwrap(), b"ready");
        }
    });
    println!(
        "100 agents: connected in {connected:?}, answers in {:?}",
        started.elapsed() - connected
    );
}
