//! Rules for the verdict on a run, the same for all kinds of runs.

use wirestorm_base::count::pluralise;

use super::{
    DeviceReport, FlowReport, ImpairmentReport, Outcome, PortReport, RunResult, TemplateReport,
    TransmitReport, TunnelsReport, Verdict,
};

impl Verdict {
    /// Returns the verdict on `result`. All other fields of `result` must be set.
    pub fn of(result: &RunResult) -> Self {
        if !result.errors.is_empty() {
            return Self { outcome: Outcome::Failed, reasons: result.errors.clone() };
        }
        let mut judge = VerdictReasons { result, reasons: Vec::new() };
        judge.achieved();
        let is_lost_by_stop = judge.is_lost_by_stop();
        result.flows.iter().for_each(|flow| judge.flow(flow, is_lost_by_stop));
        result.ports.iter().for_each(|port| judge.port(port));
        let devices = result.device_runs.iter().flat_map(|run| {
            let stopped = run.stopped;
            run.devices.iter().map(move |device| (device, stopped))
        });
        devices.for_each(|(device, stopped)| judge.device(device, stopped));
        let reasons = judge.reasons;
        let outcome = match (reasons.is_empty(), result.interrupted) {
            (false, _) => Outcome::FellShort,
            (true, true) => Outcome::Interrupted,
            (true, false) => Outcome::Met,
        };
        let reasons = match outcome {
            Outcome::Interrupted => vec!["the run was stopped before its end".to_owned()],
            _ => reasons,
        };
        Self { outcome, reasons }
    }
}

/// Collects the reasons why a run fell short.
struct VerdictReasons<'a> {
    result: &'a RunResult,
    reasons: Vec<String>,
}

impl VerdictReasons<'_> {
    /// Adds a reason with a count, unless the count is 0.
    fn count(&mut self, place: &str, count: u64, [one, many]: [&str; 2]) {
        if count > 0 {
            self.reasons.push(format!("{place}: {}", pluralise(count, one, many)));
        }
    }

    /// Adds a reason if the rate error exceeds the tolerance. Rates of interrupted runs are not
    /// judged, because the moment of the stop affects them.
    fn rate(&mut self, place: &str, error_ppm: Option<f64>) {
        if self.result.interrupted {
            return;
        }
        let tolerance = self.result.target.tolerance_ppm;
        if let Some(ppm) = error_ppm.filter(|ppm| ppm.abs() > tolerance) {
            let percent = ppm / 1e4;
            self.reasons.push(format!(
                "{place}: the rate was {percent:+.2} % off its target (tolerance {} %)",
                tolerance / 1e4
            ));
        }
    }

    fn achieved(&mut self) {
        self.rate("all ports", self.result.achieved.rate_error_ppm);
    }

    /// Returns whether the stop explains the lost frames. Ports drop their queued frames at a stop,
    /// but flows count those frames as sent.
    fn is_lost_by_stop(&self) -> bool {
        let lost: u64 = self.result.flows.iter().filter_map(|flow| flow.lost).sum();
        let sent = self.result.ports.iter().filter_map(|port| port.tx.as_ref());
        self.result.interrupted && lost <= sent.map(|tx| tx.unsent).sum()
    }

    fn flow(&mut self, flow: &FlowReport, is_lost_by_stop: bool) {
        let place = format!("flow {}", flow.name);
        self.rate(&place, flow.rate_error_ppm);
        if !is_lost_by_stop {
            self.count(&place, flow.lost.unwrap_or(0), ["frame lost", "frames lost"]);
        }
    }

    fn port(&mut self, port: &PortReport) {
        let place = format!("port {}", port.name);
        if let Some(tx) = &port.tx {
            self.transmit(&place, tx, self.result.interrupted);
        }
        if let Some(rx) = &port.rx {
            self.count(&place, rx.lost.unwrap_or(0), ["frame lost", "frames lost"]);
            // A receiver that only counts may drop frames without a loss in the device under test.
            // Clients, servers and impaired links lose the frames that they do not receive.
            if port.connections.is_some() || port.impairment.is_some() {
                self.count(
                    &place,
                    rx.dropped,
                    ["frame dropped: receive buffer full", "frames dropped: receive buffer full"],
                );
            }
        }
        if let Some(impairment) = &port.impairment {
            self.impairment(&place, impairment);
        }
        if let Some(TunnelsReport { no_tunnel, too_long, .. }) = port.tunnels {
            self.count(
                &place,
                no_tunnel + too_long,
                ["frame dropped: no usable tunnel", "frames dropped: no usable tunnel"],
            );
        }
        self.count(&place, port.outages, ["outage of the interface", "outages of the interface"]);
        if let Some(connections) = &port.connections {
            let flows = &connections.flows;
            self.count(
                &place,
                flows.failed + flows.time_wait_failed,
                ["flow failed", "flows failed"],
            );
            let not_started =
                flows.flow_table_full + flows.no_free_tuple + flows.late + flows.no_match;
            self.count(
                &place,
                not_started,
                ["flow not started or not accepted", "flows not started or not accepted"],
            );
        }
        for template in port.templates.iter().filter(|template| never_connected(template)) {
            let name = &template.name;
            self.reasons.push(format!("template {name}: no connection was established"));
        }
    }

    fn transmit(&mut self, place: &str, tx: &TransmitReport, was_stopped: bool) {
        self.count(place, tx.failed, ["frame failed", "frames failed"]);
        // A stop drops queued frames on purpose.
        if !was_stopped {
            self.count(place, tx.unsent, ["frame unsent", "frames unsent"]);
        }
    }

    fn impairment(&mut self, place: &str, impairment: &ImpairmentReport) {
        self.count(
            place,
            impairment.delay_buffer_full,
            ["frame dropped: delay buffer full", "frames dropped: delay buffer full"],
        );
        self.count(
            place,
            impairment.invalid_length,
            [
                "frame that the other interface cannot send",
                "frames that the other interface cannot send",
            ],
        );
    }

    fn device(&mut self, device: &DeviceReport, was_stopped: bool) {
        let place = format!("device {}", device.name);
        self.rate(&place, device.rate_error_ppm);
        self.transmit(&place, &device.tx, was_stopped);
    }
}

