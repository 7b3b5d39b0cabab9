//! Notification when an interface in use goes down or disappears.

use std::io;
use std::os::fd::AsFd;

use wirestorm_base::time::Duration;

use super::netlink::{Netlink, u32_at};
use super::{LINK_HEADER_BYTES, Link, LinkError, link_request};
use crate::namespace::InterfaceName;
use crate::system::socket::wait_any_readable;

/// Highest number of datagrams that one call of [`LinkWatch::state`] reads. Later calls read the
/// rest.
const DATAGRAMS_PER_POLL: usize = 64;

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Up with carrier.
    Running,
    /// Up without carrier; for a veth, the peer is down. The kernel drops frames sent in this
    /// state.
    NoCarrier,
    /// Down; it may come up again.
    Down,
    /// Removed, or moved to another namespace. This state is final.
    Gone,
}

/// Tracks the state of an interface through the kernel's notifications.
#[derive(Debug)]
pub struct LinkWatch {
    netlink: Netlink,
    index: u32,
    state: LinkState,
}

impl LinkWatch {
    /// Starts to watch an interface.
    ///
    /// # Errors
    /// Same as [`Link::open`].
    pub fn open(interface: &InterfaceName) -> Result<Self, LinkError> {
        let groups = libc::RTMGRP_LINK as u32;
        let netlink = interface
            .namespace
            .enter(|| Netlink::open(libc::NETLINK_ROUTE, groups))?
            .map_err(LinkError::system("netlink"))?;
        // Subscribe to notifications before reading the state, so that no change is missed.
        let link = Link::open_basic(interface)?;
        let state = state_of(link.up, link.running);
        Ok(Self { netlink, index: link.index, state })
    }

    /// Index of the interface.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the current state. Makes one non-blocking system call if nothing has changed.
    ///
    /// # Errors
    /// Fails if netlink fails.
    pub fn state(&mut self) -> io::Result<LinkState> {
        let (index, mut state) = (self.index, self.state);
        let outcome = self.netlink.notifications(DATAGRAMS_PER_POLL, |message| {
            if u32_at(message.payload, 4) != Some(index) || state == LinkState::Gone {
                return;
            }
            // Bridges announce their ports with an address family of their own. Only messages of
            // the unspecified family describe the interface itself.
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
        match outcome {
            // The kernel dropped notifications: read the state.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.query_state()?,
            other => other?,
        }
        Ok(self.state)
    }

    /// Waits until the kernel reports a change of any interface in the namespaces of `watches`.
    /// Returns after `patience` at the latest, and early on a signal.
    pub fn wait<'a>(watches: impl Iterator<Item = &'a Self>, patience: Duration) {
        wait_any_readable(watches.map(|watch| watch.netlink.socket().as_fd()), patience);
    }

    fn query_state(&mut self) -> io::Result<()> {
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
