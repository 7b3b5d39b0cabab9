//! What protocols of text have in common: values that fit into their lines, and contents.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::script::Line;
use crate::document::error::PlanError;
use crate::document::place::Place;
use crate::emulation::composition::{read_literal, read_text};
use crate::emulation::delay::read_delay;
use crate::emulation::names::Names;
use crate::emulation::program::read_send;

/// Bytes that are written out, at most.
pub(super) const WRITTEN_MAX: u64 = 64 << 20;

/// What texts are.
#[derive(Clone, Copy)]
pub(super) enum Texts<'a> {
    /// The same for all flows.
    Same,
    /// With values of these names, which are left as they are written.
    WithValues(&'a Names),
}

impl Texts<'_> {
    /// One that stands here.
    pub(super) fn read(self, text: &str, place: &Place<'_>) -> Result<String, PlanError> {
        match self {
            Self::Same => read_literal(text, place),
            Self::WithValues(names) => read_text(text, place, names).map(|_| text.to_owned()),
        }
    }
}

/// A text without spaces and control characters, the same for all flows, or a usual one.
pub(super) fn word(place: Option<Place<'_>>, usual: &str) -> Result<String, PlanError> {
    word_of(place, usual, Texts::Same)
}

/// The same of any texts.
pub(super) fn word_of(
    place: Option<Place<'_>>,
    usual: &str,
    texts: Texts<'_>,
) -> Result<String, PlanError> {
    const EXPECTED: &str = "a word without spaces and control characters";
    let Some(place) = place else { return Ok(usual.to_owned()) };
    let text = place.free_text(EXPECTED)?;
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if is_word { texts.read(text, &place) } else { Err(place.wrong(EXPECTED)) }
}

/// Bytes with what fills them up.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) text: Vec<u8>,
    pub(super) size: u32,
    pub(super) fill: Vec<u8>,
}

impl Content {
    /// Of so many bytes, a text, or as `send` has it.
    pub(super) fn read(place: &Place<'_>) -> Result<Self, PlanError> {
        /// As `send` has it.
        const SIZE_MAX: u64 = 1 << 30;
        if place.value().is_number() {
            let size = place.integer(0, SIZE_MAX)? as u32;
            return Ok(Self { size, ..Self::default() });
        }
        let (text, size, fill) = read_send(place)?;
        Ok(Self { text, size, fill })
    }

    /// All of its bytes, where they are not too many.
    pub(super) fn written(&self, place: &Place<'_>) -> Result<Vec<u8>, PlanError> {
        if u64::from(self.size) > WRITTEN_MAX {
            return Err(place.wrong(format!("at most {WRITTEN_MAX} bytes here")));
        }
        let counted: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if self.fill.is_empty() { &counted } else { &self.fill };
        let missing = (self.size as usize).saturating_sub(self.text.len());
        let filled = fill.iter().cycle().take(missing);
        Ok(self.text.iter().chain(filled).copied().collect())
    }
}

/// The step by which a side waits, for any time that `delay` of a program has; nothing where it is
/// not said.
pub(super) fn wait(place: Option<Place<'_>>, side: Side) -> Result<Option<Line>, PlanError> {
    let Some(place) = place else { return Ok(None) };
    Ok(match read_delay(&place)? {
        Step::Delay { max: Duration::ZERO, .. } => None,
        step => Some(Line::Waits { side, step }),
    })
}
