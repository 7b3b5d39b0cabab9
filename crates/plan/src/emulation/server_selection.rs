//! Selection of the server by the first bytes of a flow, for conversations at one address and port.

use wirestorm_model::program::Step;

use super::types::FirstBytes;
use super::types::Template;

/// Maximum number of conversations at a port. The search below compares each with all others, and
/// so does a server for each flow.
const COUNT_MAX: usize = 256;

/// Number of first bytes that are compared.
const COMPARED_BYTES_MAX: usize = 256;

/// Finds first bytes for each beginning that match no other one; `None` if there are none.
pub(super) fn select_first_bytes(begins: &[&[u8]]) -> Option<Vec<FirstBytes>> {
    if begins.len() > COUNT_MAX {
        return None;
    }
    begins
        .iter()
        .enumerate()
        .map(|(index, text)| distinguishing_bytes(begins, index, text))
        .collect()
}

/// Finds as few bytes as possible in which beginning `index` differs from all others, greedily.
fn distinguishing_bytes(begins: &[&[u8]], index: usize, text: &[u8]) -> Option<FirstBytes> {
    // A shorter beginning does not differ beyond its end: its client may still send more.
    let differs = |at: usize, other: &[u8]| other.get(at).is_some_and(|byte| *byte != text[at]);
    let mut others: Vec<_> = begins.to_vec();
    others.swap_remove(index);
    let mut bytes = Vec::new();
    while !others.is_empty() {
        let distinguished = |at: &usize| others.iter().filter(|other| differs(*at, other)).count();
        let at = (0..text.len().min(COMPARED_BYTES_MAX)).rev().max_by_key(distinguished)?;
        if distinguished(&at) == 0 || bytes.len() == FirstBytes::COUNT_MAX {
            return None;
        }
        others.retain(|other| !differs(at, other));
        bytes.push((at as u8, 255, text[at]));
    }
    Some(FirstBytes(bytes))
}

/// Returns the data that a client sends first, before it waits; `None` if it waits first, or if TLS
/// hides the data.
pub(super) fn first_data<'a>(client: &'a [Step], template: &Template) -> Option<&'a [u8]> {
    let is_quiet = |step: &&Step| {
        matches!(
            step,
            Step::SetBlocking(_)
                | Step::SetTrafficClass(_)
                | Step::Delay { .. }
                | Step::RandomDelay { .. }
                | Step::SetIdleTimeout { .. }
        )
    };
    match client.iter().find(|step| !is_quiet(step)) {
        Some(Step::Send { text, .. } | Step::SendDatagram { text, .. }) => {
            Some(text).filter(|_| template.tls.is_none()).map(Vec::as_slice)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_bytes(begins: &[&str]) -> Option<Vec<Vec<(u8, u8, u8)>>> {
        let beginnings: Vec<_> = begins.iter().map(|it| it.as_bytes()).collect();
        Some(select_first_bytes(&beginnings)?.into_iter().map(|it| it.0).collect())
    }

    #[test]
    fn as_few_first_bytes_as_possible_are_selected() {
        let expected =
            vec![vec![(5, 255, b'a')], vec![(0, 255, b'G'), (5, 255, b'b')], vec![(0, 255, b'P')]];
        assert_eq!(first_bytes(&["GET /a ", "GET /b ", "PUT /b "]), Some(expected));
    }

    #[test]
    fn equal_beginnings_prefixes_and_late_differences_have_no_first_bytes() {
        assert_eq!(first_bytes(&["GET /", "GET /a"]), None);
        assert_eq!(first_bytes(&["GET /", "PUT /", "GET /"]), None);
        assert_eq!(first_bytes(&["", "a"]), None);
        let late = ["x".repeat(256) + "a", "x".repeat(256) + "b"];
        assert_eq!(first_bytes(&[&late[0], &late[1]]), None);
        // The zeros differ from each of the nine others in another byte: more than COUNT_MAX.
        let others: Vec<_> = (0..9).map(|at| format!("{:09}", 10_u64.pow(at))).collect();
        let zeros = "0".repeat(9);
        let all: Vec<_> = others.iter().map(String::as_str).chain([zeros.as_str()]).collect();
        assert_eq!(first_bytes(&all), None);
        assert!(first_bytes(&all[1..]).is_some());
        let many: Vec<_> = (0..257).map(|number| format!("{number:03}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(first_bytes(&many), None);
        assert!(first_bytes(&many[1..]).is_some());
    }
}
