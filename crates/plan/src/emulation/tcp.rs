//! How TCP behaves, as it is written.

use wirestorm_base::time::Duration;

use crate::document::error::PlanError;
use crate::document::place::Place;
use crate::document::time::read_time;

/// What is asked of TCP; `None`: as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// The longest segment, in bytes of data.
    pub mss: Option<u16>,
    /// The first congestion window in segments, 1 to 20.
    pub initial_window: Option<u8>,
    /// Room for what arrives, in bytes.
    pub receive_buffer: Option<u32>,
    /// Whether windows are scaled.
    pub window_scaling: Option<bool>,
    /// Whether segments carry timestamps.
    pub timestamps: Option<bool>,
    /// Whether losses are told by SACK.
    pub sack: Option<bool>,
    /// Whether losses are found by time, where there is SACK.
    pub rack: Option<bool>,
    /// Whether ECN is asked for.
    pub ecn: Option<bool>,
    /// Whether short segments leave at once.
    pub no_delay: Option<bool>,
    /// Which congestion control.
    pub congestion: Option<Congestion>,
    /// How long an acknowledgement may wait, in ms, at most 500.
    pub delayed_ack_ms: Option<u16>,
    /// How long a connection is remembered after it was closed, in ms.
    pub time_wait_ms: Option<u32>,
    /// How long a connection may be idle before the peer is asked, in ms.
    pub keepalive_ms: Option<u32>,
    /// How long between such questions, in ms.
    pub keepalive_interval_ms: Option<u32>,
    /// Whether every segment with data has PSH.
    pub push_all: Option<bool>,
}

impl Tcp {
    /// This, and what is not asked for here as it is there.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            mss: self.mss.or(other.mss),
            initial_window: self.initial_window.or(other.initial_window),
            receive_buffer: self.receive_buffer.or(other.receive_buffer),
            window_scaling: self.window_scaling.or(other.window_scaling),
            timestamps: self.timestamps.or(other.timestamps),
            sack: self.sack.or(other.sack),
            rack: self.rack.or(other.rack),
            ecn: self.ecn.or(other.ecn),
            no_delay: self.no_delay.or(other.no_delay),
            congestion: self.congestion.or(other.congestion),
            delayed_ack_ms: self.delayed_ack_ms.or(other.delayed_ack_ms),
            time_wait_ms: self.time_wait_ms.or(other.time_wait_ms),
            keepalive_ms: self.keepalive_ms.or(other.keepalive_ms),
            keepalive_interval_ms: self.keepalive_interval_ms.or(other.keepalive_interval_ms),
            push_all: self.push_all.or(other.push_all),
        }
    }
}

/// Congestion controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 5681, RFC 6582.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// BBR, version 1.
    Bbr,
}

pub(super) const TCP: [&str; 15] = [
    "mss",
    "initial_window",
    "receive_buffer",
    "window_scaling",
    "timestamps",
    "sack",
    "rack",
    "ecn",
    "no_delay",
    "congestion",
    "delayed_ack",
    "time_wait",
    "keepalive",
    "keepalive_interval",
    "push_all",
];

pub(super) fn read(place: &Place<'_>) -> Result<Tcp, PlanError> {
    let mut tcp = Tcp::default();
    for (name, value) in place.fields(&TCP)?.all() {
        match name {
            "mss" => tcp.mss = Some(value.integer(88, 65_495)? as u16),
            "initial_window" => tcp.initial_window = Some(value.integer(1, 20)? as u8),
            "receive_buffer" => tcp.receive_buffer = Some(value.integer(2_048, 1 << 30)? as u32),
            "window_scaling" => tcp.window_scaling = Some(value.boolean()?),
            "timestamps" => tcp.timestamps = Some(value.boolean()?),
            "sack" => tcp.sack = Some(value.boolean()?),
            "rack" => tcp.rack = Some(value.boolean()?),
            "ecn" => tcp.ecn = Some(value.boolean()?),
            "no_delay" => tcp.no_delay = Some(value.boolean()?),
            "congestion" => tcp.congestion = Some(read_congestion(&value)?),
            "delayed_ack" => tcp.delayed_ack_ms = Some(read_ms(&value, 500)? as u16),
            "time_wait" => tcp.time_wait_ms = Some(read_ms(&value, 240_000)?),
            "keepalive" => tcp.keepalive_ms = Some(read_ms(&value, 86_400_000)?),
            "keepalive_interval" => {
                tcp.keepalive_interval_ms = Some(read_ms(&value, 86_400_000)?);
            }
            _ => tcp.push_all = Some(value.boolean()?),
        }
    }
    Ok(tcp)
}

fn read_congestion(place: &Place<'_>) -> Result<Congestion, PlanError> {
    const EXPECTED: &str = "cubic, new_reno or bbr";
    match place.text(EXPECTED)? {
        "cubic" => Ok(Congestion::Cubic),
        "new_reno" => Ok(Congestion::NewReno),
        "bbr" => Ok(Congestion::Bbr),
        _ => Err(place.wrong(EXPECTED)),
    }
}

/// Whole milliseconds.
fn read_ms(place: &Place<'_>, max: u64) -> Result<u32, PlanError> {
    let time = read_time(place)?;
    let ms = time.as_nanos() / 1_000_000;
    if ms > max || Duration::from_millis(ms) != time {
        return Err(place.wrong(format!("whole milliseconds, at most {max}ms")));
    }
    Ok(ms as u32)
}
