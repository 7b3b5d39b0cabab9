//! Network namespaces and veth pairs for the tests of the ports.
//!
//! A namespace made here has no name: it lives as long as a descriptor refers to it, so it and
//! the interfaces in it go away with the test, however that ends.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_io::namespace::{InterfaceName, Namespace};

/// How long anything in these tests may take at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Two namespaces joined by a veth pair, `left` in one and `right` in the other, both up,
/// without IPv6, so that no frame is on the wire but the test's.
pub(crate) struct VethPair {
    _namespaces: [File; 2],
    pub(crate) left: InterfaceName,
    pub(crate) right: InterfaceName,
}

impl VethPair {
    /// One queue each way, an MTU of 1500 bytes. `None`, and a word about it, without root.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[], 1500)
    }

    /// `options` are those of `ip link add`, for both ends.
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

/// Runs a command inside a namespace and expects it to succeed.
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

    /// Puts what the kernels at both ends send into two VLANs, and takes what arrives out of them.
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

    /// Whether the kernel hands the tag of a service VLAN over beside the frame, or in its bytes.
    pub(crate) fn hand_tags_over_beside(&self, is_beside: bool) {
        let how = if is_beside { "on" } else { "off" };
        for end in [&self.left, &self.right] {
            let arguments = ["-K", end.name(), "tx-vlan-stag-hw-insert", how];
            run(&end.namespace, "ethtool", &arguments);
        }
    }
}

/// Whether the answer to a ping comes.
pub(crate) fn ping(from: &Namespace, arguments: &[&str]) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-c", "1", "-W", "1"]).args(arguments).stdout(Stdio::null());
    from.enter(|| ping.status()).unwrap().expect("ping").success()
}

/// A namespace that lives as long as the file.
fn anonymous_namespace() -> (File, Namespace) {
    let file = std::thread::spawn(|| {
        // SAFETY: takes an integer only; it changes this thread's namespace, and this thread
        // ends right after.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "unshare: {}", std::io::Error::last_os_error());
        File::open("/proc/thread-self/ns/net").unwrap()
    })
    .join()
    .unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    (file, Namespace::Path(path.into()))
}

/// Asks again and again until there is an answer.
///
/// # Panics
/// Where there is none in time.
pub(crate) fn eventually<T>(what: &str, mut question: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Holds both halves of a port on a pair to it: an interface that is down is told of as that, what
/// `send` has sent stays, and leaves when it is up again. Returns the frame that arrives then.
pub(crate) fn holds_while_down<T: Transmit, R: Receive>(
    pair: &VethPair,
    (transmit, receiver): (&mut T, &mut R),
    send: impl Fn(&mut T),
) -> Vec<u8> {
    run(&pair.left.namespace, "ip", &["link", "set", "left", "down"]);
    send(transmit);
    assert_eq!(transmit.flush(), Err(pair.left.went_down()));
    assert_eq!(transmit.in_flight(), 1, "the frame is kept");
    run(&pair.right.namespace, "ip", &["link", "set", "right", "down"]);
    let mut batch = Vec::new();
    let error =
        eventually("the receiving half to notice", || receiver.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.went_down());
    run(&pair.right.namespace, "ip", &["link", "set", "right", "up"]);
    run(&pair.left.namespace, "ip", &["link", "set", "left", "up"]);
    eventually("the frame to leave", || {
        // The error is reported once more by a socket that was down.
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

/// Holds both halves of a port on a pair to it: an interface that vanishes is told of as that, and
/// what `send` has sent counts as unsent.
pub(crate) fn tells_that_it_is_gone<T: Transmit, R: Receive>(
    pair: &VethPair,
    (transmit, receiver): (&mut T, &mut R),
    send: impl Fn(&mut T),
) {
    run(&pair.left.namespace, "ip", &["link", "delete", "left"]);
    send(transmit);
    assert_eq!(transmit.flush(), Err(pair.left.is_gone()));
    transmit.abort();
    assert_eq!((transmit.in_flight(), transmit.transmitted().unsent), (0, 1));
    let mut batch = Vec::new();
    let error =
        eventually("the receiving half to notice", || receiver.receive(8, &mut batch).err());
    assert_eq!(error, pair.right.is_gone());
}
