//! Where frames go: the headers below IP that flows use.

use alloc::vec::Vec;
use core::net::IpAddr;

use super::clients::AddressRange;
use crate::frame::LinkHeader;

/// What is below IP in the frames of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLinks {
    /// Of those that no device is told of.
    pub usual: LinkHeader,
    /// Of others; of several that a client is behind, the first.
    pub devices: Vec<Devices>,
}

/// Devices that clients are behind: the first client behind the first one, the second behind the
/// second, and round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The clients.
    pub clients: AddressRange,
    /// Only every Nth of these, from the first one on; at least 1.
    pub every: u32,
    /// How many devices; at least 1.
    pub count: u32,
    /// What is below IP in frames by the first one.
    pub link: LinkHeader,
    /// Whether each next one is at the next Ethernet address.
    pub destinations_count: bool,
    /// Whether clients behind each next one have the next Ethernet address.
    pub sources_count: bool,
}

impl From<LinkHeader> for ClientLinks {
    fn from(usual: LinkHeader) -> Self {
        Self { usual, devices: Vec::new() }
    }
}

impl ClientLinks {
    /// By how much less room the longest of them leave for packets.
    pub(super) fn excess(&self) -> usize {
        let devices = self.devices.iter().map(|it| it.link.excess());
        devices.fold(self.usual.excess(), usize::max)
    }

    /// The Ethernet addresses that frames come from, each with how many there are from it on.
    pub(super) fn sources(&self) -> impl Iterator<Item = (u64, u32)> {
        let devices = self.devices.iter().map(|it| {
            let count = if it.sources_count { it.count } else { 1 };
            (it.link.source(), count)
        });
        devices.chain([(self.usual.source(), 1)])
    }

    /// Of a client.
    #[inline]
    pub(super) fn of(&self, client: IpAddr) -> LinkHeader {
        let behind = |it: &Devices| it.link_of(client);
        self.devices.iter().find_map(behind).unwrap_or(self.usual)
    }
}

impl Devices {
    fn link_of(&self, client: IpAddr) -> Option<LinkHeader> {
        let place = self.clients.place_of(client)?;
        let every = u64::from(self.every.max(1));
        if !place.is_multiple_of(every) {
            return None;
        }
        let device = place / every % u64::from(self.count.max(1));
        let step = |counts: bool| if counts { device } else { 0 };
        let steps = [step(self.destinations_count), step(self.sources_count)];
        Some(self.link.with_addresses_moved(steps))
    }
}

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
