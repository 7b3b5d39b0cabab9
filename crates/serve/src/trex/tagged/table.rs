//! The tags that a client has numbered.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::trex::parameters::{Parameters, object_of};
use crate::trex::rpc::RpcError;

/// VLAN IDs that a tag may have.
const VLANS: RangeInclusive<u16> = 1..=4094;
/// Maximum number of tags: their numbers have 16 bits.
const TAGS_MAX: usize = u16::MAX as usize;

/// VLAN IDs of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tag {
    Dot1Q(u16),
    /// The outer and the inner one.
    QinQ(u16, u16),
}

impl Tag {
    /// Returns the tag of VLAN IDs, outer first; `None` without any.
    pub(super) const fn of(vlans: &[u16]) -> Option<Self> {
        match *vlans {
            [] => None,
            [only] => Some(Self::Dot1Q(only)),
            [outer, inner, ..] => Some(Self::QinQ(outer, inner)),
        }
    }

    /// Returns the tag in TRex's format.
    pub(super) fn document(self) -> Value {
        match self {
            Self::Dot1Q(vlan) => json!({"type": "Dot1Q", "value": {"vlan": vlan}}),
            Self::QinQ(outer, inner) => {
                json!({"type": "QinQ", "value": {"vlans": [outer, inner]}})
            }
        }
    }

    fn read(tag: &Parameters<'_>) -> Result<Self, RpcError> {
        match tag.text("type")? {
            "Dot1Q" => {
                let value = tag.object("value")?;
                value.value("vlan")?;
                Ok(Self::Dot1Q(value.u16_or("vlan", 0)?))
            }
            "QinQ" => match *tag.object("value")?.u16s("vlans")? {
                [outer, inner] => Ok(Self::QinQ(outer, inner)),
                _ => Err(RpcError::execution("QinQ must contain 2 Vlans!")),
            },
            other => Err(RpcError::execution(format!("Tag type {other} is not supported!"))),
        }
    }

    fn is_valid(self) -> bool {
        match self {
            Self::Dot1Q(vlan) => VLANS.contains(&vlan),
            Self::QinQ(outer, inner) => VLANS.contains(&outer) && VLANS.contains(&inner),
        }
    }
}

/// Tags by number. A tag has at most one number.
#[derive(Clone, Debug, Default)]
pub(super) struct TagTable {
    tags: Vec<Option<Tag>>,
    numbers: BTreeMap<Tag, u16>,
}

impl TagTable {
    /// Reads the tags of a request, numbered from 0.
    pub(super) fn read(tags: &[Value]) -> Result<Self, RpcError> {
        if tags.len() > TAGS_MAX {
            let text = format!("{} tags: at most {TAGS_MAX} are possible", tags.len());
            return Err(RpcError::execution(text));
        }
        let mut table = Self { tags: vec![None; tags.len()], numbers: BTreeMap::new() };
        for (number, tag) in (0..).zip(tags) {
            table.set(number, Tag::read(&object_of(usize::from(number), tag)?)?)?;
        }
        Ok(table)
    }

    /// Returns a table with changes: tags with their `tag_id`. A change without a type removes the
    /// tag of this number.
    pub(super) fn with_changes(&self, changes: &[Value]) -> Result<Self, RpcError> {
        let mut table = self.clone();
        for (at, change) in changes.iter().enumerate() {
            let change = object_of(at, change)?;
            change.value("tag_id")?;
            let number = change.u16_or("tag_id", 0)?;
            if usize::from(number) >= table.tags.len() {
                let count = table.tags.len();
                let text = format!("Tag Id {number} greater than num of tags {count}");
                return Err(RpcError::execution(text));
            }
            match change.text_or("type", "")? {
                "" => table.remove(number),
                _ => table.set(number, Tag::read(&change)?)?,
            }
        }
        Ok(table)
    }

    pub(super) const fn len(&self) -> usize {
        self.tags.len()
    }

    /// Returns the number of a tag.
    pub(super) fn number(&self, tag: Tag) -> Option<u16> {
        self.numbers.get(&tag).copied()
    }

    /// Returns tags in TRex's format, null for those without a tag. `last` is not included.
    pub(super) fn documents(&self, first: u16, last: u16) -> Value {
        let tags = self.tags.get(usize::from(first)..usize::from(last)).unwrap_or_default();
        tags.iter().map(|tag| tag.map_or(Value::Null, Tag::document)).collect()
    }

    fn set(&mut self, number: u16, tag: Tag) -> Result<(), RpcError> {
        if !tag.is_valid() || self.numbers.contains_key(&tag) {
            let name = match tag {
                Tag::Dot1Q(vlan) => format!("Vlan {vlan}"),
                Tag::QinQ(outer, inner) => format!("QinQ ({outer},{inner})"),
            };
            return Err(RpcError::execution(format!("{name} already exists or is invalid!")));
        }
        self.remove(number);
        if let Some(slot) = self.tags.get_mut(usize::from(number)) {
            *slot = Some(tag);
            self.numbers.insert(tag, number);
        }
        Ok(())
    }

    fn remove(&mut self, number: u16) {
        let slot = self.tags.get_mut(usize::from(number));
        if let Some(before) = slot.and_then(Option::take) {
            self.numbers.remove(&before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot1q(vlan: u32) -> Value {
        json!({"type": "Dot1Q", "value": {"vlan": vlan}})
    }

    #[test]
    fn each_tag_has_one_number_and_a_failed_change_changes_nothing() {
        let double = json!({"type": "QinQ", "value": {"vlans": [1, 2]}});
        let table = TagTable::read(&[double.clone(), dot1q(1), dot1q(2)]).unwrap();
        assert_eq!(table.documents(0, 3), json!([double, dot1q(1), dot1q(2)]));
        assert_eq!(table.number(Tag::QinQ(1, 2)), Some(0));
        let moved = json!({"type": "QinQ", "value": {"vlans": [1, 2]}, "tag_id": 2});
        let changed = table.with_changes(&[json!({"type": null, "tag_id": 0}), moved.clone()]);
        let changed = changed.unwrap();
        assert_eq!(changed.documents(0, 3), json!([null, dot1q(1), double]));
        assert_eq!(
            (changed.number(Tag::QinQ(1, 2)), changed.number(Tag::Dot1Q(2))),
            (Some(2), None)
        );
        let error = |changes: &[Value]| table.with_changes(changes).unwrap_err().text().to_owned();
        assert_eq!(error(&[moved]), "QinQ (1,2) already exists or is invalid!");
        assert_eq!(error(&[json!({"tag_id": 3})]), "Tag Id 3 greater than num of tags 3");
        assert_eq!(table.documents(0, 3), json!([double, dot1q(1), dot1q(2)]));
    }

    #[test]
    fn tags_are_checked_as_in_trex() {
        let error = |tag: Value| TagTable::read(&[tag]).unwrap_err().text().to_owned();
        for vlan in [0, 4095] {
            assert_eq!(error(dot1q(vlan)), format!("Vlan {vlan} already exists or is invalid!"));
        }
        assert_eq!(error(json!({"type": "MPLS"})), "Tag type MPLS is not supported!");
        let three = json!({"type": "QinQ", "value": {"vlans": [1, 2, 3]}});
        assert_eq!(error(three), "QinQ must contain 2 Vlans!");
        assert!(error(json!({"type": "Dot1Q", "value": {}})).contains("'vlan' value is null"));
        let twice = TagTable::read(&[dot1q(5), dot1q(5)]).unwrap_err();
        assert_eq!(twice.text(), "Vlan 5 already exists or is invalid!");
    }
}
