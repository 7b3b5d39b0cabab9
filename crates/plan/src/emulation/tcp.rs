//! Parses TCP settings.

use serde_json::Value;
use wirestorm_base::time::Duration;
use wirestorm_model::tcp::{Algorithm, EcnMode, RtoBounds, Settings};

use crate::document::error::PlanError;
use crate::document::time::read_time;
use crate::document::value_at::ValueAt;

/// TCP settings of a plan; `None`: the default of [`Settings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Maximum segment size in bytes of data, 10 to 65,495.
    pub mss: Option<u16>,
    /// Initial congestion window in segments, 1 to 20.
    pub initial_window: Option<u8>,
    /// Receive buffer in bytes, 1 KiB to 1 GiB.
    pub receive_buffer: Option<u32>,
    /// Maximum number of unacknowledged bytes, 1 KiB to 1 GiB.
    pub send_buffer: Option<u32>,
    /// Whether to negotiate window scaling (RFC 7323).
    pub window_scaling: Option<bool>,
    /// Window scale in bits, at most 14.
    pub window_scale: Option<u8>,
    /// Whether to use TCP timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Whether to use SACK (RFC 2018).
    pub sack: Option<bool>,
    /// Whether to use RACK-TLP loss detection (RFC 8985) in connections with SACK.
    pub rack: Option<bool>,
    /// Number of duplicate acknowledgements that indicate a loss, at least 1.
    pub dupack_threshold: Option<u8>,
    /// Maximum number of out-of-order ranges that a receiver keeps, at most 1000.
    pub reassembly_max: Option<u16>,
    /// Use of ECN (RFC 3168).
    pub ecn: Option<EcnMode>,
    /// Whether to disable the Nagle algorithm (TCP_NODELAY).
    pub no_delay: Option<bool>,
    /// Congestion control algorithm.
    pub congestion: Option<Algorithm>,
    /// Retransmission timeout before the first round-trip time sample, in ms, at least 1.
    pub rto_initial_ms: Option<u32>,
    /// Minimum margin of the retransmission timeout above the round-trip time, in ms.
    pub rto_min_ms: Option<u32>,
    /// Maximum retransmission timeout in ms, at most an hour.
    pub rto_max_ms: Option<u32>,
    /// Maximum retransmissions of a segment before the connection fails.
    pub retries: Option<u8>,
    /// Maximum retransmissions of a SYN.
    pub syn_retries: Option<u8>,
    /// Maximum time to open a connection in ms; 0: only the SYN retransmissions limit it.
    pub open_timeout_ms: Option<u32>,
    /// Maximum delay of an acknowledgement in ms, at most 500.
    pub delayed_ack_ms: Option<u16>,
    /// Received bytes that trigger an acknowledgement; 0: every second segment.
    pub ack_after_bytes: Option<u32>,
    /// Whether to use TCP Fast Open (RFC 7413): clients with a cookie send data with the SYN, and
    /// servers accept it.
    pub fast_open: Option<bool>,
    /// Duration of TIME-WAIT in ms, at most 240,000.
    pub time_wait_ms: Option<u32>,
    /// Idle time before keepalive probes, in ms; 0: no probes.
    pub keepalive_ms: Option<u32>,
    /// Interval of keepalive probes in ms.
    pub keepalive_interval_ms: Option<u32>,
    /// Maximum number of unanswered keepalive probes, at least 1.
    pub keepalive_probes: Option<u8>,
    /// Whether every segment with data has the PSH flag.
    pub push_all: Option<bool>,
}

