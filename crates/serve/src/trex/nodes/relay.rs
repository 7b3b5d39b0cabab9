//! The relay between a port and its nodes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wirestorm_control::af_packet::Direction;
use wirestorm_control::namespace::InterfaceName;
use wirestorm_control::tap::Tap;
use wirestorm_control::wire::packet::MacAddress;

use super::super::frame_socket::{Frame, FrameSocket, compiled};
use super::super::packets::{PADDED, PacketSender, Pushed};
use super::counters::{Counters, Way};
use super::filter::Tags;

/// Longest wait for a frame, which is also the time until the thread notices new nodes and its end.
const WAIT: Duration = Duration::from_millis(10);
/// Number of frames that are fetched from a node before those of the next one.
const BURST: usize = 64;
/// Longest frame without FCS, as of a port of TRex.
const FRAME_BYTES_MAX: usize = 9_238;
const HEADER_BYTES: usize = 14;
/// Number of nodes up to which the kernel passes only their frames.
const FILTERED_MAX: usize = 32;

/// What the relay knows of a node.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) tap: Tap,
    /// Tags and filter of the node.
    pub(super) rules: Mutex<(Tags, u8)>,
}

impl Member {
    pub(super) fn rules(&self) -> MutexGuard<'_, (Tags, u8)> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The nodes of a port by their addresses, and their counters.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: Mutex<BTreeMap<MacAddress, Arc<Member>>>,
    pub(super) counters: Counters,
}

impl Members {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<MacAddress, Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a frame of the port to the nodes that it is for.
    fn deliver(&self, frame: &Frame<'_>) {
        let bytes = frame.bytes;
        if bytes.len() < HEADER_BYTES || frame.length > FRAME_BYTES_MAX {
            self.counters.count_invalid();
            return;
        }
        self.counters.count(Way::Arriving, bytes);
        let is_group = bytes[0] & 1 == 1;
        let members: Vec<Arc<Member>> = {
            let members = self.lock();
            match bytes.first_chunk().filter(|_| !is_group) {
                Some(destination) => {
                    members.get(&MacAddress(*destination)).cloned().into_iter().collect()
                }
                None => members.values().cloned().collect(),
            }
        };
        for member in members {
            let (tags, filter) = &*member.rules();
            match tags.remove(bytes, *filter) {
                // A node that is down receives nothing.
                Some(frame) => drop(member.tap.send(&frame)),
                None => self.counters.count_filtered(bytes),
            }
        }
    }
}

/// A running relay. Dropping it ends it.
pub(super) struct Relay {
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    interface: InterfaceName,
    members: Arc<Members>,
    /// Addresses that the filter of the socket has, and the socket.
    socket: (Vec<MacAddress>, FrameSocket),
}

impl Relay {
    /// Starts to pass frames.
    ///
    /// # Errors
    /// The interface of the port cannot be used.
    pub(super) fn start(
        interface: InterfaceName,
        pushed: Arc<Pushed>,
        members: &Arc<Members>,
    ) -> Result<Self, String> {
        let socket = open(&interface, members)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let (ends, shared) = (Arc::clone(&is_ending), Arc::clone(members));
        let sender = PacketSender::new(interface.clone());
        let run = move || send_all(&shared, sender, &pushed, &ends);
        let thread = std::thread::Builder::new().name("trex-relay".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
        Ok(Self { is_ending, thread, interface, members: Arc::clone(members), socket })
    }

    /// Lets the filter of the socket pass the frames of the current nodes.
    pub(super) fn update(&mut self) -> Result<(), String> {
        let is_current = self.members.lock().keys().eq(&self.socket.0);
        if !is_current {
            self.socket = open(&self.interface, &self.members)?;
        }
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // A panic has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn open(
    interface: &InterfaceName,
    members: &Arc<Members>,
) -> Result<(Vec<MacAddress>, FrameSocket), String> {
    let macs: Vec<MacAddress> = members.lock().keys().copied().collect();
    let filter = match macs.len() > FILTERED_MAX {
        true => String::new(),
        false => {
            let own = macs.iter().map(|mac| format!(" or ether dst {mac}"));
            format!("ether multicast{}", own.collect::<String>())
        }
    };
    let filter = compiled(interface, &filter)?;
    let shared = Arc::clone(members);
    let handle = move |frame: Frame<'_>| shared.deliver(&frame);
    Ok((macs, FrameSocket::open(interface, Direction::Arriving, filter, true, handle)?))
}

/// Sends the frames of the nodes.
fn send_all(members: &Members, mut sender: PacketSender, pushed: &Pushed, ends: &AtomicBool) {
    let mut buffer = vec![0; FRAME_BYTES_MAX + 1];
    let counters = &members.counters;
    while !ends.load(Ordering::Relaxed) {
        let current: Vec<Arc<Member>> = members.lock().values().cloned().collect();
        Tap::wait(current.iter().map(|member| &member.tap), WAIT);
        for member in &current {
            let tags = member.rules().0.clone();
            for _ in 0..BURST {
                // A node that is down sends nothing.
                let Ok(Some(length)) = member.tap.receive(&mut buffer) else { break };
                if length < HEADER_BYTES {
                    counters.count_short();
                    continue;
                }
                counters.count(Way::Leaving, &buffer[..length]);
                let mut frame = tags.add(&buffer[..length]);
                if frame.len() > FRAME_BYTES_MAX {
                    counters.count_long();
                    continue;
                }
                frame.resize(frame.len().max(PADDED), 0);
                if sender.send(&[frame], Duration::ZERO, pushed).is_err() {
                    counters.count_dropped();
                }
            }
        }
    }
}
