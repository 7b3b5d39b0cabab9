//! Parses the `duration` of a flow.

use wirestorm_base::time::Duration;

use crate::document::error::PlanError;
use crate::document::time::{parse_time, read_time};
use crate::document::value_at::ValueAt;

/// Duration of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowDuration {
    /// Until stopped.
    Continuous,
    /// Number of frames.
    Packets(u64),
    /// For this time.
    Time(Duration),
    /// Bursts of frames.
    Bursts {
        /// Number of bursts; `u64::MAX`: no end.
        bursts: u64,
        /// Frames per burst.
        packets: u64,
        /// Time from the last frame of a burst to the first frame of the next one.
        gap: Duration,
    },
}

pub(super) const FORMS: [&str; 3] = ["fixed_packets", "fixed_seconds", "burst"];
pub(super) const BURST: [&str; 3] = ["bursts", "packets", "inter_burst_gap"];

const EXPECTED: &str = "continuous, a time such as 30s, or one of the fields fixed_packets, \
                        fixed_seconds, burst";

pub(super) fn read(place: &ValueAt<'_>) -> Result<FlowDuration, PlanError> {
    if let Some(text) = place.value().as_str() {
        return match text {
            "continuous" => Ok(FlowDuration::Continuous),
            text => match parse_time(text) {
                Some(time) if time > Duration::ZERO => Ok(FlowDuration::Time(time)),
                _ => Err(place.unexpected(EXPECTED)),
            },
        };
    }
    if !place.value().is_object() {
        return Err(place.unexpected(EXPECTED));
    }
    let (form, value) = place.choice(&FORMS)?;
    match form {
        "fixed_packets" => value.integer(1, u64::MAX).map(FlowDuration::Packets),
        "fixed_seconds" => {
            let seconds = value.number_text().and_then(|text| parse_time(&format!("{text}s")));
            let seconds = seconds.filter(|time| *time > Duration::ZERO);
            seconds.map(FlowDuration::Time).ok_or_else(|| value.unexpected("seconds, more than 0"))
        }
        _ => {
            let fields = value.fields(&BURST)?;
            // As in Open Traffic Generator, zero bursts means no end.
            let bursts = match fields.get("bursts").map_or(Ok(1), |it| it.integer(0, u64::MAX))? {
                0 => u64::MAX,
                bursts => bursts,
            };
            let packets = fields.get("packets").map_or(Ok(1), |it| it.integer(1, u64::MAX))?;
            let gap =
                fields.get("inter_burst_gap").map_or(Ok(Duration::ZERO), |gap| read_time(&gap))?;
            Ok(FlowDuration::Bursts { bursts, packets, gap })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn extent(value: Value) -> Result<FlowDuration, String> {
        read(&ValueAt::root(&value)).map_err(|error| error.to_string())
    }

    #[test]
    fn parses_frames_time_and_bursts() {
        assert_eq!(extent(json!("continuous")), Ok(FlowDuration::Continuous));
        assert_eq!(extent(json!("30s")), Ok(FlowDuration::Time(Duration::from_secs(30))));
        assert_eq!(extent(json!({"fixed_packets": 7})), Ok(FlowDuration::Packets(7)));
        let half = FlowDuration::Time(Duration::from_millis(500));
        assert_eq!(extent(json!({"fixed_seconds": 0.5})), Ok(half));
        let burst = json!({"burst": {"bursts": 0, "packets": 4, "inter_burst_gap": "10us"}});
        let gap = Duration::from_micros(10);
        assert_eq!(extent(burst), Ok(FlowDuration::Bursts { bursts: u64::MAX, packets: 4, gap }));
        assert!(extent(json!({"fixed_packets": 0})).is_err());
        let error = extent(json!({"burst": {"inter_burst_gap": 5}})).unwrap_err();
        assert!(
            error.starts_with("burst.inter_burst_gap: found 5, expected a time with its unit"),
            "{error}"
        );
    }
}