impl Tcp {
    /// The settings of a connection, with a default for each that the plan leaves out.
    ///
    /// `is_http2`: whether connections carry HTTP/2. Then Nagle's algorithm is off by default, as
    /// in nginx, Go and curl. It would hold back short frames until the peer's delayed
    /// acknowledgement.
    pub fn settings(&self, is_http2: bool) -> Settings {
        let default = Settings { no_delay: is_http2, ..Settings::default() };
        Settings {
            maximum_segment_size: self.mss.unwrap_or(default.maximum_segment_size),
            default_segment_size: default.default_segment_size,
            initial_window: self.initial_window.unwrap_or(default.initial_window),
            receive_buffer: self.receive_buffer.unwrap_or(default.receive_buffer),
            send_buffer: self.send_buffer.unwrap_or(default.send_buffer),
            window_shift: self.window_scale,
            window_scaling: self.window_scaling.unwrap_or(default.window_scaling),
            timestamps: self.timestamps.unwrap_or(default.timestamps),
            sack: self.sack.unwrap_or(default.sack),
            rack: self.rack.unwrap_or(default.rack),
            dupack_threshold: self.dupack_threshold.unwrap_or(default.dupack_threshold),
            reassembly_max: self.reassembly_max.unwrap_or(default.reassembly_max),
            ecn: self.ecn.unwrap_or(default.ecn),
            no_delay: self.no_delay.unwrap_or(default.no_delay),
            congestion: self.congestion.unwrap_or(default.congestion),
            retransmission: self.retransmission(default.retransmission),
            retries: self.retries.unwrap_or(default.retries),
            syn_retries: self.syn_retries.unwrap_or(default.syn_retries),
            open_timeout_ms: self.open_timeout_ms.unwrap_or(default.open_timeout_ms),
            delayed_ack_ms: self.delayed_ack_ms.unwrap_or(default.delayed_ack_ms),
            fast_open: self.fast_open.unwrap_or(default.fast_open),
            ack_after_bytes: self.ack_after_bytes.unwrap_or(default.ack_after_bytes),
            time_wait_ms: self.time_wait_ms.unwrap_or(default.time_wait_ms),
            keepalive_ms: self.keepalive_ms.unwrap_or(default.keepalive_ms),
            keepalive_interval_ms: self
                .keepalive_interval_ms
                .unwrap_or(default.keepalive_interval_ms),
            keepalive_probes: self.keepalive_probes.unwrap_or(default.keepalive_probes),
            push_all: self.push_all.unwrap_or(default.push_all),
        }
    }

    fn retransmission(&self, default: RtoBounds) -> RtoBounds {
        // This never saturates: the parser allows an hour at most.
        let micros =
            |ms: Option<u32>, default: u32| ms.map_or(default, |ms| ms.saturating_mul(1_000));
        RtoBounds {
            initial: micros(self.rto_initial_ms, default.initial),
            min: micros(self.rto_min_ms.or(Some(RTO_MIN_MS)), default.min),
            max: micros(self.rto_max_ms, default.max),
        }
    }

    /// Returns these settings, with unset ones from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            mss: self.mss.or(other.mss),
            initial_window: self.initial_window.or(other.initial_window),
            receive_buffer: self.receive_buffer.or(other.receive_buffer),
            send_buffer: self.send_buffer.or(other.send_buffer),
            window_scaling: self.window_scaling.or(other.window_scaling),
            window_scale: self.window_scale.or(other.window_scale),
            timestamps: self.timestamps.or(other.timestamps),
            sack: self.sack.or(other.sack),
            rack: self.rack.or(other.rack),
            dupack_threshold: self.dupack_threshold.or(other.dupack_threshold),
            reassembly_max: self.reassembly_max.or(other.reassembly_max),
            ecn: self.ecn.or(other.ecn),
            no_delay: self.no_delay.or(other.no_delay),
            congestion: self.congestion.or(other.congestion),
            rto_initial_ms: self.rto_initial_ms.or(other.rto_initial_ms),
            rto_min_ms: self.rto_min_ms.or(other.rto_min_ms),
            rto_max_ms: self.rto_max_ms.or(other.rto_max_ms),
            retries: self.retries.or(other.retries),
            syn_retries: self.syn_retries.or(other.syn_retries),
            open_timeout_ms: self.open_timeout_ms.or(other.open_timeout_ms),
            delayed_ack_ms: self.delayed_ack_ms.or(other.delayed_ack_ms),
            fast_open: self.fast_open.or(other.fast_open),
            ack_after_bytes: self.ack_after_bytes.or(other.ack_after_bytes),
            time_wait_ms: self.time_wait_ms.or(other.time_wait_ms),
            keepalive_ms: self.keepalive_ms.or(other.keepalive_ms),
            keepalive_interval_ms: self.keepalive_interval_ms.or(other.keepalive_interval_ms),
            keepalive_probes: self.keepalive_probes.or(other.keepalive_probes),
            push_all: self.push_all.or(other.push_all),
        }
    }
}

