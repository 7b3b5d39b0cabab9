//! Templates of a domain, and data sets that wait for theirs.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use wirestorm_base::time::{Duration, Instant};

use crate::header::Times;
use crate::template::Template;

/// Templates of a domain by their identifiers.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: BTreeMap<u16, (Template, Instant)>,
}

/// What a received template changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    New,
    Refreshed,
    Changed,
    Refused,
}

impl Templates {
    /// Keeps a template that arrived at `now`, at most `count_max` of them.
    pub(crate) fn learn(&mut self, template: Template, now: Instant, count_max: usize) -> Learned {
        let has_room = self.known.len() < count_max;
        match self.known.get_mut(&template.id()) {
            Some((known, arrival)) if known.fields() == template.fields() => {
                *arrival = now;
                Learned::Refreshed
            }
            Some(known) => {
                *known = (template, now);
                Learned::Changed
            }
            None if has_room => {
                self.known.insert(template.id(), (template, now));
                Learned::New
            }
            None => Learned::Refused,
        }
    }

    /// Removes a template that was not refreshed for longer than `lifetime`; returns whether it was
    /// there.
    pub(crate) fn expire(&mut self, id: u16, now: Instant, lifetime: Duration) -> bool {
        let is_old = |arrival: Instant| now.saturating_since(arrival) > lifetime;
        let is_expired = self.known.get(&id).is_some_and(|(_, arrival)| is_old(*arrival));
        is_expired && self.known.remove(&id).is_some()
    }

    pub(crate) fn get(&self, id: u16) -> Option<&Template> {
        self.known.get(&id).map(|(template, _)| template)
    }

    /// Withdraws templates (RFC 7011 section 8.1); returns whether there were any.
    pub(crate) fn withdraw(&mut self, id: u16) -> bool {
        /// Set identifiers, which withdraw all templates of their kind.
        const TEMPLATES: u16 = 2;
        const OPTIONS_TEMPLATES: u16 = 3;
        let before = self.known.len();
        match id {
            TEMPLATES => self.known.retain(|_, (template, _)| template.is_options()),
            OPTIONS_TEMPLATES => self.known.retain(|_, (template, _)| !template.is_options()),
            _ => {
                self.known.remove(&id);
            }
        }
        self.known.len() < before
    }

    /// Removes all templates; returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let count = self.known.len();
        self.known.clear();
        count
    }

    /// Iterates over the templates by identifier, with the time of their last refresh.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Template, Instant)> {
        self.known.values().map(|(template, arrival)| (template, *arrival))
    }
}

/// A data set whose template is unknown.
#[derive(Debug)]
pub(crate) struct WaitingSet {
    pub(crate) template: u16,
    /// Clocks of its message.
    pub(crate) times: Times,
    pub(crate) body: Box<[u8]>,
}

/// Data sets that wait for their templates, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct WaitingSets {
    sets: VecDeque<WaitingSet>,
    bytes: usize,
}

impl WaitingSets {
    /// Keeps a set; `false` if more than `bytes_max` bytes would wait.
    pub(crate) fn push(&mut self, set: WaitingSet, bytes_max: usize) -> bool {
        // A set counts with its place in the queue: empty sets need memory too.
        let bytes = self.bytes + set.body.len() + size_of::<WaitingSet>();
        let has_room = bytes <= bytes_max;
        if has_room {
            self.bytes = bytes;
            self.sets.push_back(set);
        }
        has_room
    }

    /// Removes and returns the oldest set of one of the templates.
    pub(crate) fn pop(&mut self, templates: &Templates) -> Option<WaitingSet> {
        let index = self.sets.iter().position(|set| templates.get(set.template).is_some())?;
        let set = self.sets.remove(index)?;
        self.bytes -= set.body.len() + size_of::<WaitingSet>();
        Some(set)
    }

    pub(crate) fn clear(&mut self) -> usize {
        self.bytes = 0;
        let count = self.sets.len();
        self.sets.clear();
        count
    }

    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element;
    use crate::template::TemplateField;
    use alloc::vec;

    #[test]
    fn sets_that_are_decoded_make_room_for_others() {
        let field = TemplateField { id: element::PROTOCOL, length: 1, is_scope: false };
        let template = Template::new(256, vec![field]).unwrap();
        let mut templates = Templates::default();
        templates.learn(template, Instant::ZERO, 1);
        let set =
            |id| WaitingSet { template: id, times: Times::default(), body: vec![0; 100].into() };
        let bytes_max = 2 * (100 + size_of::<WaitingSet>());
        let mut waiting = WaitingSets::default();
        assert!(waiting.push(set(257), bytes_max));
        for _ in 0..3 {
            assert!(waiting.push(set(256), bytes_max));
            assert!(!waiting.push(set(256), bytes_max));
            assert_eq!(waiting.pop(&templates).unwrap().template, 256);
            assert!(waiting.pop(&templates).is_none());
        }
        assert_eq!((waiting.clear(), waiting.len()), (1, 0));
        assert!(waiting.push(set(257), bytes_max) && waiting.push(set(257), bytes_max));
    }
}
