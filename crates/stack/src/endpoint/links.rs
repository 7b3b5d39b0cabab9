//! Where frames go: the headers below IP that flows use.

use alloc::vec::Vec;

use crate::frame::LinkHeader;

/// Headers, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    headers: Vec<LinkHeader>,
    last: u16,
}

impl Links {
    /// The place of a header, which is added where it is new; `None` where there is no room.
    #[inline]
    pub(super) fn place(&mut self, header: LinkHeader) -> Option<u16> {
        if self.headers.get(usize::from(self.last)) == Some(&header) {
            return Some(self.last);
        }
        let known = self.headers.iter().position(|it| *it == header);
        let place = known.unwrap_or_else(|| {
            self.headers.push(header);
            self.headers.len() - 1
        });
        self.last = u16::try_from(place).ok()?;
        Some(self.last)
    }

    #[inline]
    pub(super) fn get(&self, place: u16) -> &LinkHeader {
        &self.headers[usize::from(place)]
    }
}
