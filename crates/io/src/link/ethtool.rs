//! The ethtool ioctl (`linux/ethtool.h`): driver, rings, channels, offloads, speed.
//!
//! The structures of ethtool are arrays of 32-bit words and some strings; this code treats them as
//! word arrays.

use std::io;

use super::netlink::text;
use super::{Driver, Queues, RingSizes};
use crate::system::checked;
use crate::system::socket::Socket;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const SIOCETHTOOL: u64 = 0x8946;

/// `SPEED_UNKNOWN`: the driver does not know the speed, or there is no link.
const SPEED_UNKNOWN: u32 = u32::MAX;

/// `struct ifreq`; the ioctl uses only the name and the data pointer.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    rest: [u8; 16],
}

/// Queries one interface through any socket of its network namespace.
#[derive(Debug)]
pub(super) struct Ethtool<'a> {
    socket: &'a Socket,
    interface: &'a str,
}

impl<'a> Ethtool<'a> {
    pub(super) fn new(socket: &'a Socket, interface: &'a str) -> Self {
        Self { socket, interface }
    }

    /// Runs the command in the first word. The kernel overwrites the words with its answer.
    fn run<const WORDS: usize>(&self, words: &mut [u32; WORDS]) -> io::Result<()> {
        let mut request =
            InterfaceRequest { name: [0; libc::IFNAMSIZ], data: words.as_mut_ptr(), rest: [0; 16] };
        for (to, from) in request.name.iter_mut().zip(self.interface.bytes()) {
            *to = from;
        }
        request.name[libc::IFNAMSIZ - 1] = 0;
        // SAFETY: `data` points to the structure of the command in its first word: the callers
        // in this file give each command an array as large as its structure.
        checked(unsafe { libc::ioctl(self.socket.fd(), SIOCETHTOOL as _, &mut request) })?;
        Ok(())
    }

    /// Returns the names and versions of driver, firmware and bus.
    pub(super) fn driver(&self) -> Option<Driver> {
        // cmd, then driver, version, fw_version, bus_info, erom_version (32 bytes each), 12
        // reserved bytes and 5 numbers.
        let mut words = [0_u32; 49];
        words[0] = ETHTOOL_GDRVINFO;
        self.run(&mut words).ok()?;
        let string = |first: usize| {
            let bytes: Vec<u8> =
                words[first..first + 8].iter().flat_map(|word| word.to_ne_bytes()).collect();
            text(&bytes)
        };
        Some(Driver { name: string(1), version: string(9), firmware: string(17), bus: string(25) })
    }

    /// Returns the queue counts and their maximum.
    pub(super) fn queues(&self) -> Option<Queues> {
        // cmd; maximum rx, tx, other, combined; current rx, tx, other, combined.
        let mut words = [0_u32; 9];
        words[0] = ETHTOOL_GCHANNELS;
        self.run(&mut words).ok()?;
        let [_, rx_max, tx_max, _, combined_max, rx, tx, _, combined] = words;
        Some(Queues {
            receive: rx + combined,
            transmit: tx + combined,
            receive_max: rx_max.max(combined_max),
            transmit_max: tx_max.max(combined_max),
        })
    }

    /// Returns the ring sizes in descriptors.
    pub(super) fn rings(&self) -> Option<RingSizes> {
        // cmd; maximum rx, mini, jumbo, tx; current rx, mini, jumbo, tx.
        let mut words = [0_u32; 9];
        words[0] = ETHTOOL_GRINGPARAM;
        self.run(&mut words).ok()?;
        let [_, receive_max, _, _, transmit_max, receive, _, _, transmit] = words;
        Some(RingSizes { receive, receive_max, transmit, transmit_max })
    }

    /// Whether generic receive offload (GRO) is on.
    pub(super) fn receive_offload(&self) -> Option<bool> {
        self.is_on(ETHTOOL_GGRO)
    }

    /// Whether TCP segmentation offload (TSO) is on.
    pub(super) fn segmentation_offload(&self) -> Option<bool> {
        self.is_on(ETHTOOL_GTSO)
    }

    fn is_on(&self, command: u32) -> Option<bool> {
        let mut words = [command, 0];
        self.run(&mut words).ok()?;
        Some(words[1] != 0)
    }

    /// Returns the link speed in Mbit/s as reported by the driver.
    pub(super) fn speed_megabits(&self) -> Option<u32> {
        // 12 words of settings, then three masks of up to 127 words each. The first call reads the
        // length of a mask, which the kernel returns as a negative number.
        let mut words = [0_u32; 12 + 3 * 127];
        words[0] = ETHTOOL_GLINKSETTINGS;
        self.run(&mut words).ok()?;
        let mask_words = (words[3].to_ne_bytes()[3] as i8).checked_neg()?;
        if mask_words <= 0 {
            return None;
        }
        words.fill(0);
        words[0] = ETHTOOL_GLINKSETTINGS;
        words[3] = u32::from_ne_bytes([0, 0, 0, mask_words as u8]);
        self.run(&mut words).ok()?;
        Some(words[1]).filter(|speed| *speed != 0 && *speed != SPEED_UNKNOWN)
    }
}
