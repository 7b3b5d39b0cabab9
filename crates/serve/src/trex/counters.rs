//! Counters and rates of ports, and the use of the CPUs.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::parameters::Parameters;
use super::port::Sent;
use super::rpc::Answer;
use super::{SLOW_INTERVAL, State, Trex, astf};

/// Bytes of the FCS, which TRex counts.
pub(super) const FCS: u64 = 4;
/// Bytes that an interface may leave out of its counters: the Ethernet header.
const HEADER: u64 = 14;
/// Number of values of the CPU history, one a second.
const HISTORY: usize = 20;
/// Clock ticks a second in `/proc/self/stat`.
const TICKS_PER_S: f64 = 100.0;
/// Maximum number of counters with a rate. All samples are dropped beyond it.
const RATES_MAX: usize = 200_000;

/// A counter with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Port {
        port: usize,
        is_received: bool,
        is_bytes: bool,
    },
    Group {
        group: u32,
        port: usize,
        is_received: bool,
        is_bytes: bool,
    },
    /// A counter of a side of a stateful run.
    Stateful {
        number: u32,
        is_server: bool,
        which: u8,
    },
    Cpu,
}

/// Growth rates of counters over one to two seconds: those of runs are up to 100 ms old.
#[derive(Default)]
pub(super) struct Rates {
    samples: BTreeMap<Counted, Samples>,
    cpu: VecDeque<u64>,
    cpu_noted: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Samples {
    older: (Instant, f64),
    newer: (Instant, f64),
    rate: f64,
}

impl Rates {
    /// Notes the value of a counter and returns its rate per second.
    pub(super) fn note(&mut self, counted: Counted, value: f64, now: Instant) -> f64 {
        if self.samples.len() > RATES_MAX {
            self.samples.clear();
        }
        let first = Samples { older: (now, value), newer: (now, value), rate: 0.0 };
        let samples = self.samples.entry(counted).or_insert(first);
        if now.duration_since(samples.newer.0) >= SLOW_INTERVAL.mul_f64(1.8) {
            samples.older = samples.newer;
            samples.newer = (now, value);
        }
        let seconds = now.duration_since(samples.older.0).as_secs_f64();
        if seconds > 0.1 {
            samples.rate = ((value - samples.older.1) / seconds).max(0.0);
        }
        samples.rate
    }
}

/// Counters of a port, with FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PortCounters {
    pub(super) sent: [u64; 2],
    pub(super) received: [u64; 2],
    pub(super) send_errors: u64,
    pub(super) receive_errors: u64,
    /// Frames and bits per second.
    pub(super) send_rate: [f64; 2],
    pub(super) receive_rate: [f64; 2],
}

impl Trex {
    /// Returns what a port has sent.
    pub(super) fn sent(&self, state: &State, number: usize) -> Sent {
        let port = &state.ports[number];
        let mut sent = port.sent;
        for run in port.runs() {
            sent.add(run.sent());
        }
        for run in state.astf.runs() {
            sent.add(astf::sent(run, &self.interfaces[number].name.to_string()));
        }
        sent.add(self.interfaces[number].pushed.load());
        sent
    }

    /// Returns the counters of a port.
    pub(super) fn port_counters(&self, state: &mut State, number: usize) -> PortCounters {
        let kernel = self.interfaces[number].counters();
        let sent = self.sent(state, number);
        let port = &state.ports[number];
        let with_fcs = |frames: u64, bytes: u64| [frames, bytes + FCS * frames];
        let received =
            with_fcs(kernel.receive_packets, kernel.receive_bytes + port.uncounted_bytes);
        let is_active = port.runs().next().is_some()
            || state.astf.runs().next().is_some()
            || state.astf.latency.is_active();
        let sent_total = with_fcs(sent.frames, sent.bytes);
        let now = Instant::now();
        let mut rate = |is_received: bool, [frames, bytes]: [u64; 2]| {
            let key = |is_bytes| Counted::Port { port: number, is_received, is_bytes };
            let pps = state.rates.note(key(false), frames as f64, now);
            [pps, 8.0 * state.rates.note(key(true), bytes as f64, now)]
        };
        let receive_rate = rate(true, received);
        let send_rate = rate(false, sent_total);
        PortCounters {
            sent: sent_total,
            received,
            send_errors: sent.failed,
            receive_errors: kernel.receive_errors + kernel.receive_missed,
            send_rate: if is_active { send_rate } else { [0.0; 2] },
            receive_rate,
        }
    }

