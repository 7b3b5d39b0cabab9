//! How long datagrams may be.

use wirestorm_model::program::{Piece, Step};

use super::types::{Server, Template};
use crate::document::error::PlanError;
use crate::document::port::Port;

/// A datagram of UDP without its header, over either version of IP: RFC 768 has 16 bits for the
/// length of both, RFC 791 as many for that of the packet with its header of 20 bytes, RFC 8200
/// for what is behind the header of IPv6.
const LENGTH_MAX_IPV4: u64 = 65_535 - 20 - 8;
const LENGTH_MAX_IPV6: u64 = 65_535 - 8;

/// Whether there can be such datagrams as programs send.
pub(super) fn check(template: &Template, ports: &[Port]) -> Result<(), PlanError> {
    let client =
        template.client.as_ref().map(|it| ("client", it.servers.first.is_ipv4(), &it.program));
    let server = template.server.as_ref();
    let server = server.map(|it| ("server", is_ipv4(it, template, ports), &it.program));
    for (side, is_ipv4, steps) in client.into_iter().chain(server) {
        let most = if is_ipv4 { LENGTH_MAX_IPV4 } else { LENGTH_MAX_IPV6 };
        let Some((place, length)) = too_long(steps, most) else { continue };
        let path = format!("{}.{side}.program{place}.send_datagram", template.path);
        let message =
            format!("found {length} bytes, expected at most {most}, as long as one can be");
        return Err(PlanError { path, message });
    }
    Ok(())
}

/// Whether all that a server is asked is over IPv4, as far as the plan knows.
fn is_ipv4(server: &Server, template: &Template, ports: &[Port]) -> bool {
    if let Some(range) = server.addresses {
        return range.first.is_ipv4();
    }
    if let Some(client) = &template.client {
        return client.servers.first.is_ipv4();
    }
    let own = &ports[server.transmit].addresses;
    !own.is_empty() && own.iter().all(|it| it.address.is_ipv4())
}

/// Where the first datagram is sent that is longer than this whatever values are, behind the place
/// of the steps, and its length.
fn too_long(steps: &[Step], most: u64) -> Option<(String, u64)> {
    steps.iter().enumerate().find_map(|(index, step)| {
        let length = match step {
            Step::SendDatagram { size, .. } => u64::from(*size),
            Step::SendOwnDatagram(it) => {
                let drawn = it.pieces.iter().map(|piece| match piece {
                    Piece::RandomBytes(length) | Piece::RandomText(length) => u64::from(*length),
                    Piece::Bytes(_) | Piece::Value(..) => 0,
                });
                u64::from(it.size).max(it.length_min() as u64 + drawn.sum::<u64>())
            }
            Step::Repeat { steps, .. } => {
                let (place, length) = too_long(steps, most)?;
                return Some((format!("[{index}].repeat.steps{place}"), length));
            }
            _ => return None,
        };
        (length > most).then(|| (format!("[{index}]"), length))
    })
}
