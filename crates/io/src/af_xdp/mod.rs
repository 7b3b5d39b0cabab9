//! Ports over AF_XDP sockets: frames go between the driver and memory shared with it, past the
//! network stack, without unbinding the interface and without huge pages.
//!
//! One port is one queue: its socket, its memory (UMEM) and its four rings are shared with no
//! other, so ports of different queues run on different cores without touching each other. The
//! halves of a port share the socket only.
//!
//! What the driver can do is found out when the socket is bound, and reported in [`AfXdpFacts`]:
//!
//! - *zero-copy*: the device reads and writes the shared memory itself. Where the driver cannot,
//!   the kernel copies, and makes a socket buffer for each frame that is sent; this works on
//!   every interface, a veth included.
//! - *need-wakeup*: the kernel says when it wants a system call, and otherwise gets none.
//!   A copying socket has to be told of every batch.
//! - *busy polling*: the process runs the driver's receive and transmit work itself, on its
//!   core, instead of an interrupt on whichever core.
//!
//! On a veth pair, which copies, a frame costs 345 to 430 ns of CPU time at 60 bytes and 410 to
//! 500 ns at 1,514: 1.7 to 2 times as fast as `tcpreplay --topspeed` in the same minutes. Bursts
//! of 32 to 128 frames and 512 or 2,048 buffers make no difference.
//!
//! Transmission is pipelined: a flush tells the kernel of new frames and collects those that
//! are done, and never waits for the ones it has just sent.
//!
//! Receiving takes an XDP program on the interface ([`AttachMode`]). It takes the frames of the
//! queues that have a port and leaves the others to the network stack; it writes the time of
//! arrival in front of each frame, so delays are measured at the driver.
//!
//! An interface that takes VLAN tags out of frames does so before XDP sees them: turn it off
//! where frames are to be compared (`ethtool -K IFACE rxvlan off`).

mod frame_memory;
mod program;
mod receive;
mod ring;
mod socket;
mod transmit;

use std::io;
use std::sync::Arc;

use crate::link::{Link, LossMeter, UnfitLink};
use crate::namespace::{InterfaceName, NamespaceError};
use crate::privilege;
use crate::xdp::XdpPlace;
use program::ReceiveProgram;
use socket::Queue;

pub use program::AttachMode;
pub use receive::AfXdpReceive;
pub use transmit::AfXdpTransmit;

/// How AF_XDP sockets are to be opened.
#[derive(Clone, Debug)]
pub struct AfXdpOptions {
    /// Where.
    pub interface: InterfaceName,
    /// Which halves.
    pub direction: Direction,
    /// The first queue that gets a port. Default 0.
    pub first_queue: u32,
    /// How many queues get a port; `None`: all from the first on. Default 1.
    ///
    /// Frames arrive on the queue that the device chooses (`ethtool -x`, `ethtool -X`), and
    /// those of queues without a port are not seen.
    pub queues: Option<u32>,
    /// Frames of each port that can be taken or in flight: 64 to 32,768, a power of two.
    /// Default 512: as much as a driver has in hand between two completions, in 1 MiB.
    pub transmit_frames: u32,
    /// Frames of each port that can wait or be in use: 64 to 32,768, a power of two. Default
    /// 8,192: eight milliseconds at a million frames a second, in 16 MiB.
    pub receive_frames: u32,
    /// Whether the kernel may copy, must, or must not. Default [`CopyMode::Auto`].
    pub copy: CopyMode,
    /// Whether the process does the driver's work. Default none.
    pub busy_poll: Option<BusyPoll>,
    /// Whether ARP, neighbour discovery and pings that carry no signature go to the kernel, and to
    /// packet sockets, instead of to the port. Default no.
    pub passes_neighbours: bool,
    /// Whether what was lost right before the interface is missed as well: what its device had no
    /// room for, and what a virtual cable's other end dropped, as where the ring between both was full.
    /// Not where that end is a port that knows what it could not send. Default no.
    pub counts_lost: bool,
}

/// Which halves of a port are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sending only: no XDP program is attached.
    Transmit,
    /// Receiving only.
    Receive,
    /// Both, on the same queues.
    Both,
}

/// Whether frames are copied between the socket's memory and the driver's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// Not copied where the driver can.
    #[default]
    Auto,
    /// Always copied.
    Copy,
    /// Never copied: an error where the driver cannot.
    ZeroCopy,
}

/// How the process does the driver's work (`SO_PREFER_BUSY_POLL`, Linux 5.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long the kernel keeps interrupts off after the last call.
    pub microseconds: u32,
    /// Frames that one call works on at most, up to 65,535.
    pub budget: u32,
}

impl Default for BusyPoll {
    /// The values that the kernel's documentation of AF_XDP gives.
    fn default() -> Self {
        Self { microseconds: 20, budget: 64 }
    }
}

