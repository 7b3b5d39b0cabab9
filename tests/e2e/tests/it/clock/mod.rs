//! `wirestorm clock` with ptp4l of linuxptp and chronyd.

mod calibrate;
mod owping;
mod ptp;
pub(crate) mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use wirestorm_e2e::{Running, start_command, wirestorm};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::End;

/// Timeout of a condition.
const PATIENCE: Duration = Duration::from_secs(40);

/// A busy machine delays single time stamps by milliseconds, but not their median.
const OFFSET_NS_MAX: i64 = 50_000;

/// Waits until a condition holds.
#[track_caller]
fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Builds `wirestorm clock TASK ...` in the namespace of an end.
fn clock(end: &End, arguments: &[&str]) -> Command {
    let mut command = end.command(wirestorm());
    command.arg("clock").args(arguments);
    command
}

/// ptp4l with software time stamps that sets no clock.
pub(crate) struct Ptp4l {
    _process: Running,
    socket: PathBuf,
    scratch: Scratch,
}

impl Ptp4l {
    /// Starts it on an end. `network` is `L2`, `UDPv4` or `UDPv6`; `global` and `port` are lines of
    /// both sections of its configuration, and `tables` are sections before that of the port.
    fn start(end: &End, network: &str, settings: [&str; 3]) -> Self {
        Self::start_on(&[end], network, settings)
    }

    /// [`Self::start`] on several ends of one namespace: one clock with a port on each.
    pub(crate) fn start_on(
        ends: &[&End],
        network: &str,
        [global, port, tables]: [&str; 3],
    ) -> Self {
        let scratch = Scratch::new().unwrap();
        let (socket, file) = (scratch.file("ptp4l"), scratch.file("ptp4l.conf"));
        let section =
            |end: &&End| format!("[{}]\nnetwork_transport {network}\n{port}\n", end.interface());
        let ports: String = ends.iter().map(section).collect();
        let text = format!(
            "[global]\ntime_stamping software\nfree_running 1\nuse_syslog 0\n\
             uds_address {}\nlogAnnounceInterval -2\nlogSyncInterval -3\n\
             logMinDelayReqInterval -3\n{global}\n{tables}\n\
             {ports}",
            socket.display(),
        );
        fs::write(&file, text).unwrap();
        let mut command = ends[0].command("ptp4l");
        let process = start_command(command.arg("-f").arg(&file).args(["-m", "-q"]));
        until("the socket of ptp4l", || socket.exists().then_some(()));
        Self { _process: process, socket, scratch }
    }

    /// Returns the fields of a data set, as pmc prints them: name and value in turn.
    fn fields(&self, data_set: &str) -> Vec<String> {
        let output = Command::new("pmc")
            .args(["-u", "-b", "0", "-i"])
            .arg(self.scratch.file("pmc"))
            .arg("-s")
            .arg(&self.socket)
            .arg(format!("GET {data_set}"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Returns a field of a data set.
    fn field(&self, data_set: &str, name: &str) -> Option<String> {
        let fields = self.fields(data_set);
        let position = fields.iter().position(|field| field == name)?;
        fields.get(position + 1).cloned()
    }

    /// Returns the median of offsets from the master in ns, once it has one.
    fn offset_median(&self) -> i64 {
        until("the path delay of ptp4l", || {
            let delay = self.field("CURRENT_DATA_SET", "meanPathDelay")?;
            (delay.parse::<f64>().ok()? > 0.0).then_some(())
        });
        let mut offsets: Vec<i64> = (0..25)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(125));
                let offset = self.field("TIME_STATUS_NP", "master_offset");
                offset.expect("an answer of ptp4l").parse().expect("an offset")
            })
            .collect();
        *offsets.select_nth_unstable(12).1
    }
}

/// Returns the name of a path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
