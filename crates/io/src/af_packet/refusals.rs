//! An interface that takes no frames.

use wirestorm_base::port::PortError;

use crate::namespace::InterfaceName;
use crate::system::socket::Socket;

/// After so many refusals in a row the interface's state is looked at.
const REFUSALS_PER_LOOK: u32 = 1024;
/// After so many refusals in a row, at least a second, the interface counts as stuck.
const REFUSALS_MAX: u32 = 4 << 20;

/// Refusals in a row.
#[derive(Debug, Default)]
pub(super) struct Refusals(u32);

impl Refusals {
    /// The frame at the head of the queue was not taken. It stays there for the next flush.
    ///
    /// # Errors
    /// Where the interface cannot send at all.
    pub(super) fn note(
        &mut self,
        interface: &InterfaceName,
        socket: &Socket,
    ) -> Result<(), PortError> {
        self.0 += 1;
        if self.0.is_multiple_of(REFUSALS_PER_LOOK) {
            look(interface, socket)?;
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

/// Looks whether the interface can send at all.
fn look(interface: &InterfaceName, socket: &Socket) -> Result<(), PortError> {
    match socket.interface_flags(interface.name()) {
        Some(flags) if flags & libc::IFF_UP == 0 => Err(interface.went_down()),
        Some(flags) if flags & libc::IFF_RUNNING == 0 => Err(PortError::System {
            interface: interface.to_string(),
            operation: "sending",
            reason: "no carrier: the cable, or the peer of a veth, is down".into(),
        }),
        // What cannot be asked is not the cause.
        Some(_) | None => Ok(()),
    }
}