pub(super) const TCP: [&str; 28] = [
    "mss",
    "initial_window",
    "receive_buffer",
    "send_buffer",
    "window_scaling",
    "window_scale",
    "timestamps",
    "sack",
    "rack",
    "dupack_threshold",
    "reassembly_max",
    "ecn",
    "fast_open",
    "no_delay",
    "congestion",
    "rto_initial",
    "rto_min",
    "rto_max",
    "retries",
    "syn_retries",
    "connect_timeout",
    "delayed_ack",
    "ack_after_bytes",
    "time_wait",
    "keepalive",
    "keepalive_interval",
    "keepalive_probes",
    "push_all",
];

/// Maximum of other times in ms: a day.
const TIME_MS_MAX: u64 = 86_400_000;

/// Default of `rto_min` in ms.
const RTO_MIN_MS: u32 = 200;

/// Maximum retransmission timeout in ms: an hour.
const RTO_MS_MAX: u64 = 3_600_000;

pub(super) fn read(place: &ValueAt<'_>) -> Result<Tcp, PlanError> {
    let mut tcp = Tcp::default();
    let fields = place.fields(&TCP)?;
    for (name, value) in fields.all() {
        match name {
            "mss" => tcp.mss = Some(value.integer(10, 65_495)? as u16),
            "initial_window" => tcp.initial_window = Some(value.integer(1, 20)? as u8),
            "receive_buffer" => tcp.receive_buffer = Some(value.integer(1_024, 1 << 30)? as u32),
            "send_buffer" => tcp.send_buffer = Some(value.integer(1_024, 1 << 30)? as u32),
            "window_scaling" => tcp.window_scaling = Some(value.boolean()?),
            "window_scale" => tcp.window_scale = Some(value.integer(0, 14)? as u8),
            "timestamps" => tcp.timestamps = Some(value.boolean()?),
            "sack" => tcp.sack = Some(value.boolean()?),
            "rack" => tcp.rack = Some(value.boolean()?),
            "dupack_threshold" => {
                tcp.dupack_threshold = Some(value.integer(1, 255)? as u8);
            }
            "reassembly_max" => tcp.reassembly_max = Some(value.integer(0, 1_000)? as u16),
            "ecn" => tcp.ecn = Some(read_ecn(&value)?),
            "fast_open" => tcp.fast_open = Some(value.boolean()?),
            "no_delay" => tcp.no_delay = Some(value.boolean()?),
            "congestion" => tcp.congestion = Some(read_congestion(&value)?),
            "rto_initial" => tcp.rto_initial_ms = Some(read_rto(&value)?),
            "rto_min" => tcp.rto_min_ms = Some(read_ms(&value, RTO_MS_MAX)?),
            "rto_max" => tcp.rto_max_ms = Some(read_rto(&value)?),
            "retries" => tcp.retries = Some(value.integer(0, 255)? as u8),
            "syn_retries" => tcp.syn_retries = Some(value.integer(0, 255)? as u8),
            "connect_timeout" => tcp.open_timeout_ms = Some(read_ms(&value, TIME_MS_MAX)?),
            "delayed_ack" => tcp.delayed_ack_ms = Some(read_ms(&value, 500)? as u16),
            "ack_after_bytes" => {
                tcp.ack_after_bytes = Some(value.integer(0, 1 << 30)? as u32);
            }
            "time_wait" => tcp.time_wait_ms = Some(read_ms(&value, 240_000)?),
            "keepalive" => tcp.keepalive_ms = Some(read_ms(&value, TIME_MS_MAX)?),
            "keepalive_interval" => {
                tcp.keepalive_interval_ms = Some(read_ms(&value, TIME_MS_MAX)?);
            }
            "keepalive_probes" => tcp.keepalive_probes = Some(value.integer(1, 255)? as u8),
            _ => tcp.push_all = Some(value.boolean()?),
        }
    }
    if let (Some(false), Some(scale)) = (tcp.window_scaling, fields.get("window_scale")) {
        return Err(
            scale.message_error("windows are not scaled (window_scaling: false): leave it out")
        );
    }
    Ok(tcp)
}

