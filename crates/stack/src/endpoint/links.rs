//! Link headers of flows: all headers below IP.

use alloc::vec::Vec;
use core::net::IpAddr;

use hashbrown::HashTable;
use wirestorm_wire::packet::MacAddress;

use crate::frame::LinkHeader;
use wirestorm_model::address_range::AddressRange;

/// Link headers of clients' frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLinks {
    /// Link header of clients that no entry of `devices` covers.
    pub default_link: LinkHeader,
    /// Devices with their own link headers; the first entry that covers a client applies.
    pub devices: Vec<Devices>,
    /// Servers with their own destination, sorted by address.
    pub servers: Vec<ServerLink>,
}

/// Destination of frames to a server that has its own MAC address or router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLink {
    /// Address of the server.
    pub server: IpAddr,
    /// MAC address of the server or of its router.
    pub destination: MacAddress,
    /// Number of this next hop ([`LinkHeader::to_next_hop`]).
    pub next_hop: u16,
}

/// Devices in front of clients, assigned round robin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// Clients behind the devices.
    pub clients: AddressRange,
    /// Only every Nth client is behind a device, from the first one on; at least 1.
    pub stride: u32,
    /// Number of devices; at least 1.
    pub count: u32,
    /// Link header of the first device.
    pub link: LinkHeader,
    /// Whether the destination MAC address increases by 1 for each device.
    pub destinations_count: bool,
    /// Whether the source MAC address increases by 1 for each device.
    pub sources_count: bool,
}

impl From<LinkHeader> for ClientLinks {
    fn from(usual: LinkHeader) -> Self {
        Self { default_link: usual, devices: Vec::new(), servers: Vec::new() }
    }
}

impl ClientLinks {
    /// Returns the bytes by which the longest link header shortens packets.
    pub(super) fn excess(&self) -> usize {
        let devices = self.devices.iter().map(|it| it.link.excess());
        devices.fold(self.default_link.excess(), usize::max)
    }

    /// Changes the MAC address of a next hop.
    pub(super) fn next_hop_moved(&mut self, number: u16, to: MacAddress) {
        let devices = self.devices.iter_mut().map(|it| &mut it.link);
        let links = devices.chain([&mut self.default_link]);
        links.filter(|it| it.next_hop() == number).for_each(|it| it.set_destination(to));
        let servers = self.servers.iter_mut().filter(|it| it.next_hop == number);
        servers.for_each(|it| it.destination = to);
    }

    /// Returns the ranges of source MAC addresses: the first address and the number of addresses.
    pub(super) fn sources(&self) -> impl Iterator<Item = (u64, u32)> {
        let devices = self.devices.iter().map(|it| {
            let count = if it.sources_count { it.count } else { 1 };
            (it.link.source(), count)
        });
        devices.chain([(self.default_link.source(), 1)])
    }

    /// Returns the link header from a client to a server.
    #[inline]
    pub(super) fn of(&self, client: IpAddr, server: IpAddr) -> LinkHeader {
        let behind = |it: &Devices| it.link_of(client);
        let link = self.devices.iter().find_map(behind).unwrap_or(self.default_link);
        if self.servers.is_empty() {
            return link;
        }
        self.towards(link, server)
    }

    /// Applies `servers`. Devices that only add tags use the default next hop as well.
    #[cold]
    fn towards(&self, mut link: LinkHeader, server: IpAddr) -> LinkHeader {
        let usual = &self.default_link;
        let is_usual =
            link.next_hop() == usual.next_hop() && link.destination() == usual.destination();
        if is_usual && let Ok(place) = self.servers.binary_search_by_key(&server, |it| it.server) {
            let to = self.servers[place];
            link.set_destination(to.destination);
            link = link.to_next_hop(to.next_hop);
        }
        link
    }
}

impl Devices {
    fn link_of(&self, client: IpAddr) -> Option<LinkHeader> {
        let place = u64::from(self.clients.offset_of(client)?);
        let every = u64::from(self.stride.max(1));
        if !place.is_multiple_of(every) {
            return None;
        }
        let device = place / every % u64::from(self.count.max(1));
        let step = |counts: bool| if counts { device } else { 0 };
        let steps = [step(self.destinations_count), step(self.sources_count)];
        Some(self.link.with_address_offsets(steps))
    }
}

