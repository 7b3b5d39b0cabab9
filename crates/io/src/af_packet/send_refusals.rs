//! Detection of an interface that accepts no frames.

use wirestorm_base::port::PortError;

use crate::namespace::InterfaceName;
use crate::system::socket::Socket;

/// Number of consecutive refusals after which the port checks the state of the interface.
const REFUSALS_PER_CHECK: u32 = 1024;
/// Number of consecutive refusals after which the port fails; this takes at least a second.
const REFUSALS_MAX: u32 = 4 << 20;

/// Counts consecutive refusals.
#[derive(Debug, Default)]
pub(super) struct Refusals(u32);

impl Refusals {
    /// Counts a refusal of the frame at the head of the queue, which stays there for the next
    /// flush.
    ///
    /// # Errors
    /// Fails if the interface cannot send at all.
    pub(super) fn count(
        &mut self,
        interface: &InterfaceName,
        socket: &Socket,
    ) -> Result<(), PortError> {
        self.0 += 1;
        if self.0.is_multiple_of(REFUSALS_PER_CHECK) {
            check_carrier(interface, socket)?;
        }
        if self.0 >= REFUSALS_MAX {
            let count = std::mem::take(&mut self.0);
            return Err(PortError::System {
                interface: interface.to_string(),
                operation: "sending",
                reason: format!("the interface refused a frame {count} times in a row"),
            });
        }
        Ok(())
    }
}

/// Checks whether the interface is up and has carrier.
fn check_carrier(interface: &InterfaceName, socket: &Socket) -> Result<(), PortError> {
    match socket.interface_flags(interface.name()) {
        Some(flags) if flags & libc::IFF_UP == 0 => Err(interface.down_error()),
        Some(flags) if flags & libc::IFF_RUNNING == 0 => Err(PortError::System {
            interface: interface.to_string(),
            operation: "sending",
            reason: "no carrier: the cable, or the peer of a veth, is down".into(),
        }),
        // Unknown flags do not explain the refusal.
        Some(_) | None => Ok(()),
    }
}