/// Checks the retransmission timeouts of a side, after its settings and the template's are merged.
/// `places`: the side and the template, in which the fields `tcp` may be.
pub(super) fn check(tcp: &Tcp, places: [&ValueAt<'_>; 2]) -> Result<(), PlanError> {
    let Some(max) = tcp.rto_max_ms else { return Ok(()) };
    let (min, why) = match tcp.rto_min_ms {
        Some(min) => (min, ""),
        None => (RTO_MIN_MS, " by default"),
    };
    if let Some(word) = setting_place("rto_max", places).filter(|_| max < min) {
        return Err(word.unexpected(format!("at least rto_min, which is {min}ms{why}")));
    }
    let is_longer = tcp.rto_initial_ms.is_some_and(|initial| initial > max);
    match setting_place("rto_initial", places).filter(|_| is_longer) {
        Some(word) => Err(word.unexpected(format!("at most rto_max, which is {max}ms"))),
        None => Ok(()),
    }
}

/// Checks that two servers use the same TCP settings in the handshake if only first bytes select
/// between them: the first bytes arrive later. `places` are as for [`check`].
pub(super) fn check_beginning(
    tcp: &Tcp,
    (other, of): (&Tcp, &str),
    places: [&ValueAt<'_>; 2],
) -> Result<(), PlanError> {
    let pairs = handshake_settings(tcp).into_iter().zip(handshake_settings(other));
    let Some(((name, value), (_, other_value))) =
        pairs.into_iter().find(|(value, other)| value != other)
    else {
        return Ok(());
    };
    let with_setting = places.into_iter().find(|place| place.value()["tcp"].get(name).is_some());
    let tcp = with_setting.unwrap_or(places[0]).child("tcp", &Value::Null);
    let describe =
        |value: Option<String>| value.map_or(format!("no {name}"), |it| format!("{name}: {it}"));
    let expected = format!(
        "{}, as template {of:?} has at the same port: first_bytes select the server only after the \
         handshake",
        describe(other_value)
    );
    Err(tcp.error(describe(value), expected))
}

/// Returns the settings that affect a server's handshake: field names and values.
fn handshake_settings(tcp: &Tcp) -> [(&'static str, Option<String>); 9] {
    let ecn = |ecn| match ecn {
        EcnMode::Never => "false",
        EcnMode::Accept => "permit",
        EcnMode::Offer => "true",
    };
    [
        ("mss", tcp.mss.map(|it| it.to_string())),
        ("initial_window", tcp.initial_window.map(|it| it.to_string())),
        ("receive_buffer", tcp.receive_buffer.map(|it| it.to_string())),
        ("window_scaling", tcp.window_scaling.map(|it| it.to_string())),
        ("window_scale", tcp.window_scale.map(|it| it.to_string())),
        ("timestamps", tcp.timestamps.map(|it| it.to_string())),
        ("sack", tcp.sack.map(|it| it.to_string())),
        ("ecn", tcp.ecn.map(|it| ecn(it).to_owned())),
        ("fast_open", tcp.fast_open.map(|it| it.to_string())),
    ]
}

/// Returns the field `name` of the first place that sets it.
fn setting_place<'a>(name: &str, places: [&ValueAt<'a>; 2]) -> Option<ValueAt<'a>> {
    places.into_iter().find_map(|place| {
        let tcp = place.value().get("tcp")?;
        Some(place.child("tcp", tcp).child(name, tcp.get(name)?))
    })
}

fn read_ecn(place: &ValueAt<'_>) -> Result<EcnMode, PlanError> {
    match (place.value().as_bool(), place.value().as_str()) {
        (Some(true), _) => Ok(EcnMode::Offer),
        (Some(false), _) => Ok(EcnMode::Never),
        (None, Some("permit")) => Ok(EcnMode::Accept),
        (None, _) => Err(place.unexpected("true, false, or permit")),
    }
}

/// Reads a retransmission timeout in ms, at least 1.
fn read_rto(place: &ValueAt<'_>) -> Result<u32, PlanError> {
    match read_ms(place, RTO_MS_MAX)? {
        0 => Err(place.unexpected("at least 1ms")),
        ms => Ok(ms),
    }
}

fn read_congestion(place: &ValueAt<'_>) -> Result<Algorithm, PlanError> {
    const EXPECTED: &str = "cubic, new_reno or bbr";
    match place.text(EXPECTED)? {
        "cubic" => Ok(Algorithm::Cubic),
        "new_reno" => Ok(Algorithm::NewReno),
        "bbr" => Ok(Algorithm::Bbr),
        _ => Err(place.unexpected(EXPECTED)),
    }
}

/// Reads a time in whole milliseconds, at most `max`.
fn read_ms(place: &ValueAt<'_>, max: u64) -> Result<u32, PlanError> {
    let time = read_time(place)?;
    let ms = time.as_nanos() / 1_000_000;
    if ms > max || Duration::from_millis(ms) != time {
        return Err(place.unexpected(format!("whole milliseconds, at most {max}ms")));
    }
    Ok(ms as u32)
}
