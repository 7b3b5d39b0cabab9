//! Frames of a plan, with their headers and fields.

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::plan::{FlowFrames, Frame, FrameField, FrameHeader};
use wirestorm_control::base::rate::Rate;
use wirestorm_control::model::assemble::{PlacedHeader, recognise};
use wirestorm_control::plan::traffic::TrafficPlan;
use wirestorm_control::traffic::preview;

/// Most frames of a flow.
const COUNT_MAX: u64 = 100;
/// Most frames of all flows together.
const FRAMES_MAX: u64 = 10_000;

/// Returns the first frames of each flow of a plan. Percentages refer to 10 Gbit/s if a port has no
/// speed in the plan.
///
/// # Errors
/// The count is not valid, or the plan is not for its ports.
pub(super) fn frames(plan: &TrafficPlan, count: u64) -> Result<Vec<FlowFrames>, ErrorDocument> {
    let flows = plan.flows.len() as u64;
    if !(1..=COUNT_MAX).contains(&count) || count * flows > FRAMES_MAX {
        let message = format!(
            "count {count}: expected 1 to {COUNT_MAX}, and at most {FRAMES_MAX} frames of all flows"
        );
        return Err(ErrorDocument::new(ErrorCode::Invalid, message));
    }
    let previews = preview(plan, count, Rate::TEN_GIGA)
        .map_err(|errors| ErrorDocument::new(ErrorCode::Plan, errors.to_string()))?;
    let names = plan.flows.iter().map(|flow| flow.stream.name.clone());
    let mut flows: Vec<FlowFrames> =
        names.map(|flow| FlowFrames { flow, frames: Vec::new() }).collect();
    for preview in previews {
        let time_ns = Some(preview.departure.as_nanos());
        flows[preview.flow].frames.push(frame(time_ns, preview.frame));
    }
    Ok(flows)
}

fn frame(time_ns: Option<u64>, bytes: Vec<u8>) -> Frame {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in &bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    let recognised = recognise(bytes);
    let mut headers: Vec<FrameHeader> =
        recognised.headers.iter().map(|it| header(it, &recognised.frame)).collect();
    let end = headers.last().map_or(0, |last| last.offset + last.length);
    if end < recognised.frame.len() {
        headers.push(FrameHeader {
            protocol: "payload".to_owned(),
            offset: end,
            length: recognised.frame.len() - end,
            fields: Vec::new(),
        });
    }
    Frame { time_ns, bytes: text, headers }
}

fn header(placed: &PlacedHeader, frame: &[u8]) -> FrameHeader {
    // Other views of the same bits follow each field of a layout.
    let mut end = 0;
    let fields = placed.fields().filter_map(|position| {
        if position.bit_offset < end {
            return None;
        }
        end = position.bit_offset + position.bits;
        let value = position.read(frame)?;
        Some(FrameField {
            name: position.field.name.to_owned(),
            bit_offset: position.bit_offset,
            bits: position.bits,
            value: position.field.kind.display(value).to_string(),
        })
    });
    FrameHeader {
        protocol: placed.layout.name.to_owned(),
        offset: placed.offset,
        length: placed.length,
        fields: fields.collect(),
    }
}
