//! Typed wrappers of `socket(2)`, its options and addresses.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use wirestorm_base::time::{Duration, NANOSECONDS_PER_SECOND};

use super::{checked, checked_length};

/// Types for which any bytes from the kernel are a valid value.
///
/// # Safety
/// Every bit pattern, all zeroes included, must be a valid value: integers, and C structures
/// made of integers, arrays of them and raw pointers.
pub(crate) unsafe trait Plain: Copy {
    /// Returns a value with all bytes zero, as most kernel structures require for unused fields.
    fn zeroed() -> Self {
        // SAFETY: the trait promises that zeroes are a valid value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        // SAFETY: integers and C structures made of integers and raw pointers only.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(
    i32,
    u32,
    [u32; 9],
    libc::sockaddr_ll,
    libc::sockaddr_nl,
    libc::sockaddr_un,
    libc::sockaddr_xdp,
    libc::ip_mreqn,
    libc::packet_mreq,
    libc::sock_fprog,
    libc::tpacket_req,
    libc::tpacket_req3,
    libc::tpacket_stats_v3,
    libc::tpacket3_hdr,
    libc::tpacket_hdr_v1,
    libc::ucred,
    libc::xdp_mmap_offsets,
    libc::xdp_options,
    libc::xdp_statistics,
    libc::xdp_umem_reg,
    libc::mmsghdr,
    libc::iovec,
);

/// A socket, closed when dropped.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl From<OwnedFd> for Socket {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Socket {
    /// Opens a socket with `SOCK_CLOEXEC` in the network namespace of this thread.
    pub(crate) fn open(domain: i32, kind: i32, protocol: i32) -> io::Result<Self> {
        // SAFETY: takes integers only.
        let fd = checked(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Assigns an address to the socket (`bind(2)`).
    pub(crate) fn bind<A: Plain>(&self, address: &A, length: usize) -> io::Result<()> {
        assert!(length <= size_of::<A>(), "an address of {length} bytes");
        let address = std::ptr::from_ref(address).cast();
        // SAFETY: `length` bytes are readable at `address`, by the assertion.
        checked(unsafe { libc::bind(self.fd(), address, length as libc::socklen_t) })?;
        Ok(())
    }

    /// Connects to the socket at `address` (`connect(2)`).
    pub(crate) fn connect<A: Plain>(&self, address: &A, length: usize) -> io::Result<()> {
        assert!(length <= size_of::<A>(), "an address of {length} bytes");
        let address = std::ptr::from_ref(address).cast();
        // SAFETY: `length` bytes are readable at `address`, by the assertion.
        checked(unsafe { libc::connect(self.fd(), address, length as libc::socklen_t) })?;
        Ok(())
    }

    /// Accepts connection requests into a backlog (`listen(2)`).
    pub(crate) fn listen(&self, backlog: i32) -> io::Result<()> {
        // SAFETY: takes integers only.
        checked(unsafe { libc::listen(self.fd(), backlog) })?;
        Ok(())
    }

    /// Sets a socket option.
    pub(crate) fn set_option<T: Plain>(&self, level: i32, name: i32, value: &T) -> io::Result<()> {
        self.set_option_bytes(level, name, std::ptr::from_ref(value).cast(), size_of::<T>())
    }

    fn set_option_bytes(
        &self,
        level: i32,
        name: i32,
        value: *const libc::c_void,
        length: usize,
    ) -> io::Result<()> {
        let length = length as libc::socklen_t;
        // SAFETY: the only caller passes a value and its size.
        checked(unsafe { libc::setsockopt(self.fd(), level, name, value, length) })?;
        Ok(())
    }

    /// Reads a socket option; bytes that the kernel does not fill in are zero.
    pub(crate) fn option<T: Plain>(&self, level: i32, name: i32) -> io::Result<T> {
        let mut value = T::zeroed();
        let mut length = size_of::<T>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut value).cast();
        // SAFETY: `length` bytes are writable at `value`, and any bytes are a valid `T`.
        checked(unsafe { libc::getsockopt(self.fd(), level, name, pointer, &mut length) })?;
        Ok(value)
    }

    /// Returns the address that the socket is bound to (`getsockname(2)`).
    pub(crate) fn name<A: Plain>(&self) -> io::Result<A> {
        let mut address = A::zeroed();
        let mut length = size_of::<A>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut address).cast();
        // SAFETY: `length` bytes are writable at `address`, and any bytes are a valid `A`.
        checked(unsafe { libc::getsockname(self.fd(), pointer, &mut length) })?;
        Ok(address)
    }

