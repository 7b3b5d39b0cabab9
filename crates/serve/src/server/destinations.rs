//! Limits of an agent on the destinations of frames.
//!
//! The addresses of a plan of streams are known before the run: those of the templates, and those that
//! the programs write.

use std::net::IpAddr;
use std::ops::Range;

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_control::model::stream::{ByteOrder, Step, Stream, Values, Variable, Write};
use wirestorm_control::run::Plan;
use wirestorm_control::wire::prefix::Prefix;

/// Offset of the EtherType in a frame, and lengths of an EtherType and a VLAN tag in bytes.
const TYPE_OFFSET: usize = 12;
const TYPE_BYTES: usize = 2;
const TAG_BYTES: usize = 4;
/// Most VLAN tags.
const TAGS_MAX: usize = 4;

/// Checks that all frames of a plan go to allowed destinations; none allow all.
///
/// # Errors
/// A frame may go elsewhere, or its destination is not known before the run.
pub(super) fn check(plan: &Plan, allowed: &[Prefix]) -> Result<(), ErrorDocument> {
    if allowed.is_empty() {
        return Ok(());
    }
    let forbidden = |reason: String| Err(ErrorDocument::new(ErrorCode::Forbidden, reason));
    let Plan::Streams { plan, options } = plan else {
        return forbidden(
            "the agent limits destinations, and only those of streams are known before a run"
                .to_owned(),
        );
    };
    for flow in plan.flows.iter().filter(|flow| options.is_here(flow.tx_port)) {
        if let Err(reason) = check_stream(&flow.stream, allowed) {
            return forbidden(format!("flow {:?}: {reason}", flow.stream.name));
        }
    }
    Ok(())
}

fn check_stream(stream: &Stream, allowed: &[Prefix]) -> Result<(), String> {
    let Some(Layout { types, address }) = Layout::of(&stream.template) else {
        return Err(
            "found frames without an IP destination, expected Ethernet, VLAN tags and IP: \
                    the agent limits destinations"
                .to_owned(),
        );
    };
    let mut writes = Vec::new();
    for step in &stream.program.steps {
        let target = step.target();
        if types.iter().any(|it| overlaps(it, &target)) {
            return Err("a field changes the EtherType, so destinations are not known".to_owned());
        }
        match step {
            _ if !overlaps(&address, &target) => {}
            Step::Write(write) => writes.push(write),
            _ => return Err("a length or a checksum overlaps the destination".to_owned()),
        }
    }
    let template = number(&stream.template[address.clone()]);
    let variables = &stream.program.variables;
    let ranges = match *writes.as_slice() {
        [write] => whole(write, variables, &address),
        _ => None,
    };
    let ranges = ranges.unwrap_or_else(|| {
        // Bits that are written may have any value.
        let varying = writes.iter().fold(0, |bits, write| bits | written(write, &address));
        vec![(template & !varying, template | varying)]
    });
    let shown = |value: u128| ip(value, address.len()).to_string();
    for (first, last) in ranges {
        let both = [ip(first, address.len()), ip(last, address.len())];
        if !allowed.iter().any(|prefix| both.iter().all(|address| prefix.contains(*address))) {
            let found = match first == last {
                true => shown(first),
                false => format!("{} to {}", shown(first), shown(last)),
            };
            let allowed: Vec<String> =
                allowed.iter().map(|it| format!("{}/{}", it.address, it.length)).collect();
            return Err(format!(
                "found destination {found}, expected one within {}",
                allowed.join(", ")
            ));
        }
    }
    Ok(())
}

/// Places in a frame.
struct Layout {
    /// EtherTypes.
    types: Vec<Range<usize>>,
    /// Destination address of the outer IP header.
    address: Range<usize>,
}