    /// Notes the counters before traffic starts, if none is running.
    pub(super) fn begin_comparing(&self, number: usize) {
        let mut state = self.state();
        for number in [number, number ^ 1] {
            if number < self.interfaces.len() && self.is_idle(&state, number) {
                state.ports[number].compared = Some(self.bytes_to_compare(&state, number));
            }
        }
    }

    /// Returns whether neither a port nor its neighbour sends.
    fn is_idle(&self, state: &State, number: usize) -> bool {
        if state.astf.runs().next().is_some() {
            return false;
        }
        let idle =
            |port: Option<&super::Port>| port.is_none_or(|port| port.runs().next().is_none());
        idle(state.ports.get(number)) && idle(state.ports.get(number ^ 1))
    }

    fn bytes_to_compare(&self, state: &State, number: usize) -> [u64; 4] {
        let kernel = self.interfaces[number].counters();
        let other = match number ^ 1 < self.interfaces.len() {
            true => self.sent(state, number ^ 1),
            false => Sent::default(),
        };
        [kernel.receive_packets, kernel.receive_bytes, other.frames, other.bytes]
    }

    /// Adds the bytes that the kernel did not count. At a veth, it counts frames with or without
    /// their Ethernet headers, depending on their path.
    pub(super) fn compare_bytes(&self, state: &mut State, number: usize) {
        if !self.is_idle(state, number) {
            return;
        }
        let now = self.bytes_to_compare(state, number);
        let Some(before) = state.ports[number].compared.replace(now) else { return };
        let delta = |at: usize| now[at].saturating_sub(before[at]);
        let (frames, bytes, sent_frames, sent_bytes) = (delta(0), delta(1), delta(2), delta(3));
        // Most of the frames come from the neighbour, else their lengths say nothing.
        if sent_frames == 0 || frames.abs_diff(sent_frames) * 10 > frames {
            return;
        }
        let expected = u128::from(frames) * u128::from(sent_bytes) / u128::from(sent_frames);
        let missing = u64::try_from(expected).unwrap_or(u64::MAX).saturating_sub(bytes);
        if missing <= HEADER * frames {
            state.ports[number].uncounted_bytes += missing;
        }
    }

    /// Notes all counters, for the rates that clients ask for later.
    pub(super) fn sample(&self) {
        {
            let mut state = self.state();
            for number in 0..self.interfaces.len() {
                self.port_counters(&mut state, number);
            }
            let now = Instant::now();
            let busy = cpu_percent(&mut state.rates, now);
            let rates = &mut state.rates;
            let is_due = |at: Instant| now.duration_since(at) >= Duration::from_secs(1);
            if rates.cpu_noted.is_none_or(is_due) {
                rates.cpu_noted = Some(now);
                rates.cpu.truncate(HISTORY - 1);
                rates.cpu.push_front(busy.round() as u64);
            }
        }
        self.sample_groups();
        self.sample_profiles();
    }
}

/// Returns the use of all CPUs by this process in percent.
fn cpu_percent(rates: &mut Rates, now: Instant) -> f64 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get()) as f64;
    (100.0 * rates.note(Counted::Cpu, cpu_s(), now) / cpus).min(100.0)
}

/// Returns the CPU time of this process in seconds.
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

pub(super) fn get_port_stats(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let mut state = trex.state();
    let counters = trex.port_counters(&mut state, port);
    let cpu = cpu_percent(&mut state.rates, Instant::now());
    Ok(json!({
        "opackets": counters.sent[0],
        "obytes": counters.sent[1],
        "ipackets": counters.received[0],
        "ibytes": counters.received[1],
        "ierrors": counters.receive_errors,
        "oerrors": counters.send_errors,
        "m_total_tx_bps": counters.send_rate[1],
        "m_total_tx_pps": counters.send_rate[0],
        "m_total_rx_bps": counters.receive_rate[1],
        "m_total_rx_pps": counters.receive_rate[0],
        "m_cpu_util": cpu,
    }))
}

/// Counters that are zero for streams.
const ZERO: [&str; 13] = [
    "m_total_alloc_error",
    "m_total_queue_full",
    "m_total_queue_drop",
    "m_total_nat_time_out",
    "m_total_nat_time_out_wait_ack",
    "m_total_nat_no_fid",
    "m_total_nat_active",
    "m_total_nat_syn_wait",
    "m_total_nat_open",
    "m_total_nat_learn_error",
    "m_rx_core_pps",
    "m_rx_cpu_util",
    "m_socket_util",
];
const ZERO_FLOWS: [&str; 9] = [
    "m_tx_cps",
    "m_tx_expected_cps",
    "m_tx_expected_pps",
    "m_tx_expected_bps",
    "m_active_flows",
    "m_open_flows",
    "m_total_clients",
    "m_total_servers",
    "m_active_sockets",
];