/// Link headers in use, each stored once. A new header takes the slot of an unused one, so there
/// are never more than flows at once.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkTable {
    entries: Vec<Entry>,
    index: HashTable<u32>,
    /// Slots that became unused, each listed once.
    idle: Vec<u32>,
    last: u32,
}

#[derive(Clone, Debug)]
struct Entry {
    header: LinkHeader,
    /// Whether the slot is in the list of unused ones.
    is_listed: bool,
    /// Number of flows that use the header.
    users: u32,
}

impl LinkTable {
    /// Returns the slot of a header, and counts one more flow that uses it.
    #[inline]
    pub(super) fn take(&mut self, header: LinkHeader) -> u32 {
        let last = self.entries.get(self.last as usize);
        if last.is_none_or(|it| it.header != header) {
            self.last = self.look_up(&header).unwrap_or_else(|| self.add(header));
        }
        self.entries[self.last as usize].users += 1;
        self.last
    }

    /// Counts one flow less that uses the header in a slot.
    #[inline]
    pub(super) fn give_back(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        entry.users -= 1;
        if entry.users == 0 && !entry.is_listed {
            entry.is_listed = true;
            self.idle.push(place);
        }
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> &LinkHeader {
        &self.entries[place as usize].header
    }

    /// Changes the destination of all headers that satisfy `is_moved`. Returns the number of flows
    /// that use them.
    pub(super) fn redirect(
        &mut self,
        is_moved: impl Fn(&LinkHeader) -> bool,
        to: MacAddress,
    ) -> u32 {
        let mut flows: u32 = 0;
        for place in 0..self.entries.len() {
            let entry = &mut self.entries[place];
            if !is_moved(&entry.header) || entry.header.destination() == to.0 {
                continue;
            }
            flows = flows.saturating_add(entry.users);
            let hash = entry.header.hash64();
            entry.header.set_destination(to);
            if let Ok(entry) = self.index.find_entry(hash, |it| *it == place as u32) {
                entry.remove();
            }
            // An equal header may exist already; a lookup then finds either.
            let entries = &self.entries;
            let rehash = |it: &u32| entries[*it as usize].header.hash64();
            self.index.insert_unique(entries[place].header.hash64(), place as u32, rehash);
        }
        flows
    }

    fn look_up(&self, header: &LinkHeader) -> Option<u32> {
        let is_it = |place: &u32| self.get(*place) == header;
        self.index.find(header.hash64(), is_it).copied()
    }

    fn add(&mut self, header: LinkHeader) -> u32 {
        let entry = Entry { header, is_listed: false, users: 0 };
        let place = match self.empty_idle() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let entries = &self.entries;
        let rehash = |it: &u32| entries[*it as usize].header.hash64();
        self.index.insert_unique(header.hash64(), place, rehash);
        place
    }

    /// Returns an unused slot, after its removal from the index.
    fn empty_idle(&mut self) -> Option<u32> {
        while let Some(place) = self.idle.pop() {
            let entry = &mut self.entries[place as usize];
            entry.is_listed = false;
            if entry.users > 0 {
                continue;
            }
            if let Ok(entry) = self.index.find_entry(entry.header.hash64(), |it| *it == place) {
                entry.remove();
            }
            return Some(place);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn header(number: u32) -> LinkHeader {
        let bytes = [&[2, 0][..], &number.to_be_bytes(), &[2; 6], &[8, 0]].concat();
        LinkHeader::new(&bytes).unwrap()
    }

    #[test]
    fn servers_with_their_own_destination_get_their_frames_there() {
        const NEW: MacAddress = MacAddress([4; 6]);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let to = |last: u8| MacAddress([2, 0, 0, 0, 0, last]);
        let server = |last: u8| ServerLink {
            server: address(last),
            destination: to(last),
            next_hop: last.into(),
        };
        let mut links = ClientLinks::from(header(1).to_next_hop(1));
        let device = |first: u8, link| Devices {
            clients: AddressRange { first: address(first), count: 1 },
            stride: 1,
            count: 1,
            link,
            destinations_count: false,
            sources_count: false,
        };
        // One client has its own tag, another one its own router.
        let tagged = [&[2, 0, 0, 0, 0, 1][..], &[2; 6], &[0x81, 0, 0, 7, 8, 0]].concat();
        let tagged = LinkHeader::new(&tagged).unwrap().to_next_hop(1);
        links.devices = vec![device(101, tagged), device(102, header(9).to_next_hop(9))];
        links.servers = vec![server(2), server(3)];
        let goes = |links: &ClientLinks, client: u8, last: u8| {
            let link = links.of(address(client), address(last));
            (link.destination().to_vec(), link.next_hop(), link.tags().len())
        };
        for (client, last, expected) in [
            (100, 1, (to(1), 1, 0)),
            (100, 2, (to(2), 2, 0)),
            (100, 3, (to(3), 3, 0)),
            (100, 4, (to(1), 1, 0)),
            (101, 3, (to(3), 3, 4)),
            (102, 3, (to(9), 9, 0)),
        ] {
            let expected = (expected.0.0.to_vec(), expected.1, expected.2);
            assert_eq!(goes(&links, client, last), expected, "{client} {last}");
        }
        links.next_hop_moved(3, NEW);
        assert_eq!(goes(&links, 100, 3).0, NEW.0);
        assert_eq!(goes(&links, 100, 2).0, to(2).0);
    }

    #[test]
    fn slots_grow_only_with_the_headers_used_at_once() {
        const MANY: u32 = 100_000;
        let mut links = LinkTable::default();
        let places: Vec<u32> = (0..MANY).map(|number| links.take(header(number))).collect();
        for (number, place) in (0..).zip(&places) {
            assert_eq!(*links.get(*place), header(number));
            assert_eq!(links.take(header(number)), *place, "used twice");
        }
        assert_eq!(links.entries.len(), MANY as usize);
        // A slot stays taken while one of its two users is left.
        places.iter().for_each(|place| links.give_back(*place));
        assert_eq!(links.take(header(MANY)), MANY);
        places.iter().for_each(|place| links.give_back(*place));
        for number in 0..MANY {
            let place = links.take(header(MANY + 1 + number));
            assert_eq!(*links.get(place), header(MANY + 1 + number));
        }
        assert_eq!(links.entries.len(), MANY as usize + 1);
        assert_eq!(*links.get(MANY), header(MANY));
    }

    #[test]
    fn flows_follow_a_next_hop_that_moves() {
        const NEW: MacAddress = MacAddress([4; 6]);
        let mut links = LinkTable::default();
        let [by_first, by_second] = [1, 2].map(|number| header(7).to_next_hop(number));
        let places = [by_first, by_second, header(7)].map(|it| links.take(it));
        assert_eq!(links.take(by_first), places[0], "used twice");
        assert_eq!(links.redirect(|it| it.next_hop() == 1, NEW), 2);
        assert_eq!(links.redirect(|it| it.next_hop() == 1, NEW), 0, "it has moved already");
        let destinations = places.map(|place| links.get(place).destination().to_vec());
        let old = header(7).destination().to_vec();
        assert_eq!(destinations, [NEW.0.to_vec(), old.clone(), old]);
        // The new header is found, and the old one gets another slot.
        let mut moved = by_first;
        moved.set_destination(NEW);
        assert_eq!(links.take(moved), places[0]);
        let again = links.take(by_first);
        assert!(!places.contains(&again));
        // Move back to an address for which a header exists already.
        assert_eq!(links.redirect(|it| it.next_hop() == 1, MacAddress([2, 0, 0, 0, 0, 7])), 3);
        for place in [places[0], places[0], places[0], again, places[1], places[2]] {
            links.give_back(place);
        }
        let number_of = |number| links.clone().take(header(number));
        assert!(number_of(8) < links.entries.len() as u32, "unused slots are taken again");
    }

    #[test]
    fn a_header_used_again_keeps_its_slot() {
        let mut links = LinkTable::default();
        for _ in 0..10 {
            let place = links.take(header(1));
            assert_eq!((place, links.idle.len()), (0, usize::from(links.entries[0].is_listed)));
            links.give_back(place);
        }
        // The slot is in the list of unused ones, but in use when the next header is added.
        assert_eq!(links.take(header(1)), 0);
        assert_eq!(links.take(header(2)), 1);
        assert_eq!(*links.get(0), header(1));
    }
}
