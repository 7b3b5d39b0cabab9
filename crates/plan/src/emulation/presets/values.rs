//! Values and contents of text protocols: words that fit into their lines, bodies and delays.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::dialogue_lines::Line;
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::emulation::composition::{read_literal, read_text};
use crate::emulation::delay::read_delay;
use crate::emulation::names::Names;
use crate::emulation::program::read_send;

/// Maximum number of bytes that a preset writes out in full.
pub(super) const EXPANDED_MAX: u64 = 64 << 20;

/// Kind of the texts of a preset.
#[derive(Clone, Copy)]
pub(super) enum TextKind<'a> {
    /// The same for all flows.
    Same,
    /// With references to values of these names, which stay as written (`${name}`).
    WithValues(&'a Names),
}

impl TextKind<'_> {
    /// Reads a text; `place` locates errors.
    pub(super) fn read(self, text: &str, place: &ValueAt<'_>) -> Result<String, PlanError> {
        match self {
            Self::Same => read_literal(text, place),
            Self::WithValues(names) => read_text(text, place, names).map(|_| text.to_owned()),
        }
    }
}

/// Reads a text without spaces and control characters that is the same for all flows. The default
/// is `usual`.
pub(super) fn word(place: Option<ValueAt<'_>>, usual: &str) -> Result<String, PlanError> {
    word_of_kind(place, usual, TextKind::Same)
}

/// Reads a text without spaces and control characters, of any kind. The default is `usual`.
pub(super) fn word_of_kind(
    place: Option<ValueAt<'_>>,
    usual: &str,
    texts: TextKind<'_>,
) -> Result<String, PlanError> {
    const EXPECTED: &str = "a word without spaces and control characters";
    let Some(place) = place else { return Ok(usual.to_owned()) };
    let text = place.string(EXPECTED)?;
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if is_word { texts.read(text, &place) } else { Err(place.unexpected(EXPECTED)) }
}

/// Bytes and a fill that extends them to a size.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) text: Vec<u8>,
    pub(super) size: u32,
    pub(super) fill: Vec<u8>,
}

impl Content {
    /// Reads a number of bytes, a text, or an object as in `send`.
    pub(super) fn read(place: &ValueAt<'_>) -> Result<Self, PlanError> {
        /// Maximum size, as in `send`.
        const SIZE_MAX: u64 = 1 << 30;
        if place.value().is_number() {
            let size = place.integer(0, SIZE_MAX)? as u32;
            return Ok(Self { size, ..Self::default() });
        }
        let (text, size, fill) = read_send(place)?;
        Ok(Self { text, size, fill })
    }

    /// Returns all bytes, at most [`EXPANDED_MAX`].
    pub(super) fn expanded(&self, place: &ValueAt<'_>) -> Result<Vec<u8>, PlanError> {
        if u64::from(self.size) > EXPANDED_MAX {
            return Err(place.unexpected(format!("at most {EXPANDED_MAX} bytes here")));
        }
        let counted: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if self.fill.is_empty() { &counted } else { &self.fill };
        let missing = (self.size as usize).saturating_sub(self.text.len());
        let filled = fill.iter().cycle().take(missing);
        Ok(self.text.iter().chain(filled).copied().collect())
    }
}

/// Reads a delay in the forms of the step `delay`. Returns `None` if it is absent or zero.
pub(super) fn wait(place: Option<ValueAt<'_>>, side: Side) -> Result<Option<Line>, PlanError> {
    let Some(place) = place else { return Ok(None) };
    Ok(match read_delay(&place)? {
        Step::Delay { max: Duration::ZERO, .. } => None,
        step => Some(Line::Waits { side, step }),
    })
}
