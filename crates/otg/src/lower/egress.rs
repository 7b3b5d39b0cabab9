//! Counters of all frames that arrive at a port, whatever sent them: `egress_only_tracking`.

use std::collections::BTreeSet;

use super::packet::MetricTag;
use super::ports::Names;
use super::problems::{ConfigError, Problems, unsupported};
use crate::proto::egress_only_tracking_filter::choice::Enum as Filter;
use crate::proto::egress_only_tracking_tx_offset::choice::Enum as TxOffset;
use crate::proto::{Config, EgressOnlyTracking};

/// Maximum number of bits of a tag.
const BITS_MAX: u32 = 128;
/// Maximum offset of a tag in bits: no frame is longer.
const OFFSET_MAX: u32 = 8 * 16_384;

/// Counts all frames that arrive at a port by the values of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressTracking {
    /// Index of the port.
    pub port: usize,
    /// Bits of the received frame to count by; at least one.
    pub tags: Vec<MetricTag>,
    /// Whether to report the times of the first and the last frame.
    pub timestamps: bool,
}

/// Reads the tracked ports; each at most once.
pub(super) fn read(config: &Config, ports: &Names, problems: &mut Problems) -> Vec<EgressTracking> {
    let mut tracked = BTreeSet::new();
    let mut found = Vec::new();
    for (index, tracking) in config.egress_only_tracking.iter().enumerate() {
        let path = format!("egress_only_tracking[{index}]");
        let port = ports.port(tracking.port_name(), format!("{path}.port_name"));
        let tags = tags(tracking, &path, problems);
        for (index, filter) in tracking.filters.iter().enumerate() {
            if filter.choice() == Filter::AutoMacsec {
                problems.error(unsupported(format!("{path}.filters[{index}].auto_macsec")));
            }
        }
        let (Some(port), Some(tags)) = (problems.take(port), problems.take(tags)) else { continue };
        if !tracked.insert(port) {
            let message = format!("found {:?} a second time", tracking.port_name());
            problems.error(ConfigError::new(format!("{path}.port_name"), message));
        }
        found.push(EgressTracking { port, tags, timestamps: tracking.enable_timestamps() });
    }
    found
}

fn tags(
    tracking: &EgressOnlyTracking,
    path: &str,
    problems: &mut Problems,
) -> Result<Vec<MetricTag>, ConfigError> {
    let path = format!("{path}.metric_tags");
    if tracking.metric_tags.is_empty() {
        return Err(ConfigError::new(path, "found none, expected at least one"));
    }
    let mut tags = Vec::with_capacity(tracking.metric_tags.len());
    for (index, tag) in tracking.metric_tags.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (offset, length) = (tag.rx_offset(), tag.length.unwrap_or(1));
        if !(1..=BITS_MAX).contains(&length) || offset > OFFSET_MAX {
            let message = format!(
                "found {length} bits from bit {offset}, expected 1 to {BITS_MAX} bits from a bit \
                 up to {OFFSET_MAX}"
            );
            return Err(ConfigError::new(path, message));
        }
        if tag.tx_offset.as_ref().is_some_and(|it| it.choice() == TxOffset::Custom) {
            // Frames of any sender are counted, so what was sent is unknown.
            problems.ignore(format!("{path}.tx_offset"));
        }
        tags.push(MetricTag {
            name: tag.name().to_owned(),
            bit_offset: offset as usize,
            bit_length: length as usize,
        });
    }
    Ok(tags)
}
