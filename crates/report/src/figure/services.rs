//! Figures of non-drop rates, Ethernet services and RFC 9411.

use wirestorm_method::connections::LoadUnit;
use wirestorm_method::method::Method;
use wirestorm_method::ndr::{Limit, NdrFindings, is_connections};
use wirestorm_method::rate::line_rate;
use wirestorm_method::rfc9411::{Kpis, Rfc9411Findings, Test, TimeSummary};
use wirestorm_method::y1564::Y1564Findings;

use super::*;

impl Figures {
    pub(super) fn ndr(&mut self, findings: &NdrFindings, method: &Method) {
        for row in &findings.rows {
            let size = row.frame_size.map(|size| size.to_string());
            let text = match &size {
                Some(size) => format!("{size} bytes, {}", row.traffic),
                None => row.traffic.clone(),
            };
            let labels: Vec<&str> = [&*row.traffic].into_iter().chain(size.as_deref()).collect();
            let note = (row.limit == Some(Limit::Tester)).then_some("limited by the tester");
            let place = Place { note, ..Place::new(text, &labels) };
            let load = row.best.map_or(0.0, |best| best.load as f64);
            let rate = if is_connections(&row.traffic) { &CONNECTIONS_PER_S } else { &THROUGHPUT };
            self.add(&place, rate, load);
            if let (Some(size), Method::Ndr(method)) = (row.frame_size, method) {
                let bits = |overhead: u32| load * f64::from(size + overhead) * 8.0;
                self.add(&place, &THROUGHPUT_L1, bits(20));
                self.add(&place, &THROUGHPUT_L2, bits(0));
                let percent = load * 100.0 / line_rate(size, method.link_bps).max(1) as f64;
                self.add(&place, &THROUGHPUT_PERCENT, percent);
            }
            let Some(best) = row.best else { continue };
            self.add(&place, &LOSS, best.drop_percent);
            self.add_some(&place, &MEAN_DELAY, best.latency_mean_ns);
            self.add_some(&place, &MAX_DELAY, best.latency_max_ns.map(|ns| ns as f64));
        }
    }

    pub(super) fn y1564(&mut self, findings: &Y1564Findings) {
        let signed = |value: Option<i64>| value.map(|ns| ns as f64);
        for row in &findings.rows {
            let (test, size) = (row.test.name(), row.frame_size.to_string());
            let step = format!("{:.0}", row.load_percent);
            let text = format!("{}, {test} at {step} %, {size} bytes", row.service);
            for it in row.results() {
                let mut labels = vec![&*row.service, test, &*step, &*size];
                let mut text = text.clone();
                if !it.direction.is_empty() {
                    labels.push(&it.direction);
                    text.push_str(&format!(", {}", it.direction));
                }
                let place = Place::new(text, &labels);
                self.add(&place, &INFORMATION_RATE, it.ir_bps);
                self.add(&place, &LOSS, it.flr * 100.0);
                self.add(&place, &LOST, it.offered.saturating_sub(it.received) as f64);
                self.add_some(&place, &MIN_DELAY, signed(it.ftd_min_ns));
                self.add_some(&place, &MEAN_DELAY, it.ftd_mean_ns);
                self.add_some(&place, &MAX_DELAY, signed(it.ftd_max_ns));
                self.add_some(&place, &PDV, signed(it.fdv_ns));
                self.add_some(&place, &AVAILABILITY, it.availability.map(|part| part * 100.0));
            }
        }
    }

    pub(super) fn rfc9411(&mut self, findings: &Rfc9411Findings) {
        for row in &findings.rows {
            let mut labels = vec![&*row.section, row.test.name(), &*row.traffic];
            // The latency test has the same traffic at two loads.
            if row.test == Test::Latency {
                labels.push(row.unit.name());
            }
            let note = match (row.is_valid(), row.is_tester_limited) {
                (false, _) => Some("no valid load"),
                (true, true) => Some("limited by the tester"),
                (true, false) => None,
            };
            let place = Place { note, ..Place::new(row.subject(), &labels) };
            let Some(kpis) = &row.kpis else {
                // A test without a valid load has no result above 0.
                let metric = match row.unit {
                    LoadUnit::ConnectionsPerSecond => &CONNECTIONS_PER_S,
                    LoadUnit::ConcurrentConnections => &CONCURRENT,
                    LoadUnit::BitsPerSecond => &THROUGHPUT_L2,
                };
                self.add(&place, metric, 0.0);
                continue;
            };
            self.kpis(&place, kpis);
        }
    }

    fn kpis(&mut self, place: &Place<'_>, kpis: &Kpis) {
        self.add(place, &CONNECTIONS_PER_S, kpis.connections_per_s.mean);
        self.add(place, &TRANSACTIONS_PER_S, kpis.transactions_per_s.mean);
        self.add(place, &CONCURRENT, kpis.concurrent.mean);
        self.add(place, &THROUGHPUT_L2, kpis.throughput_bps.mean);
        let mut times = |metrics: [&'static Metric; 3], times: Option<TimeSummary>| {
            let Some(times) = times else { return };
            let [mean, median, p99] = metrics;
            self.add(place, mean, times.mean_ns);
            self.add(place, median, times.p50_ns as f64);
            self.add(place, p99, times.p99_ns as f64);
        };
        times([&FIRST_BYTE_MEAN, &FIRST_BYTE_P50, &FIRST_BYTE_P99], kpis.time_to_first_byte);
        times([&LAST_BYTE_MEAN, &LAST_BYTE_P50, &LAST_BYTE_P99], kpis.time_to_last_byte);
        if let Some(response) = kpis.response_time {
            self.add(place, &TRANSACTION_P50, response.p50_ns as f64);
            self.add(place, &TRANSACTION_P99, response.p99_ns as f64);
        }
    }
}