/// What was found when the sockets were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfXdpFacts {
    /// Whether the device uses the shared memory itself.
    pub zero_copy: bool,
    /// Whether the kernel says when it wants to be called.
    pub need_wakeup: bool,
    /// Whether the process does the driver's work.
    pub busy_poll: bool,
    /// How the receiving program is attached; `None` for sending only.
    pub attached: Option<AttachMode>,
    /// Queues that got a port.
    pub queues: u32,
    /// Queues that the interface has, receiving or sending, whichever are more.
    pub queues_of_interface: u32,
}

/// The ports of an interface, one for each queue, in order.
pub struct AfXdp {
    /// The sending halves; empty for [`Direction::Receive`].
    pub transmit: Vec<AfXdpTransmit>,
    /// The receiving halves; empty for [`Direction::Transmit`].
    pub receive: Vec<AfXdpReceive>,
    /// Finding.
    pub facts: AfXdpFacts,
}

/// Why AF_XDP sockets could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum AfXdpError {
    /// This process may not.
    #[error(
        "no privilege for AF_XDP on {interface} ({operation}): {}",
        privilege::refused(privilege::AF_XDP)
    )]
    Privilege {
        /// Which.
        interface: InterfaceName,
        /// What was tried.
        operation: &'static str,
    },
    /// The kernel was built without AF_XDP.
    #[error("this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); use the af_packet backend")]
    NoAfXdp,
    /// There is no such queue.
    #[error("interface {interface} has {found} queues; queue {asked} was asked for")]
    NoSuchQueue {
        /// Which.
        interface: InterfaceName,
        /// The last queue asked for.
        asked: u32,
        /// How many there are.
        found: u32,
    },
    /// Another socket has the queue, or another program the interface.
    #[error(
        "queue {queue} of interface {interface} is in use by another AF_XDP socket; \
         end the program that has it"
    )]
    QueueInUse {
        /// Which.
        interface: InterfaceName,
        /// Its queue.
        queue: u32,
    },
    /// Another XDP program is attached.
    #[error(
        "interface {interface} has an XDP program{program}; remove it with: \
         {command}, or end the program that attached it",
        command = .interface.namespace.command(&format!("ip link set {} xdp off", .interface.name())),
        program = .program.map(|id| format!(" (id {id})")).unwrap_or_default()
    )]
    ProgramInUse {
        /// Which.
        interface: InterfaceName,
        /// The other program's id.
        program: Option<u32>,
    },
    /// The driver cannot do without copying.
    #[error("the driver of {interface} cannot do zero-copy; leave the choice to the kernel")]
    NoZeroCopy {
        /// Which.
        interface: InterfaceName,
    },
    /// The memory may not be locked.
    #[error(
        "the frames of {interface} need {bytes} bytes of locked memory, more than the limit; \
         raise it with: ulimit -l unlimited, or give the program CAP_IPC_LOCK"
    )]
    LockedMemory {
        /// Which.
        interface: InterfaceName,
        /// How much for each queue.
        bytes: u64,
    },
    /// An option is out of its range.
    #[error("{option} is {found}; expected {expected}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it was.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// The interface is not there, down, or of another kind.
    #[error(transparent)]
    Link(#[from] UnfitLink),
    /// Its namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Anything else the operating system said.
    #[error("{interface}: {operation} failed: {reason}")]
    System {
        /// Which.
        interface: InterfaceName,
        /// What was tried.
        operation: &'static str,
        /// What the system answered.
        reason: io::Error,
    },
}

impl AfXdpOptions {
    /// The defaults, for an interface.
    pub fn new(interface: InterfaceName, direction: Direction) -> Self {
        Self {
            interface,
            direction,
            first_queue: 0,
            queues: Some(1),
            transmit_frames: 512,
            receive_frames: 8192,
            copy: CopyMode::Auto,
            busy_poll: None,
            passes_neighbours: false,
            counts_lost: false,
        }
    }

    fn transmits(&self) -> bool {
        self.direction != Direction::Receive
    }

    fn receives(&self) -> bool {
        self.direction != Direction::Transmit
    }

    fn check(&self) -> Result<(), AfXdpError> {
        const EXPECTED: &str = "a power of two from 64 to 32,768";
        let frames =
            [("transmit_frames", self.transmit_frames), ("receive_frames", self.receive_frames)];
        for (option, found) in frames {
            if !found.is_power_of_two() || !(64..=32_768).contains(&found) {
                let found = u64::from(found);
                return Err(AfXdpError::Option { option, found, expected: EXPECTED });
            }
        }
        if self.queues == Some(0) {
            let (option, expected) = ("queues", "at least 1");
            return Err(AfXdpError::Option { option, found: 0, expected });
        }
        if let Some(BusyPoll { budget, .. }) = self.busy_poll
            && !(1..=65_535).contains(&budget)
        {
            let (option, expected) = ("busy_poll.budget", "1 to 65,535");
            return Err(AfXdpError::Option { option, found: u64::from(budget), expected });
        }
        Ok(())
    }