impl Layout {
    fn of(frame: &[u8]) -> Option<Self> {
        let mut types = Vec::new();
        for tags in 0..=TAGS_MAX {
            let at = TYPE_OFFSET + tags * TAG_BYTES;
            let packet = at + TYPE_BYTES;
            types.push(at..packet);
            let address = match *frame.get(at..packet)? {
                [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => continue,
                [0x08, 0x00] => packet + 16..packet + 20,
                [0x86, 0xdd] => packet + 24..packet + 40,
                _ => return None,
            };
            return (address.end <= frame.len()).then_some(Self { types, address });
        }
        None
    }
}

fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn ip(address: u128, length: usize) -> IpAddr {
    match length {
        4 => IpAddr::V4((address as u32).into()),
        _ => IpAddr::V6(address.into()),
    }
}

/// Returns the ranges of values of a write of the whole address; `None` if it writes a part, or its
/// values wrap around.
fn whole(
    write: &Write,
    variables: &[Variable],
    address: &Range<usize>,
) -> Option<Vec<(u128, u128)>> {
    let full = u128::MAX >> (128 - 8 * address.len());
    let is_whole = write.target() == *address
        && write.shift == 0
        && write.mask & full == full
        && write.order == ByteOrder::Network;
    if !is_whole {
        return None;
    }
    let value = |value: u128| value.wrapping_add(write.add) & full;
    let one = |found: u128| (value(found), value(found));
    match &variables.get(write.variable)?.values {
        Values::Counter { min, max, .. } | Values::Random { min, max, .. } => {
            let (first, last) = (value(*min), value(*max));
            // Values that wrap around are all between other bounds.
            (max - min <= full && first <= last).then(|| vec![(first, last)])
        }
        Values::List(values) => Some(values.iter().map(|it| one(*it)).collect()),
        Values::Weighted { choices, .. } => Some(choices.iter().map(|it| one(it.0)).collect()),
    }
}

/// Returns the bits of the address that a write may change.
fn written(write: &Write, address: &Range<usize>) -> u128 {
    let mut mask = write.mask.to_be_bytes()[16 - write.width.min(16)..].to_vec();
    if write.order == ByteOrder::Little {
        mask.reverse();
    }
    let place = |(index, bits): (usize, u8)| {
        let at = write.offset + index;
        address.contains(&at).then(|| u128::from(bits) << (8 * (address.end - 1 - at)))
    };
    mask.into_iter().enumerate().filter_map(place).fold(0, |all, bits| all | bits)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wirestorm_control::files::HostFiles;
    use wirestorm_control::plan::edit::parse_prefix;
    use wirestorm_control::plan::load;

    use super::*;

    /// Checks a flow with these headers behind Ethernet.
    fn check(headers: &str, allowed: &[&str]) -> Result<(), String> {
        let text = format!(
            "ports: [{{name: a}}, {{name: b}}]
flows:
  - {{name: f, tx: a, rx: b, rate: 1pps, packet: [{{ethernet: {{}}}}, {headers}]}}"
        );
        let plan = load::streams(&text, Path::new(""), &HostFiles).unwrap();
        let allowed: Vec<Prefix> =
            allowed.iter().map(|it| parse_prefix("destination", it).unwrap()).collect();
        check_stream(&plan.flows[0].stream, &allowed)
    }

    #[test]
    fn all_values_of_a_destination_have_to_be_allowed() {
        let range = "{ipv4: {dst: {increment: {start: 192.0.2.250, count: 10}}}}";
        let tagged = "{vlan: {id: {increment: {start: 1, count: 9}}}}, {ipv4: {dst: 192.0.2.7}}";
        for (headers, allowed, found) in [
            ("{ipv4: {dst: 192.0.2.7}}", "192.0.2.0/24", None),
            ("{ipv4: {dst: 192.0.3.7}}", "192.0.2.0/24", Some("destination 192.0.3.7, expected")),
            (range, "192.0.2.0/23", None),
            (range, "192.0.2.0/24", Some("192.0.2.250 to 192.0.3.3")),
            ("{ipv4: {dst: {values: [192.0.2.1, 10.0.0.1]}}}", "192.0.2.0/24", Some("10.0.0.1")),
            ("{ipv6: {dst: '2001:db8::1'}}", "2001:db8::/32", None),
            ("{ipv6: {dst: '2001:db8::1'}}", "192.0.2.0/24", Some("2001:db8::1")),
            (tagged, "192.0.2.7", None),
            ("{arp: {}}", "0.0.0.0/0", Some("without an IP destination")),
        ] {
            let outcome = check(headers, &[allowed, "198.51.100.0/24"]);
            match found {
                None => assert_eq!(outcome, Ok(()), "{headers}"),
                Some(found) => {
                    let error = outcome.unwrap_err();
                    assert!(error.contains(found), "{headers}: {error}");
                }
            }
        }
    }

    #[test]
    fn part_of_a_destination_may_have_any_value() {
        let write = |offset, width, mask| Write {
            variable: 0,
            offset,
            width,
            add: 0,
            shift: 0,
            mask,
            order: ByteOrder::Network,
        };
        let address = 30..34;
        assert_eq!(written(&write(33, 1, 0x0f), &address), 0x0f);
        assert_eq!(written(&write(28, 4, u128::MAX), &address), 0xffff_0000);
        let little = Write { order: ByteOrder::Little, ..write(32, 2, 0x00ff) };
        assert_eq!(written(&little, &address), 0xff00);
        assert_eq!(whole(&write(33, 1, 0xff), &[], &address), None);
    }
}
