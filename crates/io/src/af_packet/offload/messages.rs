//! Message arrays for `sendmmsg(2)` and `recvmmsg(2)`.

use std::io;
use std::mem::{offset_of, size_of};

use super::VIRTIO_HEADER_BYTES;
use crate::system::checked;
use crate::system::socket::{Plain, Socket};

/// Highest number of messages of one call.
pub(super) const MESSAGES_MAX: usize = 64;

/// Buffer for control messages: a time stamp and a `struct tpacket_auxdata`, each with its header
/// (`cmsg(3)`). The kernel writes them in this order (`packet_recvmsg` of
/// `net/packet/af_packet.c`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    time_header: libc::cmsghdr,
    time: libc::timespec,
    header: libc::cmsghdr,
    auxdata: libc::tpacket_auxdata,
}

/// Control messages that the kernel delivers with each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlMessages {
    /// None; for sending.
    Nothing,
    /// Frame metadata (`PACKET_AUXDATA`).
    Frame,
    /// Frame metadata and the arrival time (`SO_TIMESTAMPNS`).
    MetadataAndTime,
}

impl ControlMessages {
    /// Offset in [`Control`] of the first control message.
    const fn start(self) -> usize {
        match self {
            Self::Nothing => size_of::<Control>(),
            Self::Frame => offset_of!(Control, header),
            Self::MetadataAndTime => 0,
        }
    }
}

/// An array of messages, each a virtio header followed by a frame.
pub(super) struct Messages {
    iovecs: Box<[libc::iovec]>,
    controls: Box<[Control]>,
    headers: Box<[libc::mmsghdr]>,
    control_messages: ControlMessages,
}

// SAFETY: the pointers refer to the value's own boxes, and to frames that each call sets anew.
unsafe impl Send for Messages {}

impl Messages {
    /// Creates messages for sending, or for receiving with `control_messages`.
    pub(super) fn new(control_messages: ControlMessages) -> Self {
        let mut messages = Self {
            iovecs: vec![libc::iovec::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            controls: vec![Control::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            headers: vec![libc::mmsghdr::zeroed(); MESSAGES_MAX].into_boxed_slice(),
            control_messages,
        };
        let places = messages.iovecs.iter_mut().zip(&mut messages.controls);
        for (row, (piece, control)) in messages.headers.iter_mut().zip(places) {
            row.msg_hdr.msg_iov = piece;
            row.msg_hdr.msg_iovlen = 1;
            if control_messages != ControlMessages::Nothing {
                let control = std::ptr::from_mut(control);
                row.msg_hdr.msg_control =
                    control.cast::<u8>().wrapping_add(control_messages.start()).cast();
            }
        }
        messages
    }

    /// Sends frames with their headers in order, at most [`MESSAGES_MAX`]; returns the number sent.
    pub(super) fn send<'a>(
        &mut self,
        socket: &Socket,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut count: libc::c_uint = 0;
        for (piece, frame) in self.iovecs.iter_mut().zip(frames) {
            // The kernel only reads from the buffer of a sent message.
            *piece =
                libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        let (rows, flags) = (self.headers.as_mut_ptr(), libc::MSG_DONTWAIT);
        // SAFETY: the loop above set the pieces of `count` rows, to memory that is borrowed until
        // the call ends. The call only reads from it.
        let sent = checked(unsafe { libc::sendmmsg(socket.fd(), rows, count, flags) })?;
        Ok(sent as usize)
    }

    /// Receives into buffers, at most [`MESSAGES_MAX`]; returns the number filled, in order.
    pub(super) fn receive<'a>(
        &mut self,
        socket: &Socket,
        buffers: impl Iterator<Item = &'a mut [u8]>,
    ) -> io::Result<usize> {
        let mut count: libc::c_uint = 0;
        let places = self.iovecs.iter_mut().zip(&mut self.headers);
        for ((piece, row), buffer) in places.zip(buffers) {
            *piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            row.msg_hdr.msg_controllen =
                (size_of::<Control>() - self.control_messages.start()) as _;
            count += 1;
        }
        let (rows, flags) = (self.headers.as_mut_ptr(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        // SAFETY: the loop above set the pieces of `count` rows, to memory that is borrowed for
        // writing until the call ends. A null timeout is allowed.
        let received = checked(unsafe {
            libc::recvmmsg(socket.fd(), rows, count, flags, std::ptr::null_mut())
        })?;
        Ok(received as usize)
    }

    /// Original length of the frame in message `place`, in bytes, even if the buffer was shorter.
    pub(super) fn length(&self, place: usize) -> usize {
        (self.headers[place].msg_len as usize).saturating_sub(VIRTIO_HEADER_BYTES)
    }

    /// Metadata of the frame in message `place`; `None` if the kernel delivered none.
    pub(super) fn metadata(&self, place: usize) -> Option<&libc::tpacket_auxdata> {
        const NEEDED: usize = offset_of!(Control, auxdata) + size_of::<libc::tpacket_auxdata>();
        let Control { header, auxdata, .. } = &self.controls[place];
        let is_present = self.control_messages.start() + self.headers[place].msg_hdr.msg_controllen
            >= NEEDED
            && (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA);
        is_present.then_some(auxdata)
    }

    /// Arrival time of the frame in message `place`, in nanoseconds of `CLOCK_REALTIME`; `None`
    /// unless [`ControlMessages::MetadataAndTime`] requested it.
    pub(super) fn time(&self, place: usize) -> Option<u64> {
        const NEEDED: usize = offset_of!(Control, header);
        let Control { time_header, time, .. } = &self.controls[place];
        let is_present = self.control_messages == ControlMessages::MetadataAndTime
            && self.headers[place].msg_hdr.msg_controllen >= NEEDED
            && (time_header.cmsg_level, time_header.cmsg_type)
                == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        is_present.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

// SAFETY: all fields are integers.
unsafe impl Plain for Control {}
