//! Checks the length of UDP datagrams.

use wirestorm_model::program::{Piece, Step};

use super::types::{Server, Template};
use crate::document::error::PlanError;
use crate::document::port::Port;

/// Maximum UDP payload in bytes over IPv4. The Total Length of RFC 791 has 16 bits and includes the
/// IPv4 header of 20 bytes and the UDP header of 8 bytes.
const LENGTH_MAX_IPV4: u64 = 65_535 - 20 - 8;
/// Maximum UDP payload in bytes over IPv6. The Length of RFC 768 and the Payload Length of RFC 8200
/// have 16 bits and include the UDP header of 8 bytes.
const LENGTH_MAX_IPV6: u64 = 65_535 - 8;

/// Checks that the datagrams of a template's programs fit into UDP.
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
            format!("found {length} bytes, expected at most {most}, the maximum of a UDP datagram");
        return Err(PlanError { path, message });
    }
    Ok(())
}

/// Returns whether all flows of a server use IPv4, as far as the plan defines it.
fn is_ipv4(server: &Server, template: &Template, ports: &[Port]) -> bool {
    if let Some(range) = server.addresses {
        return range.first.is_ipv4();
    }
    if let Some(client) = &template.client {
        return client.servers.first.is_ipv4();
    }
    let addresses = &ports[server.transmit].addresses;
    !addresses.is_empty() && addresses.iter().all(|it| it.address.is_ipv4())
}

/// Returns the relative path and the length of the first datagram that is longer than `most`, even
/// if all its values are empty.
fn too_long(steps: &[Step], most: u64) -> Option<(String, u64)> {
    steps.iter().enumerate().find_map(|(index, step)| {
        let length = match step {
            Step::SendDatagram { size, .. } => u64::from(*size),
            Step::SendComposedDatagram(it) => {
                let random_lengths = it.pieces.iter().map(|piece| match piece {
                    Piece::RandomBytes(length) | Piece::RandomText(length) => u64::from(*length),
                    Piece::Bytes(_) | Piece::Value(..) => 0,
                });
                u64::from(it.size).max(it.length_min() as u64 + random_lengths.sum::<u64>())
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
