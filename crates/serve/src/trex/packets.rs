//! Single frames that clients send, and those of the ports as hosts.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wirestorm_control::af_packet::{AfPacketOptions, AfPacketTransmit};
use wirestorm_control::base::port::Transmit;
use wirestorm_control::clock;
use wirestorm_control::namespace::InterfaceName;

use super::parameters::{Parameters, object_of};
use super::port::Sent;
use super::rpc::{Answer, RpcError};
use super::{Trex, now_s};

/// Number of frames that a socket holds.
const FRAMES: usize = 64;
/// Time to wait for a free frame, and for the driver to send all of them.
const SEND_WAIT: StdDuration = StdDuration::from_secs(1);
const POLL: StdDuration = StdDuration::from_micros(50);
/// Longest time that the frames of one request take, in microseconds.
const REQUEST_US_MAX: f64 = 1e6;
/// Lengths of frames, in bytes without FCS, and the length to which they are padded.
const LENGTHS: std::ops::RangeInclusive<usize> = 14..=9_238;
pub(super) const PADDED: usize = 60;

/// Frames sent beside the runs.
#[derive(Debug, Default)]
pub(super) struct Pushed {
    frames: AtomicU64,
    bytes: AtomicU64,
}

impl Pushed {
    pub(super) fn load(&self) -> Sent {
        let (frames, bytes) = (&self.frames, &self.bytes);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Sent { frames: load(frames), bytes: load(bytes), failed: 0 }
    }

    /// Adds frames and their bytes without FCS.
    pub(super) fn add(&self, frames: u64, bytes: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Sends single frames through a packet socket, so that captures see them.
pub(super) struct PacketSender {
    interface: InterfaceName,
    socket: Option<AfPacketTransmit>,
}

impl PacketSender {
    pub(super) const fn new(interface: InterfaceName) -> Self {
        Self { interface, socket: None }
    }

    /// Sends frames with a gap between them, and counts them.
    ///
    /// # Errors
    /// The interface does not take them.
    pub(super) fn send(
        &mut self,
        frames: &[Vec<u8>],
        gap: StdDuration,
        pushed: &Pushed,
    ) -> Result<(), String> {
        let socket = match &mut self.socket {
            Some(socket) => socket,
            None => {
                let options = AfPacketOptions {
                    frames: FRAMES,
                    queueing_bypass: false,
                    promiscuous: false,
                    ..AfPacketOptions::new(self.interface.clone())
                };
                let opened = AfPacketTransmit::open(&options).map_err(|error| error.to_string())?;
                self.socket.insert(opened)
            }
        };
        let sent = send(socket, frames, gap, pushed);
        if sent.is_err() {
            // The next frames get a new socket: the interface may be another one by then.
            self.socket = None;
        }
        sent
    }
}

fn send(
    socket: &mut AfPacketTransmit,
    frames: &[Vec<u8>],
    gap: StdDuration,
    pushed: &Pushed,
) -> Result<(), String> {
    let before = socket.transmitted();
    let flush = |socket: &mut AfPacketTransmit| socket.flush().map_err(|it| it.to_string());
    let deadline = |extra: StdDuration| StdInstant::now() + SEND_WAIT + extra;
    for (index, frame) in frames.iter().enumerate() {
        if index > 0 && !gap.is_zero() {
            sleep(gap);
        }
        let end = deadline(StdDuration::ZERO);
        let id = loop {
            match socket.take() {
                Some(id) => break id,
                None if StdInstant::now() > end => return Err("the interface is busy".to_owned()),
                None => {
                    flush(socket)?;
                    sleep(POLL);
                }
            }
        };
        let buffer = socket.frame_mut(&id);
        let length = frame.len().min(buffer.len());
        buffer[..length].copy_from_slice(&frame[..length]);
        socket.send(id, length, clock::now());
        if !gap.is_zero() {
            flush(socket)?;
        }
    }
    flush(socket)?;
    let end = deadline(StdDuration::ZERO);
    while socket.in_flight() > 0 && StdInstant::now() < end {
        sleep(POLL);
        flush(socket)?;
    }
    let after = socket.transmitted();
    pushed.add(after.sent - before.sent, after.sent_bytes - before.sent_bytes);
    match after.failed - before.failed {
        0 => Ok(()),
        failed => Err(format!("the interface refused {failed} frames")),
    }
}

pub(super) fn push_pkts(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let gap_us = f64::from(parameters.u32_or("ipg_usec", 0)?);
    let packets = parameters.array("pkts")?;
    if packets.len() as f64 * gap_us > REQUEST_US_MAX {
        let text = "TX batch total transmit time exceeds the limit of 1 second";
        return Err(RpcError::parameters(text));
    }
    let interface = &trex.interfaces[port];
    let source = interface.facts().mac;
    let destination = trex.state().ports[port].layers.destination;
    let mut frames = Vec::with_capacity(packets.len());
    for (at, packet) in packets.iter().enumerate() {
        let packet = object_of(at, packet)?;
        let binary = STANDARD.decode(packet.text("binary")?);
        let mut frame =
            binary.map_err(|_| RpcError::parameters("'binary' is not valid base 64"))?;
        let (uses_destination, uses_source) =
            (packet.flag("use_port_dst_mac")?, packet.flag("use_port_src_mac")?);
        if !LENGTHS.contains(&frame.len()) {
            let (found, least, most) = (frame.len(), LENGTHS.start(), LENGTHS.end());
            return Err(RpcError::execution(format!(
                "Bad packet size provided: {found}. Should be between {least} and {most}"
            )));
        }
        if uses_destination && let Some(destination) = destination {
            frame[..6].copy_from_slice(&destination.0);
        }
        if uses_source {
            frame[6..12].copy_from_slice(&source.0);
        }
        frame.resize(frame.len().max(PADDED), 0);
        frames.push(frame);
    }
    let gap = StdDuration::from_secs_f64(gap_us / 1e6);
    let mut sender = interface.sender.lock().unwrap_or_else(PoisonError::into_inner);
    let at = now_s();
    sender.send(&frames, gap, &interface.pushed).map_err(RpcError::execution)?;
    Ok(json!({"sent": frames.len(), "ts": at}))
}
