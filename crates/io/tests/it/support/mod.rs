//! Network namespaces and veth pairs for the port tests.
//!
//! These namespaces have no name. They live as long as a descriptor refers to them, so they and
//! their interfaces disappear with the test, however it ends.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_io::namespace::{InterfaceName, Namespace};

/// Time limit of every wait in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Two namespaces joined by a veth pair: `left` in one and `right` in the other, both up. IPv6 is
/// off, so that only the test's frames are on the wire.
pub(crate) struct VethPair {
    _namespaces: [File; 2],
    pub(crate) left: InterfaceName,
    pub(crate) right: InterfaceName,
}

impl VethPair {
    /// One queue in each direction and an MTU of 1500 bytes. Without root, prints `skipped` and
    /// returns `None`.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[], 1500)
    }

    /// `options` are arguments of `ip link add` for both ends.
    pub(crate) fn with(options: &[&str], mtu: u32) -> Option<Self> {
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("skipped: needs root");
            return None;
        }
        let (left_file, left) = anonymous_namespace();
        let (right_file, right) = anonymous_namespace();
        let Namespace::Path(right_path) = &right else { unreachable!("made just now") };
        let peer = right_path.display().to_string();
        let mut add = vec!["link", "add", "left"];
        add.extend(options);
        add.extend(["type", "veth", "peer", "name", "right", "netns", &peer]);
        add.extend(options);
        run(&left, "ip", &add);
        for (namespace, name) in [(&left, "left"), (&right, "right")] {
            let setting = format!("net.ipv6.conf.{name}.disable_ipv6=1");
            run(namespace, "sysctl", &["-q", "-w", &setting]);
            run(namespace, "ip", &["link", "set", name, "mtu", &mtu.to_string(), "up"]);
        }
        Some(Self {
            _namespaces: [left_file, right_file],
            left: InterfaceName::new(left, "left").unwrap(),
            right: InterfaceName::new(right, "right").unwrap(),
        })
    }
}

/// Runs a command in a namespace and panics if it fails.
pub(crate) fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> String {
    let output = namespace
        .enter(|| Command::new(program).args(arguments).stdin(Stdio::null()).output())
        .unwrap()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl VethPair {
    /// Gives the ends the addresses 10.9.8.1 (left) and 10.9.8.2 (right).
    pub(crate) fn add_addresses(&self) {
        for (end, address) in [(&self.left, "10.9.8.1/24"), (&self.right, "10.9.8.2/24")] {
            run(&end.namespace, "ip", &["address", "add", address, "dev", end.name()]);
        }
    }

    /// Adds two VLAN tags to all frames that the kernels at both ends send, and removes them on
    /// receive.
    pub(crate) fn join_two_vlans(&self) {
        const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/src/net/vlans.bpf.c");
        let folder = tempfile::tempdir().unwrap();
        let object = folder.path().join("two_vlans.o").display().to_string();
        let headers = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        for end in [&self.left, &self.right] {
            let run = |line: &str| {
                let mut words = line.split(' ');
                let program = words.next().unwrap();
                run(&end.namespace, program, &words.collect::<Vec<_>>());
            };
            run(&format!(
                "clang -O2 -g -target bpf -DOUTER=5 -DINNER=7 -idirafter {headers} -c {SOURCE} -o {object}"
            ));
            let add = format!("tc filter add dev {}", end.name());
            run(&format!("tc qdisc add dev {} clsact", end.name()));
            run(&format!("{add} egress bpf da obj {object} sec tc/push"));
            run(&format!("{add} ingress bpf da obj {object} sec tc/pop"));
        }
    }

    /// Selects whether the kernel passes the service VLAN tag beside the frame or inside it.
    pub(crate) fn set_stag_offload(&self, is_beside: bool) {
        let how = if is_beside { "on" } else { "off" };
        for end in [&self.left, &self.right] {
            let arguments = ["-K", end.name(), "tx-vlan-stag-hw-insert", how];
            run(&end.namespace, "ethtool", &arguments);
        }
    }
}

/// Pings once; returns whether a reply arrives.
pub(crate) fn ping(from: &Namespace, arguments: &[&str]) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-c", "1", "-W", "1"]).args(arguments).stdout(Stdio::null());
    from.enter(|| ping.status()).unwrap().expect("ping").success()
}

/// Creates a namespace that lives as long as the returned file.
fn anonymous_namespace() -> (File, Namespace) {
    let file = std::thread::spawn(|| {
        // SAFETY: takes an integer only. It changes the namespace of this thread, which ends right
        // after.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "unshare: {}", std::io::Error::last_os_error());
        File::open("/proc/thread-self/ns/net").unwrap()
    })
    .join()
    .unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    (file, Namespace::Path(path.into()))
}

/// Polls `question` until it returns a value.
///
/// # Panics
/// Panics if there is none within [`PATIENCE`].
pub(crate) fn eventually<T>(what: &str, mut question: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::yield_now();
    }
}

/// Checks both halves of a port: they report an interface that is down. A frame that `send` queues
/// stays queued and leaves once the interface is up. Returns the frame that arrives then.
pub(crate) fn check_link_down<T: Transmit, R: Receive>(
    pair: &VethPair,
    (transmit, receiver): (&mut T, &mut R),
    send: impl Fn(&mut T),
) -> Vec<u8> {
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    send(transmit);
    assert_eq!(transmit.flush(), Err(pair.left.down_error()));
    assert_eq!(transmit.in_flight(), 1, "the frame is kept");
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    let mut batch = Vec::new();
    let error =
        eventually("the receiving half to notice", || receiver.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.down_error());
    run(&pair.right.namespace, "ip", &["link", "set", "right", "up"]);
    run(&pair.left.namespace, "ip", &["link", "set", "left", "up"]);
    eventually("the frame to leave", || {
        // A socket that was down reports the error once more.
        let _ = transmit.flush();
        (transmit.in_flight() == 0).then_some(())
    });
    eventually("the frame to arrive", || {
        let _ = receiver.receive(8, &mut batch);
        batch.pop().map(|received| {
            let frame = receiver.frame(&received).to_vec();
            receiver.release(received);
            frame
        })
    })
}

/// Checks both halves of a port: they report a removed interface, and a frame that `send` queues
/// counts as unsent.
pub(crate) fn check_removed_interface<T: Transmit, R: Receive>(
    pair: &VethPair,
    (transmit, receiver): (&mut T, &mut R),
    send: impl Fn(&mut T),
) {
    run(&pair.left.namespace, "ip", &["link", "delete", "left"]);
    send(transmit);
    assert_eq!(transmit.flush(), Err(pair.left.removed_error()));
    transmit.abort();
    assert_eq!((transmit.in_flight(), transmit.transmitted().unsent), (0, 1));
    let mut batch = Vec::new();
    let error =
        eventually("the receiving half to notice", || receiver.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.removed_error());
}