    fn system(&self, operation: &'static str) -> impl FnOnce(io::Error) -> AfXdpError {
        let interface = self.interface.clone();
        move |reason| match reason.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => AfXdpError::Privilege { interface, operation },
            Some(libc::EAFNOSUPPORT) => AfXdpError::NoAfXdp,
            _ => AfXdpError::System { interface, operation, reason },
        }
    }
}

impl AfXdp {
    /// Opens a port for each queue that was asked for, and attaches the receiving program where
    /// there is something to receive. It stays attached until the last receiving half is gone.
    ///
    /// # Errors
    /// Where there is no such interface or queue, another program or socket has it, privilege
    /// or locked memory is lacking, or an option is out of its range.
    pub fn open(options: &AfXdpOptions) -> Result<Self, AfXdpError> {
        Self::open_at(options, None)
    }

    /// As [`Self::open`], with the receiving program in the place of another one: every frame
    /// passes by one of them, or is left to the network stack until the sockets are there.
    ///
    /// # Errors
    /// As [`Self::open`]'s. The interface is left without a program.
    pub fn open_in_place(options: &AfXdpOptions, place: XdpPlace) -> Result<Self, AfXdpError> {
        Self::open_at(options, Some(place))
    }

    fn open_at(options: &AfXdpOptions, place: Option<XdpPlace>) -> Result<Self, AfXdpError> {
        options.check()?;
        let interface = options.interface.clone();
        let link = Link::open_for_port(&interface, &[libc::ARPHRD_ETHER], "Ethernet (1)")?;
        let found = match options.direction {
            Direction::Receive => link.queues.receive,
            Direction::Transmit => link.queues.transmit,
            Direction::Both => link.queues.receive.min(link.queues.transmit),
        };
        let queues = options.queues.unwrap_or(found.saturating_sub(options.first_queue).max(1));
        let asked = options.first_queue.saturating_add(queues - 1);
        if asked >= found {
            return Err(AfXdpError::NoSuchQueue { interface, asked, found });
        }
        options.interface.namespace.enter(|| Self::open_here(options, &link, queues, place))?
    }

    /// As [`Self::open`], on a thread that is in the interface's namespace.
    fn open_here(
        options: &AfXdpOptions,
        link: &Link,
        queues: u32,
        place: Option<XdpPlace>,
    ) -> Result<Self, AfXdpError> {
        // The program first: a driver may set its queues up anew when one is attached, and a
        // socket that was bound before would notice.
        let program = options.receives().then(|| attach(options, link, place)).transpose()?;
        let mut ports = Self {
            transmit: Vec::new(),
            receive: Vec::new(),
            facts: AfXdpFacts {
                zero_copy: true,
                need_wakeup: true,
                busy_poll: options.busy_poll.is_some(),
                attached: program.as_ref().map(|program| program.mode()),
                queues,
                queues_of_interface: link.queues.receive.max(link.queues.transmit),
            },
        };
        for number in options.first_queue..options.first_queue + queues {
            let queue = Queue::open(options, link, number)?;
            ports.facts.zero_copy &= queue.socket.zero_copy;
            ports.facts.need_wakeup &= queue.socket.need_wakeup;
            ports.facts.busy_poll &= queue.socket.busy_poll;
            if let Some(half) = queue.transmit {
                ports.transmit.push(AfXdpTransmit::new(Arc::clone(&queue.socket), half, link));
            }
            if let (Some(half), Some(program)) = (queue.receive, &program) {
                program
                    .serve(number, queue.socket.fd())
                    .map_err(options.system("entering the socket into the program's map"))?;
                let program = Arc::clone(program);
                // It is the interface's, not the queue's: one of them counts it.
                let losses = (options.counts_lost && number == options.first_queue)
                    .then(|| LossMeter::open(link))
                    .transpose()
                    .map_err(options.system("opening netlink"))?;
                let port = AfXdpReceive::new(queue.socket, half, link, number, program, losses);
                ports.receive.push(port);
            }
        }
        Ok(ports)
    }
}

fn attach(
    options: &AfXdpOptions,
    link: &Link,
    place: Option<XdpPlace>,
) -> Result<Arc<ReceiveProgram>, AfXdpError> {
    let attached = ReceiveProgram::attach(link.index, options.passes_neighbours, place);
    attached.map(Arc::new).map_err(|reason| match reason.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => AfXdpError::ProgramInUse {
            interface: options.interface.clone(),
            program: link.xdp_program,
        },
        _ => options.system("attaching the receiving program")(reason),
    })
}
