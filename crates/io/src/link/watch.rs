//! Notices that an interface goes down or away while it is in use.

use std::io;

use wirestorm_base::time::Duration;

use super::netlink::{Netlink, u32_at};
use super::{LINK_HEADER_BYTES, Link, LinkError, link_request};
use crate::namespace::InterfaceName;
use crate::system::socket::wait_any_readable;

/// Bound on what one look reads; a storm of notifications is finished by the next looks.
const DATAGRAMS_PER_LOOK: usize = 64;

/// Whether an interface can carry frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Up, and so is its carrier.
    Running,
    /// Up, without a carrier: for a veth the peer is down. The kernel drops what is sent.
    NoCarrier,
    /// Down: it may come up again.
    Down,
    /// Removed, or moved to another namespace. Final.
    Gone,
}

/// Knows the state of an interface from the kernel's notifications, without asking each time.
#[derive(Debug)]
pub struct LinkWatch {
    netlink: Netlink,
    index: u32,
    state: LinkState,
}

impl LinkWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// As [`Link::open`].
    pub fn open(interface: &InterfaceName) -> Result<Self, LinkError> {
        let groups = libc::RTMGRP_LINK as u32;
        let netlink = interface
            .namespace
            .enter(|| Netlink::open(libc::NETLINK_ROUTE, groups))?
            .map_err(LinkError::system("netlink"))?;
        // The notifications are subscribed to before the state is read, so that no change
        // falls in between.
        let link = Link::open_without_routes(interface)?;
        let state = state_of(link.up, link.running);
        Ok(Self { netlink, index: link.index, state })
    }

    /// The interface's index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The state now. One non-blocking system call when nothing has changed.
    ///
    /// # Errors
    /// Where netlink does not work any more.
    pub fn state(&mut self) -> io::Result<LinkState> {
        let (index, mut state) = (self.index, self.state);
        let heard = self.netlink.notifications(DATAGRAMS_PER_LOOK, |message| {
            if u32_at(message.payload, 4) != Some(index) || state == LinkState::Gone {
                return;
            }
            // Bridges and others announce their ports as a family of their own; only the
            // unspecified family speaks of the interface itself.
            if message.payload.first() != Some(&(libc::AF_UNSPEC as u8)) {
                return;
            }
            match message.kind {
                libc::RTM_DELLINK => state = LinkState::Gone,
                libc::RTM_NEWLINK => {
                    if let Some(now) = state_of_header(message.payload) {
                        state = now;
                    }
                }
                _ => {}
            }
        });
        self.state = state;
        match heard {
            // Notifications were lost: ask.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.ask()?,
            other => other?,
        }
        Ok(self.state)
    }

    /// Waits until the kernel has told something of an interface, be it another one, in any of the
    /// namespaces of these; for so long at most. Returns early on a signal.
    pub fn wait<'a>(watches: impl Iterator<Item = &'a Self>, patience: Duration) {
        wait_any_readable(watches.map(|watch| watch.netlink.socket()), patience);
    }

    fn ask(&mut self) -> io::Result<()> {
        let mut state = None;
        let answer =
            self.netlink.request(libc::RTM_GETLINK, &link_request(self.index), |message| {
                if message.kind == libc::RTM_NEWLINK {
                    state = state_of_header(message.payload);
                }
            });
        match answer {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                self.state = LinkState::Gone;
            }
            other => {
                other?;
                self.state = state.unwrap_or(self.state);
            }
        }
        Ok(())
    }
}

fn state_of(up: bool, running: bool) -> LinkState {
    match (up, running) {
        (true, true) => LinkState::Running,
        (true, false) => LinkState::NoCarrier,
        (false, _) => LinkState::Down,
    }
}

fn state_of_header(payload: &[u8]) -> Option<LinkState> {
    let flags = u32_at(payload.get(..LINK_HEADER_BYTES)?, 8)?;
    Some(state_of(flags & libc::IFF_UP as u32 != 0, flags & libc::IFF_LOWER_UP as u32 != 0))
}