pub(super) fn get_global_stats(trex: &Trex, _: &Parameters<'_>) -> Answer {
    let mut state = trex.state();
    let mut total = PortCounters::default();
    for number in 0..trex.interfaces.len() {
        let port = trex.port_counters(&mut state, number);
        for at in 0..2 {
            total.sent[at] += port.sent[at];
            total.received[at] += port.received[at];
            total.send_rate[at] += port.send_rate[at];
            total.receive_rate[at] += port.receive_rate[at];
        }
    }
    let cpu = cpu_percent(&mut state.rates, Instant::now());
    drop(state);
    let mut document: Map<String, Value> =
        ZERO.iter().map(|name| ((*name).to_owned(), 0.into())).collect();
    document.extend(ZERO_FLOWS.iter().map(|name| ((*name).to_owned(), 0.0.into())));
    let per_core = if cpu > 0.0 { total.send_rate[1] / 1e7 / cpu } else { 0.0 };
    let rates = [
        ("m_cpu_util", cpu),
        ("m_cpu_util_raw", cpu),
        ("m_bw_per_core", per_core),
        ("m_platform_factor", 1.0),
        ("m_tx_bps", total.send_rate[1]),
        ("m_tx_pps", total.send_rate[0]),
        ("m_rx_bps", total.receive_rate[1]),
        ("m_rx_pps", total.receive_rate[0]),
        ("m_rx_drop_bps", (total.send_rate[1] - total.receive_rate[1]).max(0.0)),
    ];
    document.extend(rates.map(|(name, value)| (name.to_owned(), value.into())));
    let counters = [
        ("m_total_tx_pkts", total.sent[0]),
        ("m_total_tx_bytes", total.sent[1]),
        ("m_total_rx_pkts", total.received[0]),
        ("m_total_rx_bytes", total.received[1]),
    ];
    document.extend(counters.map(|(name, value)| (name.to_owned(), value.into())));
    Ok(Value::Object(document))
}

pub(super) fn get_utilization(trex: &Trex, _: &Parameters<'_>) -> Answer {
    const BUFFERS: [&str; 8] = ["64b", "128b", "256b", "512b", "1024b", "2048b", "4096b", "9kb"];
    let state = trex.state();
    let mut history: Vec<u64> = state.rates.cpu.iter().copied().collect();
    history.resize(HISTORY, 0);
    let active = |port: usize| match state.ports.get(port) {
        Some(found) if found.runs().next().is_some() => port as i64,
        _ => -1,
    };
    let pairs = trex.interfaces.len().div_ceil(2);
    let cores: Vec<Value> = (0..pairs)
        .map(|pair| json!({"history": history, "ports": [active(2 * pair), active(2 * pair + 1)]}))
        .collect();
    // Frames have no pools here: each is as large as it must be.
    let buffers: Map<String, Value> =
        BUFFERS.iter().map(|name| ((*name).to_owned(), json!([1, 1]))).collect();
    Ok(json!({"mbuf_stats": {"cpu-socket-0": buffers}, "cpu": cores}))
}

/// Names of the extended counters, in their order.
const EXTENDED: [&str; 9] = [
    "rx_good_packets",
    "tx_good_packets",
    "rx_good_bytes",
    "tx_good_bytes",
    "rx_missed_errors",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
];

pub(super) fn get_port_xstats_names(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.port_id(parameters)?;
    Ok(json!({"xstats_names": EXTENDED}))
}

pub(super) fn get_port_xstats_values(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let kernel = trex.interfaces[port].counters();
    Ok(json!({"xstats_values": [
        kernel.receive_packets,
        kernel.transmit_packets,
        kernel.receive_bytes,
        kernel.transmit_bytes,
        kernel.receive_missed,
        kernel.receive_errors,
        kernel.transmit_errors,
        kernel.receive_dropped,
        kernel.transmit_dropped,
    ]}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_that_of_the_last_second() {
        let mut rates = Rates::default();
        let start = Instant::now();
        let mut note = |tenths: u64, value: f64| {
            rates.note(Counted::Cpu, value, start + Duration::from_millis(100 * tenths))
        };
        assert_eq!(note(0, 5.0), 0.0);
        for tenths in 1..=50 {
            note(tenths, 5.0 + tenths as f64);
        }
        assert!((note(51, 56.0) - 10.0).abs() < 1e-6);
        for tenths in 52..70 {
            note(tenths, 56.0);
        }
        assert_eq!(note(70, 56.0), 0.0);
    }
}
