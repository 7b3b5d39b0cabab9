//! A PTP slave whose clock has a known error, with ptp4l as master. A program of its own, since the
//! error holds for the whole process.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirestorm_base::time::Duration;
use wirestorm_control::clock;
use wirestorm_control::sync::TransportKind;
use wirestorm_control::sync::ptp::{LogInterval, PtpOptions, PtpRole, PtpSession, PtpStatus};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::{require_root, require_tool};

/// Kills a program at the end.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn slave_measures_the_error_of_its_clock() {
    if !require_root() || !require_tool("ptp4l") || !require_tool("ethtool") {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let file = scratch.file("ptp4l.conf");
    let text = format!(
        "[global]\ntime_stamping software\nfree_running 1\nuse_syslog 0\nuds_address {}\n\
         network_transport L2\nlogAnnounceInterval -2\nlogSyncInterval -3\n\
         logMinDelayReqInterval -3\n[veth1]\n",
        scratch.file("ptp4l").display()
    );
    fs::write(&file, text).unwrap();
    let mut master = lab.b.command("ptp4l");
    let master = master.arg("-f").arg(&file).stdin(Stdio::null()).spawn().unwrap();
    let _master = Program(master);

    // The clock is 3 ms ahead, and runs 20 ppm too fast.
    let start = Instant::now();
    clock::set_virtual("offset=3ms,drift=20ppm".parse().unwrap()).unwrap();
    let mut session = PtpSession::open(&PtpOptions {
        interface: lab.a.port().parse().unwrap(),
        transport: TransportKind::L2,
        domain: 0,
        role: PtpRole::Slave { unicast: None },
        interval: LogInterval::SECOND,
    })
    .unwrap();
    let (stop, second) = (AtomicBool::new(false), Duration::from_secs(1));
    let status = session.run(&stop, Some(Duration::from_secs(15)), second, |_| {}).unwrap();
    let truth = 3e6 + 20e-6 * start.elapsed().as_nanos() as f64;

    let PtpStatus::Slave { measurement: Some(measurement), .. } = &status else {
        panic!("nothing measured: {status:?}");
    };
    let estimate = measurement.estimate.unwrap_or_else(|| panic!("no estimate: {status:?}"));
    // In the second after the last measurement, the clock drifts by 20 us.
    let error = (estimate.offset_ns - truth).abs();
    assert!(error < estimate.bound_ns + 20_000.0, "{truth} {status:?}");
    assert!(error < 60_000.0, "{truth} {status:?}");
    assert!((estimate.drift_ppm - 20.0).abs() < 5.0, "{status:?}");
}