/// Returns whether the clients of a template sent SYNs and established no connection.
fn never_connected(template: &TemplateReport) -> bool {
    let connects = template.tcp.get("connects").copied().unwrap_or(0);
    let waiting = template.flows.get("syn_sent").copied().unwrap_or(0);
    template.side == "client" && waiting > 0 && connects == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{DeviceRun, ReceiveReport};

    fn verdict(change: impl FnOnce(&mut RunResult)) -> (Outcome, Vec<String>) {
        let mut result = RunResult::default();
        result.target.tolerance_ppm = 1e4;
        let tx = TransmitReport { packets: 10, ..TransmitReport::default() };
        let rx = ReceiveReport { packets: 10, lost: Some(0), ..ReceiveReport::default() };
        let port =
            PortReport { name: "a".into(), tx: Some(tx), rx: Some(rx), ..Default::default() };
        result.ports.push(port);
        change(&mut result);
        let Verdict { outcome, reasons } = Verdict::of(&result);
        (outcome, reasons)
    }

    fn tx(result: &mut RunResult) -> &mut TransmitReport {
        result.ports[0].tx.as_mut().unwrap()
    }

    #[test]
    fn complete_run_meets_its_target() {
        assert_eq!(verdict(|_| ()), (Outcome::Met, Vec::new()));
        let near = verdict(|it| it.achieved.rate_error_ppm = Some(-9_999.0));
        assert_eq!(near.0, Outcome::Met);
    }

    #[test]
    fn errors_take_precedence_over_other_reasons() {
        let (outcome, reasons) = verdict(|it| {
            it.errors.push("eth1 is gone".into());
            it.interrupted = true;
            tx(it).failed = 1;
        });
        assert_eq!((outcome, reasons), (Outcome::Failed, vec!["eth1 is gone".to_owned()]));
    }

    #[test]
    fn each_kind_of_shortfall_gives_a_reason() {
        let reasons = |change: fn(&mut RunResult)| {
            let (outcome, reasons) = verdict(change);
            assert_eq!(outcome, Outcome::FellShort);
            reasons.join("; ")
        };
        let off = reasons(|it| it.achieved.rate_error_ppm = Some(-714_657.4));
        assert_eq!(off, "all ports: the rate was -71.47 % off its target (tolerance 1 %)");
        assert_eq!(reasons(|it| tx(it).failed = 3), "port a: 3 frames failed");
        assert_eq!(reasons(|it| tx(it).unsent = 3), "port a: 3 frames unsent");
        let lost = reasons(|it| it.ports[0].rx.as_mut().unwrap().lost = Some(2));
        assert_eq!(lost, "port a: 2 frames lost");
        assert_eq!(reasons(|it| it.ports[0].outages = 1), "port a: 1 outage of the interface");
        let flow = FlowReport { name: "f".into(), lost: Some(4), ..FlowReport::default() };
        let (_, reasons) = verdict(|it| it.flows.push(flow));
        assert_eq!(reasons, ["flow f: 4 frames lost"]);
        let template = TemplateReport {
            name: "page".into(),
            side: "client".into(),
            flows: [("syn_sent".into(), 5)].into(),
            ..TemplateReport::default()
        };
        let (_, reasons) = verdict(|it| it.ports[0].templates.push(template));
        assert_eq!(reasons, ["template page: no connection was established"]);
    }

    #[test]
    fn interruption_excuses_queued_frames_but_not_failed_frames() {
        let queued = verdict(|it| {
            it.interrupted = true;
            tx(it).unsent = 100;
        });
        assert_eq!(queued.0, Outcome::Interrupted);
        assert_eq!(Outcome::Interrupted.exit_status(), 130);
        let lost = |frames| {
            verdict(move |it| {
                it.interrupted = true;
                tx(it).unsent = 100;
                it.flows.push(FlowReport { lost: Some(frames), ..FlowReport::default() });
            })
        };
        assert_eq!(lost(100).0, Outcome::Interrupted);
        assert_eq!(lost(101).0, Outcome::FellShort);
        let failed = verdict(|it| {
            it.interrupted = true;
            tx(it).failed = 1;
        });
        assert_eq!(failed.0, Outcome::FellShort);
    }

    #[test]
    fn devices_stopped_by_a_script_may_leave_frames_unsent() {
        let run = |stopped| {
            let tx = TransmitReport { unsent: 5, ..TransmitReport::default() };
            let device = DeviceReport { name: "eth0@1".into(), tx, ..DeviceReport::default() };
            verdict(|it| it.device_runs.push(DeviceRun { devices: vec![device], stopped })).0
        };
        assert_eq!((run(true), run(false)), (Outcome::Met, Outcome::FellShort));
    }
}
