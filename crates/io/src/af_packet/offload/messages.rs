//! Rows of messages for `sendmmsg(2)` and `recvmmsg(2)`.

use std::io;
use std::mem::{offset_of, size_of};

use super::VIRTIO_HEADER_BYTES;
use crate::system::checked;
use crate::system::socket::{Plain, Socket};

/// So many go with one call.
pub(super) const MESSAGES_MAX: usize = 64;

/// Room for a time, and behind it for one `struct tpacket_auxdata`, each with its header (`cmsg(3)`).
/// The kernel writes them in this order (`packet_recvmsg` of `net/packet/af_packet.c`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    time_header: libc::cmsghdr,
    time: libc::timespec,
    header: libc::cmsghdr,
    told: libc::tpacket_auxdata,
}

/// What the kernel tells of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing: they are to be sent.
    Nothing,
    /// What it knows of a frame (`PACKET_AUXDATA`).
    Frame,
    /// When it came, as well (`SO_TIMESTAMPNS`).
    FrameAndTime,
}

impl Told {
    /// Where in [`Control`] it begins.
    const fn start(self) -> usize {
        match self {
            Self::Nothing => size_of::<Control>(),
            Self::Frame => offset_of!(Control, header),
            Self::FrameAndTime => 0,
        }
    }
}

/// A row of messages, each of a virtio header and a frame behind it.
pub(super) struct Messages {
    pieces: Box<[libc::iovec]>,
    controls: Box<[Control]>,
    rows: Box<[libc::mmsghdr]>,
    told: Told,
}

// SAFETY: the pointers in it are to its own boxes, and to frames that are told anew for each call.
unsafe impl Send for Messages {}

impl Messages {
    /// Messages to be sent, or to be received together with what the kernel tells of them.
    pub(super) fn new(told: Told) -> Self {
        let mut messages = Self {
            pieces: vec![libc::iovec::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            controls: vec![Control::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            rows: vec![libc::mmsghdr::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            told,
        };
        let places = messages.pieces.iter_mut().zip(&mut messages.controls);
        for (row, (piece, control)) in messages.rows.iter_mut().zip(places) {
            row.msg_hdr.msg_iov = piece;
            row.msg_hdr.msg_iovlen = 1;
            if told != Told::Nothing {
                let control = std::ptr::from_mut(control);
                row.msg_hdr.msg_control = control.cast::<u8>().wrapping_add(told.start()).cast();
            }
        }
        messages
    }

    /// Sends frames with their headers, at most [`MESSAGES_MAX`], in order; returns how many.
    pub(super) fn send<'a>(
        &mut self,
        socket: &Socket,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut count: libc::c_uint = 0;
        for (piece, frame) in self.pieces.iter_mut().zip(frames) {
            // The kernel reads what is sent.
            *piece =
                libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        let (rows, flags) = (self.rows.as_mut_ptr(), libc::MSG_DONTWAIT);
        // SAFETY: the pieces of `count` rows were set just now, to memory that is borrowed until
        // the call ends and that it only reads.
        let sent = checked(unsafe { libc::sendmmsg(socket.fd(), rows, count, flags) })?;
        Ok(sent as usize)
    }

    /// Receives into buffers, at most [`MESSAGES_MAX`]; returns how many were filled, in order.
    pub(super) fn receive<'a>(
        &mut self,
        socket: &Socket,
        buffers: impl Iterator<Item = &'a mut [u8]>,
    ) -> io::Result<usize> {
        let mut count: libc::c_uint = 0;
        let places = self.pieces.iter_mut().zip(&mut self.rows);
        for ((piece, row), buffer) in places.zip(buffers) {
            *piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            row.msg_hdr.msg_controllen = (size_of::<Control>() - self.told.start()) as _;
            count += 1;
        }
        let (rows, flags) = (self.rows.as_mut_ptr(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        // SAFETY: the pieces of `count` rows were set just now, to memory that is borrowed for
        // writing until the call ends; without a time limit.
        let received = checked(unsafe {
            libc::recvmmsg(socket.fd(), rows, count, flags, std::ptr::null_mut())
        })?;
        Ok(received as usize)
    }

    /// Bytes of the frame that message `place` brought, as long as it was even where there was
    /// less room.
    pub(super) fn length(&self, place: usize) -> usize {
        (self.rows[place].msg_len as usize).saturating_sub(VIRTIO_HEADER_BYTES)
    }

    /// What is told of the frame that message `place` brought.
    pub(super) fn told(&self, place: usize) -> Option<&libc::tpacket_auxdata> {
        const NEEDED: usize = offset_of!(Control, told) + size_of::<libc::tpacket_auxdata>();
        let Control { header, told, .. } = &self.controls[place];
        let is_there = self.told.start() + self.rows[place].msg_hdr.msg_controllen >= NEEDED
            && (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA);
        is_there.then_some(told)
    }

    /// When the kernel saw the frame that message `place` brought, in nanoseconds of
    /// `CLOCK_REALTIME`, where it was to tell.
    pub(super) fn time(&self, place: usize) -> Option<u64> {
        const NEEDED: usize = offset_of!(Control, header);
        let Control { time_header, time, .. } = &self.controls[place];
        let is_there = self.told == Told::FrameAndTime
            && self.rows[place].msg_hdr.msg_controllen >= NEEDED
            && (time_header.cmsg_level, time_header.cmsg_type)
                == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        is_there.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

// SAFETY: integers alone.
unsafe impl Plain for Control {}
