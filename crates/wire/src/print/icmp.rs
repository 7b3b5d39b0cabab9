//! ICMP messages in tcpdump's format.

use core::fmt::{self, Formatter};

use crate::packet::{icmpv4, icmpv6};

/// Writes the ICMP message at the start of `data`; it had `length` bytes on the wire.
pub(super) fn write(f: &mut Formatter<'_>, data: &[u8], length: usize) -> fmt::Result {
    let Ok(message) = icmpv4::Packet::new(data) else {
        return write!(f, "ICMP [|icmp], length {length}");
    };
    f.write_str("ICMP ")?;
    match (message.kind(), message.code()) {
        (icmpv4::ECHO_REQUEST, _) => {
            write_echo(f, "request", message.identifier(), message.sequence())?
        }
        (icmpv4::ECHO_REPLY, _) => {
            write_echo(f, "reply", message.identifier(), message.sequence())?
        }
        (icmpv4::DESTINATION_UNREACHABLE, 0) => f.write_str("net unreachable")?,
        (icmpv4::DESTINATION_UNREACHABLE, 1) => f.write_str("host unreachable")?,
        (icmpv4::DESTINATION_UNREACHABLE, 2) => f.write_str("protocol unreachable")?,
        (icmpv4::DESTINATION_UNREACHABLE, 3) => f.write_str("port unreachable")?,
        (icmpv4::DESTINATION_UNREACHABLE, 4) => {
            write!(f, "unreachable - need to frag (mtu {})", message.sequence())?;
        }
        (icmpv4::DESTINATION_UNREACHABLE, code) => write!(f, "unreachable - #{code}")?,
        (icmpv4::REDIRECT, code) => write!(f, "redirect-#{code}")?,
        (icmpv4::TIME_EXCEEDED, 0) => f.write_str("time exceeded in-transit")?,
        (icmpv4::TIME_EXCEEDED, _) => f.write_str("ip reassembly time exceeded")?,
        (kind, code) => write!(f, "type-#{kind} code {code}")?,
    }
    write!(f, ", length {length}")
}

/// Writes the ICMPv6 message at the start of `data`; it had `length` bytes on the wire.
pub(super) fn write_v6(f: &mut Formatter<'_>, data: &[u8], length: usize) -> fmt::Result {
    let Ok(message) = icmpv6::Packet::new(data) else {
        return write!(f, "ICMP6 [|icmp6], length {length}");
    };
    f.write_str("ICMP6, ")?;
    match (message.kind(), message.code()) {
        (icmpv6::ECHO_REQUEST, _) => {
            write_echo(f, "request", message.identifier(), message.sequence())?
        }
        (icmpv6::ECHO_REPLY, _) => {
            write_echo(f, "reply", message.identifier(), message.sequence())?
        }
        (icmpv6::DESTINATION_UNREACHABLE, 3) => {
            f.write_str("destination unreachable, unreachable address")?
        }
        (icmpv6::DESTINATION_UNREACHABLE, 4) => {
            f.write_str("destination unreachable, unreachable port")?
        }
        (icmpv6::DESTINATION_UNREACHABLE, code) => {
            write!(f, "destination unreachable, code {code}")?
        }
        (icmpv6::PACKET_TOO_BIG, _) => write!(f, "packet too big, mtu {}", message.rest())?,
        (icmpv6::TIME_EXCEEDED, 0) => f.write_str("time exceeded in-transit")?,
        (icmpv6::TIME_EXCEEDED, _) => f.write_str("ip6 reassembly time exceeded")?,
        (icmpv6::ROUTER_SOLICITATION, _) => f.write_str("router solicitation")?,
        (icmpv6::ROUTER_ADVERTISEMENT, _) => f.write_str("router advertisement")?,
        (icmpv6::NEIGHBOR_SOLICITATION, _) => {
            write!(f, "neighbor solicitation, who has {}", message.target())?;
        }
        (icmpv6::NEIGHBOR_ADVERTISEMENT, _) => {
            write!(f, "neighbor advertisement, tgt is {}", message.target())?;
        }
        (kind, code) => write!(f, "type-#{kind} code {code}")?,
    }
    write!(f, ", length {length}")
}

fn write_echo(f: &mut Formatter<'_>, what: &str, identifier: u16, sequence: u16) -> fmt::Result {
    write!(f, "echo {what}, id {identifier}, seq {sequence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    type Write = fn(&mut Formatter<'_>, &[u8], usize) -> fmt::Result;

    struct Shown<'a>(Write, &'a [u8]);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            self.0(f, self.1, self.1.len())
        }
    }

    fn shown(write: Write, data: &[u8]) -> String {
        Shown(write, data).to_string()
    }

    #[test]
    fn messages_have_names() {
        assert_eq!(
            shown(write, &[8, 0, 0, 0, 0, 7, 0, 9]),
            "ICMP echo request, id 7, seq 9, length 8"
        );
        assert_eq!(shown(write, &[3, 3, 0, 0, 0, 0, 0, 0]), "ICMP port unreachable, length 8");
        assert_eq!(
            shown(write, &[3, 4, 0, 0, 0, 0, 5, 0xdc]),
            "ICMP unreachable - need to frag (mtu 1500), length 8"
        );
        assert_eq!(shown(write, &[8, 0]), "ICMP [|icmp], length 2");
        let mut solicitation = [0; 24];
        (solicitation[0], solicitation[8], solicitation[23]) = (135, 0xfe, 1);
        assert_eq!(
            shown(write_v6, &solicitation),
            "ICMP6, neighbor solicitation, who has fe00::1, length 24"
        );
    }
}
