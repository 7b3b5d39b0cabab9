//! Edits of VLAN tags (IEEE 802.1Q section 9.6).

use super::frame::Frame;
use wirestorm_model::edit::{VlanChange, VlanEdit};

const IDENTIFIER: u16 = 0x0fff;
const DROP_ELIGIBLE: u16 = 0x1000;
const PRIORITY: u16 = 0xe000;
const PRIORITY_SHIFT: u32 = 13;

#[inline]
pub(super) fn edit_vlan(edit: &VlanEdit, frame: &mut Frame) {
    match edit {
        VlanEdit::Add(tag) => {
            let change = VlanChange {
                ethertype: None,
                identifier: Some(tag.identifier),
                priority: Some(tag.priority),
                drop_eligible: Some(tag.drop_eligible),
            };
            frame.push_tag(tag.ethertype, changed(0, &change));
        }
        VlanEdit::DeleteOuter => {
            frame.pop_tag();
        }
        VlanEdit::DeleteAll => while frame.pop_tag() {},
        VlanEdit::SetOuter(change) => {
            if let Some((outer, _)) = frame.tags() {
                set(frame, outer, change);
            }
        }
        VlanEdit::SetInner(change) => {
            if let Some((_, inner)) = frame.tags() {
                set(frame, inner, change);
            }
        }
    }
}

/// Changes the tag whose control information (TCI) is at `at`.
fn set(frame: &mut Frame, at: usize, change: &VlanChange) {
    if let Some(ethertype) = change.ethertype {
        frame.write(at - 2, &ethertype.to_be_bytes());
    }
    if let Some(control) = frame.u16_at(at) {
        frame.write(at, &changed(control, change).to_be_bytes());
    }
}

/// Returns the control information (TCI) with the changed fields.
fn changed(control: u16, change: &VlanChange) -> u16 {
    let field = |control: u16, mask: u16, value: Option<u16>| match value {
        Some(value) => control & !mask | value & mask,
        None => control,
    };
    let priority = change.priority.map(|priority| u16::from(priority) << PRIORITY_SHIFT);
    let drop_eligible = change.drop_eligible.map(|drop| u16::from(drop) * DROP_ELIGIBLE);
    let control = field(control, PRIORITY, priority);
    let control = field(control, DROP_ELIGIBLE, drop_eligible);
    field(control, IDENTIFIER, change.identifier)
}