    /// Returns the `IFF_*` flags of an interface in the socket's namespace; `None` if the interface
    /// does not exist.
    pub(crate) fn interface_flags(&self, interface: &str) -> Option<i32> {
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
        };
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        let command = libc::SIOCGIFFLAGS as _;
        // SAFETY: the request is a whole `struct ifreq` with a terminated name.
        checked(unsafe { libc::ioctl(self.fd(), command, &mut request) }).ok()?;
        // SAFETY: the call fills in this field, and any bits are a valid number.
        Some(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Sends one datagram.
    pub(crate) fn send(&self, bytes: &[u8], flags: i32) -> io::Result<usize> {
        // SAFETY: the slice is readable for its length.
        checked_length(unsafe { libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
    }

    /// Sends one datagram to an address.
    pub(crate) fn send_to<A: Plain>(&self, bytes: &[u8], address: &A) -> io::Result<usize> {
        let length = size_of::<A>() as libc::socklen_t;
        let address = std::ptr::from_ref(address).cast();
        // SAFETY: the slice is readable for its length, and the address for its size.
        checked_length(unsafe {
            libc::sendto(self.fd(), bytes.as_ptr().cast(), bytes.len(), 0, address, length)
        })
    }

    /// Receives one datagram. With `MSG_TRUNC` the result may exceed the buffer's length.
    pub(crate) fn receive(&self, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
        let (start, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the slice is writable for its length.
        checked_length(unsafe { libc::recv(self.fd(), start, length, flags) })
    }

    /// Waits up to `patience` until a datagram or an error is pending. Returns early on a signal.
    pub(crate) fn wait_readable(&self, patience: Duration) {
        self.wait_readable_or(None, patience);
    }

    /// Same as [`Self::wait_readable`], for this socket or another descriptor.
    pub(crate) fn wait_readable_or(&self, other: Option<RawFd>, patience: Duration) {
        // `ppoll` ignores a negative descriptor.
        let other = libc::pollfd { fd: other.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
        poll(&mut [self.readable(), other], patience);
    }

    fn readable(&self) -> libc::pollfd {
        libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 }
    }

    /// Returns the descriptor, for calls without a wrapper here.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Same as [`Socket::wait_readable`], for the first of several sockets.
pub(crate) fn wait_any_readable<'a>(
    sockets: impl Iterator<Item = BorrowedFd<'a>>,
    patience: Duration,
) {
    let readable = |socket: BorrowedFd<'_>| libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut events: Vec<libc::pollfd> = sockets.map(readable).collect();
    poll(&mut events, patience);
}

fn poll(events: &mut [libc::pollfd], patience: Duration) {
    let timeout = libc::timespec {
        tv_sec: (patience.as_nanos() / NANOSECONDS_PER_SECOND) as libc::time_t,
        tv_nsec: (patience.as_nanos() % NANOSECONDS_PER_SECOND) as libc::c_long,
    };
    let count = events.len() as libc::nfds_t;
    // SAFETY: `count` events and the timeout outlive the call. The result does not matter: the
    // caller checks the sockets itself.
    unsafe {
        libc::ppoll(events.as_mut_ptr(), count, &raw const timeout, std::ptr::null());
    }
}
